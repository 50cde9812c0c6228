#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Check the checker: break the stack on purpose, one line at a time, and see that the named case
# notices.  mutations/*.txt: file, sed expression, case, separated by tabs.
# usage: mutate.sh BUILD		a finished build, which is copied
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
bad=0 n=0

# Times are kept, so that make compiles only what a mutation touched.
mkdir -p "$tree/$(dirname "$build")"
cp -a Makefile mk src include tools "$tree/"
cp -a "$build" "$tree/$build"

make_it() {
	(cd "$tree" && make -s -j2 VARIANT="$(basename "$build")" WERROR= "$build/sessctl") \
		>"$tree/log" 2>&1
}

# How it was caught, or nothing: by its verdict, by a crash, by a time-out.
caught() { # CASE
	local wire status
	for wire in tcp sctp; do
		timeout 60 "$tree/$build/sessctl" conform --self "$wire" --case "$1" --timeout 2 --json \
			>"$tree/out" 2>/dev/null
		status=$?
		if grep -q '"result":"fail"' "$tree/out"; then
			echo "fails over $wire"
		elif [ "$status" -ge 124 ]; then
			[ "$status" = 124 ] && echo "hangs over $wire" || echo "crashes over $wire"
		elif [ "$status" = 0 ] || [ "$status" = 2 ]; then
			continue # passes; or it has no such case on that wire
		elif grep -q '"event":"summary"' "$tree/out"; then
			continue
		else
			echo "ends with status $status over $wire" # a sanitizer's
		fi
		return
	done
}

try() { # FILE EXPRESSION CASE
	local how
	cp -a "$tree/$1" "$tree/before"
	sed -i -E "$2" "$tree/$1"
	if cmp -s "$tree/$1" "$tree/before"; then
		echo "not ok mutation of $1: '$2' changes nothing"
		bad=1
	elif ! make_it; then
		echo "not ok mutation of $1: '$2' does not compile"
		tail -n 5 "$tree/log"
		bad=1
	else
		how=$(caught "$3")
		if [ -n "$how" ]; then
			echo "ok $3 $how with '$2' in $1"
		else
			echo "not ok $3 does not notice '$2' in $1"
			bad=1
		fi
	fi
	cp -a "$tree/before" "$tree/$1"
	touch "$tree/$1"
}

make_it || {
	echo "not ok the copy does not build"
	cat "$tree/log"
	exit 1
}
for list in tests/conformance/mutations/*.txt; do
	while IFS=$'\t' read -r file expression case; do
		case $file in '' | '#'*) continue ;; esac
		n=$((n + 1))
		try "$file" "$expression" "$case"
	done <"$list"
done
[ "$n" != 0 ] || {
	echo "not ok there are no mutations"
	bad=1
}
exit "$bad"
