# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# The connection of a program on siw is reset in mid-transfer: our side ends with an error, immediately.
# quick
# needs: example-rdma_peer
siw_peer_server -b 67108864
capture_resets
host_start rdma timeout 90 "$build/example-rdma_peer" -N -c "tcp://$GUEST:$PORT"
in_transfer
guest "ss -K -Hnt sport = :$PORT" >"$work/killed"
[ -s "$work/killed" ] || fail "there was no connection to reset"
status=0
host_wait rdma || status=$?
[ "$status" = 1 ] || fail "status $status, not 1"
reset_by "$GUEST"
detail "$(tail -n 1 "$work/rdma.err")"
