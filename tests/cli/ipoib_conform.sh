#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessctl ipoib conform: its outputs, other kinds of peers, and whether it notices who lies.
# That our node passes all cases is tests/conformance/run.sh's business.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
. "$(dirname "$0")/lib.bash"

lists_cases() {
	run 0 ipoib conform --list && [ "$(wc -l <out)" -ge 100 ] &&
		run 0 ipoib conform --list --case 'cross-*' && says out cross-smaller || return
	why="a line without three fields, or a name twice"
	"$SESSCTL" ipoib conform --list | awk -F '\t' 'NF != 3 || seen[$1]++ { exit 1 }'
}

outputs() {
	run 0 ipoib conform --self ours --case 'end-d*' --json --pcap all.pcap --pcap-all --junit j.xml &&
		says out '"transport":"ib"' && says out '"event":"summary"' &&
		is_junit j.xml && says j.xml '<testcase classname="ib" name="end-dreq"' &&
		run 0 ipoib conform --self ours --case end-dreq --tap && says out "TAP version 13" &&
		says out "ok 1 - end-dreq" || return
	why="no capture, or not private: $(stat -c '%s %a' all.pcap)"
	[ "$(stat -c %s all.pcap)" -gt 1000 ] && [ "$(stat -c %a all.pcap)" = 600 ] || return
	# contact 35: the captures of the suite, which are IP packets, can be read
	run 0 ipoib mad all.pcap && says out DREQ
}

# What went over the wire, for somebody who knows no InfiniBand.
in_words() {
	run 1 ipoib conform --self lie-qpn --case 'cm-*' --html r.html && says out "connection management, REQ of connection 0x" &&
		says out ", service ID 0x" && says out ", its queue pair is 0x" && says out "REP of connection 0x" &&
		says out " to the peer's 0x" && says out "ARP request of 10." && says r.html "ARP reply of 10."
}

# What was due, in each output, and for somebody who does not know the names of messages.
expected() {
	run 1 ipoib conform --self lie-silent --timeout 1 --case end-dreq --html r.html --junit j.xml &&
		says out "expected  a DREP, with which the target confirms" && says r.html "a DREP, with which the target confirms" &&
		says j.xml "expected  a DREP, with which" || return
	run 1 ipoib conform --self lie-rej-message --timeout 1 --case cm-service-id-type --json && has out result fail &&
		! grep -q '"expected":"a DREP' out && run 1 ipoib conform --self dead-cm --timeout 0.2 --case cm-rep --json
}

dissects() {
	local port
	port=$(tshark -r all.pcap -T fields -e udp.dstport 2>/dev/null | head -n 1)
	tshark -r all.pcap -d "udp.port==$port,infiniband" >shown 2>/dev/null
	says shown "CM: DisconnectReq" || return
	tshark -r all.pcap -d "udp.port==$port,infiniband" -Y _ws.malformed >bad 2>/dev/null
	why="malformed: $(head -n 1 bad)"
	[ ! -s bad ]
}

usage() {
	run 2 ipoib conform && says err "missing TARGET" &&
		run 2 ipoib conform --self nobody && says err "lie-qpn" &&
		run 2 ipoib conform 10.88.0.2 && says err "--udp is needed" &&
		run 2 ipoib conform --self ours --port verbs && says err "without --port" &&
		run 2 ipoib conform --port ib --ip 10.88.0.9 10.88.0.2 && says err "are the default" &&
		run 2 ipoib conform --port verbs --udp 127.0.0.1:4791 --ip 10.88.0.9 10.88.0.2 &&
		says err "go with --port ib" &&
		run 1 ipoib conform --port verbs:none9 --ip 10.88.0.9 10.88.0.2 && says err "  try: " &&
		run 2 ipoib conform --self ours --case 'no-such' && says err "no case has a name" &&
		run 2 ipoib conform --self ours --profile /nowhere && says err "linux-ib_ipoib"
}

# Nobody there: said once, no case is run; each output says why there is none in it.
nobody() {
	local here=(--udp 127.9.9.1:29791 --gid fe80::1 --ip 10.88.0.100 --timeout 0.5)
	run 1 ipoib conform "${here[@]}" --junit j.xml --html r.html 10.88.0.2 && says err "nobody joins the link" &&
		says err "try: is the target up" && says j.xml '<error message="nobody joins the link' &&
		says r.html "Not all cases were run: nobody joins the link" &&
		says r.html "<br>Try: is the target up" || return
	run 1 ipoib conform "${here[@]}" --tap 10.88.0.2 && says out "Bail out! nobody joins the link" &&
		run 1 ipoib conform "${here[@]}" --json 10.88.0.2 && says out '"event":"error","code":"DDPS_E_REFUSED"'
}

# How long a run takes depends on the machine, too; what is asked for is a small part of what all waits would be:
# 37 minutes here, ten with connections, and five in the middle.

# dead NAME TEXT OPTION...: in waits that are the default, of which one is 15 s
dead() {
	local begin=$SECONDS PATIENCE=300
	run 1 ipoib conform --self "$1" --junit j.xml "${@:3}" && cat out >>err && says err "$2" && says j.xml "$2" || return
	took_less "$begin" 20 120
}

# What has no answer once has none in the next case: such waits become short.
dead_connected() {
	dead dead-connected "a DREQ for an unknown connection is not answered" --html r.html &&
		says out "this node answers nothing about connections, or on them: " && says r.html "on them: "
}

# The target ends in the middle.
dies() {
	local begin=$SECONDS pid node
	"$SESSCTL" ipoib conform --self ours --timeout 2 --tap >out 2>err &
	pid=$!
	until grep -q '^ok 3 ' out || [ $((SECONDS - begin)) -gt "$PATIENCE" ]; do sleep 0.02; done
	read -r node </proc/$pid/task/$pid/children
	kill -KILL "$node"
	wait "$pid"
	says out "this node does not answer ARP requests or datagrams" && says err "ended by itself" || return
	why="it took $((SECONDS - begin)) s"
	[ $((SECONDS - begin)) -lt 150 ]
}

# peer NAME CASES FAILS: those cases against that kind of peer; the ones that must fail, no others
peer() {
	local want=$3
	"$SESSCTL" ipoib conform --self "$1" --timeout 2 --case "$2" --json >out 2>err
	sed -n 's/.*"case":"\([^"]*\)".*"result":"fail".*/\1/p' out | tr '\n' ' ' >failed
	why="failed: $(cat failed), not: $want; $(tail -n 1 err)"
	grep -q '"event":"summary"' out && [ "$(cat failed)" = "${want:+$want }" ]
}

# lie NAME CASE: the case that this lie fails
lie() {
	peer "$1" "$2" "$2"
}

test_case "the cases are listed" lists_cases
test_case "TAP, JSON, JUnit, capture" outputs
test_case "messages are in words" in_words
test_case "what was expected is said" expected
if command -v tshark >/dev/null; then
	test_case "tshark reads the capture" dissects
fi
test_case "what is wrong on the command line" usage
test_case "no target" nobody
test_case "a target that answers no ARP is given up soon" dead dead-arp "the target does not answer ARP requests"
test_case "a target that takes no connections is given up soon" dead dead-cm \
	"the target answers ARP requests, but no request for a connection"
test_case "connections without an answer are given up soon" dead_connected
test_case "a target that ends is given up soon" dies
test_case "a peer like illumos has its own service ID" peer illumos req-service-id req-service-id
test_case "a peer like illumos uses connections in one direction" peer illumos rtu-private rtu-private
test_case "a peer to the letter" peer letter 'cm-service-id' ''
while read -r name case; do
	test_case "$name is noticed by $case" lie "$name" "$case"
done <<-'END'
	lie-qpn cm-rep-private
	lie-reserved req-private
	lie-mtu cm-rep-private
	lie-rej-private cm-rej-private
	lie-rej-reason cross-smaller
	lie-rej-message cm-service-id-type
	lie-service-id req-service-id-rest
	lie-tid end-dreq
	lie-id end-unknown
	lie-gid req-path
	lie-lid req-path
	lie-reserved-cm whole-mads
	lie-dreq end-own-dreq
	lie-silent end-dreq
	lie-encap whole-encapsulation
	lie-flags arp-flags
	lie-arp-qpn arp-reply
	lie-arp-type arp-reply
	lie-nd nd-advertisement
END
finish
