#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What somebody reads whose secured wire does not come to be: the code, the sentence, and what to try.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
. "$(dirname "$0")/lib.bash"
. "$root/tests/support/certs.bash"

# made ARGUMENT...: by sessctl keys, quietly
made() {
	"$SESSCTL" keys "$@" >made.out 2>&1 || {
		echo "keys $*: $(tail -n 1 made.out)" >&2
		exit 1
	}
}

made ca lab && made host a localhost 127.0.0.1 && made host b && made psk pair && made psk none
mkdir other && made ca --dir other another && made host --dir other a localhost 127.0.0.1 && made psk --dir other pair
a=(--tls-cert a.pem --tls-key a.key --tls-ca ca.pem)
b=(--tls-cert b.pem --tls-key b.key --tls-ca ca.pem)

# heard SENTENCE: of the listener, by and by
heard() {
	local i
	for ((i = 0; i < PATIENCE * 20; i++)); do
		says listen.err "$1" && return
		sleep 0.05
	done
	return 1
}

# hinted STATUS CODE SENTENCE TRY ARGUMENT...: of sessctl
hinted() {
	local status=$1 code=$2 sentence=$3 try=$4
	shift 4
	run "$status" "$1" --json "${@:2}" && has out code "$code" && says err "$sentence" && says err "  try: $try"
}

# peer HOW [FILE...]: tls_peer.py, at $port; quit_peer ends it, and its words are in the file words
peer() {
	rm -f in words && mkfifo in
	python3 "$here/tls_peer.py" "$@" <in >words 2>peer.err &
	other=$!
	exec {peer_in}>in
	local i
	for ((i = 0; i < PATIENCE * 20; i++)); do
		port=$(head -n 1 words)
		[ -n "$port" ] && return
		sleep 0.05
	done
	return 1
}

quit_peer() {
	exec {peer_in}>&-
	wait "$other"
}

# came TIMES
came() {
	quit_peer
	why="$(grep -c came words) connections, not $1"
	[ "$(grep -c came words)" = "$1" ]
}

without_keys() {
	local scheme
	for scheme in tls sctps; do
		hinted 1 DDPS_E_NO_CERT "needs a certificate or a pre-shared key" "--tls-cert" listen "$scheme://127.0.0.1:0" ||
			return
	done
	peer fin || return
	hinted 1 DDPS_E_NO_CERT "needs a certificate or a pre-shared key" "--tls-cert" connect "tls://127.0.0.1:$port" &&
		hinted 1 DDPS_E_NO_CERT "needs a certificate" "--tls-cert" connect "tls://localhost:$port"
	local status=$?
	came 0 && return "$status"
}

plain_with_keys() {
	run 2 connect "${b[@]}" tcp://127.0.0.1:1 && says err "another wire would be plain" &&
		run 2 listen --tls-psk pair.psk sctp://127.0.0.1:0 &&
		says err "the option --tls-psk is for tls:// and sctps://: another wire would be plain"
}

plain_and_tls() {
	listen tcp://127.0.0.1:0 && hinted 1 DDPS_E_RESET "does it speak tls://?" "is a listener of tls:// there?" \
		connect "${b[@]}" "tls${uri#tcp}" || return
	stop_listener
	listen tls://127.0.0.1:0 "${a[@]}" && hinted 1 DDPS_E_KEY "the peer speaks TLS" "tls:// in place of tcp://" \
		connect "tcp${uri#tls}" && stop_listener || return
	listen sctps://127.0.0.1:0 "${a[@]}" && hinted 5 DDPS_E_TIMEDOUT "and not on sctps://?), peer" "check address" connect \
		--timeout 1 "sctp://127.0.0.1:9?encap=${uri##*:}" && stop_listener || return
	listen 'sctp://127.0.0.1:0?encap=0' && hinted 5 DDPS_E_TIMEDOUT "does the peer listen on sctps://" "check address" connect \
		--timeout 1 "${b[@]}" "sctps://127.0.0.1:${uri##*encap=}" && stop_listener
}

kinds() {
	listen "$wire://127.0.0.1:0" --tls-psk pair.psk && hinted 1 DDPS_E_TLS_SUITE "nothing in common" \
		"the same on both sides: --tls-psk" connect "${b[@]}" "$uri" || return
	hinted 1 DDPS_E_CERT_NAME "not 'a' but psk:pair" "--tls-peer psk:IDENTITY" connect --tls-psk pair.psk --tls-peer a \
		"$uri" && run 0 connect --tls-psk pair.psk --tls-peer psk:pair "$uri" || return
	hinted 1 DDPS_E_CERT_REFUSED "PSK identity 'none'" "what the listener prints" connect --tls-psk none.psk "$uri" &&
		hinted 1 DDPS_E_CERT_REFUSED "another key" "what the listener prints" connect --tls-psk other/pair.psk "$uri" ||
		return
	# inside DTLS what a wrong key has sealed is dropped, so that the listener waits
	heard "another key for the PSK identity 'pair'" || return
	stop_listener
	says listen.err "'none' is not in pair.psk" && says listen.err "another key for the PSK identity 'pair'" || return
	listen "$wire://127.0.0.1:0" "${a[@]}" && hinted 1 DDPS_E_TLS_SUITE "nothing in common" "the same on both sides" \
		connect --tls-psk pair.psk "$uri" && stop_listener
}

own_files() {
	local at=$wire://127.0.0.1:1
	run 1 check-keys a.pem && says out "this is PEM, no settings" || return
	hinted 1 DDPS_E_CONFIG "this is PEM" "sessctl check-keys" connect --tls a.pem "$at" &&
		hinted 1 DDPS_E_CONFIG "no certificate, but a private key" "sessctl check-keys" connect --tls-cert b.key \
			--tls-key b.pem --tls-ca ca.pem "$at" || return
	cp b.pem shown && chmod 600 shown && run 1 check-keys --tls-cert b.key --tls-key shown --tls-ca ca.pem &&
		says out "no certificate, but a private key" || return
	cp b.pem b2.pem && chmod 600 b2.pem && hinted 1 DDPS_E_CONFIG "no private key, but a certificate" \
		"sessctl check-keys" connect --tls-cert b.pem --tls-key b2.pem --tls-ca ca.pem "$at" || return
	hinted 1 DDPS_E_KEY_MISMATCH "is not the key of" "sessctl check-keys" connect "${b[@]}" --tls-key a.key "$at" || return
	cp b.key open.key && chmod 644 open.key && hinted 1 DDPS_E_KEY_OPEN "others can read" "chmod 600" connect "${b[@]}" \
		--tls-key open.key "$at" || return
	run 1 keys ca --dir nosuch && says err "nosuch" && says err "try: mkdir" &&
		run 1 listen "${a[@]}" --dir nosuch "$wire://127.0.0.1:0" && says err "a directory that exists"
}

# The one who connects judges the listener's; of its own it learns before it dials.
judged() {
	local at=$wire://127.0.0.1:1
	certificates_with_a_flaw
	hinted 1 DDPS_E_CERT_EXPIRED "expired on" "a new certificate" connect --tls-cert old.pem --tls-key old.key \
		--tls-ca ca.pem "$at" || return
	hinted 1 DDPS_E_CERT_NOT_YET "valid from" "a new certificate" connect --tls-cert early.pem --tls-key early.key \
		--tls-ca ca.pem "$at" || return
	hinted 1 DDPS_E_CERT_USAGE "not for clients" "sessctl check-keys" connect --tls-cert server.pem --tls-key server.key \
		--tls-ca ca.pem "$at" || return
	run 1 listen --tls-cert client.pem --tls-key client.key --tls-ca ca.pem "$wire://127.0.0.1:0" &&
		says err "not for servers" || return
	shown old DDPS_E_CERT_EXPIRED "expired on" "a new certificate" &&
		shown early DDPS_E_CERT_NOT_YET "valid from" "a new certificate" &&
		shown client DDPS_E_CERT_USAGE "not for servers" "sessctl check-keys" || return
	listen "$wire://127.0.0.1:0" "${a[@]}" || return
	hinted 1 DDPS_E_CERT_CA "no CA in other/ca.pem vouches" "--tls-ca" connect "${b[@]}" --tls-ca other/ca.pem "$uri" &&
		hinted 1 DDPS_E_CERT_NAME "has dns:a dns:localhost ip:127.0.0.1" "one of these names" connect "${b[@]}" \
			--tls-peer nobody "$uri" && stop_listener
}

# shown NAME CODE SENTENCE TRY: of a peer that shows this certificate
shown() {
	local status
	if [ "$wire" = tls ]; then
		peer tls-close "$1.pem" "$1.key" ca.pem || return
	else
		dtls_peer "$1" || return
	fi
	hinted 1 "$2" "$3" "$4" connect "${b[@]}" "$wire://127.0.0.1:$port"
	status=$?
	if [ "$wire" = tls ]; then
		quit_peer
	else
		quit_dtls_peer
	fi
	return $status
}

# dtls_peer NAME: OpenSSL with this certificate, at $port; it ends with its input
dtls_peer() {
	local i
	rm -f keep && mkfifo keep && exec {keep}<>keep
	: >judge
	timeout 30 openssl s_server -dtls1_2 -listen -4 -accept 127.0.0.1:0 -cert "$1.pem" -key "$1.key" -CAfile ca.pem \
		-Verify 1 <&"$keep" >judge 2>&1 &
	other=$!
	for ((i = 0; i < PATIENCE * 10; i++)); do
		port=$(sed -n 's/^ACCEPT .*://p' judge)
		[ -z "$port" ] || return 0
		sleep 0.1
	done
	return 1
}

quit_dtls_peer() {
	kill "$other" 2>/dev/null
	wait "$other" 2>/dev/null
	exec {keep}>&-
}

# The listener judges, and says why; the other side has to look there.
refused() {
	printf 'deny dns b\n' >no.list
	listen "$wire://127.0.0.1:0" "${a[@]}" --tls-peers no.list && hinted 1 DDPS_E_CERT_REFUSED "access_denied" \
		"what the listener prints" connect "${b[@]}" "$uri" || return
	stop_listener
	says listen.err "no.list:1 denies the peer, which has dns:b" || return
	revoke b
	listen "$wire://127.0.0.1:0" "${a[@]}" --tls-crl crl.pem && hinted 1 DDPS_E_CERT_REFUSED "certificate_revoked" \
		"what the listener prints" connect "${b[@]}" "$uri" || return
	stop_listener
	says listen.err "was revoked, says crl.pem" || return
	listen "$wire://127.0.0.1:0" "${a[@]}" && hinted 1 DDPS_E_CERT_REFUSED "unknown_ca" "what the listener prints" \
		connect --tls-cert other/a.pem --tls-key other/a.key --tls-ca ca.pem "$uri" || return
	local new=(-alpn x-iwarp-mpa) old=(-tls1_2) none="the peer has no TLS 1.3"
	[ "$wire" = tls ] || new=(-dtls1_2) old=(-dtls1) none="the peer has no DTLS 1.2"
	timeout 9 openssl s_client -connect "127.0.0.1:${uri##*:}" "${new[@]}" -CAfile ca.pem </dev/null >/dev/null 2>&1
	timeout 9 openssl s_client -connect "127.0.0.1:${uri##*:}" "${old[@]}" </dev/null >/dev/null 2>&1
	stop_listener
	says listen.err "no CA in ca.pem vouches for" && says listen.err "the peer showed no certificate" &&
		says listen.err "$none"
}

strangers() {
	peer silent || return
	hinted 5 DDPS_E_TIMEDOUT "no TLS handshake" "check address and firewall" connect --timeout 3 "${b[@]}" \
		"tls://127.0.0.1:$port" && came 1 || return
	peer words || return
	hinted 1 DDPS_E_PLAIN_PEER "speaks no TLS" "the port of a secured listener" connect "${b[@]}" \
		"tls://127.0.0.1:$port" && came 1
}

# Whoever is on the way can reset or end TCP, and is not asked: negotiation is given up for what the peer itself has
# closed, with its close_notify.
retried() {
	local how times
	for how in fin:1 rst:1 tls-fin:1 tls-rst:1 tls-close:2; do
		times=${how#*:} how=${how%:*}
		peer "$how" a.pem a.key ca.pem || return
		run 1 connect --legacy-retry "${b[@]}" "tls://127.0.0.1:$port"
		if ! came "$times"; then
			why="$how: $why"
			return 1
		fi
		why="$how: $(cat err)"
		[ "$how" = tls-close ] || ! grep -q "connection abort\|--plain" err || return
	done
}

# between HOW CODE SENTENCE: what a listener says whose peer's data went through other hands
between() {
	local port other
	listen tls://127.0.0.1:0 "${a[@]}" --dir served || return
	rm -f port.txt
	python3 "$here/tls_between.py" "$1" "${uri##*:}" >port.txt 2>between.err &
	other=$!
	while kill -0 "$other" 2>/dev/null && [ ! -s port.txt ]; do
		sleep 0.05
	done
	port=$(<port.txt)
	run 1 put "${b[@]}" big "tls://127.0.0.1:$port" || return
	wait "$other"
	stop_listener
	has listen.out code "$2" && says listen.err "$3" && absent served/big
}

on_the_way() {
	mkdir -p served && head -c 300000 /dev/urandom >big
	between flip DDPS_E_FORGED "did not authenticate" && between again DDPS_E_FORGED "did not authenticate" &&
		between drop DDPS_E_FORGED "did not authenticate" && between cut DDPS_E_CUT_SHORT "without close_notify"
}

scheme() {
	run 2 connect nothing://127.0.0.1:1 && says err "secured tls://HOST:PORT"
}

test_case "hints: no keys were given, and nobody is dialled" without_keys
test_case "hints: keys for a plain wire" plain_with_keys
test_case "hints: one side plain, the other in TLS" plain_and_tls
test_case "hints: a scheme that there is not" scheme
for wire in tls sctps; do
	test_case "hints $wire: a certificate on one side, a pre-shared key on the other" kinds
	test_case "hints $wire: own files that are wrong" own_files
done
if command -v python3 >/dev/null && command -v certtool >/dev/null && command -v openssl >/dev/null; then
	for wire in tls sctps; do
		test_case "hints $wire: the peer's certificate is wrong" judged
		test_case "hints $wire: the listener refuses, and says why" refused
	done
	test_case "hints: what does not speak TLS, or nothing" strangers
	test_case "hints: what was sent is changed, repeated, left out or cut on the way" on_the_way
	test_case "hints: enhanced set-up is given up for what the peer itself closed" retried
else
	echo "skip python3, certtool or openssl is not here: peers that are wrong are not tried"
fi
finish
