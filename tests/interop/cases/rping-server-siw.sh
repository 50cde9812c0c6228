# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# We call siw's rping: our Sends, its Reads and Writes.
# needs: example-rping_peer
capture tcp port "$PORT"
for size in 64 100 1455 1456 4000 65000; do
	rping_server -S 65000
	host "$build/example-rping_peer" -c "tcp://$GUEST:$PORT" -S "$size" -C 3 \
		>"$work/rping.out" 2>"$work/rping.err" ||
		fail "rping_peer, $size octets: $(tail -n 1 "$work/rping.err")"
	rping_ended
done
judge
