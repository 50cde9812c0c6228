#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# tls:// and the TLS of others, in both roles: OpenSSL, GnuTLS, and stunnel in front of a peer that speaks plain MPA.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
. "$(dirname "$0")/lib.bash"

for tool in openssl gnutls-cli gnutls-serv ss; do
	command -v $tool >/dev/null || {
		echo "skip $tool is not here: the TLS of others is not tried"
		exit 0
	}
done

made() { # ARGUMENT...: by sessctl keys, quietly
	"$SESSCTL" keys "$@" >made.out 2>&1 || {
		echo "keys $*: $(tail -n 1 made.out)" >&2
		exit 1
	}
}

made ca lab
made host a localhost 127.0.0.1
made host b
made psk pair
a=(--tls-cert a.pem --tls-key a.key --tls-ca ca.pem)
b=(--tls-cert b.pem --tls-key b.key --tls-ca ca.pem)
at=tls://127.0.0.1:0
secret=$(sed -n 's/^pair://p' pair.psk)
jobs_of_others=()
# without the names that openssl.cnf and crypto-policies may add
export OPENSSL_CONF=/dev/null

end_others() {
	local job
	for job in "${jobs_of_others[@]}"; do
		kill -KILL "$job" 2>/dev/null
		wait "$job" 2>/dev/null
	done
	jobs_of_others=()
}
end_all() {
	[[ $BASHPID = "$$" ]] || return # killed before it was a program of its own
	end_others
	cleanup
}
trap end_all EXIT

# port_of PID: where it listens, as soon as it does; sets $port
port_of() {
	local until=$((SECONDS + PATIENCE))
	port=
	while [ -z "$port" ] && kill -0 "$1" 2>/dev/null && ((SECONDS < until)); do
		port=$(ss -Hltnp | sed -n "s/.* \(127\.0\.0\.1\|0\.0\.0\.0\):\([0-9]*\) .*pid=$1,.*/\2/p" | head -n 1)
	done
	why="it listens nowhere: $(tail -n 3 judge.err)"
	[ -n "$port" ]
}

# in_background COMMAND...: one of the others', its input $say, its output $hear, its errors in judge.err
in_background() {
	rm -f judge.in judge.out && mkfifo judge.in judge.out
	"$@" <judge.in >judge.out 2>judge.err &
	judge=$!
	jobs_of_others+=("$judge")
	exec {say}>judge.in {hear}<judge.out
}

end_talk() {
	exec {say}>&- {hear}<&-
	end_others
}

# A Request and a Reply of revision 1 without private data.
request='MPA ID Req Frame\0\1\0\0'
reply='MPA ID Rep Frame\0\1\0\0'

# hears TEXT: it is what comes first
hears() {
	local got
	LC_ALL=C IFS= read -r -d '' -n ${#1} -t "$PATIENCE" -u "$hear" got
	why="'$got' in place of '$1': $(tail -n 3 judge.err)"
	[ "$got" = "$1" ]
}

# answered COMMAND...: it sends a Request to our listener and has a Reply
answered() {
	local status
	in_background "$@"
	# shellcheck disable=SC2059 # it is a format
	printf "$request" >&"$say"
	hears "MPA ID Rep Frame"
	status=$?
	end_talk
	return $status
}

s_client=(openssl s_client -quiet -tls1_3 -alpn x-iwarp-mpa)
of_b=(-cert b.pem -key b.key -CAfile ca.pem -verify_return_error)
only_13=NORMAL:-VERS-ALL:+VERS-TLS1.3

openssl_dials() {
	listen "$at" "${a[@]}" || return
	answered "${s_client[@]}" -connect "${uri#tls://}" "${of_b[@]}" -verify_ip 127.0.0.1 &&
		stop_listener && has listen.out name dns:b
}

gnutls_dials() {
	listen "$at" "${a[@]}" || return
	answered gnutls-cli --logfile judge.log --alpn x-iwarp-mpa --priority $only_13 --x509cafile ca.pem --x509certfile b.pem \
		--x509keyfile b.key --verify-hostname localhost -p "${uri##*:}" 127.0.0.1 &&
		stop_listener && has listen.out name dns:b
}

both_dial_with_a_psk() {
	listen "$at" --tls-psk pair.psk || return
	answered "${s_client[@]}" -connect "${uri#tls://}" -psk "$secret" -psk_identity pair \
		-ciphersuites TLS_AES_128_GCM_SHA256 || return
	answered gnutls-cli --logfile judge.log --alpn x-iwarp-mpa --pskusername pair --pskkey "$secret" \
		--priority $only_13:+ECDHE-PSK -p "${uri##*:}" 127.0.0.1 &&
		stop_listener && has listen.out name psk:pair
}

# Without forward secrecy nothing is agreed.
psk_alone() {
	listen "$at" --tls-psk pair.psk || return
	why="psk_ke was taken"
	! gnutls-cli --logfile judge.log --pskusername pair --pskkey "$secret" --priority $only_13:-KX-ALL:+PSK \
		-p "${uri##*:}" 127.0.0.1 </dev/null >judge.txt 2>&1 && stop_listener
}

# alerted ALERT OPTION...: so s_client is turned away
alerted() {
	local alert=$1
	shift
	timeout "$PATIENCE" openssl s_client -quiet -connect "${uri#tls://}" -CAfile ca.pem "$@" </dev/null >judge.txt 2>&1
	says judge.txt "$alert"
}

turned_away() {
	listen "$at" "${a[@]}" || return
	alerted "alert certificate required" -tls1_3 && alerted "alert protocol version" -tls1_2 "${of_b[@]}" &&
		alerted "alert no application protocol" -tls1_3 -alpn h2 "${of_b[@]}" &&
		alerted "alert handshake failure" -tls1_3 -ciphersuites TLS_AES_128_CCM_SHA256 "${of_b[@]}" &&
		run 0 connect "${b[@]}" "$uri" && stop_listener
}

# It answers by hand: what is behind the handshake is MPA.
openssl_listens() {
	in_background openssl s_server -quiet -accept 127.0.0.1:0 -naccept 1 -tls1_3 -cert a.pem -key a.key -CAfile ca.pem -Verify 1 \
		-verify_return_error -alpn x-iwarp-mpa
	port_of "$judge" || return
	local dialler status
	"$SESSCTL" connect --json --plain "${b[@]}" "tls://127.0.0.1:$port" >c.out 2>c.err &
	dialler=$!
	hears "MPA ID Req Frame" || return
	# shellcheck disable=SC2059 # it is a format
	printf "$reply" >&"$say"
	wait "$dialler"
	status=$?
	end_talk
	keep_json c.out
	why="status $status: $(cat c.err)"
	[ "$status" -eq 0 ] && has c.out name ip:127.0.0.1 && has c.out alpn x-iwarp-mpa && has c.out event closed
}

# It speaks no MPA: the handshake is done, its tickets pass by, and no Reply comes.
gnutls_listens() {
	in_background gnutls-serv --echo -p 0 --priority $only_13 --x509cafile ca.pem --x509certfile a.pem --x509keyfile a.key --require-client-cert
	port_of "$judge" && DDPSESS_LOG=info run 5 connect --timeout 1 "${b[@]}" "tls://127.0.0.1:$port" &&
		says err "TLS 1.3, AES-128-GCM, X25519, peer ip:127.0.0.1"
	local status=$?
	timeout "$PATIENCE" grep -qm 1 "Subject: CN=b" <&"$hear" || status=1
	end_talk
	return $status
}

old_one_listens() {
	in_background openssl s_server -quiet -accept 127.0.0.1:0 -tls1_2 -cert a.pem -key a.key -CAfile ca.pem
	port_of "$judge" && run 1 connect --json "${b[@]}" "tls://127.0.0.1:$port" && has out code DDPS_E_TLS_OLD
	local status=$?
	end_talk
	return $status
}

# stunnel_between CONNECT CERTIFICATE OPTION...: it listens on $port
stunnel_between() {
	local to=$1 host=$2
	shift 2
	printf '%s\n' foreground=yes pid= "output=$PWD/judge.err" "$@" "[it]" accept=127.0.0.1:0 "connect=$to" "cert=$PWD/$host.pem" \
		"key=$PWD/$host.key" "CAfile=$PWD/ca.pem" verifyChain=yes sslVersionMin=TLSv1.3 >stunnel.conf
	stunnel stunnel.conf >stunnel.out 2>&1 &
	judge=$!
	jobs_of_others+=("$judge")
	port_of "$judge"
}

# A file each way through what sessctl dials.
files_pass() {
	rm -f served/* back
	run 0 put "$@" "tls-or-tcp.bin" "$peer" && same tls-or-tcp.bin served/tls-or-tcp.bin &&
		run 0 get "$@" "$peer/tls-or-tcp.bin" back && same tls-or-tcp.bin back &&
		run 0 ping "$@" --count 20 --interval 0 "$peer"
}

stunnel_before_a_listener() {
	listen tcp://127.0.0.1:0 --dir served && stunnel_between "${uri#tcp://}" a || return
	peer=tls://127.0.0.1:$port
	files_pass "${b[@]}"
	local status=$?
	end_others
	stop_listener
	return $status
}

stunnel_before_a_dialler() {
	listen "$at" "${a[@]}" --dir served && stunnel_between "${uri#tls://}" b client=yes || return
	peer=tcp://127.0.0.1:$port
	files_pass
	local status=$?
	end_others
	stop_listener && has listen.out name dns:b && return $status
}

# Whoever is killed says no close_notify: what he sent may lack its end.
stunnel_killed() {
	listen tcp://127.0.0.1:0 && stunnel_between "${uri#tcp://}" a || return
	start_job c.fifo c.err connect --wait --json "${b[@]}" "tls://127.0.0.1:$port"
	local client=$pid client_fd=$fd status
	end_others
	end_job "$client" "$client_fd"
	status=$?
	mv rest c.out
	stop_listener
	why="status $status: $(cat c.out c.err)"
	[ "$status" -eq 1 ] && has c.out code DDPS_E_CUT_SHORT
}

# two_faces STATUS CERTIFICATE...: what comes of a second try without negotiation, with these at the other end
two_faces() {
	local want=$1 pairs=() port
	shift
	while [ $# -gt 0 ]; do
		pairs+=("$1.pem,$1.key")
		shift
	done
	in_background python3 "$here/two_faces.py" ca.pem "${pairs[@]}"
	read -r -t "$PATIENCE" -u "$hear" port
	run "$want" connect --json --legacy-retry --timeout 20 "${b[@]}" "tls://127.0.0.1:$port"
	local status=$?
	end_talk
	return $status
}

second_try() {
	made host --dir other-key --ca ca.pem --ca-key ca.key a localhost 127.0.0.1
	two_faces 0 a a && has out event closed && two_faces 1 a other-key/a && has out code DDPS_E_CERT_NAME &&
		says err "not who ended the first one"
}

mkdir served other-key && head -c 3000000 /dev/urandom >tls-or-tcp.bin

test_case "tls: OpenSSL dials, and has an MPA Reply" openssl_dials
test_case "tls: GnuTLS dials, and has an MPA Reply" gnutls_dials
test_case "tls: both dial with a pre-shared key" both_dial_with_a_psk
test_case "tls: a pre-shared key without an exchange of keys is not taken" psk_alone
test_case "tls: who is refused gets the alert for it, and the next one is served" turned_away
test_case "tls: OpenSSL listens" openssl_listens
test_case "tls: GnuTLS listens" gnutls_listens
test_case "tls: a listener with TLS 1.2 is refused" old_one_listens
test_case "tls: who answers a second try is who was there at the first" second_try
if command -v stunnel >/dev/null; then
	test_case "tls: stunnel before a listener on tcp:// is a peer" stunnel_before_a_listener
	test_case "tls: stunnel before one that dials tcp:// is a peer" stunnel_before_a_dialler
	test_case "tls: a stunnel that is killed is a connection cut short" stunnel_killed
else
	echo "skip stunnel is not here: a plain peer behind it is not tried"
fi
finish
