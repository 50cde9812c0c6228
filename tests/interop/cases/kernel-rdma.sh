# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# 64 MiB over SCTP in UDP, written and read back at random offsets, kernel in the guest, our engine
# here, each as client: digests equal, private data both ways.  Then 100 associations in a row.
# limit: 1000
# needs: example-rdma_peer
judged_sctp
sctp_over_udp
bulk_both_ways "$IN_UDP" 67108864
rdma_there "$IN_UDP" -b 5000 -n 100
for ((i = 0; i < 100; i++)); do
	rdma_calls "$IN_UDP" "number $i"
done
guest_wait rdma 30 || fail "rdma_peer there: $(guest_output rdma | tail -n 1)"
