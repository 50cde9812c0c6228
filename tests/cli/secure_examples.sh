#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The secured examples in C and Python, each with each: both say who the peer is, and why it may not come in.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
: "${BUILD:?the release build}"
BUILD=$(realpath "$BUILD")
. "$(dirname "$0")/lib.bash"
top=$(realpath "$here/../..")
built=$(dirname "$SESSCTL")
export PYTHONPATH=$top/python DDPSESS_LIBRARY=$BUILD/libddpsess.so.1 PYTHONDONTWRITEBYTECODE=1
declare -A program=([c]="$built/example-secured" [python]="python3 $top/python/examples/secured.py")

{ "$SESSCTL" keys ca lab && "$SESSCTL" keys host a localhost 127.0.0.1 && "$SESSCTL" keys host b 127.0.0.1; } >made.out 2>&1 ||
	exit 1
printf 'cert a.pem\nkey a.key\nca ca.pem\npeers peers.txt\n' >a.conf
printf 'cert b.pem\nkey b.key\nca ca.pem\n' >b.conf
echo 'allow dns b' >peers.txt

# message LISTENER DIALLER URI STATUS: a message from b to a; what they say in served and sent
message() {
	local pid status line served
	rm -f said
	mkfifo said
	# shellcheck disable=SC2086 # words are meant
	timeout "$PATIENCE" ${program[$1]} a.conf "$3" >said 2>listen.err &
	pid=$!
	exec 9<said
	read -r -t "$PATIENCE" line <&9
	# shellcheck disable=SC2086
	timeout "$PATIENCE" ${program[$2]} b.conf "${line#listening on }" "a word" >sent 2>sent.err
	status=$?
	[ "$4" = 0 ] || kill "$pid"
	cat <&9 >served
	exec 9<&-
	wait "$pid"
	served=$?
	why="status $status of the dialler: $(tail -n 1 sent.err); $served of the listener: $(tail -n 1 listen.err)"
	[ "$status" = "$4" ] && { [ "$4" != 0 ] || [ "$served" = 0 ]; }
}

both_say_who() { # LISTENER DIALLER WIRE
	message "$1" "$2" "$3://127.0.0.1:0" 0 && says served "from dns:b over " && says served ": a word" &&
		says sent "to ip:127.0.0.1 over "
}

not_let_in() { # DIALLER: it says so
	echo 'deny dns b' >peers.txt
	message c "$1" tls://127.0.0.1:0 1 && says sent.err "access_denied"
}

# Keys over a plain wire would be in vain, and nobody would notice.
plain_refused() { # ONE
	local uri words
	for uri in tcp://127.0.0.1:0 sctp://127.0.0.1:0 TCP://127.0.0.1:1; do
		for words in "" "a word"; do
			# shellcheck disable=SC2086 # words are meant
			timeout "$PATIENCE" ${program[$1]} b.conf "$uri" ${words:+"$words"} >sent 2>sent.err
			[ $? = 1 ] && says sent.err "would be plain" && [ ! -s sent ] || return
		done
	done
}

for one in c python; do
	test_case "secured-plain-refused-$one" plain_refused "$one"
done
for wire in tls sctps; do
	for one in c python; do
		for other in c python; do
			test_case "secured-$wire-$one-$other" both_say_who "$one" "$other" "$wire"
		done
	done
done
test_case "secured-not-let-in-c" not_let_in c
test_case "secured-not-let-in-python" not_let_in python
finish
