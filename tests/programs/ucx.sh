#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# UCX: its device, and each test of ucx_perftest that goes over rc_verbs and ud_verbs, TIMES times; and
# some in UCX's own TCP.  Datagrams go over UDP, whatever the wire of sessions is.
# usage: ucx.sh BUILD
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/programs/lib.sh
. tests/programs/lib.sh
needs ucx_info ucx_perftest
patience=40
options=(--face roce)

once() { # WIRE OPTION...
	local c=0 s=0
	free_port
	begin "$work/server" on "$1" ucx_perftest -p "$port" -n 200 -w 10 "${@:2}"
	await_listener "$port"
	on "$1" ucx_perftest -p "$port" -n 200 -w 10 "${@:2}" 127.0.0.1 >"$work/client" 2>&1 || c=$?
	[ "$c" = 0 ] || stop_all
	[ ${#pids[@]} = 0 ] || wait "${pids[0]}" || s=$?
	pids=()
	[ "$c$s" = 00 ] && grep -q '^Final: *200' "$work/client"
}

perf() { # WIRE WHAT OPTION...
	local name="UCX's ${*:2}, ${1/plain/its own TCP}" i times=${TIMES:-10}
	for ((i = 1; i <= times; i++)); do
		once "$1" "${@:3}" || break
	done
	if [ "$i" -gt "$times" ]; then
		ok "$name, $times times"
	else
		not_ok "$name, try $i of $times" "$work"/{server,client}
	fi
}

transports() { # WIRE
	local t d="-d ddp0:1 -x rc_verbs"
	# shellcheck disable=SC2086 # words are meant
	{
		for t in put_lat "put_bw -D bcopy -s 4096" "put_bw -D zcopy -s 100000" \
			"get -D bcopy -s 4096" "get -D zcopy -s 100000" am_lat "am_bw -D bcopy -s 4096" \
			"am_bw -D zcopy -s 4096" add_lat add_mr fadd cswap; do
			perf "$1" uct $d -t $t
		done
		[ "$1" = sctp ] || for t in am_lat "am_bw -D bcopy -s 900" "am_bw -D zcopy -s 900"; do
			perf "$1" uct -d ddp0:1 -x ud_verbs -t $t
		done
	}
}

protocols() { # WIRE
	local t
	# shellcheck disable=SC2086 # words are meant
	for t in tag_lat tag_bw "tag_bw -s 300000" tag_sync_lat "ucp_am_bw -s 10000" ucp_put_lat \
		"ucp_put_bw -s 10000" "ucp_get -s 10000" ucp_add ucp_fadd ucp_swap ucp_cswap \
		stream_lat "stream_bw -s 10000"; do
		perf "$1" ucp -t $t
	done
}

if on tcp ucx_info -d >"$work/out" 2>&1 && grep -q 'Device: ddp0:1' "$work/out" &&
	grep -q 'Transport: rc_verbs' "$work/out" && grep -q 'Transport: ud_verbs' "$work/out"; then
	ok "UCX's ucx_info lists the device"
else
	not_ok "UCX's ucx_info lists the device" "$work/out"
fi
for wire in ${WIRES:-tcp sctp}; do
	transports "$wire"
	UCX_TLS=rc_verbs,ud_verbs protocols "$wire"
done
TIMES=1 UCX_TLS=tcp protocols plain
exit "$failed"
