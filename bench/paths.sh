#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# SCTP and the host's TCP (cubic) on the same paths between two network namespaces, in turn: with
# delay, reordering, loss, late packets, and a path that takes smaller packets from some moment on.
# usage: paths.sh BUILD OUT	samples go to OUT/samples.json, as those of run.sh
set -u
build=$(realpath "$1")
out=$(realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)
if [ "${BENCH:-}" = quick ]; then rounds=1 seconds=3; else rounds=3 seconds=4; fi

sample() { # CASE PEER TARGET UNIT OURS THEIRS
	echo "{\"case\":\"$1\",\"peer\":\"$2\",\"target\":$3,\"unit\":\"$4\",\"ours\":${5:-null},\"theirs\":${6:-null}}" >>"$out/samples.json"
}

if [ "${BENCH_INSIDE:-}" != yes ]; then
	if unshare -rn true 2>/dev/null && [ -e /dev/net/tun ]; then
		BENCH_INSIDE=yes exec unshare -rn "$here/paths.sh" "$build" "$out"
	fi
	for path in "25 ms" "25 ms, 0-2 ms jitter" "5 ms, 2 % loss" "4 ms, 1 % loss, 5 % 20 ms late" "1500 to 1280"; do
		echo "{\"case\":\"path: $path\",\"peer\":\"tcp cubic\",\"target\":0,\"unit\":\"B/s\",\"missing\":\"no network namespace, or no TUN\"}" >>"$out/samples.json"
	done
	exit 0
fi

work=$(mktemp -d)
ip link set lo up
unshare -n sleep 600 &
there=$!
relay='' listener=''
trap '[[ $BASHPID != "$$" ]] || { kill $relay $listener $there 2>/dev/null; rm -rf "$work"; }' EXIT
while [ "$(readlink /proc/$there/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done

inside() { nsenter -t "$there" -n "$@"; }

# path DELAY_MS JITTER_MS LOSS_PERCENT MBIT QUEUE [MTU AFTER_S [LATE_PERCENT LATE_MS]]: 10.9.0.1 here, 10.9.0.2 there
path() {
	[ -z "$relay" ] || { kill "$relay" && wait "$relay"; } 2>/dev/null
	: >"$work/relay"
	"$build/relay" "/proc/$there/ns/net" "$@" >"$work/relay" &
	relay=$!
	until grep -q ready "$work/relay"; do sleep 0.05; done
	ip addr add 10.9.0.1/24 dev path
	ip link set path up mtu 1500
	inside ip addr add 10.9.0.2/24 dev path
	inside ip link set path up mtu 1500
	inside ip link set lo up
}

serve() {
	[ -z "$listener" ] || { kill "$listener" && wait "$listener"; } 2>/dev/null
	: >"$work/listen"
	# no function: what is killed has to be the listener
	nsenter -t "$there" -n "$build/sessctl" listen --json 'sctp://10.9.0.2:0?encap=0' >"$work/listen" 2>/dev/null &
	listener=$!
	until grep -q '"uri"' "$work/listen"; do sleep 0.05; done
	uri=$(sed -n 's/.*"uri":"\([^"]*\)".*/\1/p;q' "$work/listen")
}

# RDMA Reads, counted where they arrive
ours() {
	timeout 60 "$build/sessctl" perf --json --op read --size 65536 --depth 16 \
		--seconds "$seconds" "$uri" 2>/dev/null |
		jq -r 'select(.event == "perf") | .bytes_per_second'
}

tcp() {
	BENCH_SERVE_NS=/proc/$there/ns/net BENCH_HOST=10.9.0.2 BENCH_CC=cubic \
		timeout 60 "$build/peer_tcp" bw 65536 "$seconds" 2>/dev/null | jq -r .bytes_per_second
}

against_tcp() { # CASE TARGET PATH...
	local name=$1 target=$2 i
	shift 2
	path "$@"
	serve
	for ((i = 0; i < rounds; i++)); do
		sample "path: $name" "tcp cubic" "$target" B/s "$(ours)" "$(tcp)"
	done
	echo "  path: $name" >&2
}

# The longest time without a Read that came, while packets above 1280 octets begin to vanish
black_hole() {
	local worst
	path 2.5 0 0 50 62500 1280 3
	serve
	worst=$(timeout 60 "$build/sessctl" perf --json --op read --size 65536 --depth 1 \
		--seconds 8 "$uri" 2>/dev/null | jq -r 'select(.event == "perf") | .lat_us.max / 1e6')
	sample "path: 1500 to 1280, pause" "2 s" 1 s "$worst" 2
	echo "  path: 1500 to 1280" >&2
}

# Seconds of a round trip: of a session alone on its association, or while another one writes all
# the time
round_trip() { # SESSIONS
	BENCH_SERVE_NS=/proc/$there/ns/net BENCH_HOST=10.9.0.2 timeout 60 \
		"$build/sessions" beside "$1" "$seconds" 2>/dev/null | jq -r '.lat_us.p50 / 1e6'
}

# The path's round trip is that of another association at the same time: bulk data of any kind fills
# the path's own queue.
beside() {
	local i
	path 12.5 0 0 100 312500
	for ((i = 0; i < rounds; i++)); do
		round_trip 2 >"$work/beside" &
		local bulk=$! alone
		alone=$(round_trip 1 | awk '{ print $1 + 0.001 }')
		wait "$bulk"
		sample "ping during writes, 25 ms" "path + 1 ms" 1 s "$(cat "$work/beside")" "$alone"
	done
	echo "  path: ping during writes" >&2
}

against_tcp "25 ms" 0.9 12.5 0 0 100 312500
against_tcp "25 ms, 0-2 ms jitter" 0.8 12.5 2 0 100 312500
against_tcp "5 ms, 2 % loss" 0.8 2.5 0 2 100 62500
against_tcp "4 ms, 1 % loss, 5 % 20 ms late" 0.8 2 0 1 100 62500 0 0 5 20
black_hole
beside
