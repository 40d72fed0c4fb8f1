#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The same bits whatever the chunk size, the slots, the engine, the threads, and wherever the state lives.
. "$SPILLWAY_SOURCE/tests/support/programs.sh"

one() { # WANTED ARGUMENT...
  wanted=$1
  shift
  rm -rf spill checkpoints
  must_run log --steps 5 --file spill --checkpoint checkpoints "$@" && same_digest log "$wanted" "$*" && runs=$((runs + 1))
}

runs=0
must_run whole.log --steps 5 --checkpoint whole --offload none --checkpoint-every 3 --keep 0 || exit 1
whole=$(digest_in whole.log)
for chunk in 4096 65536 1048576 21504; do
  for slots in 2 4 8; do
    for share in 0 0.3 1; do
      for engine in auto threads; do
        for threads in 1 2; do
          one "$whole" --chunk "$chunk" --slots "$slots" --file-share "$share" --engine "$engine" --threads "$threads"
        done
      done
    done
    one "$whole" --chunk "$chunk" --slots "$slots" --offload host
    one "$whole" --chunk "$chunk" --slots "$slots" --offload none
  done
done

# Several micro-batches are another run; its bits must not depend on the rest either.
must_run micro.log --steps 5 --micro-batches 3 --checkpoint micro --offload host || exit 1
micro=$(digest_in micro.log)
[ "$micro" != "$whole" ] || fail "one and three micro-batches have the same digest"
for chunk in 4096 21504; do
  for engine in auto threads; do
    one "$micro" --micro-batches 3 --chunk "$chunk" --engine "$engine" --file-share 1 --read-ahead 0
    one "$micro" --micro-batches 3 --chunk "$chunk" --engine "$engine" --file-share 0.5 --read-ahead 7 --slots 8 --direct off
  done
done

# A checkpoint goes on under another arrangement than it was saved from.
for arrangement in "--chunk 4096 --slots 2 --file-share 1" "--chunk 21504 --slots 8 --engine threads" "--offload host --threads 2"; do
  rm -rf spill moved
  cp -r whole moved
  # shellcheck disable=SC2086 # a list
  must_run log --steps 5 --resume moved/step-00000003 --file spill $arrangement &&
    same_digest log "$whole" "resumed with $arrangement" && runs=$((runs + 1))
done
echo "$runs runs with equal digests"
finish
