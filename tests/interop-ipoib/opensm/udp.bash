# SPDX-License-Identifier: BSD-2-Clause
# A subnet in UDP on the loopback device of a namespace: two bridges, the first with the administration.
# shellcheck shell=bash disable=SC2154

skip() { # WHY
	echo "ok $what # skipped: $1"
	exit 0
}

udp_net=ddps-udp$$
udp_nodes=()

udp_node() { # N OPTION...: LID N
	local n=$1
	shift
	ip netns exec "$udp_net" "$SESSCTL" ipoib bridge --json --tun "ib$n" --port ib --gid "fe80::$n" \
		--udp "127.0.0.$n:4791" --sa 127.0.0.1 --ip "10.9.$n.1/24" "$@" \
		>"$work/udp$n.out" 2>"$work/udp$n.err" &
	udp_nodes+=($!)
}

udp_joined() { # N
	ip netns exec "$udp_net" "$SESSCTL" ipoib bridge status --json --tun "ib$1" 2>&1 | grep -q '"state":"up"'
}

udp_start() {
	ip netns add "$udp_net" && ip -n "$udp_net" link set lo up || return
	udp_node 1 --partition 0x8002
	until_ready 10 udp_joined 1 || return
	udp_node 2
	until_ready 10 udp_joined 2
}

udp_stop() {
	local p
	for p in "${udp_nodes[@]}"; do kill "$p" 2>/dev/null && wait "$p"; done
	ip netns del "$udp_net" 2>/dev/null
}

udp_run() { # N COMMAND...: as node N of that subnet
	local n=$1
	shift
	ip netns exec "$udp_net" timeout --foreground -k 1 20 "$SESSCTL" run \
		--fabric "127.0.0.$n:4791,127.0.0.1,fe80::$n" -- "$@"
}
