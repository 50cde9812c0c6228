# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Both roles against siw's rping over IPv6.
# needs: example-rping_peer
capture
rping_listen "tcp://[$HOST6]:0"
guest "timeout 90 rping -c -a $HOST6 -p $port -S 2000 -C 3" >"$work/rping" ||
	fail "rping -c: $(tail -n 1 "$work/rping")"
host_wait rping || fail "rping_peer -s: $(tail -n 1 "$work/rping.err")"
guest_start rping "rping -s -a $GUEST6 -p $PORT -S 2000"
guest_listens "$PORT"
host "$build/example-rping_peer" -c "tcp://[$GUEST6]:$PORT" -S 2000 -C 3 \
	>"$work/rping.out" 2>"$work/rping.err" ||
	fail "rping_peer -c: $(tail -n 1 "$work/rping.err")"
judge
