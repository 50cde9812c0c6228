# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Two addresses at either end; the path in use is cut in mid-transfer, silently, and the rest goes by
# the other one.  Our engine puts a file (its default settings), then the kernel does.  In UDP.
# needs: sessctl
judged_sctp
sctp_over_udp
second_net

# The kernel confirms a path by a HEARTBEAT of its own, and the first one leaves after its initial RTO.
# Before that it sends SACKs to the primary path, also when that is cut.
path_confirmed() {
	tcpdump -nr "$work/wire.pcap" "dst host $GUEST and udp[20] == 5" 2>/dev/null | grep -q .
}

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
