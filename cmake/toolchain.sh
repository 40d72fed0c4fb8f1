# SPDX-License-Identifier: Apache-2.0
# What the scripts share: packages, the one way to configure and build, and the one way to run and count tests.
# POSIX sh, sourced by a script that has set `root` to the top of the tree:
#   require_packages NEED...           installs what is missing, or names it and exits with 2; `NEED?` may stay missing
#   configure_and_build PRESET TARGET...   presets as in CMakePresets.json; `all` is a target; its status is the build's
#   build_folder PRESET                prints where that preset builds
#   run_ctest PRESET ARGUMENT...       runs, lists what was skipped and why, adds to $passed, $failed and $skipped
#   print_totals                       `N passed, N failed[, N skipped]`; its status says whether nothing failed
# Needs: g++ cmake ninja boost liburing catch2 json fio clang clang-format

jobs=$(nproc 2>/dev/null || echo 2)
passed=0
failed=0
skipped=0

version_at_least() { # WANTED FOUND
  [ -n "$2" ] && [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}

# Does the compiler find this header? The second argument is a condition on the macros that it defines.
header_is_there() {
  printf '#include <%s>\n#if !(%s)\n#error\n#endif\n' "$1" "${2:-1}" | "${CXX:-g++}" -fsyntax-only -x c++ - 2>/dev/null
}

is_there() {
  case $1 in
    g++) version_at_least 12 "$("${CXX:-g++}" -dumpversion 2>/dev/null)" || [ -n "${CXX:-}" ] ;;
    cmake) version_at_least 3.25 "$(cmake --version 2>/dev/null | sed -n '1s/^cmake version //p')" ;;
    ninja) command -v ninja >/dev/null 2>&1 ;;
    boost) header_is_there boost/version.hpp 'BOOST_VERSION >= 108100' && header_is_there boost/asio/thread_pool.hpp ;;
    liburing) header_is_there liburing.h ;;
    catch2) header_is_there catch2/catch_all.hpp || header_is_there catch2/catch.hpp ;;
    json) header_is_there nlohmann/json.hpp ;;
    fio) command -v fio >/dev/null 2>&1 ;;
    clang) command -v clang++ >/dev/null 2>&1 ;;
    clang-format) command -v clang-format-14 >/dev/null 2>&1 ;;
    *) return 1 ;;
  esac
}

package_of() {
  case $1 in
    ninja) echo ninja-build ;;
    liburing) echo liburing-dev ;;
    json) echo nlohmann-json3-dev ;;
    clang-format) echo clang-format-14 ;;
    boost)
      # Debian 12 has 1.74 under the plain name and 1.81 beside it; from 1.81 on the plain name serves.
      candidate=$(apt-cache policy libboost-dev 2>/dev/null | sed -n 's/^ *Candidate: //p')
      if version_at_least 1.81 "$candidate"; then echo libboost-dev; else echo libboost1.81-dev; fi
      ;;
    *) echo "$1" ;;
  esac
}

describe() {
  case $1 in
    g++) echo "g++ 12 or newer" ;;
    cmake) echo "CMake 3.25 or newer" ;;
    boost) echo "Boost headers 1.81 or newer" ;;
    *) echo "$1" ;;
  esac
}

missing_needs() { # prints those of its arguments that are not there, without the `?`
  for need; do
    is_there "${need%\?}" || printf '%s ' "${need%\?}"
  done
}

require_packages() {
  missing=$(missing_needs "$@")
  [ -n "$missing" ] || return 0

  as_root=none
  if [ "$(id -u)" -eq 0 ]; then
    as_root=
  elif command -v sudo >/dev/null 2>&1 && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
    as_root=sudo
  fi
  if [ "$as_root" != none ] && command -v apt-get >/dev/null 2>&1; then
    # Before the names are chosen: a fresh image has no package lists.
    $as_root apt-get -qq -o DPkg::Lock::Timeout=300 update </dev/null >/dev/null 2>&1
    packages=$(for need in $missing; do package_of "$need"; done | tr '\n' ' ')
    echo "installing: $packages"
    log=$(mktemp)
    # shellcheck disable=SC2086 # a list
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 \
      install --no-install-recommends $packages </dev/null >"$log" 2>&1 || tail -n 20 "$log"
    rm -f "$log"
  else
    echo "not installed, and neither root nor sudo to install it with apt-get:"
    for need in $missing; do echo "  $(package_of "$need")"; done
  fi

  lacking=0
  for need; do
    case $need in
      *\?) ;;
      *)
        if ! is_there "$need"; then
          echo "needed and not there: $(describe "$need")"
          lacking=1
        fi
        ;;
    esac
  done
  [ "$lacking" -eq 0 ] || exit 2
}

build_folder() {
  case $1 in
    dev) echo "$root/build" ;;
    *) echo "$root/build-$1" ;;
  esac
}

# What only the tests need: without it the examples and benchmarks can still be built.
tests_can_be_built() { is_there catch2 && is_there json; }

on_if() { if "$@"; then echo ON; else echo OFF; fi; }

nvcc_is_there() {
  version_at_least 12 "$("${CUDACXX:-nvcc}" --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\),.*/\1/p')"
}

configure_and_build() { # PRESET TARGET...; $configure_options is added to the configure command
  preset=$1
  shift
  folder=$(build_folder "$preset")
  uring=$(on_if is_there liburing)
  cuda=$(on_if nvcc_is_there)
  [ "$uring" = ON ] || echo "without spillway::uring: liburing.h was not found"
  [ "$cuda" = ON ] || echo "without spillway::cuda: nvcc 12 or newer was not found"
  mkdir -p "$folder" || return 1
  # shellcheck disable=SC2086 # a list
  if ! (cd "$root" && cmake --preset "$preset" "-DSPILLWAY_ENABLE_URING=$uring" "-DSPILLWAY_ENABLE_CUDA=$cuda" \
    "-DSPILLWAY_BUILD_TESTS=$(on_if tests_can_be_built)" ${configure_options:-}) >"$folder/configure.log" 2>&1; then
    cat "$folder/configure.log"
    return 1
  fi
  # On after an error: all of them in one run.
  cmake --build "$folder" --parallel "$jobs" --target "$@" -- -k 0
}

run_ctest() { # PRESET ARGUMENT...
  folder=$(build_folder "$1")
  shift
  results=$folder/results.xml
  rm -f "$results"
  ctest --test-dir "$folder" --output-on-failure --no-tests=error --parallel "$jobs" --output-junit "$results" "$@"
  ctest_status=$?
  if [ ! -s "$results" ]; then
    echo "ctest left no results"
    failed=$((failed + 1))
    return
  fi
  # A test that could not be started is "notrun" as well, but it is no skip that a test asked for: it counts as failed.
  counts=$(awk '
    function plain(text) { gsub(/&lt;/, "<", text); gsub(/&gt;/, ">", text); gsub(/&quot;/, "\"", text)
                           gsub(/&apos;/, "\047", text); gsub(/&amp;/, "\\&", text); return text }
    function close_test() { if (skipping) printf "  %s: %s\n", name, reason == "" ? "no reason given" : reason >"/dev/stderr"; skipping = 0 }
    /<testcase / {
      close_test()
      name = $0; sub(/.*<testcase name="/, "", name); sub(/".*/, "", name); name = plain(name)
      reason = ""; next_is_reason = 0
      if ($0 ~ / status="run"/) passed++; else if ($0 ~ / status="notrun"/) waiting = 1; else failed++
    }
    /<skipped / && waiting { waiting = 0; if ($0 ~ /message="SKIP_/) { skipped++; skipping = 1 } else failed++ }
    next_is_reason && reason == "" { reason = $0; sub(/^ */, "", reason); reason = plain(reason); next_is_reason = 0 }
    /\[skip\]/ && skipping && reason == "" { reason = $0; sub(/.*\[skip\] */, "", reason); sub(/<\/.*/, "", reason); reason = plain(reason) }
    /explicitly with message:/ { next_is_reason = 1 }
    END { close_test(); print passed + 0, failed + 0, skipped + 0 }' "$results" 2>"$folder/skipped.txt")
  if [ -s "$folder/skipped.txt" ]; then
    echo "skipped:"
    cat "$folder/skipped.txt"
  fi
  # shellcheck disable=SC2086 # three numbers
  set -- $counts
  if [ "$ctest_status" -ne 0 ] && [ "$2" -eq 0 ]; then
    echo "ctest failed with status $ctest_status, and no test of it did"
    set -- "$1" 1 "$3"
  fi
  passed=$((passed + $1))
  failed=$((failed + $2))
  skipped=$((skipped + $3))
}

print_totals() {
  if [ "$skipped" -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
  else
    echo "$passed passed, $failed failed"
  fi
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
