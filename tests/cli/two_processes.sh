#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# docs/guides/two_processes.md: each client of the key-value store with each server, over both wires.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
: "${BUILD:?the release build}"
BUILD=$(realpath "$BUILD")
. "$(dirname "$0")/lib.bash"
top=$(realpath "$here/../..")
built=$(dirname "$SESSCTL")
export PYTHONPATH=$top/python DDPSESS_LIBRARY=$BUILD/libddpsess.so.1
export PYTHONDONTWRITEBYTECODE=1

# A program's name, and how it is run.
declare -A server=([c]="$built/example-kv_server" [python]="python3 $top/python/examples/kv_server.py")
declare -A client=([c]="$built/example-kv_client" [python]="python3 $top/python/examples/kv_client.py")

# ask STATUS OUTPUT LANGUAGE ARGUMENT...: a client at $uri
ask() {
	local want=$1 printed=$2 how=${client[$3]} out status
	shift 3
	# shellcheck disable=SC2086 # words are meant
	out=$(timeout 60 $how "$uri" "$@" 2>ask.err)
	status=$?
	why="$how $*: status $status, printed '$out'; $(tail -n 1 ask.err)"
	[ "$status" = "$want" ] && [ "$out" = "$printed" ]
}

# store SERVER URI: all that both clients do, in turn; then the server ends by itself
store() {
	local pid status line uri long
	long=$(head -c 3000 /dev/zero | tr '\0' x)
	mkfifo said
	# shellcheck disable=SC2086
	timeout 120 ${server[$1]} "$2" >said 2>server.err &
	pid=$!
	exec 9<said
	rm said
	read -r line <&9
	uri=${line#listening on }
	why="no listener: $(cat server.err)"
	[ "$uri" != "$line" ] &&
		ask 1 "" c get colour && says ask.err "no such key" &&
		ask 1 "" python get colour && says ask.err "no such key" &&
		ask 0 "" c put colour blue && ask 0 blue python get colour &&
		ask 0 "" python put colour green && ask 0 green c get colour &&
		ask 0 "" c put long "$long" && ask 0 "$long" python get long && ask 0 "$long" c get long &&
		ask 0 "" python put größe 3 && ask 0 3 c get größe &&
		ask 0 "" "$3" put quit now
	status=$?
	[ "$status" = 0 ] || kill "$pid"
	wait "$pid"
	status=$((status + $?))
	exec 9<&-
	[ "$status" = 0 ] || why="$why; server: $(tail -n 2 server.err)"
	return "$status"
}

for wire in 'tcp://127.0.0.1:0' 'sctp://127.0.0.1:0?encap=0'; do
	for one in c python; do
		test_case "a store in $one over ${wire%%:*} serves clients in C and Python" store "$one" "$wire" c
		test_case "and ends when a client in Python says so" store "$one" "$wire" python
	done
done

# nobody STATUS LANGUAGE: why, and where
nobody() {
	ask "$1" "" "$2" get colour && says ask.err refused && says ask.err 127.0.0.1:1
}

uri=tcp://127.0.0.1:1
test_case "where nobody listens, the client in C says so" nobody 2 c
test_case "and the one in Python" nobody 2 python
finish
