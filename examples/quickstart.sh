#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# examples/quickstart.sh: trains a GPT whose optimizer state does not fit its (simulated) accelerator and mostly lives in a
# file, kills a second run in the middle of a step, resumes it from its checkpoint, and compares every bit with the first.
# Installs what is missing, builds, and takes a minute or two. The last line is the verdict, and so is the exit status.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/cmake/toolchain.sh"

steps=40
every=10     # steps between checkpoints
kill_after=23

verdict() { # yes or no: the last line, and the end
  echo "quickstart: loss ${loss_first:-?} -> ${loss_last:-?}, optimizer state ${state:-?} MiB in file, device budget ${device:-?} MiB, resumed bitwise equal: $1"
  [ "$1" = yes ] || exit 1
  exit 0
}
stop() {
  echo "quickstart: $1"
  if [ -n "${2:-}" ] && [ -s "$2" ]; then sed 's/^/    /' "$2" | tail -n 20; fi
  verdict no
}

require_packages g++ cmake ninja boost 'liburing?'
echo "quickstart: building train_gpt"
configure_and_build dev train_gpt || stop "the build failed"
build=$(build_folder dev)
train=$build/examples/train_gpt
timeline=$build/quickstart-timeline.json
scratch=$(mktemp -d "$build/quickstart.XXXXXX") || stop "no scratch folder in $build"
child=
clean() {
  [ -z "$child" ] || kill -9 "$child" 2>/dev/null
  rm -rf "$scratch"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
cd "$scratch" || exit 1

# The run's lines so far, but of the steps only the first and every tenth; $wanted says which others.
shown=0
show_new_lines() {
  new=$(tail -n "+$((shown + 1))" "$1")
  [ -n "$new" ] || return 0
  shown=$((shown + $(printf '%s\n' "$new" | wc -l)))
  printf '%s\n' "$new" | grep -vE '^step ([2-9]|[0-9]+[1-9])/' | grep -E "$wanted" | sed 's/^/    /'
}
run() { # LOG ARGUMENT...: returns when it ends; $status is how
  log=$1
  shift
  shown=0
  "$train" --steps "$steps" --checkpoint-every "$every" --keep 2 "$@" >"$log" 2>&1 &
  child=$!
  while kill -0 "$child" 2>/dev/null; do
    show_new_lines "$log"
    if [ -n "${kill_at:-}" ] && grep -q "^step $kill_at/" "$log"; then
      sleep 0.05 # into the next step
      kill -9 "$child" 2>/dev/null
      break
    fi
    sleep 0.05
  done
  wait "$child" 2>/dev/null
  status=$?
  child=
  show_new_lines "$log"
}
digest_in() { sed -n "s/^digest after step $steps: //p" "$1"; }
loss_of() { sed -n "s|^step $2/[0-9]*  loss \([0-9.]*\).*|\1|p" "$1"; } # LOG STEP

echo
echo "1. All optimizer state on the accelerator (--offload none). It does not fit, and is refused before anything is allocated:"
"$train" --offload none >refused.log 2>&1 && stop "--offload none was not refused" refused.log
sed 's/^/    /' refused.log
grep -q 'the device budget of .* is short by' refused.log || stop "it was refused for another reason" refused.log

echo
echo "2. The same model with its optimizer state in host memory and in a file: $steps steps that nobody interrupts."
wanted=
run whole.log --timeline "$timeline" --checkpoint whole --file spill
[ "$status" -eq 0 ] || stop "the run ended with exit status $status" whole.log
loss_first=$(loss_of whole.log 1)
state=$(sed -n 's/^file: \([0-9.]*\) MiB in .*/\1/p' whole.log)
device=$(sed -n 's/^device: .*host_device, \([0-9.]*\) MiB.*/\1/p' whole.log)
rm -rf whole

echo
echo "3. Once more, with a checkpoint every $every steps; after step $kill_after, in the middle of a step, the process is killed (kill -9)."
wanted='^(step|saved|resumed|note|warning|train_gpt)'
kill_at=$kill_after
run killed.log --checkpoint checkpoints --file spill
kill_at=
[ "$status" -eq 137 ] || stop "the run should have been killed, and ended with exit status $status" killed.log
last=$(sed -n "s|^step \([0-9]*\)/.*|\1|p" killed.log | tail -n 1)
saved=$(sed -n 's|^saved .*/step-0*\([0-9]*\) .*|\1|p' killed.log | tail -n 1)
echo "    killed in step $((last + 1)); the last checkpoint is of step $saved, so $((last - saved)) finished steps are lost"

echo
echo "4. Started again with --resume: it goes on from the checkpoint as if nothing had happened."
run resumed.log --resume checkpoints --file spill
[ "$status" -eq 0 ] || stop "the resumed run ended with exit status $status" resumed.log
loss_last=$(loss_of resumed.log "$steps")

echo
echo "5. The digest of everything that makes up the run (parameters, optimizer state, schedule, random numbers), after step $steps:"
echo "    never interrupted:   $(digest_in whole.log)"
echo "    killed and resumed:  $(digest_in resumed.log)"
echo
echo "A timeline of the first run, to be opened in ui.perfetto.dev: $timeline"
[ -s "$timeline" ] || stop "no timeline was written"
[ -n "$(digest_in whole.log)" ] && [ "$(digest_in whole.log)" = "$(digest_in resumed.log)" ] && verdict yes
verdict no
