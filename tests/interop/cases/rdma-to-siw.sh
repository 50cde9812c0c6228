# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# 64 MiB of siw's memory written and read back by us at random offsets; private data both ways.
# Without CRCs: siw misreads one that is cut by a segment boundary.
# needs: example-rdma_peer
siw_peer_server -b 67108864 -i 16 -o 16
host timeout 250 "$build/example-rdma_peer" -N -c "tcp://$GUEST:$PORT" >"$work/here" 2>"$work/err" ||
	fail "rdma_peer: $(tail -n 1 "$work/err")"
guest_wait siw_peer 30 || fail "siw_peer: $(guest_output siw_peer | tail -n 1)"
guest_output siw_peer >"$work/there"
digests_agree "$work/here" "$work/there"
