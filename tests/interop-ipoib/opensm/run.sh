#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessctl ipoib bridge --port verbs as a node of a fabric that OpenSM manages: ibsim has the ports, port_*.c makes
# them libibverbs and libibumad.  One line a case; root, as each node has a network namespace with a TUN device.
# usage: run.sh BUILD [--quick]
# shellcheck disable=SC2154,SC2317,SC2034,SC2031 # of lib.bash; functions are called through test_case
set -u
here=$(cd "$(dirname "$0")" && pwd)
SESSCTL=$(realpath "$1/sessctl")
preload=$(realpath "$1/ib-preload.so")
ports=$(realpath "$1/opensm-port")
umad2sim=$(find /usr/lib /usr/lib64 -name libumad2sim.so 2>/dev/null | head -n 1)
manager_load=$ports/watch.so:$umad2sim
quick=${2-}

what='opensm'
# shellcheck source=tests/interop-ipoib/opensm/udp.bash
. "$here/udp.bash"

PATH=$PATH:/usr/sbin
missing=
for need in ibsim:ibsim-utils opensm:opensm saquery:infiniband-diags ip:iproute2 ping:iputils-ping; do
	command -v "${need%:*}" >/dev/null || missing="$missing ${need#*:}"
done
[ -n "$umad2sim" ] || missing="$missing libumad2sim0"
[ -z "$missing" ] || skip "try: apt-get install -y --no-install-recommends$missing"
[ "$(id -u)" = 0 ] || skip "it needs root"
[ -c /dev/net/tun ] || skip "/dev/net/tun is missing; try: modprobe tun"

# shellcheck source=tests/ib/lib.bash
. "$here/../../ib/lib.bash"
net=ddps-osm$$

stop() {
	[[ $BASHPID = "$$" ]] || return
	udp_stop
	fabric_stop
	ip netns del "$net-A" 2>/dev/null
	ip netns del "$net-B" 2>/dev/null
}
trap stop EXIT
trap 'exit 1' INT TERM

# ---- nodes: HostA has 10.8.0.1, HostB 10.8.0.2 ----

declare -A node=() address=([A]=10.8.0.1 [B]=10.8.0.2)

in_net() { # A|B COMMAND...
	ip netns exec "$net-$1" "${@:2}"
}

bridge() { # A|B status|down
	in_net "$1" "$SESSCTL" ipoib bridge "$2" --json --tun ib0
}

state_is() { # A|B STATE
	why="node $1: $(bridge "$1" status 2>&1 | head -c 200) $(tail -n 2 "$work/node$1.err")"
	[[ $why = *"\"state\":\"$2\""* ]]
}

no_link() { # A|B TEXT: none, for a reason that it has said
	state_is "$1" joining && why="node $1 does not say '$2'" && tail -n 1 "$work/node$1.out" | grep -q "$2" &&
		why="the status of $1 does not" && bridge "$1" status | grep -q "\"link_down\":\"[^\"]*$2"
}

up() { # A|B OPTION...: until it has joined
	local n=$1
	shift
	(
		mkdir -p "$work/run.$n"
		cd "$work/run.$n" || exit 1
		export SIM_HOST=Host$n LD_LIBRARY_PATH=$ports FABRIC_NETNS=/proc/$$/ns/net
		exec ip netns exec "$net-$n" "$SESSCTL" ipoib bridge --json --tun ib0 --port verbs \
			--ip "${address[$n]}/24" "$@"
	) >"$work/node$n.out" 2>"$work/node$n.err" &
	node[$n]=$!
	pids+=($!)
	until_ready 20 state_is "$n" up
}

down() { # A|B...: in order, with the status of a bridge that has succeeded
	local n status
	for n; do
		bridge "$n" down >/dev/null
		wait "${node[$n]}"
		status=$?
		why="node $n ended with status $status: $(tail -n 2 "$work/node$n.err")"
		[ "$status" = 0 ] || return
	done
}

pings() { # FROM TO OCTETS
	why="no echo of $3 octets from $1 to $2"
	in_net "$1" ping -q -c 1 -W 1 -s "$3" "${address[$2]}" >/dev/null
}

# A datagram, then what only a connection carries; either way.
reach() {
	until_ready 20 pings A B 56 && until_ready 20 pings B A 56 && until_ready 20 pings A B 30000 &&
		until_ready 20 pings B A 30000
}

silent() { # FROM TO
	why="$1 reaches $2"
	! in_net "$1" ping -q -c 2 -i 0.3 -W 1 "${address[$2]}" >/dev/null
}

# ---- the manager's own view ----

query() { # OPTION...: the answer of the subnet administration, which trusts who knows its key
	(load=$umad2sim && on HostC timeout --foreground -k 1 5 saquery --smkey 1 "$@") 2>/dev/null
}

gid_of() { # A|B: as saquery writes it
	python3 -c 'import ipaddress, json, sys
a = json.loads(sys.stdin.readline())["lladdr"].split(":")[4:]
print(ipaddress.ip_address(bytes(int(x, 16) for x in a)))' <"$work/node$1.out"
}

members() { # MGID: its receivers, a GID each
	query MCMR --mgid "$1" | awk -F'\\.\\.+' '/PortGid/ {gid = $2} /JoinState/ && $2 == "0x1" {print gid}'
}

members_are() { # MGID A|B...: these of them and not the other
	local n has want
	has=$(members "$1")
	for n in A B; do
		[[ " ${*:2} " = *" $n "* ]] && want=1 || want=0
		why="members of $1: $has"
		[ "$(grep -cx "$(gid_of "$n")" <<<"$has")" = "$want" ] || return
	done
}

broadcast=ff12:401b:ffff::ffff:ffff

joined() { # both, as both sides see it
	until_ready 20 state_is A up && until_ready 20 state_is B up &&
		until_ready 20 members_are "$broadcast" A B
}

partitions() { # LINE...: the manager's file, which it is made to read
	printf '%s\n' "$@" >"$work/partitions"
	[ -z "${manager-}" ] || kill -HUP "$manager"
}

link='Default=0x7fff,ipoib,mtu=4,rate=3,scope=2,Q_Key=0xb1b : ALL=full;'
options=(-P "$work/partitions" -F "$work/options")
settings() { # LINE...
	printf '%s\n' 'sweep_interval 1' 'sminfo_polling_timeout 300' 'polling_retry_number 2' "$@" >"$work/options"
}

manager_ends() {
	kill "$manager"
	wait "$manager" 2>/dev/null
	return 0
}

# ---- cases ----

# The same questions to OpenSM and to our own administration: what differs is in the file, with its reason.
same_answers() {
	local a b
	udp_start || { why="no subnet in UDP" && return 1; }
	(load=$umad2sim && on HostC timeout --foreground -k 1 60 python3 "$here/ask.py" "$(gid_of A)") \
		>"$work/answers.opensm" 2>"$work/answers.err"
	udp_run 9 python3 "$here/ask.py" fe80::2 >"$work/answers.ours" 2>>"$work/answers.err"
	why="no answers: $(tail -n 2 "$work/answers.err")"
	a=$(wc -l <"$work/answers.opensm") b=$(wc -l <"$work/answers.ours")
	[ "$a" -gt 80 ] && [ "$a" = "$b" ] || return
	diff "$work/answers.opensm" "$work/answers.ours" | sed -n 's/^> \([^:]*\): .*/\1/p' >"$work/differ"
	why="other differences than $here/differences.tsv has: $(
		diff <(grep -v '^#' "$here/differences.tsv" | cut -f 1 | sort) <(sort "$work/differ") |
			grep '^[<>]'
		diff "$work/answers.opensm" "$work/answers.ours" | head -n 8
	)"
	cmp -s <(grep -v '^#' "$here/differences.tsv" | cut -f 1 | sort) <(sort "$work/differ")
}

join_both() {
	up A && up B && joined
}

paths() {
	reach && why="no connection: $(bridge A status)" && bridge A status | grep -q '"up":true'
}

# A group of the host's: OpenSM has it while somebody listens.
groups() {
	local listener mgid=ff12:401b:ffff::f01:203
	members_are "$broadcast" A B || return
	ip netns exec "$net-B" python3 "$here/listen.py" 239.1.2.3 "${address[B]}" >"$work/heard" 2>"$work/heard.err" &
	listener=$!
	pids+=("$listener")
	until_ready 10 members_are "$mgid" B || return
	heard() {
		why="nothing is heard in the group: $(cat "$work/heard.err")"
		in_net A python3 -c 'import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("10.8.0.1"))
s.sendto(b"to the group", ("239.1.2.3", 4000))'
		grep -q 'to the group' "$work/heard"
	}
	until_ready 10 heard || return
	kill "$listener"
	wait "$listener" 2>/dev/null
	until_ready 10 members_are "$mgid"
}

# What the manager knew is gone, and both register again.
manager_restarts() {
	manager_ends
	manager_start HostS "${options[@]}"
	joined && reach
}

manager_is() { # GUID
	why="manager: $( (load=$umad2sim && on HostC timeout --foreground -k 1 5 sminfo) 2>&1)"
	[[ $why = *"sm guid $1,"*SMINFO_MASTER* ]]
}

manager_moves() {
	local first=$manager
	manager_start HostT "${options[@]}"
	until_ready 10 grep -qs STANDBY "$work/sm.HostT/osm.log" || { why="no second manager" && return 1; }
	kill "$first"
	wait "$first" 2>/dev/null
	until_ready 20 manager_is 0x100007 && joined && reach
}

manager_moves_back() {
	manager_ends
	manager_start HostS "${options[@]}"
	until_ready 20 manager_is 0x100005 && joined && reach
}

new_qkey() {
	manager_ends
	printf '%s\n' "${link/0xb1b/0x1234}" >"$work/partitions"
	manager_start HostS "${options[@]}"
	joined || return
	why="the link has another Q_Key: $(query MCMR --mgid "$broadcast" | grep qkey)"
	query MCMR --mgid "$broadcast" | grep -q 'qkey.*0x1234' || return
	reach
}

# The link's key goes from one node's table, and comes back at another place.
pkey_table() {
	partitions "Default=0x7fff,ipoib,Q_Key=0x1234 : ALL=full;" "Other=0x0002 : ALL=full;"
	joined && reach
}

link_goes() {
	console 'Unlink "HostB"[1]'
	until_ready 10 no_link B 'went down' && silent A B || return
	console 'Relink "HostB"[1]'
	joined && reach
}

# Nodes in a partition of their own reach each other, not those of another one.
two_partitions() {
	partitions "$link" 'Second=0x0002,ipoib,scope=2 : ALL=full;'
	down B || return
	up B --pkey 0x8002 || return
	until_ready 10 members_are ff12:401b:8002::ffff:ffff B && silent A B && silent B A || return
	down A && up A --pkey 0x8002 && reach && down A B
}

key_is_taken_away() {
	partitions "$link" 'Second=0x0002,ipoib,scope=2 : ALL=full;'
	up A --pkey 0x8002 && up B --pkey 0x8002 && reach || return
	partitions "$link"
	until_ready 10 no_link B 'P_Key 0x8002 is not in the table' && silent A B || return
	partitions "$link" 'Other=0x0004 : ALL=full;' 'Second=0x0002,ipoib,scope=2 : ALL=full;'
	until_ready 20 state_is A up && until_ready 20 state_is B up && reach && down A B
}

another_prefix() {
	partitions "$link"
	up A && up B && joined || return
	manager_ends
	settings 'subnet_prefix 0xfec0000000000001'
	manager_start HostS "${options[@]}"
	until_ready 20 no_link A 'another GID' && until_ready 20 no_link B 'another GID' || return
	down A B
	up A && up B && joined && reach
}

export FABRIC_DIR=$work/fabric
mkdir "$FABRIC_DIR"
for n in A B; do
	ip netns add "$net-$n" || skip "no network namespaces"
	in_net $n ip link set lo up
done
settings
partitions "$link"
fabric_start "$here/fabric.net" "${options[@]}" || {
	echo "not ok opensm: fabric: $(tail -n 3 "$work/ibsim.log" "$work/opensm.out" | tr '\n' ' ')"
	exit 1
}
test_case 'opensm: join' join_both
test_case 'opensm: paths' paths
test_case 'opensm: groups' groups
test_case 'opensm: the manager restarts' manager_restarts
test_case 'opensm: the link goes down and up' link_goes
if [ "$quick" != --quick ]; then
	partitions "$link" 'Second=0x0002,ipoib,scope=2 : ALL=full;'
	test_case 'contact 34: the same answers as OpenSM' same_answers
	test_case 'opensm: the manager moves' manager_moves
	test_case 'opensm: and back' manager_moves_back
	test_case 'opensm: a new Q_Key' new_qkey
	test_case 'opensm: a new table of P_Keys' pkey_table
	test_case 'opensm: partitions' two_partitions
	test_case 'opensm: the P_Key is taken away' key_is_taken_away
	test_case 'opensm: another prefix' another_prefix
fi
test_case 'opensm: end' down A B
exit $((failures > 0))
