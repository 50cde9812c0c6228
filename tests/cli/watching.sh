#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# --stat and --capture: what there is to see while a session lasts.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
. "$(dirname "$0")/lib.bash"

# ---- --stat ----

# A line in the course of the command and one at its end; the association with its path.
status_lines() {
	run 0 ping --json --count 4 --interval 0.1 --stat 0.1 "$uri" || return
	why="$(grep -c '"event":"status"' out) status lines"
	[ "$(grep -c '"event":"status"' out)" -ge 3 ] || return
	if [ "$wire" = tcp ]; then
		has out association null
	else
		has out state ESTABLISHED && has out in_use true && has out primary true &&
			has out state active && has out sessions 1 || return
		why="round trip: $(field srtt_us <out)"
		field srtt_us <out | awk '{ exit !($1 > 0) }'
	fi
}

status_in_text() {
	run 0 ping --count 2 --interval 0.05 --stat 0.05 "$uri" && says out "status 0." &&
		says out "sent" || return
	[ "$wire" = tcp ] || { says out "active primary in use" && says out "cwnd" && says out "mtu"; }
}

# The listener reports each of its sessions.
listener_tells() {
	run 0 ping --json --count 6 --interval 0.1 "$uri" || return
	stop_listener
	has listen.out event status && has listen.out session 1
}

# A session shorter than the interval is reported once, at its end.
listener_tells_at_the_end() {
	listen "$(uri_of "$wire")" --stat 600
	run 0 ping --count 3 --interval 0 "$uri" && run 0 ping --count 1 "$uri" || return
	stop_listener
	why="sessions: $(grep '"event":"status"' listen.out | field session | tr '\n' ' ')"
	[ "$(grep '"event":"status"' listen.out | field session | tr '\n' ' ')" = "1 2 " ] || return
	why="nothing was sent: $(grep '"event":"status"' listen.out)"
	! grep '"event":"status"' listen.out | field sent | grep -qx 0
}

# ---- --capture ----

# What tshark says of each packet, a line a packet, fields with a tab between them.
sharks() { # FILE
	tshark -n -r "$1" --disable-protocol rpcordma -o "sctp.checksum:CRC 32c" \
		-o ip.check_checksum:TRUE -T fields -E occurrence=a \
		-e _ws.malformed -e ip.checksum.status -e sctp.checksum.status -e udp.port \
		-e sctp.chunk_type -e sctp.data_payload_proto_id -e iwarp_mpa.req -e iwarp_mpa.rep \
		-e iwarp_rdma.opcode 2>/dev/null >"$1.fields"
}

# seen FILE FIELD PATTERN: whether some packet has it
seen() {
	cut -f "$2" "$1.fields" | tr , '\n' | grep -qE "$3" && return
	why="$1: no packet with $3 in field $2"
	return 1
}

unseen() {
	! seen "$@" && return
	why="$1: a packet with $3 in field $2"
	return 1
}

# Both sides' files: each kind of packet, nothing malformed.
captured() {
	local f
	run 0 put --json --capture client.pcapng small "$uri/small" || return
	stop_listener
	for f in client.pcapng server.pcapng; do
		sharks "$f"
		unseen "$f" 1 . && unseen "$f" 2 '^0$' || return
		if [ "$wire" = tcp ]; then
			seen "$f" 7 . && seen "$f" 8 . && seen "$f" 9 '^(0|0x0+)$' || return
			continue
		fi
		for chunk in 1 2 10 11 0 3 7 8 14; do # INIT to SHUTDOWN COMPLETE
			seen "$f" 5 "^$chunk\$" || return
		done
		unseen "$f" 3 '^0$' && seen "$f" 3 '^1$' && unseen "$f" 4 . && seen "$f" 6 '^16$' || return
	done
}

# The capture is not there in part: what cannot be written is reported.
not_written() {
	run 1 ping --count 1 --capture nowhere/file "$uri" && says err "nowhere/file" || return
	[ -e /dev/full ] || return 0
	run 1 ping --count 1 --capture /dev/full "$uri" && says err "/dev/full"
}

# Somebody else may have made the link: what it leads to stays.  Standard output is one too.
capture_links() {
	local option
	echo precious >kept
	ln -sf kept link
	run 1 ping --count 1 --capture link "$uri" && says err "--capture link: " && says err "a link is not followed" &&
		says kept precious || return
	for option in --junit "--pcap-all --pcap"; do
		# shellcheck disable=SC2086 # words are meant
		run 1 conform --self --case mpa-request-plain $option link tcp && says err "a link is not followed" &&
			says kept precious || return
	done
	run 0 conform --self --case mpa-request-plain --junit /dev/stdout tcp && says out "<testsuite" || return
	echo before >kept
	"$SESSCTL" conform --self --case mpa-request-plain --junit /dev/stdout tcp >>kept && why="$(cat kept)" &&
		[ "$(head -n 1 kept)" = before ] && grep -q "^1 passed, 0 failed" kept && [ "$(tail -n 1 kept)" = "</testsuite>" ] ||
		return
	run 0 ping --count 1 --capture /dev/fd/9 "$uri" 9>there && why="no capture in /dev/fd/9" &&
		[ "$(head -c 4 there | od -An -tx1)" = " 0a 0d 0d 0a" ]
}

# What a capture holds is for the user alone; the mode of a file that is there stays.
capture_mode() {
	rm -f made.pcapng
	run 0 ping --count 1 --capture made.pcapng "$uri" || return
	: >there.pcapng && chmod 640 there.pcapng
	run 0 ping --count 1 --capture there.pcapng "$uri" || return
	why="modes: $(stat -c '%n %a' made.pcapng there.pcapng | tr '\n' ' ')"
	[ "$(stat -c %a made.pcapng there.pcapng | tr '\n' ' ')" = "600 640 " ]
}

head -c 300000 /dev/urandom >small
for wire in $WIRES; do
	listen "$(uri_of "$wire")" --stat 0.1
	test_case "stat-$wire" status_lines
	test_case "stat-$wire-text" status_in_text
	test_case "stat-$wire-listen" listener_tells
	test_case "stat-$wire-listen-end" listener_tells_at_the_end
	mkdir -p served
	rm -f served/small
	listen "$(uri_of "$wire")" --dir served --capture server.pcapng
	test_case "capture-$wire-not-written" not_written
	test_case "contact 19: $wire, captures and links" capture_links
	test_case "capture-$wire-is-private" capture_mode
	if command -v tshark >/dev/null; then
		test_case "capture-$wire" captured
		wire6=$(uri_of "$wire" '[::1]')
		rm -f served/small
		listen "$wire6" --dir served --capture server.pcapng
		test_case "capture-$wire-ipv6" captured
	else
		ok "capture-$wire # skipped: no tshark (Debian package tshark)"
	fi
done
finish
