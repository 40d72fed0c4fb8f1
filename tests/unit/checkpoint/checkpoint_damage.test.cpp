// SPDX-License-Identifier: Apache-2.0
// What happens to a checkpoint's files between save and restore.
#include <spillway/checkpoint/checkpoint_store.hpp>

#include <filesystem>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/checkpoint_run.hpp"
#include "support/scratch.hpp"

namespace {
using namespace spillway;
using test::run_state;
using test::train_to;

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

// As few bytes as show everything: the first test flips each of them.
std::vector<stored_array> tiny_arrays() {
  return {{"exp_avg", "float32", dtype::float32, 4096}, {"exp_avg_sq", "blocks8", dtype::u8, 1032}};
}
std::vector<tensor_spec> tiny_model() { return {{"w", {5}, dtype::float32, 0}, {"b", {3}, dtype::bfloat16, 0}}; }

/// Steps 2 and 3 of a tiny run; step 3 has all four files.
struct fixture {
  test::scratch folder{};
  std::string root = folder / "run";
  std::string before = root + "/step-00000002";
  std::string path = root + "/step-00000003";
  test::memory_spilled_state spill{tiny_model(), 2048, tiny_arrays()};
  run_state state{.spill = &spill};
  test::memory_spilled_state other_spill{tiny_model(), 2048, tiny_arrays()};
  run_state other{.spill = &other_spill};
  checkpoint_store<> store{root};
  state_digest digest{};

  fixture() {
    for (std::uint64_t step : {2U, 3U}) {
      train_to(state, step);
      digest = store.save(step, state).digest;
    }
    train_to(other, 1);
  }
  std::vector<std::string> files() const {
    return {manifest_name, std::string(parameters_file), std::string(generation_file), std::string(leaves_file)};
  }
};

struct saved_type {
  std::vector<float> table = std::vector<float>(6, 1.0F);
  template <class V>
  void visit_state(V& visit) {
    visit("gone", gone);
    visit("narrow", narrow_value);
    visit("shape", tensor_leaf{std::span{table}, {2, 3}});
    visit("kind", kind);
    visit("same", same);
  }
  int gone = 1;
  float narrow_value = 2;
  std::string kind{"text"};
  int same = 3;
};
struct wanted_type {
  std::vector<float> table = std::vector<float>(6, 5.0F);
  template <class V>
  void visit_state(V& visit) {
    visit("fresh", fresh);
    visit("narrow", narrow_value);
    visit("shape", tensor_leaf{std::span{table}, {3, 2}});
    visit("kind", kind);
    visit("same", same);
  }
  int fresh = 7;
  double narrow_value = 8;
  std::vector<std::byte> kind{};
  int same = 9;
};
struct shaped {
  std::vector<float> values{};
  std::vector<std::uint64_t> shape{};
  template <class V>
  void visit_state(V& visit) {
    visit("t", tensor_leaf<float>{std::span{values}, shape});
  }
};
struct scalar {
  float t = 0;
  template <class V>
  void visit_state(V& visit) {
    visit("t", t);
  }
};
}  // namespace

TEST_CASE("checkpoint damage: a flip of any byte of any file is an error that names the file, and changes no state") {
  fixture f;
  auto const untouched = digest_of(f.other);
  std::size_t flips = 0;
  for (auto const& name : f.files()) {
    auto const file = f.path + '/' + name;
    auto const good = test::read_file(file);
    REQUIRE_FALSE(good.empty());
    for (std::size_t i = 0; i < good.size(); ++i) {
      test::write_byte(file, i, static_cast<char>(good[i] ^ (1 << i % 8)));
      bool const all = flips++ % 101 == 0;  // the search for another checkpoint costs another pass over that one
      auto const r = all ? refused([&] { f.store.restore(f.other); }) : refused([&] { restore_path(f.path, f.other); });
      bool const ours = r.code.category() == std::error_code(durable_errc{}).category();
      bool const named = mentions(r, file) && (!all || mentions(r, "step 2 at " + f.before + " is whole"));
      if (!ours || !named) FAIL("byte " << i << " of " << name << ": " << r.text);
      if (all && digest_of(f.other) != untouched) FAIL("state changed by byte " << i << " of " << name);
      test::write_byte(file, i, good[i]);
    }
    CHECK(test::read_file(file) == good);
  }
  CHECK(flips > 20000);
  CHECK(digest_of(f.other) == untouched);
  CHECK(f.store.restore(f.other, 2).step == 2);
  CHECK(f.store.restore(f.other).digest == f.digest);
}

TEST_CASE("checkpoint damage: a manifest cut at any length is an error, the step before still loads") {
  fixture f;
  auto const file = f.path + '/' + manifest_name;
  auto const good = test::read_file(file);
  for (std::size_t length = good.size(); length-- > 0;) {
    std::filesystem::resize_file(file, length);
    auto const r = refused([&] { restore_path(f.path, f.other); });
    if (r.code != durable_errc::manifest_damaged || !mentions(r, file)) FAIL("length " << length << ": " << r.text);
  }
  auto const r = refused([&] { f.store.restore(f.other); });
  CHECK(r.code == durable_errc::manifest_damaged);
  CHECK(mentions(r, "step 2 at " + f.before + " is whole"));
  CHECK(f.store.restore(f.other, 2).step == 2);
  test::write_file(file, good + "\n");
  CHECK(refused([&] { restore_path(f.path, f.other); }).code == durable_errc::manifest_damaged);
}

TEST_CASE("checkpoint damage: a file that is gone, cut, longer or from another save is named") {
  fixture f;
  for (auto const& name : f.files()) {
    if (name == manifest_name) continue;
    INFO(name);
    auto const file = f.path + '/' + name;
    auto const good = test::read_file(file);
    auto const check = [&](std::error_code code) {
      auto const r = refused([&] { f.store.restore(f.other); });
      CHECK(r.code == code);
      CHECK(mentions(r, file));
      CHECK(mentions(r, "step 2 at " + f.before + " is whole"));
      CHECK(refused([&] { restore_path(f.path, f.other); }).code == code);
    };
    std::filesystem::remove(file);
    check(durable_errc::file_missing);
    for (std::size_t const length : {std::size_t{0}, std::size_t{7}, good.size() - 1}) {
      test::write_file(file, good.substr(0, length));
      check(durable_errc::file_size);
    }
    test::write_file(file, good + 'x');
    check(durable_errc::file_size);
    test::write_file(file, test::read_file(f.before + '/' + name).substr(0, good.size()));
    auto const swapped = refused([&] { f.store.restore(f.other); });
    CHECK((swapped.code == durable_errc::checksum_mismatch || swapped.code == durable_errc::file_size));
    CHECK(mentions(swapped, file));
    test::write_file(file, good);
  }
  CHECK(f.store.restore(f.other).digest == f.digest);
}

TEST_CASE("checkpoint damage: a checksum error names tensor, file and offset") {
  fixture f;
  auto const file = f.path + '/' + std::string(parameters_file);
  auto bad = test::read_file(file);
  bad[4096 + 3] = static_cast<char>(bad[4096 + 3] ^ 4);
  test::write_file(file, bad);
  auto const r = refused([&] { f.store.restore(f.other); });
  CHECK(r.code == durable_errc::checksum_mismatch);
  CHECK(mentions(r, file + " at offset 4096"));
  CHECK(mentions(r, "\"w\""));
}

TEST_CASE("checkpoint damage: a file of another save is refused even when its checksums are the manifest's") {
  fixture f;
  manifest record = parse_manifest(test::read_file(f.path + '/' + manifest_name), "x");
  manifest const earlier = parse_manifest(test::read_file(f.before + '/' + manifest_name), "x");
  std::filesystem::copy_file(f.before + '/' + std::string(generation_file), f.path + '/' + std::string(generation_file),
                             std::filesystem::copy_options::overwrite_existing);
  for (auto& file : record.files) {
    for (auto const& other : earlier.files) {
      if (file.name == generation_file && other.name == generation_file) file = other;
    }
  }
  test::write_file(f.path + '/' + manifest_name, write_manifest(record));
  auto const r = refused([&] { f.store.restore(f.other); });
  CHECK(r.code == durable_errc::save_id_mismatch);
  CHECK(mentions(r, to_string(record.save_id)));
  CHECK(mentions(r, to_string(earlier.save_id)));
}

TEST_CASE("checkpoint damage: a manifest of a newer version is refused by name") {
  fixture f;
  auto const file = f.path + '/' + manifest_name;
  auto text = test::read_file(file);
  text.replace(text.find(":1,"), 3, ":2,");
  test::write_file(file, text);
  auto const r = refused([&] { f.store.restore(f.other); });
  CHECK(r.code == durable_errc::manifest_version);
  CHECK(mentions(r, file));
  CHECK(mentions(r, "version is 2, this library reads 1"));
}

TEST_CASE("checkpoint damage: an older damaged checkpoint and unfinished saves do not stop a restore of the newest") {
  fixture f;
  std::filesystem::resize_file(f.before + '/' + manifest_name, 100);
  std::filesystem::create_directory(f.root + "/step-00000011.tmp-0123456789abcdef0123456789abcdef");
  std::filesystem::create_directory(f.root + "/step-00000012");
  auto const restored = f.store.restore(f.other);
  CHECK(restored.step == 3);
  CHECK(restored.notes.size() == 3);
  CHECK(refused([&] { f.store.restore(f.other, 2); }).code == durable_errc::manifest_damaged);
}

TEST_CASE("checkpoint schema: everything that differs is in one message, rightly labelled, and nothing changed") {
  test::scratch folder;
  checkpoint_store store{folder / "run"};
  saved_type out;
  store.save(1, out);
  wanted_type in;
  auto const before = digest_of(in);
  auto const r = refused([&] { store.restore(in); });
  CHECK(r.code == durable_errc::schema_mismatch);
  CHECK(mentions(r, "step-00000001/MANIFEST.json"));
  CHECK(mentions(r, "missing from the checkpoint: \"fresh\" (scalar I32)"));
  CHECK(mentions(r, "in the checkpoint only: \"gone\" (scalar I32)"));
  CHECK(mentions(r, "\"narrow\": checkpoint has scalar F32, training state has scalar F64"));
  CHECK(mentions(r, "\"shape\": checkpoint has tensor F32 [2,3], training state has tensor F32 [3,2]"));
  CHECK(mentions(r, "\"kind\": checkpoint has string, training state has bytes"));
  CHECK_FALSE(mentions(r, "\"same\""));
  CHECK(digest_of(in) == before);
}

TEST_CASE("checkpoint schema: shapes that only broadcasting could reconcile are refused") {
  test::scratch folder;
  checkpoint_store store{folder / "run"};
  std::vector<shaped> states{
      {{1}, {}}, {{1}, {1}}, {{1, 2, 3, 4, 5, 6}, {2, 3}}, {{1, 2, 3, 4, 5, 6}, {3, 2}}, {{1, 2, 3, 4, 5, 6}, {6}},
      {{}, {0}}};
  for (std::size_t i = 0; i < states.size(); ++i) store.save(i, states[i]);
  for (std::size_t i = 0; i < states.size(); ++i) {
    for (std::size_t j = 0; j < states.size(); ++j) {
      INFO(i << " into " << j);
      auto target = states[j];
      auto const r = refused([&] { store.restore(target, i); });
      CHECK((r.code == durable_errc::schema_mismatch) == (i != j));
    }
    scalar one;
    CHECK(refused([&] { store.restore(one, i); }).code == durable_errc::schema_mismatch);
  }
}

TEST_CASE("checkpoint schema: parameters, groups, arrays and rule of the spilled state have to fit") {
  fixture f;
  auto const against = [&](test::memory_spilled_state spill) {
    run_state target{.spill = &spill};
    auto const before = digest_of(target);
    auto const r = refused([&] { f.store.restore(target); });
    CHECK(digest_of(target) == before);
    CHECK_FALSE(spill.importing());
    return r;
  };
  auto const parameters =
      against({{{"w", {1, 5}, dtype::float32, 0}, {"b", {3}, dtype::float32, 0}, {"c", {2}, dtype::bfloat16, 0}},
               2048,
               tiny_arrays()});
  CHECK(parameters.code == durable_errc::schema_mismatch);
  CHECK(mentions(parameters,
                 "\"w\": checkpoint has parameter tensor F32 [5], training state has parameter tensor F32 [1,5]"));
  CHECK(mentions(parameters,
                 "\"b\": checkpoint has parameter tensor BF16 [3], training state has parameter tensor F32 [3]"));
  CHECK(mentions(parameters, "missing from the checkpoint: \"c\" (parameter tensor BF16 [2])"));
  auto const fewer = against({{{"w", {5}, dtype::float32, 0}}, 2048, tiny_arrays()});
  CHECK(fewer.code == durable_errc::schema_mismatch);
  CHECK(mentions(fewer, "in the checkpoint only: \"b\""));
  auto groups = tiny_model();
  groups[1].group = 1;
  CHECK(against({groups, 2048, tiny_arrays()}).code == durable_errc::schema_mismatch);

  auto arrays = tiny_arrays();
  arrays[0].codec = "bfloat16";
  auto const codec = against({tiny_model(), 2048, arrays});
  CHECK(codec.code == durable_errc::rule_mismatch);
  CHECK(mentions(codec, "\"exp_avg\": checkpoint has codec float32"));
  arrays = tiny_arrays();
  arrays.pop_back();
  CHECK(mentions(against({tiny_model(), 2048, arrays}), "in the checkpoint only: \"exp_avg_sq\""));
  auto const rule = against({tiny_model(), 2048, tiny_arrays(), "other_kernel"});
  CHECK(rule.code == durable_errc::rule_mismatch);
  CHECK(mentions(rule, "\"rule\": checkpoint has test_kernel nearest_even, training state has other_kernel"));

  // The order of the arrays is not part of their meaning.
  arrays = tiny_arrays();
  std::swap(arrays[0], arrays[1]);
  test::memory_spilled_state swapped{tiny_model(), 2048, arrays};
  run_state target{.spill = &swapped};
  CHECK(f.store.restore(target).digest == f.digest);
  CHECK(digest_of(target) == f.digest);
}

TEST_CASE(
    "checkpoint schema: a state without the spilled member, and one with it, do not fit each other's checkpoints") {
  fixture f;
  struct leaves_only {
    int a = 1;
  } small;
  auto const extra = refused([&] { f.store.restore(small); });
  CHECK(extra.code == durable_errc::schema_mismatch);
  CHECK(mentions(extra, "in the checkpoint only: \"pipeline\" (spilled state)"));
  CHECK(small.a == 1);
  f.store.save(11, small);
  auto const missing = refused([&] { f.store.restore(f.other); });
  CHECK(missing.code == durable_errc::schema_mismatch);
  CHECK(mentions(missing, "missing from the checkpoint: \"pipeline\" (spilled state)"));
  CHECK(mentions(missing, "missing from the checkpoint: \"pipeline/steps\""));
}
