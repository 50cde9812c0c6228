# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# 200 sessions simultaneously on two associations of the kernel's SCTP, 128 at most on one: with our kernel
# backend at both ends, and with our engine here as client and as server.  The kernel counts them.
# needs: example-many_peer
judged_sctp
many=200 each=128 # half of an association's streams
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
