# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# The program on siw is killed in mid-transfer: our side ends with an error, immediately.
# quick
# needs: example-rdma_peer
siw_peer_server -b 67108864 -i 16 -o 16
host_start rdma timeout 90 "$build/example-rdma_peer" -N -c "tcp://$GUEST:$PORT"
in_transfer
# shellcheck disable=SC2016 # for the guest's shell
guest 'kill -9 $(pidof siw_peer)'
status=0
host_wait rdma || status=$?
[ "$status" = 1 ] || fail "status $status, not 1"
grep -qiE 'lost|reset|clos|terminat' "$work/rdma.err" || fail "$(tail -n 1 "$work/rdma.err")"
detail "$(tail -n 1 "$work/rdma.err")"
