# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# SCTP directly on IP: usrsctp with a raw socket here, the kernel in the guest, both ways round.
# needs: sessctl
sessctl_in_guest "sctp://$GUEST:$PORT?backend=kernel&encap=off"
transfer put 3000000 "sctp://$GUEST:$PORT" "backend=usrsctp&encap=off"
expect "$work/put.out" established backend=usrsctp encap=0
mkdir "$work/dir"
listen "sctp://$HOST:0?backend=usrsctp&encap=off" --dir "$work/dir"
guest "timeout 90 sessctl put --json /tmp/dir/file \
	'sctp://$HOST:$port/file?backend=kernel&encap=off'" >"$work/back.out" ||
	fail "put in the guest: $(tail -n 1 "$work/back.out")"
cmp "$work/file" "$work/dir/file" || fail "the file came back changed"
