// SPDX-License-Identifier: Apache-2.0
// Trains a GPT on text. Its optimizer state does not fit the accelerator: it lives in host memory and in a file, and streams
// through the update every step. Kill it at any moment and start it again with --resume: it goes on with the same bits.

#include <spillway/checkpoint/checkpoint_store.hpp>
#include <spillway/execution/stop_signal.hpp>
#include <spillway/pipeline/offload_pipeline.hpp>
#include <spillway/tier/device_tier.hpp>
#include <spillway/tier/file_tier.hpp>
#include <spillway/tier/host_tier.hpp>

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device_model.hpp"
#include "engine.hpp"
#include "progress.hpp"
#include "resume.hpp"
#include "schedule.hpp"
#include "settings.hpp"
#include "text.hpp"

namespace train_gpt {

using namespace spillway;

/// Everything that must be saved for the run to go on as if it had never stopped.
template <class Pipeline>
struct run_state {
  std::uint64_t step = 0;
  double loss_scale = 1;
  sampler samples{};
  std::string trajectory{};
  Pipeline* model = nullptr;

  template <class Visitor>
  void visit_state(Visitor& visit) {
    visit("step", step);
    visit("loss_scale", loss_scale);
    visit("samples", samples);
    visit("trajectory", trajectory);
    visit("model", *model);
  }
};

/// One step's batch of windows, one after the other.
void draw(sampler& samples, std::vector<std::uint8_t> const& text, std::size_t length,
          std::vector<std::uint8_t>& tokens) {
  for (std::size_t at = 0; at < tokens.size(); at += length) {
    auto const window = samples.next(text, length);
    std::copy(window.begin(), window.end(), tokens.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

std::vector<adamw_kernel> kernels(settings const& set) {
  adamw_kernel const matrices{.lr = set.lr, .beta2 = 0.95, .weight_decay = set.weight_decay};
  adamw_kernel others = matrices;
  others.weight_decay = 0;
  return {matrices, others};
}

template <class Tiers>
int train(settings const& set, std::vector<std::uint8_t> const& text, host_device& device, Tiers tiers,
          std::shared_ptr<thread_pool> const& team, timeline& trace) {
  cosine_schedule const schedule{1.0F, static_cast<float>(set.final_lr / set.lr), set.warmup, set.steps};
  device_model<host_device> model(device, set.model(), set.batch, team);
  host_updater<adamw_kernel> updater(kernels(set), team);
  offload_pipeline pipeline{model.layout(),
                            device,
                            std::move(tiers),
                            std::move(updater),
                            sequential_scheduler{.depth = static_cast<unsigned>(set.read_ahead)},
                            pipeline_options{.chunk_elements = set.chunk,
                                             .slots = static_cast<unsigned>(set.slots),
                                             .micro_batches = static_cast<unsigned>(set.micro_batches),
                                             .pool = team,
                                             .trace = set.timeline.empty() ? nullptr : &trace}};
  for (std::size_t t = 0; t < model.layout().size(); ++t) pipeline.bind(t, model.parameter(t));

  run_state<decltype(pipeline)> state{.loss_scale = set.loss_scale,
                                      .samples = sampler::seeded(set.seed),
                                      .trajectory = set.trajectory(),
                                      .model = &pipeline};
  progress show(set.steps);
  resume_point const from = parse_resume(set.resume);
  checkpoint_store<> store(set.resume.empty() ? set.checkpoint_root() : from.root,
                           {.keep_last = static_cast<unsigned>(set.keep)});
  if (set.resume.empty()) {
    std::vector<float> whole;
    std::size_t held = model.layout().size();
    pipeline.initialise([&](std::size_t tensor, std::uint64_t first, std::span<float> out) {
      if (tensor != held) {
        whole.resize(model.layout().elements(tensor));
        initialise(set.model(), set.seed, tensor, whole);
        held = tensor;
      }
      std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
    });
  } else {
    restored_checkpoint const found = store.restore(state, from.step);
    for (std::string const& note : found.notes) show.note("note: " + note);
    if (state.trajectory != set.trajectory()) {
      throw error{errc::invalid_option,
                  {.where = "--resume",
                   .path = found.path,
                   .detail = "was made with " + state.trajectory + "; this run has " + set.trajectory()}};
    }
    show.note("resumed " + found.path + " at step " + std::to_string(state.step));
    for (std::string const& note : set_later_aside(store, state.step)) show.note(note);
  }
  show.note(std::to_string(model.layout().elements()) + " parameters, optimizer state " +
            to_string(dense_bytes(pipeline.arrays(), pipeline.chunks().blocks())) + " in " +
            std::to_string(pipeline.chunks().size()) + " chunks");
  huge_buffer_report const staging = pipeline.staging();
  show.note("staging: " + to_string(staging.held) + ", huge pages: " + to_string(staging.outcome) +
            (staging.reason.empty() ? "" : " (" + staging.reason + ")"));

  stop_signal stop;
  std::size_t const window = set.context + 1;
  std::vector<std::uint8_t> tokens(set.batch * window);
  auto const save = [&] {
    double const began = seconds_now();
    saved_checkpoint const saved = store.save(state.step, state);
    trace.add({resource::checkpoint, "save", static_cast<std::uint32_t>(state.step), began, seconds_now()});
    for (std::string const& warning : saved.warnings) show.note("warning: " + warning);
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%.2f", seconds_now() - began);
    show.note("saved " + saved.path + " (" + to_string(saved.size) + " in " + seconds + " s)");
  };
  std::uint64_t saved_at = set.resume.empty() ? ~std::uint64_t{0} : state.step;
  while (state.step < set.steps && stop.received() == 0) {
    double const began = seconds_now();
    double compute = 0;
    double loss_sum = 0;
    for (std::uint64_t micro = 0; micro < set.micro_batches; ++micro) {
      draw(state.samples, text, window, tokens);
      double const start = seconds_now();
      double loss = 0;
      host_device::event const ready = model.forward_backward(tokens, state.loss_scale, loss);
      for (std::size_t t = 0; t < model.layout().size(); ++t) {
        host_device::event const copied = pipeline.accumulate(t, model.gradient(t), ready);
        model.wait(copied);  // the next backward must not overwrite what is still being copied
      }
      ready.wait();
      compute += seconds_now() - start;
      loss_sum += loss;
      trace.add({resource::compute, "forward, backward", static_cast<std::uint32_t>(micro), start, seconds_now()});
    }
    auto const count = static_cast<double>(set.micro_batches);
    step_report const report = pipeline.step({.learning_rate_factor = static_cast<double>(schedule.at(state.step + 1)),
                                              .max_norm = set.clip,
                                              .loss_scale = state.loss_scale * count});
    for (std::size_t t = 0; t < model.layout().size(); ++t) model.wait(pipeline.parameters_ready(t));
    ++state.step;
    show.step(state.step, loss_sum / count, set.batch * set.context * set.micro_batches, compute, seconds_now() - began,
              report);
    if (set.checkpoint_every != 0 && state.step % set.checkpoint_every == 0) {
      save();
      saved_at = state.step;
    }
  }
  if (stop.received() != 0) show.note("signal " + std::to_string(stop.received()) + ": the step is finished");
  if (saved_at != state.step) save();

  show.table(model.layout().elements(), pipeline.chunks().blocks() * block_elements);
  std::printf("\n");
  progress::peak("peak of device memory", device.peak(), device.capacity());
  progress::peak("staging slots", staging.held, set.host_memory);
  progress::peak("peak of the process", peak_host_memory(), set.host_memory + set.device_memory);
  if (!set.timeline.empty()) {
    trace.write(set.timeline);
    std::printf("timeline: %s (open it in ui.perfetto.dev)\n", set.timeline.c_str());
  }
  std::printf("digest after step %llu: %s\n", static_cast<unsigned long long>(state.step),
              to_string(digest_of(state)).c_str());
  return 0;
}

int run(settings const& set) {
  set.validate();
  // Everything that can be refused is refused here, before anything large is allocated.
  check_checkpoints(set.checkpoint_root(), set.resume);
  std::vector<std::uint8_t> const text = load_corpus(set.text, TRAIN_GPT_HEADERS, set.context + 1);
  auto const team = std::make_shared<thread_pool>(static_cast<unsigned>(set.threads));
  parameter_layout const layout = layout_of(set.model());
  memory_plan plan;
  plan.limit(budget::device, set.device_memory);
  plan.limit(budget::host, set.host_memory);
  plan.limit(budget::file, set.file_space);
  device_model<host_device>::add_to(plan, set.model(), set.batch);
  plan.require();  // a model that is far too large would have too many chunks even to plan them
  updater_schema const schema = host_updater<adamw_kernel>(kernels(set), team).schema();
  chunk_plan const chunks(layout, set.chunk, schema.by_group);
  add_pipeline(plan, layout, schema, chunks,
               {.slots = static_cast<unsigned>(set.slots), .micro_batches = static_cast<unsigned>(set.micro_batches)});
  plan.add(budget::host, "text", bytes{text.size()});
  timeline trace(set.timeline.empty() ? 0 : std::size_t{1} << 18U);
  if (!set.timeline.empty()) trace.write(set.timeline);  // an empty one: it is found now if it can't be written

  if (set.offload == "none") {
    plan.add(budget::device, "optimizer state", dense_bytes(schema.arrays, chunks.blocks()));
    plan.require();
    host_device device({.memory = set.device_memory, .link_bytes_per_second = set.link_speed});
    std::printf("device: %s; optimizer state in its memory\n", device.name().c_str());
    return train(set, text, device, device_tier<host_device>(device), team, trace);
  }
  if (set.offload == "host") {
    tier_stack tiers{share{1.0, host_tier{set.host_memory}}};
    plan.add(budget::host, "optimizer state", state_bytes(tiers, schema.arrays, chunks)[0]);
    plan.require();
    host_device device({.memory = set.device_memory, .link_bytes_per_second = set.link_speed});
    std::printf("device: %s; optimizer state in host memory\n", device.name().c_str());
    return train(set, text, device, std::move(tiers), team, trace);
  }
  if (::mkdir(set.file.c_str(), 0777) != 0 && errno != EEXIST) {
    throw error{last_system_error(), {.where = "make directory", .path = set.file}};
  }
  direct_io const direct = set.direct == "auto"  ? direct_io::automatic
                           : set.direct == "off" ? direct_io::off
                                                 : direct_io::required;
  file_tier<file_engine> file(make_engine(set.engine == "threads"),
                              {.directory = set.file, .capacity = set.file_space, .direct = direct});
  file_tier_report const about = file.report();
  tier_stack tiers{share{1.0 - set.file_share, host_tier{set.host_memory}}, share{set.file_share, std::move(file)}};
  auto const [in_host, in_file] = state_bytes(tiers, schema.arrays, chunks);
  plan.add(budget::host, "optimizer state", in_host);
  plan.add(budget::file, "optimizer state", in_file);
  plan.require();
  host_device device({.memory = set.device_memory, .link_bytes_per_second = set.link_speed});
  std::printf("device: %s\n", device.name().c_str());
  std::printf("file: %s in %s, engine %s (%s), direct I/O: %s (%s)\n", to_string(in_file).c_str(),
              about.directory.c_str(), about.engine.name.c_str(), about.engine.reason.c_str(),
              about.direct ? "yes" : "no", about.direct_reason.c_str());
  return train(set, text, device, std::move(tiers), team, trace);
}

}  // namespace train_gpt

int main(int argc, char** argv) {
  try {
    train_gpt::settings set;
    train_gpt::flag_set flags;
    set.declare(flags);
    if (!flags.parse({argv + 1, static_cast<std::size_t>(argc > 0 ? argc - 1 : 0)})) {
      std::printf("Train a GPT whose optimizer state does not fit the accelerator.\n\n%s\n", flags.help().c_str());
      return 0;
    }
    return train_gpt::run(set);
  } catch (std::exception const& failed) {
    std::fprintf(stderr, "train_gpt: %s\n", failed.what());
    return 1;
  }
}
