#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Run fuzz targets, one after the other, each from its corpus and from what earlier runs have added
# to it below build/fuzz.  Inputs that break something go to build/fuzz/crashes and are named.
# usage: run.sh [--merge] BUILD SECONDS NAME...
#   --merge: afterwards make tests/fuzz/corpus/NAME.tar.gz the smallest set that reaches as much
set -u -o pipefail
cd "$(dirname "$0")/../.." || exit 1
merge=
if [ "$1" = --merge ]; then
	merge=yes
	shift
fi
build=$1 seconds=$2 failed=0
shift 2
# shellcheck source=tests/fuzz/corpus.bash
. tests/fuzz/corpus.bash
export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1
mkdir -p "$build/crashes"

fuzz() { # NAME
	local seeds=$build/seeds/$1 found=$build/corpus/$1 log=$build/fuzz-$1.log status=0
	mkdir -p "$found"
	unpack "$1" "$seeds" || return 1
	if [ "$seconds" -gt 0 ]; then
		nice "$build/fuzz-$1" -max_total_time="$seconds" -timeout=20 -max_len=2048 \
			-rss_limit_mb=2048 -print_final_stats=1 -close_fd_mask=3 \
			-artifact_prefix="$build/crashes/$1-" "$found" "$seeds" >"$log" 2>&1
		status=$?
		sed -n 's/^stat::number_of_executed_units: */  executions: /p' "$log"
		cp "$log" "$log.run"
		sed -nE '/INITED|DONE/s/.*(INITED|DONE) (.*) exec.*/  \1 \2/p' "$log"
	fi
	if [ "$status" != 0 ]; then
		grep -E 'ERROR:|broken:|runtime error|written to' "$log"
		echo "not ok fuzz/$1: see $log"
		return 1
	fi
	if [ -n "$merge" ]; then
		rm -rf "$build/merged" && mkdir -p "$build/merged"
		nice "$build/fuzz-$1" -set_cover_merge=1 -close_fd_mask=3 "$build/merged" "$found" "$seeds" \
			>"$log" 2>&1 || {
			echo "not ok fuzz/$1: merging has failed, see $log"
			return 1
		}
		if ! tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
			-C "$build/merged" -c . | gzip -9n >"$log.tar.gz" ||
			! mv "$log.tar.gz" "tests/fuzz/corpus/$1.tar.gz"; then
			echo "not ok fuzz/$1: tests/fuzz/corpus/$1.tar.gz could not be written"
			return 1
		fi
		find "$build/merged" -type f -printf '%s\n' |
			awk '{ n += $1 } END { print "  corpus: " NR " inputs, " n " octets" }'
	fi
	echo "ok fuzz/$1"
}

for name in "$@"; do
	fuzz "$name" || failed=1
done
for name in "$@"; do
	sed -n 's/^stat::number_of_executed_units: *//p' "$build/fuzz-$name.log.run" 2>/dev/null
done | awk '{ n += $1 } END { if (NR) print "# " n " executions in all" }'
exit "$failed"
