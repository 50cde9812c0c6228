#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A key log: tshark reads with it what was captured on the wire, and without it nothing is there to read.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
here=$(cd "$(dirname "$0")" && pwd)

# The wire is the loopback of a network namespace of its own.
if [ -z "${SNIFF_INSIDE:-}" ]; then
	command -v tshark >/dev/null || {
		echo "ok secure-wireshark # skipped: no tshark (Debian package tshark)"
		exit 0
	}
	for how in "unshare -n" "unshare -rnm"; do
		if $how sh -c 'ip link set lo up' 2>/dev/null; then
			# shellcheck disable=SC2086 # words are meant
			SNIFF_INSIDE=$how SESSCTL=$(realpath "$SESSCTL") exec $how bash "$0"
		fi
	done
	echo "ok secure-wireshark # skipped: no network namespace here"
	exit 0
fi
# Files of CAs are to be in folders of users that the namespace maps, as /tmp is not.
case $SNIFF_INSIDE in *m) mount -t tmpfs none /mnt && export TMPDIR=/mnt ;; esac
. "$(dirname "$0")/lib.bash"
ip link set lo up || exit 1
export HOME=$work # no dissectors of this user's

{ "$SESSCTL" keys ca lab && "$SESSCTL" keys host a localhost 127.0.0.1 && "$SESSCTL" keys host b &&
	"$SESSCTL" keys psk pair; } >made.out 2>&1 || exit 1
printf 'cert a.pem\nkey a.key\nca ca.pem\nkeylog secrets\n' >a.conf
printf 'psk pair.psk\nkeylog secrets\n' >a-psk.conf
b=(--tls-cert b.pem --tls-key b.key --tls-ca ca.pem)

# sniffed SCHEME SETTINGS OPTION...: ping a listener with these settings, and capture that; $port
sniffed() {
	local scheme=$1 settings=$2 sniffer
	shift 2
	rm -f secrets
	listen "$scheme://127.0.0.1:0" --tls "$settings" --count 1 || return
	port=${uri##*:}
	coproc python3 "$here/sniff.py" wire.pcap
	sniffer=$COPROC_PID
	read -r -t "$PATIENCE" -u "${COPROC[0]}" _ || return
	run 0 ping --count 3 --interval 0 "$@" "$uri"
	local status=$?
	end_listener
	eval "exec ${COPROC[1]}>&-"
	wait "$sniffer" && [ "$status" = 0 ]
}

# shown OPTION...: what tshark makes of it
shown() {
	tshark -n -r wire.pcap -d "tcp.port==$port,tls" -d "udp.port==$port,dtls" \
		-X "lua_script:$root/tools/wireshark/ddpsess.lua" "$@" 2>tshark.err
}

# The frames of MPA's set-up are in records that were opened.
tls_opens() {
	sniffed tls "$@" && grep -q '^CLIENT_HANDSHAKE_TRAFFIC_SECRET [0-9a-f]\{64\} ' secrets &&
		grep -q '^SERVER_TRAFFIC_SECRET_0 ' secrets || return
	shown -o tls.keylog_file:secrets -T fields -e data.data >opened
	why="no MPA in $(head -c 300 opened)"
	grep -q "$(printf 'MPA ID Req Frame' | od -An -v -tx1 | tr -d ' \n')" opened &&
		grep -q "$(printf 'MPA ID Rep Frame' | od -An -v -tx1 | tr -d ' \n')" opened || return
	shown -T fields -e data.data >closed
	why="it is there without keys"
	! grep -q 4d504120 closed && ! grep -aq 'MPA ID' wire.pcap
}

sctps_opens() {
	sniffed sctps "$@" && grep -q '^CLIENT_RANDOM [0-9a-f]\{64\} [0-9a-f]\{96\}$' secrets || return
	shown -o tls.keylog_file:secrets -T fields -e sctp.chunk_type -e ddp_sctp_session.function >opened
	local chunk
	for chunk in 1 2 10 11 0 3 7 8 14; do # INIT and its answer, cookies, DATA, SACK, the three of the end
		why="no chunk of type $chunk in $(sort opened | uniq -c | tr '\n' ' ')"
		grep -q "\(^\|,\)$chunk\(,\|[[:space:]]\)" opened || return
	done
	why="no Initiate and Accept"
	grep -q '0x0001\|0x0005' opened && grep -q '0x0002\|0x0006' opened || return
	shown -T fields -e sctp.chunk_type >closed
	why="it is there without keys"
	! grep -q '[0-9]' closed
}

# tshark 4.0 does not open what a pre-shared key protects in DTLS: the line is there.
sctps_is_logged() {
	sniffed sctps a-psk.conf --tls-psk pair.psk && why="in secrets: $(cat secrets)" &&
		grep -q '^CLIENT_RANDOM [0-9a-f]\{64\} [0-9a-f]\{96\}$' secrets
}

# The listener says it, once.
is_said() {
	says listen.err "secrets of connections are written to" && why="said $(grep -c secrets listen.err) times" &&
		[ "$(grep -c 'secrets of' listen.err)" = 1 ] && why="mode $(stat -c %a secrets)" && [ "$(stat -c %a secrets)" = 600 ]
}

is_checked() {
	run 0 check-keys a.conf && says out "receives the secrets of connections"
}

# The environment alone writes nothing.
not_by_itself() {
	printf 'cert a.pem\nkey a.key\nca ca.pem\n' >silent.conf
	SSLKEYLOGFILE=$work/by-itself sniffed tls silent.conf "${b[@]}" && absent by-itself && absent secrets &&
		SSLKEYLOGFILE=$work/by-itself sniffed sctps silent.conf "${b[@]}" && absent by-itself
}

test_case keylog-tls tls_opens a.conf "${b[@]}"
test_case keylog-is-said is_said
test_case keylog-tls-psk tls_opens a-psk.conf --tls-psk pair.psk
test_case keylog-sctps sctps_opens a.conf "${b[@]}"
test_case keylog-sctps-psk sctps_is_logged
test_case keylog-is-checked is_checked
test_case keylog-not-by-itself not_by_itself
finish
