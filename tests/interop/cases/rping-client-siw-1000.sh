# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# 1000 pings, siw calls.
# needs: example-rping_peer
rping_listen "tcp://$HOST:0"
LAB_LIMIT=260 guest "timeout 250 rping -c -a $HOST -p $port -S 1000 -C 1000" >"$work/there" ||
	fail "rping -c: $(tail -n 1 "$work/there")"
host_wait rping || fail "rping_peer: $(tail -n 1 "$work/rping.err")"
grep -qx '1000 pings served' "$work/rping.out" || fail "$(tail -n 1 "$work/rping.out")"
