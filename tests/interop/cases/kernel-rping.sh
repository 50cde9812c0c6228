# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Reads and Writes both ways over SCTP, kernel in the guest, usrsctp here, each as client.
# needs: example-rping_peer
sctp_over_udp
guest_start rping "example-rping_peer -s 'sctp://$GUEST:$PORT?backend=kernel&encap=$ENCAP'"
guest_listens "$PORT" sctp
host "$build/example-rping_peer" -c "sctp://$GUEST:$PORT?backend=usrsctp&encap=$ENCAP" \
	-S 65000 -C 5 >"$work/rping.out" 2>"$work/rping.err" ||
	fail "here as client: $(tail -n 1 "$work/rping.err")"
guest_wait rping 10 || fail "guest as server: $(guest_output rping | tail -n 1)"
rping_listen "sctp://$HOST:0?backend=usrsctp&encap=$ENCAP"
guest "timeout 30 example-rping_peer -S 65000 -C 5 -R read \
	-c 'sctp://$HOST:$port?backend=kernel&encap=$ENCAP'" >"$work/rping" ||
	fail "guest as client: $(tail -n 1 "$work/rping")"
host_wait rping || fail "here as server: $(tail -n 1 "$work/rping.err")"
