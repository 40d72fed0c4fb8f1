// SPDX-License-Identifier: Apache-2.0
// A step of offload_pipeline whose state is all in a file, against fio moving as many bytes each way on the same drive.
// needs: fio liburing
//
//   file_step_bench [--NAME VALUE]...: elements, chunk, slots, read-ahead, request, depth, threads, rounds, directory
//
// What is not given is the library's default; the directory is the program's. fio: io_uring, direct, buffers in huge pages,
// sequential rw=rw half and half on a preallocated file that was written once, with the best of 512 KiB and 2 MiB blocks at
// depth 16 and 64, tried beforehand.

#include <spillway/device/host_device.hpp>
#include <spillway/pipeline/offload_pipeline.hpp>
#include <spillway/tier/file_tier.hpp>
#include <spillway/uring/default_engine.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/rounds.hpp"

namespace {

using namespace spillway;

using flags = std::map<std::string, std::string>;

std::uint64_t number(flags const& given, std::string const& name, std::uint64_t otherwise) {
  auto const found = given.find(name);
  return found == given.end() ? otherwise : std::stoull(found->second);
}

/// Reserved huge pages, which fio's buffers need; the system's number comes back at the end.
class reserved_huge_pages {
 public:
  explicit reserved_huge_pages(unsigned long wanted) : before_(read()) {
    if (before_ < wanted) write(wanted);
    if (read() < wanted) {
      throw std::runtime_error("fio needs " + std::to_string(wanted) + " huge pages; " + path + " has " +
                               std::to_string(read()) + ", and raising it takes root");
    }
  }
  reserved_huge_pages(reserved_huge_pages const&) = delete;
  reserved_huge_pages& operator=(reserved_huge_pages const&) = delete;
  ~reserved_huge_pages() {
    if (read() != before_) write(before_);
  }

 private:
  static inline std::string const path = "/proc/sys/vm/nr_hugepages";
  static unsigned long read() {
    unsigned long pages = 0;
    std::ifstream(path) >> pages;
    return pages;
  }
  static void write(unsigned long pages) { std::ofstream(path) << pages; }
  unsigned long before_;
};

/// A file of `size` bytes, and fio runs on it.
class fio_file {
 public:
  fio_file(std::string path, bytes size) : path_(std::move(path)), size_(size) {
    static_cast<void>(run("--rw=write --bs=2m --iodepth=16 --fallocate=posix", 0, size));
  }
  fio_file(fio_file const&) = delete;
  fio_file& operator=(fio_file const&) = delete;
  ~fio_file() { ::unlink(path_.c_str()); }

  /// Seconds for reading and writing `size` bytes each.
  [[nodiscard]] double mixed(std::string const& how) const {
    return run("--rw=rw --rwmixread=50 --io_size=" + std::to_string(2 * size_.count) + " " + how,
               size_.count / 100 * 95, size_);
  }

 private:
  [[nodiscard]] double run(std::string const& how, std::uint64_t least_read, bytes size) const {
    std::string const command =
        "fio --name=step --ioengine=io_uring --direct=1 --iomem=mmaphuge --minimal --filename='" + path_ +
        "' --size=" + std::to_string(size.count) + " " + how;
    std::FILE* const out = ::popen(command.c_str(), "r");
    if (out == nullptr) throw std::runtime_error("fio did not start");
    std::string text;
    for (int c = std::fgetc(out); c != EOF; c = std::fgetc(out)) text.push_back(static_cast<char>(c));
    int const status = ::pclose(out);
    std::vector<std::string> fields;
    std::stringstream line(text);
    for (std::string field; std::getline(line, field, ';');) fields.push_back(field);
    // Version 3 of the terse output: error, KiB and milliseconds of reads and of writes.
    if (status != 0 || fields.size() < 50 || fields[0] != "3" || fields[4] != "0") {
      throw std::runtime_error("fio failed: " + command + "\n" + text);
    }
    std::uint64_t const read = std::stoull(fields[5]) * 1024;
    std::uint64_t const written = std::stoull(fields[46]) * 1024;
    if (read < least_read || read + written < size.count) throw std::runtime_error("fio moved too little: " + text);
    return static_cast<double>(std::max(std::stoull(fields[8]), std::stoull(fields[49]))) / 1000;
  }
  std::string path_;
  bytes size_;
};

/// The fastest of the four ways, each tried twice.
std::string best_of(fio_file const& file) {
  std::string best;
  double least = 0;
  for (int round = 0; round < 2; ++round) {
    for (char const* const how :
         {"--bs=512k --iodepth=16", "--bs=512k --iodepth=64", "--bs=2m --iodepth=16", "--bs=2m --iodepth=64"}) {
      double const seconds = file.mixed(how);
      std::printf("fio %s: %.3f s\n", how, seconds);
      if (best.empty() || seconds < least) {
        best = how;
        least = seconds;
      }
    }
  }
  std::printf("fio at its best: %s\n", best.c_str());
  return best;
}

void measure(flags const& given) {
  // As a model has them: matrices, not one long tensor.
  constexpr std::uint64_t matrix = 2048;
  std::uint64_t const tensors =
      std::max<std::uint64_t>(1, number(given, "elements", std::uint64_t{256} << 20U) / (matrix * matrix));
  std::string const& directory = given.at("directory");
  std::vector<tensor_spec> specs;
  for (std::uint64_t t = 0; t < tensors; ++t) {
    specs.push_back({.name = "matrix." + std::to_string(t), .shape = {matrix, matrix}, .type = dtype::bfloat16});
  }
  parameter_layout const layout(specs);
  bytes const tensor_size = layout.elements(0) * size_of(dtype::bfloat16);

  pipeline_options options;
  options.chunk_elements = number(given, "chunk", options.chunk_elements);
  options.slots = static_cast<unsigned>(number(given, "slots", options.slots));
  options.pool = std::make_shared<thread_pool>(static_cast<unsigned>(number(given, "threads", 0)));
  sequential_scheduler scheduler;
  scheduler.depth = static_cast<unsigned>(number(given, "read-ahead", scheduler.depth));
  uring_engine_options engine;
  engine.request = bytes{number(given, "request", engine.request.count)};
  engine.depth = static_cast<unsigned>(number(given, "depth", engine.depth));

  host_device device({.memory = 2 * layout.parameter_bytes() + 64_MiB});
  file_tier tier(default_engine(engine, thread_engine_options{}),
                 {.directory = directory, .direct = direct_io::required});
  std::printf("%s\nengine %s (%s)\n", device.name().c_str(), tier.report().engine.name.c_str(),
              tier.report().engine.reason.c_str());
  offload_pipeline pipeline(layout, device, std::move(tier), host_updater(adamw_kernel{}, options.pool), scheduler,
                            options);
  std::printf("staging: huge pages %s\n", to_string(pipeline.staging().outcome));
  std::vector<device_block> gradients;
  auto stream = device.make_stream();
  for (std::size_t t = 0; t < layout.size(); ++t) {
    pipeline.bind(t, device.allocate(tensor_size).data);
    gradients.push_back(device.allocate(tensor_size));
    device.submit(stream, [block = gradients.back()](auto& on_device) {
      auto* const gradient = reinterpret_cast<bf16*>(on_device.address(block.data));
      for (std::size_t i = 0; i < matrix * matrix; ++i) gradient[i] = narrow(i % 2 == 0 ? 0.001F : -0.0005F);
    });
  }
  stream.wait();
  pipeline.initialise(
      [](std::size_t, std::uint64_t, std::span<float> out) { std::fill(out.begin(), out.end(), 0.02F); });

  step_report last;
  auto const step = [&] {
    // The gradients arrive during the backward pass, before the step.
    for (std::size_t t = 0; t < layout.size(); ++t) pipeline.accumulate(t, gradients[t].data).wait();
    double const seconds = bench::seconds_of([&] { last = pipeline.step({.max_norm = 1.0}); });
    auto const busy = [&](resource r) { return last.busy[static_cast<std::size_t>(r)]; };
    std::printf("step %.3f s: read %.3f, write %.3f, update %.3f, waited for a chunk %.3f, for a slot %.3f\n", seconds,
                busy(resource::file_read), busy(resource::file_write), busy(resource::host_update),
                last.waited_for_read, last.waited_for_write);
    return seconds;
  };
  static_cast<void>(step());

  bytes const state = dense_bytes(pipeline.arrays(), pipeline.chunks().blocks());
  reserved_huge_pages const pages(2 * 64 + 16);
  fio_file const file(directory + "/file_step." + std::to_string(::getpid()) + ".fio", state);
  std::string const how = best_of(file);
  auto const rounds = static_cast<unsigned>(number(given, "rounds", 7));
  std::vector<double> ours;
  std::vector<double> theirs;
  bench::alternate(
      {.baseline = "fio", .goal = 0.87, .rounds = rounds},  // 1 / 1.15
      [&] { return ours.emplace_back(step()); }, [&] { return theirs.emplace_back(file.mixed(how)); });

  auto const middle = [](std::vector<double> seconds) {
    std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2), seconds.end());
    return seconds[seconds.size() / 2];
  };
  auto const by_parameter = [&](bytes n) {
    return static_cast<double>(n.count) / static_cast<double>(layout.elements());
  };
  bench::value("state", static_cast<double>(state.count) / double{1U << 30U}, "GiB");
  bench::value("ours", 2e-9 * static_cast<double>(state.count) / middle(ours), "GB/s read and written");
  bench::value("fio", 2e-9 * static_cast<double>(state.count) / middle(theirs), "GB/s read and written");
  bench::value("file_read", by_parameter(last.file.read), "bytes per parameter");
  bench::value("file_written", by_parameter(last.file.written), "bytes per parameter");
  bench::value("gradients_to_host", by_parameter(last.gradients_in), "bytes per parameter");
  bench::value("parameters_to_device", by_parameter(last.parameters_out), "bytes per parameter");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::vector<std::string> const known{"elements", "chunk",   "slots",  "read-ahead", "request",
                                         "depth",    "threads", "rounds", "directory"};
    flags given{{"directory", std::string(argv[0]).substr(0, std::string(argv[0]).rfind('/') + 1) + "."}};
    for (int i = 1; i < argc; i += 2) {
      std::string const name = argv[i];
      if (!name.starts_with("--") || std::find(known.begin(), known.end(), name.substr(2)) == known.end() ||
          i + 1 == argc) {
        throw std::runtime_error("unknown flag, or no value: " + name);
      }
      given[name.substr(2)] = argv[i + 1];
    }
    measure(given);
  } catch (std::exception const& failed) {
    std::fprintf(stderr, "file_step: %s\n", failed.what());
    return 1;
  }
}
