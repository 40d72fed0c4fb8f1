// SPDX-License-Identifier: Apache-2.0
#include <spillway/core/crc32c.hpp>
#include <spillway/durable/generation_file.hpp>
#include <spillway/durable/generation_reader.hpp>

#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/checkpoint_run.hpp"
#include "support/failures.hpp"
#include "support/scratch.hpp"

namespace {
using test::code_of;
using namespace spillway;

std::vector<tensor_spec> model() { return {{"a", {2500}, dtype::float32, 0}, {"b/c", {100}, dtype::bfloat16, 0}}; }
std::vector<stored_array> arrays() {
  return {{"m", "float32", dtype::float32, 4096}, {"q", "blocks8", dtype::u8, 1032}};
}
generation_identity identity() {
  return {.save_id = {0x0123456789abcdefU, 0xfedcba9876543210U}, .rule = "kernel rounding"};
}

std::vector<std::byte> content(generation_layout const& layout, std::size_t chunk, std::size_t array) {
  std::vector<std::byte> out(layout.length(chunk, array).count);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>((i * 31 + chunk * 7 + array) >> 2U);
  return out;
}

struct fixture {
  test::scratch folder{};
  posix_file_system fs{};
  parameter_layout layout{model()};
  chunk_plan plan{layout, 2048};
  generation_layout places{layout, plan, arrays(), identity()};
  std::string path = folder / "generation.safetensors";

  file_record write() {
    generation_writer<> out{fs, path, places, 0644};
    for (std::size_t c = plan.size(); c-- > 0;) {  // in any order
      for (std::size_t a = 0; a < 2; ++a) out.write(c, a, content(places, c, a));
    }
    return out.finish("generation.safetensors");
  }
  generation_reader<> read(file_record record) {
    return {fs, folder.path(), std::move(record), identity().save_id, arrays()};
  }
};
}  // namespace

TEST_CASE("generation_layout: the header of a small file does not change") {
  fixture f;
  auto const header = f.places.header_bytes();
  std::string const text{reinterpret_cast<char const*>(header.data()), header.size()};
  CHECK(header.size() == 4096);
  CHECK(text.substr(0, 8) == std::string("\xf8\x0f\0\0\0\0\0\0", 8));
  std::string const json =
      R"({"__metadata__":{"format":"spillway.generation.1","spillway.save_id":"fedcba98765432100123456789abcdef",)"
      R"("spillway.layout":"LAYOUT","spillway.rule":"kernel rounding","spillway.chunk_elements":"2048",)"
      R"("spillway.arrays":"m=float32,q=blocks8"},)"
      R"("a/m/0-2048":{"dtype":"F32","shape":[2048],"data_offsets":[0,8192]},)"
      R"("a/q/0-2048":{"dtype":"U8","shape":[2064],"data_offsets":[8192,10256]},)"
      R"("~pad/0/q/0":{"dtype":"U8","shape":[2032],"data_offsets":[10256,12288]},)"
      R"("a/m/2048-2500":{"dtype":"F32","shape":[452],"data_offsets":[12288,14096]},)"
      R"("~pad/1/m/0":{"dtype":"U8","shape":[2288],"data_offsets":[14096,16384]},)"
      R"("b/c/m/0-100":{"dtype":"F32","shape":[100],"data_offsets":[16384,16784]},)"
      R"("~pad/1/m/1":{"dtype":"U8","shape":[3696],"data_offsets":[16784,20480]},)"
      R"("a/q/2048-2500":{"dtype":"U8","shape":[1032],"data_offsets":[20480,21512]},)"
      R"("b/c/q/0-100":{"dtype":"U8","shape":[1032],"data_offsets":[21512,22544]},)"
      R"("~pad/1/q/1":{"dtype":"U8","shape":[2032],"data_offsets":[22544,24576]}})";
  std::string expected = json;
  expected.replace(expected.find("LAYOUT"), 6, to_string(hash128{f.layout.hash(), 0}).substr(16));
  CHECK(text.substr(8, expected.size()) == expected);
  CHECK(text.substr(8 + expected.size()) == std::string(4096 - 8 - expected.size(), ' '));
  CHECK(f.places.size() == bytes{4096 + 24576});
  CHECK(f.places.offset(1, 1) == bytes{4096 + 20480});
}

TEST_CASE("generation_layout: every array of every chunk starts on 4096 bytes, in order, without a hole") {
  parameter_layout const layout{test::small_model()};
  for (std::uint64_t const elements : {1024U, 2048U, 7U * 1024U, 1U << 20U}) {
    chunk_plan const plan{layout, elements};
    generation_layout const places{layout, plan, test::memory_spilled_state::default_arrays(), identity()};
    bytes at = places.header().data_begin;
    for (std::size_t c = 0; c < plan.size(); ++c) {
      for (std::size_t a = 0; a < 3; ++a) {
        CHECK(places.offset(c, a) == at);
        CHECK(at.count % 4096 == 0);
        at += places.length(c, a);
      }
    }
    CHECK(places.size() == at);
    // Its own strict reader takes it: that proves cover and sizes.
    CHECK(parse_safetensors_header(places.header_bytes(), places.size().count) == places.header());
  }
}

TEST_CASE("generation_layout: a header over the limit names the chunk size as the cure") {
  std::vector<tensor_spec> tensors;
  std::string const name(60'000, 'n');
  for (int i = 0; i < 400; ++i) tensors.push_back({name + std::to_string(i), {3000}, dtype::float32, 0});
  parameter_layout const layout{std::move(tensors)};
  chunk_plan const plan{layout, 1024};
  try {
    generation_layout const places{layout, plan, arrays(), identity()};
    FAIL("a header of more than 100 MB was accepted");
  } catch (error const& failure) {
    CHECK(failure.code() == format_errc::header_too_large);
    CHECK(std::string(failure.what()).find("larger chunks than 1024 elements") != std::string::npos);
  }
}

TEST_CASE("generation_layout: arrays need a name each, without a slash") {
  parameter_layout const layout{model()};
  chunk_plan const plan{layout, 2048};
  auto const make = [&](std::vector<stored_array> list) {
    return code_of([&] { generation_layout{layout, plan, list, identity()}; });
  };
  CHECK(make({{"", "float32", dtype::float32, 4096}}) == errc::layout_mismatch);
  CHECK(make({{"a/b", "float32", dtype::float32, 4096}}) == errc::layout_mismatch);
  CHECK(make({{"m", "float32", dtype::float32, 4096}, {"m", "x", dtype::u8, 5}}) == errc::layout_mismatch);
  CHECK(make({{"m", "float32", dtype::float32, 0}}) == errc::layout_mismatch);
}

TEST_CASE("generation_writer: bytes lie where the layout says, with a checksum for each array") {
  fixture f;
  auto const record = f.write();
  auto const text = test::read_file(f.path);
  auto const raw = std::as_bytes(std::span{text});
  CHECK(record.size == f.places.size());
  CHECK(text.size() == record.size.count);
  REQUIRE(record.segments.size() == 5);
  CHECK(record.segments[0].length == f.places.header().data_begin);
  std::size_t at = 0;
  for (auto const& segment : record.segments) {
    CHECK(segment.checksums == std::vector<std::uint32_t>{crc32c(raw.subspan(at, segment.length.count))});
    at += segment.length.count;
  }
  CHECK(at == text.size());
  for (std::size_t c = 0; c < 2; ++c) {
    for (std::size_t a = 0; a < 2; ++a) {
      auto const wanted = content(f.places, c, a);
      CHECK(std::equal(wanted.begin(), wanted.end(),
                       raw.begin() + static_cast<std::ptrdiff_t>(f.places.offset(c, a).count)));
    }
  }
}

TEST_CASE("generation_writer: until it is finished every reader refuses the file, and it never writes into another") {
  fixture f;
  {
    generation_writer<> out{f.fs, f.path, f.places, 0644};
    out.write(0, 0, content(f.places, 0, 0));
    auto const text = test::read_file(f.path);
    auto const raw = std::as_bytes(std::span{text});
    CHECK(code_of([&] { static_cast<void>(parse_safetensors_header(raw, raw.size())); }) ==
          format_errc::generation_open);
    CHECK(code_of([&] { generation_writer<>{f.fs, f.path, f.places, 0644}; }) == std::errc::file_exists);
  }
  test::write_file(f.folder / "target", "precious");
  std::filesystem::create_symlink(f.folder / "target", f.folder / "link");
  CHECK(code_of([&] { generation_writer<>{f.fs, f.folder / "link", f.places, 0644}; }) == std::errc::file_exists);
  CHECK(test::read_file(f.folder / "target") == "precious");
}

TEST_CASE("generation_reader: any blocks of any tensor, over the borders of chunks, zero past the last element") {
  fixture f;
  auto reader = f.read(f.write());
  reader.verify();
  CHECK(reader.parameters() == std::vector<std::string>{"a", "b/c"});
  CHECK(reader.elements("a", "m") == 2500);
  CHECK(reader.elements("a", "q") == 2500);
  CHECK(reader.elements("b/c", "m") == 100);
  CHECK(reader.elements("c", "m") == 0);
  // Tensor a is in chunk 0 (blocks 0, 1) and chunk 1 (block 2, 452 elements).
  for (std::size_t a = 0; a < 2; ++a) {
    std::uint64_t const block = arrays()[a].bytes_per_block;
    std::vector<std::byte> whole(3 * block);
    auto const first = content(f.places, 0, a);
    auto const second = content(f.places, 1, a);
    std::copy_n(first.begin(), 2 * block, whole.begin());
    std::copy_n(second.begin(), a == 0 ? 452 * 4 : block, whole.begin() + static_cast<std::ptrdiff_t>(2 * block));
    for (std::uint64_t from = 0; from < 3; ++from) {
      for (std::uint64_t count = 0; from + count <= 3; ++count) {
        std::vector<std::byte> got(count * block, std::byte{0xff});
        reader.read_blocks("a", arrays()[a].name, from, count, got);
        CHECK(std::equal(got.begin(), got.end(), whole.begin() + static_cast<std::ptrdiff_t>(from * block)));
      }
    }
  }
}

TEST_CASE("generation_reader: a file whose pieces do not cover a tensor exactly once is refused") {
  test::scratch folder;
  posix_file_system fs;
  auto const check = [&](std::vector<safetensors_tensor> tensors, std::string const& says) {
    INFO(says);
    safetensors_layout const layout{tensors, {{std::string(save_id_key), to_string(identity().save_id)}}};
    std::string text{reinterpret_cast<char const*>(layout.header_bytes().data()), layout.header_bytes().size()};
    text.resize(layout.header().file_size.count);
    test::write_file(folder / "g", text);
    file_record const record{"g",
                             layout.header().file_size,
                             {segment_of(layout.header_bytes()),
                              segment_of(std::as_bytes(std::span{text}).subspan(layout.header_bytes().size()))}};
    try {
      generation_reader<>{fs, folder.path(), record, identity().save_id, arrays()};
      return std::error_code{};
    } catch (error const& failure) {
      CHECK(std::string(failure.what()).find(says) != std::string::npos);
      return failure.code();
    }
  };
  auto const f32 = [](std::string name, std::uint64_t count) {
    return safetensors_tensor{std::move(name), dtype::float32, {count}};
  };
  auto const bad = make_error_code(durable_errc::not_covered);
  CHECK_FALSE(check({f32("a/m/0-1024", 1024), f32("a/m/1024-1030", 6)}, ""));
  CHECK(check({f32("a/m/1024-1030", 6)}, "element missing: 0") == bad);
  CHECK(check({f32("a/m/0-1024", 1024), f32("a/m/2048-2050", 2)}, "element missing: 1024") == bad);
  CHECK(check({f32("a/m/0-2048", 2048), f32("a/m/1024-2050", 1026)}, "element stored twice: 2048") == bad);
  CHECK(check({f32("a/m/0-500", 500), f32("a/m/500-600", 100)}, "inside a block") == bad);
  CHECK(check({f32("a/m/0-1024", 1023)}, "stored otherwise") == bad);
  CHECK(check({{"a/m/0-1024", dtype::i32, {1024}}}, "stored otherwise") == bad);
  CHECK(check({{"a/q/0-1024", dtype::u8, {1024}}}, "stored otherwise") == bad);
  CHECK(check({f32("a/z/0-1024", 1024)}, "no such array") == bad);
  for (auto const* name : {"", "a", "a/m", "/0-4", "a/m/x-4", "a/m/0-04", "a/m/0-", "a/m/-4", "a/m/4-0",
                           "a/m/0-18446744073709551616", "a/m/4", "~pad/0/m/x"}) {
    INFO(name);
    CHECK(check({f32(name, 4)}, "") == bad);
  }
}
