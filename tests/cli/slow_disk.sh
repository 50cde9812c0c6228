#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A disk that is slow or fails: only the session that waits for it does, and no file is half there.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
. "$(dirname "$0")/lib.bash"
${CC:-cc} -shared -fPIC -O1 -Wall -Wextra -o slow_disk.so "$here/slow_disk.c" || exit 1
mkfifo at.fifo go.fifo
exec {at}<>at.fifo
exec {go}<>go.fifo
export DISK_AT=$work/at.fifo DISK_GO=$work/go.fifo DDPSESS_WATCH=off
head -c 3000000 /dev/urandom >sample

# served_slowly CALL: a listener whose disk holds up that call
served_slowly() {
	stop_listener
	rm -rf served
	mkdir served
	cp sample served/there
	DISK_SLOW=$1 LD_PRELOAD=$work/slow_disk.so ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 \
		listen "$(uri_of "$wire")" --dir served --timeout 20
}
: "${ASAN_OPTIONS:=}"

# held_up COMMAND...: a client, and the listener's disk is at work for it
held_up() {
	start_job client.fifo client.err "$@"
	client=$pid client_fd=$fd
	read -r -t "$PATIENCE" -u "$at" line
	why="the disk was not asked: $(cat client.err)"
	[ "$line" = at ]
}

# goes_on [n | e]: the disk does what it was asked for, or fails with ENOSPC or EIO
goes_on() {
	printf %s "${1:-g}" >&"$go"
}

# client_ends STATUS
client_ends() {
	end_job "$client" "$client_fd"
	status=$?
	why="client's status $status: $(cat client.err)"
	[ "$status" -eq "$1" ]
}

others_go_on() {
	PATIENCE=10 run 0 ping --count 2 "$uri" && PATIENCE=10 run 0 ping --count 2 --op read "$uri"
}

put_waits() {
	rm -f got
	served_slowly fsync
	held_up put --json sample "$uri/new" && others_go_on && only served there || return
	PATIENCE=10 run 0 get "$uri/there" got && same got sample || return
	goes_on
	client_ends 0 && only served new there && same served/new sample
}

pieces_wait() { # read | write
	local i
	served_slowly "$1"
	rm -f got
	if [ "$1" = read ]; then
		held_up get --json "$uri/there" got
	else
		held_up put --json sample "$uri/new"
	fi || return
	others_go_on || return
	goes_on
	for i in 2 3; do # a piece each
		why="piece $i does not wait"
		read -r -t "$PATIENCE" -u "$at" line || return
		others_go_on || return
		goes_on
	done
	# a digest reads what was written again
	client_ends 0 && if [ "$1" = read ]; then same got sample; else same served/new sample; fi
}

# A client's own disk: its session goes on, and shows that.
get_waits() { # write | fsync
	local i
	stop_listener
	rm -rf served got
	mkdir served
	cp sample served/there
	listen "$(uri_of "$wire")" --dir served --timeout 20
	DISK_SLOW=$1 LD_PRELOAD=$work/slow_disk.so ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 \
		held_up get --json --stat 0.05 "$uri/there" got || return
	for i in 1 2 3 4 5; do
		why="its session stands still: $line"
		read -r -t "$PATIENCE" -u "$client_fd" line && [[ $line == *'"event":"status"'* ]] || return
	done
	[ "$1" != write ] || for i in 2 3; do # a piece each
		goes_on
		read -r -t "$PATIENCE" -u "$at" line || return
	done
	[ ! -e got ] && goes_on
	client_ends 0 && same got sample
}

get_fails() {
	get_is_held && goes_on n && client_ends 1 && says client.err "No space left" && [ ! -e got ]
}

# Signal and disk come at one time, so either may be the reason that is given.
get_is_interrupted() {
	get_is_held && kill -INT "$client" && goes_on e && client_ends 1 && [ ! -e got ] &&
		{ says client.err interrupted || says client.err "Input/output error"; }
}

# The same: what is whole under its name is a success, or the report says that it is there.
get_is_interrupted_and_whole() {
	get_is_held && kill -INT "$client" && goes_on || return
	if client_ends 1; then
		says client.err interrupted || return
		[ ! -e got ] || { says client.err "is on the disk, and whole" && same got sample; }
	else
		[ "$status" -eq 0 ] && same got sample
	fi
}

# The digest reads again what was written, and then the session goes on.
get_reads_again() {
	local i
	rm -f got
	DISK_SLOW=read LD_PRELOAD=$work/slow_disk.so ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 \
		held_up get --json --stat 0.05 "$uri/there" got || return
	for ((i = 1; i < 46; i++)); do # 64 KiB each
		goes_on
		read -r -t "$PATIENCE" -u "$at" line || return
	done
	for ((i = 0; i < 40; i++)); do
		why="its session stands still: $line"
		read -r -t "$PATIENCE" -u "$client_fd" line && [[ $line == *'"event":"status"'* ]] || return
	done
	goes_on
	client_ends 0 && same got sample
}

put_reads_slowly() {
	local i
	stop_listener
	rm -rf served
	mkdir served
	listen "$(uri_of "$wire")" --dir served --timeout 20
	DISK_SLOW=read LD_PRELOAD=$work/slow_disk.so ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 \
		held_up put --json --stat 0.05 sample "$uri/new" || return
	for i in 1 2 3 4 5; do
		why="its session stands still: $line"
		read -r -t "$PATIENCE" -u "$client_fd" line && [[ $line == *'"event":"status"'* ]] || return
	done
	for i in 2 3; do # a piece each
		goes_on
		read -r -t "$PATIENCE" -u "$at" line || return
	done
	goes_on
	client_ends 0 && same served/new sample
}

# Whoever is interrupted while the disk of the listener is at work gets no file there, or it is reported.
put_is_interrupted() {
	served_slowly fsync
	held_up put --json sample "$uri/new" || return
	kill -INT "$client"
	client_ends 1 && says client.err interrupted && says client.err "may have kept new" || return
	others_go_on || return
	goes_on
	stop_listener
	only served there
}

get_is_held() {
	rm -f got
	DISK_SLOW=fsync LD_PRELOAD=$work/slow_disk.so ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 \
		held_up get --json "$uri/there" got
}

put_fails() { # n|e TEXT
	served_slowly fsync
	echo old >served/old
	held_up put --json --force sample "$uri/old" && others_go_on || return
	goes_on "$1"
	client_ends 1 && says client.err "$2" && only served old there && says served/old old
}

# whole or not at all, as it came to the disk or not
put_dies() {
	served_slowly fsync
	held_up put --json sample "$uri/new" || return
	kill -KILL "$client"
	{ client_ends 137; } 2>/dev/null || return
	others_go_on || return
	goes_on
	stop_listener
	status=$?
	why="listener's status $status: $(cat listen.err)"
	[ "$status" -eq 0 ] || return
	[ ! -e served/new ] || same served/new sample || return
	rm -f served/new
	only served there
}

# One waits for the disk, others wait for one of its threads: none of them is begun.
ends_with_work() {
	local i jobs=() fds=()
	served_slowly fsync
	for i in 1 2 3 4; do
		held_up put --json --force sample "$uri/new$i" || return
		jobs+=("$client") fds+=("$client_fd")
	done
	start_job client.fifo client.err put --json sample "$uri/waits"
	client=$pid client_fd=$fd
	others_go_on || return
	kill -TERM "$listener"
	client_ends 1 || return
	for i in 1 2 3 4; do
		goes_on e
	done
	for i in 0 1 2 3; do
		end_job "${jobs[i]}" "${fds[i]}"
	done
	end_listener
	status=$?
	why="listener's status $status: $(cat listen.err)"
	[ "$status" -eq 0 ] && only served there
}

# A disk that does not come back: a signal ends the program still, and it says why.
get_hangs() {
	served_slowly nothing
	get_is_held && kill -INT "$client" && client_ends 1 && says client.err interrupted &&
		says client.err "a disk has not answered" && [ ! -e got ]
}

put_hangs() {
	DISK_SLOW=read LD_PRELOAD=$work/slow_disk.so ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 \
		held_up put --force --json sample "$uri/new" || return
	kill -INT "$client"
	client_ends 1 && says client.err interrupted && says client.err "a disk has not answered"
}

# Before there is a session, too.
open_hangs() {
	ln -f sample hangs
	DISK_SLOW=open LD_PRELOAD=$work/slow_disk.so ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 \
		"$SESSCTL" put --force hangs "$uri/new" 2>client.err &
	client=$!
	read -r -t "$PATIENCE" -u "$at" line
	kill -INT "$client"
	wait "$client"
	status=$?
	why="status $status: $(cat client.err)"
	[ "$status" -eq 1 ] && says client.err interrupted && says client.err "a disk has not answered"
}

# Nor does a time limit wait for it.
put_hangs_in_time() {
	DISK_SLOW=read LD_PRELOAD=$work/slow_disk.so ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 \
		held_up put --force --json --timeout 1 sample "$uri/new" || return
	client_ends 5 && says client.err "not done within 1 s" && says client.err "a disk has not answered"
}

open_hangs_in_time() {
	ln -f sample hangs
	DISK_SLOW=open LD_PRELOAD=$work/slow_disk.so ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 \
		timeout "$PATIENCE" "$SESSCTL" put --force --timeout 1 hangs "$uri/new" 2>client.err
	status=$?
	read -r -t "$PATIENCE" -u "$at" line
	why="status $status: $(cat client.err)"
	[ "$status" -eq 5 ] && says client.err "not done within 1 s" && says client.err "a disk has not answered"
}

put_is_interrupted_twice() {
	: >client.err
	DISK_SLOW=read LD_PRELOAD=$work/slow_disk.so ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 \
		held_up put --force sample "$uri/new" || return
	kill -INT "$client"
	until grep -q interrupted client.err; do
		kill -0 "$client" || return
	done
	kill -INT "$client"
	client_ends 1 && says client.err "interrupted again: nothing is waited for"
}

listener_hangs() {
	served_slowly fsync
	held_up put --json sample "$uri/new" || return
	kill -TERM "$listener"
	client_ends 1
	end_listener
	status=$?
	why="listener's status $status: $(cat listen.err)"
	[ "$status" -eq 1 ] && says listen.err "a disk has not answered" && only served there
}

for wire in $WIRES; do
	test_case "contact 18: $wire: a slow disk holds up one session" put_waits
	test_case "contact 18: $wire: pieces that come slowly from the disk" pieces_wait read
	test_case "contact 18: $wire: pieces that go slowly to the disk" pieces_wait write
	test_case "contact 18: $wire: no room when the file is synchronised" put_fails n "no space is left"
	test_case "contact 18: $wire: the disk fails when the file is synchronised" put_fails e "Input/output error"
	test_case "contact 7: $wire: a client's slow disk, synchronised" get_waits fsync
	test_case "contact 7: $wire: a client's slow disk, written" get_waits write
	test_case "contact 7: $wire: a client's disk is full when it is synchronised" get_fails
	test_case "contact 7: $wire: a client is interrupted while it is synchronised" get_is_interrupted
	test_case "contact 7: $wire: a client is interrupted, and its disk goes on" get_is_interrupted_and_whole
	test_case "contact 7: $wire: what a client wrote is read again, slowly" get_reads_again
	test_case "contact 7: $wire: a client reads slowly what it sends" put_reads_slowly
	test_case "contact 7: $wire: a client is interrupted while the listener's disk is at work" put_is_interrupted
	test_case "contact 18: $wire: the client dies meanwhile" put_dies
	test_case "contact 18: $wire: the listener ends meanwhile" ends_with_work
	test_case "$wire: a client's disk hangs when the file is synchronised" get_hangs
	test_case "$wire: a client's disk hangs when it reads" put_hangs
	test_case "$wire: a client's disk hangs when it opens" open_hangs
	test_case "$wire: nor for one that hangs when it opens" open_hangs_in_time
	test_case "$wire: a time limit does not wait for a disk that hangs" put_hangs_in_time
	test_case "$wire: two signals while a disk hangs" put_is_interrupted_twice
	test_case "$wire: a listener's disk hangs when it ends" listener_hangs
done
finish
