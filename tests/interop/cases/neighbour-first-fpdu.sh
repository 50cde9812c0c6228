# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# A first Send right behind siw's Reply can be overlooked: 20 sessions in a row, none hangs, since
# the initiator nudges a silent peer.
# needs: example-rping_peer
rping_server -P -S 100
capture tcp port "$PORT"
for ((i = 0; i < 20; i++)); do
	host timeout 90 "$build/example-rping_peer" -c "tcp://$GUEST:$PORT" -S 100 \
		>"$work/out" 2>"$work/err" || fail "session $i: $(tail -n 1 "$work/err")"
done
capture_end
nudges=$(wire -Y "iwarp_rdma.opcode == 0 && tcp.dstport == $PORT" | wc -l)
detail "20 sessions, $nudges nudged"
