#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Ours and each peer in turn, in the same minute on the same cores; what counts is the ratio
# pair by pair.  usage: run.sh BUILD OUT   (BENCH=quick: a short one)
set -u
build=$(realpath "$1")
out=$2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
if [ "${BENCH:-}" = quick ]; then rounds=3 seconds=0.3; else rounds=9 seconds=1; fi
samples=$out/samples.json
: >"$samples"
work=$(mktemp -d)
listener=
stop() {
	[ -z "$listener" ] || { kill "$listener" 2>/dev/null; wait "$listener" 2>/dev/null; }
	listener=
}
trap 'stop; rm -rf "$work"' EXIT
next_port=$((30000 + $$ % 1000 * 20))

# listen URI OPTION...: a listener on core 0; $uri
listen() {
	local where=$1
	shift
	stop
	mkfifo "$work/fifo" 2>/dev/null
	taskset -c 0 "$build/sessctl" listen --json "$@" "$where" >"$work/fifo" 2>"$work/err" &
	listener=$!
	exec {fd}<"$work/fifo"
	read -r -t 10 -u "$fd" line
	uri=$(sed -n 's/.*"uri":"\([^"]*\)".*/\1/p' <<<"$line")
	# what it says of its sessions is not wanted, but has to go somewhere
	cat <&"$fd" >/dev/null &
	exec {fd}<&-
}

# ---- one sample each: a number on standard output, nothing if it failed ----

value() { # MEMBER
	sed -n "/\"event\":\"\(established\|closed\)\"/d; s/.*\"$1\":\([0-9.e+-]*\).*/\1/p" | tail -n 1
}

perf() { # MEMBER OP SIZE DEPTH OPTION...
	local member=$1 op=$2 size=$3 depth=$4
	shift 4
	timeout 60 taskset -c 1 "$build/sessctl" perf --json --op "$op" --size "$size" \
		--depth "$depth" --seconds "$seconds" "$@" "$uri" 2>/dev/null | value "$member"
}

peer() { # PROGRAM MEMBER ARGUMENT...
	local program=$build/$1 member=$2 mode=$3 size=$4
	shift 4
	timeout 60 "$program" "$mode" "$size" "$seconds" "$@" 2>/dev/null | value "$member"
}

# round trips a second by half a round trip in microseconds
by_half() {
	awk '$1 > 0 { print 500000 / $1 }'
}

with_server() { # SERVER... -- CLIENT...
	local server=()
	while [ "$1" != -- ]; do server+=("$1") && shift; done
	shift
	timeout 60 taskset -c 0 "${server[@]}" >/dev/null 2>&1 &
	local pid=$!
	sleep 0.3 # these say nothing when they are ready
	timeout 50 taskset -c 1 "$@" 2>&1
	kill "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
}

ucx() { # TEST COLUMN ITERATIONS
	next_port=$((next_port + 1))
	UCX_TLS=tcp UCX_NET_DEVICES=lo with_server ucx_perftest -p "$next_port" -- \
		ucx_perftest -p "$next_port" 127.0.0.1 -t "$1" -s 64 -n "$3" -w 500 -f -v |
		awk -F, -v c="$2" '/^[0-9]/ { v = $c } END { print v }'
}

ucx_ping() { ucx tag_lat 3 $((rounds * 5000)) | by_half; }
ucx_rate() { ucx ucp_am_bw 8 $((rounds * 30000)); }

fi_ping() {
	next_port=$((next_port + 1))
	with_server fi_pingpong -p tcp -e msg -B "$next_port" -I $((rounds * 2000)) -S 64 -- \
		fi_pingpong -p tcp -e msg -P "$next_port" -I $((rounds * 2000)) -S 64 127.0.0.1 |
		awk '/^64 / { print $7 }' | by_half
}

sock_ping() {
	next_port=$((next_port + 1))
	with_server sockperf server --tcp -i 127.0.0.1 -p "$next_port" --nonblocked -- \
		sockperf ping-pong --tcp -i 127.0.0.1 -p "$next_port" -m 64 -t 1 --nonblocked |
		sed -n 's/.*avg-latency=\([0-9.]*\).*/\1/p' | by_half
}

# ---- cases ----

# pair CASE PEER TARGET UNIT "OURS..." "THEIRS..." [PROGRAM]: A B A B ...
pair() {
	local name=$1 with=$2 target=$3 unit=$4 ours=$5 theirs=$6 need=${7:-}
	local a b i
	if [ -n "$need" ] && ! command -v "$need" >/dev/null && [ ! -x "$build/$need" ]; then
		echo "{\"case\":\"$name\",\"peer\":\"$with\",\"target\":$target,\"unit\":\"$unit\",\"missing\":\"$need\"}" >>"$samples"
		return
	fi
	for ((i = 0; i < rounds; i++)); do
		a=$($ours)
		b=$($theirs)
		echo "{\"case\":\"$name\",\"peer\":\"$with\",\"target\":$target,\"unit\":\"$unit\",\"ours\":${a:-null},\"theirs\":${b:-null}}" >>"$samples"
	done
	echo "  $name / $with" >&2
}

MB=1048576
bw=bytes_per_second
rate=ops_per_second
tcp="peer peer_tcp $bw bw $MB"

listen tcp://127.0.0.1:0 --crc off
pair "write 1M, crc off" "plain tcp" 0.95 B/s "perf $bw write $MB 16 --crc off" "$tcp"
pair "write 1M, crc off" "libfabric rma" 1.05 B/s "perf $bw write $MB 16 --crc off" \
	"peer peer_fi $bw write $MB 16" peer_fi
pair "read 1M, crc off" "plain tcp" 0.90 B/s "perf $bw read $MB 16 --crc off" "$tcp"
pair "read 1M, crc off" "libfabric rma" 1.10 B/s "perf $bw read $MB 16 --crc off" \
	"peer peer_fi $bw read $MB 16" peer_fi
pair "ping 64" "plain tcp" 0.91 1/s "perf $rate ping 64 1 --crc off" "peer peer_tcp $rate ping 64"
pair "ping 64" "libfabric" 1 1/s "perf $rate ping 64 1 --crc off" \
	"peer peer_fi $rate ping 64" peer_fi
pair "ping 64" "fi_pingpong" 1 1/s "perf $rate ping 64 1 --crc off" fi_ping fi_pingpong
pair "ping 64" "ucx" 1 1/s "perf $rate ping 64 1 --crc off" ucx_ping ucx_perftest
pair "ping 64" "sockperf" 0.91 1/s "perf $rate ping 64 1 --crc off" sock_ping sockperf
pair "send 64, depth 128" "libfabric" 3 1/s "perf $rate send 64 128 --crc off" \
	"peer peer_fi $rate send 64 128" peer_fi
pair "send 64, depth 128" "ucx" 1 1/s "perf $rate send 64 128 --crc off" ucx_rate ucx_perftest
listen tcp://127.0.0.1:0
pair "write 1M, crc on" "plain tcp" 0.80 B/s "perf $bw write $MB 16" "$tcp"
listen tcp://127.0.0.1:0 --markers on
pair "write 1M, crc, markers" "plain tcp" 0.60 B/s "perf $bw write $MB 16 --markers on" "$tcp"
listen 'sctp://127.0.0.1:0?backend=usrsctp&encap=0'
pair "write 64K, sctp" "usrsctp" 4 B/s "perf $bw write 65536 16" \
	"peer peer_usrsctp $bw bw 65536"
pair "crc32c 64K" "isa-l" 0.9 B/s "peer bench-speed $bw crc 65536" "peer bench-speed $bw isal 65536"
pair "crc32c 64K" "memcpy" 0 B/s "peer bench-speed $bw crc 65536" \
	"peer bench-speed $bw memcpy 65536"

# ---- against size, for the plots ----

sizes=64,256,1K,4K,16K,64K,256K,1M
: >"$out/sizes.json"
for op in write read send ping; do
	listen tcp://127.0.0.1:0
	timeout 60 taskset -c 1 "$build/sessctl" perf --json --op "$op" --size "$sizes" \
		--seconds 0.3 "$uri" 2>/dev/null | grep '"event":"perf"' >>"$out/sizes.json"
done
stop

"$here/report.sh" "$out"
