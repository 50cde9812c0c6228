# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# 100 connections to siw in a row, then 64 simultaneously; every payload checked.
# needs: example-rping_peer example-rdma_peer
rping_server -P -S 1000
for ((i = 0; i < 100; i++)); do
	host timeout 90 "$build/example-rping_peer" -c "tcp://$GUEST:$PORT" -S 100 -C 2 \
		>"$work/out" 2>"$work/err" || fail "connection $i: $(tail -n 1 "$work/err")"
done
"$lab" reset
# rping's own backlog is 3; siw_peer's is 64, and it serves them one after the other
siw_peer_server -b 1000 -n 64
for ((i = 0; i < 64; i++)); do
	host_start "many$i" timeout 90 "$build/example-rdma_peer" -c "tcp://$GUEST:$PORT"
done
for ((i = 0; i < 64; i++)); do
	host_wait "many$i" || fail "of 64 at once, $i: $(tail -n 1 "$work/many$i.err")"
done
