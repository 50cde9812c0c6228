# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Our program is killed in mid-transfer, so that nobody sends an ABORT.  As server it is there again
# immediately: the kernel's data meet an engine that does not know them, and the guest's program has an
# error.  As client it stays away: the kernel gives up.  The next session works.
# needs: example-rdma_peer
judged_sctp
sctp_over_udp
guest "sysctl -q -w net.sctp.rto_max=1000 net.sctp.association_max_retrans=3 \
	net.sctp.path_max_retrans=2 net.sctp.hb_interval=500"
rdma_listen "sctp://$HOST:0?backend=native&$IN_UDP" -b 67108864
guest_start rdma "timeout 90 example-rdma_peer -c 'sctp://$HOST:$port?backend=kernel&$IN_UDP'"
await 60 captured 4000000 || fail "no octets arrive"
kill -9 "$pid_rdma"
wait "$pid_rdma" 2>/dev/null || true
rdma_listen "sctp://$HOST:$port?backend=native&$IN_UDP" -b 500000
guest_wait rdma 30 && fail "the guest's client took a killed server for an orderly one"
guest_output rdma | grep -q rdma_peer: || fail "the guest's client says nothing"
wire_has "ip.src == $HOST && sctp.chunk_type == 6 && sctp.abort_t_bit == 1" ||
	fail "no ABORT with T for what belongs to nothing"
rdma_called "$IN_UDP" "after the restart"
host_wait rdma || fail "after the restart: $(tail -n 1 "$work/rdma.err")"
digests_agree "$work/rdma.out" "$work/there"

rdma_there "$IN_UDP" -b 67108864
before=$(sctp_count InUnorderChunks)
host_start rdma "$build/example-rdma_peer" \
	-c "sctp://$GUEST:$PORT?backend=native&$IN_UDP"
sctp_in_transfer "$before"
kill -9 "$pid_rdma"
guest_wait rdma 40 && fail "the guest's server took a killed client for an orderly one"
guest_output rdma | grep -q rdma_peer: || fail "the guest's server says nothing"
rdma_there "$IN_UDP" -b 500000
rdma_calls "$IN_UDP" "after the kill"
guest_wait rdma 30 || fail "rdma_peer there: $(guest_output rdma | tail -n 1)"
