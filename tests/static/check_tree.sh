#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_tree.sh RULE ROOT: rules about the files of the tree, read without compiling. Prints each file that breaks one.
set -u
rule=$1
cd "$2" || exit 1

# Files of the project: what git tracks or would track, or, in an unpacked archive, everything outside build folders.
files() {
  if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git ls-files --cached --others --exclude-standard | while IFS= read -r file; do
      [ -f "$file" ] && printf '%s\n' "$file"
    done
  else
    find . -type f -not -path './build*' -not -path './install*' -not -path './.git/*' | sed 's|^\./||'
  fi
}

case $rule in
  length)
    found=$(files | grep -E '^include/.*\.(hpp|cuh)$' | while IFS= read -r file; do
      lines=$(wc -l <"$file")
      [ "$lines" -le 300 ] || echo "$file: $lines lines, more than 300: split it by concept, model, algorithm"
    done)
    ;;
  license)
    found=$(files | grep -E '\.(hpp|cuh|cpp|cu|cmake|sh|py|awk)$|(^|/)CMakeLists\.txt$|^\.ci/run$' |
      while IFS= read -r file; do
        sed 2q "$file" | grep -qE '^(//|#) SPDX-License-Identifier: Apache-2\.0$' ||
          echo "$file: no SPDX line at its top"
      done)
    ;;
  top_level)
    found=$(files | cut -d/ -f1 | sort -u |
      grep -vxE 'include|tests|benchmarks|examples|cmake|CMakeLists\.txt|README\.md|CMakePresets\.json|LICENSE|\..*' |
      sed 's/$/: does not belong at the top level/')
    ;;
  *)
    echo "check_tree.sh: unknown rule '$rule'"
    exit 1
    ;;
esac

[ -z "$found" ] || { printf '%s\n' "$found"; exit 1; }
