# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# We call siw's rping as a peer-to-peer initiator: siw takes our RTR, Write or Read, for none of
# its data, and answers the Read.
# needs: example-rping_peer
capture tcp port "$PORT"
for type in write read; do
	rping_server -S 1000
	host "$build/example-rping_peer" -c "tcp://$GUEST:$PORT" -R $type -S 1000 -C 3 \
		>"$work/rping.out" 2>"$work/rping.err" ||
		fail "rping_peer, $type: $(tail -n 1 "$work/rping.err")"
	rping_ended
done
judge
# one zero-length Read Response and three that carry the payload
answers=$(wire -Y 'iwarp_rdma.opcode == 2 && tcp.stream == 1' | wc -l)
[ "$answers" = 4 ] || fail "$answers Read Responses, not 4"
