#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The protocol cores' unit tests under memcheck.
# usage: valgrind.sh UNIT-BINARY
set -u
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
export DDPS_CROSSED_RUNS=200
timeout 900 valgrind -q --trace-children=yes --leak-check=full --errors-for-leak-kinds=definite \
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
exit $status
