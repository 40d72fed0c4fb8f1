#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SIGTERM and SIGINT finish the step, save, and end with exit status 0; the run goes on from there with the same bits.
. "$SPILLWAY_SOURCE/tests/support/programs.sh"

steps=150
must_run whole.log --steps "$steps" --checkpoint whole --file spill --checkpoint-every 0 || exit 1

for signal in TERM INT; do
  for every in 0 1; do # 1: half of the time is saving
    checkpoints=on_$signal.$every
    log=$checkpoints.log
    # shellcheck disable=SC2086 # a list
    "$train" $small --steps "$steps" --checkpoint "$checkpoints" --file spill --checkpoint-every "$every" >"$log" 2>&1 &
    child=$!
    until grep -q '^step 20/' "$log" || ! kill -0 "$child" 2>/dev/null; do sleep 0.02; done
    kill -s "$signal" "$child"
    wait "$child"
    status=$?
    [ "$status" -eq 0 ] || { fail "exit status $status after SIG$signal" "$log"; continue; }
    last=$(last_step_in "$log")
    [ "$last" -lt "$steps" ] || fail "SIG$signal came too late: all steps were done"
    grep -q "^signal .*: the step is finished" "$log" || fail "the log does not speak of the signal" "$log"
    [ -f "$checkpoints/$(printf 'step-%08d' "$last")/MANIFEST.json" ] || fail "no checkpoint of step $last" "$log"
    must_run resumed.log --steps "$steps" --resume "$checkpoints" --file spill --checkpoint-every 0 &&
      same_digest resumed.log "$(digest_in whole.log)" "resumed after SIG$signal"
    grep -q "^resumed $checkpoints/step-0*$last at step $last\$" resumed.log || fail "it did not resume at step $last" resumed.log
  done
done
finish
