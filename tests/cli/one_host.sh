#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# shm://: every command through shared memory, the socket's file, and what is said when it cannot be.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
. "$(dirname "$0")/lib.bash"

negotiated() {
	run 0 connect --p2p --private-data hello "$uri" && says out "established over shm" &&
		says out "peer's pid" && says out "crc off" || return
	run 0 connect --json "$uri" && has out transport shm && has out uid "$(id -u)" && has out crc false
}

measured() {
	run 0 ping --json --count 200 --interval 0 --size 64 "$uri" && has out count 200 || return
	run 0 ping --json --op read --count 20 --interval 0 --size 1000000 "$uri" || return
	for op in send write read; do
		run 0 perf --json --op "$op" --size 64,65536 --seconds 0.2 "$uri" && has out transport shm || return
	done
}

# Memory has no round trip that anybody measures.
looked_at() {
	local client client_fd
	start_job client.fifo err connect --json --wait "$uri" || return
	client=$pid client_fd=$fd
	COLUMNS=140 run 0 top -c 1 -i 0.02 && cp out top.out
	kill "$client"
	end_job "$client" "$client_fd"
	why="$(cat top.out)"
	grep -qE ' shm .* - +-$' top.out
}

moved() { # URI:NAME
	head -c 3000000 /dev/urandom >here
	run 0 put --force here "$uri:there" && cmp here dir/there && run 0 get --force "$uri:there" back && cmp here back
}

# Whoever may not write to the file may not connect.
file_decides() {
	chmod 0 "${uri#shm://}"
	run 1 connect "$uri" && says err "this user may write to"
	local ok=$?
	chmod 600 "${uri#shm://}"
	return $ok
}

file_goes() {
	stop_listener
	why="the socket's file is left"
	[ ! -e "$PWD/socket" ]
}

nobody_there() {
	run 1 connect "shm://$PWD/nothing" && says err "running there, on this host" &&
		run 1 connect "shm://@ddpsess-nothing-$$" && says err "is a listener running there, on this host" &&
		run 2 connect shm://@ && says err "a path, or a name behind @"
}

# Between two processes there is no firewall.
killed() {
	local client client_fd
	listen shm://@
	start_job client.fifo err ping --json --count 1000 --interval 0.05 "$uri" || return
	client=$pid client_fd=$fd
	read -r -t "$PATIENCE" -u "$client_fd" line
	kill -KILL "$listener"
	end_listener
	end_job "$client" "$client_fd"
	says err "its process may have ended"
}

no_folder() {
	run 1 listen "shm://$PWD/no/socket" && says err "the folder has to be there"
}

spelling() {
	run 2 connect shm://host:7 && says err "path of a socket" &&
		run 2 connect "shm:///x?tos=1" && says err "no options"
}

# The path of a socket may have colons, and so may the name of a file.
colons() {
	mkdir -p a:b
	listen "shm://$PWD/a:b/c:d" --dir dir
	run 0 ping -c 1 "$uri" && echo content >one && run 0 put one "$uri" && same one dir/one &&
		run 0 put one "$uri:x:y" && same one dir/x:y && run 0 get --force "$uri:x:y" back && same one back
}

mkdir -p dir && mkdir -m 700 watch
export DDPSESS_WATCH=$work/watch
for at in "shm://$PWD/socket" shm://@; do
	listen "$at" --dir dir
	name=${at#shm://}
	[ "$name" = @ ] && name=abstract || name="file"
	test_case "one-host-$name-connect" negotiated
	test_case "one-host-$name-measured" measured
	test_case "one-host-$name-moved" moved
	test_case "one-host-$name-looked-at" looked_at
	if [ "$name" = abstract ]; then
		:
	elif [ "$(id -u)" -eq 0 ]; then
		ok "one-host-permissions # skipped: root may write to any file"
	else
		test_case "one-host-permissions" file_decides
	fi
	[ "$name" = abstract ] || test_case "one-host-file-goes" file_goes
done
test_case one-host-colons colons
stop_listener
test_case one-host-nobody-there nobody_there
test_case one-host-killed killed
test_case one-host-no-folder no_folder
test_case one-host-spelling spelling
finish
