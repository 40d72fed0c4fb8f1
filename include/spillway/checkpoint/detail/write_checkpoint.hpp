// SPDX-License-Identifier: Apache-2.0
/// Writes the files of one save and fills in its manifest.
#pragma once

#include <spillway/checkpoint/detail/spill_digest.hpp>
#include <spillway/checkpoint/detail/state_leaves.hpp>
#include <spillway/durable/generation_file.hpp>
#include <spillway/durable/manifest.hpp>
#include <spillway/durable/publish.hpp>
#include <spillway/durable/retention.hpp>
#include <spillway/durable/tensor_file.hpp>
#include <spillway/state/state_schema.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::inline v0::detail {

/// Leaves up to this size lie in the manifest, until they are `inline_leaves_limit` together.
inline constexpr std::uint64_t inline_leaf_limit = 4096;
inline constexpr std::uint64_t inline_leaves_limit = 1ULL << 20U;

[[nodiscard]] inline safetensors_metadata file_metadata(std::string_view format, hash128 save_id) {
  return {{"format", std::string(format)}, {std::string(save_id_key), to_string(save_id)}};
}

template <FileSystem FS>
void write_leaves(FS& fs, pending_checkpoint<FS>& pending, leaf_collection const& collection, manifest& record) {
  std::uint64_t inline_bytes = 0;
  std::vector<safetensors_tensor> tensors;
  std::vector<std::span<std::byte const>> values;
  for (leaf_view const& leaf : collection.leaves()) {
    std::uint64_t const size = leaf.value.size();
    bool const fits = leaf.about.kind == leaf_kind::scalar ||
                      (size <= inline_leaf_limit && inline_bytes + size <= inline_leaves_limit);
    manifest_leaf entry{.about = leaf.about};
    if (fits) {
      inline_bytes += size;
      entry.value.emplace(leaf.value.begin(), leaf.value.end());
    } else {
      entry.file = leaves_file;
      tensors.push_back({leaf.about.name, leaf.about.type, leaf.about.shape});
      values.push_back(leaf.value);
    }
    record.leaves.push_back(std::move(entry));
  }
  if (tensors.empty()) return;
  auto const order = tensor_order(tensors);
  std::vector<safetensors_tensor> ordered;
  for (std::size_t const i : order) ordered.push_back(tensors[i]);
  std::string const name{leaves_file};
  tensor_file_writer<FS> out{fs, pending.path_of(name),
                             safetensors_layout{ordered, file_metadata("spillway.leaves.1", pending.save_id())},
                             pending.mode().file};
  for (std::size_t const i : order) {
    out.append(values[i]);
    out.end_tensor();
  }
  record.files.push_back(out.finish(name));
}

template <FileSystem FS, SpilledState S>
file_record write_parameters(FS& fs, pending_checkpoint<FS>& pending, S& spill, state_digests& digests) {
  parameter_layout const& layout = spill.layout();
  std::vector<safetensors_tensor> tensors;
  for (tensor_spec const& tensor : layout.tensors()) tensors.push_back({tensor.name, tensor.type, tensor.shape});
  auto const order = tensor_order(tensors);
  std::vector<safetensors_tensor> ordered;
  for (std::size_t const t : order) ordered.push_back(tensors[t]);
  std::string const name{parameters_file};
  // "pt" is what loaders of model weights ask for.
  tensor_file_writer<FS> out{fs, pending.path_of(name),
                             safetensors_layout{ordered, file_metadata("pt", pending.save_id())}, pending.mode().file};
  for (std::size_t const t : order) {
    parameter_digest parameter{layout[t]};
    spill.export_parameter(t, [&](std::span<std::byte const> data) {
      parameter.add(data);
      out.append(data);
    });
    digests.parameters += parameter.finish();
    out.end_tensor();
  }
  return out.finish(name);
}

template <FileSystem FS, SpilledState S>
file_record write_generation(FS& fs, pending_checkpoint<FS>& pending, S& spill, state_digests& digests) {
  parameter_layout const& layout = spill.layout();
  std::span<stored_array const> const arrays = spill.arrays();
  std::string const name{generation_file};
  generation_layout places{layout, spill.chunks(), arrays, {.save_id = pending.save_id(), .rule = spill.rule()}};
  generation_writer<FS> out{fs, pending.path_of(name), std::move(places), pending.mode().file};
  for (std::size_t c = 0; c < spill.chunks().size(); ++c) {
    spill.export_chunk(c, [&](std::size_t array, std::span<std::byte const> data) {
      out.write(c, array, data);
      add_chunk_array(digests.optimizer, layout, spill.chunks()[c], arrays[array], data);
    });
  }
  return out.finish(name);
}

/// All files, durable, in the pending directory; `record` gets everything but what places it in a sequence.
template <FileSystem FS, class State>
void write_files(FS& fs, pending_checkpoint<FS>& pending, State& state, leaf_collection const& leaves,
                 manifest& record) {
  record.schema = schema_hash(leaves.descriptions());
  for (leaf_view const& leaf : leaves.leaves()) record.digests.leaves += digest_of_leaf(leaf.about, leaf.value);
  write_leaves(fs, pending, leaves, record);
  with_spill(state, [&](std::string const& member, auto& spill) {
    std::span<stored_array const> const arrays = spill.arrays();
    record.spill = manifest_spill{.member = member,
                                  .layout_hash = spill.layout().hash(),
                                  .rule = spill.rule(),
                                  .chunk_elements = spill.chunks().largest() * block_elements,
                                  .arrays = {arrays.begin(), arrays.end()},
                                  .parameters = std::string(parameters_file),
                                  .generation = std::string(generation_file)};
    record.files.push_back(write_parameters(fs, pending, spill, record.digests));
    record.files.push_back(write_generation(fs, pending, spill, record.digests));
  });
}

}  // namespace spillway::inline v0::detail
