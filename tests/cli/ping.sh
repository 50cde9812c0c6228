#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessctl ping: each kind, sizes at their edges, what is reported, on each wire.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
. "$(dirname "$0")/lib.bash"

ping_once() { # OP OCTETS COUNT
	run 0 ping --json --op "$1" --size "$2" --count "$3" --interval 0 "$uri" &&
		has out event ping && has out op "$1" && has out size "$2" && has out count "$3" ||
		return
	# min <= avg, min <= p50 <= p99 <= max, none of them zero
	why="times: $(grep '"ping"' out)"
	sed -n '/"ping"/s/.*min_us":\([0-9.e+-]*\).*avg_us":\([0-9.e+-]*\).*p50_us":\([0-9.e+-]*\).*p99_us":\([0-9.e+-]*\).*max_us":\([0-9.e+-]*\).*/\1 \2 \3 \4 \5/p' out |
		awk '{ exit !(NF == 5 && $1 > 0 && $1 <= $2 && $2 <= $5 && $1 <= $3 && $3 <= $4 && $4 <= $5) }'
}

each_line() {
	run 0 ping --json --count 3 --interval 0.001 "$uri" || return
	why="$(grep -c pong out) lines"
	[ "$(grep -c '"event":"pong"' out)" -eq 3 ] || return
	run 0 ping --count 2 --interval 0.001 "$uri" && says out "min" && says out "p99"
}

ord_zero() {
	run 1 ping --op read --ord 0 "$uri" && says err "ORD is 0" && says err "--ord"
}

with_p2p() {
	run 0 ping --p2p --count 3 --interval 0 "$uri"
}

for wire in $WIRES; do
	listen "$(uri_of "$wire")"
	for op in send write read; do
		for size in 0 1 7 8 64 65536 1000000; do
			test_case "ping-$wire-$op-$size" ping_once "$op" "$size" 20
		done
	done
	test_case "ping-$wire-many" ping_once send 64 1000
	test_case "ping-$wire-each-line" each_line
	test_case "ping-$wire-ord-0" ord_zero
	test_case "ping-$wire-p2p" with_p2p
	test_case "ping-$wire-listener-goes" listener_goes \
		2 ping --json --interval 0.2 --count 1000 "$uri"
done
finish
