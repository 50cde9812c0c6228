#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessctl and signals: sessions closed, no unfinished file, right exit status, on each wire.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
. "$(dirname "$0")/lib.bash"

# begin COMMAND...: start a client in the background, wait until its session is up
begin() {
	start_job client.fifo err "$@"
	client=$pid
	client_fd=$fd
}

# ended STATUS
ended() {
	end_job "$client" "$client_fd"
	status=$?
	mv rest out
	why="client's status $status, not $1: $(cat err)"
	[ "$status" -eq "$1" ]
}

start() {
	stop_listener
	rm -rf served
	mkdir served
	listen "$(uri_of "$wire")" --dir served
}

listener_ends() { # SIGNAL
	start
	kill "-$1" "$listener"
	end_listener
	status=$?
	why="status $status"
	[ "$status" -eq 0 ]
}

listener_ends_with_session() {
	start
	begin ping --json --count 1000 "$uri"
	kill -TERM "$listener"
	end_listener
	status=$?
	why="listener's status $status"
	[ "$status" -eq 0 ] && has listen.out event closed && ended 1
}

# a transfer that stands still, since the listener does
interrupted_put() { # SIGNALS
	local i
	start
	truncate -s 256M sample
	begin put --json sample "$uri/f"
	kill -STOP "$listener"
	for ((i = 0; i < $1; i++)); do
		kill -INT "$client" 2>/dev/null
	done
	ended 1 || return
	kill -CONT "$listener"
	stop_listener
	why="listener's status $?"
	only served ""
}

interrupted_get() { # SIGNALS
	local i
	start
	truncate -s 256M served/f
	rm -rf got
	mkdir got
	begin get --json "$uri/f" got/f
	kill -STOP "$listener"
	for ((i = 0; i < $1; i++)); do
		kill -INT "$client" 2>/dev/null
	done
	ended 1 && only got ""
	status=$?
	kill -CONT "$listener"
	return "$status"
}

put_times_out() {
	start
	truncate -s 256M sample
	begin put --json --timeout 1 sample "$uri/f"
	kill -STOP "$listener"
	ended 5 && says err "--timeout"
	status=$?
	kill -CONT "$listener"
	[ "$status" -eq 0 ] || return
	stop_listener
	only served ""
}

killed_client() {
	start
	truncate -s 256M sample
	begin put --json sample "$uri/f"
	kill -STOP "$listener"
	kill -KILL "$client"
	{ ended 137; } 2>/dev/null || return # the shell says "Killed"
	kill -CONT "$listener"
	echo small >small
	run 0 put small "$uri/g" && stop_listener && only served g
}

# A peer's end without a word: whoever is left is informed, whether something was under way or not.
lost_listener() { # put | get
	start
	rm -rf got
	mkdir got
	if [ "$1" = put ]; then
		truncate -s 256M sample
		begin put --json sample "$uri/f"
	else
		truncate -s 256M served/f
		begin get --json "$uri/f" got/f
	fi
	kill_listener
	ended 1 || return
	grep -q "reset\|gone\|closed" err && only got "" && return
	why="client: $(cat err)"
	return 1
}

kill_listener() {
	{
		kill -KILL "$listener"
		end_listener
	} 2>/dev/null # the shell says "Killed"
}

# TCP's end looks like an orderly one there, by the system.
idle_listener_lost() {
	local want=1
	[ "$wire" = tcp ] && want=0
	start
	begin connect --json --wait "$uri"
	kill_listener
	ended "$want"
}

idle_client_lost() {
	stop_listener
	listen "$(uri_of "$wire")" --count 1
	begin connect --json --wait "$uri"
	kill -KILL "$client"
	{ ended 137; } 2>/dev/null || return
	end_listener
	has listen.out event closed
}

silent_peer() {
	stop_listener
	rm -rf served
	mkdir served
	listen "$(uri_of "$wire")" --dir served --timeout 0.5 --count 1
	truncate -s 256M sample
	begin put --json sample "$uri/f"
	kill -STOP "$client"
	end_listener
	kill -CONT "$client"
	ended 1
	only served "" || return
	# whether it was stopped before its first message or after
	why="listener: $(cat listen.err)"
	grep -q "nothing came\|first FPDU" listen.err
}

# What was measured until then is a result; it has at least what the interval lines said.
interrupted_perf() { # SIGNAL [OPTION...]
	local sig=$1
	shift
	start
	begin perf --json --size 4K,64K --seconds 60 --interval 0.1 "$@" "$uri"
	: >seen
	while read -r -t "$PATIENCE" -u "$client_fd" line; do
		echo "$line" >>seen
		[[ $line == *'"event":"interval"'*'"ops":'[1-9]* ]] && break
	done
	kill "-$sig" "$client"
	ended 1 && says err interrupted || return
	cat seen out >all
	why="lines: $(cat all)"
	jq -es '[.[] | select(.event == "perf")] as $p |
		([.[] | select(.event == "interval") | .ops] | add) as $ops |
		($p | length) == 1 and $p[0].size == 4096 and $p[0].ops >= $ops and
		$p[0].seconds < 60 and $p[0].lat_us.min > 0' all >/dev/null
}

# what was not done is not said to be well
interrupted_conform() {
	begin conform --json --self tcp
	kill -INT "$client"
	ended 1 && says err interrupted && says out '"event":"summary"'
}

# The peer is known to the administration and does not answer.
interrupted_ipoib_connect() {
	local net=127.$((RANDOM % 200 + 20)).$(($$ % 250)) sa sa_fd peer peer_fd
	node() { # FIFO N
		start_job "$1" err ipoib listen --json --gid "fe80::$2" --port ib --udp "$net.$2:7100" --sa "$net.1"
	}
	node sa.fifo 1 && sa=$pid sa_fd=$fd && node peer.fifo 2 && peer=$pid peer_fd=$fd || return
	kill -STOP "$peer"
	begin ipoib connect --json --port ib --gid fe80::3 --udp "$net.3:7100" --sa "$net.1" \
		--peer-qpn 5 fe80::2
	kill -INT "$client"
	ended 1 && says err interrupted
	status=$?
	kill -KILL "$peer"
	kill -TERM "$sa"
	end_job "$peer" "$peer_fd"
	end_job "$sa" "$sa_fd" && return $status
}

# A listener that was stopped for longer than its patience, in the middle of a session.
stopped_listener() {
	stop_listener
	listen "$(uri_of "$wire")" --timeout 3
	begin perf --json --op read --size 64K --seconds 3 --timeout 60 "$uri"
	kill -STOP "$listener"
	sleep 5
	kill -CONT "$listener"
	ended 0
}

test_case signals-conform interrupted_conform
test_case signals-ipoib-connect interrupted_ipoib_connect
for wire in $WIRES; do
	test_case "signals-$wire-perf" interrupted_perf INT
	test_case "signals-$wire-perf-parallel" interrupted_perf TERM --op write --parallel 3
	test_case "signals-$wire-listener-term" listener_ends TERM
	test_case "signals-$wire-listener-int" listener_ends INT
	test_case "signals-$wire-listener-with-session" listener_ends_with_session
	test_case "signals-$wire-put" interrupted_put 1
	test_case "signals-$wire-put-twice" interrupted_put 200
	test_case "signals-$wire-get" interrupted_get 1
	test_case "signals-$wire-get-twice" interrupted_get 200
	test_case "signals-$wire-put-timeout" put_times_out
	test_case "signals-$wire-client-killed" killed_client
	test_case "signals-$wire-put-listener-lost" lost_listener put
	test_case "signals-$wire-get-listener-lost" lost_listener get
	test_case "signals-$wire-idle-listener-lost" idle_listener_lost
	test_case "signals-$wire-idle-client-lost" idle_client_lost
	test_case "signals-$wire-silent-peer" silent_peer
	test_case "contact: signals-$wire-stopped-listener" stopped_listener
done
finish
