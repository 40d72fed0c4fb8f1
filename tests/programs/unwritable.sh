#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Directories that may not be written: named at the start, before any training.
. "$SPILLWAY_SOURCE/tests/support/programs.sh"
# shellcheck disable=SC2086 # $small is a list

[ "$(id -u)" -ne 0 ] || with_mounts "$@" # root may write everywhere but on what is mounted read-only
mkdir -p here/spill here/saved
must_run log --steps 6 --checkpoint-every 3 --checkpoint here/saved || exit 1
if [ "$(id -u)" -eq 0 ]; then
  mount --bind here here && mount -o remount,ro,bind here || skip "a read-only mount is not allowed here"
  cause="Read-only file system"
else
  chmod 0500 here here/spill here/saved
  cause="Permission denied"
fi
refused "here/spill" "$cause" -- "$train" $small --steps 6 --file here/spill --checkpoint elsewhere
refused "here/new" "$cause" -- "$train" $small --steps 6 --file here/new --checkpoint elsewhere
refused "here/saved" "$cause" -- "$train" $small --steps 6 --resume here/saved
refused "here/new" "$cause" -- "$train" $small --steps 6 --checkpoint here/new
refused "here/t.json" "$cause" -- "$train" $small --steps 6 --checkpoint elsewhere --timeline here/t.json
! ls -d elsewhere/step-* >/dev/null 2>&1 || fail "it trained"
if [ "$(id -u)" -eq 0 ]; then umount here; else chmod -R u+w here; fi
cp -r here/saved copy
must_run log --steps 6 --resume copy/step-00000003
finish
