# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# siw asks for no CRCs, we do: there are CRCs, and siw's are good.
# needs: example-rping_peer
siw vanilla
capture
rping_listen "tcp://$HOST:0"
guest "timeout 90 rping -c -a $HOST -p $port -S 10000 -C 20" >"$work/rping" ||
	fail "rping -c: $(tail -n 1 "$work/rping")"
host_wait rping || fail "rping_peer: $(tail -n 1 "$work/rping.err")"
judge
