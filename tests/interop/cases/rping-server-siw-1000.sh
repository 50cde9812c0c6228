# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# 1000 pings, we call.
# needs: example-rping_peer
rping_server -S 1000
host timeout 250 "$build/example-rping_peer" -c "tcp://$GUEST:$PORT" -S 1000 -C 1000 \
	>"$work/out" 2>"$work/err" || fail "rping_peer: $(tail -n 1 "$work/err")"
grep -qx '1000 pings of 1000 octets' "$work/out" || fail "$(tail -n 1 "$work/out")"
