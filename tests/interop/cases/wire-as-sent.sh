# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# tshark's opcodes, STags, offsets and lengths against the list our side wrote: rping both ways round.
# quick
# needs: example-rping_peer
total=0
for size in 64 65000; do
	capture tcp port "$PORT"
	rping_server -S $size
	host "$build/example-rping_peer" -c "tcp://$GUEST:$PORT" -S $size -C 3 -t "$work/list" \
		>"$work/rping.out" 2>"$work/rping.err" ||
		fail "as client, $size octets: $(tail -n 1 "$work/rping.err")"
	rping_ended
	judge
	as_sent "$work/list"
	total=$((total + $(cat "$work/as_sent")))
	capture
	rping_listen "tcp://$HOST:0" -t "$work/list"
	guest "timeout 90 rping -c -a $HOST -p $port -S $size -C 3" >"$work/rping" ||
		fail "rping -c -S $size: $(tail -n 1 "$work/rping")"
	host_wait rping || fail "as server, $size octets: $(tail -n 1 "$work/rping.err")"
	judge
	as_sent "$work/list"
	total=$((total + $(cat "$work/as_sent")))
done
detail "$total messages as listed"
