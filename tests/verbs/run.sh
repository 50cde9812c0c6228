#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Unmodified verbs programs over the drop-in, both ends on this host, each several times over either
# transport, and many of them through shared memory, without rights.  One line a case.
# usage: run.sh BUILD [TIMES [PATTERN]]
set -u
pattern=${3:-.}
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"
times=${2:-10}

# perftest, with a fast clock: see quick_clock.c.
perf() { # PROGRAM OPTION...
	LD_PRELOAD=$build/verbs-clock.so pair "$*" "$* -F -R -p @" "$* -F -R -p @ 127.0.0.1"
}

# Every option of these that the program has: ib_write_* knows no events, only Sends receives.
perftest() {
	local o
	for o in send write read; do
		perf "ib_${o}_bw" -n 5 -a
		perf "ib_${o}_lat" -n 5 -a
		perf "ib_${o}_bw" -n 500 -q 16 # a multiple of 100: docs/verbs.md
		perf "ib_${o}_lat" -n 50
		# both ways; the last has more on its way than the sockets take
		perf "ib_${o}_bw" -b -n 5 -a
		perf "ib_${o}_bw" -b -n 20 -q 4
		perf "ib_${o}_bw" -b -n 60 -t 8 -s 1000000
	done
	perf ib_atomic_bw -b -n 200
	for o in send_bw send_lat; do
		perf "ib_$o" -n 200 --use-srq
	done
	for o in send_lat read_bw read_lat; do
		perf "ib_$o" -n 20 -e
	done
	# with small ones perftest hangs by itself: docs/verbs.md
	perf ib_send_bw -n 30 -s 8388608 -e -Q 1
	perf ib_atomic_bw -n 200
	perf ib_atomic_lat -n 50 -A CMP_AND_SWAP
}

rdma_cm() {
	local o="-a 127.0.0.1 -p @ -C 20 -S 65000 -V"
	pair "rping" "rping -s $o" "rping -c $o"
	# of two that ask at the same time rping's server takes the second twice
	clients=3 for_ever=1 pair "rping -P, 3 clients" "rping -s -P $o" "rping -c $o"
	pair "rdma_server" "rdma_server -p @" "rdma_client -s 127.0.0.1 -p @"
	for_ever=1 check="grep -q '^connect ' client0" \
		pair "cmtime" "cmtime -p @" "cmtime -s 127.0.0.1 -p @ -c 20"
	pair "ucmatose" "ucmatose -b 127.0.0.1 -p @" "ucmatose -s 127.0.0.1 -p @"
}

devices() {
	alone ddp0 ibv_devices
	alone "transport:.*iWARP" ibv_devinfo -v
}

# The drop-in under the libraries' own names.
soname() {
	local load=("${rights[@]}" "$sessctl" run --mode soname --)
	alone ddp0 "$build/verbs-dlopen"
	pair "rping (soname)" "rping -s -a 127.0.0.1 -p @ -C 20" \
		"rping -c -a 127.0.0.1 -p @ -C 20"
	LD_PRELOAD=$build/verbs-clock.so \
		pair "ib_write_bw (soname)" "ib_write_bw -F -R -p @ -n 200" \
		"ib_write_bw -F -R -p @ -n 200 127.0.0.1"
	# as a perftest that gives its credits' region back, which can come before these libraries only
	LD_PRELOAD=$build/verbs-clock.so listen_first=1 \
		pair "ib_send_bw (soname) without rdma_cm" "ib_send_bw -F -x 0 -p @ -n 200" \
		"ib_send_bw -F -x 0 -p @ -n 200 127.0.0.1"
}

# Datagrams, which are the same over either.  udaddy and mckey have one port: addresses differ.
datagrams() {
	local o
	[ "$DDPSESS_TRANSPORT" = tcp ] || return 0
	pair "udaddy" "udaddy -b 127.@ -c 3" "udaddy -s 127.@ -c 3"
	member_first=1 pair "mckey" "mckey -m 239.@ -b 127.0.0.1" "mckey -m 239.@ -b 127.0.0.1 -s"
	for_ever=1 listen_first=1 pair "udpong" "udpong -b 127.0.0.1 -p @" \
		"udpong -s 127.0.0.1 -p @ -C 50 -S 500"
	o="-g 0 -n 100 -p @"
	listen_first=1 pair "ibv_ud_pingpong" "ibv_ud_pingpong $o" "ibv_ud_pingpong $o 127.0.0.1"
	listen_first=1 pair "ibv_ud_pingpong -e" "ibv_ud_pingpong -e $o" \
		"ibv_ud_pingpong -e $o 127.0.0.1"
	perf ib_send_lat -c UD -n 50
	DDPSESS_FACE=roce perf ib_send_bw -c UD -n 1000
	for o in "lat -n 50" "bw -n 1000"; do
		o="ib_send_$o -c UD -F -x 0 -p @"
		LD_PRELOAD=$build/verbs-clock.so DDPSESS_FACE=roce listen_first=1 \
			pair "${o%% -F*} without rdma_cm" "$o" "$o 127.0.0.1"
	done
}

# Queue pairs that the programs connect themselves, by numbers and GIDs over TCP.
own_way() {
	local listen_first=1 o
	for o in "rc_pingpong -c" "rc_pingpong -e -s 65536" "rc_pingpong -N" "rc_pingpong -t" \
		"uc_pingpong -c" "uc_pingpong -e -s 65536"; do
		o="$o -g 0 -n 100" # both poll: on a busy machine each exchange takes a time slice
		pair "ibv_$o" "ibv_$o -p @" "ibv_$o -p @ 127.0.0.1"
	done
	# Whoever has counted enough leaves, also while its peer still answers on another queue pair:
	# docs/verbs.md.
	o="ibv_srq_pingpong -q 4 -g 0 -n 100"
	its_own="Work Request Flushed Error" pair "$o" "$o -p @" "$o -p @ 127.0.0.1"
	for o in "write_bw -n 200 -q 4" "send_lat -n 50" "read_bw -n 200" "atomic_bw -n 200"; do
		LD_PRELOAD=$build/verbs-clock.so pair "ib_$o without rdma_cm" \
			"ib_$o -F -x 0 -p @" "ib_$o -F -x 0 -p @ 127.0.0.1"
	done
}

# LIDs lead to the peer, of programs that exchange no GID.
infiniband() {
	local listen_first=1 o
	export DDPSESS_FACE=ib
	alone "link_layer:.*InfiniBand" ibv_devinfo
	for o in rc_pingpong uc_pingpong ud_pingpong "srq_pingpong -q 1"; do
		o="$o -n 100"
		pair "ibv_$o by LID" "ibv_$o -p @" "ibv_$o -p @ 127.0.0.1"
	done
	for o in "write_bw -n 200" "send_lat -n 50" "read_bw -n 200" "send_bw -c UD -n 200"; do
		LD_PRELOAD=$build/verbs-clock.so pair "ib_$o by LID" \
			"ib_$o -F -p @" "ib_$o -F -p @ 127.0.0.1"
	done
	o="-a 127.0.0.1 -p @ -C 20 -S 65000 -V"
	pair "rping on InfiniBand" "rping -s $o" "rping -c $o"
	unset DDPSESS_FACE
}

# rdma-core's rsockets use the drop-in as programs do.
rsockets() {
	local o
	for o in "-C 20 -S 65536" "-T n -C 10 -S 4096" "-T b -C 10 -S 40000"; do
		pair "rstream $o" "rstream -T v $o -p @" "rstream -T v $o -p @ -s 127.0.0.1"
	done
	for o in "-C 10 -S 65536" "-T n -C 10 -S 4096"; do
		# its server sets the options of new connections after it has begun to listen
		listen_first=1 pair "riostream $o" "riostream -T v $o -p @" \
			"riostream -T v $o -p @ -s 127.0.0.1"
	done
	# the digest of what the server wrote; the next try starts without it
	for_ever=1 check="sha256sum --status -c $work/digest && rm to" \
		pair "rcopy" "rcopy -p @" "rcopy $work/from 127.0.0.1:to -p @"
	plain_sockets "plain sockets" "$build/verbs-plain @" "$build/verbs-plain @ 127.0.0.1"
	plain_program "iperf -n 1M" "-s -P 1 -B 127.0.0.1 -p @" "-c 127.0.0.1 -p @"
	plain_program "NPtcp -u 4096 -n 5" "-P @" "-P @ -h 127.0.0.1"
}

# Programs of sockets that know nothing of RDMA; what they send does go through the drop-in.
plain_sockets() { # NAME SERVER CLIENT
	# shellcheck disable=SC2016 # the loader expands it: whichever directory has the library
	LD_PRELOAD='/usr/$LIB/rsocket/librspreload.so' DDPSESS_STATS=on listen_first=1 \
		check="grep -q 'messages sent: [1-9]' client0" pair "$@"
}

plain_program() { # COMMAND SERVER-OPTIONS CLIENT-OPTIONS
	if command -v "${1%% *}" >/dev/null; then
		plain_sockets "contact 28: $1" "$1 $2" "$1 $3"
	elif [[ "contact 28: $1" =~ $pattern ]]; then
		echo "ok contact 28: $1 over $DDPSESS_TRANSPORT # skipped: ${1%% *} is not installed"
	fi
}

# All of 1 MiB, by 16 requests.
fio() {
	local verb o="--thread --ioengine=rdma --port=@ --bs=64k --size=1m --iodepth=8"
	for verb in write read send; do
		check="grep -q 'issued rwts: total=0,16,' client0" \
			pair "fio --verb=$verb" "fio --name=server $o --rw=read" \
			"fio --name=client $o --rw=write --hostname=127.0.0.1 --verb=$verb"
	done
}

# These run for a second by the clock, so that more of them at a time do less each.
qperf() {
	local t
	for t in rc_bw rc_bi_bw rc_lat rc_rdma_read_bw rc_rdma_read_lat rc_rdma_write_bw \
		rc_rdma_write_lat rc_rdma_write_poll_lat rc_compare_swap_mr rc_fetch_add_mr \
		ver_rc_compare_swap ver_rc_fetch_add; do
		check="grep -q ' = .*[1-9]' client0" listen_first=1 pair "qperf -cm 1 $t" "qperf -lp @" \
			"qperf -lp @ -cm 1 -t 1 -to 30 127.0.0.1 $t quit"
	done
	DDPSESS_FACE=ib check="grep -q ' = .*[1-9]' client0" listen_first=1 pair "qperf rc_lat by LID" \
		"qperf -lp @" "qperf -lp @ -t 1 -to 30 127.0.0.1 rc_lat quit"
}

# What runs on adapters runs in strict mode: of each face what its adapters have.
strict() {
	local o face
	for face in iwarp roce; do
		o="-a 127.0.0.1 -p @ -C 20 -S 65000 -V"
		DDPSESS_STRICT=on DDPSESS_FACE=$face \
			pair "contact 29: rping --strict, $face" "rping -s $o" "rping -c $o"
		for o in send_bw send_lat write_bw write_lat read_bw read_lat; do
			o="ib_$o -n 200 -F -R -p @"
			DDPSESS_STRICT=on DDPSESS_FACE=$face LD_PRELOAD=$build/verbs-clock.so \
				pair "contact 29: ${o%% *} --strict, $face" "$o" "$o 127.0.0.1"
		done
	done
	o="ib_write_bw -F -x 0 -n 200 -p @"
	DDPSESS_STRICT=on DDPSESS_FACE=roce LD_PRELOAD=$build/verbs-clock.so listen_first=1 \
		pair "contact 29: ib_write_bw --strict without rdma_cm" "$o" "$o 127.0.0.1"
}

transports() { # CASES: both transports, one after the other
	for DDPSESS_TRANSPORT in tcp sctp; do
		export DDPSESS_TRANSPORT
		case $1 in
		short)
			devices
			rdma_cm
			perftest
			own_way
			infiniband
			strict
			datagrams
			rsockets
			soname
			fio
			;;
		timed) qperf ;;
		esac
	done
}

# Wires with TLS: some of what rdma_cm connects, a third as often.
secured() {
	local times=$(((times + 2) / 3)) DDPSESS_TLS_PSK=$work/both.psk o
	(cd "$work" && "$sessctl" keys psk both >/dev/null) || exit 1
	[ "$(id -u)" != 0 ] || chown 65534 "$DDPSESS_TLS_PSK"
	export DDPSESS_TLS_PSK
	for DDPSESS_TRANSPORT in tls sctps; do
		export DDPSESS_TRANSPORT
		rdma_cm
		perf ib_send_bw -n 5 -a
		perf ib_write_lat -n 50
		perf ib_read_bw -b -n 20 -q 4
		o="-C 20 -S 65536"
		pair "rstream $o" "rstream -T v $o -p @" "rstream -T v $o -p @ -s 127.0.0.1"
		plain_sockets "plain sockets" "$build/verbs-plain @" "$build/verbs-plain @ 127.0.0.1"
		fio
	done
	wait
	unset DDPSESS_TLS_PSK
}

# TCP makes way for it.
shared_memory() {
	local DDPSESS_TRANSPORT=tcp
	export DDPSESS_TRANSPORT DDPSESS_SHM=auto
	rdma_cm
	perftest
	rsockets
	fio
	unset DDPSESS_SHM
}

head -c 3000000 /dev/urandom >"$work/from"
sha256sum <"$work/from" | sed 's/-$/to/' >"$work/digest"
drop_rights
more_lanes 4
transports short
shared_memory
secured
more_lanes 8
transports timed
finish
