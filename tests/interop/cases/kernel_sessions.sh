# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Sessions with the kernel's SCTP: sizes, limits, many of them.

session() { # THEIRS OURS
	host timeout 90 "$sessctl" connect --json --ird "$2" --ord "$2" \
		"sctp://$GUEST:$PORT?backend=native&$IN_UDP" >"$work/out" 2>"$work/err" ||
		fail "$1 there, $2 here: $(tail -n 1 "$work/err")"
	if [ "$1" = ulp ] || [ "$2" = ulp ]; then
		expect "$work/out" established peer_ird=16383 peer_ord=16383
	else
		expect "$work/out" established peer_ird="$1" ird="$2" ord=$(($1 < $2 ? $1 : $2))
	fi
}

# IRD and ORD at the edges over SCTP, kernel in the guest, our engine here: the smaller one is in force;
# 0x3FFF leaves them to the applications, at either end.
# needs: sessctl
case-kernel-limits() {
	judged_sctp
	sctp_over_udp
	limits=(0 1 128 129 16382 ulp)
	for theirs in "${limits[@]}"; do
		guest_start sessctl "timeout 90 sessctl listen --count ${#limits[@]} --ird $theirs \
			--ord $theirs 'sctp://$GUEST:$PORT?backend=kernel&$IN_UDP'"
		guest_listens "$PORT" sctp
		for ours in "${limits[@]}"; do
			session "$theirs" "$ours"
		done
		guest_wait sessctl 20 || fail "$theirs there: $(guest_output sessctl | tail -n 1)"
	done
}

as_few() { # Active|Passive BEFORE WHAT
	local n few=$(((many + each - 1) / each))
	n=$(sctp_count "$1Estabs")
	[ "$n" = $(($2 + few)) ] || fail "$3: $((n - $2)) associations, not $few"
}

serve() { # BACKEND-QUERY
	guest_start many "example-many_peer -n $many -s 'sctp://$GUEST:$PORT?$1'"
	guest_listens "$PORT" sctp
}

as_many() { # FILE WHAT
	grep -qx "$many sessions, $many at once" "$1" || fail "$2: $(tail -n 1 "$1")"
}

# 200 sessions simultaneously on two associations of the kernel's SCTP, 128 at most on one: with our kernel
# backend at both ends, and with our engine here as client and as server.  The kernel counts them.
# needs: example-many_peer
case-kernel-many-sessions() {
	judged_sctp
	many=200 each=128 # half of an association's streams
	serve "backend=kernel&$ON_IP"
	active=$(sctp_count ActiveEstabs) passive=$(sctp_count PassiveEstabs)
	guest "timeout 90 example-many_peer -n $many -c 'sctp://$GUEST:$PORT?backend=kernel&$ON_IP'" \
		>"$work/there" 2>&1 || fail "kernel, kernel: $(tail -n 1 "$work/there")"
	guest_wait many 30 || fail "kernel, kernel: $(guest_output many | tail -n 1)"
	as_many "$work/there" "kernel, kernel"
	as_few Active "$active" "kernel, kernel"
	as_few Passive "$passive" "kernel, kernel"

	sctp_over_udp
	serve "backend=kernel&$IN_UDP"
	passive=$(sctp_count PassiveEstabs)
	host timeout 90 "$build/example-many_peer" -n $many \
		-c "sctp://$GUEST:$PORT?backend=native&$IN_UDP" >"$work/here" 2>"$work/err" ||
		fail "native, kernel: $(tail -n 1 "$work/err")"
	guest_wait many 30 || fail "native, kernel: $(guest_output many | tail -n 1)"
	as_many "$work/here" "native, kernel"
	as_few Passive "$passive" "native, kernel"

	many_listen "sctp://$HOST:0?backend=native&$IN_UDP" -n $many
	active=$(sctp_count ActiveEstabs)
	guest "timeout 90 example-many_peer -n $many \
		-c 'sctp://$HOST:$port?backend=kernel&$IN_UDP'" >"$work/there" 2>&1 ||
		fail "kernel, native: $(tail -n 1 "$work/there")"
	host_wait many || fail "kernel, native: $(tail -n 1 "$work/many.err")"
	as_many "$work/there" "kernel, native"
	as_few Active "$active" "kernel, native"
	detail "3 times $many sessions, $each on an association"
}

# 64 MiB over SCTP directly on IP, written and read back at random offsets, either end as client.
# limit: 600
# needs: example-rdma_peer
case-kernel-rdma-ip() {
	judged_sctp
	bulk_both_ways "$ON_IP" 67108864
}

# 64 MiB over SCTP in UDP, written and read back at random offsets, kernel in the guest, our engine
# here, each as client: digests equal, private data both ways.  Then 100 associations in a row.
# limit: 1000
# needs: example-rdma_peer
case-kernel-rdma() {
	judged_sctp
	sctp_over_udp
	bulk_both_ways "$IN_UDP" 67108864
	rdma_there "$IN_UDP" -b 5000 -n 100
	for ((i = 0; i < 100; i++)); do
		rdma_calls "$IN_UDP" "number $i"
	done
	guest_wait rdma 30 || fail "rdma_peer there: $(guest_output rdma | tail -n 1)"
}

# A rejection over SCTP, with private data: the kernel's side says no, then ours.
# quick
# needs: example-rdma_peer
case-kernel-reject() {
	judged_sctp
	sctp_over_udp
	guest_start rdma "example-rdma_peer -r -s 'sctp://$GUEST:$PORT?backend=kernel&$IN_UDP'"
	guest_listens "$PORT" sctp
	status=0
	host timeout 90 "$build/example-rdma_peer" \
		-c "sctp://$GUEST:$PORT?backend=native&$IN_UDP" >"$work/out" 2>"$work/err" || status=$?
	[ "$status" = 3 ] || fail "status $status here, not 3: $(tail -n 1 "$work/err")"
	grep -aq '^rejected: not today' "$work/out" || fail "its private data: $(cat "$work/out")"
	rdma_listen "sctp://$HOST:0?backend=native&$IN_UDP" -r
	status=0
	guest "timeout 90 example-rdma_peer -c 'sctp://$HOST:$port?backend=kernel&$IN_UDP'" \
		>"$work/there" || status=$?
	[ "$status" = 3 ] || fail "status $status there, not 3: $(tail -n 1 "$work/there")"
	grep -aq '^rejected: not today' "$work/there" || fail "private data: $(cat "$work/there")"
}

ping_guest() { # OPTION...: we call
	guest_start rping "example-rping_peer -s 'sctp://$GUEST:$PORT?backend=kernel&$IN_UDP'"
	guest_listens "$PORT" sctp
	host timeout 90 "$build/example-rping_peer" "$@" \
		-c "sctp://$GUEST:$PORT?backend=native&$IN_UDP" \
		>"$work/rping.out" 2>"$work/rping.err" ||
		fail "here as client, $*: $(tail -n 1 "$work/rping.err")"
	guest_wait rping 30 || fail "guest as server, $*: $(guest_output rping | tail -n 1)"
}

ping_host() { # OPTION...: the guest calls
	rping_listen "sctp://$HOST:0?backend=native&$IN_UDP"
	LAB_LIMIT=260 guest "timeout 90 example-rping_peer $* \
		-c 'sctp://$HOST:$port?backend=kernel&$IN_UDP'" >"$work/rping" ||
		fail "guest as client, $*: $(tail -n 1 "$work/rping")"
	host_wait rping || fail "here as server, $*: $(tail -n 1 "$work/rping.err")"
}

# Reads and Writes both ways over SCTP, kernel in the guest, our engine here, each as client: sizes, and
# 1000 pings.
# needs: example-rping_peer
case-kernel-rping() {
	judged_sctp
	sctp_over_udp
	for size in 64 100 1455 1456 4000 65000; do
		ping_guest -S $size -C 3
		ping_host -S $size -C 3
	done
	ping_host -S 65000 -C 5 -R read
	ping_guest -S 1000 -C 1000
	grep -qx '1000 pings of 1000 octets' "$work/rping.out" || fail "$(tail -n 1 "$work/rping.out")"
	ping_host -S 1000 -C 1000
	grep -qx '1000 pings served' "$work/rping.out" || fail "$(tail -n 1 "$work/rping.out")"
}

# 1000 associations of the kernel's SCTP simultaneously, a session on each: with our engine as client
# and as server, in UDP.  The kernel counts them.
# limit: 600
# needs: example-many_peer
case-kernel-thousand() {
	judged_sctp
	sctp_over_udp
	many=1000
	before=$(sctp_count PassiveEstabs)
	guest_start many "example-many_peer -n $many -b 512 -s 'sctp://$GUEST:$PORT?backend=kernel&$IN_UDP'"
	guest_listens "$PORT" sctp
	host timeout 200 "$build/example-many_peer" -n $many -a \
		-c "sctp://$GUEST:$PORT?backend=native&$IN_UDP" >"$work/here" 2>"$work/err" ||
		fail "our engine calls: $(tail -n 1 "$work/err")"
	as_many "$work/here" "our engine calls"
	guest_wait many 60 || fail "our engine calls: $(guest_output many | tail -n 1)"
	[ "$(sctp_count PassiveEstabs)" = $((before + many)) ] || fail "not $many associations"

	many_listen "sctp://$HOST:0?backend=native&$IN_UDP" -n $many -b 512
	before=$(sctp_count ActiveEstabs)
	LAB_LIMIT=210 guest "timeout 200 example-many_peer -n $many -a \
		-c 'sctp://$HOST:$port?backend=kernel&$IN_UDP'" >"$work/there" 2>&1 ||
		fail "the kernel calls: $(tail -n 1 "$work/there")"
	as_many "$work/there" "the kernel calls"
	host_wait many || fail "the kernel calls: $(tail -n 1 "$work/many.err")"
	[ "$(sctp_count ActiveEstabs)" = $((before + many)) ] || fail "not $many associations"
	detail "2 times $many associations"
}
