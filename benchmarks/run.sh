#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# benchmarks/run.sh [--json] [NAME...] [-- ARGUMENT...]: builds and runs the named benchmarks, or all of them, and ends each
# with `benchmark NAME: R x BASELINE (goal G)`: R is our speed over the baseline's. README.md says what a benchmark prints.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/cmake/toolchain.sh"

known_names() {
  {
    find "$root/benchmarks" -name '*_bench.cpp' | sed 's|.*/||; s|_bench\.cpp$||'
    find "$root/benchmarks" -maxdepth 1 -name '*.sh' ! -name run.sh | sed 's|.*/||; s|\.sh$||'
  } | LC_ALL=C sort -u
}

json=no
names=
while [ $# -gt 0 ]; do
  case $1 in
    --json) json=yes ;;
    --help)
      sed -n '3,4s/^# \{0,1\}//p' "$0"
      echo "names:" $(known_names)
      exit 0
      ;;
    --)
      shift
      break
      ;;
    -*)
      echo "unknown option $1; see benchmarks/run.sh --help"
      exit 2
      ;;
    *)
      if ! known_names | grep -qxF -e "$1"; then
        echo "there is no benchmark $1; there are:" $(known_names)
        exit 2
      fi
      names="$names $1"
      ;;
  esac
  shift
done
[ -n "$names" ] || names=$(known_names)
[ -n "$names" ] || { echo "there is no benchmark"; exit 2; }

if [ "$json" = yes ]; then
  exec 3>&1 1>&2
else
  exec 3>/dev/null
fi

sources() { # NAME: the files that make it
  find "$root/benchmarks" -name "$1_bench.cpp" -o -path "$root/benchmarks/$1.sh"
}
targets=
needs=
for name in $names; do
  needs="$needs $(sources "$name" | while IFS= read -r file; do sed -n 's,^\(#\|//\) needs: ,,p' "$file"; done | tr '\n' ' ')"
  [ -z "$(find "$root/benchmarks" -name "${name}_bench.cpp")" ] || targets="$targets ${name}_bench"
done
# shellcheck disable=SC2086 # lists
{
  require_packages g++ cmake ninja boost 'liburing?' $needs
  [ -z "$targets" ] || configure_and_build dev $targets || exit 1
}

# From the lines of one run: the closing line, and into a file the JSON line.
conclude='
  function median(list, n,  i, j, t) {
    for (i = 2; i <= n; i++) { t = list[i]; for (j = i - 1; j >= 1 && list[j] > t; j--) list[j + 1] = list[j]; list[j + 1] = t }
    return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
  }
  function number(text) { return text ~ /^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$/ }
  $1 == "baseline" { baseline = $2 }
  $1 == "goal" && number($2) { goal = $2 }
  $1 == "round" && number($2) && number($3) && $2 > 0 && $3 > 0 {
    ratio[++n] = $3 / $2
    rounds = rounds (n > 1 ? "," : "") sprintf("{\"ours\":%s,\"baseline\":%s}", $2, $3)
  }
  $1 == "value" && number($3) {
    gsub(/["\\]/, "", $0)
    values = values (values == "" ? "" : ",") sprintf("\"%s\":{\"number\":%s,\"unit\":\"%s\"}", $2, $3, $4)
  }
  END {
    if (baseline == "" || goal == "" || n < 5) {
      printf "benchmark %s: not measured: it must print its baseline, its goal and 5 rounds, and printed %d rounds\n", name, n
      exit 1
    }
    r = median(ratio, n)
    printf "benchmark %s: %.2f x %s (goal %s)\n", name, r, baseline, goal
    printf "{\"benchmark\":\"%s\",\"ratio\":%.4f,\"baseline\":\"%s\",\"goal\":%s,\"rounds\":[%s],\"values\":{%s},\"machine\":\"%s\"}\n",
      name, r, baseline, goal, rounds, values, machine >json
  }'
machine="$(uname -m), $(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1 | tr -d '"\\'), Linux $(uname -r)"

status=0
printed=$(mktemp) || exit 1
trap 'rm -f "$printed" "$printed.json" "$printed.status"' EXIT
for name in $names; do
  SPILLWAY_BENCH=$(build_folder dev)/benchmarks/${name}_bench
  export SPILLWAY_BENCH
  if [ -f "$root/benchmarks/$name.sh" ]; then
    set -- sh "$root/benchmarks/$name.sh" "$@"
  else
    set -- "$SPILLWAY_BENCH" "$@"
  fi
  # Through a file: a pipe would hide the exit status.
  if { "$@"; echo "$?" >"$printed.status"; } | tee "$printed" && [ "$(cat "$printed.status")" -eq 0 ]; then
    if awk -v name="$name" -v machine="$machine" -v json="$printed.json" "$conclude" "$printed"; then
      cat "$printed.json" >&3
    else
      status=1
    fi
  else
    echo "benchmark $name: failed with exit status $(cat "$printed.status")"
    status=1
  fi
  if [ "$1" = sh ]; then shift 2; else shift; fi
done
exit "$status"
