#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Killed at 20 random moments and within saves, and started again at once each time, a run ends with the same bits.
. "$SPILLWAY_SOURCE/tests/support/programs.sh"
. "$SPILLWAY_SOURCE/tests/support/kills.sh"
steps=60
kill_and_restart 20 3
finish
