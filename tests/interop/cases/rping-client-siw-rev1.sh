# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# siw as an MPA Rev 1 initiator, then rping.
# needs: example-rping_peer
siw param mpa_version=1
capture
rping_listen "tcp://$HOST:0"
guest "timeout 90 rping -c -a $HOST -p $port -S 1000 -C 5" >"$work/rping" ||
	fail "rping -c: $(tail -n 1 "$work/rping")"
host_wait rping || fail "rping_peer: $(tail -n 1 "$work/rping.err")"
judge
