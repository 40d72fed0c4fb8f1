#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# must_not_compile.sh SOURCE COMPILER [FLAG...]: the source must not compile, and the compiler must print every text that
# follows `// expect: ` in it, in the wording of the C locale.
set -u
source=$1
shift
if printed=$(LC_ALL=C "$@" -fsyntax-only "$source" 2>&1); then
  echo "$source compiles, and must not"
  exit 1
fi
expected=$(sed -n 's|^// expect: ||p' "$source")
if [ -z "$expected" ]; then
  echo "$source has no line '// expect: TEXT'"
  exit 1
fi
printf '%s\n' "$expected" | {
  bad=0
  while IFS= read -r text; do
    case $printed in
      *"$text"*) ;;
      *)
        echo "$source fails to compile, but not with '$text'. The compiler printed:"
        printf '%s\n' "$printed"
        bad=1
        ;;
    esac
  done
  exit "$bad"
}
