#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What cannot work is refused at once, by a message that names the thing and the cause.
. "$SPILLWAY_SOURCE/tests/support/programs.sh"
# shellcheck disable=SC2086 # $small is a list

# --- the command line
"$train" --help >help.log 2>&1 || fail "--help ends with exit status $?" help.log
for flag in text steps seed batch micro-batches threads width layers heads context lr device-memory host-memory file-space offload \
  file-share file engine direct chunk slots read-ahead checkpoint checkpoint-every keep resume timeline; do
  grep -qE "^  --$flag .*\[.*\]" help.log || fail "--help does not list --$flag with its default" help.log
done
"$train" --steps 5 --help >help.log 2>&1 || fail "--help after another flag ends with exit status $?" help.log
refused "--stepz: unknown flag" -- "$train" --stepz 5
refused "steps: unknown flag" -- "$train" steps
refused "--steps: given twice" -- "$train" --steps 20 --steps 20
refused "--steps: '2o' is not a whole number" -- "$train" --steps 2o
refused "--steps: '-1' is not" -- "$train" --steps=-1
refused "--steps: needs a value" -- "$train" --steps
refused "--lr: 'nan' is not a finite number" -- "$train" --lr nan
refused "--chunk: '18446744073709551616' is not" -- "$train" --chunk 18446744073709551616
refused "--host-memory: '1GB' is not a size" -- "$train" --host-memory 1GB
refused "--offload: 'disk' is not one of file|host|none" -- "$train" --offload disk
refused "--steps must be at least 1" -- "$train" --steps 0
refused "--slots must be 2 to 1024" -- "$train" --slots 1
refused "--file-share must lie between 0 and 1" -- "$train" --file-share 1.5
refused "--warmup 10 is longer than --steps 5" -- "$train" --steps 5
refused "7 heads do not divide a width of 320" -- "$train" --heads 7
refused "chunk" -- "$train" $small --steps 5 --chunk 1023
refused "--resume saves where it resumes" -- "$train" --resume here --checkpoint there

# --- budgets: each is named, with what is missing, and nothing is allocated: neither files nor the job's memory
limited=
sanitized || limited="ulimit -v 1048576;" # a sanitizer reserves terabytes of addresses
refused "the device budget of 100.0 MiB is short by 6.90 MiB" "activations" -- "$train" --device-memory 100MiB
refused "the device budget of 112.0 MiB is short by" "optimizer state 114.5 MiB" -- "$train" --offload none
refused "the host budget of 32.0 MiB is short by" "staging slots" "gradients" -- "$train" --host-memory 32MiB
refused "the host budget of 100.0 MiB is short by" "optimizer state" -- "$train" --host-memory 100MiB --offload host
refused "the file budget of 10.0 MiB is short by 74.5 MiB" -- "$train" --file-space 10MiB
refused "the host budget" "the file budget" -- "$train" --host-memory 1MiB --file-space 1MiB
for offload in file host none; do
  refused "the device budget of 112.0 MiB is short by" "TiB" -- sh -c "$limited exec \"\$@\"" sh \
    "$train" --width 65536 --layers 96 --heads 64 --offload "$offload"
done
[ -z "$(find . -name 'spillway-*')" ] || fail "refused jobs left spill files: $(find . -name 'spillway-*')"
[ ! -e train_gpt.checkpoints ] || fail "refused jobs made the directory of checkpoints"

# --- paths
: >a_file
mkdir a_directory
refused "a_directory" "Is a directory" -- "$train" $small --text a_directory
refused "not_there" "No such file or directory" -- "$train" $small --text not_there
refused "a_file" -- "$train" $small --text a_file # nothing in it to train on
refused "a_file" "Not a directory" -- "$train" $small --file a_file
refused "not_there/spill" "No such file or directory" -- "$train" $small --file not_there/spill
refused "a_file" "Not a directory" -- "$train" $small --checkpoint a_file
refused "a_file" "Not a directory" -- "$train" $small --checkpoint a_file/below
refused "a_directory" "Is a directory" -- "$train" $small --timeline a_directory
refused "not_there/t.json" "No such file or directory" -- "$train" $small --timeline not_there/t.json

# --- what --resume is given
refused "a_directory" "no checkpoint" -- "$train" $small --resume a_directory
refused "not_there" "no checkpoint" -- "$train" $small --resume not_there
[ ! -e not_there ] || fail "--resume made the directory that it was to read"
must_run log --steps 6 --checkpoint-every 3 --checkpoint saved || exit 1
whole=$(digest_in log)
refused "saved" "has checkpoints already" -- "$train" $small --steps 6 --checkpoint saved
refused "step 4 was asked for" "there are steps 3, 6" -- "$train" $small --steps 6 --resume saved/step-00000004
refused "saved/step-00000006" "was made with" "--seed 1234" "this run has" "--seed 5" -- "$train" $small --steps 6 --seed 5 --resume saved
refused "saved/step-00000006" "missing from the checkpoint" "h.2.ln_1.weight" -- "$train" --width 64 --layers 3 --heads 4 --context 32 --batch 2 --warmup 2 --steps 6 --resume saved
mkdir -p "unfinished/step-00000003.tmp-00000000000000000000000000000001"
refused "unfinished" "a save that was not finished" -- "$train" $small --steps 6 --resume unfinished
must_run log --steps 6 --checkpoint unfinished && same_digest log "$whole" "after an unfinished save"
must_run log --steps 6 --resume saved/step-00000003/ && same_digest log "$whole" "resumed from step 3"
[ -f saved/step-00000006.aside-1/MANIFEST.json ] || fail "the later checkpoint was not set aside" log
must_run log --steps 6 --resume saved && same_digest log "$whole" "resumed at its end"
finish
