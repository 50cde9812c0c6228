# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# A program on siw says no, with private data.
# quick
# needs: example-rdma_peer
siw_peer_server -r
status=0
host "$build/example-rdma_peer" -c "tcp://$GUEST:$PORT" >"$work/out" 2>"$work/err" || status=$?
[ "$status" = 3 ] || fail "status $status, not 3: $(tail -n 1 "$work/err")"
grep -aq '^rejected: not today' "$work/out" || fail "its private data: $(cat "$work/out")"
