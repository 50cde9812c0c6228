# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# We say no to a program on siw, with private data.
# quick
# needs: example-rdma_peer
rdma_listen "tcp://$HOST:0" -r
status=0
guest "timeout 90 siw_peer -c $HOST $port" >"$work/there" || status=$?
[ "$status" = 3 ] || fail "status $status, not 3: $(tail -n 1 "$work/there")"
grep -aq '^rejected: not today' "$work/there" || fail "private data: $(cat "$work/there")"
host_wait rdma || fail "rdma_peer: $(tail -n 1 "$work/rdma.err")"
