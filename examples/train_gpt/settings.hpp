// SPDX-License-Identifier: Apache-2.0
/// What the program can be told, with its defaults.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/error.hpp>

#include <cstdint>
#include <string>

#include "model.hpp"
#include "options.hpp"

namespace train_gpt {

using namespace spillway::literals;

struct settings {
  // The run.
  std::string text{};
  std::uint64_t steps = 60;
  std::uint64_t seed = 1234;
  std::uint64_t batch = 8;
  std::uint64_t micro_batches = 1;
  std::uint64_t threads = 0;
  // The model.
  std::uint64_t width = 320;
  std::uint64_t layers = 8;
  std::uint64_t heads = 8;
  std::uint64_t context = 64;
  // The optimizer.
  double lr = 1e-3;
  double final_lr = 1e-4;
  std::uint64_t warmup = 10;
  double weight_decay = 0.1;
  double clip = 1.0;
  double loss_scale = 1.0;
  // The machine.
  spillway::bytes device_memory = 112_MiB;
  double link_speed = 0;
  spillway::bytes host_memory = 160_MiB;
  spillway::bytes file_space = 16_GiB;
  // Where state lives.
  std::string offload = "file";
  double file_share = 0.75;
  std::string file = "train_gpt.spill";
  std::string engine = "auto";
  std::string direct = "auto";
  std::uint64_t chunk = 256 * 1024;
  std::uint64_t slots = 4;
  std::uint64_t read_ahead = 2;
  // Checkpoints.
  std::string checkpoint{};
  std::uint64_t checkpoint_every = 20;
  std::uint64_t keep = 3;
  std::string resume{};
  // What to show.
  std::string timeline{};

  void declare(flag_set& flags) {
    flags.add("--text", "file to train on; none: the project's own headers", text);
    flags.add("--steps", "optimizer steps of the whole run", steps);
    flags.add("--seed", "of weights and samples", seed);
    flags.add("--batch", "sequences of a micro-batch", batch);
    flags.add("--micro-batches", "micro-batches whose gradients are summed in a step", micro_batches);
    flags.add("--threads", "worker threads; 0: one for each usable processor; results do not depend on it", threads);
    flags.add("--width", "numbers per token in the residual stream", width);
    flags.add("--layers", "transformer blocks", layers);
    flags.add("--heads", "attention heads", heads);
    flags.add("--context", "tokens of a sequence", context);
    flags.add("--lr", "learning rate at its peak", lr);
    flags.add("--final-lr", "learning rate of the last step", final_lr);
    flags.add("--warmup", "steps of linear warm-up", warmup);
    flags.add("--weight-decay", "decoupled, of matrices only", weight_decay);
    flags.add("--clip", "bound of the global gradient norm; 0: none", clip);
    flags.add("--loss-scale", "static loss scale", loss_scale);
    flags.add("--device-memory", "memory of the simulated accelerator", device_memory);
    flags.add("--link-speed", "of the simulated accelerator, bytes/s each way; 0: as fast as memory", link_speed);
    flags.add("--host-memory", "host budget: resident state, gradients, staging slots", host_memory);
    flags.add("--file-space", "budget of the spill file", file_space);
    flags.add("--offload", "where optimizer state lives: none keeps all of it on the device", offload,
              {"file", "host", "none"});
    flags.add("--file-share", "with --offload file: share of the state in the file, the rest in host memory",
              file_share);
    flags.add("--file", "directory of the spill file, on the fast drive", file);
    flags.add("--engine", "how files are moved: auto probes io_uring", engine, {"auto", "threads"});
    flags.add("--direct", "bypass the page cache", direct, {"auto", "required", "off"});
    flags.add("--chunk", "elements that move and are updated at once", chunk);
    flags.add("--slots", "staging buffers of one chunk", slots);
    flags.add("--read-ahead", "chunks read beyond the one being updated", read_ahead);
    flags.add("--checkpoint", "directory of checkpoints; none: train_gpt.checkpoints, or where --resume points",
              checkpoint);
    flags.add("--checkpoint-every", "steps between checkpoints; 0: only at the end and on SIGTERM or SIGINT",
              checkpoint_every);
    flags.add("--keep", "checkpoints to keep; 0: all", keep);
    flags.add("--resume", "checkpoint directory, or one step-* in it, to go on from", resume);
    flags.add("--timeline", "write a Chrome trace here", timeline);
  }

  [[nodiscard]] transformer_config model() const {
    return {.vocabulary = 256, .context = context, .width = width, .heads = heads, .layers = layers};
  }

  /// Of a fresh run.
  [[nodiscard]] std::string checkpoint_root() const {
    return checkpoint.empty() ? "train_gpt.checkpoints" : checkpoint;
  }

  /// Errors   spillway::error invalid_option, naming the flag.
  void validate() const {
    auto const refuse = [](std::string const& why) {
      throw spillway::error{spillway::errc::invalid_option, {.where = "command line", .detail = why}};
    };
    train_gpt::validate(model(), batch);
    if (steps == 0) refuse("--steps must be at least 1");
    if (micro_batches == 0 || micro_batches > 4096) refuse("--micro-batches must be 1 to 4096");
    if (threads > 256) refuse("--threads must be at most 256");
    if (slots < 2 || slots > 1024) refuse("--slots must be 2 to 1024");
    if (read_ahead > 1024) refuse("--read-ahead must be at most 1024");
    if (!(file_share >= 0 && file_share <= 1)) refuse("--file-share must lie between 0 and 1");
    if (!(loss_scale > 0)) refuse("--loss-scale must be above 0");
    if (!(clip >= 0)) refuse("--clip must not be negative");
    if (!(weight_decay >= 0)) refuse("--weight-decay must not be negative");
    if (!(lr > 0) || !(final_lr >= 0) || final_lr > lr) refuse("--lr must be above 0 and --final-lr between 0 and it");
    if (!checkpoint.empty() && !resume.empty()) refuse("--resume saves where it resumes: leave out --checkpoint");
    if (warmup > steps)
      refuse("--warmup " + std::to_string(warmup) + " is longer than --steps " + std::to_string(steps));
  }

  /// Everything that the trajectory depends on: a run may only go on under the same.
  [[nodiscard]] std::string trajectory() const {
    auto const number = [](double v) {
      char digits[40];
      std::snprintf(digits, sizeof digits, "%a", v);
      return std::string(digits);
    };
    auto const whole = [](std::uint64_t v) { return std::to_string(v); };
    return "--width " + whole(width) + " --layers " + whole(layers) + " --heads " + whole(heads) + " --context " +
           whole(context) + " --batch " + whole(batch) + " --micro-batches " + whole(micro_batches) + " --seed " +
           whole(seed) + " --steps " + whole(steps) + " --warmup " + whole(warmup) + " --lr " + number(lr) +
           " --final-lr " + number(final_lr) + " --weight-decay " + number(weight_decay) + " --clip " + number(clip);
  }
};

}  // namespace train_gpt
