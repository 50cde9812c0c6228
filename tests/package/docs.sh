#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What docs/security.md and tests/promises.tsv name exists: tests, counters, parameters, files, and
# the sentences of headers and pages that promise something.  Then the checks themselves.
set -u
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

result() { # STATUS NAME [FILE]
	if [ "$1" = 0 ]; then
		echo "ok $2"
		return
	fi
	echo "not ok $2"
	[ -z "${3:-}" ] || head -n 40 "$3"
}

# every test as suite/name
grep -rhozE '\bTest\([a-z0-9_]+,\s*[a-z0-9_]+' tests --include='*.c' | tr '\0' '\n' |
	tr -d '\n' | sed 's/Test(/\n/g' | sed 's/,[[:space:]]*/\//' | sort -u >"$work/tests"
# every word of the headers that a page may name
cat include/ddpsess/*.h src/sctp/sctp.h | grep -oE '[A-Za-z_][A-Za-z0-9_]*' | sort -u >"$work/words"

# exists NAME: a test, or a file
exists() {
	grep -qxF "$1" "$work/tests" || [ -e "$1" ]
}

# page FILE: what it names in backticks and is not there
page() {
	local name
	grep -oE '`[^`]+`' "$1" | tr -d '`' | sort -u | while read -r name; do
		if [[ $name =~ ^[a-z0-9_./-]+/[a-z0-9_./-]+$ ]]; then
			exists "$name" || echo "$name: no such test or file"
		elif [[ $name =~ ^(struct\ )?(ddps_)?[a-z0-9_]+$ ]]; then
			grep -qxF "${name#struct }" "$work/words" || echo "$name: in no header"
		fi
	done
}

page docs/security.md >"$work/log"
! [ -s "$work/log" ]
result $? "what docs/security.md names exists" "$work/log"
[ "$(wc -l <"$work/tests")" -gt 500 ]
result $? "the tests were found"
sed 's/half_open_full/half_open_fool/; s/values_are_random/values_are_secret/' docs/security.md >"$work/page"
[ "$(page "$work/page" | wc -l)" -ge 2 ]
result $? "a counter and a test that do not exist are found"
