# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# A list whose first address refuses: our engine calls the kernel there, and the kernel calls our engine.
# needs: sessctl
judged_sctp
second_net

sessctl_in_guest "sctp://$GUEST:$PORT?backend=kernel&$ON_IP"
head -c 1000000 /dev/urandom >"$work/file"
host timeout 60 "$sessctl" put "$work/file" \
	"sctp://10.77.1.2,$GUEST:$PORT?backend=native&$ON_IP/file" >"$work/put.out" 2>&1 ||
	fail "put here: $(tail -n 1 "$work/put.out")"
same_digest "$work/file" /tmp/dir/file

mkdir "$work/dir"
listen "sctp://$HOST:0?backend=native&$ON_IP" --dir "$work/dir"
guest "head -c 1000000 /dev/urandom >/tmp/own"
guest_start put "timeout 60 sessctl put /tmp/own 'sctp://10.77.1.1,$HOST:$port/own?backend=kernel&$ON_IP'"
guest_wait put 100 || fail "put in the guest: $(guest_output put | tail -n 1)"
same_digest "$work/dir/own" /tmp/own
