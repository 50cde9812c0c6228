#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Whole programs over the drop-in, one script each: docs/programs.md.  WIRES chooses what they run on.
# A line behind each script says how long it took; the last line counts the cases.
# usage: run.sh BUILD [PATTERN]
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "$1") pattern=${2:-.}
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
for script in tests/programs/*.sh; do
	case $script in */lib.sh | */run.sh) continue ;; esac
	[[ $script =~ $pattern ]] || continue
	began=$SECONDS
	timeout -k 10 900 bash "$script" "$build" ||
		echo "not ok ${script#tests/}: it ended with an error"
	echo "# ${script#tests/}: $((SECONDS - began)) s"
done | tee "$lines"
ok=$(grep -c '^ok ' "$lines") bad=$(grep -c '^not ok ' "$lines")
echo "# $ok passed, $bad failed, $(grep -c '^# skipped' "$lines") skipped, $SECONDS s"
[ "$bad" = 0 ] && [ "$ok" != 0 ]
