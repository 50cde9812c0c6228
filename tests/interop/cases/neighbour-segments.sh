# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# FPDUs that siw cuts across segments and pads: all of them are read, odd sizes too.
# needs: example-rping_peer
capture tcp port "$PORT"
rping_server -P -S 65000
for size in 65 1001 1461 30003; do
	host timeout 90 "$build/example-rping_peer" -c "tcp://$GUEST:$PORT" -S $size -C 2 \
		>"$work/out" 2>"$work/err" || fail "$size octets: $(tail -n 1 "$work/err")"
done
judge
