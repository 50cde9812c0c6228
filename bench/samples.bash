# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# One sample each of ours and of the peers: a number on standard output, nothing if it failed.
# shellcheck disable=SC2154 # what run.sh sets
# Wants $build, $work, $seconds and $effort; keeps the listener that runs in $listener.

listener='' other='' other_uri=''
inside= # what puts a command into the network that listeners are in: nothing, or nsenter ...
on_core0='taskset -c 0' on_core1='taskset -c 1'

# Another port each time, $port.  Samples are taken in subshells: the last one is in a file.
next_port() {
	port=$(cat "$work/port" 2>/dev/null || echo $((20000 + $$ % 400 * 25)))
	port=$((port + 1))
	echo "$port" >"$work/port"
}

stop() {
	local l
	for l in $listener $other; do
		kill "$l" 2>/dev/null
		wait "$l" 2>/dev/null
	done
	listener='' other=''
}

# listen URI OPTION...: a listener on core 0; $uri, $listener
listen() {
	stop
	start_listener "$@"
}

# A second one. The one that is there becomes the other one; see "over"
listen_too() {
	other=$listener other_uri=$uri
	start_listener "$@"
}

# over other COMMAND...: as COMMAND, with the other listener
over() {
	local uri=$other_uri listener=$other
	shift
	"$@"
}

start_listener() {
	local where=$1 line
	shift
	# a new one: who still empties the last one must not get this one's line
	rm -f "$work/fifo"
	mkfifo "$work/fifo"
	# shellcheck disable=SC2086 # words, or none; nsenter becomes the command, which can be ended so
	$inside taskset -c 0 "$build/sessctl" listen --json "$@" "$where" >"$work/fifo" 2>"$work/err" &
	listener=$!
	exec {fd}<"$work/fifo"
	read -r -t 10 -u "$fd" line
	uri=$(sed -n 's/.*"uri":"\([^"]*\)".*/\1/p' <<<"$line")
	# what it says of its sessions is not wanted, but has to go somewhere
	cat <&"$fd" >/dev/null &
	exec {fd}<&-
}

value() { # MEMBER
	sed -n "/\"event\":\"\(established\|closed\)\"/d; s/.*\"$1\":\([0-9.e+-]*\).*/\1/p" | tail -n 1
}

# ---- ours ----

perf() { # MEMBER OP SIZE DEPTH OPTION...
	local member=$1 op=$2 size=$3 depth=$4
	shift 4
	timeout 60 taskset -c 1 "$build/sessctl" perf --json --op "$op" --size "$size" \
		--depth "$depth" --seconds "$seconds" "$@" "$uri" 2>/dev/null | value "$member"
}

# Octets for each second of processor time of both sides together
perf_cpu() { # OP SIZE DEPTH OPTION...
	perf_both "$@" | awk '{ print $2 }'
}

# Octets a second, and that
perf_both() { # OP SIZE DEPTH OPTION...
	local before after op=$1 size=$2 depth=$3
	shift 3
	before=$(ran "$listener")
	timeout 60 taskset -c 1 "$build/sessctl" perf --json --op "$op" --size "$size" \
		--depth "$depth" --seconds "$seconds" "$@" "$uri" 2>/dev/null >"$work/perf"
	after=$(ran "$listener")
	jq -r --argjson peer "$((after - before))" 'select(.event == "perf") |
		"\(.bytes_per_second) \(.bytes_per_second * .seconds / (.cpu_seconds.local + $peer / 1e9))"' \
		"$work/perf"
}

# Nanoseconds that all threads of a process have run
ran() { # PID
	cat /proc/"$1"/task/*/schedstat | awk '{ n += $1 } END { printf "%.0f\n", n }'
}

# Octets a second of a file, which is $1/file here and $1/served/file there; both processes have threads
put_file() { # DIRECTORY DIGEST
	timeout 60 "$build/sessctl" put --json --force --digest "$2" "$1/file" "$uri/file" \
		2>/dev/null | jq -r 'select(.event == "transfer") | .bytes / .seconds'
}

get_file() { # DIRECTORY DIGEST
	rm -f "$1/back"
	timeout 60 "$build/sessctl" get --json --force --digest "$2" "$uri/file" "$1/back" \
		2>/dev/null | jq -r 'select(.event == "transfer") | .bytes / .seconds'
}

# round trips a second by the median in microseconds
by_median() {
	awk '$1 > 0 { print 1000000 / $1 }'
}

perf_ping() { # SIZE OPTION...
	local size=$1
	shift
	perf p50 ping "$size" 1 "$@" | by_median
}

# The same by the slowest of a hundred
perf_ping_p99() { # SIZE OPTION...
	local size=$1
	shift
	perf p99 ping "$size" 1 "$@" | by_median
}

peer_ping_p99() { # SIZE
	program peer_tcp p99 ping "$1" | by_median
}

# A program of bench/, which brings both sides: those of peers, and ours with many sessions
program() { # PROGRAM MEMBER ARGUMENT...
	local program=$build/$1 member=$2 mode=$3 size=$4
	shift 4
	timeout 90 "$program" "$mode" "$size" "$seconds" "$@" 2>/dev/null | value "$member"
}

# The same, its sessions secured: secured_program SETTINGS PROGRAM MEMBER ARGUMENT...
secured_program() {
	BENCH_SECURED=$1 program "${@:2}"
}

# Round trips of who sleeps, by the slowest of a hundred; -shaking: while others come
shaken_ping_p99() { # [-shaking]
	local seconds=2
	secured_program "$x509" sessions p99 "ping-waiting-anywhere${1:-}" 1 | by_median
}

plain_and_4096() {
	program sessions bytes_each idle 2000 | awk '{ print $1 + 4096 }'
}

# Of a program that does round trips while octets flow: their rate by the median, by the slowest of a
# hundred, and the octets a second
beside_both() { # PROGRAM MODE SIZE
	timeout 90 "$build/$1" "$2" "$3" "$seconds" 2>/dev/null |
		jq -r '"\(1e6 / .lat_us.p50) \(1e6 / .lat_us.p99) \(.bytes_per_second)"'
}

# Which of the plain programs moves most octets a second, each tried for a short while: "way size",
# in $strongest
find_strongest() {
	local way size got best=0
	for way in bw bw-epoll bw-polled; do
		for size in 16 64 128 256; do
			got=$(seconds=0.15 program peer_tcp bytes_per_second $way $((size * 1024)))
			if [ "${got%.*}" -gt "$best" ]; then
				best=${got%.*}
				strongest="$way $((size * 1024))"
			fi
		done
	done
}

strongest_name() {
	local size=${strongest#* }
	case $strongest in
	bw-epoll*) echo "epoll, $((size / 1024))K a call" ;;
	bw-polled*) echo "polled, $((size / 1024))K a call" ;;
	*) echo "blocking, $((size / 1024))K a call" ;;
	esac
}

strongest_both() {
	# shellcheck disable=SC2086 # two words
	timeout 90 "$build/peer_tcp" $strongest "$seconds" 2>/dev/null |
		jq -r '"\(.bytes_per_second) \(.bytes_per_cpu_second)"'
}

# CPU seconds of both sides for a million operations of a program of bench/, and their context switches for
# a thousand.  It does as many all the time, also while it warms up.
used() { # PROGRAM MODE SIZE [DEPTH]
	# shellcheck disable=SC2086 # a word, or none
	timeout 90 "$build/usage" "$build/$1" "$2" "$3" "$seconds" ${4-} 2>/dev/null |
		jq -rs '(.[0].ops_per_second * .[1].seconds) as $n |
			"\(.[1].cpu_seconds / $n * 1e6) \(.[1].switches / $n * 1e3)"'
}

# ---- programs of others ----

# Output of CLIENT, while SERVER runs
with_server() { # SERVER... -- CLIENT...
	local server=()
	while [ "$1" != -- ]; do server+=("$1") && shift; done
	shift
	# shellcheck disable=SC2086 # words, or none
	timeout 60 $on_core0 "${server[@]}" >/dev/null 2>&1 &
	local pid=$!
	sleep 0.3 # these say nothing when they are ready
	# shellcheck disable=SC2086
	timeout 50 $on_core1 "$@" 2>&1
	kill "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
}

by_half() {
	awk '$1 > 0 { print 500000 / $1 }'
}

ucx() { # TEST COLUMN ITERATIONS
	next_port
	UCX_TLS=tcp UCX_NET_DEVICES=lo with_server ucx_perftest -p "$port" -- \
		ucx_perftest -p "$port" 127.0.0.1 -t "$1" -s 64 -n "$3" -w 500 -f -v |
		awk -F, -v c="$2" '/^[0-9]/ { v = $c } END { print v }'
}

# The same through shared memory
ucx_shm() { # TEST COLUMN ITERATIONS OCTETS
	next_port
	UCX_TLS=posix,cma with_server ucx_perftest -p "$port" -- \
		ucx_perftest -p "$port" 127.0.0.1 -t "$1" -s "$4" -n "$3" -w 500 -f -v |
		awk -F, -v c="$2" '/^[0-9]/ { v = $c } END { print v }'
}

ucx_shm_ping() { ucx_shm tag_lat 2 $((effort * 50000)) 64 | by_half; }
ucx_shm_rate() { ucx_shm ucp_am_bw 8 $((effort * 300000)) 64; }
ucx_shm_put() { ucx_shm ucp_put_bw 6 $((effort * 500)) 1048576 | awk '{ print $1 * 1048576 }'; }
ucx_shm_get() { ucx_shm ucp_get 6 $((effort * 500)) 1048576 | awk '{ print $1 * 1048576 }'; }

ucx_put() { ucx ucp_put_bw 8 $((effort * 30000)); }
ucx_get() { ucx ucp_get 8 $((effort * 300)); } # a thousand a second
ucx_ping() { ucx tag_lat 2 $((effort * 5000)) | by_half; }
ucx_rate() { ucx ucp_am_bw 8 $((effort * 30000)); }

fi_ping() {
	next_port
	with_server fi_pingpong -p tcp -e msg -B "$port" -I $((effort * 2000)) -S 64 -- \
		fi_pingpong -p tcp -e msg -P "$port" -I $((effort * 2000)) -S 64 127.0.0.1 |
		awk '/^64 / { print $7 }' | by_half
}

sock_ping() {
	next_port
	with_server sockperf server --tcp -i 127.0.0.1 -p "$port" --nonblocked -- \
		sockperf ping-pong --tcp -i 127.0.0.1 -p "$port" -m 64 -t 1 --nonblocked |
		sed -n 's/.*percentile 50\.0*  *= *\([0-9.]*\).*/\1/p' | by_half
}

# ---- perftest over the drop-in ----

perftest() { # PROGRAM OPTION...
	local over=("$build/sessctl" run)
	next_port
	DDPSESS_RETRY_MS=10000 DDPSESS_CONF=/dev/null \
		with_server "${over[@]}" "$@" -F -R -p "$port" -- \
		"${over[@]}" "$@" -F -R -p "$port" 127.0.0.1
}

verbs_bw() { # in octets a second; perftest's MB are of 2^20
	perftest ib_write_bw -s 1048576 -n $((effort * 300)) |
		awk '$1 == 1048576 { print $4 * 1048576 }'
}

verbs_ping() { # ib_send_lat|ib_write_lat
	perftest "$1" -s 64 -n $((effort * 1000)) | awk '$1 == 64 { print $5 }' | by_half
}

# Of a Read perftest tells the whole round trip.
verbs_read_ping() {
	perftest ib_read_lat -s 64 -n $((effort * 1000)) | awk '$1 == 64 { print $5 }' | by_median
}

# near COMMAND...: the drop-in through shared memory
near() {
	DDPSESS_SHM=auto "$@"
}

# unpinned COMMAND...: each thread where the system lets it run
unpinned() {
	local on_core0='' on_core1=''
	"$@"
}

# Messages a second, posted in lists of so many; perftest tells millions
verbs_rate() { # LENGTH
	perftest ib_send_bw -s 64 -l "$1" -n $((effort * 25600)) |
		awk '$1 == 64 { print $5 * 1000000 }'
}
