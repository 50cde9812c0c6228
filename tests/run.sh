#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Run every test that needs no guest, two suites at a time, and print a plain count.
# usage: run.sh SANITIZED-BUILD RELEASE-BUILD [--failed]
#   --failed   only the suites that failed in the run before this one
set -u
cd "$(dirname "$0")/.." || exit 1
asan=$PWD/$1 opt=$PWD/$2
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1
lanes=2
work=$(mktemp -d)
trap '[[ $BASHPID != "$$" ]] || rm -rf "$work"' EXIT
mkdir "$work/results" "$work/logs" "$work/said"
: >"$work/begun"
list=$asan/check-failed
again='' only=0
if [ "${3:-}" = --failed ]; then
	only=1
	again=$(cat "$list") || exit 2
	[ -n "$again" ] || echo "nothing failed the last time"
fi
rm -f "$list" # a run that does not reach its end leaves none

# A suite's numbers, and what went wrong: that is said once more where it is read first, at the end.
result() { # NAME PASSED FAILED WHAT
	local file=$work/results/${1//\//:}
	echo "$2 $3 $1" >"$file"
	[ "$3" = 0 ] && return
	[ -z "$4" ] || echo "  $1: $4" >>"$file"
	grep -aE '^(not ok|\[(FAIL|----)\])|ERROR: |runtime error' "$log" | grep -av Warning |
		head -n 20 | sed "s|^|  $1: |" >>"$file"
}

# A leak with a frame of ours; Criterion has small ones of its own in the parent process.
leaks() {
	sed -n '/ERROR: LeakSanitizer/,/^SUMMARY/p' "$log" | grep -qaE '#[0-9]+ .* (src|tests|tools)/'
}

# What a shell starts in its background ignores SIGINT, and tests send it: it is made usual again.
bounded() { # SECONDS COMMAND...
	local child status
	env --default-signal=INT,QUIT timeout -k 10 "$@" >"$log" 2>&1 </dev/null &
	child=$!
	trap 'kill $child' TERM
	wait "$child"
	status=$?
	trap - TERM
	return "$status"
}

criterion() { # NAME BINARY SECONDS
	local line tested ok status bad begun=$SECONDS
	# What Criterion loads looks through the certificates of the system's authorities in each process.
	ASAN_OPTIONS=$ASAN_OPTIONS:intercept_strstr=0 LSAN_OPTIONS=exitcode=0 \
		bounded "$3" "$2" --jobs 2 --color=never
	status=$?
	line=$(grep -a 'Synthesis:' "$log" | tail -n 1)
	tested=$(sed -n 's/.*Tested: *\([0-9]*\).*/\1/p' <<<"$line")
	ok=$(sed -n 's/.*Passing: *\([0-9]*\).*/\1/p' <<<"$line")
	if [ -z "$tested" ]; then
		echo "not ok $1: no result (exit status $status)"
		tail -n 30 "$log"
		result "$1" 0 1 "no result (exit status $status)"
		return
	fi
	bad=$((tested - ok))
	echo "$1: $ok of $tested passed, $((SECONDS - begun)) s"
	if [ "$status" != 0 ] || grep -qa 'ERROR: AddressSanitizer' "$log" || leaks; then
		grep -aE -A 12 '^\[(FAIL|----)\]|ERROR:|runtime error' "$log" | head -n 120
		[ "$bad" != 0 ] || bad=1
	fi
	result "$1" "$ok" "$bad" ""
}

bare() { # NAME BINARY SECONDS: tests/cross/main.c
	local line ok bad status begun=$SECONDS
	bounded "$3" "$2" --jobs 2
	status=$?
	line=$(grep -aE '^[0-9]+ passed, [0-9]+ skipped, [0-9]+ failed$' "$log" | tail -n 1)
	read -r ok _ _ _ bad _ <<<"$line"
	[ "$status" = 0 ] || cat "$log"
	if [ -z "$line" ]; then
		ok=0 bad=1
		echo "not ok $1: no result (exit status $status)"
	fi
	echo "$1: ${line:-no result}, $((SECONDS - begun)) s"
	[ "$status" = 0 ] || [ "$bad" != 0 ] || bad=1
	result "$1" "$ok" "$bad" "exit status $status"
}

lines() { # NAME COMMAND...: prints "ok ..." and "not ok ..." lines
	local name=$1 status good bad begun=$SECONDS
	shift
	bounded "${limit:-480}" "$@"
	status=$?
	good=$(grep -ac '^ok ' "$log")
	bad=$(grep -ac '^not ok ' "$log")
	if [ "$bad" != 0 ] || [ "$status" != 0 ] || [ "$good" = 0 ]; then
		[ "$bad" != 0 ] || bad=1
		cat "$log"
	fi
	grep -a '# skipped' "$log"
	echo "$name: $good of $((good + bad)) passed, $((SECONDS - begun)) s"
	result "$name" "$good" "$bad" "exit status $status"
}

# In a lane of its own; what it says comes in one piece, when it is done.
suite() { # KIND NAME ...
	local file=${2//\//:}
	[ "$only" != 1 ] || grep -qxF -- "$2" <<<"$again" || return 0
	while [ "$(jobs -rp | wc -l)" -ge "$lanes" ]; do
		wait -n
	done
	echo "$2" >>"$work/begun"
	(
		log=$work/logs/$file
		"$@" >"$work/said/$file"
		flock 9
		cat "$work/said/$file"
	) 9>"$work/said.lock" &
}

stop() {
	trap '' INT TERM
	# shellcheck disable=SC2046 # words are meant
	kill $(jobs -p) 2>/dev/null
	wait
	exit 130
}
trap stop INT TERM

# Runs of programs, most of which poll, beside what takes as long as it computes.  A busy machine
# takes several times as long.
limit=1500 suite lines verbs/run.sh bash tests/verbs/run.sh "$opt" 5
suite lines fault "$asan/fault"
suite lines model sh tests/model/run.sh
suite lines "conformance mutations" tests/conformance/mutate.sh "$2"
suite lines sim/sctp "$opt/sim-sctp" 1 100000
suite lines sim/sctp-asan "$asan/sim-sctp" 1000000 10000
suite lines sim/session "$opt/sim-session" 1 20000
suite lines sim/ipoib "$opt/sim-ipoib" 1 1000
suite lines lies/ipoib "$asan/lies-ipoib"
suite lines sim/verbs "$opt/sim-verbs" 1 2500
suite lines sim/crossed "$opt/sim-crossed" 1 12000
suite lines sim/session-asan "$asan/sim-session" 1000000 4000
suite lines sched "$opt/sched"
suite lines fuzz tests/fuzz/replay.sh "$1"
suite lines layers.sh bash tests/layers.sh "$2" "$1"
suite lines callers.sh bash tests/callers.sh "$2" "$1"
suite lines citations.sh bash tests/citations.sh
suite lines abi/run.sh env BUILD="$opt" bash tests/abi/run.sh
suite lines bench/guard.sh bash bench/guard.sh "$opt"
suite lines sim/scale.sh bash tests/sim/scale.sh "$opt"
suite lines verbs/exports.sh bash tests/verbs/exports.sh "$2"
for t in tests/package/*.sh; do
	suite lines "${t#tests/}" env BUILD="$opt" bash "$t"
done
suite bare unit "$asan/unit-bare" 600
suite lines verbs/view.sh bash tests/verbs/view.sh "$opt"
suite lines verbs/rough.sh bash tests/verbs/rough.sh "$2"
suite lines cli/signals.sh env SESSCTL="$asan/sessctl" BUILD="$opt" bash tests/cli/signals.sh
suite lines netns/bridge env SESSCTL="$asan/sessctl" bash tests/netns/bridge.sh
suite lines netns/multihome env SESSCTL="$opt/sessctl" bash tests/netns/multihome.sh
suite lines netns/path env SESSCTL="$opt/sessctl" bash tests/netns/path.sh
suite criterion e2e "$asan/e2e" 480
suite criterion verbs "$asan/verbs-test" 480
suite lines stress "$asan/stress-session" 1 20
suite lines stress/verbs "$asan/stress-verbs" 1 10
suite lines verbs/check.sh bash tests/verbs/check.sh "$2"
suite lines verbs/faults.sh bash tests/verbs/faults.sh "$2"
suite lines verbs/traces.sh bash tests/verbs/traces.sh "$opt" 10
suite lines verbs/rdma_core.sh bash tests/verbs/rdma_core.sh "$2"
suite lines verbs/libfabric.sh bash tests/verbs/libfabric.sh "$2"
suite lines verbs/mpi.sh bash tests/verbs/mpi.sh "$2"
for t in tests/cli/*.sh; do
	case $t in */lib.sh | */signals.sh) continue ;; esac
	suite lines "${t#tests/}" env SESSCTL="$asan/sessctl" BUILD="$opt" bash "$t"
done
suite lines conformance tests/conformance/run.sh "$asan/sessctl" "$work/conformance"
wait

# A suite without a result is one that failed.
passed=0 failed=0
: >"$work/failed"
while read -r name; do
	file=$work/results/${name//\//:}
	[ -s "$file" ] || echo "0 1 $name" >"$file"
	read -r good bad _ <"$file"
	passed=$((passed + good)) failed=$((failed + bad))
	[ "$bad" = 0 ] || echo "$name" >>"$work/failed"
done <"$work/begun"
mv "$work/failed" "$list"
if [ "$failed" != 0 ]; then
	echo "failed (make check-failed runs these again):"
	while read -r name; do
		tail -n +2 "$work/results/${name//\//:}"
	done <"$list"
fi
echo "$passed passed, $failed failed in $SECONDS s"
[ "$failed" = 0 ]
