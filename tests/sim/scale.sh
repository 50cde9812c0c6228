#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What a packet costs an IPoIB interface among many and among few: instructions, so that it says the
# same on every machine.  usage: scale.sh BUILD
set -u
build=$1
few="12 10" many="10000 4000" nodes=1000
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

count() { # NEIGHBOURS CONNECTIONS PACKETS: instructions of the whole run
	valgrind -q --tool=callgrind --callgrind-out-file="$work/out" \
		"$build/scale-ipoib" packets "$@" >"$work/log" 2>&1 || return
	sed -n 's/^summary: \([0-9]*\).*/\1/p' "$work/out"
}

per_packet() { # NEIGHBOURS CONNECTIONS: set-up excluded, the difference of two runs
	local long short
	long=$(count "$@" 5120) && short=$(count "$@" 1024) && [ "$long" -gt "$short" ] &&
		echo $(((long - short) / 4096))
}

"$build/scale-ipoib" join $nodes || exit
if ! command -v valgrind >/dev/null; then
	echo "ok ipoib-scale # skipped: no valgrind (Debian package valgrind)"
	exit 0
fi
# shellcheck disable=SC2086 # two numbers
a=$(per_packet $few) && b=$(per_packet $many)
if [ -z "${b:-}" ] || [ "${a:-0}" -le 0 ]; then
	echo "not ok ipoib-scale: no count: $(tail -n 2 "$work/log" | tr '\n' ' ')"
	exit 1
fi
if [ $((b * 100)) -gt $((a * 120)) ]; then
	echo "not ok ipoib-scale: a packet costs $b instructions with $many, $a with $few neighbours and connections"
	exit 1
fi
echo "ok ipoib-scale: a packet costs $b instructions with $many, $a with $few neighbours and connections"
