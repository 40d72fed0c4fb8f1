#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_readme.sh ROOT: each ```cpp block of README.md has a line `<!-- file: PATH -->` before it and equals that file, or
# its lines between `// [readme]` and `// [/readme]` where it has such lines. So what people copy is compiled and run.
set -u
cd "$1" || exit 1
awk '
  function complain(text) { printf "README.md:%d: %s\n", at, text; bad = 1 }
  function compare(  line, kept, lines, marked, inside, i, text) {
    lines = marked = inside = 0
    text = ""
    while ((kept = (getline line < path)) > 0) {
      if (line ~ /^[ \t]*\/\/ \[readme\]$/) { if (!marked) { text = ""; marked = 1 }; inside = 1; continue }
      if (line ~ /^[ \t]*\/\/ \[\/readme\]$/) { inside = 0; continue }
      if (!marked || inside) text = text line "\n"
    }
    close(path)
    if (kept < 0) { complain("there is no " path); return }
    blocks++
    if (text != block) complain("this block is not what " path (marked ? " has between its [readme] lines" : " has"))
  }
  /^<!-- file: .* -->$/ { path = $0; sub(/^<!-- file: /, "", path); sub(/ -->$/, "", path); next }
  /^```cpp$/ { at = NR; block = ""; open = 1; next }
  /^```$/ && open {
    open = 0
    if (path == "") complain("this block has no <!-- file: PATH --> line before it"); else compare()
    path = ""
    next
  }
  open { block = block $0 "\n" }
  END {
    if (open) complain("this block does not end")
    if (!bad && !blocks) { print "README.md has no ```cpp block"; bad = 1 }
    exit bad
  }' README.md
