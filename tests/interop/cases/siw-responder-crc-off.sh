# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# CRC off on both sides: the field is there and zero.
# needs: sessctl
rping_server
capture tcp port "$PORT"
established --p2p --rtr write --crc off
expect "$work/connect.out" established crc=false
judge nocrc
wire -T fields -e iwarp_mpa.crc | tr , "\n" | sort -u | grep . >"$work/crcs"
[ "$(cat "$work/crcs")" = 0x00000000 ] || fail "CRC fields: $(tr "\n" " " <"$work/crcs")"
