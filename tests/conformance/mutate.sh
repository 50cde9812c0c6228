#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Check the checker: break the stack on purpose, one rule at a time, and see that the named case notices.
# mutations.txt: what is off (tests/mutate/off.py), case, separated by a tab.  All is compiled once.
# usage: mutate.sh BUILD [PATTERN]	a finished build, which is copied; of what is off, or the case
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$1 pattern=${2:-.} lists=(tests/conformance/mutations.txt)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
bad=0 n=0 rows=0

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

tests/mutate/off.py tree "$tree" "$build" "${lists[@]}" || exit 1
make -s -C "$tree" -j2 VARIANT="$(basename "$build")" WERROR= CFLAGS=-w "$build/sessctl" >"$tree/log" 2>&1 || {
	echo "not ok the tree with switches does not build"
	cat "$tree/log"
	exit 1
}
while IFS=$'\t' read -r what case; do
	n=$((n + 1))
	[[ $what$case =~ $pattern ]] || continue
	rows=$((rows + 1))
	how=$(DDPS_OFF=$n caught "$case" </dev/null)
	if [ -n "$how" ]; then
		echo "ok $case $how with this off: $what"
	else
		echo "not ok $case does not notice with this off: $what"
		bad=1
	fi
done < <(grep -hvE '^(#|$)' "${lists[@]}")
[ "$rows" != 0 ] || {
	echo "not ok there are no mutations"
	bad=1
}
[ -z "$(caught sctp-order)" ] || {
	echo "not ok sctp-order fails with nothing off"
	bad=1
}
exit "$bad"
