#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/run.sh [--full] [--asan | --tsan] [CTEST_ARGUMENT...]: installs what is missing, builds, and runs the tests. The
# last line is `N passed, N failed`, with `, N skipped` where tests could not run here; above it, each of these with its reason.
#   --full   adds the long runs
#   --asan   everything but the checks and packaging, with address and undefined-behaviour sanitizers
#   --tsan   what runs concurrently, with the thread sanitizer
# What follows goes to ctest: `tests/run.sh -R file_tier`.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/cmake/toolchain.sh"

preset=dev
configure_options=-DSPILLWAY_FULL_TESTS=OFF
while [ $# -gt 0 ]; do
  case $1 in
    --full) configure_options=-DSPILLWAY_FULL_TESTS=ON ;;
    --asan) preset=asan ;;
    --tsan) preset=tsan ;;
    --help)
      sed -n '3,8s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    *) break ;;
  esac
  shift
done

require_packages g++ cmake ninja boost catch2 json 'liburing?'
targets=all
[ "$preset" != tsan ] || targets=concurrent_programs
if ! configure_and_build "$preset" "$targets"; then
  echo "the build failed"
  failed=1
elif [ "$preset" = asan ]; then
  run_ctest asan -LE 'check|packaging' "$@"
elif [ "$preset" = tsan ]; then
  run_ctest tsan -L concurrent "$@"
else
  run_ctest dev "$@"
fi
print_totals
