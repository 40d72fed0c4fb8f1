// SPDX-License-Identifier: Apache-2.0
/// A manifest to text and back.
#pragma once

#include <spillway/durable/detail/manifest_parser.hpp>
#include <spillway/durable/detail/manifest_writer.hpp>
#include <spillway/durable/manifest.hpp>

#include <string>
#include <string_view>

namespace spillway::inline v0 {

/// The manifest as text, its own hash last. The same manifest gives the same bytes.
/// Errors   durable_errc::manifest_too_large; format_errc::json_not_utf8 for a name that is no text.
/// Threads  safe.
[[nodiscard]] inline std::string write_manifest(manifest const& what) { return detail::manifest_writer{}.write(what); }

/// The inverse. Everything is checked: version, hash, form, and that the segments of each file cover it.
/// Errors   durable_errc: manifest_version, manifest_damaged, manifest_too_large, with `path`.
/// Threads  safe.
[[nodiscard]] inline manifest parse_manifest(std::string_view text, std::string_view path) {
  return detail::manifest_parser{text, path}.parse();
}

}  // namespace spillway::inline v0
