# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# siw's Terminate has its bits swapped: recognised, shown as such with the wire's octets.
# quick
# needs: example-rping_peer
rping_server
status=0
host timeout 90 "$build/example-rping_peer" -c "tcp://$GUEST:$PORT" -S 1000 \
	>"$work/out" 2>"$work/err" || status=$?
[ "$status" = 1 ] || fail "status $status, not 1"
grep -q 'bit-swapped.*wire 11 01' "$work/err" || fail "$(tail -n 1 "$work/err")"
