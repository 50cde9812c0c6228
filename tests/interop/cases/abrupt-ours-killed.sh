# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Our program is killed in mid-transfer: siw takes it, and serves the next client.
# quick
# needs: example-rdma_peer
siw_peer_server -b 67108864 -i 16 -o 16
host_start rdma "$build/example-rdma_peer" -N -c "tcp://$GUEST:$PORT"
in_transfer
kill -9 "$pid_rdma"
guest_wait siw_peer 30 && fail "siw_peer took a killed client for an orderly one"
grep -q siw_peer <<<"$(guest_output siw_peer)" || fail "siw_peer did not end by itself"
siw_peer_server -b 1000
host timeout 90 "$build/example-rdma_peer" -c "tcp://$GUEST:$PORT" >"$work/out" 2>"$work/err" ||
	fail "the next session: $(tail -n 1 "$work/err")"
