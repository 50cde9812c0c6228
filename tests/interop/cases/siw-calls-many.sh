# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# siw calls us 100 times in a row, then keeps 64 sessions simultaneously; every payload checked.
# limit: 1200
# needs: example-many_peer
many_listen "tcp://$HOST:0" -n 100
LAB_LIMIT=550 guest "for ((i = 0; i < 100; i++)); do
	timeout 90 siw_peer -c $HOST $port >/dev/null || exit 1; done" >"$work/there" 2>&1 ||
	fail "one of 100 in a row: $(tail -qn 1 "$work/there" "$work/many.err")"
host_wait many || fail "many_peer: $(tail -n 1 "$work/many.err")"
many_listen "tcp://$HOST:0" -n 64
LAB_LIMIT=550 guest "touch /tmp/hold; mkdir /tmp/many
	for ((i = 0; i < 64; i++)); do
		timeout 500 siw_peer -c $HOST -w /tmp/hold $port >/tmp/many/\$i & pids+=(\$!)
	done
	for ((i = 0; i < 1000; i++)); do
		[ \$(cat /tmp/many/* | grep -c connected) = 64 ] && break
		sleep 0.1
	done
	rm /tmp/hold
	for p in \${pids[@]}; do wait \$p || exit 1; done" >"$work/there" 2>&1 ||
	fail "one of 64 at once: $(tail -qn 1 "$work/there" "$work/many.err")"
host_wait many || fail "many_peer: $(tail -n 1 "$work/many.err")"
grep -qx '64 sessions, 64 at once' "$work/many.out" || fail "$(tail -n 1 "$work/many.out")"
