#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The tester of IPoIB against the bridge that ships, between network namespaces that this script makes and
# removes: some runs, next to the traffic of another node.  A verdict is the same each time, and that of --self.
# usage: SESSCTL=... conform.sh [RUNS [LOOPS]]; LOOPS: so many programs that do nothing but compute
# shellcheck disable=SC2154,SC2034,SC2317 # variables of lib.bash, calls by check
set -u
here=$(dirname "$0")
# shellcheck source=/dev/null
. "$here/lib.bash"

what="the tester against the bridge"

runs=${1:-2} loops=${2:-0}

verdicts() { # FILE: a case and its verdict a line
	sed -n 's/.*"event":"case","case":"\([^"]*\)".*"result":"\([^"]*\)".*/\1 \2/p' "$1"
}

self() {
	"$SESSCTL" ipoib conform --self ours --json >"$work/self.out" 2>"$work/self.err"
	verdicts "$work/self.out" >"$work/self"
	[ -s "$work/self" ]
}

start() { # WHO NODE COMMAND...: its own process is the one in pids, not a shell's
	ip netns exec "ddps$id-$2" "${@:3}" >"$work/$1.out" 2>"$work/$1.err" &
	pids[$1]=$!
}

# In both directions, also to groups: node 3 looks for a node that there is not.
traffic() {
	start ping3 3 ping -q -i 0.02 -s 3000 10.9.0.2
	start ping2 2 ping -q -i 0.05 10.9.0.3
	start nobody 3 ping -q -i 0.5 10.9.0.77
}

stop() { # SIGNAL WHO...
	local n signal=$1
	shift
	for n in "$@"; do
		kill "-$signal" "${pids[$n]}" 2>/dev/null
		wait "${pids[$n]}" 2>/dev/null
		unset "pids[$n]"
	done
}

# RUN: all of it but what it calls undecided
same_verdicts() {
	awk 'NR == FNR { verdict[$1] = $2; next }
		verdict[$1] != "undecided" && verdict[$1] != $2 { print $0 " in --self, here: " verdict[$1]; bad = 1 }
		END { exit bad }' "$work/run$1" "$work/self"
}

# run N: node 1 is the tester and the administration, 2 the bridge, 3 another one
run() {
	start tester 1 "$SESSCTL" ipoib conform --udp 192.0.2.1:4791 --gid fe80::1 --ip 10.9.0.100 \
		--ip6 fd09::2 --json 10.9.0.2
	up 2 rc
	up 3 rc
	ready 2 3 || return
	traffic
	wait "${pids[tester]}"
	unset "pids[tester]"
	stop INT ping2 ping3 nobody
	stop KILL 2 3
	grep -qE ' [1-9][0-9]+ received' "$work/ping3.out" && grep -qE ' [1-9][0-9]+ received' "$work/ping2.out" || return
	verdicts "$work/tester.out" >"$work/run$1"
	same_verdicts "$1" && grep -q '"event":"summary"' "$work/tester.out"
}

all_pass() {
	! grep -v ' pass$' "$work/self" && [ "$(wc -l <"$work/self")" -ge 149 ]
}

start_net
for ((i = 0; i < loops; i++)); do
	(while :; do :; done) &
	pids[loop$i]=$!
done
check "--self ours ends" self
check "contact 31: the bridge as it ships passes all cases" all_pass
for ((i = 1; i <= runs; i++)); do
	check "contact 31: run $i beside another node's traffic has the same verdicts" run "$i"
done
exit "$failed"
