// SPDX-License-Identifier: Apache-2.0
/// Memory for direct I/O: anonymous, aligned, touched, in huge pages where the machine gives them.
#pragma once

#include <spillway/core/bytes.hpp>
#include <spillway/core/error.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace spillway::inline v0 {

/// What a buffer's pages turned out to be. Scattered small pages halve the speed of direct I/O (one segment a page).
enum class huge_pages {
  all,      ///< every 2 MiB of it is one page
  some,     ///< part of it
  none,     ///< small pages only
  unknown,  ///< the kernel does not say
};
[[nodiscard]] constexpr char const* to_string(huge_pages outcome) noexcept {
  switch (outcome) {
    case huge_pages::all:
      return "all";
    case huge_pages::some:
      return "some";
    case huge_pages::none:
      return "none";
    case huge_pages::unknown:
      break;
  }
  return "unknown";
}

struct huge_buffer_report {
  huge_pages outcome = huge_pages::unknown;
  bytes asked{};         ///< size()
  bytes held{};          ///< resident and mapped: asked, rounded up to the quantum
  bytes huge{};          ///< of held, in huge pages
  std::string reason{};  ///< why not all: "transparent huge pages: never"; empty when all
};

struct huge_buffer_options {
  bytes quantum{2ULL << 20U};  ///< held bytes are a multiple of it; a power of two, a page at least
};

/// Owns one anonymous mapping, zeroed, aligned to 2 MiB (under 2 MiB: to a page), touched at construction so that no
/// page is first met in a step. An inaccessible page on either side catches overruns and keeps the kernel from merging
/// the mapping with a neighbour, so that the report counts this buffer only.
/// Errors   what mmap said, with the bytes wanted; invalid_option.
/// Threads  as a plain value.
class huge_buffer {
 public:
  static constexpr bytes page{2ULL << 20U};

  huge_buffer() noexcept = default;
  explicit huge_buffer(bytes size, huge_buffer_options options = {}) : asked_(size) {
    std::uint64_t const small_page = page_size();
    std::uint64_t const quantum = options.quantum.count;
    if (quantum < small_page || (quantum & (quantum - 1)) != 0) {
      throw error{errc::invalid_option, {.where = "huge_buffer quantum", .wanted = options.quantum}};
    }
    if (size.count == 0) return;
    if (size.count > ~std::uint64_t{0} / 2)
      throw error{std::make_error_code(std::errc::not_enough_memory), map_failure()};
    held_ = bytes{round_up(size.count, size < page ? small_page : quantum)};
    std::uint64_t const alignment = size < page ? small_page : page.count;
    std::uint64_t const reserved = held_.count + alignment + 2 * small_page;
    void* const base = ::mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) throw error{last_system_error(), map_failure()};
    auto const begin = reinterpret_cast<std::uintptr_t>(base);
    std::uintptr_t const data = round_up(begin + small_page, alignment);
    std::uintptr_t const end = data + held_.count + small_page;
    if (data - small_page > begin) ::munmap(base, data - small_page - begin);
    if (begin + reserved > end) ::munmap(reinterpret_cast<void*>(end), begin + reserved - end);
    data_ = reinterpret_cast<std::byte*>(data);
    if (::mprotect(data_, held_.count, PROT_READ | PROT_WRITE) != 0) {
      int const failed = errno;
      unmap();
      throw error{{failed, std::system_category()}, map_failure()};
    }
    if (size >= page && ::madvise(data_, held_.count, MADV_HUGEPAGE) != 0) advice_ = errno;
    for (std::uint64_t at = 0; at < held_.count; at += small_page) {
      *static_cast<std::byte volatile*>(data_ + at) = std::byte{0};
    }
  }
  huge_buffer(huge_buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        asked_(std::exchange(other.asked_, {})),
        held_(std::exchange(other.held_, {})),
        advice_(other.advice_) {}
  huge_buffer& operator=(huge_buffer&& other) noexcept {
    if (this != &other) {
      unmap();
      data_ = std::exchange(other.data_, nullptr);
      asked_ = std::exchange(other.asked_, {});
      held_ = std::exchange(other.held_, {});
      advice_ = other.advice_;
    }
    return *this;
  }
  ~huge_buffer() { unmap(); }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] bytes size() const noexcept { return asked_; }
  [[nodiscard]] bytes held() const noexcept { return held_; }
  [[nodiscard]] std::span<std::byte> span() const noexcept { return {data_, static_cast<std::size_t>(asked_.count)}; }

  /// What the pages are now. Cost: reads /proc/self/smaps up to this mapping; not for a loop.
  [[nodiscard]] huge_buffer_report report() const {
    huge_buffer_report out{.outcome = huge_pages::none, .asked = asked_, .held = held_, .huge = {}, .reason = {}};
    if (asked_ < page) {
      out.reason = "smaller than a huge page";
      return out;
    }
    std::uint64_t counted = 0;
    if (!huge_bytes(counted)) {
      out.outcome = huge_pages::unknown;
      out.reason = "no AnonHugePages of this mapping in /proc/self/smaps";
      return out;
    }
    out.huge = bytes{counted};
    if (counted >= held_.count / page.count * page.count) {
      out.outcome = huge_pages::all;
    } else {
      out.outcome = counted != 0 ? huge_pages::some : huge_pages::none;
      out.reason = why_not();
    }
    return out;
  }

 private:
  [[nodiscard]] static std::uint64_t page_size() noexcept {
    return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  }
  struct close_stream {
    void operator()(std::FILE* f) const noexcept { std::fclose(f); }
  };
  using stream = std::unique_ptr<std::FILE, close_stream>;

  [[nodiscard]] error::context map_failure() const { return {.where = "huge_buffer map", .wanted = asked_}; }
  void unmap() noexcept {
    if (data_ != nullptr) ::munmap(data_ - page_size(), held_.count + 2 * page_size());
    data_ = nullptr;
  }
  [[nodiscard]] bool huge_bytes(std::uint64_t& out) const {
    stream const smaps{std::fopen("/proc/self/smaps", "re")};
    if (!smaps) return false;
    bool ours = false;
    char line[512];
    while (std::fgets(line, sizeof line, smaps.get()) != nullptr) {
      std::uint64_t first = 0;
      std::uint64_t last = 0;
      if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &first, &last) == 2) {
        if (ours) return false;
        ours = first == reinterpret_cast<std::uintptr_t>(data_);
      } else if (ours && std::sscanf(line, "AnonHugePages: %" SCNu64 " kB", &out) == 1) {
        out *= 1024;
        return true;
      }
    }
    return false;
  }
  [[nodiscard]] std::string why_not() const {
    if (advice_ != 0) return std::string("madvise(MADV_HUGEPAGE): ") + std::strerror(advice_);
    stream const setting{std::fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re")};
    char line[128] = "";
    if (!setting || std::fgets(line, sizeof line, setting.get()) == nullptr) return "no transparent huge pages here";
    if (std::strstr(line, "[never]") != nullptr) return "transparent huge pages: never";
    return "the kernel had no free huge pages";
  }

  std::byte* data_ = nullptr;
  bytes asked_{};
  bytes held_{};
  int advice_ = 0;
};

}  // namespace spillway::inline v0
