# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# The guest falls silent in mid-transfer: our side gives up by its own deadline.
# needs: example-rping_peer
rping_server -S 1000
host_start rping "$build/example-rping_peer" -c "tcp://$GUEST:$PORT" -S 1000 -C 1000000
guest 'for ((i = 0; i < 200; i++)); do ss -Hnt | grep -q ESTAB.*:7174 && break; sleep 0.05; done
	{ sleep 0.5; tc qdisc add dev eth0 root netem loss 100%; } >/dev/null 2>&1 &'
host_wait rping && fail "rping_peer took silence for success"
grep -q 'waiting for the peer' "$work/rping.err" || fail "$(tail -n 1 "$work/rping.err")"
