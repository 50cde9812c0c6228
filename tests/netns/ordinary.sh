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

what="contact: bridges on ordinary hosts" group="contact "

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
		soon grep '"join_failed"' "$work/node2.log" | grep 'UDP port 49152 of 192.0.2.2: Address already in use' |
		grep 'net.ipv4.ip_local_reserved_ports' || return
	says 2 '^ib0: joining' && says 2 'not joined .*UDP port 49152 of 192.0.2.2: Address already in use'
}

port_is_free() {
	kill "${pids[holder]}"
	wait "${pids[holder]}"
	unset "pids[holder]"
	soon says 2 '^ib0: up' && ! says 2 'not joined' && pings 1 10.9.0.2 && pings 2 10.9.0.1
}

# ---- an administration that is not there ----

wrong_sa() {
	up 2 rc --sa 192.0.2.77 && ready 2 && soon grep -q join_failed "$work/node2.log" &&
		grep 'does not answer; try: start it, and see that --sa is its address' "$work/node2.log" &&
		says 2 'not joined .*the subnet administration does not answer; try: '
}

# It goes under links that are up, and comes back: nothing else would show it for a while.
lost_sa() {
	up 1 rc && up 2 rc && ready 1 2 && soon says 2 '^ib0: up' && pings 1 10.9.0.2 || return
	kill -KILL "${pids[1]}"
	wait "${pids[1]}"
	soon grep '"subnet_notice".*the subnet administration at 192.0.2.1 does not answer any more.*; try: start it' \
		"$work/node2.log" && says 2 'last said .*administration at 192.0.2.1 does not answer' || return
	up 1 rc && ready 1 && soon grep '"subnet_notice".*administration at 192.0.2.1 answers again' "$work/node2.log" &&
		soon pings 2 10.9.0.1
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
		soon grep '"subnet_notice".*fe80::2 is at LID 3 now' "$work/node1.log"
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
			soon grep '"ipv6_refused"' "$work/node2.log" && soon gone 2 fd09::2
	fi
}

# With datagrams only the device says what one of them holds: the kernel splits, or answers "too big".
narrow_datagrams() {
	net_mtu 1500 && up 1 ud && up 2 ud && ready 1 2 && soon says 2 '^ib0: up, MTU 1020' &&
		in_ns 2 ip link show dev ib0 | grep 'mtu 1020 ' && pings 1 10.9.0.2 900 &&
		in_ns 2 ping -c 1 -W 5 -M dont -s 3000 10.9.0.1
}

# The link keeps its MTU until its administration is started again; the other node is not.
widens() {
	net_mtu 1500 && up 1 rc && up 2 rc && ready 1 2 && soon says 2 '^ib0: up' &&
		soon says 2 'IPv6 is not served: .*; give the network below an MTU of 2200, then start the administration again' ||
		return
	net_mtu 9000
	finish 1
	up 1 rc && ready 1 && soon pings 1 fd09::2 && pings 2 fd09::1 60000 && pings 1 10.9.0.2 &&
		! says 2 'IPv6 is not served'
}

narrows_again() {
	net_mtu 1500 && goes_down 2 "the link's MTU is 2048, and the network carries packets of 1024; try: "
	finish 1
	up 1 rc && ready 1 && soon says 2 '^ib0: up' && soon pings 1 10.9.0.2 60000 &&
		says 2 'IPv6 is not served' && soon gone 2 fd09::2
}

# An address that is added to a link that does not carry it.
added_to_a_narrow_link() {
	ip netns exec "ddps$id-2" "$SESSCTL" ipoib bridge --json --tun ib0 --gid fe80::2 --udp 192.0.2.2:4791 \
		--sa 192.0.2.1 --ip 10.9.0.2/24 >"$work/node2.log" 2>&1 &
	pids[2]=$!
	ready 2 && soon says 2 '^ib0: up' && ! says 2 'IPv6 is not served' && ! grep ipv6_refused "$work/node2.log" &&
		in_ns 2 ip addr add fd09::2/64 dev ib0 && soon says 2 'IPv6 is not served' &&
		soon grep -q ipv6_refused "$work/node2.log"
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

# An agent has no interface: it answers ARP in datagrams, and takes packets of any size on a connection.
agent_at() {
	ip netns exec "ddps$id-3" "$(dirname "$SESSCTL")/example-ib_accept" 192.0.2.3 1 10.9.0.3 >"$work/agent.log" 2>&1 &
	pids[agent]=$!
	soon grep -q waiting "$work/agent.log" || return
	in_ns 1 ping -q -c 20 -i 0.2 -W 1 -s 60000 10.9.0.3 # it never answers, and ends with the first one
	wait "${pids[agent]}"
	local status=$?
	unset "pids[agent]"
	cat "$work/agent.log"
	[ $status = 0 ] && grep '60028 octets on queue pair' "$work/agent.log"
}

agent_is_told() {
	in_ns 3 ip link set eth0 mtu 1500
	in_ns 3 timeout 5 "$(dirname "$SESSCTL")/example-ib_accept" 192.0.2.3 1 10.9.0.3 >"$work/agent.log" 2>&1
	cat "$work/agent.log"
	grep 'its MTU is 2048, and the network carries packets of 1024' "$work/agent.log"
}

too_narrow() {
	net_mtu 300
	up 1 rc
	! wait "${pids[1]}" && unset "pids[1]" && grep 'an MTU below 336' "$work/node1.log" || return
	! in_ns 3 "$SESSCTL" ipoib connect --port ib --gid fe80::3 --udp 192.0.2.3:4791 --sa 192.0.2.1 \
		--peer-qpn 0x49 fe80::2 2>"$work/narrow" && grep 'an MTU below 336' "$work/narrow"
}

# The administration was given more than the network of a node carries: that node says so.
wider_than_the_node() {
	in_ns 2 ip link set eth0 mtu 1500
	up 1 rc && up 2 rc && ready 1 2 || return
	soon says 2 'not joined .*its MTU is 2048, and the network carries packets of 1024; try: a larger MTU'
}

# ---- 30: a network that changes under a link that is up ----

goes_down() { # NODE WHY: said, and in its status
	soon says "$1" "the link is down: .*$2" && soon grep '"link".*"up":false' "$work/node$1.log" | grep "$2" &&
		says "$1" '^ib0: joining'
}

comes_back() { # NODE
	soon says "$1" '^ib0: up' && ! says "$1" 'link is down' && ! says "$1" 'not joined' &&
		pings "$1" 10.9.0.1 60000 && pings 1 "fd09::$1" 60000
}

shrinks() { # the far end sends what this interface does not take, so nothing fails here
	net_mtu 2200 && up 1 rc && up 2 rc && ready 1 2 && soon says 2 '^ib0: up' && pings 1 10.9.0.2 60000 || return
	in_ns 2 ip link set eth0 mtu 1500 && goes_down 2 "the link's MTU is 2048, and the network carries packets of 1024; try: "
}

grows() {
	in_ns 2 ip link set eth0 mtu 2200 && comes_back 2
}

administration_shrinks() {
	in_ns 1 ip link set br0 mtu 1500 && goes_down 1 "the link's MTU is 2048, and the network carries packets of 1024; try: " &&
		in_ns 1 ip link set v2 mtu 2200 && in_ns 1 ip link set v3 mtu 2200 && in_ns 1 ip link set br0 mtu 2200 &&
		soon says 1 '^ib0: up' && comes_back 2
}

unplugged() {
	in_ns 1 ip link set v2 down && goes_down 2 'the network interface eth0 is down or has no carrier; try: ' &&
		in_ns 1 ip link set v2 up && comes_back 2 &&
		in_ns 2 ip addr del 192.0.2.2/24 dev eth0 &&
		goes_down 2 'no network interface has the address 192.0.2.2 any more; try: ip addr add' &&
		in_ns 2 ip addr add 192.0.2.2/24 dev eth0 && comes_back 2
}

filtered() { # one destination: the link is up
	in_ns 2 ip route add prohibit 192.0.2.1 && ! pings 2 10.9.0.1 || return
	soon grep '"subnet_notice".*packets to 192.0.2.1, UDP port 4791, are not sent: .*; try: ' "$work/node2.log" &&
		says 2 'last said .*192.0.2.1' && in_ns 2 ip route del prohibit 192.0.2.1 &&
		soon pings 2 10.9.0.1
}

# A switch drops what is too long for one of its ports, and says nothing: the port of node 2 here.  With a
# short lifetime of packets a connection fails after a second.
swallowed() {
	up 1 rc --lifetime 14 && up 2 rc && ready 1 2 && soon says 2 '^ib0: up' && pings 1 10.9.0.2 60000 || return
	# segments by themselves: what the kernel has not cut yet passes
	in_ns 1 ip link set br0 gso_max_segs 1 && in_ns 2 ip link set eth0 gso_max_segs 1 &&
		in_ns 1 ip link set v2 mtu 1500 && in_ns 1 ip link set br0 mtu 2200 || return
	local i
	for ((i = 0; i < 60; i++)); do
		in_ns 1 ping -q -c 1 -W 1 -s 20000 10.9.0.2
		soon grep '"subnet_notice".*packets with 2048 octets of payload to LID 2 are never acknowledged, .*--link-mtu 1024' \
			"$work/node1.log" && break
	done
	says 1 'last said .*octets of payload to LID 2 are never acknowledged.*; try: ' && says 1 '^ib0: up' &&
		pings 1 10.9.0.2 && in_ns 1 ip link set v2 mtu 2200 && in_ns 1 ip link set br0 mtu 2200 &&
		soon pings 1 10.9.0.2 60000
}

# ---- 35: what was refused, by reason ----

refusals() {
	up 1 rc && ready 1 && soon says 1 '^ib0: up' || return
	local to=(--port ib --gid fe80::3 --udp 192.0.2.3:4791 --sa 192.0.2.1 --peer-qpn 0x12345 --set retry_count=3)
	! in_ns 3 "$SESSCTL" ipoib connect "${to[@]}" fe80::1 && ! in_ns 3 "$SESSCTL" ipoib connect "${to[@]}" fe80::77 &&
		bridge 1 status --metrics >"$work/metrics" || return
	grep '^ddpsess_ipoib_events_total{tun="ib0",part="rejected",event="[a-z ]*service ID[a-z ]*"} [1-9]' "$work/metrics" &&
		grep '^ddpsess_ipoib_events_total{tun="ib0",part="port",event="sa_ref_[a-z]*"} [1-9]' "$work/metrics" &&
		grep '^ddpsess_ipoib_up{tun="ib0"} 1$' "$work/metrics" &&
		! grep -v '^# \|^ddpsess_ipoib_[a-z_]*{tun="ib0"[^}]*} [0-9]*$' "$work/metrics"
}

# ---- 37: addresses that come and go ----

later() {
	net_mtu 2200 && up 1 rc && up 2 rc && ready 1 2 && soon says 2 '^ib0: up' || return
	in_ns 2 ip addr add 10.9.0.77/24 dev ib0 && in_ns 2 ip addr add fd09::77/64 dev ib0 &&
		in_ns 2 ip addr add 172.31.5.2/16 dev ib0 && in_ns 1 ip addr add 172.31.5.1/16 dev ib0 &&
		pings 1 10.9.0.77 && pings 1 fd09::77 && pings 1 172.31.5.2 && pings 2 172.31.5.1 &&
		pings 1 10.9.0.2 && pings 1 fd09::2
}

kernels_own() { # the link-local address that no option names
	local a
	a=$(in_ns 2 ip -6 -o addr show dev ib0 scope link | sed -n 's|.* inet6 \([^/]*\)/.*|\1|p' | head -n 1)
	[ -n "$a" ] && in_ns 1 ping -6 -c 3 -i 0.2 -W 5 "$a%ib0"
}

taken_away() {
	in_ns 2 ip addr del 10.9.0.77/24 dev ib0 && in_ns 2 ip addr del 10.9.0.2/24 dev ib0 || return
	in_ns 3 ip link set eth0 up
	up 3 rc && ready 3 && soon says 3 '^ib0: up' && pings 3 10.9.0.1 || return
	# whoever has not learned of them gets no answer; another host can have them
	! in_ns 3 ping -c 2 -W 1 10.9.0.77 && ! in_ns 3 ping -c 2 -W 1 10.9.0.2 &&
		in_ns 3 ip addr add 10.9.0.77/24 dev ib0 && pings 1 10.9.0.77
}

two_prefixes() { # of one address
	in_ns 2 ip addr add 10.9.0.78/24 dev ib0 && in_ns 2 ip addr add 10.9.0.78/25 dev ib0 && pings 1 10.9.0.78 &&
		in_ns 2 ip addr del 10.9.0.78/25 dev ib0 && pings 3 10.9.0.78 # which has not learned of it
}

# ---- 37: two nodes with one IP address ----

doubles() {
	up 1 rc && up 2 rc && ready 1 2 && soon says 2 '^ib0: up' &&
		pings 1 10.9.0.2 && pings 1 fd09::2 || return # they are node 2's by now
	: >"$work/node3.log"
	ip netns exec "ddps$id-3" "$SESSCTL" ipoib bridge --json --tun ib0 --gid fe80::3 --udp 192.0.2.3:4791 \
		--sa 192.0.2.1 --ip 10.9.0.2/24 --ip fd09::2/64 --ip fd09::3/64 >"$work/node3.log" 2>&1 &
	pids[3]=$!
	ready 3 || return
	local a
	for a in 10.9.0.2 fd09::2; do
		soon grep "address_conflict.*the node with the GID fe80::2 had $a first, so this one (GID fe80::3) does not" \
			"$work/node3.log" && says 3 "conflict .*GID fe80::2 had $a first" || return
	done
	# One that hears an announcement just then gives it up without a question, of which node 2 would learn: it is asked again.
	soon gone 3 10.9.0.2 && soon gone 3 fd09::2 && in_ns 3 ip addr add 10.9.0.2/24 dev ib0 &&
		soon grep 'address_conflict.*the node with the GID fe80::3 has or wants 10.9.0.2, which this one (GID fe80::2) has' \
			"$work/node2.log" && says 2 'conflict .*GID fe80::3' && soon gone 3 10.9.0.2 &&
		# nobody takes the newcomer for their owner
		in_ns 1 ping -c 3 -i 0.2 -W 5 10.9.0.2 && in_ns 1 ping -6 -c 3 -i 0.2 -W 5 fd09::2 &&
		pings 3 fd09::1 && bridge 3 status | grep -q 'ip_conflict'
}

# From the start to its use: 4 to 7 s for IPv4, 1 to 2 s for IPv6, with some time for a busy machine.
asked_first() {
	local v4=0 v6=0 t i
	t=$(date +%s%N)
	up 1 rc && ready 1 || return
	for ((i = 0; i < 2000 && !(v4 && v6); i++)); do
		bridge 1 status >"$work/status"
		((v6)) || ! grep -q 'address *fd09::1 *in use' "$work/status" || v6=$((($(date +%s%N) - t) / 1000000))
		((v4)) || ! grep -q 'address *10.9.0.1 *in use' "$work/status" || v4=$((($(date +%s%N) - t) / 1000000))
		nap
	done
	echo "IPv4 after $v4 ms, IPv6 after $v6 ms"
	((v4 >= 4000 && v4 < 12000 && v6 >= 1000 && v6 < 7000))
}

# Whoever was stopped while another node got the address has it no more.
stopped() {
	finish 3
	kill -STOP "${pids[2]}"
	: >"$work/node3.log"
	ip netns exec "ddps$id-3" "$SESSCTL" ipoib bridge --json --tun ib0 --gid fe80::3 --udp 192.0.2.3:4791 \
		--sa 192.0.2.1 --ip 10.9.0.2/24 --ip fd09::3/64 >"$work/node3.log" 2>&1 &
	pids[3]=$!
	ready 3 && soon says 3 'address *10.9.0.2 *in use' && kill -CONT "${pids[2]}" || return
	soon grep 'address_conflict.*the node with the GID fe80::3 had 10.9.0.2 first' "$work/node2.log" &&
		soon gone 2 10.9.0.2 && says 3 'address *10.9.0.2 *in use' && pings 1 10.9.0.2
}

gone() { # NODE ADDRESS
	! in_ns "$1" ip -o addr show dev ib0 | grep " $2/"
}

single() { # the other one has gone
	finish 3
	in_ns 2 ip addr add 10.9.0.2/24 dev ib0 && soon says 2 'address *10.9.0.2 *in use' && pings 1 10.9.0.2 &&
		! says 2 'conflict .* had 10.9.0.2 first'
}

lease() { # OPTION...: of a client in the second node, whose device has no IPv4 address
	in_ns 2 timeout 20 udhcpc -i ib0 -f -n -q -t 3 -T 1 -s "$work/lease.sh" "$@" 2>&1
}

dhcp() {
	# shellcheck disable=SC2016 # of the script
	printf '#!/bin/sh\n[ "$1" != bound ] || ip addr add "$ip/24" dev "$interface"\n' >"$work/lease.sh"
	chmod +x "$work/lease.sh"
	up 1 rc
	: >"$work/node2.log"
	ip netns exec "ddps$id-2" "$SESSCTL" ipoib bridge --json --tun ib0 --gid fe80::2 \
		--udp 192.0.2.2:4791 --sa 192.0.2.1 >"$work/node2.log" 2>&1 &
	pids[2]=$!
	ready 1 2 && soon says 2 '^ib0: up' || return
	ip netns exec "ddps$id-1" dnsmasq --keep-in-foreground --conf-file=/dev/null --port=0 --interface=ib0 \
		--user=root --dhcp-range=10.9.0.100,10.9.0.110,120 --dhcp-leasefile="$work/leases" \
		--pid-file="$work/dnsmasq.pid" --no-ping >"$work/dnsmasq.log" 2>&1 &
	pids[dnsmasq]=$!
	soon [ -s "$work/dnsmasq.pid" ] && soon says 1 'address *10.9.0.1 *in use' || return
	! lease && soon grep '"dhcp".*broadcast flag (udhcpc -B)' "$work/node2.log" &&
		grep '"dhcp".*udhcpc -x 0x3d:000000000000000002' "$work/node2.log" &&
		lease -B -x 0x3d:000000000000000002 && grep 000000000000000002 <(tr -d : <"$work/leases") &&
		in_ns 2 ip addr show dev ib0 | grep "inet 10.9.0.1[01]" &&
		pings 1 "$(in_ns 2 ip -4 -o addr show dev ib0 | sed -n 's|.* inet \([^/]*\)/.*|\1|p')"
}

start_net
check "32: a port that another program has is named, with what to do" taken_port
check "32: the node is there once the port is free" port_is_free
finish 2 1
check "a wrong --sa is said to be one, with what to try" wrong_sa
finish 2
check "35: an administration that is gone is said, and that it is back" lost_sa
finish 2 1
check "35: a second node with a GID is refused, the first is not cut off, both ends say it" one_gid
check "35: when the first one has ended, the second is there" gid_is_free
finish 3 1
check "30: a group above what the network of a node carries is named" wider_than_the_node
check "30: an agent is told it, too" agent_is_told
finish 2 1
for sizes in 1280:1024 1500:1024 9000:2048; do
	mtu=${sizes%:*}
	check "30: bridges at MTU $mtu, each family served or refused with the reason" bridges_at "$mtu" "${sizes#*:}"
	check "30: connect at MTU $mtu" connect_at
	check "30: listen at MTU $mtu" listen_at
	check "30: an agent at MTU $mtu" agent_at
	finish 2 1
done
check "35: IPv6 is served when the administration is started again on a wider network" widens
check "35: a link that is narrower after that is joined, without IPv6" narrows_again
finish 2
check "35: an IPv6 address that is added to a narrow link is refused with the reason" added_to_a_narrow_link
finish 2 1
check "30: a network that shrinks under a link takes it down, and says why" shrinks
check "30: the link comes back when the network has grown" grows
check "30: the same with the administration's network" administration_shrinks
check "30: an interface without carrier or address is named, and the link comes back" unplugged
check "30: packets that the system refuses are said, with the address" filtered
finish 2 1
check "30: long packets that something between drops are said, with what to try" swallowed
finish 2 1
check "30: datagrams only, at MTU 1500: the device has their MTU" narrow_datagrams
finish 2 1
check "35: what was refused is counted by reason, for Prometheus" refusals
finish 1
check "37: addresses that are added later are answered" later
check "37: so is the one that the kernel has chosen" kernels_own
check "37: what is taken away is not, and another host can have it" taken_away
check "37: an address with two prefixes stays when one goes" two_prefixes
finish 3 2 1
check "37: a second node with an IP address gives it up, the first one keeps it, both name both GIDs" doubles
check "37: one that was stopped while another got its address gives it up" stopped
check "37: when that one has gone the other can have it again, and there is no conflict" single
finish 2 1
check "37: an address is used after the link was asked for it, and status says so" asked_first
finish 1
if command -v udhcpc >/dev/null && command -v dnsmasq >/dev/null; then
	check "37: DHCP: a client that cannot be answered is told why, else it gets its address" dhcp
	kill "${pids[dnsmasq]}"
	wait "${pids[dnsmasq]}"
	unset "pids[dnsmasq]"
	finish 2 1
else
	echo "ok contact 37: DHCP # skipped: no udhcpc or dnsmasq (Debian packages udhcpc, dnsmasq-base)"
fi
check "30: a network that carries no MAD is refused" too_narrow
[ "$failed" = 0 ]
