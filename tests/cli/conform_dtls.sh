#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessctl conform over sctps://: our listener and our initiator, with the DTLS of GnuTLS below the peer's packets.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
. "$(dirname "$0")/lib.bash"

"$SESSCTL" keys ca lab >/dev/null && "$SESSCTL" keys host a localhost 127.0.0.1 >/dev/null &&
	"$SESSCTL" keys host b >/dev/null && "$SESSCTL" keys psk pair >/dev/null && "$SESSCTL" keys psk none >/dev/null ||
	exit 1
a=(--tls-cert a.pem --tls-key a.key --tls-ca ca.pem)
b=(--tls-cert b.pem --tls-key b.key --tls-ca ca.pem)

# passed NUMBER: so many at least, and none failed
passed() {
	local n
	n=$(sed -n 's/^\([0-9]*\) passed, 0 failed.*over sctps$/\1/p' out)
	why="$(grep -a '^FAIL\|passed' out | tr '\n' ' ')"
	[ "${n:-0}" -ge "$1" ]
}

responder() {
	local area
	for area in dtls:7 sctp:20 ddp:15 rdmap:15 neg:8; do
		listen sctps://127.0.0.1:0 "${a[@]}" && run 0 conform "${b[@]}" --case "${area%:*}-*" "$uri" &&
			passed "${area#*:}" || return
		stop_listener
	done
}

# SCTP itself: tags, cookies, ends
packets() {
	listen sctps://127.0.0.1:0 "${a[@]}" && run 0 conform "${b[@]}" --case 'assoc-[c-t]*' "$uri" && passed 60 &&
		stop_listener
}

initiator() {
	# shellcheck disable=SC2016 # for the command's shell
	run 0 conform --listen "${a[@]}" --then "$SESSCTL connect --wait ${b[*]}"' "$DDPS_URI" >/dev/null 2>&1' \
		--case 'dtls-*' sctps://127.0.0.1:0 && passed 6 && says out "pass  dtls-initiator-zero-sent"
}

shared_key() {
	listen sctps://127.0.0.1:0 --tls-psk pair.psk && run 0 conform --tls-psk pair.psk --case 'dtls-*' "$uri" &&
		passed 7 && run 1 conform --timeout 1 --tls-psk none.psk --case dtls-zero-said "$uri" &&
		says err "the DTLS handshake" && stop_listener
}

# Where the rules of DTLS are none: an association of sctp:// has no such cases, and a plain listener no DTLS.
plain() {
	run 0 conform --list --case 'dtls-*' && says out "dtls-zero-said	sctps	responder" &&
		listen sctp://127.0.0.1:0 && run 1 conform --timeout 1 "${b[@]}" --case dtls-zero-said "sctps://127.0.0.1:${uri##*encap=}" &&
		says err "is it sctps:// there" && says listen.err "it speaks DTLS, and this port is plain" &&
		stop_listener || return
	run 1 conform "${b[@]}" --timeout 1 sctps://127.0.0.1:1 && says err "nothing has that UDP port"
}

test_case "conform sctps: our listener keeps the rules, inside DTLS" responder
test_case "conform sctps: SCTP itself, inside DTLS" packets
test_case "conform sctps: our initiator keeps the rules, inside DTLS" initiator
test_case "conform sctps: with a shared key" shared_key
test_case "conform sctps: what it cannot begin with" plain
finish
