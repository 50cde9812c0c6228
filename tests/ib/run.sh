#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# CM between two hosts of a simulated InfiniBand fabric: ibsim, opensm, and sessctl with its umad
# port on either side.  One line a case.
# usage: run.sh BUILD
# shellcheck disable=SC2317 # functions are called through test_case
set -u
here=$(cd "$(dirname "$0")" && pwd)
SESSCTL=$(realpath "$1/sessctl")
preload=$(realpath "$1/ib-preload.so")
umad2sim=$(find /usr/lib /usr/lib64 -name libumad2sim.so 2>/dev/null | head -n 1)

missing=
for need in ibsim:ibsim-utils opensm:opensm ibstat:infiniband-diags; do
	PATH=$PATH:/usr/sbin command -v "${need%:*}" >/dev/null || missing="$missing ${need#*:}"
done
[ -n "$umad2sim" ] || missing="$missing libumad2sim0"
if [ -n "$missing" ]; then
	echo "skipped: these Debian packages are missing:$missing"
	echo "  try: apt-get install -y --no-install-recommends$missing"
	exit 77
fi
PATH=$PATH:/usr/sbin

# shellcheck source=tests/ib/lib.bash
. "$here/lib.bash"
trap fabric_stop EXIT
trap 'exit 1' INT TERM

# times of 0.27 s, so that what is lost is repeated soon
quick=(--set remote_cm_timeout=16 --set local_cm_timeout=16 --set primary.ack_timeout=14)

established() {
	listen_on HostB --qpn 0x49 --mtu 32772 --count 1 || return
	connect_from HostA 0 --qpn 0x4a "${quick[@]}" "$peer" || return
	sequence connect path connecting s:REQ r:REP s:RTU established s:DREQ r:DREP disconnected ||
		return
	why="listener: status $?"
	end_listener || return
	sequence listen listening r:REQ s:REP r:RTU established r:DREQ disconnected s:DREP ended
}

# The octets that the simulator carries: transaction IDs are rewritten on the way, as by real
# adapters, and the last 24 octets do not arrive.
carried() { # CAPTURE
	"$SESSCTL" ipoib mad --hex "$work/$1" | sed 's/^\(.\{16\}\).\{16\}\(.\{432\}\).*/\1\2/'
}

# What A sent is what B received, and the values are the ones asked for.
fields() {
	listen_on HostB --qpn 0x49 --count 1 --capture "$work/b.pcap" --set starting_psn=0x1234 \
		--set qpn=0x452 --set resp_resources=2 || return
	connect_from HostA 0 --capture "$work/a.pcap" "${quick[@]}" --set starting_psn=0xabcd \
		--set qpn=0x451 --set transport=1 --set private_data=0102 --set local_id=0x11223344 \
		--set ca_guid=0x0002c90300001000 "$peer" && end_listener || return
	"$SESSCTL" ipoib mad --json "$work/a.pcap" >"$work/a"
	why="the two sides saw different messages"
	cmp -s <(carried a.pcap) <(carried b.pcap) || return
	seen a '"local_id":287454020,.*"service_id":"0x0100000000000049","ca_guid":"0x0002c90300001000"' &&
		seen a '"message":"REQ".*"qpn":1105,.*"transport":1,.*"starting_psn":43981,' &&
		seen a '"message":"REQ".*"private_data":"010200' &&
		seen a '"message":"REP".*"qpn":1106,.*"starting_psn":4660,"resp_resources":2' &&
		seen a '"message":"DREQ".*"remote_qpn":1106,'
}

in_tshark() {
	local got
	got=$(tshark -r "$work/a.pcap" -T fields -e infiniband.lrh.slid -e infiniband.cm.req.startpsn \
		-e infiniband.cm.rep.startpsn -e infiniband.cm.drsp.localcommid 2>"$work/tshark.err")
	why="tshark: $(tr '\t\n' ',;' <<<"$got") $(tail -n 1 "$work/tshark.err")"
	[ "$(wc -l <<<"$got")" = 5 ] && grep -q 0x00abcd <<<"$got" && grep -q 0x001234 <<<"$got"
}

rejected() { # REASON
	listen_on HostB --qpn 0x49 --mtu 32772 --reject "$1" --count 1 || return
	connect_from HostA 3 "${quick[@]}" "$peer" && end_listener || return
	sequence connect path connecting s:REQ r:REJ rejected error || return
	seen connect "\"event\":\"rejected\".*\"reason\":$1,.*\"private_data\":\"0000004900008004\""
}

# Nobody listens on that service ID: in the other form, or with another QPN.
no_service() {
	listen_on HostB --qpn 0x49 --timeout 60 || return
	connect_from HostA 3 "${quick[@]}" --linux "$peer" && seen connect '"reason":8,' &&
		connect_from HostA 3 "${quick[@]}" --peer-qpn 0x50 "$peer" &&
		seen connect '"reason":8,'
	local status=$?
	kill "$listener"
	end_listener
	return "$status"
}

linux_form() {
	listen_on HostB --qpn 0x49 --linux --count 1 || return
	connect_from HostA 0 "${quick[@]}" --linux "$peer" && end_listener &&
		seen connect '"service_id":"0x1000000000000049"'
}

many() {
	listen_on HostB --count 10 || return
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		connect_from HostA 0 "${quick[@]}" "$peer" || return
	done
	end_listener || return
	why="not 10 connections: $(member "$work/listen" event | sort | uniq -c | tr '\n' ' ')"
	[ "$(grep -c '"event":"established"' "$work/listen")" = 10 ]
}

# LIDs, MTU and rate come from the path record.
path_record() {
	listen_on HostB --count 1 || return
	connect_from HostA 0 "${quick[@]}" "$peer" && end_listener || return
	why="path: $(head -n 1 "$work/connect"), listener: $(head -n 1 "$work/listen")"
	[ "$(head -n 1 "$work/connect" | sed 's/.*"remote_lid":\([0-9]*\),.*/\1/')" = \
		"$(head -n 1 "$work/listen" | sed 's/.*"lid":\([0-9]*\),.*/\1/')" ] || return
	seen connect '"event":"path".*"mtu":[1-5],'
}

no_path() {
	connect_from HostA 1 --peer-qpn 1 fe80::dead:beef && seen connect.err "knows one"
}

bad_port() {
	connect_from HostA 1 --port umad:mlx9 fe80::1 --peer-qpn 1 && seen connect.err "no InfiniBand port" &&
		connect_from HostA 2 --port frob fe80::1 --peer-qpn 1 && seen connect.err "no port 'frob'"
}

# 30 % of the MADs at the port of A are lost; CM repeats until it is through.
with_loss() { # N
	local i status=0 sent received
	listen_on HostB --count "$1" || return
	console 'Error "HostA"[1] 30'
	: >"$work/all"
	for ((i = 0; i < $1 && status == 0; i++)); do
		connect_from HostA 0 "${quick[@]}" "$peer"
		status=$?
		cat "$work/connect" >>"$work/all"
	done
	console 'Error "HostA"[1] 0'
	[ "$status" = 0 ] || return
	why="listener: $(tail -n 2 "$work/listen.err")"
	end_listener || return
	sent=$(cat "$work/all" "$work/listen" | grep -c '"dir":"sent"')
	received=$(cat "$work/all" "$work/listen" | grep -c '"dir":"received"')
	why="nothing was lost: $sent sent, $received received"
	[ "$received" -lt "$sent" ] || return
	why="not $1 connections: $(member "$work/listen" event | sort | uniq -c | tr '\n' ' ')"
	[ "$(grep -c '"event":"disconnected"' "$work/listen")" -ge "$1" ]
}

# The link of B goes down while they are connected: the DREQ stays unanswered.  Then up again.
link_down() {
	listen_on HostB --timeout 60 || return
	rm -f "$work/connect"
	(on HostA timeout --foreground -k 1 60 "$SESSCTL" ipoib connect --json "${quick[@]}" \
		--set max_cm_retries=2 --hold 1 "$peer") >"$work/connect" 2>"$work/connect.err" &
	local connector=$! status
	pids+=("$connector")
	until_ready 10 grep -qs '"established"' "$work/connect"
	console 'Unlink "HostB"[1]'
	wait "$connector"
	status=$?
	why="status $status: $(tail -n 1 "$work/connect")"
	[ "$status" = 5 ] && sequence connect path connecting s:REQ r:REP s:RTU established s:DREQ \
		s:DREQ s:DREQ disconnect-unanswered error || return
	console 'Relink "HostB"[1]'
	until_ready 20 port_is HostB Active || return
	connect_from HostA 0 "${quick[@]}" "$peer" || return
	kill "$listener"
	end_listener
}

if ! fabric_start "$here/fabric.net"; then
	echo "not ok fabric: $(tail -n 3 "$work/ibsim.log" "$work/opensm.out" | tr '\n' ' ')"
	exit 1
fi
echo "ok fabric"
test_case path-record path_record
test_case no-path no_path
test_case bad-port bad_port
test_case req-rep-rtu-dreq-drep established
test_case fields fields
if command -v tshark >/dev/null; then
	test_case fields-in-tshark in_tshark
else
	echo "ok fields-in-tshark # skipped: no tshark (Debian package tshark)"
fi
test_case linux-service-id linux_form
test_case rej-28 rejected 28
test_case rej-3 rejected 3
test_case rej-8-no-listener no_service
test_case ten-connections many
test_case loss-30-percent with_loss 5
test_case link-down-and-up link_down
exit $((failures > 0))
