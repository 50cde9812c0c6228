# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# 64 MiB of our memory written and read back by siw at random offsets; private data both ways.
# Without CRCs: siw misreads one that is cut by a segment boundary.
# needs: example-rdma_peer
rdma_listen "tcp://$HOST:0" -N -b 67108864
LAB_LIMIT=260 guest "timeout 250 siw_peer -c $HOST $port" >"$work/there" ||
	fail "siw_peer: $(tail -n 1 "$work/there")"
host_wait rdma || fail "rdma_peer: $(tail -n 1 "$work/rdma.err")"
digests_agree "$work/rdma.out" "$work/there"
