#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A disk without room: each command that writes says so, exits as failed, and leaves no half-written file.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
: "${BUILD:?the directory of a build}"
BUILD=$(realpath "$BUILD")

# The disk is a small tmpfs in a mount namespace of its own.
if [ -z "${FULL_DISK_INSIDE:-}" ]; then
	for how in "unshare -m" "unshare -rm"; do
		if $how sh -c 'mount -t tmpfs -o size=16k none /mnt' 2>/dev/null; then
			# shellcheck disable=SC2086 # words are meant
			FULL_DISK_INSIDE=1 SESSCTL=$(realpath "$SESSCTL") exec $how --propagation private bash "$0"
		fi
	done
	echo "ok full-disk # skipped: nothing can be mounted here"
	exit 0
fi
. "$(dirname "$0")/lib.bash"
DDPSESS_LIBRARY=$(realpath "$BUILD/libddpsess.so")
export DDPSESS_LIBRARY PYTHONPATH=$here/../../python PYTHONDONTWRITEBYTECODE=1 DDPSESS_WATCH=off
mkdir small wide
mount -t tmpfs -o size=256k none small || exit 1
cleanup() {
	stop_listener
	umount small
	rm -rf "$work"
}
head -c 1000000 /dev/urandom >sample
cp sample wide/sample

# room OCTETS: leave about so much
room() {
	rm -rf small/*
	head -c $((262144 - 8192 - $1)) /dev/zero >small/filler
}

put_there() {
	mkdir -p small/served
	listen "$(uri_of "$wire")" --dir small/served
	run 1 put sample "$uri/new" && says err "no space is left where the listener keeps its files; make room" &&
		only small/served "" || return
	echo old >small/served/old
	run 1 put --force sample "$uri/old" && says err "make room" && only small/served old &&
		says small/served/old old || return
	echo little >little
	run 0 put little "$uri/little" && same little small/served/little
}

# A file that was announced takes no room before it comes.
announced() {
	rm -rf small/*
	mkdir -p small/served
	listen "$(uri_of "$wire")" --dir small/served
	local all=$(($(stat -f -c "%a * %S" small)))
	timeout "$PATIENCE" python3 "$here/stranger.py" "$uri" space "$all" >saw 2>&1
	why=$(tail -n 3 saw)
	grep -q "^space True" saw
}

# Files that are never whole leave an eighth of the room for others.
hoarded() {
	rm -rf small/*
	mkdir -p small/served
	listen "$(uri_of "$wire")" --dir small/served
	local all=$(($(stat -f -c "%a * %S" small)))
	timeout "$PATIENCE" python3 "$here/stranger.py" "$uri" hoard "$all" >saw 2>&1
	why=$(tail -n 3 saw)
	grep -q "^hoard True" saw
}

get_here() {
	room 100000
	listen "$(uri_of "$wire")" --dir wide
	run 1 get "$uri/sample" small/sample && says err "No space left on device" && says err "try: make room" &&
		only small filler || return
	echo old >small/old
	run 1 get --force "$uri/sample" small/old && says err "No space left" && only small filler old &&
		says small/old old
}

# What could not even begin is not there; what ended early ends with a whole packet.
capture() {
	listen "$(uri_of "$wire")" --dir wide
	room 0
	head -c 8192 /dev/zero >small/last 2>/dev/null
	run 1 ping --count 1 --capture small/c "$uri" && says err "--capture small/c: No space left on device" &&
		says err "try: make room" && absent small/c || return
	room 100000
	run 1 put --capture small/c sample "$uri/copy" && says err "--capture small/c: No space left" &&
		same sample wide/copy || return
	rm wide/copy
	why="$(wc -c <small/c) octets"
	[ "$(wc -c <small/c)" -gt 50000 ] || return
	! command -v tshark >/dev/null || { tshark -r small/c 2>tshark.err >/dev/null && ! says tshark.err "cut short"; }
}

listener_capture() {
	room 50000
	listen "$(uri_of "$wire")" --dir wide --capture small/c
	run 0 put sample "$uri/copy" && same sample wide/copy || return
	rm wide/copy
	stop_listener
	status=$?
	why="status $status: $(cat listen.err)"
	[ "$status" = 1 ] && says listen.err "--capture small/c: No space left on device"
}

metrics() {
	listen "$(uri_of tcp)"
	room 0
	head -c 8192 /dev/zero >small/last 2>/dev/null
	mkdir -m 700 watch
	DDPSESS_WATCH=$work/watch
	listen "$(uri_of tcp)"
	timeout "$PATIENCE" "$SESSCTL" stat --metrics >small/metrics 2>err
	status=$?
	DDPSESS_WATCH=off
	why="status $status"
	[ "$status" = 1 ] && says err "cannot write to standard output: No space left on device"
}

reports() {
	local option
	room 0
	head -c 8192 /dev/zero >small/last 2>/dev/null
	for option in --junit "--pcap-all --pcap"; do
		# shellcheck disable=SC2086 # words are meant
		run 1 conform --self --case mpa-request-plain $option small/report tcp &&
			says err "small/report' could not be written: No space left" || return
	done
}

plot() {
	room 0
	head -c 8192 /dev/zero >small/last 2>/dev/null
	listen "$(uri_of tcp)"
	for kind in svg png; do
		run 1 perf --size 64 --seconds 0.01 --plot "small/p.$kind" "$uri" &&
			says err "gnuplot could not draw it" && absent "small/p.$kind" || return
	done
	run 0 perf --size 64 --seconds 0.01 --plot p.svg "$uri" && run 0 perf --size 64 --seconds 0.01 --plot p.png "$uri"
}

# A program keeps its own exit status, and learns of it on standard error.
drop_in() {
	local server port=$((20000 + RANDOM % 12000))
	while [ -n "$(ss -Hantu "sport = :$port")" ]; do port=$((port + 1)); done
	room 50000
	echo 'on ibv_post_send every 1: delay 1ms' >rules
	timeout "$PATIENCE" "$BUILD/sessctl" run -- rping -s -a 127.0.0.1 -p "$port" >rping.out 2>&1 &
	server=$!
	timeout "$PATIENCE" "$BUILD/sessctl" run --retry 20 --capture small/c --faults rules --trace small/t -- \
		rping -c -a 127.0.0.1 -p "$port" -C 1000 >out 2>err
	status=$?
	wait "$server"
	why="status $status: $(tail -n 3 err)"
	[ "$status" = 0 ] && says err "small/c: No space left on device; later packets are not in it" &&
		says err "the trace ends here: No space left on device" && says small/t "1 ibv_post_send"
}

# A limit of the shell's sends a signal that would end the program.
drop_in_limited() {
	local server port=$((20000 + RANDOM % 12000))
	while [ -n "$(ss -Hantu "sport = :$port")" ]; do port=$((port + 1)); done
	echo 'on ibv_post_send every 1: delay 1ms' >rules
	timeout "$PATIENCE" "$BUILD/sessctl" run -- rping -s -a 127.0.0.1 -p "$port" >rping.out 2>&1 &
	server=$!
	(
		ulimit -f 16
		exec timeout "$PATIENCE" "$BUILD/sessctl" run --retry 20 --capture limited --faults rules \
			--trace limited.trace -- rping -c -a 127.0.0.1 -p "$port" -C 1000
	) >out 2>err
	status=$?
	wait "$server"
	why="status $status: $(tail -n 3 err)"
	[ "$status" = 0 ] && says err "limited: File too large; later packets are not in it" &&
		says err "the trace ends here: File too large"
}

for wire in $WIRES; do
	room 100000
	test_case "full-disk-$wire-put" put_there
	test_case "full-disk-$wire-get" get_here
	test_case "contact 16: $wire: a file that was only announced takes no room" announced
	test_case "contact 16: $wire: files that are never whole leave room for others" hoarded
	test_case "full-disk-$wire-capture" capture
	test_case "full-disk-$wire-listener-capture" listener_capture
done
test_case full-disk-metrics metrics
test_case full-disk-reports reports
if command -v gnuplot >/dev/null; then
	test_case full-disk-plot plot
else
	ok "full-disk-plot # skipped: no gnuplot (Debian package gnuplot-nox)"
fi
if [ -e "$BUILD/libddpsess-verbs.so" ] && command -v rping >/dev/null; then
	test_case full-disk-drop-in drop_in
	test_case limited-file-drop-in drop_in_limited
else
	ok "full-disk-drop-in # skipped: no rping (Debian package rdmacm-utils)"
fi
finish
