# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# We abort in the middle of a Write: a reset; the program on siw notices, and the next one is served.
# quick
# needs: example-rdma_peer
siw_peer_server -b 67108864
capture_resets
host timeout 90 "$build/example-rdma_peer" -N -a -c "tcp://$GUEST:$PORT" >"$work/out" \
	2>"$work/err" || fail "rdma_peer: $(tail -n 1 "$work/err")"
guest_wait siw_peer 30 && fail "siw_peer took an abort for an orderly end"
reset_by "$HOST"
siw_peer_server -b 1000
host timeout 90 "$build/example-rdma_peer" -c "tcp://$GUEST:$PORT" >"$work/out" 2>"$work/err" ||
	fail "the next session: $(tail -n 1 "$work/err")"
