#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# same_output.sh PROGRAM...: each program prints what the first one prints, or refuses (exit status 3, reason on stderr).
# The first one may not refuse.
set -u
expected=
bad=0
for program; do
  printed=$("$program")
  status=$?
  if [ "$status" -eq 3 ] && [ -n "$expected" ]; then
    echo "$program: refused"
  elif [ "$status" -ne 0 ] || [ -z "$printed" ]; then
    echo "$program: exit status $status, printed '$printed'"
    bad=1
  elif [ -z "$expected" ]; then
    expected=$printed
    echo "$program: $printed"
  elif [ "$printed" != "$expected" ]; then
    echo "$program: $printed (differs)"
    bad=1
  else
    echo "$program: the same"
  fi
done
exit "$bad"
