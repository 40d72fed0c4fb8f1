# SPDX-License-Identifier: Apache-2.0
# Sourced after programs.sh: a run that is killed (SIGKILL) at random moments and started again at once.

# A fresh run where nothing was saved yet, else one that goes on.
start_again() { # LOG
  if ls -d checkpoints/step-???????? >/dev/null 2>&1; then
    # shellcheck disable=SC2086 # a list
    "$train" $small --steps "$steps" --checkpoint-every 2 --file spill --resume checkpoints >"$1" 2>&1 &
  else
    # shellcheck disable=SC2086 # a list
    "$train" $small --steps "$steps" --checkpoint-every 2 --file spill --checkpoint checkpoints >"$1" 2>&1 &
  fi
  child=$!
}
end_of_run() { # LOG: it was not killed: it must be whole, and the next one begins afresh
  if [ "$status" -ne 0 ]; then
    give_up "a run ended with exit status $status" "$1"
  fi
  same_digest "$1" "$wanted" "after $kills kills"
  ends=$((ends + 1))
  rm -rf checkpoints
}
unfinished_saves() { ls -d checkpoints/step-*.tmp-* 2>/dev/null; }

# Kills at `count` random moments, then as many within saves as `in_saves` says; prints the seed, so that it can be repeated
# with SPILLWAY_SEED.
kill_and_restart() { # COUNT IN_SAVES
  seed=${SPILLWAY_SEED:-$(date +%s)}
  echo "seed $seed"
  kills=0
  ends=0
  torn=0
  began=$(date +%s%N)
  must_run whole.log --steps "$steps" --checkpoint-every 2 --checkpoint whole --file spill || exit 1
  wanted=$(digest_in whole.log)
  # So that a run of `steps` steps is killed several times: a life lasts up to a third of it.
  awk -v seed="$seed" -v nanoseconds="$(($(date +%s%N) - began))" \
    'BEGIN { srand(seed); for (;;) if (++n > 10000) exit; else printf "%.3f\n", rand() * nanoseconds / 3e9 }' >delays
  exec 4<delays
  while [ "$kills" -lt "$1" ] && read -r delay <&4; do
    start_again life.log
    sleep "$delay"
    kill -9 "$child" 2>/dev/null
    wait "$child" 2>/dev/null
    status=$?
    if [ "$status" -eq 137 ]; then
      kills=$((kills + 1))
      [ -z "$(unfinished_saves)" ] || torn=$((torn + 1))
    else
      end_of_run life.log
    fi
  done
  echo "$kills kills at random moments, $torn of them in the middle of a save; $ends runs came to their end meanwhile"

  torn=0
  for _ in $(seq $((10 * $2))); do
    [ "$torn" -lt "$2" ] || break
    before=$(unfinished_saves) # of an earlier life; the first save removes it
    start_again life.log
    until now=$(unfinished_saves) && [ "$now" ] && [ "$now" != "$before" ] || ! kill -0 "$child" 2>/dev/null; do :; done
    kill -9 "$child" 2>/dev/null
    wait "$child" 2>/dev/null
    status=$?
    if [ "$status" -ne 137 ]; then
      end_of_run life.log
    elif [ -n "$(unfinished_saves)" ]; then
      torn=$((torn + 1))
    fi
  done
  [ "$torn" -ge "$2" ] || fail "only $torn kills hit a save, wanted $2"
  echo "$torn more within saves"

  start_again life.log
  wait "$child"
  status=$?
  end_of_run life.log
}
