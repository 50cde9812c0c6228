# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Several addresses with the kernel's SCTP.
# needs: sessctl

# A list whose first address refuses: our engine calls the kernel there, and the kernel calls our engine.
case-kernel-homes() {
	judged_sctp
	second_net

	sessctl_in_guest "sctp://$GUEST:$PORT?backend=kernel&$ON_IP"
	head -c 1000000 /dev/urandom >"$work/file"
	host timeout 60 "$sessctl" put "$work/file" \
		"sctp://10.77.1.2,$GUEST:$PORT?backend=native&$ON_IP/file" >"$work/put.out" 2>&1 ||
		fail "put here: $(tail -n 1 "$work/put.out")"
	same_digest "$work/file" /tmp/dir/file

	mkdir "$work/dir"
	listen "sctp://$HOST:0?backend=native&$ON_IP" --dir "$work/dir"
	guest "head -c 1000000 /dev/urandom >/tmp/own"
	guest_start put "timeout 60 sessctl put /tmp/own 'sctp://10.77.1.1,$HOST:$port/own?backend=kernel&$ON_IP'"
	guest_wait put 100 || fail "put in the guest: $(guest_output put | tail -n 1)"
	same_digest "$work/dir/own" /tmp/own
}

paths_seen() { # FILE: both paths of the association at the end, data on the second
	jq -es '[.[] | select(.event == "status")] | last.association.paths | length == 2 and
		(.[0] | .primary and (.in_use | not)) and .[1].in_use' "$1" >/dev/null ||
		fail "paths: $(jq -c 'select(.event == "status") | .association.paths' "$1" | tail -n 1)"
}

# Lists of addresses at both ends, IPv4 and IPv6 in one association, directly on IP.  The IPv4 path is
# cut in mid-transfer, silently, and the rest goes over IPv6: our engine puts a file, then the kernel
# does, with addresses of its own that it was given.
case-kernel-lists() {
	judged_sctp
	second_net
	sessctl_in_guest "sctp://10.77.1.2,[$GUEST6]:$PORT?backend=kernel&$ON_IP"
	head -c 8000000 /dev/urandom >"$work/file"
	host_start put timeout 200 "$sessctl" put --json --stat 0.1 "$work/file" \
		"sctp://10.77.1.2,[$GUEST6]:$PORT?backend=native&$ON_IP/file"
	await 60 captured 2500000 || fail "no octets leave"
	cut_it
	host_wait put || fail "put: $(tail -n 1 "$work/put.err")"
	same_digest "$work/file" /tmp/dir/file
	data_goes_to 10.77.1.2 "$GUEST6"
	paths_seen "$work/put.out"
	ours=$(pause_seen "sctp.srcport == $PORT")
	awk -v s="$ours" 'BEGIN { exit !(s > 0 && s < 5) }' || fail "nothing arrived for $ours s"
	guest "rm /tmp/dir/file"
	mend_it

	mkdir "$work/dir"
	listen "sctp://10.77.1.1,[$HOST6]:0?backend=native&$ON_IP" --dir "$work/dir"
	guest "sysctl -q -w net.sctp.path_max_retrans=2 net.sctp.rto_max=1000
		head -c 8000000 /dev/urandom >/tmp/own"
	size=$(stat -c %s "$work/wire.pcap")
	from="local=10.77.1.2,[$GUEST6]"
	guest_start put "timeout 200 sessctl put --json --stat 0.1 /tmp/own \
		'sctp://10.77.1.1,[$HOST6]:$port/own?backend=kernel&$ON_IP&$from'"
	await 60 captured $((size + 2500000)) || fail "no octets come"
	cut_it
	guest_wait put 100 || fail "put in the guest: $(guest_output put | tail -n 1)"
	guest_output put >"$work/there"
	same_digest "$work/dir/own" /tmp/own
	data_goes_to 10.77.1.1 "$HOST6"
	paths_seen "$work/there"
	detail "8 MB each way; longest pause with our engine sending $ours s, with the kernel $(
		pause_seen "sctp.srcport == $port") s"
}

# The kernel confirms a path by a HEARTBEAT of its own, and the first one leaves after its initial RTO.
# Before that it sends SACKs to the primary path, also when that is cut.
path_confirmed() {
	tcpdump -nr "$work/wire.pcap" "dst host $GUEST and udp[20] == 5" 2>/dev/null | grep -q .
}

# Two addresses at either end; the path in use is cut in mid-transfer, silently, and the rest goes by
# the other one.  Our engine puts a file (its default settings), then the kernel does.  In UDP.
case-kernel-multihome() {
	judged_sctp
	sctp_over_udp
	second_net
	guest "sysctl -q -w net.sctp.rto_min=200 net.sctp.rto_initial=500"
	sessctl_in_guest "sctp://0.0.0.0:$PORT?backend=kernel&$IN_UDP"
	head -c 24000000 /dev/urandom >"$work/file"
	host_start put timeout 200 "$sessctl" put --json "$work/file" \
		"sctp://10.77.1.2,$GUEST:$PORT?backend=native&$IN_UDP/file"
	await 60 captured 4000000 || fail "no octets leave"
	await 30 path_confirmed || fail "the kernel sends no HEARTBEAT to its other peer address"
	cut_it
	host_wait put || fail "put: $(tail -n 1 "$work/put.err")"
	same_digest "$work/file" /tmp/dir/file
	data_goes_to 10.77.1.2 "$GUEST"
	ours=$(pause_seen "sctp.srcport == $PORT")
	awk -v s="$ours" 'BEGIN { exit !(s > 0 && s < 3) }' || fail "nothing arrived for $ours s"
	guest "rm /tmp/dir/file"
	mend_it

	mkdir "$work/dir"
	listen "sctp://10.77.1.1,$HOST:0?backend=native&$IN_UDP" --dir "$work/dir"
	guest "sysctl -q -w net.sctp.path_max_retrans=2 net.sctp.rto_max=1000
		head -c 24000000 /dev/urandom >/tmp/own"
	size=$(stat -c %s "$work/wire.pcap")
	guest_start put "timeout 200 sessctl put /tmp/own 'sctp://10.77.1.1:$port/own?backend=kernel&$IN_UDP'"
	await 60 captured $((size + 4000000)) || fail "no octets come"
	cut_it
	guest_wait put 100 || fail "put in the guest: $(guest_output put | tail -n 1)"
	same_digest "$work/dir/own" /tmp/own
	data_goes_to 10.77.1.1 "$HOST"
	detail "24 MB each way; longest pause with our engine sending $ours s, with the kernel $(
		pause_seen "sctp.srcport == $port") s"
}
