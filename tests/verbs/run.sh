#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Unmodified verbs programs over the drop-in, both ends on this host.  One line a case.
# usage: run.sh BUILD [ROUNDS [PATTERN]]
set -u
rounds=${2:-1} pattern=${3:-.}
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

perf() { # PROGRAM OPTION...
	pair "$*" "$* -F -R -p @" "$* -F -R -p @ 127.0.0.1"
}

alone() { # TEXT COMMAND...
	local text=$1
	shift
	[[ "$*" =~ $pattern ]] || return 0
	if timeout 60 "${load[@]}" "$@" >"$work/out" 2>&1 && grep -q "$text" "$work/out"; then
		echo "ok $*"
	else
		failed=1
		echo "not ok $*: $(tail -n 2 "$work/out" | tr '\n' ' ')"
	fi
}

all() {
	pair "rping" "rping -s -a 127.0.0.1 -p @ -C 20 -S 65000 -V" \
		"rping -c -a 127.0.0.1 -p @ -C 20 -S 65000 -V"
	pair "rdma_server" "rdma_server -p @" "rdma_client -s 127.0.0.1 -p @"
	pair "ucmatose" "ucmatose -b 127.0.0.1 -p @" "ucmatose -s 127.0.0.1 -p @"
	perf ib_send_bw -n 500
	perf ib_send_bw -n 500 -e
	perf ib_send_bw -n 500 --use-srq
	perf ib_send_lat -n 500
	perf ib_send_lat -n 500 --use-srq
	perf ib_send_lat -n 500 -e
	perf ib_write_bw -n 200 -a
	perf ib_write_bw -n 500 -q 4
	perf ib_write_lat -n 500
	perf ib_read_bw -n 500
	perf ib_read_lat -n 500
	perf ib_atomic_bw -n 500
	perf ib_atomic_lat -n 500 -A CMP_AND_SWAP
}

# The drop-in under the libraries' own names.
soname() {
	local load=("$sessctl" run --mode soname --)
	pair "rping (soname)" "rping -s -a 127.0.0.1 -p @ -C 20" \
		"rping -c -a 127.0.0.1 -p @ -C 20"
	pair "ib_write_bw (soname)" "ib_write_bw -F -R -p @ -n 200" \
		"ib_write_bw -F -R -p @ -n 200 127.0.0.1"
}

# Queue pairs that the programs connect themselves, by numbers and GIDs over TCP.
own_way() {
	local asks_once=1 o
	for o in "rc_pingpong -g 0 -c" "rc_pingpong -g 0 -e -s 65536 -n 100" "rc_pingpong -g 0 -N" \
		"srq_pingpong -g 0 -q 4"; do
		pair "ibv_$o" "ibv_$o -p @" "ibv_$o -p @ 127.0.0.1"
	done
	for o in "write_bw -n 200 -q 4" "send_lat -n 200" "read_bw -n 200" "atomic_bw -n 200"; do
		pair "ib_$o without rdma_cm" "ib_$o -F -x 0 -p @" "ib_$o -F -x 0 -p @ 127.0.0.1"
	done
}

# rdma-core's rsockets use the drop-in as programs do.
rsockets() {
	local o
	for o in "-C 20 -S 65536" "-T n -C 10 -S 4096" "-T b -C 10 -S 40000"; do
		pair "rstream $o" "rstream -T v $o -p @" "rstream -T v $o -p @ -s 127.0.0.1"
	done
	# riostream's server says how much may be mapped when it listens already, which is too late
	# for a client that has been asking for that moment.
	for o in "-C 10 -S 65536" "-T n -C 10 -S 4096"; do
		asks_once=1 pair "riostream $o" "riostream -T v $o -p @" "riostream -T v $o -p @ -s 127.0.0.1"
	done
	copy
	# shellcheck disable=SC2016 # the loader expands it: whichever directory has the library
	LD_PRELOAD='/usr/$LIB/rsocket/librspreload.so' \
		pair "plain sockets" "$build/verbs-plain @" "$build/verbs-plain @ 127.0.0.1"
}

# rcopy's server serves for ever; a name that begins with - makes rcopy one.
copy() {
	local server
	[[ rcopy =~ $pattern ]] || return 0
	free_port
	head -c 3000000 /dev/urandom >"$work/from"
	rm -f "$work/to"
	timeout 60 "${load[@]}" rcopy -p "$port" >"$work/server" 2>&1 &
	server=$!
	timeout 60 "${load[@]}" rcopy "$work/from" "127.0.0.1:$work/to" -p "$port" \
		>"$work/client" 2>&1 && [ "$(sha256sum <"$work/from")" = "$(sha256sum <"$work/to")" ]
	report "rcopy over $DDPSESS_TRANSPORT" "$?" 0
	kill "$server"
	wait "$server" 2>/dev/null
}

# As somebody without rights, in a group of nobody's.
unprivileged() {
	local load=("$sessctl" run --)
	if [ "$(id -u)" = 0 ]; then
		load=(setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all
			--inh-caps=-all --no-new-privs "${load[@]}")
	fi
	pair "rping (unprivileged)" "rping -s -a 127.0.0.1 -p @ -C 20" \
		"rping -c -a 127.0.0.1 -p @ -C 20"
	pair "ib_read_bw (unprivileged)" "ib_read_bw -F -R -p @ -n 200" \
		"ib_read_bw -F -R -p @ -n 200 127.0.0.1"
}

dlopened() {
	local load=("$sessctl" run --mode soname --)
	alone ddp0 "$build/verbs-dlopen"
}

alone ddp0 ibv_devices
dlopened
alone "transport:.*iWARP" ibv_devinfo -v
for ((i = 0; i < rounds; i++)); do
	for DDPSESS_TRANSPORT in tcp sctp; do
		export DDPSESS_TRANSPORT
		all
		own_way
		rsockets
		soname
		unprivileged
	done
done
exit "$failed"
