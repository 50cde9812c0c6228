# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# SCTP directly on IP: our engine with raw sockets here, the kernel in the guest, both ways round.
# needs: sessctl
judged_sctp
sessctl_in_guest "sctp://$GUEST:$PORT?backend=kernel&$ON_IP"
transfer put 3000000 "sctp://$GUEST:$PORT" "backend=native&$ON_IP"
expect "$work/put.out" established backend=native encap=0
mkdir "$work/dir"
listen "sctp://$HOST:0?backend=native&$ON_IP" --dir "$work/dir"
guest "timeout 90 sessctl put --json /tmp/dir/file \
	'sctp://$HOST:$port/file?backend=kernel&$ON_IP'" >"$work/back.out" ||
	fail "put in the guest: $(tail -n 1 "$work/back.out")"
cmp "$work/file" "$work/dir/file" || fail "the file came back changed"
