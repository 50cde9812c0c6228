#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessctl listen as a service: a line for each event, levels, silence, and the unit of systemd.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
. "$(dirname "$0")/lib.bash"
unit=$(realpath "$here/../../tools/sessctl/sessctl-listen@.service")

# log_of COMMAND...: of a listener that serves two sessions and a refusal, then ends by a signal; sets $uri
log_of() {
	local fd pid
	rm -rf served fifo && mkdir -p served && mkfifo fifo
	"$@" >fifo 2>log.err &
	pid=$!
	exec {fd}<fifo
	read -r -t "$PATIENCE" -u "$fd" line
	echo "$line" >log
	uri=${line##* on }
	echo content >here
	run 0 put here "$uri" && run 1 get "$uri/none" there && ${asked:-true} && run 0 connect --private-data "a  b" "$uri"
	status=$?
	kill "$pid"
	timeout "$PATIENCE" cat <&"$fd" >>log
	exec {fd}<&-
	wait "$pid"
	return "$status"
}

# each line of both files is one event, as the pattern begins it
lines_are() { # PATTERN
	why="log: $(cat log log.err)"
	! grep -vE "^$1" log log.err && [ "$(grep -c ' put here, size 8 octets in ' log)" = 1 ] &&
		[ "$(grep -c established log)" = 3 ] && grep -qE 'established over tcp, responder, local 127.* peer 127.*, private data "a  b"' log
}

dated() {
	log_of "$SESSCTL" listen --log --dir served tcp://127.0.0.1:0
	lines_are '20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z (info|warning|error): ' || return
	bad_options
}

speaks_tls() {
	run 0 keys psk pair && run 1 connect --tls-psk pair.psk "tls${uri#tcp}"
	rm -f pair.*
}

speaks_http() { # until it is turned away
	local http
	exec {http}<>"/dev/tcp/127.0.0.1/${uri##*:}" || return
	# a line each, and it may be turned away behind the first one
	(trap '' PIPE && printf 'GET / HTTP/1.1\r\nHost: here\r\nAccept: */*\r\n\r\n' >&"$http") 2>/dev/null
	timeout "$PATIENCE" cat <&"$http" >/dev/null 2>&1
	exec {http}>&-
}

# An error and its advice are one write: what others print does not come into them.
one_write() {
	python3 - "$SESSCTL" >out 2>&1 <<-'END'
		import socket, subprocess, sys
		for words in (["connect", "tcp://127.0.0.1:1"], ["listen", "--log", "--dir", "./nothing", "tcp://127.0.0.1:0"]):
		    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		    ours.settimeout(30)
		    with subprocess.Popen(sys.argv[1:] + words, stderr=theirs) as program:
		        theirs.close()
		        writes = list(iter(lambda: ours.recv(65536), b""))
		    assert len(writes) == 1 and b"try: " in writes[0] and writes[0].endswith(b"\n"), writes
	END
	local status=$?
	why=$(cat out)
	return "$status"
}

# What the library says of peers is in the log's form, too.
refused_peers() {
	asked=speaks_tls log_of "$SESSCTL" listen --log --dir served tcp://127.0.0.1:0
	lines_are '20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z (info|warning|error): ' || return
	grep -qE 'Z warning: secure: refused 127.0.0.1:[0-9]+: .*the peer speaks TLS' log.err || return
	asked=speaks_http log_of "$SESSCTL" listen --log --dir served tcp://127.0.0.1:0
	why="nothing of HTTP: $(cat log.err)"
	grep -qE 'Z warning: secure: refused 127.0.0.1:[0-9]+: .*wrong key' log.err || return
	asked=speaks_tls DDPSESS_LOG=none log_of "$SESSCTL" listen --log --dir served tcp://127.0.0.1:0
	why="not silent: $(cat log.err)"
	! grep -q secure: log.err
}

bad_options() {
	run 2 listen --log --json tcp://127.0.0.1:0 && says err "--log excludes --json" &&
		run 2 listen -q --stat 1 tcp://127.0.0.1:0 && says err "--quiet excludes --stat"
}

# standard error is what JOURNAL_STREAM names; another descriptor is not the journal
# shellcheck disable=SC2016 # for that shell
journal() {
	log_of bash -c 'export JOURNAL_STREAM=$(stat -Lc %d:%i log.err); exec "$SESSCTL" listen --dir served tcp://127.0.0.1:0'
	lines_are '<[346]>' && grep -q '^<6>listening on' log || return
	log_of bash -c 'export JOURNAL_STREAM=$(stat -Lc %d:%i here); exec "$SESSCTL" listen --dir served tcp://127.0.0.1:0'
	grep -q '^listening on' log
}

# An error with what to try is one line, too.
errors() {
	run 1 listen --log --dir ./nothing tcp://127.0.0.1:0
	why="$(cat err)"
	[ "$(wc -l <err)" = 1 ] && grep -qE 'Z error: --dir ./nothing: .*; try: a directory that exists$' err
}

# A pipe that nobody empties holds up no session; what it did not take is counted once it does.
full_pipe() {
	local full n served
	listen tcp://127.0.0.1:0 # a port that is free
	n=${uri##*:}
	stop_listener
	rm -f full && mkfifo full && exec {full}<>full && mkdir -p served
	"$SESSCTL" listen --dir served "tcp://127.0.0.1:$n" >full 2>&1 &
	pid=$!
	read -r -t "$PATIENCE" -u "$full" line
	dd if=/dev/zero of=full bs=4096 oflag=nonblock 2>/dev/null # until it is full
	run 0 ping --timeout 20 -c 3 -i 0 "tcp://127.0.0.1:$n" && run 1 get "tcp://127.0.0.1:$n/none" there &&
		run 0 ping --timeout 20 -c 3 -i 0 "tcp://127.0.0.1:$n"
	served=$?
	dd if=full of=/dev/null bs=4096 iflag=nonblock 2>/dev/null # until it is empty
	run 1 get "tcp://127.0.0.1:$n/none" there
	kill "$pid"
	wait "$pid"
	dd if=full of=drained bs=4096 iflag=nonblock 2>/dev/null
	exec {full}<&-
	[ "$served" = 0 ] && says drained "events or errors were left out: nobody read them"
}

quiet() {
	local port
	listen tcp://127.0.0.1:0
	port=${uri##*:}
	stop_listener
	mkdir -p served
	"$SESSCTL" listen -q --dir served "tcp://127.0.0.1:$port" >log 2>log.err &
	pid=$!
	for _ in $(seq 1000); do # it says nothing when it is ready
		"$SESSCTL" connect "$uri" >/dev/null 2>&1 && break
	done
	run 1 get "$uri/none" there
	kill "$pid"
	wait "$pid"
	why="$(cat log log.err)"
	[ ! -s log ] && [ "$(wc -l <log.err)" = 1 ] && says log.err "no such file"
}

# value NAME: of a line of the unit, with the instance's name, the folder of state and that of what runs
value() {
	sed -n "s/^$1=//p" "$unit" | sed "s:%i:tcp:g; s:%t:$work:g; s:\${STATE_DIRECTORY}:$work/state:g"
}

stat_shows() {
	DDPSESS_WATCH=$work/sessctl-tcp run 0 stat && says out "sessctl listen"
}

# What the unit starts serves; root asks it by the folder that is named there.
unit_serves() {
	local as=() settings
	# shellcheck disable=SC2046 # words
	[ "$(id -u)" != 0 ] || as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	rm -rf state sessctl-tcp && mkdir -p state sessctl-tcp && chmod 711 . && chmod 700 state sessctl-tcp
	[ "$(id -u)" != 0 ] || chown 65534:65534 state sessctl-tcp
	read -ra settings <<<"$(value Environment)"
	cp "$SESSCTL" sessctl
	why="$(value ExecStart) with ${settings[*]}"
	grep -q '^SESSCTL_URI=tcp://:7174 ' <<<"${settings[*]}" && [ "$(value ExecStart)" ] || return
	# shellcheck disable=SC2016 # for that shell
	asked=stat_shows log_of "${as[@]}" env "${settings[@]}" SESSCTL_URI=tcp://127.0.0.1:0 PATH="$work:$PATH" sh -c "exec $(value ExecStart)" || return
	why="$(cat log log.err)"
	grep -q content state/here
}

unit_is_hardened() {
	local score
	cp "$unit" "sessctl-listen@tcp.service"
	score=$(systemd-analyze security --offline=true "$PWD/sessctl-listen@tcp.service" 2>&1 | sed -n 's/.*exposure level.*: \([0-9.]*\) .*/\1/p')
	why="exposure $score"
	awk -v s="$score" 'BEGIN { exit !(s != "" && s < 3) }' || return
	why=$(systemd-analyze verify "$PWD/sessctl-listen@tcp.service" 2>&1 | grep -v "man sessctl\|sessctl is not exec")
	[ -z "$why" ]
}

test_case logs-with-time-and-level dated
test_case logs-errors-in-one-write one_write
test_case logs-refused-peers refused_peers
test_case logs-for-the-journal journal
test_case logs-errors-on-a-line errors
test_case logs-into-a-full-pipe full_pipe
test_case logs-quiet quiet
test_case unit-serves unit_serves
if systemd-analyze security --help 2>/dev/null | grep -q -- --offline; then
	test_case unit-is-hardened unit_is_hardened
else
	ok "unit-is-hardened # skipped: no systemd-analyze with --offline"
fi
finish
