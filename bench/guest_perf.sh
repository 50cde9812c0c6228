#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# In the guest of guest.sh: a program of perftest over one of the kernel's devices, or over ours.
# usage: guest_perf.sh both|serve|ask WIRE PROGRAM SIZE PAIRS NETDEV ADDRESS
# ask and both print messages a second; of a program for latency, halves of round trips a second.
set -u
role=$1 wire=$2 program=$3 size=$4 pairs=$5 netdev=$6 address=$7
PATH=/usr/local/bin:$PATH
out=/tmp/perf.$$
cd /tmp || exit

# One device for each program, so that rdma_cm has no choice.
device() {
	local link
	for link in /sys/class/infiniband/*; do
		[ ! -e "$link" ] || rdma link delete "${link##*/}" || return
	done
	[ -z "$1" ] || rdma link add "$1" type "$1" netdev "$netdev"
}

case $wire in
plain) # a round trip is two messages
	timeout 60 peer_tcp ping "$size" 1 | sed -nE 's/.*"ops_per_second":([0-9.]+).*/\1/p' | awk '{ print 2 * $1 }'
	exit
	;;
siw | rxe)
	[ "$role" = ask ] && [ "$address" = local ] || device "$wire" || exit
	over=() name=$wire
	;;
*)
	over=(sessctl run --transport "$wire" --) name=ddp0
	[ "$wire" != tcp ] || over=(sessctl run --crc off --) # as soft-iWARP
	[ "$wire" != shm ] || over=(sessctl run --crc off --shm auto --)
	;;
esac

case $program,$size in
*_lat,64 | *_lat,4096) messages=1000 ;;
*_lat,65536) messages=100 ;;
*_lat,*) messages=20 ;;
*,64 | *,4096) messages=8000 ;;
*,65536) messages=640 ;;
*) messages=64 ;;
esac
each=$((messages / pairs))
options=(-d "$name" -R -F -s "$size" -n $((each < 8 ? 8 : each)))
[[ $program == *_lat ]] || options+=(-q "$pairs")

serve() {
	timeout 60 "${over[@]}" "$program" "${options[@]}" >"$out.server" 2>&1
}

# Until somebody serves: whoever is refused ends immediately.
ask() {
	local i
	for ((i = 0; i < 40; i++)); do
		! timeout 60 "${over[@]}" "$program" "${options[@]}" "$address" >"$out.client" 2>&1 || return 0
		sleep 0.1
	done
	tail -n 3 "$out.client" >&2
	return 1
}

# The program's clock is that of the processor, which it may fail to make out ("inf").
rate() {
	awk -v lat="${program##*_lat}" '/^ *[0-9]+ +[0-9]+ +[0-9.]/ {
		value = lat == "" ? ($5 > 0 ? 1e6 / $5 : 0) : $5 * 1e6
	} END { if (value > 0) print value; else exit 1 }' "$out.client"
}

status=0
case $role in
serve) serve || status=$? ;;
ask) ask && rate || status=$? ;;
both)
	serve &
	ask && rate || status=$?
	wait
	;;
esac
rm -f "$out".*
exit "$status"
