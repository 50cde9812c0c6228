# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# A rejection over SCTP, with private data: the kernel's side says no, then ours.
# quick
# needs: example-rdma_peer
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
