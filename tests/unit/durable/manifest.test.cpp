// SPDX-License-Identifier: Apache-2.0
#include <spillway/durable/manifest_io.hpp>

#include <bit>
#include <limits>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace {
using namespace spillway;

std::vector<std::byte> raw(std::string const& text) {
  auto const view = std::as_bytes(std::span{text});
  return {view.begin(), view.end()};
}
template <class T>
std::vector<std::byte> raw_of(T value) {
  auto const view = std::as_bytes(std::span<T, 1>{&value, 1});
  return {view.begin(), view.end()};
}

manifest sample() {
  manifest m{.save_id = {0x0123456789abcdefU, 0xfedcba9876543210U}, .step = 1234, .sequence = 3};
  m.parent = manifest_parent{{7, 8}, 1200};
  m.schema = {9, 10};
  m.digests = {{{1, 2}}, {{3, 4}}, {{5, 6}}};
  m.spill = manifest_spill{"pipeline",
                           0xabcdU,
                           "adamw nearest_even",
                           2048,
                           {{"exp_avg", "float32", dtype::float32, 4096}},
                           "model.safetensors",
                           "optimizer-00000.safetensors"};
  m.leaves = {{{"step", leaf_kind::scalar, dtype::u64, {}, false}, raw_of<std::uint64_t>(18446744073709551615U), {}},
              {{"scale", leaf_kind::scalar, dtype::float64, {}, false}, raw_of(0.1), {}},
              {{"nan", leaf_kind::scalar, dtype::float32, {}, false}, raw_of(std::bit_cast<float>(0x7fc00001U)), {}},
              {{"on", leaf_kind::scalar, dtype::boolean, {}, false}, raw_of(true), {}},
              {{"note", leaf_kind::string, dtype::u8, {6}, true}, raw("a\"b\n\xc3\xa9"), {}},
              {{"odd", leaf_kind::string, dtype::u8, {2}, true}, raw("\xff\x01"), {}},
              {{"user", leaf_kind::opaque, dtype::u8, {0}, true}, raw(""), {}},
              {{"large", leaf_kind::tensor, dtype::float32, {5000}, true}, std::nullopt, "leaves-00000.safetensors"}};
  m.files = {
      {"leaves-00000.safetensors", bytes{100}, {{bytes{100}, {0x01020304U}}}},
      {"model.safetensors", bytes{(1U << 20U) + 9}, {{bytes{8}, {1}}, {bytes{(1U << 20U) + 1}, {2, 0xdeadbeefU}}}},
      {"optimizer-00000.safetensors", bytes{0}, {}}};
  return m;
}
std::string const golden =
    R"({"spillway_manifest":1,"save_id":"fedcba98765432100123456789abcdef","step":1234,"sequence":3,)"
    R"("parent":{"save_id":"00000000000000080000000000000007","step":1200},"world":1,)"
    R"("schema":"000000000000000a0000000000000009",)"
    R"("digest":{"all":"000000000000000c0000000000000009","parameters":"00000000000000020000000000000001",)"
    R"("optimizer":"00000000000000040000000000000003","leaves":"00000000000000060000000000000005"},)"
    R"("spill":{"member":"pipeline","layout":"000000000000abcd","rule":"adamw nearest_even","chunk_elements":2048,)"
    R"("arrays":[{"name":"exp_avg","codec":"float32","dtype":"F32","bytes_per_block":4096}],)"
    R"("parameters":"model.safetensors","generation":"optimizer-00000.safetensors"},)"
    R"("leaves":[{"name":"step","kind":"scalar","dtype":"U64","shape":[],"resizable":false,"value":"18446744073709551615"},)"
    R"({"name":"scale","kind":"scalar","dtype":"F64","shape":[],"resizable":false,"value":"0.1"},)"
    R"({"name":"nan","kind":"scalar","dtype":"F32","shape":[],"resizable":false,"value":"0x0100c07f"},)"
    R"({"name":"on","kind":"scalar","dtype":"BOOL","shape":[],"resizable":false,"value":"true"},)"
    "{\"name\":\"note\",\"kind\":\"string\",\"dtype\":\"U8\",\"shape\":[6],\"resizable\":true,\"value\":"
    "\"a\\\"b\\n\xc3\xa9\"},"
    R"({"name":"odd","kind":"string","dtype":"U8","shape":[2],"resizable":true,"hex":"ff01"},)"
    R"({"name":"user","kind":"bytes","dtype":"U8","shape":[0],"resizable":true,"hex":""},)"
    R"({"name":"large","kind":"tensor","dtype":"F32","shape":[5000],"resizable":true,"file":"leaves-00000.safetensors"}],)"
    R"("files":[{"name":"leaves-00000.safetensors","bytes":100,"crc32c_per_mib":[[100,"01020304"]]},)"
    R"({"name":"model.safetensors","bytes":1048585,"crc32c_per_mib":[[8,"00000001"],[1048577,"00000002deadbeef"]]},)"
    R"({"name":"optimizer-00000.safetensors","bytes":0,"crc32c_per_mib":[]}])";

/// The text with its hash made right again.
std::string sealed(std::string body) { return body + ",\"self\":\"" + to_string(hash_bytes(body)) + "\"}\n"; }
std::error_code code_of(std::string const& text) {
  try {
    static_cast<void>(parse_manifest(text, "dir/MANIFEST.json"));
  } catch (error const& failure) {
    CHECK(failure.about().path == "dir/MANIFEST.json");
    return failure.code();
  }
  return {};
}
std::string replaced(std::string text, std::string const& from, std::string const& to) {
  auto const at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}
}  // namespace

TEST_CASE("manifest: the text of a manifest does not change, and reads back") {
  auto const text = write_manifest(sample());
  CHECK(text == sealed(golden));
  CHECK(parse_manifest(text, "x") == sample());
  CHECK(text.substr(text.size() - 35) == "93a6e554e8c48cb039a1c0942ab42855\"}\n");
}

TEST_CASE("manifest: a changed, cut or extended text is damaged, without exception") {
  auto const text = write_manifest(sample());
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      auto bad = text;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      auto const code = code_of(bad);
      if (code != durable_errc::manifest_damaged && code != durable_errc::manifest_version)
        FAIL("byte " << i << " bit " << bit);
    }
    if (code_of(text.substr(0, i)) != durable_errc::manifest_damaged) FAIL("length " << i);
  }
  CHECK(code_of(text + ' ') == durable_errc::manifest_damaged);
  CHECK(code_of('\n' + text) == durable_errc::manifest_damaged);
  CHECK(code_of({}) == durable_errc::manifest_damaged);
}

TEST_CASE("manifest: what a later version wrote is refused by name, not as damage") {
  CHECK(code_of(replaced(write_manifest(sample()), "manifest\":1,", "manifest\":2,")) ==
        durable_errc::manifest_version);
  CHECK(code_of("{\"spillway_manifest\":12,anything") == durable_errc::manifest_version);
  CHECK(code_of(sealed(replaced(golden, "\"world\":1", "\"world\":4"))) == durable_errc::manifest_version);
  CHECK(code_of(sealed(replaced(golden, "\"world\":1", "\"world\":1,\"placement\":{}"))) ==
        durable_errc::manifest_version);
  CHECK(code_of(sealed(replaced(golden, "\"resizable\":true", "\"resizable\":true,\"rank\":0"))) ==
        durable_errc::manifest_version);
  CHECK(code_of(sealed(replaced(golden, "\"kind\":\"bytes\"", "\"kind\":\"graph\""))) ==
        durable_errc::manifest_version);
}

TEST_CASE("manifest: a text that makes no sense is damaged though its hash is right") {
  CHECK_FALSE(code_of(sealed(golden)));
  std::pair<char const*, char const*> const changes[] = {
      {"\"step\":1234", "\"step\":\"1234\""},
      {"\"step\":1234", "\"stop\":1234"},
      {"\"step\":1234", "\"step\":1234,\"step\":1234"},
      {"\"step\":1234", "\"step\":-1"},
      {"\"step\":1234", "\"step\":18446744073709551616"},
      {"fedcba98765432100123456789abcdef", "fedcba"},
      {"\"all\":\"000000000000000c", "\"all\":\"000000000000000d"},
      {"\"layout\":\"000000000000abcd\"", "\"layout\":\"abcd\""},
      {"\"F64\"", "\"F65\""},
      {"\"shape\":[6]", "\"shape\":[5]"},
      {"\"shape\":[6]", "\"shape\":[18446744073709551615,2]"},
      {"\"shape\":[6]", "\"shape\":6"},
      {"\"value\":\"0.1\"", "\"value\":\"0.1x\""},
      {"\"value\":\"0.1\"", "\"value\":\"\""},
      {"\"value\":\"true\"", "\"value\":\"TRUE\""},
      {"\"value\":\"0x0100c07f\"", "\"value\":\"0x0100c0\""},
      {"\"value\":\"18446744073709551615\"", "\"value\":\"18446744073709551616\""},
      {"\"hex\":\"ff01\"", "\"hex\":\"ff0\""},
      {"\"hex\":\"ff01\"", "\"hex\":\"fF01\""},
      {"\"file\":\"leaves-00000.safetensors\"", "\"file\":\"other\""},
      {"\"parameters\":\"model.safetensors\"", "\"parameters\":\"m\""},
      {"\"name\":\"leaves-00000.safetensors\"", "\"name\":\"../leaves\""},
      {"\"name\":\"leaves-00000.safetensors\"", "\"name\":\"/etc/passwd\""},
      {"\"name\":\"leaves-00000.safetensors\"", "\"name\":\"\""},
      {"\"name\":\"leaves-00000.safetensors\"", "\"name\":\".lock\""},
      {"\"name\":\"leaves-00000.safetensors\"", "\"name\":\"a\\u0000b\""},
      {"\"name\":\"leaves-00000.safetensors\"", "\"name\":\"model.safetensors\""},
      {"\"bytes\":100", "\"bytes\":101"},
      {"[[100,\"01020304\"]]", "[[100,\"0102030\"]]"},
      {"[[100,\"01020304\"]]", "[[100,\"0102030400000000\"]]"},
      {"[[100,\"01020304\"]]", "[[100,\"01020304\",0]]"},
      {"[[100,\"01020304\"]]", "[100]"},
      {"[[100,\"01020304\"]]", "[[18446744073709551615,\"01020304\"]]"},
      {"\"leaves\":[", "\"leaves\":[[],"},
      {"\"files\":[",
       "\"files\":["
       "7,"},
  };
  for (auto const& [from, to] : changes) {
    INFO(from << " -> " << to);
    CHECK(code_of(sealed(replaced(golden, from, to))) == durable_errc::manifest_damaged);
  }
  CHECK(code_of(sealed("{\"spillway_manifest\":1,\"a\":" + std::string(100, '[') + std::string(100, ']'))) ==
        durable_errc::manifest_damaged);
}

TEST_CASE("manifest: one over the size limit is neither written nor read") {
  auto large = sample();
  large.leaves[5].value->assign(40U << 20U, std::byte{0xff});
  CHECK_THROWS_WITH(write_manifest(large), Catch::Matchers::Contains("over the size limit"));
  CHECK(code_of(std::string((64U << 20U) + 1, '{')) == durable_errc::manifest_too_large);
}
