// SPDX-License-Identifier: Apache-2.0
/// Whether a checkpoint fits a training state: everything that does not, in one message.
#pragma once

#include <spillway/checkpoint/detail/state_leaves.hpp>
#include <spillway/durable/checked_safetensors.hpp>
#include <spillway/durable/durable_errc.hpp>
#include <spillway/durable/generation_reader.hpp>
#include <spillway/durable/manifest.hpp>
#include <spillway/state/state_schema.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::inline v0::detail {

/// Collects differences; throws them all at once.
class differences {
 public:
  void missing(std::string_view what, std::string_view is) { add("missing from the checkpoint", what, is); }
  void extra(std::string_view what, std::string_view is) { add("in the checkpoint only", what, is); }
  void differ(std::string_view what, std::string_view checkpoint, std::string_view state) {
    next() +=
        quoted(what) + ": checkpoint has " + std::string(checkpoint) + ", training state has " + std::string(state);
  }
  void raise_if_any(durable_errc code, std::string const& path) const {
    if (text_.empty()) return;
    throw error{code, {.where = "checkpoint", .path = path, .detail = text_}};
  }

 private:
  std::string& next() {
    if (!text_.empty()) text_ += "; ";
    return text_;
  }
  void add(std::string_view how, std::string_view what, std::string_view is) {
    next() += std::string(how) + ": " + quoted(what) + " (" + std::string(is) + ')';
  }
  std::string text_{};
};

inline void compare_leaves(differences& out, leaf_collection const& state, manifest const& record) {
  std::map<std::string, leaf_description const*> stored;
  for (manifest_leaf const& entry : record.leaves) stored.emplace(entry.about.name, &entry.about);
  for (leaf_view const& leaf : state.leaves()) {
    auto const found = stored.find(leaf.about.name);
    if (found == stored.end()) {
      out.missing(leaf.about.name, to_string(leaf.about));
      continue;
    }
    leaf_description const& there = *found->second;
    bool const same_type =
        there.kind == leaf.about.kind && there.type == leaf.about.type && there.resizable == leaf.about.resizable;
    bool const same_shape =
        leaf.about.resizable ? there.shape.size() == leaf.about.shape.size() : there.shape == leaf.about.shape;
    if (!same_type || !same_shape) out.differ(leaf.about.name, to_string(there), to_string(leaf.about));
    stored.erase(found);
  }
  for (auto const& [name, about] : stored) out.extra(name, to_string(*about));
}

[[nodiscard]] inline std::string parameter_text(dtype type, std::span<std::uint64_t const> shape) {
  return to_string(leaf_description{.kind = leaf_kind::tensor, .type = type, .shape = {shape.begin(), shape.end()}});
}

/// Parameters by name, shape and dtype; then what the state arrays are and mean.
template <FileSystem FS>
void compare_parameters(differences& out, parameter_layout const& layout, checked_safetensors<FS> const& file) {
  for (tensor_spec const& tensor : layout.tensors()) {
    safetensors_entry const* const found = file.find(tensor.name);
    if (found == nullptr) {
      out.missing(tensor.name, "parameter " + parameter_text(tensor.type, tensor.shape));
    } else if (found->type != tensor.type || found->shape != tensor.shape) {
      out.differ(tensor.name, "parameter " + parameter_text(found->type, found->shape),
                 "parameter " + parameter_text(tensor.type, tensor.shape));
    }
  }
  for (safetensors_entry const& entry : file.header().entries) {
    if (!layout.find(entry.name)) out.extra(entry.name, "parameter " + parameter_text(entry.type, entry.shape));
  }
}

[[nodiscard]] inline std::string array_text(stored_array const& array) {
  return "codec " + array.codec + ", " + std::string(name_of(array.type)) + ", " +
         std::to_string(array.bytes_per_block) + " B a block";
}

inline void compare_arrays(differences& out, std::span<stored_array const> state,
                           std::span<stored_array const> checkpoint) {
  std::map<std::string, stored_array const*> stored;
  for (stored_array const& array : checkpoint) stored.emplace(array.name, &array);
  for (stored_array const& array : state) {
    auto const found = stored.find(array.name);
    if (found == stored.end()) {
      out.missing(array.name, "state array, " + array_text(array));
      continue;
    }
    if (*found->second != array) out.differ(array.name, array_text(*found->second), array_text(array));
    stored.erase(found);
  }
  for (auto const& [name, array] : stored) out.extra(name, "state array, " + array_text(*array));
}

/// That the generation holds every element of every parameter, in every array, and nothing else.
template <FileSystem FS>
void require_coverage(parameter_layout const& layout, std::span<stored_array const> arrays,
                      generation_reader<FS> const& file) {
  differences wrong;
  std::set<std::string> expected;
  for (std::size_t t = 0; t < layout.size(); ++t) {
    if (layout.elements(t) == 0) continue;
    expected.insert(layout[t].name);
    for (stored_array const& array : arrays) {
      std::uint64_t const held = file.elements(layout[t].name, array.name);
      if (held != layout.elements(t)) {
        wrong.differ(layout[t].name + '/' + array.name, std::to_string(held) + " elements",
                     std::to_string(layout.elements(t)) + " elements");
      }
    }
  }
  for (std::string const& name : file.parameters()) {
    if (expected.count(name) == 0) wrong.extra(name, "optimizer state");
  }
  wrong.raise_if_any(durable_errc::not_covered, file.path());
}

}  // namespace spillway::inline v0::detail
