#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# UCX: its device, and each test of ucx_perftest that goes over rc_verbs and ud_verbs, TIMES times; and
# some in UCX's own TCP.  Tests of one transport run one behind another in one pair of processes, each
# with connections of its own.  Datagrams go over UDP, whatever the wire of sessions is.
# usage: ucx.sh BUILD
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/programs/lib.sh
. tests/programs/lib.sh
needs ucx_info ucx_perftest
patience=100
options=(--face roce)

cat >"$work/rc_verbs" <<END
put_lat -t put_lat
put_bw -t put_bw -D bcopy -s 4096
put_bw_zcopy -t put_bw -D zcopy -s 100000
get -t get -D bcopy -s 4096
get_zcopy -t get -D zcopy -s 100000
am_lat -t am_lat
am_bw -t am_bw -D bcopy -s 4096
am_bw_zcopy -t am_bw -D zcopy -s 4096
add_lat -t add_lat
add_mr -t add_mr
fadd -t fadd
cswap -t cswap
END
cat >"$work/ud_verbs" <<END
am_lat -t am_lat
am_bw -t am_bw -D bcopy -s 900
am_bw_zcopy -t am_bw -D zcopy -s 900
END
cat >"$work/UCP" <<END
tag_lat -t tag_lat
tag_bw -t tag_bw
tag_bw_long -t tag_bw -s 300000
tag_sync_lat -t tag_sync_lat
ucp_am_bw -t ucp_am_bw -s 10000
ucp_put_lat -t ucp_put_lat
ucp_put_bw -t ucp_put_bw -s 10000
ucp_get -t ucp_get -s 10000
ucp_add -t ucp_add
ucp_fadd -t ucp_fadd
ucp_swap -t ucp_swap
ucp_cswap -t ucp_cswap
stream_lat -t stream_lat
stream_bw -t stream_bw -s 10000
END

once() { # WIRE TESTS OPTION...: the client has the last word of each of them, 200 turns
	local c=0 s=0 file=$work/$2
	free_port
	begin "$work/server" on "$1" ucx_perftest -p "$port" -n 200 -w 10 -b "$file" "${@:3}"
	await_listener "$port"
	on "$1" ucx_perftest -p "$port" -n 200 -w 10 -b "$file" "${@:3}" 127.0.0.1 >"$work/client" 2>&1 || c=$?
	[ "$c" = 0 ] || stop_all
	[ ${#pids[@]} = 0 ] || wait "${pids[0]}" || s=$?
	pids=()
	[ "$c$s" = 00 ] && [ "$(grep -c '^Final: *200' "$work/client")" = "$(wc -l <"$file")" ]
}

perf() { # WIRE TESTS OPTION...
	local name i times=${TIMES:-10}
	name="UCX's $(wc -l <"$work/$2") tests of $2, ${1/plain/its own TCP}"
	for ((i = 1; i <= times; i++)); do
		once "$@" || break
	done
	if [ "$i" -gt "$times" ]; then
		ok "$name, $times times"
	else
		grep -h -e 'FATAL' -e 'ERROR' -e 'ssert' "$work"/{server,client} | head -n 4 >"$work/why"
		sed -n 's/^+\([a-z][a-z_]*\)-.*/\1/p' "$work/client" | tail -n 1 >>"$work/why"
		not_ok "$name, try $i of $times" "$work"/{server,client,why}
	fi
}

if on tcp ucx_info -d >"$work/out" 2>&1 && grep -q 'Device: ddp0:1' "$work/out" &&
	grep -q 'Transport: rc_verbs' "$work/out" && grep -q 'Transport: ud_verbs' "$work/out"; then
	ok "UCX's ucx_info lists the device"
else
	not_ok "UCX's ucx_info lists the device" "$work/out"
fi
perf tcp ud_verbs -d ddp0:1 -x ud_verbs
for wire in ${WIRES:-tcp sctp}; do
	perf "$wire" rc_verbs -d ddp0:1 -x rc_verbs
	UCX_TLS=rc_verbs,ud_verbs perf "$wire" UCP
done
TIMES=1 UCX_TLS=tcp perf plain UCP
exit "$failed"
