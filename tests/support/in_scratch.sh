#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# in_scratch.sh FOLDER COMMAND...: runs the command in an empty folder. The folder is removed if the command succeeds and
# is left for inspection if not.
set -u
folder=$1
shift
rm -rf "$folder" && mkdir -p "$folder" && cd "$folder" || exit 1
"$@"
status=$?
if [ "$status" -eq 0 ] || [ "$status" -eq 77 ]; then
  cd / && rm -rf "$folder"
else
  echo "left for inspection: $folder"
fi
exit "$status"
