#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Run every test that needs no guest and print a plain count.
# usage: run.sh SANITIZED-BUILD RELEASE-BUILD [--failed]
#   --failed   only the suites that failed in the run before this one
set -u
cd "$(dirname "$0")/.." || exit 1
asan=$PWD/$1 opt=$PWD/$2
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 only=0
: >"$work/failed"
: >"$work/summary"
list=$asan/check-failed
again=
if [ "${3:-}" = --failed ]; then
	only=1
	again=$(cat "$list") || exit 2
	[ -n "$again" ] || echo "nothing failed the last time"
fi
rm -f "$list" # a run that does not reach its end leaves none

wanted() { # NAME
	[ "$only" != 1 ] || grep -qxF -- "$1" <<<"$again"
}

count() { # NAME PASSED FAILED
	passed=$((passed + $2))
	failed=$((failed + $3))
	[ "$3" = 0 ] || echo "$1" >>"$work/failed"
}

# What went wrong, once more where it is read first: at the end.
remember() { # NAME LOG
	grep -aE '^(not ok|\[(FAIL|----)\])|ERROR: |runtime error' "$2" | grep -av Warning | head -n 20 |
		sed "s|^|  $1: |" >>"$work/summary"
}

# A leak with a frame of ours; Criterion has small ones of its own in the parent process.
leaks() { # LOG
	sed -n '/ERROR: LeakSanitizer/,/^SUMMARY/p' "$1" | grep -qaE '#[0-9]+ .* (src|tests|tools)/'
}

criterion() { # NAME BINARY SECONDS
	local log=$work/$1.log line tested ok status begun=$SECONDS
	wanted "$1" || return 0
	LSAN_OPTIONS=exitcode=0 timeout -k 10 "$3" "$2" --jobs 2 --color=never >"$log" 2>&1
	status=$?
	line=$(grep -a 'Synthesis:' "$log" | tail -n 1)
	tested=$(sed -n 's/.*Tested: *\([0-9]*\).*/\1/p' <<<"$line")
	ok=$(sed -n 's/.*Passing: *\([0-9]*\).*/\1/p' <<<"$line")
	if [ -z "$tested" ]; then
		echo "not ok $1: no result (exit status $status)"
		tail -n 30 "$log"
		echo "  $1: no result (exit status $status)" >>"$work/summary"
		count "$1" 0 1
		return
	fi
	count "$1" "$ok" $((tested - ok))
	echo "$1: $ok of $tested passed, $((SECONDS - begun)) s"
	if [ "$status" != 0 ] || grep -qa 'ERROR: AddressSanitizer' "$log" || leaks "$log"; then
		grep -aE -A 12 '^\[(FAIL|----)\]|ERROR:|runtime error' "$log" | head -n 120
		remember "$1" "$log"
		[ "$ok" != "$tested" ] || count "$1" 0 1
	fi
}

lines() { # NAME COMMAND...: prints "ok ..." and "not ok ..." lines
	local log=$work/lines.log name=$1 status good bad begun=$SECONDS
	wanted "$name" || return 0
	shift
	timeout -k 10 "${limit:-480}" "$@" >"$log" 2>&1
	status=$?
	good=$(grep -ac '^ok ' "$log")
	bad=$(grep -ac '^not ok ' "$log")
	if [ "$bad" != 0 ] || { [ "$status" != 0 ] && bad=1; } || [ "$good" = 0 ]; then
		[ "$bad" != 0 ] || bad=1
		cat "$log"
		echo "  $name: exit status $status" >>"$work/summary"
		remember "$name" "$log"
	fi
	grep -a '# skipped' "$log"
	echo "$name: $good of $((good + bad)) passed, $((SECONDS - begun)) s"
	count "$name" "$good" "$bad"
}

criterion unit "$asan/unit" 300
criterion e2e "$asan/e2e" 280
lines fault/malloc "$asan/fault"
lines stress "$asan/stress-session" 1 20
lines stress/verbs "$asan/stress-verbs" 1 10
lines sim/sctp "$opt/sim-sctp" 1 100000
lines sim/sctp-asan "$asan/sim-sctp" 1000000 10000
lines sim/session "$opt/sim-session" 1 50000
lines sim/session-asan "$asan/sim-session" 1000000 10000
lines fuzz tests/fuzz/replay.sh "$1"
criterion verbs "$asan/verbs-test" 280
for t in tests/cli/*.sh; do
	case $t in */lib.sh) continue ;; esac
	lines "${t#tests/}" env SESSCTL="$asan/sessctl" BUILD="$opt" bash "$t"
done
for t in tests/package/*.sh; do
	lines "${t#tests/}" env BUILD="$opt" bash "$t"
done
lines layers.sh bash tests/layers.sh "$2" "$1"
lines citations.sh bash tests/citations.sh
lines abi/run.sh env BUILD="$opt" bash tests/abi/run.sh
lines bench/guard.sh bash bench/guard.sh "$opt"
lines verbs/exports.sh bash tests/verbs/exports.sh "$2"
# 1180 runs of programs, most of which poll: a busy machine takes several times as long
limit=1500 lines verbs/run.sh env bash tests/verbs/run.sh "$2"
lines verbs/rdma_core.sh env bash tests/verbs/rdma_core.sh "$2"
lines verbs/rough.sh env bash tests/verbs/rough.sh "$2"
lines verbs/libfabric.sh env bash tests/verbs/libfabric.sh "$2"
lines verbs/mpi.sh env bash tests/verbs/mpi.sh "$2"
lines netns/bridge env SESSCTL="$asan/sessctl" bash tests/netns/bridge.sh
lines netns/multihome env SESSCTL="$opt/sessctl" bash tests/netns/multihome.sh
lines netns/path env SESSCTL="$opt/sessctl" bash tests/netns/path.sh
lines model/crossed_req bash tests/model/run.sh
lines conformance tests/conformance/run.sh "$asan/sessctl" "$work/conformance"
lines "conformance mutations" tests/conformance/mutate.sh "$2"

cat "$work/failed" >"$list"
if [ "$failed" != 0 ]; then
	echo "failed (make check-failed runs these again):"
	cat "$work/summary"
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
