# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# The connection of a program on siw is reset in mid-transfer: our side ends with an error, at once.
# quick
# needs: example-rdma_peer
siw_peer_server -b 67108864
capture tcp port "$PORT"
host_start rdma timeout 60 "$build/example-rdma_peer" -N -c "tcp://$GUEST:$PORT"
in_transfer
guest "ss -K -Hnt sport = :$PORT" >"$work/killed"
[ -s "$work/killed" ] || fail "there was no connection to reset"
status=0
host_wait rdma || status=$?
[ "$status" = 1 ] || fail "status $status, not 1"
capture_end
[ "$(wire -Y "tcp.flags.reset == 1 && ip.src == $GUEST" | wc -l)" -ge 1 ] ||
	fail "no RST from the guest"
detail "$(tail -n 1 "$work/rdma.err")"
