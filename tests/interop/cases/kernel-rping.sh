# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Reads and Writes both ways over SCTP, kernel in the guest, our engine here, each as client: sizes, and
# 1000 pings.
# needs: example-rping_peer
judged_sctp
sctp_over_udp
ping_guest() { # OPTION...: we call
	guest_start rping "example-rping_peer -s 'sctp://$GUEST:$PORT?backend=kernel&$IN_UDP'"
	guest_listens "$PORT" sctp
	host timeout 90 "$build/example-rping_peer" "$@" \
		-c "sctp://$GUEST:$PORT?backend=native&$IN_UDP" \
		>"$work/rping.out" 2>"$work/rping.err" ||
		fail "here as client, $*: $(tail -n 1 "$work/rping.err")"
	guest_wait rping 30 || fail "guest as server, $*: $(guest_output rping | tail -n 1)"
}

ping_host() { # OPTION...: the guest calls
	rping_listen "sctp://$HOST:0?backend=native&$IN_UDP"
	LAB_LIMIT=260 guest "timeout 90 example-rping_peer $* \
		-c 'sctp://$HOST:$port?backend=kernel&$IN_UDP'" >"$work/rping" ||
		fail "guest as client, $*: $(tail -n 1 "$work/rping")"
	host_wait rping || fail "here as server, $*: $(tail -n 1 "$work/rping.err")"
}

for size in 64 100 1455 1456 4000 65000; do
	ping_guest -S $size -C 3
	ping_host -S $size -C 3
done
ping_host -S 65000 -C 5 -R read
ping_guest -S 1000 -C 1000
grep -qx '1000 pings of 1000 octets' "$work/rping.out" || fail "$(tail -n 1 "$work/rping.out")"
ping_host -S 1000 -C 1000
grep -qx '1000 pings served' "$work/rping.out" || fail "$(tail -n 1 "$work/rping.out")"
