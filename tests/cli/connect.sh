#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessctl connect and listen: what is negotiated, shown and refused, on each wire.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
. "$(dirname "$0")/lib.bash"

# what the listener said of the one session that it served
served() {
	end_listener
	status=$?
	why="listener's status $status"
	[ "$status" -eq 0 ] && has listen.out event closed
}

plain_text() {
	listen "$(uri_of "$wire")" --count 1
	run 0 connect "$uri" && says out "established over $wire, initiator" &&
		says out "client-server" && says out closed || return
	if grep -q $'\033' out err; then
		why="escape sequences without a terminal"
		return 1
	fi
	served
}

# No row is wider than is asked for.
narrow() {
	listen "$(uri_of "$wire")" --count 1
	COLUMNS=50 run 0 connect --p2p --private-data "some words, and some more of them" "$uri" && says out "  rtr  " || return
	why="wide: $(awk 'length > 50' out | head -n 1)"
	! awk 'length > 50' out | grep -q . && served
}

debugging() {
	listen "$(uri_of "$wire")" --count 5
	run 0 connect "$uri" || return
	why="the library logs unasked"
	! grep -q ' -> ' err || return
	DDPSESS_DEBUG=1 run 0 connect "$uri" && says err "CONNECTING -> OPEN" || return
	DDPSESS_LOG=warn,session:debug run 0 connect "$uri" && says err "CONNECTING -> OPEN" ||
		return
	DDPSESS_LOG=debug,session:none run 0 connect "$uri" || return
	why="a facility that was switched off: $(head -n 3 err)"
	! grep -q "CONNECTING -> OPEN" err || return
	DDPSESS_LOG=mpa:loud run 0 connect "$uri" && says err "it takes" && served
}

colour() {
	listen "$(uri_of "$wire")" --count 2
	TERM=xterm timeout "$PATIENCE" script -qec "$SESSCTL connect '$uri'" /dev/null >out
	says out $'\033[32mestablished' || return
	TERM=xterm NO_COLOR=1 timeout "$PATIENCE" script -qec \
		"$SESSCTL conform --self --case mpa-request-plain tcp" /dev/null >out
	why="conform has colours with NO_COLOR"
	! grep -q $'\033' out || return
	TERM=xterm NO_COLOR=1 timeout "$PATIENCE" script -qec "$SESSCTL connect '$uri'" \
		/dev/null >out
	says out established || return
	if grep -qF $'\033[32m' out; then
		why="colour with NO_COLOR"
		return 1
	fi
	served
}

numbers() {
	listen "$(uri_of "$wire")" --count 1 --ird 8 --ord 4
	run 0 connect --json --ird 2 --ord 6 "$uri" && has out transport "$wire" &&
		has out role initiator && has out enhanced true && has out ird 2 &&
		has out ord 6 && has out p2p false && has out rtr none &&
		has out event closed || return
	served && has listen.out role responder && has listen.out ord 2 &&
		has listen.out peer_ird 2 && has listen.out peer_ord 6
}

ulp() {
	listen "$(uri_of "$wire")" --count 1
	run 0 connect --json --ird ulp --ord ulp "$uri" && served &&
		has listen.out peer_ird 16383 && has listen.out peer_ord 16383
}

private_data() {
	listen "$(uri_of "$wire")" --count 1 --private-data hex:00ff7f
	printf 'from a file' >pd
	run 0 connect --json --private-data @pd "$uri" && has out private_data 00ff7f || return
	served && has listen.out private_data "$(printf 'from a file' | od -An -tx1 | tr -d ' \n')"
}

longest_private_data() {
	local data
	data=$(printf '%*s' 1016 '' | tr ' ' a)
	listen "$(uri_of "$wire")" --count 2
	run 0 connect --json --private-data "hex:$data" "$uri" || return
	run 0 connect --json --plain --private-data "hex:${data}aaaaaaaa" "$uri" || return
	served && has listen.out private_data "$data" && has listen.out private_data "${data}aaaaaaaa"
}

plain() {
	listen "$(uri_of "$wire")" --count 1
	run 0 connect --json --plain "$uri" && has out enhanced false && has out peer_ird 0 || return
	[ "$wire" = sctp ] || has out rev 1 || return
	served && has listen.out enhanced false
}

peer_to_peer() { # RTR
	listen "$(uri_of "$wire")" --count 1
	run 0 connect --json --p2p --rtr "$1" "$uri" && has out p2p true && has out rtr "$1" || return
	served && has listen.out p2p true
}

no_common_rtr() {
	listen "$(uri_of "$wire")" --rtr send
	timeout "$PATIENCE" "$SESSCTL" connect --json --p2p --rtr write "$uri" >out 2>err
	status=$?
	why="status $status: $(cat err)"
	[ "$status" -eq 3 ] || [ "$status" -eq 4 ]
}

rejected() {
	listen "$(uri_of "$wire")" --count 1 --reject --private-data no
	run 3 connect --json "$uri" && has out event rejected && has out by peer &&
		has out private_data 6e6f && says err "rejected" || return
	end_listener && has listen.out event rejected && has listen.out by local
}

stopped_listener() {
	listen "$(uri_of "$wire")"
	kill -STOP "$listener"
	run 5 connect --json --timeout 0.5 "$uri" && has out event error && says err "--timeout"
	status=$?
	kill -CONT "$listener"
	return "$status"
}

six() {
	listen "$(uri_of "$wire" '[::1]')" --count 1
	run 0 connect --json "$uri" && says out '"peer":"[::1]:' && served
}

by_name() {
	listen "$(uri_of "$wire")" --count 1
	run 0 connect --json "${uri/127.0.0.1/localhost}" && has out event closed && served
}

count_is_exact() {
	listen "$(uri_of "$wire")" --count 2
	run 0 connect "$uri" && run 0 connect "$uri" && served || return
	why="$(grep -c established listen.out) sessions"
	[ "$(grep -c established listen.out)" -eq 2 ]
}

nobody() {
	listen tcp://127.0.0.1:0
	local gone=$uri
	stop_listener
	run 1 connect --json "$gone" && has out event error &&
		has out code DDPS_E_REFUSED && says err "is a listener running"
}

port_in_use() {
	listen tcp://127.0.0.1:0
	run 1 listen "$uri" && says err "port 0"
}

mpa_options() {
	listen tcp://127.0.0.1:0 --count 2 --crc off --markers on
	run 0 connect --json --crc off "$uri" && has out crc false && has out markers_tx true &&
		has out markers_rx false || return
	run 0 connect --json --markers on "$uri" && has out crc true && has out markers_rx true &&
		served
}

for wire in $WIRES; do
	test_case "connect-$wire-text" plain_text
	test_case "connect-$wire-narrow" narrow
	command -v script >/dev/null && test_case "connect-$wire-colour" colour
	test_case "connect-$wire-debug" debugging
	test_case "connect-$wire-ird-ord" numbers
	test_case "connect-$wire-ulp" ulp
	test_case "connect-$wire-private-data" private_data
	test_case "connect-$wire-private-data-longest" longest_private_data
	test_case "connect-$wire-plain" plain
	for rtr in send write read; do
		test_case "connect-$wire-rtr-$rtr" peer_to_peer "$rtr"
	done
	test_case "connect-$wire-no-common-rtr" no_common_rtr
	test_case "connect-$wire-rejected" rejected
	test_case "connect-$wire-timeout" stopped_listener
	test_case "connect-$wire-ipv6" six
	test_case "connect-$wire-name" by_name
	test_case "connect-$wire-count" count_is_exact
done
test_case connect-nobody-listens nobody
test_case connect-port-in-use port_in_use
test_case connect-mpa-crc-markers mpa_options
finish
