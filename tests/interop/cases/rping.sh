# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Data between our programs and those on siw, both ways round.

# siw's rping calls us.
rping_called() { # OCTETS COUNT
	rping_listen "tcp://$HOST:0"
	LAB_LIMIT=260 guest "timeout 250 rping -c -a $HOST -p $port -S $1 -C $2" >"$work/rping" ||
		fail "rping -c -S $1: $(tail -n 1 "$work/rping")"
	host_wait rping || fail "rping_peer, $1 octets: $(tail -n 1 "$work/rping.err")"
	grep -qx "$2 pings served" "$work/rping.out" || fail "$(tail -n 1 "$work/rping.out")"
}

# We call siw's rping.
rping_calls() { # OCTETS [OPTION...]
	host timeout 250 "$build/example-rping_peer" -c "tcp://$GUEST:$PORT" -S "$@" \
		>"$work/rping.out" 2>"$work/rping.err" || fail "rping_peer -S $*: $(tail -n 1 "$work/rping.err")"
}

# siw's rping calls ours: its Sends, our Reads and Writes, small to several FPDUs long.
# needs: example-rping_peer
case-rping-client-siw() {
	siw param mpa_crc_required=1
	capture
	for size in 64 100 1455 1456 4000 65000; do
		rping_called "$size" 3
	done
	judge
}

# siw asks for no CRCs, we do: there are CRCs, and siw's are good.
# needs: example-rping_peer
case-rping-client-siw-ours() {
	siw vanilla
	capture
	rping_called 10000 20
	judge
}

# siw as a peer-to-peer initiator, then rping: its RTR is not taken for data.
# needs: example-rping_peer
case-rping-client-siw-p2p() {
	siw param peer_to_peer=1
	capture
	rping_called 1000 5
	judge
}

# siw as an MPA Rev 1 initiator, then rping.
# needs: example-rping_peer
case-rping-client-siw-rev1() {
	siw param mpa_version=1
	capture
	rping_called 1000 5
	judge
}

# 1000 pings, siw calls.
# needs: example-rping_peer
case-rping-client-siw-1000() {
	rping_called 1000 1000
}

# We call siw's rping: our Sends, its Reads and Writes.
# needs: example-rping_peer
case-rping-server-siw() {
	capture tcp port "$PORT"
	for size in 64 100 1455 1456 4000 65000; do
		rping_server -S 65000
		rping_calls "$size" -C 3
		rping_ended
	done
	judge
}

# 1000 pings, we call.
# needs: example-rping_peer
case-rping-server-siw-1000() {
	rping_server -S 1000
	rping_calls 1000 -C 1000
	grep -qx '1000 pings of 1000 octets' "$work/rping.out" || fail "$(tail -n 1 "$work/rping.out")"
}

# Nobody wants CRCs: the field is there, zero, and data flows both ways.
# needs: example-rping_peer
case-rping-server-siw-nocrc() {
	capture tcp port "$PORT"
	rping_server -S 10000
	rping_calls 10000 -N -C 10
	rping_ended
	judge nocrc
	crcs_are_zero
}

# We call siw's rping as a peer-to-peer initiator: siw takes our RTR, Write or Read, for none of
# its data, and answers the Read.
# needs: example-rping_peer
case-rping-server-siw-rtr() {
	capture tcp port "$PORT"
	for type in write read; do
		rping_server -S 1000
		rping_calls 1000 -R $type -C 3
		rping_ended
	done
	judge
	# one zero-length Read Response and three that carry the payload
	answers=$(wire -Y 'iwarp_rdma.opcode == 2 && tcp.stream == 1' | wc -l)
	[ "$answers" = 4 ] || fail "$answers Read Responses, not 4"
}

# Both roles against siw's rping over IPv6.
# needs: example-rping_peer
case-rping-siw-ipv6() {
	capture
	rping_listen "tcp://[$HOST6]:0"
	guest "timeout 90 rping -c -a $HOST6 -p $port -S 2000 -C 3" >"$work/rping" ||
		fail "rping -c: $(tail -n 1 "$work/rping")"
	host_wait rping || fail "rping_peer -s: $(tail -n 1 "$work/rping.err")"
	guest_start rping "rping -s -a $GUEST6 -p $PORT -S 2000"
	guest_listens "$PORT"
	host "$build/example-rping_peer" -c "tcp://[$GUEST6]:$PORT" -S 2000 -C 3 \
		>"$work/rping.out" 2>"$work/rping.err" ||
		fail "rping_peer -c: $(tail -n 1 "$work/rping.err")"
	judge
}

# 64 MiB of our memory written and read back by siw at random offsets; private data both ways.
# Without CRCs: siw misreads one that is cut by a segment boundary.
# needs: example-rdma_peer
case-rdma-from-siw() {
	rdma_listen "tcp://$HOST:0" -N -b 67108864
	LAB_LIMIT=260 guest "timeout 250 siw_peer -c $HOST $port" >"$work/there" ||
		fail "siw_peer: $(tail -n 1 "$work/there")"
	host_wait rdma || fail "rdma_peer: $(tail -n 1 "$work/rdma.err")"
	digests_agree "$work/rdma.out" "$work/there"
}

# 64 MiB of siw's memory written and read back by us at random offsets; private data both ways.
# Without CRCs: siw misreads one that is cut by a segment boundary.
# needs: example-rdma_peer
case-rdma-to-siw() {
	siw_peer_server -b 67108864 -i 16 -o 16
	host timeout 250 "$build/example-rdma_peer" -N -c "tcp://$GUEST:$PORT" >"$work/here" 2>"$work/err" ||
		fail "rdma_peer: $(tail -n 1 "$work/err")"
	guest_wait siw_peer 30 || fail "siw_peer: $(guest_output siw_peer | tail -n 1)"
	guest_output siw_peer >"$work/there"
	digests_agree "$work/here" "$work/there"
}

# A program on siw says no, with private data.
# quick
# needs: example-rdma_peer
case-reject-by-siw() {
	siw_peer_server -r
	status=0
	host "$build/example-rdma_peer" -c "tcp://$GUEST:$PORT" >"$work/out" 2>"$work/err" || status=$?
	[ "$status" = 3 ] || fail "status $status, not 3: $(tail -n 1 "$work/err")"
	grep -aq '^rejected: not today' "$work/out" || fail "its private data: $(cat "$work/out")"
}

# We say no to a program on siw, with private data.
# quick
# needs: example-rdma_peer
case-reject-of-siw() {
	rdma_listen "tcp://$HOST:0" -r
	status=0
	guest "timeout 90 siw_peer -c $HOST $port" >"$work/there" || status=$?
	[ "$status" = 3 ] || fail "status $status, not 3: $(tail -n 1 "$work/there")"
	grep -aq '^rejected: not today' "$work/there" || fail "private data: $(cat "$work/there")"
	host_wait rdma || fail "rdma_peer: $(tail -n 1 "$work/rdma.err")"
}

# 100 connections to siw in a row, then 64 simultaneously; every payload checked.
# needs: example-rping_peer example-rdma_peer
case-siw-many() {
	rping_server -P -S 1000
	for ((i = 0; i < 100; i++)); do
		host timeout 90 "$build/example-rping_peer" -c "tcp://$GUEST:$PORT" -S 100 -C 2 \
			>"$work/out" 2>"$work/err" || fail "connection $i: $(tail -n 1 "$work/err")"
	done
	"$lab" reset
	# rping's own backlog is 3; siw_peer's is 64, and it serves them one after the other
	siw_peer_server -b 1000 -n 64
	for ((i = 0; i < 64; i++)); do
		host_start "many$i" timeout 90 "$build/example-rdma_peer" -c "tcp://$GUEST:$PORT"
	done
	for ((i = 0; i < 64; i++)); do
		host_wait "many$i" || fail "of 64 at once, $i: $(tail -n 1 "$work/many$i.err")"
	done
}

# siw calls us 100 times in a row, then keeps 64 sessions simultaneously; every payload checked.
# limit: 1200
# needs: example-many_peer
case-siw-calls-many() {
	many_listen "tcp://$HOST:0" -n 100
	LAB_LIMIT=550 guest "for ((i = 0; i < 100; i++)); do
		timeout 90 siw_peer -c $HOST $port >/dev/null || exit 1; done" >"$work/there" 2>&1 ||
		fail "one of 100 in a row: $(tail -qn 1 "$work/there" "$work/many.err")"
	host_wait many || fail "many_peer: $(tail -n 1 "$work/many.err")"
	many_listen "tcp://$HOST:0" -n 64
	LAB_LIMIT=550 guest "touch /tmp/hold; mkdir /tmp/many
		for ((i = 0; i < 64; i++)); do
			timeout 500 siw_peer -c $HOST -w /tmp/hold $port >/tmp/many/\$i & pids+=(\$!)
		done
		for ((i = 0; i < 1000; i++)); do
			[ \$(cat /tmp/many/* | grep -c connected) = 64 ] && break
			sleep 0.1
		done
		rm /tmp/hold
		for p in \${pids[@]}; do wait \$p || exit 1; done" >"$work/there" 2>&1 ||
		fail "one of 64 at once: $(tail -qn 1 "$work/there" "$work/many.err")"
	host_wait many || fail "many_peer: $(tail -n 1 "$work/many.err")"
	grep -qx '64 sessions, 64 at once' "$work/many.out" || fail "$(tail -n 1 "$work/many.out")"
}

# tshark's opcodes, STags, offsets and lengths against the list our side wrote: rping both ways round.
# quick
# needs: example-rping_peer
case-wire-as-sent() {
	total=0
	for size in 64 65000; do
		capture tcp port "$PORT"
		rping_server -S $size
		host "$build/example-rping_peer" -c "tcp://$GUEST:$PORT" -S $size -C 3 -t "$work/list" \
			>"$work/rping.out" 2>"$work/rping.err" ||
			fail "as client, $size octets: $(tail -n 1 "$work/rping.err")"
		rping_ended
		judge
		as_sent "$work/list"
		total=$((total + $(cat "$work/as_sent")))
		capture
		rping_listen "tcp://$HOST:0" -t "$work/list"
		guest "timeout 90 rping -c -a $HOST -p $port -S $size -C 3" >"$work/rping" ||
			fail "rping -c -S $size: $(tail -n 1 "$work/rping")"
		host_wait rping || fail "as server, $size octets: $(tail -n 1 "$work/rping.err")"
		judge
		as_sent "$work/list"
		total=$((total + $(cat "$work/as_sent")))
	done
	detail "$total messages as listed"
}

# TCP from the guest to here while the guest loses and reorders packets.
# needs: sessctl
case-sessctl-loss() {
	lossy 1
	sessctl_in_guest "tcp://$GUEST:$PORT"
	transfer get 3000000 "tcp://$GUEST:$PORT" ""
	some_lost
}
