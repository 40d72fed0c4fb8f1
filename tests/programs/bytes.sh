#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The bytes that a step moves over each link, as the table at the end counts them, and the lanes of the timeline.
. "$SPILLWAY_SOURCE/tests/support/programs.sh"

row() { # LOG NAME: the two figures
  sed -n "s/^ *$2  *\([-0-9.]*\)  *\([-0-9.]*\)\$/\1 \2/p" "$1"
}
expect() { # LOG NAME FIGURES
  [ "$(row "$1" "$2")" = "$3" ] || fail "$2: $(row "$1" "$2"), wanted $3" "$1"
}
for micro in 1 3; do
  must_run log.$micro --steps 6 --micro-batches $micro --file-share 1 --chunk 8192 --checkpoint saved.$micro --checkpoint-every 2 \
    --timeline t.json || exit 1
  expect log.$micro "by element with padding" "12.000 12.000"
  expect log.$micro "host memory (state in place)" "0.000 0.000"
  expect log.$micro "device to host (gradients)" "$((2 * micro)).000 -"
  expect log.$micro "host to device (parameters)" "- 2.000"
done
must_run log --steps 6 --offload host --checkpoint saved.host || exit 1
expect log "file link (state)" "0.000 0.000"
grep -q "^timeline: t.json " log.1 || fail "the place of the timeline is not named" log.1

command -v python3 >/dev/null 2>&1 || { echo "the timeline was not read: no python3"; finish; }
python3 - t.json <<'PYTHON' || fail "the timeline"
import json, sys

events = json.load(open(sys.argv[1]))["traceEvents"]
lanes = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
busy = {}
for e in events:
    if e["ph"] == "X":
        assert e["dur"] >= 0 and e["ts"] >= 0, e
        busy[lanes[e["tid"]]] = busy.get(lanes[e["tid"]], 0) + 1
print(busy)
wanted = {"file read", "file write", "host update", "device to host", "host to device", "compute", "checkpoint"}
assert set(lanes.values()) == wanted, lanes
assert set(busy) == wanted, busy
assert busy["compute"] == 6 * 3 and busy["checkpoint"] == 3, busy
PYTHON
finish
