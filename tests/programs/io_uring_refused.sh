#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Where io_uring is refused, as in many containers, files are moved by threads, the reason is named, and the bits are the same.
. "$SPILLWAY_SOURCE/tests/support/programs.sh"
! built_with "built without the uring component" || skip "built without the uring component"
# shellcheck disable=SC2086 # $small is a list

"$SPILLWAY_REFUSE" io_uring true || skip "no seccomp filters here"
must_run whole.log --steps 5 --checkpoint whole || exit 1
"$SPILLWAY_REFUSE" io_uring "$train" $small --steps 5 --checkpoint other >log 2>&1 || fail "exit status $?" log
same_digest log "$(digest_in whole.log)" "without io_uring"
grep -q "engine thread (uring: io_uring_setup: Operation not permitted; thread: works)" log || fail "the reason is not named" log
finish
