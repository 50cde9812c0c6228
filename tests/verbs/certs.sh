#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A peer whose certificate is expired, not valid yet, for the other role or revoked, as an unmodified program learns
# of it: rdma_cm's error, and the sentence on standard error.  The program connects (rping -c), or it listens and
# gets its next caller.  The peer is OpenSSL.  One line a case.
# usage: certs.sh BUILD
# shellcheck disable=SC2154 # variables of lib.sh
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/support/certs.bash
. "$(dirname "$0")/../support/certs.bash"
unset DDPSESS_FAULTS
export DDPSESS_RETRY_MS=0

for tool in rping certtool openssl; do
	if ! command -v $tool >/dev/null; then
		echo "ok certificates that are wrong # skipped: $tool is not installed"
		exit 0
	fi
done
cd "$work" || exit 1
"$sessctl" keys ca lab >made.out && "$sessctl" keys host a localhost 127.0.0.1 >made.out &&
	"$sessctl" keys host gone localhost 127.0.0.1 >made.out && certificates_with_a_flaw && revoke gone || exit 1
export DDPSESS_TLS_CERT=a.pem DDPSESS_TLS_KEY=a.key DDPSESS_TLS_CA=ca.pem DDPSESS_TLS_CRL=crl.pem

# openssl_listens NAME: with this certificate, at $port, until close_peer
openssl_listens() {
	local i
	rm -f keep && mkfifo keep && exec {keep}<>keep
	: >peer
	timeout 60 openssl s_server "${version[@]}" -4 -accept 127.0.0.1:0 -cert "$1.pem" -key "$1.key" -CAfile ca.pem \
		-Verify 1 -alpn x-iwarp-mpa <&"$keep" >peer 2>&1 &
	peer=$!
	for ((i = 0; i < 200; i++)); do
		port=$(sed -n 's/^ACCEPT .*://p' peer)
		[ -z "$port" ] || return 0
		sleep 0.05
	done
	return 1
}

close_peer() {
	kill "$peer" 2>/dev/null
	wait "$peer" 2>/dev/null
	exec {keep}>&-
}

# told FILE SENTENCE: becomes the fault if it is not there
told() {
	grep -qF -e "$2" "$1" || fault+=" no '$2' in $1;"
}

# The program connects to whoever has certificate NAME.
connects() { # NAME SENTENCE
	fault=
	if openssl_listens "$1"; then
		timeout 60 "$sessctl" run -- rping -c -a 127.0.0.1 -p "$port" -C 1 >client 2>&1 && fault="it is connected;"
		close_peer
		told client "RDMA_CM_EVENT_CONNECT_ERROR, error -13"
		told client "ddpsess: queue pair "
		told client "$2"
	else
		fault="OpenSSL does not listen"
	fi
	report "$wire: a listener whose certificate is $3" "$fault" client peer
}

# The program listens; whoever has certificate NAME is refused, and the next caller is served.
listens() { # NAME SENTENCE
	local server
	fault=
	free_port
	timeout 60 "$sessctl" run -- rping -s -a 127.0.0.1 -p "$port" -C 1 >server 2>&1 &
	server=$!
	await_listener "$port"
	timeout 20 openssl s_client "${version[@]}" -connect "127.0.0.1:$port" -cert "$1.pem" -key "$1.key" -CAfile ca.pem \
		-alpn x-iwarp-mpa </dev/null >peer 2>&1
	timeout 60 "$sessctl" run -- rping -c -a 127.0.0.1 -p "$port" -C 1 >client 2>&1 || fault="the next caller: $?;"
	wait "$server" || fault+=" server $?;"
	told server "ddpsess: secure: refused 127.0.0.1:"
	told server "$2"
	report "$wire: a caller whose certificate is $3" "$fault" server client peer
}

for wire in tls sctps; do
	export DDPSESS_TRANSPORT=$wire
	[ $wire = tls ] && version=(-tls1_3) || version=(-dtls1_2 -listen)
	connects old "expired on" expired
	connects early "valid from" "not valid yet"
	connects client "not for servers" "for clients only"
	connects gone "was revoked, says crl.pem" revoked
	[ $wire = tls ] || version=(-dtls1_2)
	listens old "expired on" expired
	listens early "valid from" "not valid yet"
	listens server "not for clients" "for servers only"
	listens gone "was revoked, says crl.pem" revoked
done
[ ! -e "$work/failed" ]
