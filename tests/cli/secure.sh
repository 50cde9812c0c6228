#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessctl over tls:// and sctps://: what is done, who the peer is, and each wrong case by its name.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
. "$(dirname "$0")/lib.bash"

# made ARGUMENT...: by sessctl keys, quietly
made() {
	"$SESSCTL" keys "$@" >made.out 2>&1 || {
		echo "keys $*: $(tail -n 1 made.out)" >&2
		exit 1
	}
}

made ca lab
made host a localhost 127.0.0.1
made host b
made psk pair
mkdir other && made ca --dir other "another CA" && made host --dir other a localhost 127.0.0.1
a=(--tls-cert a.pem --tls-key a.key --tls-ca ca.pem)
b=(--tls-cert b.pem --tls-key b.key --tls-ca ca.pem)
wire=tls at=tls://127.0.0.1:0 version="TLS 1.3" plain=tcp

both_are_known() {
	listen "$at" "${a[@]}" --count 1 && run 0 connect --json "${b[@]}" "$uri" && has out name ip:127.0.0.1 &&
		has out version "$version" && has out how x509 && end_listener && has listen.out name dns:b &&
		has listen.out issuer CN=lab
}

files() {
	local i
	rm -rf served back big && mkdir -p served && head -c 3000000 /dev/urandom >big && listen "$at" "${a[@]}" --dir served || return
	run 0 put "${b[@]}" big "$uri" && same big served/big && run 0 get "${b[@]}" "$uri/big" back && same big back || return
	why="a pipe: $("$SESSCTL" put "${b[@]}" - "$uri/piped" < <(cat big) 2>&1)" &&
		run 0 get "${b[@]}" "$uri/piped" - && same big out || return
	for i in send write read; do
		run 0 ping "${b[@]}" --op $i --count 20 --interval 0 "$uri" || return
	done
	run 0 perf "${b[@]}" --op both --seconds 0.2 --size 64,64K "$uri" && stop_listener
}

# What the wire hides is in clear there, so the file is for the user alone.
captured() {
	rm -rf served inside.pcapng && mkdir -p served && echo "words in clear" >note && listen "$at" "${a[@]}" --dir served &&
		run 0 put "${b[@]}" --capture inside.pcapng note "$uri" && stop_listener || return
	why="mode $(stat -c %a inside.pcapng), $(grep -ac "words in clear" inside.pcapng) lines in clear"
	[ "$(stat -c %a inside.pcapng)" = 600 ] && grep -aq "words in clear" inside.pcapng
}

shared_key() {
	listen "$at" --tls-psk pair.psk --count 1 && run 0 connect --json --tls-psk pair.psk "$uri" &&
		has out how psk && has out transport "${at%%:*}" && end_listener && has listen.out name psk:pair &&
		has listen.out transport "${at%%:*}"
}

one_file() {
	printf 'cert a.pem\nkey a.key\nca ca.pem\npeers peers\n' >a.conf
	printf 'allow dns b\n' >peers
	listen "$at" --tls a.conf --count 1 && run 0 connect "${b[@]}" "$uri" && says out "secured" && end_listener
}

# refused CODE TEXT LISTENER-OPTION... -- CONNECT-OPTION...: the one who connects sees why
refused() {
	local code=$1 text=$2 of_listener=()
	shift 2
	while [ "$1" != -- ]; do
		of_listener+=("$1")
		shift
	done
	shift
	listen "$at" "${of_listener[@]}" && run 1 connect --json "$@" "${on:-$uri}" || return
	has out code "$code" && says err "$text" && stop_listener
}

wrong_peers() {
	local oa=(--tls-cert other/a.pem --tls-key other/a.key --tls-ca other/ca.pem)
	[ -e c.pem ] || made host --dir . --days 1 c
	refused DDPS_E_CERT_CA "no CA in ca.pem vouches" "${oa[@]}" -- "${b[@]}" || return
	refused DDPS_E_CERT_NAME "the peer is not 'b'" "${a[@]}" -- "${b[@]}" --tls-peer b || return
	printf 'deny dns b\nallow issuer CN=lab\n' >peers.no
	refused DDPS_E_CERT_REFUSED access "${a[@]}" --tls-peers peers.no -- "${b[@]}" || return
	refused DDPS_E_CERT_REFUSED unknown "${a[@]}" -- --tls-cert other/a.pem --tls-key other/a.key --tls-ca ca.pem || return
	printf 'crl_next_update = 3\ncrl_number = 1\n' >t
	certtool --generate-crl --load-ca-certificate ca.pem --load-ca-privkey ca.key --template t --load-certificate b.pem \
		--outfile crl.pem >/dev/null 2>&1
	refused DDPS_E_CERT_REFUSED "revoked" "${a[@]}" --tls-crl crl.pem -- "${b[@]}"
}

wrong_keys() {
	made psk --dir other pair
	made psk none
	refused DDPS_E_CERT_REFUSED "has another key for it" --tls-psk pair.psk -- --tls-psk other/pair.psk || return
	refused DDPS_E_CERT_REFUSED "does not know it" --tls-psk pair.psk -- --tls-psk none.psk
}

own_files() {
	run 1 connect --json "${b[@]}" --tls-key a.key "$wire://127.0.0.1:1" && has out code DDPS_E_KEY_MISMATCH &&
		says err "try: sessctl check-keys" || return
	cp b.key open.key && chmod 644 open.key
	run 1 connect --json "${b[@]}" --tls-key open.key "$wire://127.0.0.1:1" && has out code DDPS_E_KEY_OPEN || return
	run 1 listen --json "${b[@]}" --tls-key open.key "$at" && has out code DDPS_E_KEY_OPEN || return
	run 1 connect --json --tls nothing.conf "$wire://127.0.0.1:1" && has out code DDPS_E_CONFIG || return
	run 1 connect "$wire://127.0.0.1:1" && says err "$wire" || return
	run 1 listen "$at" && says err "$wire"
}

# Inside DTLS what another key has sealed is dropped: the time limit says what that means.
wrong_keys_in_silence() {
	refused DDPS_E_CERT_REFUSED "has another key for it" --tls-psk pair.psk -- --timeout 2 --tls-psk other/pair.psk ||
		return
	refused DDPS_E_CERT_REFUSED "does not know it" --tls-psk pair.psk -- --timeout 2 --tls-psk none.psk
}

plain_and_secured() {
	listen $plain://127.0.0.1:0 || return
	run 1 connect "${b[@]}" "$wire${uri#"$plain"}" && [ -s err ] || return
	stop_listener
	listen "$at" "${a[@]}" && run 1 connect "$plain${uri#"$wire"}" && [ -s err ] && stop_listener
}

# A plain one and one inside DTLS: no session, and each side reports the other.
plain_and_secured_sctp() {
	local -x DDPSESS_DEBUG=1
	listen 'sctp://127.0.0.1:0?encap=0' || return
	run 5 connect "${b[@]}" --timeout 1 "sctps://127.0.0.1:$(sed -E 's/.*encap=//' <<<"$uri")" &&
		says err "answered the DTLS handshake" && says listen.err "speaks DTLS, and this port is plain" || return
	stop_listener
	listen "$at" "${a[@]}" && run 5 connect --timeout 1 "sctp://127.0.0.1:9?encap=${uri##*:}" &&
		says listen.err "speaks plain SCTP, without DTLS" && stop_listener
}

# What SCTP inside DTLS has not, with the reason.
refused_forms() {
	run 2 connect "${b[@]}" "sctps://127.0.0.1,127.0.0.2:9" && says err "takes one address, no list" || return
	run 2 connect "${b[@]}" "sctps://127.0.0.1:9?encap=off" && says err "encap=off is for sctp://" || return
	run 2 connect "${b[@]}" "sctps://127.0.0.1:9?backend=kernel" && says err "takes no backend" || return
	run 2 connect "${b[@]}" "sctps://127.0.0.1:9?local=127.0.0.1,127.0.0.2" && says err "local= takes one address"
}

# OpenSSL and GnuTLS shake hands with a listener, and are judged.
others_dial() {
	listen "$at" "${a[@]}" || return
	local port=${uri##*:}
	timeout 9 openssl s_client -dtls1_2 -connect "127.0.0.1:$port" -cert b.pem -key b.key -CAfile ca.pem \
		-verify_return_error -verify_ip 127.0.0.1 </dev/null >out 2>err
	says out "Verify return code: 0" && says out "Extended master secret: yes" && says out "DTLSv1.2" || return
	timeout 9 openssl s_client -dtls1_2 -connect "127.0.0.1:$port" -CAfile ca.pem </dev/null >out 2>err
	says err "alert certificate required" || return
	timeout 9 openssl s_client -dtls1 -connect "127.0.0.1:$port" -cert b.pem -key b.key </dev/null >out 2>err
	says err "protocol version" || return
	timeout 9 gnutls-cli --udp --port "$port" 127.0.0.1 --x509cafile ca.pem --x509certfile b.pem --x509keyfile b.key \
		--priority 'NORMAL:-VERS-ALL:+VERS-DTLS1.2' </dev/null >out 2>err
	says out "Handshake was completed" && says out "AES-128-GCM" || return
	run 0 connect "${b[@]}" "$uri" && stop_listener
}

# OpenSSL listens: DTLS is there, and a peer without SCTP inside is called that.
others_listen() {
	local port keep other i
	rm -f keep && mkfifo keep && exec {keep}<>keep # it ends with its input
	timeout 9 openssl s_server -dtls1_2 -listen -4 -accept 127.0.0.1:0 -cert a.pem -key a.key -CAfile ca.pem -Verify 1 \
		-verify_return_error <&"$keep" >judge 2>&1 &
	other=$!
	for ((i = 0; i < 80; i++)); do
		port=$(sed -n 's/^ACCEPT .*://p' judge)
		[ -z "$port" ] || break
		sleep 0.1
	done
	for ((i = 0; i < 8; i++)); do
		timeout 9 "$SESSCTL" connect --timeout 1 "${b[@]}" "sctps://127.0.0.1:$port" >out 2>err
		grep -q "nothing answers SCTP" err && break
	done
	kill "$other" 2>/dev/null
	wait "$other" 2>/dev/null
	exec {keep}>&-
	says err "DTLS is there, but nothing answers SCTP inside it"
}

# A host's list changes: a host that has just connected is refused, without a restart.
reloaded() {
	printf 'allow dns b\n' >list
	listen "$at" "${a[@]}" --tls-peers list && run 0 connect "${b[@]}" "$uri" || return
	printf 'deny dns b\n' >list.new && mv list.new list
	local i
	for ((i = 0; i < 50; i++)); do
		"$SESSCTL" connect --json "${b[@]}" "$uri" >out 2>err || break
		sleep 0.1 # files are looked at every second
	done
	has out code DDPS_E_CERT_REFUSED && stop_listener
}

seen_by_stat() {
	listen "$at" "${a[@]}" || return
	start_job c.fifo c.err connect --wait --json "${b[@]}" "$uri"
	local client=$pid client_fd=$fd
	run 0 stat "$listener" && says out "peer is     dns:b, $version" && run 0 stat --json "$listener" &&
		has out peer_id dns:b
	local status=$?
	kill -TERM "$client"
	end_job "$client" "$client_fd"
	stop_listener
	return $status
}

common_cases() {
	test_case "$wire: both sides are known" both_are_known
	test_case "$wire: files, pings and measurements" files
	test_case "$wire: a capture is private" captured
	test_case "$wire: a shared key" shared_key
	test_case "$wire: one settings file" one_file
	test_case "$wire: peers that are wrong, each by its name" wrong_peers
	test_case "$wire: own files that are wrong" own_files
	test_case "$wire: a list that changes is in force without a restart" reloaded
	test_case "$wire: stat shows who the peer is" seen_by_stat
}

common_cases
test_case "tls: shared keys that are wrong" wrong_keys
test_case "tls: one side plain, the other secured" plain_and_secured
wire=sctps at=sctps://127.0.0.1:0 version="DTLS 1.2"
common_cases
test_case "sctps: shared keys that are wrong" wrong_keys_in_silence
test_case "sctps: one side plain, the other secured" plain_and_secured_sctp
test_case "sctps: what it has not is refused with the reason" refused_forms
if command -v openssl >/dev/null && command -v gnutls-cli >/dev/null; then
	test_case "sctps: OpenSSL and GnuTLS shake hands with a listener" others_dial
	test_case "sctps: OpenSSL shakes hands as a listener" others_listen
else
	echo "skip openssl or gnutls-cli is not here: the DTLS of others is not tried"
fi
finish
