# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# 1000 associations of the kernel's SCTP simultaneously, a session on each: with our engine as client
# and as server, in UDP.  The kernel counts them.
# limit: 600
# needs: example-many_peer
judged_sctp
sctp_over_udp
many=1000
as_many() { # FILE WHAT
	grep -qx "$many sessions, $many at once" "$1" || fail "$2: $(tail -n 1 "$1")"
}

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
