#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The runner of the unit tests without Criterion notices what it should, and nothing else.
set -u
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

expect() { # PATTERN
	if grep -qxE -- "$1" "$work/said"; then
		echo "ok runner: $1"
	else
		echo "not ok runner: nothing says \"$1\""
		status=1
	fi
}

"${CC:-gcc}" -std=gnu11 -D_GNU_SOURCE -Itests/cross -O0 -g -fsanitize=address,undefined \
	tests/cross/main.c tests/cross/checks.c tests/cross/bad_tests.c -o "$work/tests" || exit 1
ASAN_OPTIONS=detect_leaks=1:handle_segv=0 "$work/tests" --jobs 2 >"$work/said" 2>&1
[ $? = 1 ] || status=1
for t in fails leaves_early leaks overflows fails_at_its_end; do
	expect "not ok bad/$t: exit status [13]"
done
expect 'not ok bad/crashes: signal 11'
expect 'not ok bad/hangs: signal 14'
expect '1 passed, 1 skipped, 7 failed'
"$work/tests" --jobs 2 well >"$work/said" 2>&1 || status=1
expect '1 passed, 1 skipped, 0 failed'
"$work/tests" none >"$work/said" 2>&1 && status=1
expect '0 passed, 0 skipped, 0 failed'
exit $status
