// SPDX-License-Identifier: Apache-2.0
#include <spillway/durable/tensor_file.hpp>

#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/checkpoint_run.hpp"
#include "support/scratch.hpp"

namespace {
using namespace spillway;

std::vector<std::byte> pattern(std::size_t n, unsigned seed) {
  std::vector<std::byte> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<std::byte>((i * 2654435761U + seed) >> 9U);
  return out;
}
}  // namespace

TEST_CASE("tensor_file: order puts wide elements first, and keeps the given order otherwise") {
  std::vector<safetensors_tensor> const tensors{{"a", dtype::bfloat16, {3}},
                                                {"b", dtype::float32, {2}},
                                                {"c", dtype::u8, {1}},
                                                {"d", dtype::float64, {}},
                                                {"e", dtype::float32, {}}};
  CHECK(tensor_order(tensors) == std::vector<std::size_t>{3, 1, 4, 0, 2});
}

TEST_CASE("tensor_file: pieces of any size make the same file, checked per MiB of each tensor") {
  hash128 const id{1, 2};
  std::vector<safetensors_tensor> const tensors{{"big", dtype::float32, {700'001}},
                                                {"none", dtype::float32, {0, 4}},
                                                {"scalar", dtype::float32, {}},
                                                {"odd", dtype::u8, {9'000'001}}};
  std::vector<std::vector<std::byte>> const data{pattern(2'800'004, 1), {}, pattern(4, 2), pattern(9'000'001, 3)};
  std::string first;
  for (std::size_t const piece :
       {std::size_t{1} << 30U, std::size_t{4} << 20U, std::size_t{5'000'000}, std::size_t{70'001}}) {
    INFO(piece);
    test::scratch folder;
    posix_file_system fs;
    tensor_file_writer<> out{fs, folder / "t", safetensors_layout{tensors, {{std::string(save_id_key), to_string(id)}}},
                             0644};
    for (auto const& tensor : data) {
      std::span<std::byte const> left{tensor};
      while (!left.empty()) {
        auto const take = left.first(std::min(piece, left.size()));
        out.append(take);
        left = left.subspan(take.size());
      }
      out.end_tensor();
    }
    auto const record = out.finish("t");
    auto const text = test::read_file(folder / "t");
    if (first.empty()) first = text;
    CHECK((text == first));
    REQUIRE(record.segments.size() == 4);  // header, and the tensors that have bytes
    CHECK(record.segments[1].length == bytes{2'800'004});
    CHECK(record.segments[1].checksums.size() == 3);
    CHECK(record.segments[3].checksums.size() == 9);

    checked_safetensors<> in{fs, folder.path(), record, id};
    in.verify();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      auto const* const entry = in.find(tensors[i].name);
      REQUIRE(entry != nullptr);
      std::vector<std::byte> got(entry->end - entry->begin);
      in.read(bytes{entry->begin}, got);
      CHECK((got == data[i]));
    }
    CHECK(in.find("absent") == nullptr);
  }
}

TEST_CASE("tensor_file: a flip in the second MiB of a tensor is found there") {
  test::scratch folder;
  posix_file_system fs;
  hash128 const id{1, 2};
  std::vector<safetensors_tensor> const tensors{{"x", dtype::u8, {10}}, {"big", dtype::u8, {6'000'000}}};
  tensor_file_writer<> out{fs, folder / "t", safetensors_layout{tensors, {{std::string(save_id_key), to_string(id)}}},
                           0644};
  out.append(pattern(10, 1));
  out.end_tensor();
  out.append(pattern(6'000'000, 2));
  out.end_tensor();
  auto const record = out.finish("t");
  for (std::size_t const at : {std::size_t{0}, std::size_t{1} << 20U, (std::size_t{5} << 20U) + 7}) {
    std::size_t const offset = 4096 + 10 + at;
    auto const good = test::read_file(folder / "t")[offset];
    test::write_byte(folder / "t", offset, static_cast<char>(good ^ 1));
    try {
      checked_safetensors<>{fs, folder.path(), record, id}.verify();
      FAIL("not found");
    } catch (error const& failure) {
      CHECK(failure.code() == durable_errc::checksum_mismatch);
      CHECK(failure.about().offset == 4096 + 10 + (at >> 20U << 20U));
      CHECK(failure.about().detail.find("\"big\"") != std::string::npos);
    }
    test::write_byte(folder / "t", offset, good);
  }
}
