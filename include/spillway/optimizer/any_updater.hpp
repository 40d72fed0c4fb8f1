// SPDX-License-Identifier: Apache-2.0
/// An updater whose type is chosen at run time, or made in a translation unit that only nvcc reads.
#pragma once

#include <spillway/optimizer/chunk_updater_concept.hpp>

#include <memory>
#include <utility>

namespace spillway::inline v0 {

/// Owns any ChunkUpdater and is one. Called once a chunk, never per element.
/// Threads: as the updater inside.
class any_updater {
 public:
  template <class Updater>
    requires(!std::same_as<std::remove_cvref_t<Updater>, any_updater> && ChunkUpdater<std::remove_cvref_t<Updater>>)
  explicit any_updater(Updater&& updater)
      : owned_(new std::remove_cvref_t<Updater>(std::forward<Updater>(updater)),
               [](void* p) { delete static_cast<std::remove_cvref_t<Updater>*>(p); }),
        calls_(&calls_of<std::remove_cvref_t<Updater>>) {}

  [[nodiscard]] updater_schema const& schema() const noexcept { return calls_->schema(owned_.get()); }
  void update(chunk_view const& chunk, update_scalars const& scalars, native_stream stream) {
    calls_->update(owned_.get(), chunk, scalars, stream);
  }
  void initialise(chunk_view const& chunk, std::span<float const* const> masters, native_stream stream) {
    calls_->initialise(owned_.get(), chunk, masters, stream);
  }

 private:
  struct calls {
    updater_schema const& (*schema)(void const*);
    void (*update)(void*, chunk_view const&, update_scalars const&, native_stream);
    void (*initialise)(void*, chunk_view const&, std::span<float const* const>, native_stream);
  };
  template <class U>
  static constexpr calls calls_of{
      [](void const* p) -> updater_schema const& { return static_cast<U const*>(p)->schema(); },
      [](void* p, chunk_view const& c, update_scalars const& s, native_stream t) {
        static_cast<U*>(p)->update(c, s, t);
      },
      [](void* p, chunk_view const& c, std::span<float const* const> m, native_stream t) {
        static_cast<U*>(p)->initialise(c, m, t);
      }};

  std::unique_ptr<void, void (*)(void*)> owned_;
  calls const* calls_;
};
static_assert(ChunkUpdater<any_updater>);

}  // namespace spillway::inline v0
