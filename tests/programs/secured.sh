#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Whole programs over the secured wires, in a network of their own, with a capture of all that goes over it.
# What they move has marks, and the capture has none of them; over TCP it has each, or this would show nothing.
# usage: secured.sh BUILD [PATTERN]
set -u
cd "$(dirname "$0")/../.." || exit 1
if [ -z "${DDPS_OWN_NETWORK:-}" ]; then
	[ -n "$(type -P dumpcap)" ] || {
		echo "ok secured # skipped: there is no dumpcap (tshark)"
		exit 0
	}
	user=()
	[ "$(id -u)" = 0 ] || user=(--user --map-root-user)
	unshare "${user[@]}" -n true 2>/dev/null || {
		echo "ok secured # skipped: no network of its own can be had here"
		exit 0
	}
	DDPS_OWN_NETWORK=1 exec unshare "${user[@]}" -n "$0" "$@"
fi
pattern=${2:-.}
# shellcheck source=tests/programs/lib.sh
. tests/programs/lib.sh
needs rping rcopy ib_send_bw ip
ip link set lo up
ip link add own type veth peer name other && ip link set other up && ip link set own up &&
	ip address add 192.0.2.1/24 dev own
(cd "$work" && "$sessctl" keys psk both >/dev/null) || exit 1

# Over one wire; the capture is whole when its end is in it.
captured() { # WIRE COMMAND...
	local i dump
	rm -f "$work/lo.pcap"
	dumpcap -q -i lo -B 256 -f "udp or tcp" -w "$work/lo.pcap" >"$work/dumpcap" 2>&1 &
	dump=$!
	until_true 20 test -s "$work/lo.pcap"
	(
		unset DDPSESS_TLS_PSK
		case $1 in tls | sctps) export DDPSESS_TLS_PSK=$work/both.psk ;; esac
		WIRES=$1 "${@:2}"
	)
	i=$?
	echo "the end of it" >/dev/udp/127.0.0.1/9
	until_true 20 grep -aqF "the end of it" "$work/lo.pcap"
	kill "$dump"
	wait "$dump"
	return "$i"
}

# marked PATTERN: whether the capture has it, a regular expression of octets
marked() {
	LC_ALL=C grep -aqP "$1" "$work/lo.pcap"
}

both_ways() { # NAME PATTERN COMMAND...; without a pattern it has only to run
	local wire
	[[ $1 =~ $pattern ]] || return 0
	for wire in tcp tls sctps; do
		if ! captured "$wire" "${@:3}" >"$work/said" 2>&1; then
			not_ok "$1 over $wire" "$work/said"
		elif [ -z "$2" ]; then
			ok "$1 over $wire"
		elif [ "$wire" = tcp ] && marked "$2"; then
			ok "$1, a capture over tcp has what is moved"
		elif [ "$wire" = tcp ]; then
			not_ok "$1, a capture over tcp does not have what is moved" "$work/dumpcap"
		elif marked "$2"; then
			not_ok "$1 over $wire: something was moved in plain" "$work/said"
		else
			ok "$1 over $wire, nothing of it in plain"
		fi
	done
}

# shellcheck disable=SC2317 # both_ways calls these three
pair() { # SERVER -- CLIENT: as words; @ is the port
	local all=$*
	local server=${all%% -- *} client=${all#* -- }
	free_port
	# shellcheck disable=SC2086 # words are meant
	begin "$work/server" on "$WIRES" ${server//@/$port}
	await_listener "$port"
	# shellcheck disable=SC2086
	on "$WIRES" ${client//@/$port}
}

# shellcheck disable=SC2317
served() { # the same, whose server ends by itself
	pair "$@" && wait "${pids[0]}"
}

# shellcheck disable=SC2317
copied() {
	rm -f "$work/to"
	fill "$work/from"
	pair rcopy -p @ -- rcopy "$work/from" "127.0.0.1:$work/to" -p @ && cmp "$work/from" "$work/to"
	local err=$?
	stop_all
	return "$err"
}

patience=60
o="-a 127.0.0.1 -p @ -C 20 -S 4000 -V"
both_ways rping rdma-ping- served rping -s "$o" -- rping -c "$o"
both_ways rcopy "$mark" copied
both_ways perftest '' served ib_send_bw -F -R -n 200 -p @ -- ib_send_bw -F -R -n 200 -p @ 127.0.0.1
both_ways "Open MPI" '\x00\x1f\x3e\x5d\x7c\x9b\xba\xd9\xf8\x17' bash tests/programs/openmpi.sh "$build"
both_ways "tgt and qemu-img, iSER" "$mark" bash tests/programs/iser.sh "$build"
KINDS="pre-copy pin-all" both_ways "QEMU live migration" '\x8e\xdb\xfe\x06\x00\x00\x81\xc3\x00\x01' \
	bash tests/programs/qemu.sh "$build"
WAYS=rdma_cm both_ways "Ceph" "$mark" bash tests/programs/ceph.sh "$build"
exit "$failed"
