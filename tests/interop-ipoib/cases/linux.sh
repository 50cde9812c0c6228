# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# Ours with Linux: joins, echoes, files.
# needs: sessctl
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"

# examples/ib_accept.c passes a REQ of Linux: the agent without an interface.
# needs: example-ib_accept
case-agent-alone() {
	host_start agent "$(dirname "$sessctl")/example-ib_accept" 10.77.0.1 1 10.88.0.1
	await 10 grep -q '^waiting' "$work/agent.out" || fail "it does not start"
	linux_up
	guest "ping -q -c 3 -s 3000 -W 2 10.88.0.1" || true # nobody answers echoes
	await 20 grep -q ' octets on queue pair' "$work/agent.out" || fail "no packet came: $(cat "$work/agent.out")"
	grep -q '^RX_REQ, LID 2' "$work/agent.out" || fail "no REQ of Linux: $(cat "$work/agent.out")"
	host_wait agent || fail "it ends with an error"
}

# What tshark makes of the wire: every kind of message.
case-capture() {
	[ -n "${pid_wire-}" ] || skip "no tshark"
	up 1
	linux_up
	reach 1 10.88.0.2 5000
	pings 1 10.88.0.2 3 5000 || fail "ours first"
	pings 2 10.88.0.1 2 5000 || fail "Linux"
	ended_well 1
	await 10 eval 'tshark -r "$work/wire.pcap" -Y "infiniband.mad.attributeid == 0x16" 2>/dev/null | grep -q .' ||
		fail "no DREP"
	tshark -r "$work/wire.pcap" -T fields -e infiniband.mad.attributeid >"$work/attributes" 2>/dev/null
	for a in 0x0010 0x0013 0x0014 0x0015 0x0016 0x0035 0x0038; do
		grep -q "$a" "$work/attributes" || fail "no MAD with attribute $a"
	done
}

# Linux in datagram mode: it takes our connection and answers in datagrams.
# quick
case-datagram() {
	up 1
	linux_up datagram
	reach 1 10.88.0.2 1000
	pings 1 10.88.0.2 4 1000 || fail "ours first"
	pings 2 10.88.0.1 3 1000 || fail "Linux"
	pings 1 10.88.0.2 3 20000 || fail "a large packet, which Linux answers in fragments"
	clean 1
	ended_well 1
}

# Twenty megabytes each way, unchanged.
case-file() {
	up 1
	linux_up
	reach 1 10.88.0.2 56
	pings 1 10.88.0.2 2 56 || fail "no echo"
	head -c 20971520 /dev/urandom >"$work/in"
	guest_start sink 'nc -l -p 7000 >/tmp/in'
	await 10 guest 'netstat -ltn | grep -q :7000' || fail "nobody listens"
	host timeout 100 bash -c 'cat "$1" >/dev/tcp/10.88.0.2/7000' - "$work/in" || fail "sending"
	guest_wait sink 60 || fail "receiving"
	[ "$(guest 'sha256sum </tmp/in')" = "$(sha256sum <"$work/in")" ] || fail "changed on the way to Linux"
	guest_start source 'nc -l -p 7001 </tmp/in'
	await 10 guest 'netstat -ltn | grep -q :7001' || fail "nobody listens"
	host timeout 100 bash -c 'cat </dev/tcp/10.88.0.2/7001 >"$1"' - "$work/out" || fail "fetching"
	cmp "$work/in" "$work/out" || fail "changed on the way from Linux"
	clean 1
	detail "$(count 1 qp_again) packets repeated, $(count 1 conn_up) connections"
	ended_well 1
}

# Neighbour discovery and echoes over IPv6.
# quick
case-ipv6() {
	up 1
	linux_up
	reach 1 fd88::2 60000
	pings 1 fd88::2 4 60000 || fail "ours first"
	pings 2 fd88::1 3 60000 || fail "Linux"
	clean 1
	ended_well 1
}

# Linux joins the broadcast group of our administration, and takes what it says.
# quick
case-join() {
	up 1
	linux_up
	guest 'ip -o link show ib0' | grep -q 'mtu 65520' || fail "no connected mode"
	await 5 eval '[ "$(count 1 sa_queries)" -ge 6 ]' || fail "Linux asked $(count 1 sa_queries) times"
	# of ours those for groups that are not there
	[ "$(count 1 sa_refused)" = "$(count 1 sac_refused)" ] || fail "a query of Linux was refused"
	guest 'cat /sys/class/infiniband/rxe0/ports/1/link_layer' | grep -q InfiniBand || fail "no InfiniBand"
	clean 1
	detail "$(count 1 sa_queries) queries, $(count 1 sa_groups) groups"
	ended_well 1
}

# A link MTU of 4096: datagrams of 4092 octets.
# quick
case-link-mtu-4096() {
	up 1 --link-mtu 4096 --mode ud --mtu 4096
	linux_up datagram
	reach 2 10.88.0.1 4000
	guest 'ip link set ib0 mtu 4092' || fail "Linux does not take an MTU of 4092"
	pings 2 10.88.0.1 3 4000 || fail "4000 octets"
	guest 'cat /sys/class/net/ib0/mtu' | grep -qx 4092 || fail "another MTU"
	clean 1
	ended_well 1
}

# Linux connects to us: small and large echoes.
# quick
case-linux-first() {
	up 1
	linux_up
	reach 2 10.88.0.1 60000
	pings 2 10.88.0.1 5 60000 || fail "no echo of 60000 octets"
	pings 2 10.88.0.1 3 56 || fail "no echo of 56 octets"
	both_connected 1
	clean 1
	ended_well 1
}

# We connect to Linux: small and large echoes.
# quick
case-ours-first() {
	up 1
	linux_up
	reach 1 10.88.0.2 56
	pings 1 10.88.0.2 5 56 || fail "no echo of 56 octets"
	pings 1 10.88.0.2 5 60000 || fail "no echo of 60000 octets"
	both_connected 1
	clean 1
	ended_well 1
	guest 'cat /sys/class/infiniband/rxe0/ports/1/cm_rx_msgs/dreq' | grep -qv '^0$' || fail "no DREQ came"
}

# We take no connections: Linux uses datagrams.
# quick
case-ours-ud() {
	up 1 --mode ud
	linux_up
	reach 1 10.88.0.2 1000
	pings 1 10.88.0.2 4 1000 || fail "ours first"
	pings 2 10.88.0.1 3 1000 || fail "Linux"
	[ "$(connections 1)" = 0 ] || fail "there is a connection"
	clean 1
	ended_well 1
}

# A controlled Q_Key: all datagrams of the link have it.
# quick
case-qkey() {
	up 1 --qkey 0x80001234
	linux_up
	reach 1 10.88.0.2 56
	pings 1 10.88.0.2 3 56 || fail "ours first"
	pings 2 10.88.0.1 3 56 || fail "Linux"
	clean 1
	ended_well 1
}

# Two of ours and Linux: everybody reaches everybody.
case-three-nodes() {
	up 1
	up 3
	linux_up
	for to in 1 3; do
		reach 2 "10.88.0.$to" 20000
		pings 2 "10.88.0.$to" 3 20000 || fail "Linux to $to"
	done
	pings 1 10.88.0.2 3 20000 || fail "1 to Linux"
	pings 3 10.88.0.2 3 20000 || fail "3 to Linux"
	both_connected 3
	clean 1
	clean 3
	ended_well 3
	ended_well 1
}

# Three of ours and three guests with Linux on one subnet: everybody reaches everybody, with 20 000 octets
# and by IPv6, and each pair has the connections that it should have.
case-three-of-each() {
	ours=(1 3 4) linux=(2 5 6)
	all=("${ours[@]}" "${linux[@]}")
	more_guests 5 6
	apart 3 4
	for n in "${ours[@]}"; do
		up "$n"
	done
	for n in "${linux[@]}"; do
		linux_up connected "$n"
	done

	ways=0
	for from in "${all[@]}"; do
		for to in "${all[@]}"; do
			[ "$from" != "$to" ] || continue
			reach "$from" "10.88.0.$to" 20000
			pings "$from" "10.88.0.$to" 2 20000 || fail "$from to $to"
			ways=$((ways + 1))
		done
	done

	# With each of ours one connection, with each Linux one in each direction.
	for n in "${ours[@]}"; do
		await 10 eval '[ "$(connections "$n")" = 8 ]' || fail "$n has $(connections "$n") connections, not 8"
	done
	for n in "${linux[@]}"; do
		for to in "${all[@]}"; do
			[ "$n" = "$to" ] || pings "$n" "fd88::$to" 2 1000 ||
				fail "IPv6 from $n to $to"
		done
	done
	detail "$ways ways, 8 connections at each of ours"
	for n in "${ours[@]}"; do
		clean "$n"
	done
	for n in 4 3 1; do
		ended_well "$n"
	done
}
