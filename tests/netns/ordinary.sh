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

# ---- 30: networks of any MTU, with every family of addresses ----

net_mtu() { # OCTETS
	in_ns 1 ip link set v2 mtu "$1" && in_ns 1 ip link set v3 mtu "$1" && in_ns 1 ip link set br0 mtu "$1" &&
		in_ns 2 ip link set eth0 mtu "$1" && in_ns 3 ip link set eth0 mtu "$1"
}

# IPv4 is served on each network, IPv6 where datagrams are long enough, else it is said why not.
bridges_at() { # MTU LINK-MTU
	net_mtu "$1" && up 1 rc && up 2 rc && ready 1 2 && soon says 2 '^ib0: up' && pings 1 10.9.0.2 60000 || return
	if [ "$2" -ge 2048 ]; then
		pings 1 fd09::2 60000 && ! says 2 'IPv6 is not served'
	else
		says 2 "IPv6 is not served: a datagram of this link holds $(($2 - 4)) octets, and IPv6 needs 1280" &&
			grep '"ipv6_refused"' "$work/node2.log"
	fi
}

# The commands are nodes without IP, so each MTU that carries a MAD will do.
connect_at() {
	in_ns 3 "$SESSCTL" ipoib connect --port ib --gid fe80::3 --udp 192.0.2.3:4791 --sa 192.0.2.1 \
		--peer-qpn "$(bridge 2 status --json | python3 -c 'import json, sys
print(int(json.load(sys.stdin)["lladdr"][3:11].replace(":", ""), 16))')" --set retry_count=3 fe80::2
}

listen_at() {
	ip netns exec "ddps$id-3" "$SESSCTL" ipoib listen --json --port ib --gid fe80::3 --udp 192.0.2.3:4791 \
		--sa 192.0.2.1 --qpn 0x49 >"$work/listen.log" 2>&1 &
	pids[listen]=$!
	soon grep -q listening "$work/listen.log" || return
	in_ns 1 ip addr add 192.0.2.9/24 dev br0
	in_ns 1 "$SESSCTL" ipoib connect --port ib --gid fe80::9 --udp 192.0.2.9:4791 --sa 192.0.2.1 \
		--peer-qpn 0x49 --set retry_count=3 fe80::3
	local status=$?
	in_ns 1 ip addr del 192.0.2.9/24 dev br0
	kill "${pids[listen]}"
	wait "${pids[listen]}"
	unset "pids[listen]"
	cat "$work/listen.log"
	[ $status = 0 ]
}

too_narrow() {
	net_mtu 300
	up 1 rc
	! wait "${pids[1]}" && unset "pids[1]" && grep 'an MTU below 336' "$work/node1.log" || return
	! in_ns 3 "$SESSCTL" ipoib connect --port ib --gid fe80::3 --udp 192.0.2.3:4791 --sa 192.0.2.1 \
		--peer-qpn 0x49 fe80::2 2>"$work/narrow" && grep 'an MTU below 336' "$work/narrow"
}

# The administration was told more than the network of a node carries: that node says so.
wider_than_the_node() {
	in_ns 2 ip link set eth0 mtu 1500
	up 1 rc && up 2 rc && ready 1 2 || return
	soon says 2 'not joined .*its MTU is 2048, and the network carries packets of 1024; try: a larger MTU'
}

start_net skip
check "32: a port that another program has is named, with what to do" taken_port
check "32: the node is there once the port is free" port_is_free
finish 2 1
check "35: a second node with a GID is refused, the first is not cut off, both ends say it" one_gid
check "35: when the first one has ended, the second is there" gid_is_free
finish 3 1
check "30: a group above what the network of a node carries is named" wider_than_the_node
finish 2 1
for sizes in 1280:1024 1500:1024 9000:2048; do
	mtu=${sizes%:*}
	check "30: bridges at MTU $mtu, each family served or refused with the reason" bridges_at "$mtu" "${sizes#*:}"
	check "30: connect at MTU $mtu" connect_at
	check "30: listen at MTU $mtu" listen_at
	finish 2 1
done
check "30: a network that carries no MAD is refused" too_narrow
[ $failed = 0 ]
