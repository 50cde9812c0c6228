#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Run every fuzz target over its corpus, once: one line each.
# usage: replay.sh BUILD
set -u
cd "$(dirname "$0")/../.." || exit 1
failed=0
# shellcheck source=tests/fuzz/corpus.bash
. tests/fuzz/corpus.bash
export ASAN_OPTIONS=${ASAN_OPTIONS-detect_leaks=1} UBSAN_OPTIONS=print_stacktrace=1
for source in tests/fuzz/fuzz_*.c; do
	name=$(basename "$source" .c)
	name=${name#fuzz_}
	unpack "$name" "$1/seeds/$name" && "$1/fuzz-$name" "$1/seeds/$name" && continue
	failed=1
	echo "not ok fuzz/$name: stopped; run $1/fuzz-$name $1/seeds/$name"
done
exit "$failed"
