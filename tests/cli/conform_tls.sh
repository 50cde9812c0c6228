#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessctl conform over tls://: our listener and our initiator, with the TLS of GnuTLS in the peer.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
. "$(dirname "$0")/lib.bash"

"$SESSCTL" keys ca lab >/dev/null && "$SESSCTL" keys host a localhost 127.0.0.1 >/dev/null &&
	"$SESSCTL" keys host b >/dev/null && "$SESSCTL" keys psk pair >/dev/null && "$SESSCTL" keys psk none >/dev/null ||
	exit 1
a=(--tls-cert a.pem --tls-key a.key --tls-ca ca.pem)
b=(--tls-cert b.pem --tls-key b.key --tls-ca ca.pem)
printf 'cert b.pem\nkey = b.key\n\n# the site\nca ca.pem\n' >b.conf

# passed NUMBER: so many at least, and none failed
passed() {
	local n
	n=$(sed -n 's/^\([0-9]*\) passed, 0 failed.*over tls$/\1/p' out)
	why="$(grep -a '^FAIL\|passed' out | tr '\n' ' ')"
	[ "${n:-0}" -ge "$1" ]
}

# Area by area: what the listener prints for all of them is more than a pipe holds.
responder() {
	local area
	for area in mpa:25 neg:8 ddp:15 rdmap:15 tls:13; do
		listen tls://127.0.0.1:0 "${a[@]}" && run 0 conform --tls b.conf --case "${area%:*}-*" "$uri" &&
			passed "${area#*:}" || return
		stop_listener
	done
	# each where the target stands: the first is cut, some are refused
	says listen.err "closed without close_notify" && says listen.err "no TLS 1.3" && says listen.err "no certificate" &&
		says listen.err "plain MPA"
}

initiator() {
	# shellcheck disable=SC2016 # for the command's shell
	run 0 conform --listen "${a[@]}" --then "$SESSCTL connect --wait ${b[*]}"' "$DDPS_URI" >/dev/null 2>&1' \
		tls://127.0.0.1:0 && passed 40 && says out "pass  tls-initiator-ticket"
}

shared_key() {
	listen tls://127.0.0.1:0 --tls-psk pair.psk && run 0 conform --tls-psk pair.psk --case 'tls-*' "$uri" && passed 9 &&
		run 1 conform --tls-psk none.psk --case tls-key-update "$uri" && says out "the TLS handshake" && stop_listener
}

reports() {
	listen tls://127.0.0.1:0 "${a[@]}" && run 0 conform --json --tls b.conf --case 'tls-key-*' --junit j.xml "$uri" &&
		has out transport tls && says j.xml tls-key-update && run 0 conform --tap --tls b.conf --case 'tls-key-*' "$uri" &&
		says out "ok 1 - tls-key-update" && run 0 conform --probe "${b[@]}" "$uri" && stop_listener || return
	run 0 conform --list --case 'tls-*' && says out "tls	responder"
}

wrong_settings() {
	run 1 conform tls://127.0.0.1:1 && says err "needs a certificate or a pre-shared key" && says err "--tls-psk" &&
		run 1 conform "${b[@]}" --tls-key a.key tls://127.0.0.1:1 && says err "is not the key of" &&
		run 2 conform "${b[@]}" tcp://127.0.0.1:1 && says err "would be plain" &&
		run 1 conform "${b[@]}" tls://127.0.0.1:1 && says err "connecting to the target"
}

# A target that takes a FIN for an end in order.
seen_through() {
	local other port
	listen tcp://127.0.0.1:0 || return
	rm -f in port && mkfifo in
	python3 "$here/tls_front.py" a.pem a.key ca.pem "${uri##*:}" <in >port 2>front.err &
	other=$!
	exec {front}>in
	while kill -0 "$other" && [ ! -s port ]; do
		sleep 0.05
	done
	port=$(<port)
	run 0 conform "${b[@]}" --case tls-key-update "tls://127.0.0.1:$port" &&
		run 1 conform "${b[@]}" --case tls-fin-bare "tls://127.0.0.1:$port" && says out "FAIL  tls-fin-bare"
	local status=$?
	exec {front}>&-
	wait "$other"
	stop_listener
	return "$status"
}

test_case "conform tls: our listener keeps the rules, inside TLS" responder
test_case "conform tls: our initiator keeps the rules, inside TLS" initiator
test_case "conform tls: with a shared key" shared_key
test_case "conform tls: reports, and the list" reports
test_case "conform tls: what it cannot begin with" wrong_settings
if command -v python3 >/dev/null; then
	test_case "conform tls: a target that takes a FIN for an end in order is found" seen_through
else
	echo "skip python3 is not here: a target that breaks a rule is not tried"
fi
finish
