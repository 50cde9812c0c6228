#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessctl ipoib bridge between network namespaces that this script makes and removes.
# usage: SESSCTL=... bridge.sh [rc|uc]...
# shellcheck disable=SC2154,SC2034 # variables of lib.bash
set -u
here=$(dirname "$0")
# shellcheck source=/dev/null
. "$here/lib.bash"

what="bridge between namespaces"

no_interface() { # NODE
	! in_ns "$1" ip link show ib0
}

# An orderly end: status 0, counters told, no connection that broke, nothing left behind.
ended() { # NODE HOW
	local pid=${pids[$1]}
	unset "pids[$1]"
	case $2 in
	down) bridge "$1" down && no_interface "$1" || return ;;
	*) kill "-$2" "$pid" ;;
	esac
	wait "$pid" && grep -q '"event":"ended"' "$work/node$1.log" && no_interface "$1"
}

pings() { # FROM ADDRESS [OCTETS]: a packet of that size, not split, and its answer
	in_ns "$1" python3 "$here/ping.py" "$2" "${3:-84}"
}

both_ways() {
	local other
	pings 1 10.9.0.2 &
	other=$!
	pings 2 10.9.0.1 && wait "$other"
}

ping_program() { # OPTION...: small and large echoes, none lost
	in_ns 1 timeout 20 ping "$@" -c 5 -i 0.2 -W 5 | grep "5 received" &&
		in_ns 1 timeout 20 ping "$@" -c 5 -i 0.2 -W 5 -s 60000 | grep "5 received"
}

# One connection, and it carries packets.
connected() { # NODE PEER
	local i
	for ((i = 0; i < 100; i++)); do
		bridge "$1" status >"$work/status" && [ "$(grep -c " $2 .*, up," "$work/status")" = 1 ] &&
			grep -q 'interface *tx_conn' "$work/status" && return
		pings "$1" "10.9.0.${2##*:}"
	done
	cat "$work/status"
	return 1
}

datagrams_only() { # NODE PEER: no connection is asked for
	bridge "$1" status >"$work/status" && cat "$work/status" &&
		grep -q "neighbour *10.9.0.${2##*:} .* ud, MTU 2044 " "$work/status" &&
		! grep -q "connection *$2 " "$work/status"
}

# 4 MiB through the connection, equal at the other end
file() {
	local server client
	head -c 4194304 /dev/urandom >"$work/in"
	in_ns 2 timeout 60 python3 "$here/file.py" receive 10.9.0.2 "$work/out" &
	server=$!
	in_ns 1 timeout 60 python3 "$here/file.py" send 10.9.0.2 "$work/in"
	client=$?
	wait "$server" && [ "$client" = 0 ] && [ "$(sha256sum <"$work/in")" = "$(sha256sum <"$work/out")" ]
}

mtu_is() { # NODE ADDRESS MTU: what the kernel of NODE has learnt for ADDRESS
	pings "$1" "$2" 9000
	[ $? = 3 ] || return
	in_ns "$1" ip route get "$2" | grep -E "mtu $3( |\$)"
}

iperf() { # NODE ADDRESS
	local server client i
	in_ns "$1" timeout 30 iperf3 -s -1 -B "$2" &
	server=$!
	for ((i = 0; i < 100; i++)); do
		in_ns "$1" ss -ltn | grep -q :5201 && break
		nap
	done
	in_ns 1 timeout 20 iperf3 -c "$2" -t 1
	client=$?
	wait "$server" && [ "$client" = 0 ]
}

killed() {
	kill -KILL "${pids[2]}"
	wait "${pids[2]}" 2>/dev/null
	check "the others work after a peer is killed" pings 1 10.9.0.3
	check "nothing of it is left" no_interface 2
	up 2 rc --mtu 4096
	check "the killed peer comes back with a smaller MTU" eval 'ready 2 && pings 1 10.9.0.2'
	check "there is one connection to it" connected 1 fe80::2
	check "and its MTU is learnt" mtu_is 1 10.9.0.2 4092
	check "over IPv6, too" mtu_is 1 fd09::2 4092
}

# A fresh administration knows nobody.  The others find out by their next subscription, and join again.
noticed() { # NODE
	local i
	for ((i = 0; i < 100; i++)); do
		bridge "$1" status >"$work/status" && grep -Eq 'sac_forgotten +1$' "$work/status" && return
		sleep 0.1
	done
	cat "$work/status"
	return 1
}

administration() {
	kill -KILL "${pids[1]}"
	wait "${pids[1]}" 2>/dev/null
	up 1 rc
	check "a killed administration comes back" ready 1
	check "the others join it again" eval 'noticed 2 && noticed 3'
	check "and are reached" eval 'pings 1 10.9.0.2 && pings 2 10.9.0.3'
}

packets() {
	check "ping both ways at once" both_ways
	check "ping" ping_program 10.9.0.2
	check "ping -6" ping_program -6 fd09::2
	check "one connection carries them" connected 1 fe80::2
	check "a packet of 65520 octets, not split" pings 1 10.9.0.2 65520
	check "the same over IPv6" pings 1 fd09::2 65520
	check "2044 octets to a datagram-only peer" pings 1 10.9.0.3 2044
	check "without a connection" datagrams_only 1 fe80::3
	check "more is answered with the MTU 2044" mtu_is 1 10.9.0.3 2044
	check "the same over IPv6" mtu_is 1 fd09::3 2044
	check "a file arrives unchanged" file
	check "iperf3" iperf 2 10.9.0.2
	check "iperf3 to the datagram-only peer" iperf 3 10.9.0.3
}

# Another node, on the machine of node 1.
by_hand() {
	in_ns 1 ip addr add 192.0.2.9/24 dev br0 &&
		in_ns 1 "$SESSCTL" ipoib connect --port ib --gid fe80::9 --udp 192.0.2.9:4791 --sa 192.0.2.1 \
			--peer-qpn 0x49 --set retry_count=3 fe80::2
}

carrier() {
	up 1 rc && up 2 rc --qpn 0x49 && up 3 ud # all simultaneously: a crossed start
	check "three bridges start at once" ready 1 2 3
	packets
	check "one REQ by hand, and its answer" by_hand
	killed
	administration
	check "node 1 ends on Ctrl-C" ended 1 INT
	check "node 2 ends on SIGTERM" ended 2 TERM
	check "node 3 ends by 'bridge down'" ended 3 down
}

# It is stopped, asked, and goes on.
hangs() { # NODE
	local status
	kill -STOP "${pids[$1]}"
	bridge "$1" status 2>"$work/hangs"
	status=$?
	kill -CONT "${pids[$1]}"
	cat "$work/hangs"
	[ $status = 5 ] && grep -q "the bridge on ib0 does not answer" "$work/hangs" && bridge "$1" status
}

# What tshark makes of the capture: header types, addresses, and what the CM messages announced.
captured() {
	tshark -r "$work/cap.pcap" -T fields -e arp.hw.type -e arp.proto.type -e ip.src -e icmp.type \
		-e ipv6.src -e icmpv6.type -e infiniband.mad.attributeid -e infiniband.deth.srcqp \
		-E separator=, >"$work/fields" 2>"$work/tshark.log"
	cat "$work/fields" "$work/tshark.log"
	grep -q '^32,0x0800,' "$work/fields" && # ARP with InfiniBand addresses
		grep -q ',10.9.0.1,8,' "$work/fields" && grep -q ',10.9.0.2,0,' "$work/fields" &&
		grep -q ',fd09::2,128,' "$work/fields" && grep -q ',fd09::1,129,' "$work/fields" &&
		for attribute in 0x0010 0x0013 0x0014 0x0015; do
			grep -q ",$attribute," "$work/fields" || return
		done &&
		tshark -r "$work/cap.pcap" -Y 'infiniband.bth.opcode == 36' | grep -q ICMP &&
		"$SESSCTL" ipoib mad "$work/cap.pcap" | grep -q 'IPoIB: UD QPN 0x.*, Receive MTU 65524'
}

# Unreliable connections, and a capture.
unreliable() {
	up 1 rc,uc --capture "$work/cap.pcap" && up 2 uc
	check "two bridges start" ready 1 2
	check "ping" pings 1 10.9.0.2
	check "ping -6" pings 2 fd09::1
	check "one connection" connected 1 fe80::2
	check "an unreliable one" grep "connection *fe80::2 *uc, up" "$work/status"
	check "a bridge that hangs is said to" hangs 2
	check "node 2 ends" ended 2 TERM
	check "node 1 ends" ended 1 down
	if command -v tshark >/dev/null; then
		check "its capture in tshark" captured
	else
		echo "ok $kind: its capture in tshark # skipped: no tshark (Debian package tshark)"
	fi
}

# A node that is its own administration sends to itself.
loopback_needed() {
	in_ns 1 ip link set lo down
	up 1 rc
	! wait "${pids[1]}" || return
	unset "pids[1]"
	in_ns 1 ip link set lo up
	grep 'loopback device, which is down' "$work/node1.log" && grep 'ip link set lo up' "$work/node1.log"
}

start_net
group="start: "
check "the administration needs the loopback device" loopback_needed
[ $# != 0 ] || set -- rc uc
for kind in "$@"; do
	group="$kind: "
	case $kind in
	uc) unreliable ;;
	*) carrier ;;
	esac
done
[ "$failed" = 0 ]
