#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A truncated file or a flipped byte anywhere in a checkpoint is an error that names the file; the checkpoint before it loads,
# and the run that goes on from there ends with the bits of one that nobody disturbed.
. "$SPILLWAY_SOURCE/tests/support/programs.sh"
# shellcheck disable=SC2086 # $small is a list

seed=${SPILLWAY_SEED:-$(date +%s)}
echo "seed $seed"
must_run whole.log --steps 9 --checkpoint whole --checkpoint-every 3 --keep 0 || exit 1
whole=$(digest_in whole.log)
rm -r whole/step-00000009 # as if the run had been killed after step 6
rm whole/LATEST

flip() { # FILE POSITION: invert the byte there
  byte=$(od -An -tu1 -j "$2" -N 1 "$1" | tr -d ' ')
  # shellcheck disable=SC2059 # the format is the byte
  printf "\\$(printf %03o $((255 - byte)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
size_of() { wc -c <"$1" | tr -d ' '; }

# LATEST is a hint: whatever happens to it is a note.
for latest in missing empty wrong; do
  rm -rf damaged
  cp -r whole damaged
  [ "$latest" = missing ] || : >damaged/LATEST
  [ "$latest" != wrong ] || echo "step-00000003 0123" >damaged/LATEST
  must_run log --steps 9 --resume damaged && same_digest log "$whole" "LATEST $latest"
  grep -q "^note: .*damaged/LATEST.*only a hint" log || fail "nothing is said of LATEST $latest" log
  grep -q "^resumed damaged/step-00000006 at step 6" log || fail "LATEST $latest: another checkpoint was taken" log
done

cases=0
damaged_one() { # WHAT FILE
  refused "damaged/step-00000006/$2" "step 3 at damaged/step-00000003 is whole" -- "$train" $small --steps 9 --resume damaged ||
    { echo "  ($1 of $2)"; return; }
  [ "$2" = MANIFEST.json ] || grep -q "checksum\|size\|header\|digest\|differ\|missing" refused.log || fail "$1 of $2: no cause" refused.log
  refused "damaged/step-00000006" -- "$train" $small --steps 9 --resume damaged/step-00000006
  must_run log --steps 9 --resume damaged/step-00000003 --checkpoint-every 3 || { echo "  (after $1 of $2)"; return; }
  same_digest log "$whole" "after $1 of $2"
  cases=$((cases + 1))
}
for file in MANIFEST.json model.safetensors optimizer-00000.safetensors; do
  size=$(size_of "whole/step-00000006/$file")
  places=$(awk -v seed="$seed" -v size="$size" 'BEGIN { srand(seed); print 0, 9, int(size / 2), size - 1; for (; n < 4; n++) print int(rand() * size) }')
  for place in $places; do
    rm -rf damaged
    cp -r whole damaged
    flip "damaged/step-00000006/$file" "$place"
    damaged_one "a flipped byte at $place" "$file"
  done
  for left in 0 7 $((size / 2)) $((size - 1)); do
    rm -rf damaged
    cp -r whole damaged
    truncate -s "$left" "damaged/step-00000006/$file"
    damaged_one "truncation to $left bytes" "$file"
  done
  if [ "$file" != MANIFEST.json ]; then
    rm -rf damaged
    cp -r whole damaged
    rm "damaged/step-00000006/$file"
    damaged_one "the removal" "$file"
  fi
done

# A directory without a manifest is no checkpoint: it is passed over, by name, and is not in the way of the run's own saves.
rm -rf damaged
cp -r whole damaged
rm damaged/step-00000006/MANIFEST.json
must_run log --steps 9 --resume damaged --checkpoint-every 3 && same_digest log "$whole" "without a manifest"
grep -q "^note: .*damaged/step-00000006" log || fail "nothing is said of the missing manifest" log
grep -q "^resumed damaged/step-00000003 at step 3" log || fail "it did not resume at step 3" log
echo "$cases cases"
finish
