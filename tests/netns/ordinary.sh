#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessctl ipoib bridge on hosts and networks as they are found, in network namespaces that this script
# makes and removes.
# usage: SESSCTL=... ordinary.sh
# shellcheck disable=SC2154,SC2034 # variables of lib.bash
set -u
here=$(dirname "$0")
# shellcheck source=/dev/null
. "$here/lib.bash"

failed=0

skip() {
	echo "ok contact: bridges on ordinary hosts # skipped: $1"
	exit 0
}

check() { # NAME COMMAND...
	local name="contact $1"
	shift
	if "$@" >"$work/check.log" 2>&1; then
		echo "ok $name"
	else
		failed=1
		echo "not ok $name"
		tail -n 15 "$work/check.log" "$work"/node*.log
	fi
}

# COMMAND..., tried until it succeeds, for 20 s
soon() {
	local i
	for ((i = 0; i < 200; i++)); do
		"$@" && return
		nap
	done
	return 1
}

says() { # NODE TEXT: its status
	bridge "$1" status >"$work/status" && grep -q "$2" "$work/status"
}

pings() { # FROM ADDRESS [OCTETS]
	in_ns "$1" python3 "$here/ping.py" "$2" "${3:-84}"
}

finish() { # NODE...
	local n
	for n in "$@"; do
		bridge "$n" down >"$work/down"
		wait "${pids[$n]}"
		unset "pids[$n]"
	done
}

# ---- 32: another program has the UDP port that is the broadcast group's multicast LID ----

taken_port() {
	ip netns exec "ddps$id-2" python3 "$here/holder.py" 192.0.2.2 49152 >"$work/held" &
	pids[holder]=$!
	soon grep -q held "$work/held" || return
	up 1 rc && up 2 rc && ready 1 2 || return
	soon grep -q '"join_failed"' "$work/node2.log" &&
		grep '"join_failed"' "$work/node2.log" | grep 'UDP port 49152 of 192.0.2.2: Address already in use' |
		grep 'net.ipv4.ip_local_reserved_ports' || return
	says 2 '^ib0: joining' && says 2 'not joined .*UDP port 49152 of 192.0.2.2: Address already in use'
}

port_is_free() {
	kill "${pids[holder]}"
	wait "${pids[holder]}"
	unset "pids[holder]"
	soon says 2 '^ib0: up' && ! says 2 'not joined' && pings 1 10.9.0.2 && pings 2 10.9.0.1
}

# ---- 35: two nodes with one GID ----

one_gid() {
	up 1 rc && up 2 rc && ready 1 2 && soon says 2 '^ib0: up' || return
	up 3 rc --gid fe80::2 && ready 3 || return
	soon grep -q '"subnet_notice".*LID 2, which had it first.* LID 3, which is refused' "$work/node1.log" &&
		soon says 3 'not joined .*another node has the GID fe80::2; try: another --gid' &&
		pings 1 10.9.0.2 && says 3 '^ib0: joining'
}

gid_is_free() {
	finish 2
	soon says 3 '^ib0: up' && pings 1 10.9.0.3 && pings 3 10.9.0.1 &&
		grep '"subnet_notice".*fe80::2 is at LID 3 now' "$work/node1.log"
}

start_net skip
check "32: a port that another program has is named, with what to do" taken_port
check "32: the node is there once the port is free" port_is_free
finish 2 1
check "35: a second node with a GID is refused, the first is not cut off, both ends say it" one_gid
check "35: when the first one has ended, the second is there" gid_is_free
finish 3 1
[ $failed = 0 ]
