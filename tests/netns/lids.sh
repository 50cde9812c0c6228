#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# InfiniBand's face between hosts: a LID leads to the peer through the subnet that both are in.
# usage: SESSCTL=... lids.sh
# shellcheck disable=SC2154,SC2317 # variables of lib.bash, and functions that check calls
set -u
# shellcheck source=/dev/null
. "$(dirname "$0")/lib.bash"
# shellcheck disable=SC2034 # of check.bash
what="LIDs between namespaces"
export DDPSESS_CONF=/dev/null DDPSESS_RETRY_MS=15000
[ -n "$(type -P ibv_rc_pingpong)" ] || skip "there is no ibv_rc_pingpong: package ibverbs-utils"
make_net >"$work/check.log" 2>&1 || skip "no network namespaces: $(tail -n 1 "$work/check.log")"

with_lids() { # NODE WIRE PROGRAM...
	in_ns "$1" timeout 30 "$SESSCTL" run --face ib --transport "$2" -- "${@:3}"
}

pingpong() { # WIRE
	local server status=0
	with_lids 2 "$1" ibv_rc_pingpong -n 100 >"$work/server" 2>&1 &
	server=$!
	for ((i = 0; i < 200; i++)); do
		[ -z "$(in_ns 2 ss -Hltn 'sport = :18515')" ] || break
		nap
	done
	with_lids 3 "$1" ibv_rc_pingpong -n 100 192.0.2.2 || status=1
	wait "$server" && [ "$status" = 0 ] && grep -q 'remote address: *LID 0x0003,.* GID ::$' "$work/server"
}

shows() { # NODE LID
	with_lids "$1" tcp ibv_devinfo | grep -q "port_lid:[[:space:]]*$2\$"
}

# A host alone in its subnet: nobody can be named by a LID.
alone() {
	in_ns 3 ip addr flush dev eth0 && in_ns 3 ip addr add 192.0.2.3/32 dev eth0 || return
	shows 3 0 2>"$work/why" && grep -q "no LID: its address 192.0.2.3 is alone in its IP subnet" "$work/why" &&
		[ "$(wc -l <"$work/why")" = 1 ]
}

# rsockets make an address handle of the port's own LID, also where that is 0.
datagrams_alone() {
	local server status=0
	with_lids 3 tcp udpong -b 192.0.2.3 -p 7555 >"$work/server" 2>&1 &
	server=$!
	for ((i = 0; i < 200; i++)); do
		[ -z "$(in_ns 3 ss -Hlun 'sport = :7555')" ] || break
		nap
	done
	with_lids 3 tcp udpong -C 20 -S 500 -p 7555 -s 192.0.2.3 >"$work/client" 2>&1 || status=1
	kill "$server"
	wait "$server"
	return "$status"
}

mkfifo "$work/never"
check "a LID is the host's part of the address" shows 3 3
for wire in tcp sctp; do
	check "two hosts meet by LIDs over $wire" pingpong "$wire"
done
check "a host without a subnet has no LID, and is told so" alone
[ -z "$(type -P udpong)" ] || check "datagrams of rsockets on a host without a LID" datagrams_alone
exit "$failed"
