#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessctl over tls://: what is done, who the peer is, and each wrong case by its name.
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
at=tls://127.0.0.1:0

both_are_known() {
	listen "$at" "${a[@]}" --count 1 && run 0 connect --json "${b[@]}" "$uri" && has out name ip:127.0.0.1 &&
		has out version "TLS 1.3" && has out how x509 && end_listener && has listen.out name dns:b &&
		has listen.out issuer CN=lab
}

files() {
	local i
	mkdir -p served && head -c 3000000 /dev/urandom >big && listen "$at" "${a[@]}" --dir served || return
	run 0 put "${b[@]}" big "$uri" && same big served/big && run 0 get "${b[@]}" "$uri/big" back && same big back || return
	for i in send write read; do
		run 0 ping "${b[@]}" --op $i --count 20 --interval 0 "$uri" || return
	done
	run 0 perf "${b[@]}" --op both --seconds 0.2 --size 64,64K "$uri" && stop_listener
}

shared_key() {
	listen "$at" --tls-psk pair.psk --count 1 && run 0 connect --json --tls-psk pair.psk "$uri" &&
		has out how psk && end_listener && has listen.out name psk:pair
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
	made host --dir . --days 1 c
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
	run 1 connect --json "${b[@]}" --tls-key a.key tls://127.0.0.1:1 && has out code DDPS_E_KEY_MISMATCH &&
		says err "try: sessctl check-keys" || return
	cp b.key open.key && chmod 644 open.key
	run 1 connect --json "${b[@]}" --tls-key open.key tls://127.0.0.1:1 && has out code DDPS_E_KEY_OPEN || return
	run 1 listen --json "${b[@]}" --tls-key open.key "$at" && has out code DDPS_E_KEY_OPEN || return
	run 1 connect --json --tls nothing.conf tls://127.0.0.1:1 && has out code DDPS_E_CONFIG || return
	run 1 connect tls://127.0.0.1:1 && says err tls || return
	run 1 listen "$at" && says err tls
}

plain_and_secured() {
	listen tcp://127.0.0.1:0 || return
	run 1 connect "${b[@]}" "tls${uri#tcp}" && [ -s err ] || return
	stop_listener
	listen "$at" "${a[@]}" && run 1 connect "tcp${uri#tls}" && [ -s err ] && stop_listener
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
	run 0 stat "$listener" && says out "peer is     dns:b, TLS 1.3" && run 0 stat --json "$listener" &&
		has out peer_id dns:b
	local status=$?
	kill -TERM "$client"
	end_job "$client" "$client_fd"
	stop_listener
	return $status
}

test_case "tls: both sides are known" both_are_known
test_case "tls: files, pings and measurements" files
test_case "tls: a shared key" shared_key
test_case "tls: one settings file" one_file
test_case "tls: peers that are wrong, each by its name" wrong_peers
test_case "tls: shared keys that are wrong" wrong_keys
test_case "tls: own files that are wrong" own_files
test_case "tls: one side plain, the other secured" plain_and_secured
test_case "tls: a list that changes is in force without a restart" reloaded
test_case "tls: stat shows who the peer is" seen_by_stat
finish
