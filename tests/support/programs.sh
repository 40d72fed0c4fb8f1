# SPDX-License-Identifier: Apache-2.0
# Sourced by tests/programs/*.sh, which run in an empty folder. A test ends with `finish`.
set -u
train=$SPILLWAY_BIN/train_gpt
small="--width 64 --layers 2 --heads 4 --context 32 --batch 2 --warmup 2" # about 10 ms a step
failures=0

fail() { # REASON [LOG]
  echo "FAILED: $1"
  [ -z "${2:-}" ] || tail -n 15 "$2" | sed 's/^/    /'
  failures=$((failures + 1))
}
give_up() { # REASON [LOG]: the rest makes no sense
  fail "$@"
  exit 1
}
finish() {
  [ "$failures" -eq 0 ] || exit 1
  exit 0
}
skip() {
  echo "[skip] $1"
  exit 77
}

digest_in() { sed -n 's/^digest after step [0-9]*: //p' "$1"; }
last_step_in() { sed -n 's|^step \([0-9]*\)/.*|\1|p' "$1" | tail -n 1; }
built_with() { grep -qF -e "$1" "$train"; }
sanitized() { built_with __asan_init || built_with __tsan_init; }

must_run() { # LOG ARGUMENT...: with the small model; exit status 0 and a digest
  log=$1
  shift
  # shellcheck disable=SC2086 # a list
  "$train" $small "$@" >"$log" 2>&1 || { fail "exit status $? of: $*" "$log"; return 1; }
  [ -n "$(digest_in "$log")" ] || { fail "no digest from: $*" "$log"; return 1; }
}
same_digest() { # LOG WANTED WHAT
  [ "$(digest_in "$1")" = "$2" ] || fail "$3: digest $(digest_in "$1"), wanted $2" "$1"
}

# Runs a command that must fail of its own accord: exit status 1 and, in its output, each of the texts before `--`.
refused() { # TEXT... -- COMMAND...
  texts=
  while [ "$1" != -- ]; do
    texts="$texts$1
"
    shift
  done
  shift
  timeout 60 "$@" >refused.log 2>&1
  code=$?
  [ "$code" -eq 1 ] || { fail "exit status $code, wanted 1, of: $*" refused.log; return 1; }
  printf '%s' "$texts" >texts
  while IFS= read -r text; do
    grep -qF -e "$text" refused.log || { fail "the message of '$*' lacks '$text'" refused.log; return 1; }
  done <texts
}

# Starts this script again where it may mount file systems that nobody else sees; skips where that is not allowed.
with_mounts() { # "$@"
  [ -z "${SPILLWAY_MOUNTS:-}" ] || return 0
  export SPILLWAY_MOUNTS=yes
  mkdir -p try
  for how in "unshare -m" "unshare -rm"; do
    if $how mount -t tmpfs none try 2>/dev/null; then exec $how sh "$0" "$@"; fi
  done
  skip "mounting a file system is not allowed here, not in a user namespace either"
}
