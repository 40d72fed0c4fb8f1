// SPDX-License-Identifier: Apache-2.0
// A program of one's own: a parameter on the accelerator, its optimizer state in a file.
// [readme]
#include <spillway/spillway.hpp>

#include <cstdio>

using namespace spillway;

int main() {
  host_device device({.memory = 16_MiB});  // a simulated accelerator
  parameter_layout const layout({{.name = "weight", .shape = {1000, 1000}}});
  bytes const size = layout.parameter_bytes();
  device_block const weight = device.allocate(size);
  device_block const gradient = device.allocate(size);

  offload_pipeline optimizer(layout, device, file_tier(thread_engine<>{}, {.directory = "."}),
                             host_updater(adamw_kernel{.lr = 0.1}));
  optimizer.bind(0, weight.data);
  optimizer.initialise(
      [](std::size_t, std::uint64_t, std::span<float> out) { std::fill(out.begin(), out.end(), 3.0F); });

  auto stream = device.make_stream();
  for (int step = 0; step < 20; ++step) {
    device.submit(stream, [&](auto& on_device) {  // backward: the loss is the sum of w * w / 2, so its gradient is w
      std::copy_n(on_device.address(weight.data), size.count, on_device.address(gradient.data));
    });
    optimizer.accumulate(0, gradient.data, device.record(stream));
    step_report const report = optimizer.step({.max_norm = 1.0});
    device.wait(stream, optimizer.parameters_ready(0));
    std::printf("step %d: norm %.2f, %.1f B of state read and written per parameter\n", step + 1, report.gradient_norm,
                static_cast<double>(report.file.read.count) / static_cast<double>(layout.elements()));
  }
  stream.wait();
}
// [/readme]
