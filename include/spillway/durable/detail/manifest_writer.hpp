// SPDX-License-Identifier: Apache-2.0
/// A manifest as text.
#pragma once

#include <spillway/core/error.hpp>
#include <spillway/durable/detail/manifest_text.hpp>
#include <spillway/durable/durable_errc.hpp>
#include <spillway/durable/manifest.hpp>
#include <spillway/format/json_writer.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::inline v0::detail {

class manifest_writer {
 public:
  [[nodiscard]] std::string write(manifest const& m) const {
    using object = json_value::object;
    object root{{"spillway_manifest", {manifest_format_version}},
                {"save_id", {to_string(m.save_id)}},
                {"step", {m.step}},
                {"sequence", {m.sequence}}};
    if (m.parent) {
      root.push_back({"parent", {object{{"save_id", {to_string(m.parent->save_id)}}, {"step", {m.parent->step}}}}});
    }
    root.push_back({"world", {m.world}});
    root.push_back({"schema", {to_string(m.schema)}});
    root.push_back({"digest",
                    {object{{"all", {to_string(m.digests.all())}},
                            {"parameters", {to_string(m.digests.parameters)}},
                            {"optimizer", {to_string(m.digests.optimizer)}},
                            {"leaves", {to_string(m.digests.leaves)}}}}});
    if (m.spill) root.push_back({"spill", {spill(*m.spill)}});
    json_value::array leaves;
    for (manifest_leaf const& entry : m.leaves) leaves.push_back({leaf(entry)});
    root.push_back({"leaves", {std::move(leaves)}});
    json_value::array files;
    for (file_record const& record : m.files) files.push_back({file_entry(record)});
    root.push_back({"files", {std::move(files)}});

    std::string text = write_json({std::move(root)});
    text.pop_back();  // the closing brace comes after the hash
    hash128 const self = hash_bytes(text);
    text += self_hash_before;
    text += to_string(self);
    text += self_hash_after;
    if (text.size() > manifest_limit.count) {
      throw error{durable_errc::manifest_too_large,
                  {.where = "manifest", .wanted = bytes{text.size()}, .got = manifest_limit}};
    }
    return text;
  }

 private:
  static json_value::object spill(manifest_spill const& s) {
    json_value::array arrays;
    for (stored_array const& array : s.arrays) {
      arrays.push_back({json_value::object{{"name", {array.name}},
                                           {"codec", {array.codec}},
                                           {"dtype", {std::string(name_of(array.type))}},
                                           {"bytes_per_block", {array.bytes_per_block}}}});
    }
    return {{"member", {s.member}},
            {"layout", {to_string(hash128{s.layout_hash, 0}).substr(16)}},
            {"rule", {s.rule}},
            {"chunk_elements", {s.chunk_elements}},
            {"arrays", {std::move(arrays)}},
            {"parameters", {s.parameters}},
            {"generation", {s.generation}}};
  }
  static json_value::object leaf(manifest_leaf const& entry) {
    leaf_description const& about = entry.about;
    json_value::array shape;
    for (std::uint64_t const extent : about.shape) shape.push_back({extent});
    json_value::object out{{"name", {about.name}},
                           {"kind", {std::string(name_of(about.kind))}},
                           {"dtype", {std::string(name_of(about.type))}},
                           {"shape", {std::move(shape)}},
                           {"resizable", {about.resizable}}};
    if (!entry.value) {
      out.push_back({"file", {entry.file}});
    } else if (about.kind == leaf_kind::scalar) {
      out.push_back({"value", {scalar_text(about.type, *entry.value)}});
    } else if (std::string text = string_text(entry);
               about.kind == leaf_kind::string && invalid_utf8_at(text) == text.npos) {
      out.push_back({"value", {std::move(text)}});
    } else {
      std::string hex;
      append_hex(hex, *entry.value);
      out.push_back({"hex", {std::move(hex)}});
    }
    return out;
  }
  static std::string string_text(manifest_leaf const& entry) {
    return {reinterpret_cast<char const*>(entry.value->data()), entry.value->size()};
  }
  static json_value::object file_entry(file_record const& record) {
    json_value::array segments;
    for (checked_segment const& segment : record.segments) {
      segments.push_back({json_value::array{{segment.length.count}, {checksums_text(segment.checksums)}}});
    }
    return {{"name", {record.name}}, {"bytes", {record.size.count}}, {"crc32c_per_mib", {std::move(segments)}}};
  }
};

}  // namespace spillway::inline v0::detail
