# SPDX-License-Identifier: BSD-2-Clause
# For tests/netns: three network namespaces, removed at the end, and bridges in them.
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # here: set by the scripts
SESSCTL=$(realpath "${SESSCTL:-build/opt/sessctl}")
work=$(mktemp -d)
id=$$
namespaces=()
declare -A pids=()
# shellcheck source=tests/netns/check.bash
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
# shellcheck source=tests/support/json.bash
. "$(dirname "${BASH_SOURCE[0]}")/../support/json.bash"

cleanup() {
	local n status=$?
	[[ $BASHPID = "$$" ]] || return # killed before it was a program of its own
	for n in "${!pids[@]}"; do
		kill -KILL "${pids[$n]}" 2>/dev/null
	done
	for n in "${namespaces[@]}"; do
		ip netns del "$n" 2>/dev/null
	done
	judge_json "netns/$(basename "$0" .sh)" "$work" || status=1
	rm -rf "$work"
	exit "$status"
}
trap cleanup EXIT

in_ns() { # NODE COMMAND...
	local n=$1
	shift
	ip netns exec "ddps$id-$n" "$@"
}

# Three namespaces on one bridge device inside the first: 192.0.2.1, .2, .3
make_net() {
	local n
	for n in 1 2 3; do
		ip netns add "ddps$id-$n" || return
		namespaces+=("ddps$id-$n")
		in_ns $n ip link set lo up || return
	done
	# room for InfiniBand packets of 2048 octets and their headers
	in_ns 1 ip link add br0 mtu 2200 type bridge mcast_snooping 0 || return
	in_ns 1 ip link set br0 up || return
	in_ns 1 ip addr add 192.0.2.1/24 dev br0 || return
	for n in 2 3; do
		in_ns 1 ip link add "v$n" type veth peer name eth0 netns "ddps$id-$n" || return
		in_ns 1 ip link set "v$n" mtu 2200 master br0 up || return
		in_ns $n ip addr add "192.0.2.$n/24" dev eth0 || return
		in_ns $n ip link set eth0 mtu 2200 up || return
	done
}

up() { # NODE MODE [OPTION...]
	local n=$1 mode=$2
	shift 2
	: >"$work/node$n.log"
	ip netns exec "ddps$id-$n" "$SESSCTL" ipoib bridge --json --tun ib0 --gid "fe80::$n" \
		--mode "$mode" --udp "192.0.2.$n:4791" --sa 192.0.2.1 \
		--ip "10.9.0.$n/24" --ip "fd09::$n/64" "$@" >"$work/node$n.log" 2>&1 &
	pids[$n]=$!
}

nap() { # between looks at something that nothing announces
	read -r -t 0.1 <>"$work/never"
}

ready() { # NODE...
	local n i
	for n in "$@"; do
		for ((i = 0; i < 200; i++)); do
			grep -q '"bridging"' "$work/node$n.log" && break
			kill -0 "${pids[$n]}" 2>/dev/null || return 1
			nap
		done
		grep -q '"bridging"' "$work/node$n.log" || return 1
	done
}

bridge() { # NODE status|down [OPTION...]
	in_ns "$1" "$SESSCTL" ipoib bridge "$2" --tun ib0 "${@:3}"
}

# start_net: everything that is needed, or why it cannot be had
start_net() {
	mkfifo "$work/never"
	[ "$(id -u)" = 0 ] || skip "it needs root"
	[ -c /dev/net/tun ] || skip "/dev/net/tun is missing (modprobe tun)"
	for tool in ip ss python3 ping iperf3; do
		command -v $tool >/dev/null || skip "$tool is missing (tools/deps.sh check)"
	done
	make_net >"$work/net.log" 2>&1 || skip "no network namespaces: $(tail -n 1 "$work/net.log")"
}
