# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Our engine here listens, the guest's kernel SCTP connects and puts a file.
# quick
# needs: sessctl
judged_sctp
sctp_over_udp
mkdir "$work/dir"
listen "sctp://$HOST:0?backend=native&$IN_UDP" --dir "$work/dir"
guest "head -c 3000000 /dev/urandom >/tmp/file
	timeout 90 sessctl put --json /tmp/file 'sctp://$HOST:$port/file?backend=kernel&$IN_UDP'" \
	>"$work/put.out" || fail "put in the guest: $(tail -n 1 "$work/put.out")"
same_digest "$work/dir/file" /tmp/file
expect "$work/put.out" established transport=sctp backend=kernel
expect "$work/listen.out" established backend=native role=responder
