#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compile_budget.sh COMPILER [--write]: what an include costs, as preprocessed lines (g++ -E -P), against the reviewed
# figures in compile_budget.txt. Over 3 % is a failure; a header that is not listed is one too. Lines are the same on every
# run, unlike seconds, but only for one compiler and one Boost: with others the check is skipped by name.
# Back ends and detail/ are not counted: the first depend on other packages' headers, the second come with what users include.
set -u
compiler=$1
here=$(cd "$(dirname "$0")" && pwd)
include=$(cd "$here/../../include" && pwd)
budget=$here/compile_budget.txt

boost=$(printf '#include <boost/version.hpp>\nBOOST_LIB_VERSION\n' | "$compiler" -E -P -x c++ - | tail -n 1 | tr -d '"')
key="# g++ $("$compiler" -dumpfullversion), Boost $boost"
# The first line is the licence, the second the key.
if [ "${2:-}" != --write ] && [ "$(sed -n 2p "$budget")" != "$key" ]; then
  echo "[skip] compile_budget.txt is for '$(sed -n 2p "$budget")', this is '$key'"
  exit 77
fi

measure() {
  cd "$include" || exit 1
  find spillway -name '*.hpp' -not -path '*/detail/*' |
    grep -vE '^spillway/(uring|cuda|nccl|mpi)/' | LC_ALL=C sort |
    xargs -P 2 -n 4 sh -c 'for header; do
      lines=$(echo "#include <$header>" | "$0" -std=c++20 -I. -E -P -x c++ - | wc -l)
      echo "${header#spillway/} $lines"
    done' "$compiler" | LC_ALL=C sort
}

if [ "${2:-}" = --write ]; then
  measured=$(measure)
  printf '%s\n%s\n%s\n' '# SPDX-License-Identifier: Apache-2.0' "$key" "$measured" >"$budget"
  exit
fi

measure | awk '
  FNR == NR { if ($1 !~ /^#/) allowed[$1] = $2; next }
  !($1 in allowed) { printf "%s: %d lines, and not listed in compile_budget.txt\n", $1, $2; bad = 1; next }
  $2 > allowed[$1] * 1.03 { printf "%s: %d lines, budget %d\n", $1, $2, allowed[$1]; bad = 1 }
  { seen[$1] = 1 }
  END {
    for (header in allowed) if (!(header in seen)) { printf "%s: listed in compile_budget.txt, but gone\n", header; bad = 1 }
    if (bad) print "A figure that is meant to change: sh tests/static/compile_budget.sh g++ --write, and review the lines"
    exit bad
  }' "$budget" -
