#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The listener among strangers: nobody takes all of it, or holds it for longer than it says.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
: "${BUILD:?the directory of a build}"
DDPSESS_LIBRARY=$(realpath "$BUILD/libddpsess.so")
. "$(dirname "$0")/lib.bash"
export DDPSESS_LIBRARY PYTHONPATH=$here/../../python PYTHONDONTWRITEBYTECODE=1 DDPSESS_WATCH=off
mkdir served
echo precious >served/f
echo hello >hello

# stranger WHAT...: what it saw is as it should be
stranger() {
	timeout "$PATIENCE" python3 "$here/stranger.py" "$uri" "$@" >saw 2>&1
	why=$(tail -n 3 saw)
	grep -q "^$1 True " saw
}

pause_of_an_hour() {
	listen "$(uri_of "$wire")"
	stranger pause
}

all_memory() {
	listen "$(uri_of "$wire")"
	stranger windows
}

all_sessions() {
	# room for 64 of them; in a shell of its own, whose limit it is
	(ulimit -n 192 && listen "$(uri_of "$wire")" && stranger sessions && why= || why=${why:-no}
		stop_listener
		echo "$why" >why
		[ -z "$why" ])
	local status=$?
	why=$(cat why)
	return $status
}

octet_by_octet() {
	listen "$(uri_of "$wire")" --dir served --timeout 2
	stranger slow || return
	stop_listener
	says listen.err "slower than 65536 octets a second" && only served f
}

read_only() {
	listen "$(uri_of "$wire")" --dir served --read-only
	run 1 put hello "$uri/new" && says err "--read-only" && only served f && run 0 get "$uri/f" got &&
		same got served/f && rm got
}

# A limit of file sizes is a refusal, not the listener's end: in a shell of its own, whose limit it is.
file_size_limit() {
	head -c 200000 /dev/zero >large
	mkdir -p limited
	(ulimit -f 100 && listen "$(uri_of "$wire")" --dir limited
		run 1 put large "$uri/x" && says err "larger than the listener may write" && only limited "" &&
			run 0 put hello "$uri/little" && same hello limited/little && rm limited/little && why= || why=${why:-no}
		stop_listener
		echo "$why" >why
		[ -z "$why" ])
	local status=$?
	why=$(cat why)
	return $status
}

# The same where it is the one who gets the file.
file_size_limit_here() {
	head -c 200000 /dev/zero >served/large
	listen "$(uri_of "$wire")" --dir served
	(ulimit -f 100 && run 1 get "$uri/large" here && says err "File too large" &&
		says err "try: a larger limit of file sizes" && absent here && why= || why=${why:-no}
		echo "$why" >why
		[ -z "$why" ])
	local status=$?
	why=$(cat why)
	rm served/large
	return $status
}

too_much_from_a_listener() {
	SESSCTL=python3 start_job liar.fifo liar.err "$here/stranger.py" - liar
	local liar=$pid liar_fd=$fd
	why="no liar: $(cat liar.err)"
	[ -n "$line" ] && run 1 get --max-size 1M "$line/f" here && says err "the limit is 1048576" &&
		says err "--max-size" && absent here
	local status=$?
	end_job "$liar" "$liar_fd"
	return $status
}

# What was refused can be seen from outside.
counted() { # MEMBER
	DDPSESS_WATCH=$work/watch run 0 stat --json || return
	why="no $1: $(cat out)"
	grep -qE "\"$1\":[1-9]" out
}

refusals_are_counted() {
	local status
	mkdir -p -m 700 watch
	DDPSESS_WATCH=$work/watch listen "$(uri_of "$wire")" --dir served --max-size 4
	run 1 put hello "$uri/new" && run 1 get "$uri/f" got && only served f && counted refused_sizes &&
		has out refused_sizes 2 && has out refused_disk 0 && has out refused_windows 0 && has out refused_sessions 0 &&
		stranger windows && counted refused_windows || return
	(ulimit -n 192 && DDPSESS_WATCH=$work/watch listen "$(uri_of "$wire")" && stranger sessions &&
		counted refused_sessions && why= || why=${why:-no}
		stop_listener
		echo "$why" >why
		[ -z "$why" ])
	status=$?
	why=$(cat why)
	return $status
}

for wire in $WIRES; do
	test_case "contact 16: $wire: a ping an hour" pause_of_an_hour
	test_case "contact 16: $wire: all memory for windows" all_memory
	test_case "contact 16: $wire: all sessions" all_sessions
	test_case "contact 16: $wire: octet by octet" octet_by_octet
	test_case "contact 16: $wire: --read-only" read_only
	test_case "contact 16: $wire: a put above the limit of file sizes" file_size_limit
	test_case "contact 16: $wire: a get above the limit of file sizes" file_size_limit_here
	test_case "contact 16: $wire: refusals are counted" refusals_are_counted
done
test_case "contact 16: a listener that sends too much" too_much_from_a_listener
finish
