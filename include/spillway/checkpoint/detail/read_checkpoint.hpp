// SPDX-License-Identifier: Apache-2.0
/// Reads one checkpoint into a state: compare, verify everything, and only then change anything.
#pragma once

#include <spillway/checkpoint/detail/compare_state.hpp>
#include <spillway/checkpoint/detail/spill_digest.hpp>
#include <spillway/checkpoint/detail/state_leaves.hpp>
#include <spillway/core/config.hpp>
#include <spillway/durable/checked_safetensors.hpp>
#include <spillway/durable/generation_reader.hpp>
#include <spillway/durable/manifest.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace spillway::inline v0::detail {

/// The files of a checkpoint, open. Open descriptors outlive a retention that removes their names.
template <FileSystem FS>
class open_checkpoint {
 public:
  open_checkpoint(FS& fs, std::string path, manifest record) : path_(std::move(path)), record_(std::move(record)) {
    for (file_record const& file : record_.files) {
      if (record_.spill && file.name == record_.spill->generation) {
        generation_.emplace(fs, path_, file, record_.save_id, record_.spill->arrays);
      } else {
        tensors_.emplace_back(file.name, checked_safetensors<FS>{fs, path_, file, record_.save_id});
      }
    }
  }

  [[nodiscard]] std::string const& path() const noexcept { return path_; }
  [[nodiscard]] manifest const& record() const noexcept { return record_; }
  [[nodiscard]] generation_reader<FS>& generation() noexcept { return *generation_; }
  /// Pre: the manifest names it, and not as the generation.
  [[nodiscard]] checked_safetensors<FS>& tensors(std::string const& name) noexcept {
    auto const found =
        std::find_if(tensors_.begin(), tensors_.end(), [&](auto const& file) { return file.first == name; });
    SPILLWAY_EXPECTS(found != tensors_.end());
    return found->second;
  }
  void verify() {
    if (generation_) generation_->verify();
    for (auto& [name, file] : tensors_) file.verify();
  }

 private:
  std::string path_;
  manifest record_;
  std::optional<generation_reader<FS>> generation_{};
  std::vector<std::pair<std::string, checked_safetensors<FS>>> tensors_{};
};

template <FileSystem FS>
[[nodiscard]] leaf_values load_leaves(open_checkpoint<FS>& from) {
  leaf_values values;
  state_digest found;
  for (manifest_leaf const& entry : from.record().leaves) {
    std::vector<std::byte> value;
    if (entry.value) {
      value = *entry.value;
    } else {
      checked_safetensors<FS>& file = from.tensors(entry.file);
      safetensors_entry const* const tensor = file.find(entry.about.name);
      if (tensor == nullptr || tensor->type != entry.about.type || tensor->shape != entry.about.shape) {
        throw error{durable_errc::not_covered,
                    {.where = "checkpoint file",
                     .path = file.path(),
                     .detail = "leaf " + quoted(entry.about.name) + " is not as the manifest says"}};
      }
      value.resize(tensor->end - tensor->begin);
      file.read(bytes{tensor->begin}, value);
    }
    found += digest_of_leaf(entry.about, value);
    values.emplace(entry.about.name, std::move(value));
  }
  if (found != from.record().digests.leaves) {
    throw error{durable_errc::digest_mismatch, {.where = "checkpoint", .path = from.path(), .detail = "leaves"}};
  }
  return values;
}

/// Pre: everything was compared and verified. From begin_import on a failure leaves the spilled state unusable.
template <FileSystem FS, SpilledState S>
void import_spill(S& spill, std::string const& member, open_checkpoint<FS>& from, leaf_values const& values) {
  parameter_layout const& layout = spill.layout();
  std::span<stored_array const> const arrays = spill.arrays();
  state_digests found;
  spill.begin_import();
  for (std::size_t c = 0; c < spill.chunks().size(); ++c) {
    chunk const& part = spill.chunks()[c];
    spill.import_chunk(c, [&](std::size_t array, std::span<std::byte> to) {
      SPILLWAY_EXPECTS(to.size() == array_bytes(arrays[array], part.blocks.size()).count);
      std::uint64_t const block = arrays[array].bytes_per_block;
      for (run const& r : part.runs) {
        from.generation().read_blocks(layout[r.tensor].name, arrays[array].name, r.first / block_elements,
                                      blocks_for(r.count),
                                      to.subspan(r.offset / block_elements * block, blocks_for(r.count) * block));
      }
      std::fill(to.begin() + static_cast<std::ptrdiff_t>(part.blocks.size() * block), to.end(), std::byte{});
      add_chunk_array(found.optimizer, layout, part, arrays[array], to);
    });
  }
  checked_safetensors<FS>& parameters = from.tensors(from.record().spill->parameters);
  for (std::size_t t = 0; t < layout.size(); ++t) {
    safetensors_entry const& entry = *parameters.find(layout[t].name);
    parameter_digest digest{layout[t]};
    std::uint64_t at = entry.begin;
    spill.import_parameter(t, [&](std::span<std::byte> to) {
      SPILLWAY_EXPECTS(to.size() <= entry.end - at);
      parameters.read(bytes{at}, to);
      digest.add(to);
      at += to.size();
    });
    found.parameters += digest.finish();
  }
  leaf_filler const fill{values, true};
  spill.visit_counters(state_walker<leaf_filler const>{fill, member + '/'});
  if (found.optimizer != from.record().digests.optimizer || found.parameters != from.record().digests.parameters) {
    throw error{durable_errc::digest_mismatch,
                {.where = "checkpoint",
                 .path = from.path(),
                 .detail = "what was read is not what was saved, though every checksum held; the state is unusable"}};
  }
  spill.finish_import();
}

/// Compare, verify, load. Until everything is known to be right nothing of `state` has changed.
template <FileSystem FS, class State>
void read_state(open_checkpoint<FS>& from, State& state) {
  leaf_collection const leaves = collect_leaves(state);
  manifest const& record = from.record();
  differences schema;
  differences rules;
  compare_leaves(schema, leaves, record);
  if (record.spill && record.spill->member != leaves.spill()) schema.extra(record.spill->member, "spilled state");
  if (!leaves.spill().empty() && (!record.spill || record.spill->member != leaves.spill())) {
    schema.missing(leaves.spill(), "spilled state");
  }
  bool const with = record.spill && record.spill->member == leaves.spill();
  with_spill(state, [&](std::string const&, auto& spill) {
    if (!with) return;
    compare_parameters(schema, spill.layout(), from.tensors(record.spill->parameters));
    compare_arrays(rules, spill.arrays(), record.spill->arrays);
    std::string const rule = spill.rule();
    if (rule != record.spill->rule) rules.differ("rule", record.spill->rule, rule);
  });
  std::string const path = from.path() + '/' + manifest_name;
  schema.raise_if_any(durable_errc::schema_mismatch, path);
  rules.raise_if_any(durable_errc::rule_mismatch, path);
  with_spill(state, [&](std::string const&, auto& spill) {
    if (spill.layout().hash() != record.spill->layout_hash) {
      differences groups;
      groups.differ("parameters", "another order or other groups", "those of its layout");
      groups.raise_if_any(durable_errc::schema_mismatch, path);
    }
    require_coverage(spill.layout(), spill.arrays(), from.generation());
  });

  from.verify();
  leaf_values const values = load_leaves(from);
  leaf_filler prepare{values, false};
  walk_state(state, prepare);
  with_spill(state, [&](std::string const& member, auto& spill) { import_spill(spill, member, from, values); });
  leaf_filler assign{values, true};
  walk_state(state, assign);
}

}  // namespace spillway::inline v0::detail
