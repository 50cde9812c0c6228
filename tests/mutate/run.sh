#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The tests of attacks against a stack that has what they defend taken away, one line at a time:
# each must fail.  attacks.txt: file, sed expression, binary, test, separated by tabs.
# usage: run.sh BUILD [PATTERN]		a finished build, which is copied; e.g. build/opt unit
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$1 pattern=${2:-.}
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

# Times are kept, so that make compiles only what a mutation touched.
mkdir -p "$tree/$(dirname "$build")"
cp -a Makefile src include tools tests "$tree/"
cp -a "$build" "$tree/$build"

make_it() { # BINARY
	(cd "$tree" && make -s -j2 VARIANT="$(basename "$build")" WERROR= "$build/$1") >"$tree/log" 2>&1
}

# How the test took it; nothing if it passed.
caught() { # BINARY TEST
	local status
	LSAN_OPTIONS=exitcode=0 timeout -k 5 150 "$tree/$build/$1" --filter "$2" --color=never \
		>"$tree/out" 2>&1
	status=$?
	grep -aq 'Tested: 1 ' "$tree/out" || [ "$status" -ge 124 ] || {
		echo "no such test"
		return 1
	}
	[ "$status" = 0 ] || echo "fails"
}

one() { # FILE EXPRESSION BINARY TEST
	local how
	cp -p "$tree/$1" "$tree/kept"
	sed -i -E "$2" "$tree/$1"
	if cmp -s "$tree/$1" "$tree/kept"; then
		how="the expression changes nothing"
	elif ! make_it "$3"; then
		how="does not build: $(grep -m 1 error "$tree/log")"
	else
		how=$(caught "$3" "$4")
	fi
	cp -p "$tree/kept" "$tree/$1"
	touch "$tree/$1"
	if [ "$how" = fails ]; then
		echo "ok $4 fails without $1: $2"
		return
	fi
	failures=$((failures + 1))
	echo "not ok $4: $1: $2: ${how:-passes}"
}

while IFS=$'\t' read -r file expression binary name; do
	[[ $file != \#* && $name =~ $pattern ]] || continue
	one "$file" "$expression" "$binary" "$name" </dev/null
done <tests/mutate/attacks.txt
exit $((failures > 0))
