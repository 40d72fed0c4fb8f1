#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The long form of ../kill_loop.sh: 200 random moments and 20 saves, in a longer run.
. "$SPILLWAY_SOURCE/tests/support/programs.sh"
. "$SPILLWAY_SOURCE/tests/support/kills.sh"
steps=200
kill_and_restart 200 20
finish
