// SPDX-License-Identifier: Apache-2.0
/// A manifest from text that a disk, a copy or a stranger may have changed.
#pragma once

#include <spillway/core/error.hpp>
#include <spillway/durable/detail/manifest_text.hpp>
#include <spillway/durable/durable_errc.hpp>
#include <spillway/durable/manifest.hpp>
#include <spillway/format/detail/safetensors_parser.hpp>
#include <spillway/format/json_reader.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::inline v0::detail {

class manifest_parser {
 public:
  manifest_parser(std::string_view text, std::string_view path) : text_(text), path_(path) {}

  [[nodiscard]] manifest parse() {
    if (text_.size() > manifest_limit.count) {
      throw error{
          durable_errc::manifest_too_large,
          {.where = "manifest", .path = std::string(path_), .wanted = bytes{text_.size()}, .got = manifest_limit}};
    }
    // The version comes before the hash: a later version may hash otherwise.
    check_version();
    check_self_hash();
    try {
      json_value const document = read_json(text_, {.size = manifest_limit}, {.where = "manifest", .path = path_});
      return read(document);
    } catch (error const& failure) {
      if (failure.code().category() != format_category_instance) throw;
      damaged(failure.what());
    }
  }

 private:
  using object = json_value::object;

  [[noreturn]] void damaged(std::string why) const {
    throw error{durable_errc::manifest_damaged,
                {.where = "manifest", .path = std::string(path_), .detail = std::move(why)}};
  }
  [[noreturn]] void newer(std::string why) const {
    throw error{durable_errc::manifest_version,
                {.where = "manifest", .path = std::string(path_), .detail = std::move(why)}};
  }

  void check_version() const {
    constexpr std::string_view key = "{\"spillway_manifest\":";
    if (text_.substr(0, key.size()) != key) damaged("does not begin as a manifest does");
    std::string_view const rest = text_.substr(key.size());
    std::size_t const end = rest.find_first_not_of("0123456789");
    std::string_view const number = rest.substr(0, end);
    if (number.empty() || end == std::string_view::npos || rest[end] != ',') damaged("has no version");
    if (number != std::to_string(manifest_format_version)) {
      newer("its version is " + std::string(number.substr(0, 24)) + ", this library reads " +
            std::to_string(manifest_format_version));
    }
  }
  void check_self_hash() const {
    if (text_.size() < self_hash_size) damaged("too short for its hash");
    std::string_view const tail = text_.substr(text_.size() - self_hash_size);
    std::string_view const digits = tail.substr(self_hash_before.size(), 32);
    if (tail.substr(0, self_hash_before.size()) != self_hash_before ||
        tail.substr(self_hash_before.size() + 32) != self_hash_after) {
      damaged("does not end in its hash: cut or changed");
    }
    hash128 const found = hash_bytes(text_.substr(0, text_.size() - self_hash_size));
    if (hash128_from(digits) != found) {
      damaged("its hash is " + to_string(found) + ", it says " + quoted(digits));
    }
  }

  // Each takes a member of an object by name and type; `allowed` knows when all were asked for.
  class members {
   public:
    members(manifest_parser const& parser, json_value const& value, std::string_view what)
        : parser_(&parser), what_(what), all_(value.get_if<object>()) {
      if (all_ == nullptr) parser.damaged(std::string(what) + " is no object");
    }
    json_value const* find(std::string_view key) {
      for (json_member const& member : *all_) {
        if (member.key == key) {
          ++taken_;
          return &member.value;
        }
      }
      return nullptr;
    }
    json_value const& value(std::string_view key) {
      json_value const* const found = find(key);
      if (found == nullptr) parser_->damaged(std::string(what_) + " has no \"" + std::string(key) + '"');
      return *found;
    }
    template <class T>
    T const& get(std::string_view key) {
      T const* const found = value(key).template get_if<T>();
      if (found == nullptr) parser_->damaged(std::string(what_) + ": \"" + std::string(key) + "\" has another type");
      return *found;
    }
    std::string const& text(std::string_view key) { return get<std::string>(key); }
    std::uint64_t number(std::string_view key) { return get<std::uint64_t>(key); }
    hash128 hash(std::string_view key) {
      auto const found = hash128_from(text(key));
      if (!found) parser_->damaged(std::string(what_) + ": \"" + std::string(key) + "\" is no hash");
      return *found;
    }
    dtype type(std::string_view key) {
      auto const found = dtype_named(text(key));
      if (!found) parser_->damaged(std::string(what_) + ": \"" + std::string(key) + "\" is no dtype");
      return *found;
    }
    /// The hash said that the text is as it was written, so what we don't know was written by a later library.
    void end() const {
      if (taken_ != all_->size()) parser_->newer(std::string(what_) + " has a member that this version does not know");
    }

   private:
    manifest_parser const* parser_;
    std::string_view what_;
    object const* all_;
    std::size_t taken_ = 0;
  };

  [[nodiscard]] manifest read(json_value const& document) const {
    members root{*this, document, "manifest"};
    static_cast<void>(root.number("spillway_manifest"));
    static_cast<void>(root.text("self"));
    manifest m{.save_id = root.hash("save_id"), .step = root.number("step"), .sequence = root.number("sequence")};
    if (json_value const* const parent = root.find("parent")) {
      members in{*this, *parent, "parent"};
      m.parent = manifest_parent{in.hash("save_id"), in.number("step")};
      in.end();
    }
    m.world = root.number("world");
    if (m.world != 1) newer("saved by " + std::to_string(m.world) + " ranks; this version reads those of one");
    m.schema = root.hash("schema");
    members digest{*this, root.value("digest"), "digest"};
    m.digests = {{digest.hash("parameters")}, {digest.hash("optimizer")}, {digest.hash("leaves")}};
    if (state_digest{digest.hash("all")} != m.digests.all()) damaged("its digests do not add up");
    digest.end();
    if (json_value const* const value = root.find("spill")) m.spill = spill(*value);
    for (json_value const& value : root.get<json_value::array>("leaves")) m.leaves.push_back(leaf(value));
    for (json_value const& value : root.get<json_value::array>("files")) m.files.push_back(file_entry(value));
    root.end();
    check_files(m);
    return m;
  }

  [[nodiscard]] manifest_spill spill(json_value const& value) const {
    members in{*this, value, "spill"};
    manifest_spill out{.member = in.text("member")};
    auto const layout = hash128_from(std::string(16, '0') + in.text("layout"));
    if (!layout) damaged("spill: \"layout\" is no hash");
    out.layout_hash = layout->low;
    out.rule = in.text("rule");
    out.chunk_elements = in.number("chunk_elements");
    for (json_value const& element : in.get<json_value::array>("arrays")) {
      members array{*this, element, "array"};
      out.arrays.push_back(
          {array.text("name"), array.text("codec"), array.type("dtype"), array.number("bytes_per_block")});
      array.end();
    }
    out.parameters = in.text("parameters");
    out.generation = in.text("generation");
    in.end();
    return out;
  }

  [[nodiscard]] manifest_leaf leaf(json_value const& value) const {
    members in{*this, value, "leaf"};
    manifest_leaf out{};
    out.about.name = in.text("name");
    out.about.kind = kind(in.text("kind"));
    out.about.type = in.type("dtype");
    for (json_value const& extent : in.get<json_value::array>("shape")) {
      auto const* const number = extent.get_if<std::uint64_t>();
      if (number == nullptr) damaged("leaf: shape has something that is no number");
      out.about.shape.push_back(*number);
    }
    out.about.resizable = in.get<bool>("resizable");
    tensor_size const size = size_of_tensor(out.about.type, out.about.shape);
    if (size.wrong) damaged("leaf " + quoted(out.about.name) + ": its size makes no sense");
    if (json_value const* const place = in.find("file")) {
      auto const* const name = place->get_if<std::string>();
      if (name == nullptr) damaged("leaf: \"file\" has another type");
      out.file = *name;
    } else {
      out.value = leaf_value(in, out.about);
      if (!out.value || out.value->size() != size.bytes)
        damaged("leaf " + quoted(out.about.name) + ": no value of its type");
    }
    in.end();
    return out;
  }
  /// Scalars and text as people read them; everything else in hexadecimal.
  [[nodiscard]] static std::optional<std::vector<std::byte>> leaf_value(members& in, leaf_description const& about) {
    if (about.kind == leaf_kind::scalar) return scalar_bytes(about.type, in.text("value"));
    json_value const* const text = about.kind == leaf_kind::string ? in.find("value") : nullptr;
    if (text == nullptr) return bytes_from_hex(in.text("hex"));
    auto const* const characters = text->get_if<std::string>();
    if (characters == nullptr) return std::nullopt;
    auto const raw = std::as_bytes(std::span{*characters});
    return std::vector<std::byte>{raw.begin(), raw.end()};
  }
  [[nodiscard]] leaf_kind kind(std::string const& text) const {
    for (auto const candidate : {leaf_kind::scalar, leaf_kind::string, leaf_kind::opaque, leaf_kind::tensor}) {
      if (name_of(candidate) == text) return candidate;
    }
    newer("a leaf of kind " + quoted(text));
  }

  [[nodiscard]] file_record file_entry(json_value const& value) const {
    members in{*this, value, "file"};
    file_record out{.name = in.text("name"), .size = bytes{in.number("bytes")}};
    // It becomes a path, so it is one plain name.
    if (out.name.empty() || out.name.front() == '.' ||
        out.name.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos) {
      damaged("file name " + quoted(out.name));
    }
    std::uint64_t covered = 0;
    for (json_value const& element : in.get<json_value::array>("crc32c_per_mib")) {
      auto const* const pair = element.get_if<json_value::array>();
      auto const* const length = pair != nullptr && pair->size() == 2 ? (*pair)[0].get_if<std::uint64_t>() : nullptr;
      auto const* const text = length != nullptr ? (*pair)[1].get_if<std::string>() : nullptr;
      if (text == nullptr) damaged("file " + quoted(out.name) + ": a segment is no [length, checksums]");
      auto checksums = checksums_from(*text);
      if (!checksums || checksums->size() != checksums_for(bytes{*length}) || !checked_add(covered, *length, covered)) {
        damaged("file " + quoted(out.name) + ": a segment whose checksums do not fit its length");
      }
      out.segments.push_back({bytes{*length}, std::move(*checksums)});
    }
    if (covered != out.size.count) damaged("file " + quoted(out.name) + ": its checksums do not cover it");
    in.end();
    return out;
  }

  void check_files(manifest const& m) const {
    std::set<std::string> names;
    for (file_record const& record : m.files) {
      if (!names.insert(record.name).second) damaged("file " + quoted(record.name) + " appears twice");
    }
    auto const known = [&](std::string const& name) {
      if (names.count(name) == 0) damaged("names " + quoted(name) + " but not among its files");
    };
    if (m.spill) {
      known(m.spill->parameters);
      known(m.spill->generation);
    }
    for (manifest_leaf const& entry : m.leaves) {
      if (!entry.value) known(entry.file);
    }
  }

  std::string_view text_;
  std::string_view path_;
};

}  // namespace spillway::inline v0::detail
