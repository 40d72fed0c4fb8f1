#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A full file system under the spill file, the checkpoints or the timeline: an error that names path and cause, and the
# checkpoint before it still loads.
. "$SPILLWAY_SOURCE/tests/support/programs.sh"
with_mounts "$@"
# shellcheck disable=SC2086 # $small is a list

mkdir full
must_run whole.log --steps 8 --checkpoint-every 4 --checkpoint whole || exit 1
whole=$(digest_in whole.log)

mount -t tmpfs -o size=1m none full || give_up "mount failed"
refused "full/" "No space left on device" -- "$train" $small --steps 8 --file full --file-share 1 --checkpoint saved
refused "full/" "No space left on device" -- "$train" $small --steps 8 --file full --file-share 1 --engine threads --checkpoint saved
[ -z "$(ls full)" ] || fail "left in the full file system: $(ls full)"
! ls -d saved/step-* >/dev/null 2>&1 || fail "a job that could not start left a checkpoint"

# One checkpoint fits, two do not.
mount -o remount,size=3m none full || give_up "remount failed"
for engine in auto threads; do
  rm -rf full/saved
  refused "full/saved/" "No space left on device" -- "$train" $small --steps 8 --checkpoint-every 4 --checkpoint full/saved --engine $engine
  cp refused.log full.log
  grep -q "^saved full/saved/step-00000004 " full.log || fail "the first checkpoint was not saved" full.log
  [ "$(ls full/saved)" = "LATEST
step-00000004" ] || fail "left by the failed save: $(ls full/saved)"
done
cp -r full/saved elsewhere
must_run log --steps 8 --resume elsewhere && same_digest log "$whole" "resumed from a copy"
refused "full/saved/" "No space left on device" -- "$train" $small --steps 8 --resume full/saved
mount -o remount,size=16m none full || give_up "remount failed"
must_run log --steps 8 --resume full/saved && same_digest log "$whole" "resumed when there was room again"

umount full
mount -t tmpfs -o size=64k none full || give_up "mount failed"
head -c 65536 /dev/zero >full/ballast
refused "full/t.json" "No space left on device" -- "$train" $small --steps 8 --timeline full/t.json
umount full
finish
