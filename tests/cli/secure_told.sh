#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What the operator of a listener learns of peers that it refused, and of files that are not in force.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
. "$(dirname "$0")/lib.bash"
unset DDPSESS_LOG DDPSESS_DEBUG

"$SESSCTL" keys ca lab >/dev/null && "$SESSCTL" keys host a localhost 127.0.0.1 >/dev/null &&
	"$SESSCTL" keys host b >/dev/null && "$SESSCTL" keys psk pair >/dev/null || exit 1
a=(--tls-cert a.pem --tls-key a.key --tls-ca ca.pem)
b=(--tls-cert b.pem --tls-key b.key --tls-ca ca.pem)

# plain URI: the same place without its security
plain() {
	case $1 in
	tls:*) echo "tcp${1#tls}" ;;
	sctps:*) echo "sctp://127.0.0.1:9?encap=${1##*:}" ;;
	esac
}

# within_patience COMMAND...: until it is true
within_patience() {
	local i
	for ((i = 0; i < PATIENCE * 20; i++)); do
		"$@" && return
		sleep 0.05
	done
	return 1
}

counted() { # NAME VALUE
	run 0 stat --json "$listener" && has out "$1" "$2"
}

refused_peers_are_said() {
	printf 'deny dns b\nallow issuer CN=lab\n' >no.list
	listen "$wire://127.0.0.1:0" "${a[@]}" --tls-peers no.list || return
	run 1 connect "${b[@]}" "$uri" || return
	within_patience says listen.err "secure: refused 127.0.0.1:" || return
	says listen.err "no.list" && within_patience counted refused_not_listed 1 || return
	run 1 connect --timeout 4 "$(plain "$uri")" || [ "$status" = 5 ] || return
	within_patience says listen.err "without" && within_patience counted refused_protocol 1 || return
	# over sctps it tries again and again, and is one
	run 1 connect --tls-psk pair.psk "$uri" && says err "in common" && counted refused_protocol 2 || return
	run 0 stat "$listener" && says out "peers refused by list or user 1" && says out "peers refused for what they speak" &&
		run 0 stat --metrics "$listener" && says out "ddpsess_refused_not_listed_total{" || return
	stop_listener
}

accepted_peers_are_not_said() {
	listen "$wire://127.0.0.1:0" "${a[@]}" --count 1 && run 0 connect "${b[@]}" "$uri" && end_listener || return
	why="said: $(cat listen.err)"
	[ ! -s listen.err ] || return
	DDPSESS_LOG=secure:warn listen "$wire://127.0.0.1:0" "${a[@]}" --count 1 && run 0 connect "${b[@]}" "$uri" &&
		end_listener || return
	why="at warn: $(cat listen.err)"
	[ ! -s listen.err ] || return
	DDPSESS_LOG=secure:info listen "$wire://127.0.0.1:0" "${a[@]}" --count 1 && run 0 connect "${b[@]}" "$uri" &&
		end_listener && says listen.err "peer dns:b"
}

# Who does not trust this side is said, too: the operator would see nothing of a wrong certificate.
refused_by_a_peer() {
	[ -d other ] || { mkdir other && "$SESSCTL" keys ca --dir other other && "$SESSCTL" keys host --dir other a localhost 127.0.0.1; } >made.out 2>&1
	listen "$wire://127.0.0.1:0" --tls-cert other/a.pem --tls-key other/a.key --tls-ca ca.pem && run 1 connect "${b[@]}" "$uri" &&
		within_patience counted refused_gone 1 && stop_listener && says listen.err "refused this side" &&
		says listen.err unknown_ca
}

# A rule next to a wrong line is not in force, and not in silence.
broken_list_is_said() {
	printf 'allow dns b\n' >list
	listen "$wire://127.0.0.1:0" "${a[@]}" --tls-peers list && run 0 connect "${b[@]}" "$uri" || return
	printf 'deny dns b\nallwo dns c\n' >list.new && mv list.new list
	within_patience shows_news || return
	says listen.err "list line 2" && within_patience counted reloads_failed '[1-9][0-9]*' && run 0 stat "$listener" &&
		says out "files not read again" && run 0 stat --metrics "$listener" &&
		says out "ddpsess_reloads_failed_total{" && stop_listener
}

# A wrong key of its own is said, too, and keeps no rule out.
denied_whatever_the_key_is() {
	printf 'allow dns b\n' >list && cp a.key mine.key && chmod 600 mine.key || return
	listen "$wire://127.0.0.1:0" --tls-cert a.pem --tls-key mine.key --tls-ca ca.pem --tls-peers list &&
		run 0 connect "${b[@]}" "$uri" || return
	cp b.key new.key && chmod 600 new.key && mv new.key mine.key && printf 'deny dns b\n' >list.new &&
		mv list.new list && within_patience shows_denied || return
	says listen.err "in force, but the certificate and key that were read before stay in use" &&
		says listen.err "is not the key of" && stop_listener
}

shows_denied() {
	! "$SESSCTL" connect "${b[@]}" "$uri" >out 2>err && says listen.err "list:1 denies the peer"
}

# What a network that anybody sends to has brought, and which wire a session has.
counters_of_dtls() {
	local client client_fd
	listen "sctps://127.0.0.1:0" "${a[@]}" && start_job client.fifo err ping --count 1000 --interval 30 "${b[@]}" "$uri" ||
		return
	client=$pid client_fd=$fd
	counted dtls_cookies '[1-9][0-9]*' && counted dtls_forged 0 && counted dtls_replayed 0 && counted dtls_strange 0 &&
		counted dtls_renewed 0 && counted dtls_rebound 0 && counted secured_held 0 && run 0 stat --metrics "$listener" &&
		says out "ddpsess_dtls_cookies_total{" && says out "ddpsess_dtls_forged_total{" &&
		run 0 stat "$listener" && says out ", responder over sctps," && counted transport sctps &&
		run 0 stat --metrics "$listener" && says out 'transport="sctps"' && run 0 top --count 1 && says out " sctps "
	local status=$?
	kill "$client"
	end_job "$client" "$client_fd"
	stop_listener
	return "$status"
}

shows_news() {
	"$SESSCTL" connect "${b[@]}" "$uri" >out 2>err
	says listen.err "not in force, what was read before stays in use"
}

plain_listener_says_it() {
	listen tcp://127.0.0.1:0 && run 1 connect "${b[@]}" "tls${uri#tcp}" || return
	within_patience says listen.err "the peer speaks TLS: this side has to listen on tls://" && stop_listener
}

# Whoever looks for open ports is counted; only DDPSESS_LOG shows it.
scanned() {
	listen tls://127.0.0.1:0 "${a[@]}" || return
	(exec 3<>"/dev/tcp/127.0.0.1/${uri##*:}") || return
	within_patience counted refused_gone 1 && stop_listener || return
	why="said: $(cat listen.err)"
	[ ! -s listen.err ] || return
	DDPSESS_LOG=secure:info listen tls://127.0.0.1:0 "${a[@]}" || return
	(exec 3<>"/dev/tcp/127.0.0.1/${uri##*:}") || return
	within_patience says listen.err "closed the connection in the TLS handshake" && stop_listener
}

suppressed() {
	DDPSESS_LOG=none listen tls://127.0.0.1:0 "${a[@]}" && run 1 connect "$(plain "$uri")" || return
	within_patience counted refused_protocol 1 && stop_listener || return
	why="said: $(cat listen.err)"
	[ ! -s listen.err ]
}

for wire in tls sctps; do
	test_case "told $wire: a peer that is refused is said, and counted by reason" refused_peers_are_said
	test_case "told $wire: a peer that is accepted is said to who asks for it" accepted_peers_are_not_said
	test_case "told $wire: a list that is not in force is said" broken_list_is_said
	test_case "told $wire: a wrong key of the listener's withholds no rule" denied_whatever_the_key_is
	test_case "told $wire: a peer that refuses the listener is said" refused_by_a_peer
done
test_case "told: a plain listener that is spoken to in TLS" plain_listener_says_it
test_case "told: a port scan is counted" scanned
test_case "told: DDPSESS_LOG=none suppresses it" suppressed
test_case "told: what came over DTLS is counted" counters_of_dtls
finish
