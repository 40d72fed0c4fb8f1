#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Where O_DIRECT is refused, --direct auto goes through the page cache and says why, with the same bits; --direct required ends.
. "$SPILLWAY_SOURCE/tests/support/programs.sh"
# shellcheck disable=SC2086 # $small is a list

"$SPILLWAY_REFUSE" direct true || skip "no seccomp filters here"
must_run whole.log --steps 5 --checkpoint whole --direct off || exit 1
grep -q "direct I/O: no (off)" whole.log || fail "--direct off is not reported" whole.log
for engine in auto threads; do
  rm -rf other
  "$SPILLWAY_REFUSE" direct "$train" $small --steps 5 --checkpoint other --file spill --engine $engine >log 2>&1 || fail "exit status $?" log
  same_digest log "$(digest_in whole.log)" "without O_DIRECT"
  grep -q "direct I/O: no (.*spill/.*Invalid argument)" log || fail "the reason is not named" log
  refused "spill" "Invalid argument" "direct I/O" -- \
    "$SPILLWAY_REFUSE" direct "$train" $small --steps 5 --checkpoint third --file spill --direct required --engine $engine
  [ -z "$(ls spill)" ] || fail "left behind: $(ls spill)"
done
finish
