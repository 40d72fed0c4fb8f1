// SPDX-License-Identifier: Apache-2.0
#include <spillway/checkpoint/checkpoint_store.hpp>
#include <spillway/testing/training_state_archetypes.hpp>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/checkpoint_run.hpp"
#include "support/scratch.hpp"

namespace {
using namespace spillway;
using test::run_state;
using test::train_to;

/// What a call throws, as code and text.
struct refusal {
  std::error_code code{};
  std::string text{};
};
template <class Call>
refusal refused(Call call) {
  try {
    call();
  } catch (error const& failure) {
    return {failure.code(), failure.what()};
  }
  return {};
}
bool mentions(refusal const& r, std::string const& what) { return r.text.find(what) != std::string::npos; }

struct fixture {
  test::scratch folder{};
  std::string root = folder / "run";
  test::memory_spilled_state spill{test::small_model(), 2048};
  run_state state{.spill = &spill};

  test::memory_spilled_state other_spill{test::small_model(), 2048};
  run_state other{.spill = &other_spill};
};
}  // namespace

TEST_CASE("checkpoint_store: a state comes back bit for bit, with its digest") {
  fixture f;
  checkpoint_store store{f.root};
  train_to(f.state, 9);
  auto const saved = store.save(9, f.state);
  CHECK(saved.path == f.root + "/step-00000009");
  CHECK(saved.warnings.empty());
  CHECK(saved.digest == digest_of(f.state));

  auto const restored = store.restore(f.other);
  CHECK(restored.step == 9);
  CHECK(restored.path == saved.path);
  CHECK(restored.save_id == saved.save_id);
  CHECK(restored.digest == saved.digest);
  CHECK(restored.notes.empty());
  CHECK(test::identical(f.state, f.other));
  CHECK_FALSE(f.other_spill.importing());
  CHECK(digest_of(f.other) == saved.digest);
}

TEST_CASE("checkpoint_store: what was saved at an earlier step comes back by its number") {
  fixture f;
  checkpoint_store store{f.root};
  std::vector<state_digest> digests;
  for (std::uint64_t step = 1; step <= 3; ++step) {
    train_to(f.state, step);
    digests.push_back(store.save(step, f.state).digest);
  }
  CHECK_FALSE(digests[0] == digests[1]);
  CHECK(store.restore(f.other, 2).digest == digests[1]);
  CHECK(f.other.step == 2);
  CHECK(store.restore(f.other).step == 3);
  CHECK(test::identical(f.state, f.other));
}

TEST_CASE("checkpoint_store: a save right after a restore holds the same, again and again") {
  fixture f;
  checkpoint_store store{f.root};
  train_to(f.state, 4);
  auto const digest = store.save(4, f.state).digest;
  for (std::uint64_t step = 5; step < 8; ++step) {
    run_state again{.spill = &f.other_spill};
    store.restore(again);
    CHECK(store.save(step, again).digest == digest);
  }
}

TEST_CASE("checkpoint_store: it restores onto any chunk size, and the digest stays") {
  fixture f;
  checkpoint_store store{f.root};
  train_to(f.state, 2);
  auto const digest = store.save(2, f.state).digest;
  for (std::uint64_t const elements : {1024U, 2048U, 3U * 1024U, 5U * 1024U, 1U << 20U}) {
    INFO(elements);
    test::memory_spilled_state spill{test::small_model(), elements};
    run_state again{.spill = &spill};
    CHECK(store.restore(again).digest == digest);
    CHECK(test::same(f.state, again));
    CHECK(digest_of(again) == digest);
    test::memory_spilled_state expected{test::small_model(), elements};
    expected.fill(2);
    CHECK(spill.contents() == expected.contents());
    // And back: what was saved with these chunks restores onto the first ones.
    store.save(100 + elements, again);
    store.restore(f.other);
    CHECK(f.other_spill.contents() == f.spill.contents());
  }
}

TEST_CASE("checkpoint_store: scalars of every value survive") {
  struct state_type {
    std::uint64_t most = 0;
    std::int64_t least = 0;
    float infinite = 0;
    double denormal = 0;
    double minus_zero = 1;
    double payload = 0;
    bf16 narrow_value{};
    char letter = 0;
    long long wide = 0;
  };
  test::scratch folder;
  checkpoint_store store{folder / "run"};
  auto const nan = std::bit_cast<double>(std::uint64_t{0x7ff0000000abcdefU});
  state_type const values{~std::uint64_t{0},
                          std::numeric_limits<std::int64_t>::min(),
                          -std::numeric_limits<float>::infinity(),
                          5e-324,
                          -0.0,
                          nan,
                          bf16{0x7fc1},
                          'x',
                          -1};
  state_type out = values;
  store.save(1, out);
  state_type in{};
  store.restore(in);
  CHECK(in.most == values.most);
  CHECK(in.least == values.least);
  CHECK(in.infinite == values.infinite);
  CHECK(std::bit_cast<std::uint64_t>(in.denormal) == 1);
  CHECK(std::signbit(in.minus_zero));
  CHECK(std::bit_cast<std::uint64_t>(in.payload) == 0x7ff0000000abcdefU);
  CHECK(in.narrow_value == values.narrow_value);
  CHECK(in.letter == 'x');
  CHECK(in.wide == -1);
}

TEST_CASE("checkpoint_store: opaque state comes back unchanged, empty and 10 MiB long, and strings that are no text") {
  test::scratch folder;
  checkpoint_store store{folder / "run"};
  struct opaque {
    std::vector<std::byte> empty{};
    std::vector<std::byte> large{};
    std::string odd{};
    std::string text{};
  };
  opaque out{.large = std::vector<std::byte>(10U << 20U),
             .odd = std::string("\xff\0\n\"", 4),
             .text = "na\xc3\xafve \"quoted\"\n"};
  for (std::size_t i = 0; i < out.large.size(); ++i) out.large[i] = static_cast<std::byte>(i * i >> 3U);
  store.save(1, out);
  opaque in{.empty = std::vector<std::byte>(5), .text = "was here"};
  store.restore(in);
  CHECK(in.empty.empty());
  CHECK(in.large == out.large);
  CHECK(in.odd == out.odd);
  CHECK(in.text == out.text);
}

TEST_CASE("checkpoint_store: each form of training state can be saved") {
  test::scratch folder;
  checkpoint_store store{folder / "run"};
  testing::visited_state visited;
  visited.step(5);
  store.save(1, visited);
  visited.step(0);
  store.restore(visited, 1);
  CHECK(visited.step() == 5);
  testing::hooked_state hooked;
  hooked.step(6);
  store.save(2, hooked);
  hooked.step(0);
  store.restore(hooked, 2);
  CHECK(hooked.step() == 6);
  testing::aggregate_state aggregate{7, "seven"};
  store.save(3, aggregate);
  testing::aggregate_state again;
  store.restore(again, 3);
  CHECK(again == aggregate);
}

TEST_CASE("checkpoint_store: a state that has never been filled gets everything that was saved") {
  fixture f;  // templates that are made lazily must not lose moments
  checkpoint_store store{f.root};
  train_to(f.state, 8);
  store.save(8, f.state);
  CHECK(f.other.ema.empty());
  store.restore(f.other);
  CHECK(f.other.ema == f.state.ema);
  CHECK(f.other_spill.steps == f.spill.steps);
}

TEST_CASE("checkpoint_store: nothing there, only unfinished ones and a missing step are three answers") {
  fixture f;
  checkpoint_store store{f.root};
  CHECK(store.list().empty());
  auto const nothing = refused([&] { store.restore(f.other); });
  CHECK(nothing.code == durable_errc::nothing_there);
  CHECK(mentions(nothing, f.root));
  CHECK(refused([&] { store.restore(f.other, 3); }).code == durable_errc::nothing_there);

  std::filesystem::create_directory(f.root + "/step-00000007.tmp-0123456789abcdef0123456789abcdef");
  std::filesystem::create_directory(f.root + "/step-00000006");
  auto const incomplete = refused([&] { store.restore(f.other); });
  CHECK(incomplete.code == durable_errc::only_incomplete);
  CHECK(mentions(incomplete, "step-00000006"));
  CHECK(mentions(incomplete, "step-00000007.tmp"));

  train_to(f.state, 1);
  store.save(1, f.state);
  store.save(2, f.state);
  auto const missing = refused([&] { store.restore(f.other, 3); });
  CHECK(missing.code == durable_errc::step_missing);
  CHECK(mentions(missing, "steps 1, 2"));
  CHECK(mentions(missing, f.root));
}

TEST_CASE("list_checkpoints: a missing, an empty and an unrelated directory hold no checkpoint, without an error") {
  test::scratch folder;
  CHECK(list_checkpoints(folder / "absent").empty());
  CHECK(list_checkpoints(folder.path()).empty());
  std::filesystem::create_directories(folder / "step-abc/step-00000001");
  test::write_file(folder / "step-12", "short number");
  test::write_file(folder / "notes.txt", "mine");
  CHECK(list_checkpoints(folder.path()).empty());
}

TEST_CASE("list_checkpoints: one hostile entry among good ones ends nothing") {
  fixture f;
  checkpoint_store store{f.root};
  for (std::uint64_t step = 1; step <= 5; ++step) {
    train_to(f.state, step);
    store.save(step, f.state);
  }
  test::write_file(f.root + "/step-00000002/MANIFEST.json", std::string(100000, '['));
  std::filesystem::remove(f.root + "/step-00000003/MANIFEST.json");
  REQUIRE(::mkfifo((f.root + "/step-00000003/MANIFEST.json").c_str(), 0600) == 0);
  std::filesystem::remove(f.root + "/step-00000004/model.safetensors");
  std::filesystem::create_directory(f.root + "/step-00000008");
  std::filesystem::create_directory(f.root + "/step-00000008/MANIFEST.json");
  test::write_file(f.root + "/step-00000009", "a file");

  std::vector<std::string> complete;
  for (auto const& entry : list_checkpoints(f.root)) {
    INFO(entry.path << ": " << entry.why);
    if (entry.complete) {
      complete.push_back(std::to_string(entry.step));
    } else {
      CHECK_FALSE(entry.why.empty());
      CHECK(entry.code);
    }
    CHECK(entry.why.empty() == entry.complete);
  }
  CHECK(complete == std::vector<std::string>{"1", "5"});
}

TEST_CASE("checkpoint_store: the newest is the one saved last, whatever the clocks of its files say") {
  fixture f;
  checkpoint_store store{f.root};
  for (std::uint64_t step : {10U, 20U, 30U}) {
    train_to(f.state, step);
    store.save(step, f.state);
  }
  auto const past = std::filesystem::file_time_type::clock::now() - std::chrono::hours(100);
  std::filesystem::last_write_time(f.root + "/step-00000030", past);
  std::filesystem::last_write_time(f.root + "/step-00000030/MANIFEST.json", past);
  CHECK(store.restore(f.other).step == 30);
  // After going back to step 10 the run's own save is the newest, not the one with the higher number.
  train_to(f.state, 11);
  store.save(11, f.state);
  CHECK(store.restore(f.other).step == 11);
}

TEST_CASE("checkpoint_store: a broken LATEST gives a note and nothing else") {
  fixture f;
  checkpoint_store store{f.root};
  train_to(f.state, 1);
  store.save(1, f.state);
  auto const good = test::read_file(f.root + "/LATEST");
  CHECK(good.substr(0, 14) == "step-00000001 ");
  auto const notes = [&] {
    run_state again{.spill = &f.other_spill};
    auto const restored = store.restore(again);
    CHECK(restored.step == 1);
    return restored.notes.size();
  };
  CHECK(notes() == 0);
  std::filesystem::remove(f.root + "/LATEST");
  CHECK(notes() == 1);
  std::filesystem::create_symlink("LATEST", f.root + "/LATEST");  // points to itself
  CHECK(notes() == 1);
  std::filesystem::remove(f.root + "/LATEST");
  std::filesystem::create_directory(f.root + "/LATEST");
  CHECK(notes() == 1);
  std::filesystem::remove(f.root + "/LATEST");
  for (auto const& text : {std::string(), std::string("step-00000009 x"), good + good}) {
    test::write_file(f.root + "/LATEST", text);
    CHECK(notes() == 1);
  }
  for (std::size_t i = 0; i < good.size(); ++i) {
    auto flipped = good;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    test::write_file(f.root + "/LATEST", flipped);
    CHECK(notes() == 1);
  }
  train_to(f.state, 2);
  CHECK(store.save(2, f.state).warnings.empty());
  CHECK(store.restore(f.other).notes.empty());
}

TEST_CASE("restore_path: a copy made with cp -r loads, under any name, and is never removed by the library") {
  fixture f;
  checkpoint_store store{f.root, {.keep_last = 1}};
  train_to(f.state, 3);
  auto const digest = store.save(3, f.state).digest;
  std::filesystem::copy(f.root + "/step-00000003", f.folder / "elsewhere", std::filesystem::copy_options::recursive);
  std::filesystem::copy(f.root + "/step-00000003", f.root + "/best", std::filesystem::copy_options::recursive);
  train_to(f.state, 4);
  store.save(4, f.state);
  for (auto const& path : {f.folder / "elsewhere", f.root + "/best"}) {
    run_state again{.spill = &f.other_spill};
    auto const restored = restore_path(path, again);
    CHECK(restored.step == 3);
    CHECK(restored.digest == digest);
    CHECK(digest_of(again) == digest);
  }
  CHECK(refused([&] { restore_path(f.folder / "absent", f.other); }).code == durable_errc::manifest_missing);
  // Under another step's name in a root it would be a lie.
  std::filesystem::rename(f.folder / "elsewhere", f.root + "/step-00000077");
  auto const renamed = refused([&] { store.restore(f.other, 77); });
  CHECK(renamed.code == durable_errc::step_renamed);
  CHECK(mentions(renamed, "step 3"));
}

TEST_CASE("checkpoint_store: a step that is there is returned when the state is the same and never replaced") {
  fixture f;
  checkpoint_store store{f.root};
  train_to(f.state, 3);
  auto const first = store.save(3, f.state);
  auto const again = store.save(3, f.state);
  CHECK(again.path == first.path);
  CHECK(again.save_id == first.save_id);
  CHECK(again.size == first.size);
  f.state.rng();
  auto const other = refused([&] { store.save(3, f.state); });
  CHECK(other.code == durable_errc::already_exists);
  CHECK(mentions(other, first.path));
  CHECK(store.restore(f.other, 3).save_id == first.save_id);
  CHECK(store.list().size() == 1);

  auto const model = f.root + "/step-00000003/model.safetensors";
  auto bytes = test::read_file(model);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  test::write_file(model, bytes);
  CHECK(refused([&] { store.save(3, f.other); }).code == durable_errc::checksum_mismatch);
  std::filesystem::remove(model);
  CHECK(refused([&] { store.save(3, f.other); }).code == durable_errc::already_exists);
  std::filesystem::create_directory(f.root + "/step-00000005");  // even an empty one is not replaced
  CHECK(refused([&] { store.save(5, f.other); }).code == durable_errc::already_exists);
}

TEST_CASE("checkpoint_store: each save holds exactly the members of its time") {
  test::scratch folder;
  checkpoint_store store{folder / "run"};
  struct before {
    int a = 1;
    int b = 2;
  } small;
  struct after {
    int a = 3;
    int b = 4;
    std::vector<double> c = std::vector<double>(2000, 1.0);
  } large;
  store.save(1, small);
  store.save(2, large);
  store.save(3, small);
  after in{};
  in.c.clear();
  store.restore(in, 2);
  CHECK(in.c == large.c);
  before out{};
  CHECK(store.restore(out, 3).step == 3);
  CHECK(refused([&] { store.restore(out, 2); }).code == durable_errc::schema_mismatch);
  CHECK(refused([&] { store.restore(in, 3); }).code == durable_errc::schema_mismatch);
}

TEST_CASE("checkpoint_store: two writers exclude each other by name") {
  fixture f;
  std::optional<checkpoint_store<>> first{std::in_place, f.root};
  auto const second = refused([&] { checkpoint_store<>{f.root}; });
  CHECK(second.code == errc::busy);
  CHECK(mentions(second, f.root + "/.lock"));
  first.reset();
  CHECK_NOTHROW(checkpoint_store<>{f.root});
}

TEST_CASE("checkpoint_store: of two processes that save at once exactly one succeeds, and each knows") {
  fixture f;
  std::vector<int> exits;
  std::vector<pid_t> children;
  for (int child = 0; child < 2; ++child) {
    pid_t const pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      int code = 3;
      try {
        checkpoint_store store{f.root};
        train_to(f.state, 1 + static_cast<std::uint64_t>(child));
        store.save(1, f.state);
        ::usleep(300'000);  // holds the lock until the other has tried
        code = 0;
      } catch (error const& failure) {
        code = failure.code() == errc::busy || failure.code() == durable_errc::already_exists ? 1 : 2;
      }
      ::_exit(code);
    }
    children.push_back(pid);
  }
  for (pid_t const pid : children) {
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    exits.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 9);
  }
  std::sort(exits.begin(), exits.end());
  CHECK(exits == std::vector<int>{0, 1});
  auto const restored = checkpoint_store{f.root}.restore(f.other);
  CHECK(digest_of(f.other) == restored.digest);
}

TEST_CASE("checkpoint_store: a root that cannot be written is refused at construction") {
  test::scratch folder;
  auto const file = folder / "file";
  test::write_file(file, "x");
  auto const is_file = refused([&] { checkpoint_store<>{file}; });
  CHECK(is_file.code == std::errc::not_a_directory);
  CHECK(mentions(is_file, file));
  auto const below = refused([&] { checkpoint_store<>{file + "/run"}; });
  CHECK(below.code == std::errc::not_a_directory);
  CHECK(mentions(below, file + "/run"));
  CHECK(refused([&] { checkpoint_store<>{""}; }).code == errc::invalid_option);
  CHECK(refused([&] { checkpoint_store<>{"/proc/spillway"}; }).code);
  CHECK_NOTHROW(checkpoint_store<>{folder / "a/b/c/"});
  CHECK(std::filesystem::is_directory(folder / "a/b/c"));
  if (::geteuid() != 0) {
    std::filesystem::permissions(folder / "a", std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
    CHECK(refused([&] { checkpoint_store<>{folder / "a/new"}; }).code == std::errc::permission_denied);
    std::filesystem::permissions(folder / "a", std::filesystem::perms::owner_all);
  }
}

TEST_CASE("checkpoint_store: files get the modes that the umask and the option say") {
  struct {
    unsigned umask;
    unsigned mode;
    unsigned file;
    unsigned directory;
  } const cases[] = {{022, 0666, 0644, 0755}, {027, 0666, 0640, 0750}, {022, 0600, 0600, 0700}, {0, 0640, 0640, 0750}};
  for (auto const& c : cases) {
    fixture f;
    mode_t const before = ::umask(static_cast<mode_t>(c.umask));
    {
      checkpoint_store store{f.root, {.mode = c.mode}};
      train_to(f.state, 9);
      store.save(9, f.state);
    }
    ::umask(before);
    std::size_t seen = 0;
    for (auto const& entry : std::filesystem::recursive_directory_iterator(f.root)) {
      INFO(entry.path());
      CHECK(static_cast<unsigned>(entry.status().permissions()) == (entry.is_directory() ? c.directory : c.file));
      ++seen;
    }
    CHECK(seen == 7);
    CHECK(static_cast<unsigned>(std::filesystem::status(f.root).permissions()) == c.directory);
  }
}

TEST_CASE("checkpoint_store: planted links are not followed") {
  fixture f;
  std::filesystem::create_directory(f.root);
  auto const victim = f.folder / "victim";
  std::filesystem::create_directory(victim);
  test::write_file(victim + "/model.safetensors", "precious");
  test::write_file(f.folder / "target", "precious");
  // A link under the name of the lock: refused, the target is not touched.
  std::filesystem::create_symlink(f.folder / "target", f.root + "/.lock");
  CHECK(refused([&] { checkpoint_store<>{f.root}; }).code == std::errc::too_many_symbolic_link_levels);
  std::filesystem::remove(f.root + "/.lock");
  // Links under the names of what a save leaves behind and of what it makes.
  std::filesystem::create_symlink(victim, f.root + "/.trash-0123456789abcdef0123456789abcdef");
  std::filesystem::create_symlink(victim, f.root + "/step-00000003.tmp-0123456789abcdef0123456789abcdef");
  std::filesystem::create_symlink(victim, f.root + "/step-00000001");
  std::filesystem::create_symlink(f.folder / "target", f.root + "/LATEST");
  checkpoint_store store{f.root, {.keep_last = 1}};
  train_to(f.state, 1);
  CHECK(refused([&] { store.save(1, f.state); }).code == durable_errc::already_exists);
  auto const saved = store.save(2, f.state);
  CHECK_FALSE(saved.warnings.empty());
  CHECK(test::read_file(victim + "/model.safetensors") == "precious");
  CHECK(test::read_file(f.folder / "target") == "precious");
  CHECK(std::filesystem::directory_iterator(victim) != std::filesystem::directory_iterator());
  CHECK(store.restore(f.other).step == 2);
}
