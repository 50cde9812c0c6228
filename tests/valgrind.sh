#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The protocol cores' unit tests under memcheck, and conformance cases over both wires.
# usage: valgrind.sh UNIT-BINARY SESSCTL
set -u
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
export DDPS_CROSSED_RUNS=200
timeout 3600 valgrind -q --trace-children=yes --leak-check=full --errors-for-leak-kinds=definite \
	--error-exitcode=99 --log-file="$logs/%p" \
	"$1" --filter '@(ddp|stag|rdmap|negotiate|mpa_wire|mpa_sm|mpa_rx|mpa_tx|sd_wire|sd_sm|sd_order)*/*'
status=$?
# Criterion's own parent process leaks a little; errors of ours name a C file of ours.
bad=$(grep -lE '\((ddp|stag|rdmap|nego|mpa|sd|loop|error|uri|bytes)[a-z_]*\.[ch]:[0-9]+\)' "$logs"/*)
if [ -n "$bad" ]; then
	# shellcheck disable=SC2086 # a list of files
	cat $bad
	exit 1
fi
[ "$status" = 0 ] || exit "$status"

# What a peer can send, and what is made of it: one case after the other in one process.
for wire in tcp sctp; do
	for cases in 'mpa-crc-*' 'neg-p2p-*' 'sctp-*' 'ddp-mo-*' 'ddp-short-*' 'ddp-initiator-*' \
		'rdmap-read-*' 'rdmap-terminate-*' 'rfc7306-*'; do
		"$2" conform --list --case "$cases" | cut -f 2 | grep -q "$wire" || continue
		if ! timeout 900 valgrind -q --leak-check=full --errors-for-leak-kinds=definite \
			--error-exitcode=99 "$2" conform --self "$wire" --case "$cases" \
			--timeout 60 >"$logs/out" 2>&1; then
			echo "$cases over $wire:"
			cat "$logs/out"
			exit 1
		fi
		echo "$cases: $(tail -n 1 "$logs/out")"
	done
done
