#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessctl stat and top: listeners, programs under the drop-in, metrics, and the probes.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
. "$(dirname "$0")/lib.bash"
: "${BUILD:?the directory of a build}"
BUILD=$(realpath "$BUILD" 2>/dev/null || realpath "$OLDPWD/$BUILD")

mkdir -m 700 watch
export DDPSESS_WATCH=$work/watch

# A session that stays while there is something to look at.
connected() {
	start_job client.fifo err connect --json --wait "$uri" || return
	client=$pid client_fd=$fd
	why="first line: $line"
	grep -q established <<<"$line"
}

disconnected() {
	kill -TERM "$client"
	end_job "$client" "$client_fd"
}

stat_text() {
	run 0 stat "$uri" && says out "listening     ${uri%%\?*}" && says out "sessions 1" &&
		says out "OPEN, responder over $wire" && says out "ird/ord 16/16" &&
		says out "posted      sends 0" && says out "retransmitted 0" || return
	if [ "$wire" = tcp ]; then says out "crc on"; else says out "backend native"; fi
}

# No row is wider than is asked for, but for one word that is; in a pipe they stay whole.
widths() {
	local w what
	for w in 50 80 100; do
		for what in stat "stat -i 0.02 -c 2" "top -c 1"; do
			# shellcheck disable=SC2086 # words
			COLUMNS=$w run 0 $what && says out 127.0.0.1 || [ "$what" = "stat -i 0.02 -c 2" ] || return
			why="$what at $w: $(awk -v w="$w" 'length > w && NF > 2' out | head -n 1)"
			! awk -v w="$w" 'length > w && NF > 2' out | grep -q . || return
		done
		head -n 3 out >"top.$w"
	done
	says top.50 "    PID PEER                    SENT     RECEIVED" && says top.80 " PROGRAM " && says top.100 " RTT ms" || return
	run 0 stat && grep -q ', rtr none, .*, mulpdu ' out && run 0 top -c 1 && says out " RESENT "
}

# The second session is the same in stat and in what listen prints, though somebody was refused before it.
same_number() {
	local printed
	(ulimit -n 29 && listen tcp://127.0.0.1:0 && connected && run 3 connect "$uri" && { disconnected; connected; } &&
		run 0 stat --json && has out session 2 && why= || why=${why:-no}
		disconnected
		stop_listener
		echo "$why" >why
		[ -z "$why" ]) || {
		why=$(cat why)
		return 1
	}
	printed=$(grep '"event":"established"' listen.out | field session | tr '\n' ' ')
	why="listen printed $printed"
	[ "$printed" = "1 2 " ] && ! grep '"event":"rejected"' listen.out | grep -q '"session"'
}

# A reader that has enough is no error to speak of.
reader_leaves() {
	for what in stat "stat -j" "stat -i 0.02" "top -i 0.02" "stat --metrics"; do
		# shellcheck disable=SC2086 # words
		"$SESSCTL" $what 2>>err.left | head -n 1 >out
		why="$what: $(cat err.left)"
		[ -s out ] && [ ! -s err.left ] || return
	done
}

stat_by_pid() {
	run 0 stat --json "$listener" && has out state OPEN && has out pid "$listener"
}

stat_lines() {
	run 0 stat --interval 0.02 --count 3 "$listener" || return
	why="lines: $(wc -l <out)"
	[ "$(wc -l <out)" = 3 ] && says out "sessions 1, sent 0.0 KiB/s"
}

# What the dashboard asks for is exposed, as it asks for it.
dashboard() {
	run 0 stat --metrics "$listener" || return
	why=$(python3 "$here/dashboard.py" "$root/docs/grafana.json" <out) || return
	sed 's/sum by (pid) (ddpsess_sessions)/sum by (pod) (rate(ddpsess_sessions[1m]))/; s/ddpsess_regions/ddpsess_areas/' \
		"$root/docs/grafana.json" >wrong.json
	why="wrong ones pass"
	! python3 "$here/dashboard.py" wrong.json <out >wrong && [ "$(wc -l <wrong)" = 4 ]
}

# One sample a name and label set, and a type for each name.
stat_metrics() {
	run 0 stat --metrics "$listener" && says out "ddpsess_sessions{pid=\"$listener\"" &&
		says out "ddpsess_session_retransmitted_total{" && says out "ddpsess_up{" || return
	why=$(awk '/^# TYPE/ { if (typed[$3]++) print "twice: " $3; next }
		/^#/ { next }
		!/^[a-z_]+\{([a-z]+="[^"]*",?)+\} [0-9]+$/ { print "not a sample: " $0 }
		{ name = $1; sub(/\{.*/, "", name); if (!typed[name]) print "no type: " name
		  key = $0; sub(/ [0-9]*$/, "", key); if (seen[key]++) print "twice: " key }' out)
	[ -z "$why" ]
}

# Every counter of the library is shown, documented and exposed; a missing one is noticed.
counters() {
	run 0 stat --json "$listener" && cp out stat.json && run 0 stat --metrics "$listener" || return
	why=$(python3 "$here/counters.py" "$root/include" "$root/man/sessctl-stat.1.scd" stat.json out) || return
	sed 's/"srq_full":0,//; s/"gaps":0,//; s/"program"/"programme"/' stat.json >wrong.json
	grep -v 'ddpsess_sq_full_total\|ddpsess_service_refused_disk' out >wrong
	why="wrong ones pass"
	! python3 "$here/counters.py" "$root/include" "$root/man/sessctl-stat.1.scd" wrong.json wrong >faults || return
	says faults "ctx_stats.srq_full: not in" && says faults "programme: not in" && says faults "context sq_full: no metric" &&
		says faults "service refused_disk: no metric" && { [ "$wire" = tcp ] || says faults "assoc_stats.gaps: not in"; }
}

# Programs come in one order, whoever answers first, and a count without an interval is once a second.
in_order() {
	local one=$listener begin=$SECONDS
	run 0 stat --json --interval 0.01 --count 20 || return
	why="PIDs: $(field pid <out | uniq | tr '\n' ' ')"
	field pid <out | awk 'NR % 2 { first = $1; next } { if (first >= $1) exit 1 } END { if (NR != 40) exit 1 }' || return
	run 0 stat --count 2 "$one" || return
	why="$(cat out)"
	[ "$(wc -l <out)" = 2 ] && [ $((SECONDS - begin)) -ge 1 ]
}

# By a name, and by an address in another spelling.
by_name() {
	local port=${uri##*:}
	run 0 stat "tcp://localhost:$port" && run 0 stat "TCP://127.0.0.1:$port" && run 0 stat "tcp://:$port" &&
		run 1 stat "sctp://localhost:$port" && run 1 stat "tcp://192.0.2.1:$port" &&
		run 1 stat "tcp://no-such-host.invalid:$port" && says err "try: a name that this host knows" || return
	listen 'tcp://[::1]:0'
	run 0 stat "tcp://[0:0::1]:${uri##*:}" && run 1 stat "tcp://127.0.0.1:${uri##*:}"
}

top_table() {
	run 0 top --count 2 --interval 0.02 || return
	why="$(cat out)"
	[ "$(grep -c " $wire *OPEN" out)" = 2 ] && says out "PID PROGRAM" &&
		! grep -q $'\033' out
}

# The first table, and the first line, are of two looks, too.
first_rates() {
	local client client_fd
	start_job perf.fifo err perf --json --size 64K --seconds 60 --interval 0.1 "$uri" || return
	client=$pid client_fd=$fd
	run 0 top --count 1 && cp out first.top && run 0 stat --interval 1 --count 1 "$listener"
	status=$?
	kill "$client"
	end_job "$client" "$client_fd"
	[ "$status" = 0 ] || return
	why="$(head -n 3 first.top) $(cat out)"
	! head -n 3 first.top | grep -q "received 0.0 KiB/s" && ! grep -q "received 0.0 KiB/s" out
}

# Who is not there learns what to do; what is switched off is not there.
nobody() {
	run 1 stat 99999999 && says err "there is no process 99999999" && says err "try: " || return
	run 1 stat 1 && says err "process 1 cannot be watched" && says err "try: " &&
		run 1 stat tcp://127.0.0.1:1 && says err "listens on tcp://127.0.0.1:1" &&
		run 2 stat nonsense && says err "neither a process ID nor a URI" &&
		run 2 stat --metrics --interval 1 && says err "excludes --interval" || return
	DDPSESS_WATCH=off listen "$(uri_of tcp)"
	run 1 stat "$listener" && says err "cannot be watched"
}

# A directory that is not there, or full, hinders no listener.  Whoever looks into it learns that it is missing, and not
# that there is no process.
not_hindered() {
	local what
	DDPSESS_WATCH=/nowhere/at/all listen "$(uri_of tcp)"
	run 0 ping --count 1 "$uri" || return
	for what in "stat" "stat $listener" "top $listener" "stat $uri"; do
		# shellcheck disable=SC2086 # words are meant
		DDPSESS_WATCH=/nowhere/at/all run 1 $what &&
			says err "/nowhere/at/all: DDPSESS_WATCH names it, and there is no such directory" &&
			says err "try: making it with mode 0700" && [ "$(grep -c ^sessctl err)" = 1 ] || return
	done
	DDPSESS_WATCH=/nowhere/at/all run 0 top --count 1 && says err "there is no such directory"
}

# Without DDPSESS_WATCH both sides find the same directory, which is nobody else's.
default_place() {
	local at

	at=/run/user/$(id -u)/ddpsess
	[ -O "${at%/*}" ] || at=/tmp/ddpsess-$(id -u)
	unset DDPSESS_WATCH
	listen "$(uri_of tcp)"
	run 0 stat --json "$listener" && has out pid "$listener"
	status=$?
	export DDPSESS_WATCH=$work/watch
	[ "$status" -eq 0 ] || return 1
	why="$(stat -c '%a %u' "$at" "$at/$listener.1" 2>&1)"
	[ "$why" = "700 $(id -u)"$'\n'"600 $(id -u)" ]
}

# What one listener leaves behind when it is killed is gone when the next one begins.
swept() {
	listen "$(uri_of tcp)"
	why="no socket"
	ls watch/"$listener".1 >/dev/null || return
	kill -KILL "$listener"
	end_listener
	why="$(ls watch)"
	[ -n "$why" ] || return
	listen "$(uri_of tcp)"
	run 0 stat "$listener" && only watch "$listener.1" && stop_listener && only watch
}

# An unmodified program: its one session, and the drop-in's name for its context.
drop_in() { # WIRE
	local server
	"$BUILD/sessctl" run --transport "$1" -- rping -s -a 127.0.0.1 -p "$port" >rping.out 2>&1 &
	server=$!
	"$BUILD/sessctl" run --transport "$1" -- rping -c -a 127.0.0.1 -p "$port" -C 200000 \
		>rping.client 2>&1 &
	pid=$!
	for _ in {1..300}; do
		"$SESSCTL" stat --json "$server" >out 2>err && has out state OPEN && break
		sleep 0.05
	done
	kill "$pid" "$server" 2>/dev/null
	wait "$pid" "$server" 2>/dev/null
	has out label ddp0 && has out program rping && has out transport "$1" && has out state OPEN
}

# Datagrams have no session: each queue pair of type UD has its own lines, counters and samples.
drop_in_ud() {
	local server client status
	"$BUILD/sessctl" run -- ibv_ud_pingpong -d ddp0 -g 0 -p "$port" -n 1000000 >ud.out 2>&1 &
	server=$!
	for _ in {1..200}; do
		[ -z "$(ss -Hltn "sport = :$port")" ] || break
		sleep 0.05
	done
	"$BUILD/sessctl" run -- ibv_ud_pingpong -d ddp0 -g 0 -p "$port" -n 1000000 127.0.0.1 >ud.client 2>&1 &
	client=$!
	for _ in {1..300}; do
		"$SESSCTL" stat --json "$server" >out 2>err && grep -q '"received":{"messages":[1-9]' out && break
		sleep 0.05
	done
	run 0 stat "$server" && says out "RTS, datagrams, UDP port" && says out "sent" &&
		run 0 stat --interval 0.02 --count 2 "$server" && says out "datagrams sent" &&
		run 0 stat --metrics "$server" &&
		why="no sample: $(grep datagrams_received out)" &&
		grep -qE '^ddpsess_datagrams_received_messages_total\{pid="'"$server"'",.*qp="[0-9]+"\} [1-9]' out
	status=$?
	[ $status = 0 ] || why="$why; $(tail -n 2 ud.out ud.client)"
	kill "$client" "$server" 2>/dev/null
	wait "$client" "$server" 2>/dev/null
	return $status
}

# The probes are in the library, with their arguments.
probes() {
	local name
	for name in established ended completion terminate; do
		readelf -n "$BUILD/libddpsess.so" 2>/dev/null | grep -A1 'Provider: ddpsess' |
			grep -q "Name: $name\$" && continue
		why="no probe $name"
		return 1
	done
}

# The example of docs/watching.md.
probes_fire() {
	local seen
	seen=$(timeout 60 bpftrace -e "usdt:$BUILD/sessctl:ddpsess:established {
			printf(\"%s %d\\n\", str(arg1), arg3); }
		usdt:$BUILD/sessctl:ddpsess:completion { @[arg2] = count(); }" \
		-c "$BUILD/sessctl ping --count 3 --interval 0.01 $uri" 2>&1)
	why="$seen"
	grep -qE '^127.0.0.1:[0-9]+ 1$' <<<"$seen" && grep -qE '^@\[[0-9]+\]: [1-9]' <<<"$seen"
}

for wire in $WIRES; do
	listen "$(uri_of "$wire")"
	test_case "stat-$wire-session" connected
	test_case "stat-$wire-text" stat_text
	test_case "stat-$wire-pid" stat_by_pid
	test_case "stat-$wire-widths" widths
	test_case "stat-$wire-reader-leaves" reader_leaves
	test_case "stat-$wire-lines" stat_lines
	test_case "stat-$wire-metrics" stat_metrics
	test_case "stat-$wire-dashboard" dashboard
	test_case "stat-$wire-counters" counters
	test_case "top-$wire" top_table
	disconnected
	test_case "stat-$wire-first-rates" first_rates
	stop_listener
done
listen tcp://127.0.0.1:0
test_case stat-by-name by_name
stop_listener
listen tcp://127.0.0.1:0
start_job other.fifo err listen --json tcp://127.0.0.1:0
other=$pid other_fd=$fd
test_case stat-in-order in_order
kill "$other"
end_job "$other" "$other_fd"
stop_listener
test_case stat-same-number same_number
test_case stat-nobody nobody
test_case stat-not-hindered not_hindered
stop_listener
test_case stat-swept swept
test_case stat-default-place default_place
stop_listener
if [ -e "$BUILD/libddpsess-verbs.so" ] && command -v rping >/dev/null; then
	for wire in tcp sctp; do
		port=$((20000 + RANDOM % 12000))
		while [ -n "$(ss -Hantu "sport = :$port")" ]; do port=$((port + 1)); done
		test_case "stat-drop-in-$wire" drop_in "$wire"
	done
	while [ -n "$(ss -Hantu "sport = :$port")" ]; do port=$((port + 1)); done
	test_case stat-drop-in-ud drop_in_ud
else
	ok "stat-drop-in # skipped: no rping (Debian package rdmacm-utils)"
fi
if ! echo '#include <sys/sdt.h>' | gcc -E - >/dev/null 2>&1; then
	ok "probes # skipped: no sys/sdt.h (Debian package systemtap-sdt-dev)"
else
	test_case probes probes
	listen "$(uri_of tcp)"
	if command -v bpftrace >/dev/null && [ "$(id -u)" = 0 ] &&
		timeout 20 bpftrace -e 'BEGIN { exit(); }' >/dev/null 2>&1; then
		test_case probes-fire probes_fire
	else
		ok "probes-fire # skipped: bpftrace is not there, or may not run"
	fi
	stop_listener
fi
finish
