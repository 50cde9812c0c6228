# SPDX-License-Identifier: BSD-2-Clause
# For tests/netns: two hosts in network namespaces of their own and a third between them, which has a
# bridge for each link.  A link is cut there, so neither host's own interface goes down.
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # here: set by the scripts
SESSCTL=$(realpath "${SESSCTL:-build/opt/sessctl}")
work=$(mktemp -d)
id=$$
listener=
namespaces=()
# shellcheck source=tests/netns/check.bash
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
# shellcheck source=tests/support/json.bash
. "$(dirname "${BASH_SOURCE[0]}")/../support/json.bash"

cleanup() {
	local n status=$?
	[[ $BASHPID = "$$" ]] || return # killed before it was a program of its own
	[ -z "$listener" ] || kill -KILL "$listener" 2>/dev/null
	for n in "${namespaces[@]}"; do
		ip netns del "$n" 2>/dev/null
	done
	judge_json "netns/$(basename "$0" .sh)" "$work" || status=1
	rm -rf "$work"
	exit "$status"
}
trap cleanup EXIT

in_ns() { # a|b|between COMMAND...
	local n=$1
	shift
	ip netns exec "ddps$id-$n" "$@"
}

# link NAME ADDRESS-OF-A ADDRESS-OF-B [RATE [BURST]]: between the hosts, through the third
link() {
	local side rate=${4:-}
	in_ns between ip link add "$1" type bridge mcast_snooping 0 || return
	for side in a b; do
		in_ns between ip link add "$1$side" type veth peer name "$1" netns "ddps$id-$side" || return
		in_ns between ip link set "$1$side" master "$1" || return
		in_ns between ip link set "$1$side" up || return
		[ -z "$rate" ] ||
			in_ns between tc qdisc add dev "$1$side" root tbf rate "$rate" burst 128k latency 50ms || return
	done
	in_ns between ip link set "$1" up || return
	in_ns a ip addr add "$2" dev "$1" nodad && in_ns a ip link set "$1" up || return
	in_ns b ip addr add "$3" dev "$1" nodad && in_ns b ip link set "$1" up
}

cut() { # NAME: nothing comes through any more, and nobody is informed
	in_ns between ip link set "$1a" nomaster
}

mend() { # NAME
	in_ns between ip link set "$1a" master "$1"
}

nap() { # between looks at something that nothing announces
	read -r -t 0.05 <>"$work/never"
}

# hosts: the namespaces, without links; why not, if they cannot be had
hosts() {
	local n tool
	mkfifo "$work/never"
	[ "$(id -u)" = 0 ] || skip "it needs root"
	for tool in ip tc jq; do
		command -v $tool >/dev/null || skip "$tool is missing (tools/deps.sh check)"
	done
	for n in a b between; do
		ip netns add "ddps$id-$n" 2>"$work/net.log" || skip "no namespaces: $(cat "$work/net.log")"
		namespaces+=("ddps$id-$n")
		in_ns $n ip link set lo up || skip "no network in a namespace"
	done
}

# listen HOSTS [OPTION]: on host b, over $wire; sets uri
wire=sctp
listen() {
	local i options="?backend=native${2:-}"
	[ "$wire" = sctp ] || options=
	mkdir -p "$work/served"
	ip netns exec "ddps$id-b" "$SESSCTL" listen --json --dir "$work/served" "$wire://$1:7174$options" \
		>"$work/listen.json" 2>"$work/listen.err" &
	listener=$!
	for ((i = 0; i < 200; i++)); do
		uri=$(jq -r 'select(.event == "listening") | .uri' "$work/listen.json" 2>/dev/null)
		[ -z "$uri" ] || return 0
		kill -0 $listener 2>/dev/null || break
		nap
	done
	cat "$work/listen.err"
	return 1
}

listen_end() {
	kill "$listener" && wait "$listener"
	listener=
}

# start_put FILE URI NAME: in the background, a status line ten times a second
start_put() {
	local sep='?'
	[[ $2 != *\?* ]] || sep='&'
	: >"$work/put.json"
	ip netns exec "ddps$id-a" timeout 100 "$SESSCTL" put --json --force --stat 0.1 "$1" "$2/$3" \
		>"$work/put.json" 2>"$work/put.err" &
	putting=$!
}

# Until the status of the transfer satisfies a condition of jq; 30 s at most.
until_status() { # CONDITION
	local i
	for ((i = 0; i < 600; i++)); do
		[ -z "$(jq -c "select(.event == \"status\") | select($1)" "$work/put.json" 2>/dev/null |
			tail -n 1)" ] || return 0
		kill -0 "$putting" 2>/dev/null || break
		nap
	done
	echo "never: $1"
	jq -c 'select(.event == "status") | [.seconds, .sent, .association.paths]' "$work/put.json" |
		tail -n 3
	return 1
}

# How the transfer ended: done, and the file is the same at both ends.
end_put() { # FILE NAME
	wait "$putting" || {
		cat "$work/put.err"
		return 1
	}
	cmp "$1" "$work/served/$2"
}

# The longest time, in seconds, in which nothing more was acknowledged.
pause() {
	jq -s '[.[] | select(.event == "status")] |
		group_by(.sent - .association.unsent - .association.unacked) |
		map((map(.seconds) | max) - (map(.seconds) | min)) | max * 1000 | round / 1000' \
		"$work/put.json"
}
