# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Nobody wants CRCs: the field is there, zero, and data flows both ways.
# needs: example-rping_peer
capture tcp port "$PORT"
rping_server -S 10000
host "$build/example-rping_peer" -c "tcp://$GUEST:$PORT" -N -S 10000 -C 10 \
	>"$work/rping.out" 2>"$work/rping.err" ||
	fail "rping_peer: $(tail -n 1 "$work/rping.err")"
rping_ended
judge nocrc
wire -T fields -e iwarp_mpa.crc | tr , '\n' | sort -u | grep . >"$work/crcs"
[ "$(cat "$work/crcs")" = 0x00000000 ] || fail "CRC fields: $(tr '\n' ' ' <"$work/crcs")"
