#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: ptx_contract.sh NVCC ROOT
# The update kernels of cuda::updater, as nvcc translates them: no contraction, no flush to zero and no approximation, also under
# -use_fast_math; the same arithmetic with and without it; host stubs hidden. Needs no GPU.
set -eu
nvcc=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
complain() {
  echo "ptx_contract: $*" >&2
  failed=1
}
translate() { # NAME SOURCE FLAGS...
  name=$1 source=$2
  shift 2
  mkdir "$work/$name"
  "$nvcc" -std=c++20 -gencode arch=compute_75,code=compute_75 -I"$root/include" -I"$root/tests" "$@" \
    --keep --keep-dir "$work/$name" -c "$source" -o "$work/$name/out.o"
  cat "$work/$name"/*.ptx > "$work/$name.ptx"
}
# Operations on numbers, without their registers, in order. Moves, loads, stores, integers and bits are left out.
arithmetic() { grep -oE '^\s*(add|sub|mul|div|sqrt|fma|mad|rcp|rsqrt|min|max|ex2|lg2|setp\.[a-z]+)\.[a-z.]*f(32|64)' "$1" | tr -d ' \t'; }
forbidden='fma\.|mad\.[a-z.]*f|\.ftz|\.approx|\.full|^\s*call'

# What the search must be able to find.
cat > "$work/control.cu" <<'END'
__global__ void control(float* p, float a, float b) { p[0] = p[0] * a + b / p[1]; }
END
translate control "$work/control.cu" -use_fast_math
for word in fma ftz; do
  grep -E "$forbidden" "$work/control.ptx" | grep -q "$word" || complain "the search does not find $word where it is"
done

translate plain "$root/tests/gpu/make_updater.cu"
translate fast "$root/tests/gpu/make_updater.cu" -use_fast_math
for name in plain fast; do
  kernels=$(grep -c '\.entry .*detail10update_run' "$work/$name.ptx" || true)
  [ "$kernels" -ge 4 ] || complain "$name: $kernels update kernels, one for each pair of types was expected"
  grep -q 'div\.rn\.f32' "$work/$name.ptx" || complain "$name: no correctly rounded division"
  grep -q 'sqrt\.rn\.f32' "$work/$name.ptx" || complain "$name: no correctly rounded square root"
  if grep -nE "$forbidden" "$work/$name.ptx" >&2; then complain "$name: the lines above break the contract"; fi
done
arithmetic "$work/plain.ptx" > "$work/plain.txt"
arithmetic "$work/fast.ptx" > "$work/fast.txt"
[ -s "$work/plain.txt" ] || complain "no arithmetic was found"
cmp "$work/plain.txt" "$work/fast.txt" || complain "-use_fast_math changes the arithmetic"

# A stub that two shared objects share launches the kernel of the wrong one.
if command -v readelf > /dev/null; then
  readelf -sW "$work/plain/out.o" | grep 'detail10update_run' > "$work/stubs" || complain "no host stub of update_run was found"
  if grep -E 'GLOBAL|WEAK' "$work/stubs" | grep -v HIDDEN >&2; then
    complain "the host stubs above are visible outside their shared object"
  fi
fi
exit $failed
