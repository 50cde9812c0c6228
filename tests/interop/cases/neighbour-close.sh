# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# siw closes without a Terminate: an orderly end for us, no error.
# quick
# needs: example-rdma_peer
rdma_listen "tcp://$HOST:0" -b 100000
guest "timeout 90 siw_peer -c $HOST $port" >"$work/there" ||
	fail "siw_peer: $(tail -n 1 "$work/there"); here: $(tail -n 1 "$work/rdma.err")"
host_wait rdma || fail "rdma_peer: $(tail -n 1 "$work/rdma.err")"
