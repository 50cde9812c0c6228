#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Run every test that needs no guest, two suites at a time and three that wait, and print a plain count.
# usage: run.sh SANITIZED-BUILD RELEASE-BUILD [--failed]
#   --failed   only the suites that failed in the run before this one
set -u
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=tests/lanes.bash
. tests/lanes.bash
asan=$PWD/$1 opt=$PWD/$2
# What is freed is kept for a while, so that whoever still uses it is found; more of it than this costs fresh pages.
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:quarantine_size_mb=16 UBSAN_OPTIONS=print_stacktrace=1
list=$asan/check-failed
if [ "${3:-}" = --failed ]; then
	again=$(cat "$list") || exit 2
	[ -n "$again" ] || echo "nothing failed the last time"
fi
rm -f "$list" # a run that does not reach its end leaves none

# These wait for a bridge, for a peer that is silent, for a process, or for a time to pass; the longest first.
idle_suite lines netns/ordinary env SESSCTL="$asan/sessctl" bash tests/netns/ordinary.sh
idle_suite lines cli/ipoib_conform.sh env SESSCTL="$asan/sessctl" BUILD="$opt" bash tests/cli/ipoib_conform.sh
idle_suite lines cli/conform_reports.sh env SESSCTL="$asan/sessctl" BUILD="$opt" bash tests/cli/conform_reports.sh
idle_suite lines cli/slow_disk.sh env SESSCTL="$asan/sessctl" BUILD="$opt" bash tests/cli/slow_disk.sh
idle_suite lines sched "$opt/sched"
idle_suite lines cli/signals.sh env SESSCTL="$asan/sessctl" BUILD="$opt" bash tests/cli/signals.sh
idle_suite lines package/commands.sh env BUILD="$opt" bash tests/package/commands.sh
# shellcheck disable=SC2154 # work: of lanes.bash
idle_suite lines conformance tests/conformance/run.sh "$asan/sessctl" "$work/conformance"
idle_suite lines lies/shm "$opt/lies" --all shm 'mpa-*quest*'
idle_suite lines verbs/rough.sh bash tests/verbs/rough.sh "$2"
idle_suite lines verbs/traces.sh bash tests/verbs/traces.sh "$opt" 10
idle_suite lines netns/path env SESSCTL="$opt/sessctl" bash tests/netns/path.sh
idle_suite lines netns/conform env SESSCTL="$opt/sessctl" bash tests/netns/conform.sh
idle_suite lines "conformance mutations" tests/conformance/mutate.sh "$2"
idle_suite lines netns/multihome env SESSCTL="$opt/sessctl" bash tests/netns/multihome.sh
idle_suite lines verbs/rdma_core.sh bash tests/verbs/rdma_core.sh "$2"
idle_suite lines cli/secure_hints.sh env SESSCTL="$asan/sessctl" BUILD="$opt" bash tests/cli/secure_hints.sh
idle_suite lines netns/bridge env SESSCTL="$asan/sessctl" bash tests/netns/bridge.sh
idle_suite lines netns/on_ip env SESSCTL="$opt/sessctl" bash tests/netns/on_ip.sh
idle_suite lines cli/stat_hostile.sh env SESSCTL="$asan/sessctl" BUILD="$opt" bash tests/cli/stat_hostile.sh
idle_suite lines package/dissectors.sh env BUILD="$opt" bash tests/package/dissectors.sh
idle_suite lines stress "$asan/stress-session" 1 20
idle_suite lines programs/secured.sh bash tests/programs/secured.sh "$opt" 'rping|rcopy'

# Runs of programs, most of which poll, next to what takes as long as it computes.  A busy machine
# takes several times as long.
limit=1500 suite lines verbs/run.sh bash tests/verbs/run.sh "$opt" 2
suite lines fault "$asan/fault"
suite lines model sh tests/model/run.sh
suite lines sim/sctp "$opt/sim-sctp" 1 200000
suite lines sim/sctp-asan "$asan/sim-sctp" 1000000 10000
suite lines sim/session "$opt/sim-session" 1 60000
suite lines sim/ipoib "$opt/sim-ipoib" 1 1500
suite lines lies/ipoib "$asan/lies-ipoib"
suite lines sim/verbs "$opt/sim-verbs" 1 4000
suite lines sim/crossed "$opt/sim-crossed" 1 12000
suite lines sim/session-asan "$asan/sim-session" 1000000 8000
suite lines fuzz tests/fuzz/replay.sh "$1"
suite lines layers.sh bash tests/layers.sh "$2" "$1"
suite lines callers.sh bash tests/callers.sh "$2" "$1"
suite lines citations.sh bash tests/citations.sh
suite lines abi/run.sh env BUILD="$opt" bash tests/abi/run.sh
suite lines bench/guard.sh bash bench/guard.sh "$opt"
suite lines sim/scale.sh bash tests/sim/scale.sh "$opt"
suite lines verbs/exports.sh bash tests/verbs/exports.sh "$2"
for t in tests/package/*.sh; do
	has_begun "${t#tests/}" || suite lines "${t#tests/}" env BUILD="$opt" bash "$t"
done
suite bare unit "$asan/unit-bare" 600 3
suite lines verbs/view.sh bash tests/verbs/view.sh "$opt"
suite lines verbs/near.sh bash tests/verbs/near.sh "$opt"
suite lines verbs/certs.sh bash tests/verbs/certs.sh "$2"
suite lines netns/lids env SESSCTL="$opt/sessctl" bash tests/netns/lids.sh
suite lines netns/nat env SESSCTL="$opt/sessctl" bash tests/netns/nat.sh
# Each of these waits for about half of its time, and by now most of those that hardly compute are done.
# shellcheck disable=SC2034 # of lanes.bash
lanes=3
suite bare e2e "$asan/e2e-bare" 480 6
suite bare verbs "$asan/verbs-bare" 480 4
suite lines stress/ends "$asan/stress-ends" 1 5
suite lines stress/verbs-asan "$asan/stress-verbs" 1 10
suite lines stress/verbs "$opt/stress-verbs" 1 5
suite lines verbs/check.sh bash tests/verbs/check.sh "$2"
suite lines verbs/faults.sh bash tests/verbs/faults.sh "$2"
suite lines verbs/libfabric.sh bash tests/verbs/libfabric.sh "$2"
suite lines verbs/mpi.sh bash tests/verbs/mpi.sh "$2"
# a thousand processes that say something and end: looking for leaks is half of what they cost
suite lines cli/usage.sh env ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0" SESSCTL="$asan/sessctl" BUILD="$opt" \
	bash tests/cli/usage.sh
for t in tests/cli/*.sh; do
	case $t in */lib.sh) continue ;; esac
	has_begun "${t#tests/}" || suite lines "${t#tests/}" env SESSCTL="$asan/sessctl" BUILD="$opt" bash "$t"
done
wait

summary "$list"
