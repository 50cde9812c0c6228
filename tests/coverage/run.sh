#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Which branches of src the tests take, and which conditions they show to decide: unit and end-to-end
# tests, those of the drop-in and of the command line, programs over the drop-in, the conformance cases
# against ourselves, simulations, failing calls, the corpora of the fuzz targets.
# What is not taken is compared with reasons.tsv.  Needs clang-19, llvm-19 and a build of VARIANT=cov.
# GUEST=1 in the environment: what only a kernel with SCTP runs, too, in the guest of make interop.
# usage: run.sh BUILD [--list]	--list: what is in the build's profile and has no reason, for reasons.tsv
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$1
prof=$PWD/$build/prof
binaries=(unit e2e sessctl sim-sctp sim-session sim-crossed sim-ipoib sim-verbs sched fault verbs-test
	libddpsess-verbs.so ddpsess/libddpsess-view.so lies lies-ipoib stress-session stress-verbs)
failures=0

# Processes share a few profiles, which each adds to at its end; some have given up their rights by then.
measured() { # NAME COMMAND...
	local name=$1
	shift
	(umask 0 && LLVM_PROFILE_FILE=$prof/$name-%2m.profraw timeout -k 10 1800 "$@") \
		>"$prof/$name.log" 2>&1 </dev/null && return
	echo "not ok coverage of $name: exit status $?, $prof/$name.log"
	failures=1
}

run_all() {
	local t
	rm -rf "$prof"
	mkdir "$prof" && chmod 777 "$prof" || exit 1
	for t in unit e2e verbs-test; do
		measured $t "$build/$t" --jobs 2 --color=never
	done
	for t in tcp sctp shm; do
		measured $t "$build/sessctl" conform --self $t --json &
		measured lies-$t "$build/lies" --all $t &
	done
	measured ipoib "$build/sessctl" ipoib conform --self ours --json
	measured lies-ipoib "$build/lies-ipoib"
	wait
	# the tester's verdicts of a stack that is wrong
	measured mutations tests/conformance/mutate.sh "$build"
	measured sim-sctp "$build/sim-sctp" 1 40000
	measured sim-session "$build/sim-session" 1 12000
	measured sim-crossed "$build/sim-crossed" 1 300
	measured sim-ipoib "$build/sim-ipoib" 1 300
	measured sim-verbs "$build/sim-verbs" 1 600
	measured fault "$build/fault"
	measured sched "$build/sched"
	measured stress-session "$build/stress-session" 1 20
	measured stress-verbs "$build/stress-verbs" 1 20
	measured fuzz tests/fuzz/replay.sh "$build"
	for t in run rough check faults rdma_core libfabric view; do
		measured "verbs-$t" bash "tests/verbs/$t.sh" "$PWD/$build"
	done
	for t in tests/cli/*.sh; do
		[ "$t" != tests/cli/lib.sh ] || continue
		measured "cli-$(basename "$t" .sh)" env SESSCTL="$build/sessctl" BUILD="$build" bash "$t"
	done
	for t in bridge multihome path; do
		measured "netns-$t" env SESSCTL="$build/sessctl" bash "tests/netns/$t.sh"
	done
	[ "${GUEST:-0}" = 0 ] || measured guest env INTEROP_PROGRAMS= INTEROP_CASES="$PWD/tests/coverage/guest" \
		BUILD="$PWD/$build" tests/interop/run.sh --keep
	llvm-profdata-19 merge -sparse -o "$build/all.profdata" "$prof"/*.profraw || exit 1
}

[ "${2:-}" = --list ] || run_all
# shellcheck disable=SC2046 # words are meant
llvm-cov-19 export -instr-profile="$build/all.profdata" "$build/unit" \
	$(printf -- '-object %s ' "${binaries[@]/#/$build/}") >"$build/coverage.json" || exit 1
python3 tests/coverage/report.py "$build/coverage.json" tests/coverage/reasons.tsv "${@:2}" || failures=1
exit $failures
