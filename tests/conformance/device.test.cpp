// SPDX-License-Identifier: Apache-2.0
#include <spillway/device/host_device.hpp>
#include <spillway/testing/device_conformance.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/sanitizers.hpp"

using namespace spillway::literals;
using spillway::bytes;
using spillway::host_device;

TEST_CASE("device conformance: host_device") {
  host_device device{{.memory = 1_MiB}};
  CHECK(spillway::testing::check_device(device) == std::vector<std::string>{});
}

TEST_CASE("device conformance: host_device with a slow link") {
  host_device device{{.memory = 1_MiB, .link_bytes_per_second = 200e6}};
  CHECK(spillway::testing::check_device(device) == std::vector<std::string>{});
}

namespace {
/// Devices that break one law each: the suite must see it.
struct base : host_device {
  base() : host_device({.memory = 1_MiB, .link_bytes_per_second = 500e6}) {}
};
struct device_without_a_budget : base {
  spillway::device_block allocate(bytes n) { return base::allocate(n < 512_KiB ? n : 512_KiB); }
};
struct device_that_forgets_to_count : base {
  [[nodiscard]] static bytes used() { return {}; }
};
struct device_with_a_lower_peak : base {
  [[nodiscard]] bytes peak() const { return used(); }
};
struct device_whose_streams_do_not_wait : base {
  void wait(stream&, event const&) {}
};
struct device_that_records_done_events : base {
  event record(stream&) { return {}; }
};
struct device_that_skips_tasks : base {
  template <class Task>
  void submit(stream&, Task&&) {}
};
struct device_that_hides_failures : base {
  template <class Task>
  void submit(stream& on, Task task) {
    base::submit(on, [task](host_device::context& seen) {
      try {
        task(seen);
      } catch (std::exception const&) {
      }
    });
  }
};
class device_that_copies_in_another_order : public base {
 public:
  void copy_to_device(stream& on, std::byte* to, std::span<std::byte const> from) {
    base::copy_to_device(on, to_, from_);
    to_ = to;
    from_ = from;
  }
  void copy_to_host(stream& on, std::span<std::byte> to, std::byte const* from) {
    base::copy_to_host(on, to, from);
    copy_to_device(on, nullptr, {});
  }

 private:
  std::byte* to_ = nullptr;  // of the copy that is held back
  std::span<std::byte const> from_{};
};

template <class Broken>
[[nodiscard]] bool found_in(std::string const& law) {
  Broken device;
  auto const broken = spillway::testing::check_device(device);
  return std::any_of(broken.begin(), broken.end(), [&](auto const& text) { return text.rfind(law, 0) == 0; });
}
}  // namespace

TEST_CASE("device conformance: the suite finds broken laws") {
  if constexpr (test::thread_sanitizer) SKIP("these devices race, on purpose");
  CHECK(found_in<device_without_a_budget>("budget: a block over the budget"));
  CHECK(found_in<device_that_forgets_to_count>("blocks: used() misses live blocks"));
  CHECK(found_in<device_with_a_lower_peak>("blocks: peak() forgets"));
  CHECK(found_in<device_whose_streams_do_not_wait>("order across streams:"));
  CHECK(found_in<device_that_records_done_events>("order across streams:"));
  CHECK(found_in<device_that_skips_tasks>("tasks: a task was not called exactly once"));
  CHECK(found_in<device_that_hides_failures>("failure: stream.wait() does not throw"));
  CHECK(found_in<device_that_copies_in_another_order>("copies: copies of one stream"));
}
