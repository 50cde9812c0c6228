#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Whole programs over the drop-in, one script each: docs/programs.md.  WIRES chooses what they run on.
# usage: run.sh BUILD [PATTERN]
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "$1") pattern=${2:-.}
status=0
for script in tests/programs/*.sh; do
	case $script in */lib.sh | */run.sh) continue ;; esac
	[[ $script =~ $pattern ]] || continue
	timeout -k 10 400 bash "$script" "$build" || {
		status=1
		echo "not ok ${script#tests/}: it ended with an error"
	}
done
# What has a script of its own among the tests of the drop-in.
if [[ openmpi =~ $pattern ]]; then
	bash tests/verbs/mpi.sh "$build" || status=1
fi
exit "$status"
