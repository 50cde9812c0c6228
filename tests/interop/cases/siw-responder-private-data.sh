# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Private data: siw takes 256 octets, the enhanced word among them, and resets on more.
# needs: sessctl
rping_server
head -c 253 /dev/zero >"$work/253"
connect --private-data "@$work/253"
[ "$status" != 0 ] || fail "siw takes 253 octets now"
head -c 252 /dev/urandom >"$work/252"
capture tcp port "$PORT"
connected --private-data "@$work/252"
capture_end
wire -Y iwarp_mpa.req -T fields -e iwarp_mpa.privatedata >"$work/sent"
grep -qx "00100010$(od -An -v -tx1 "$work/252" | tr -d ' \n')" "$work/sent" ||
	fail "private data on the wire: $(cut -c 1-40 "$work/sent")"
