# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Our kernel backend on both ends, in the guest, SCTP directly on IP.
# needs: sessctl
sessctl_in_guest "sctp://$GUEST:$PORT?backend=kernel&$ON_IP"
guest "head -c 3000000 /dev/urandom >/tmp/file
	timeout 90 sessctl put --json /tmp/file 'sctp://$GUEST:$PORT/copy?backend=kernel&$ON_IP'
	cmp /tmp/file /tmp/dir/copy" >"$work/put.out" || fail "put: $(tail -n 1 "$work/put.out")"
expect "$work/put.out" established backend=kernel encap=0
