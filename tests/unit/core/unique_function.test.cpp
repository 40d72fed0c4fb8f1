// SPDX-License-Identifier: Apache-2.0
#include <spillway/core/unique_function.hpp>

#include <array>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "support/allocation_count.hpp"
#include "support/catch.hpp"

using spillway::unique_function;

static_assert(!std::copyable<unique_function<void()>>);
static_assert(std::is_nothrow_move_constructible_v<unique_function<void()>>);
static_assert(std::is_nothrow_move_assignable_v<unique_function<void()>>);
static_assert(!std::is_constructible_v<unique_function<void(int)>, void (*)(std::string)>);
static_assert(!std::is_constructible_v<unique_function<int()>, void (*)()>);

namespace {
/// Counts the live copies of itself.
template <std::size_t Size, bool NoexceptMove = true>
struct counted {
  explicit counted(int& live) : live_(&live) { ++*live_; }
  counted(counted&& other) noexcept(NoexceptMove) : live_(other.live_) { ++*live_; }
  counted& operator=(counted&&) = delete;
  ~counted() { --*live_; }
  int operator()() { return *live_; }
  int* live_;
  std::array<char, Size - sizeof(int*)> padding_{};
};
}  // namespace

TEST_CASE("unique_function: calls what it holds, with arguments passed as they are") {
  unique_function<std::string(std::unique_ptr<int>, std::string&)> f = [](std::unique_ptr<int> p, std::string& s) {
    s += "!";
    return s + std::to_string(*p);
  };
  std::string text = "a";
  CHECK(f(std::make_unique<int>(7), text) == "a!7");
  CHECK(text == "a!");
  unique_function<long(int)> converts = [](int i) { return i + 1; };
  CHECK(converts(1) == 2);
  unique_function<void(int)> ignores_the_result = [](int i) { return i; };
  ignores_the_result(1);
  unique_function<int(int&)> function_pointer = +[](int& i) { return ++i; };
  int n = 1;
  CHECK(function_pointer(n) == 2);
  CHECK(n == 2);
}

TEST_CASE("unique_function: holds callables that can't be copied, and gives them away") {
  auto owned = std::make_unique<int>(3);
  unique_function<int()> f = [owned = std::move(owned)] { return *owned; };
  unique_function<int()> g = std::move(f);
  CHECK_FALSE(static_cast<bool>(f));  // NOLINT(bugprone-use-after-move): a moved-from one is empty
  REQUIRE(static_cast<bool>(g));
  CHECK(g() == 3);
  f = std::move(g);
  CHECK(f() == 3);
  CHECK_FALSE(static_cast<bool>(g));  // NOLINT(bugprone-use-after-move): as above
}

TEMPLATE_TEST_CASE("unique_function: destroys what it holds exactly once", "", (counted<16>), (counted<64>),
                   (counted<65>), (counted<16, false>)) {
  int live = 0;
  {
    unique_function<int()> f = TestType{live};
    CHECK(live == 1);
    unique_function<int()> g = std::move(f);
    CHECK(live == 1);
    CHECK(g() == 1);
    unique_function<int()> h = TestType{live};
    CHECK(live == 2);
    h = std::move(g);
    CHECK(live == 1);
    h = [] { return 0; };
    CHECK(live == 0);
    h = TestType{live};
    h.reset();
    CHECK(live == 0);
    h = TestType{live};
  }
  CHECK(live == 0);
}

TEST_CASE("unique_function: a callable of 64 bytes allocates nothing, a larger one once") {
  if constexpr (!test::allocations_are_counted) SKIP("a sanitizer has its own operator new");
  int live = 0;
  auto const allocations_of = [](auto callable) {
    auto const before = test::allocations();
    unique_function<int()> f = std::move(callable);
    asm volatile("" : : "r"(&f) : "memory");  // else the compiler may leave the allocation out
    unique_function<int()> g = std::move(f);
    static_cast<void>(g());
    return test::allocations() - before;
  };
  CHECK(allocations_of(counted<64>{live}) == 0);
  CHECK(allocations_of(counted<65>{live}) == 1);
}

TEST_CASE("unique_function: what the callable throws reaches the caller, and the callable stays") {
  int calls = 0;
  unique_function<void()> f = [&calls] {
    if (++calls == 1) throw std::runtime_error("first");
  };
  CHECK_THROWS_AS(f(), std::runtime_error);
  f();
  CHECK(calls == 2);
}
