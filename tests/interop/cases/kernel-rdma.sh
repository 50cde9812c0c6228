# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# 64 MiB over SCTP, written and read back at random offsets, kernel in the guest, our engine here, each
# as client: digests equal, private data both ways.  Then 100 associations in a row.
# limit: 1000
# needs: example-rdma_peer
judged_sctp
sctp_over_udp
theirs="sctp://$GUEST:$PORT?backend=kernel&$IN_UDP"
serve_there() { # OPTION...
	guest_start rdma "example-rdma_peer -s '$theirs' $*"
	guest_listens "$PORT" sctp
}

call_there() {
	host timeout 300 "$build/example-rdma_peer" \
		-c "${theirs/backend=kernel/backend=native}" >"$work/here" 2>"$work/err" ||
		fail "rdma_peer here, $1: $(tail -n 1 "$work/err")"
}

serve_there -b 67108864
call_there "64 MiB"
guest_wait rdma 30 || fail "rdma_peer there: $(guest_output rdma | tail -n 1)"
guest_output rdma >"$work/there"
digests_agree "$work/here" "$work/there"

rdma_listen "sctp://$HOST:0?backend=native&$IN_UDP" -b 67108864
LAB_LIMIT=310 guest "timeout 300 example-rdma_peer \
	-c 'sctp://$HOST:$port?backend=kernel&$IN_UDP'" >"$work/there" ||
	fail "rdma_peer there as client: $(tail -n 1 "$work/there")"
host_wait rdma || fail "rdma_peer here as server: $(tail -n 1 "$work/rdma.err")"
digests_agree "$work/rdma.out" "$work/there"

serve_there -b 5000 -n 100
for ((i = 0; i < 100; i++)); do
	call_there "number $i"
done
guest_wait rdma 30 || fail "rdma_peer there: $(guest_output rdma | tail -n 1)"
