# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# siw's rping calls ours: its Sends, our Reads and Writes, small to several FPDUs long.
# needs: example-rping_peer
siw param mpa_crc_required=1
capture
for size in 64 100 1455 1456 4000 65000; do
	rping_listen "tcp://$HOST:0"
	guest "timeout 90 rping -c -a $HOST -p $port -S $size -C 3" >"$work/rping" ||
		fail "rping -c -S $size: $(tail -n 1 "$work/rping")"
	host_wait rping || fail "rping_peer, $size octets: $(tail -n 1 "$work/rping.err")"
	grep -qx '3 pings served' "$work/rping.out" || fail "$(tail -n 1 "$work/rping.out")"
done
judge
