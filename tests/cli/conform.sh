#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessctl conform from the outside: against our own listener and initiator, its outputs, profiles.
# That the stack passes all cases is tests/conformance/run.sh's business.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
. "$(dirname "$0")/lib.bash"

few='ddp-write-*' # cases that suit any responder

lists_cases() {
	run 0 conform --list --case "$few" && says out "ddp-write-zero" || return
	why="a line without six fields"
	! awk -F '\t' 'NF != 6' out | grep -q .
}

# What --help says of --self is what it takes.
self_in_words() {
	local words
	run 2 conform --self udp || return
	words=$(sed -n 's/.*--self takes \(.*\), not .*/\1/p' err)
	run 0 conform --help || return
	why="--help has not: $words"
	[ -n "$words" ] && tr -s ' \n' ' ' <out | grep -qF "stack over $words"
}

responder() { # WIRE
	listen "$(uri_of "$1")"
	run 0 conform --case 'ddp-write-zero' "$uri" && says out "1 passed, 0 failed" &&
		says out "over $1"
	local res=$?
	stop_listener
	return "$res"
}

initiator() { # WIRE
	local at
	if [ "$1" = tcp ]; then
		at=tcp://127.0.0.1:0
	else
		at="sctp://127.0.0.1:0?backend=native&encap=0"
	fi
	# shellcheck disable=SC2016 # for the command's shell
	run 0 conform --listen --case '*-initiator-*' --then \
		"$SESSCTL"' connect --wait "$DDPS_URI"' "$at" && says out " 0 failed" &&
		says out "pass  ddp-initiator-write-unknown-stag"
}

# Packets of an earlier association, and of a call to another port, are under way when the target calls:
# none of them is its first.
strays() {
	cat >calls <<-'END'
		say() { # HEX
			printf "$(sed 's/../\\x&/g' <<<"$1")" >"/dev/udp/127.0.0.1/${DDPS_URI##*encap=}"
		}
		say 03e81c061122334498908dcf0400000800010004 # HEARTBEAT
		say 03e81c061122334430f824c306010004 # ABORT
		say 03e81c06112233449890 # cut short
		say 03e81c0700000000eaf7d5ef0100001c55667788000200000010001000000064c006000800000001
		say 07d01c0600000000bf447dd30100001c01020304000200000010001000000064c006000800000001
	END
	run 0 conform --listen --case assoc-i-init --then 'exec bash ./calls' \
		'sctp://127.0.0.1:7174?encap=0' && says out "1 passed, 0 failed"
}

# What cannot connect is not waited for.
initiator_fails() { # WIRE
	# shellcheck disable=SC2016 # for the command's shell
	run 1 conform --listen --timeout 100 --case 'ddp-initiator-queue-4' --then \
		"$SESSCTL"' connect --frob "$DDPS_URI"' "$1" &&
		says out "the command failed before the target connected"
}

tells_failures() { # FILE: of JUnit, what came and went with each
	is_junit "$1" || return
	why="$1 has no failure, or one without what came"
	python3 - "$1" <<-'END'
		import sys
		import xml.etree.ElementTree as tree
		failures = tree.parse(sys.argv[1]).getroot().findall("testcase/failure")
		assert failures and all(f.get("message") and "<- " in f.text for f in failures)
	END
}

is_tap() { # FILE
	why="a line that is no TAP: $(grep -vE '^(TAP version |1\.\.|ok |not ok |#)' "$1" | head -n 1)"
	! grep -qvE '^(TAP version |1\.\.|ok |not ok |#)' "$1"
}

# A target that rejects everybody fails the cases that need a session.
failing() {
	listen tcp://127.0.0.1:0 --reject
	run 1 conform --case "$few" --junit j.xml --pcap f.pcap "$uri" && says out "FAIL" &&
		says out "the target rejected the request" && says out "<- " &&
		tells_failures j.xml &&
		[ "$(stat -c %s f.pcap)" -gt 100 ] &&
		run 1 conform --case "$few" --json "$uri" && has out result fail &&
		says out '"octets":"4d504120494420526571204672616d65' &&
		run 1 conform --case "$few" --tap "$uri" && says out "TAP version 13" &&
		says out "not ok 1 - ddp-write" && says out "1.." && is_tap out
	local res=$?
	stop_listener
	return "$res"
}

known() {
	listen tcp://127.0.0.1:0 --reject
	printf '%s\n' '# rejects all' 'ddp-write-zero   rejects everybody' >profile
	run 0 conform --case ddp-write-zero --profile profile "$uri" &&
		says out "fails: rejects everybody" && says out "0 failed, 1 known" &&
		says out "grades: 0 strict, 0 passes, 0 harmless, 1 fails" &&
		printf '%s\n' 'ddp-write-zero harmless:  rejects everybody' >profile &&
		run 0 conform --case ddp-write-zero --profile profile "$uri" &&
		says out "harmless: rejects everybody" &&
		says out "grades: 0 strict, 0 passes, 1 harmless, 0 fails" &&
		run 0 conform --json --case ddp-write-zero --profile profile "$uri" &&
		has out grade harmless && has out known "rejects everybody"
	local res=$?
	stop_listener
	return "$res"
}

# Through the relay, against a listener that knows nothing of it.
relayed() { # WIRE CASE
	listen "$(uri_of "$1")"
	run 0 conform --case "$2" "$uri" && says out "1 passed, 0 failed"
	local res=$?
	stop_listener
	return "$res"
}

captures() {
	listen tcp://127.0.0.1:0 --reject
	run 1 conform --case ddp-write-zero --pcap t.pcap "$uri"
	tshark -r t.pcap -V >t.txt 2>/dev/null
	says t.txt "Private data length: 4 bytes"
	local res=$?
	stop_listener
	return "$res"
}

# The limit of each wait is given, so that this ends immediately.
silent_target() {
	listen "sctp://127.0.0.1:0?backend=native&encap=0"
	kill -STOP "$listener"
	run 1 conform --timeout 0.3 --case ddp-write-zero "$uri" && says err "waited 300 ms"
	local res=$?
	stop_listener
	[ "$res" -eq 0 ] || return "$res"
	listen tcp://127.0.0.1:0 # whose kernel still answers: it has been reached
	kill -STOP "$listener"
	run 1 conform --timeout 0.3 --case ddp-write-zero "$uri" && says out "FAIL"
	res=$?
	stop_listener
	return "$res"
}

# A listener that says nothing, while this host does not run the tester, longer than it waits.
stopped() { # STATUS STOPS [OPTION...]
	local want=$1 stops=$2 got
	shift 2
	timeout "$PATIENCE" python3 "$here/stopped.py" "$stops" 1200 "$SESSCTL" --timeout 0.6 \
		--case mpa-request-plain "$@" >out 2>err
	got=$?
	[ "$got" -eq "$want" ] || why="status $got, not $want: $(tail -n 2 out err)"
	[ "$got" -eq "$want" ]
}

undecided() {
	stopped 6 2 --junit junit.xml && says out "undecided mpa-request-plain" &&
		says out "undecided: this host had no processor for" &&
		says out "run again on a quieter one (waited 600 ms for" &&
		says out "0 passed, 0 failed, 0 known, 0 skipped, 1 undecided over tcp" &&
		is_junit junit.xml && says junit.xml '<skipped message="undecided: this host' || return
	stopped 6 2 --json && has out result undecided && has out undecided 1 && has out fail 0 || return
	stopped 6 2 --tap && says out "# SKIP undecided: this host had no processor"
}

# It has its processor at the second try.
decided_then() {
	stopped 1 1 && says out "FAIL  mpa-request-plain" && says out "1 failed" || return
	stopped 1 0 && says out "1 failed"
}

# What a responder offers; one that takes part in nothing; one that is not there.
probes() { # WIRE
	listen "$(uri_of "$1")"
	run 0 conform --probe "$uri" && says out "enhanced set-up (RFC 6581)" &&
		says out "ready-to-receive by RDMA Read  yes" &&
		run 0 conform --probe --json "$uri" && has out name p2p-write && ! grep -q '"offers":null' out
	local res=$?
	[ "$1" = sctp ] || { has out name markers && grep -q 'no-crc","offers":false' out || res=1; }
	stop_listener
	return "$res"
}

probe_rejected() {
	listen "$(uri_of tcp)" --reject
	run 0 conform --probe "$uri" && says out "unknown: its application rejects" || return
	stop_listener
	run 1 conform --probe "$uri" && says err "is a listener running"
}

pairs() { # WIRE
	listen "$(uri_of "$1")"
	run 0 conform --pairs "$uri" && says out "pass  p2p read ird ulp" || return
	stop_listener
	listen "$(uri_of "$1")" --reject
	run 1 conform --pairs "$uri" && says out "FAIL  plain" && ! grep -q '^pass' out
}

# A case that this target cannot be asked: nothing was tested, which is no success.
cannot() {
	listen "$(uri_of tcp)"
	run 7 conform --case mpa-reply-pd "$uri" && says out "1 skipped"
}

bad() { # TEXT ARGUMENT...
	local text=$1
	shift
	run 2 conform "$@" && says err "$text" && says err "try:"
}

test_case "conform lists its cases" lists_cases
for w in $WIRES; do
	test_case "conform tests a responder over $w" responder "$w"
	test_case "conform tests an initiator over $w" initiator "$w"
done
test_case "conform passes over what is not the initiator's" strays
test_case "conform tells of a command that fails, tcp" initiator_fails tcp://127.0.0.1:0
test_case "conform tells of a command that fails, sctp" \
	initiator_fails "sctp://127.0.0.1:0?backend=native&encap=0"
test_case "conform shows what failed" failing
if command -v python3 >/dev/null; then
	test_case "contact 31: conform says undecided if its own host stops it" undecided
	test_case "contact 31: conform tries again, and then decides" decided_then
fi
test_case "conform takes a profile" known
test_case "conform puts a relay in between, tcp" relayed tcp relay-cut
test_case "conform puts a relay in between, sctp" relayed sctp relay-lossy
if command -v tshark >/dev/null; then
	test_case "conform writes what Wireshark reads" captures
fi
test_case "conform gives up on a silent target" silent_target
test_case "conform without URI" bad "missing URI"
test_case "conform with a bad URI" bad "tcp://, tls://, sctp://, sctps:// or shm://" ftp://x:1
test_case "conform with a wrong self" bad "takes 'tcp', 'sctp' or 'shm'" --self udp
test_case "conform --help has each self" self_in_words
test_case "conform with a pattern of nothing" bad "no case" --self --case nothing-x tcp
test_case "conform with an unknown profile" bad "built in: siw" --profile /none tcp://h:1
for w in $WIRES; do
	test_case "conform --probe over $w" probes "$w"
	test_case "conform --pairs over $w" pairs "$w"
done
test_case "conform --probe of one that rejects, and of none" probe_rejected
test_case "conform against one that cannot do it" cannot
stop_listener
test_case "conform --probe with --self" bad "excludes" --probe --self tcp
test_case "conform --probe of no URI" bad "need the URI" --probe tcp
test_case "conform with --then alone" bad "--listen" --then true tcp://127.0.0.1:1
test_case "conform with two machine formats" bad "excludes" --tap --json tcp://127.0.0.1:1
test_case "conform with self and listen" bad "excludes" --self --listen tcp
finish
