#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# SCTP over a path that takes small packets only, between network namespaces that this script makes
# and removes.  The router between them says so by ICMP, or informs nobody: a black hole.
# usage: SESSCTL=... path.sh
# shellcheck disable=SC2154,SC2034,SC2317 # variables of pair.bash, which calls these functions
set -u
what="a narrow path"
# shellcheck source=/dev/null
. "$(dirname "$0")/pair.bash"

RATE=40mbit
SLOW=6mbit # until the path gets narrow: the whole file takes longer than a busy machine
# Longest pause that is no fault: the sender's own bound is 2 s, the machine may be busy.
BOUND=8

rate() { # RATE: of both links
	in_ns between tc qdisc change dev ra root tbf rate "$1" burst 128k latency 50ms &&
		in_ns between tc qdisc change dev rb root tbf rate "$1" burst 128k latency 50ms
}

# The way through the router.
route_mtu() { # MTU
	in_ns between ip link set rb mtu "$1"
}

silent() { # add|del: ICMP errors of the router
	in_ns between ip rule "$1" iif lo ipproto icmp pref 10 blackhole &&
		in_ns between ip -6 rule "$1" iif lo ipproto ipv6-icmp pref 10 blackhole
}

# neighbours SIDE PREFIX: what a silent router does not tell either
neighbours() {
	local mac
	mac=$(in_ns "$1" cat /sys/class/net/r/address)
	in_ns between ip neigh replace "$2::1" lladdr "$mac" dev "r$1" nud permanent || return
	mac=$(in_ns between cat "/sys/class/net/r$1/address")
	in_ns "$1" ip neigh replace "$2::254" lladdr "$mac" dev r nud permanent
}

# A router between the hosts: 192.0.2.1 - 192.0.2.254, 198.51.100.254 - 198.51.100.1, likewise in
# IPv6 2001:db8:a:: and 2001:db8:b::
router() {
	local side net net6
	in_ns between sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 || return
	for side in a b; do
		net=192.0.2 net6=2001:db8:$side
		[ $side = a ] || net=198.51.100
		in_ns between ip link add "r$side" type veth peer name r netns "ddps$id-$side" || return
		in_ns between ip addr add $net.254/24 dev "r$side" || return
		in_ns between ip addr add "$net6::254/64" dev "r$side" nodad || return
		in_ns between ip link set "r$side" up || return
		in_ns between tc qdisc add dev "r$side" root tbf rate $RATE burst 128k latency 50ms || return
		in_ns $side ip addr add $net.1/24 dev r || return
		in_ns $side ip addr add "$net6::1/64" dev r nodad || return
		in_ns $side ip link set r up || return
		in_ns $side ip route add default via $net.254 || return
		in_ns $side ip route add default via "$net6::254" || return
		neighbours "$side" "$net6" || return
	done
}

mtu() { # of the path at the end, as this side knows it
	jq -s '[.[] | select(.event == "status")] | last.association.paths[0].mtu' "$work/put.json"
}

# It gets narrow during a transfer, which goes on.
narrows() { # MTU
	rate "$SLOW" || return
	start_put "$work/file" "$uri" narrows
	until_status ".sent > 400000 and .association.paths[0].mtu > 1280" || return
	route_mtu "$1" && rate "$RATE" || return
	end_put "$work/file" narrows || return
	echo "mtu $(mtu), pause $(pause) s"
	jq -en "$(mtu) <= $1 and $(pause) < $BOUND"
}

# It is narrow from the beginning.
narrow() { # MTU
	start_put "$work/small" "$uri" narrow
	end_put "$work/small" narrow || return
	echo "mtu $(mtu), pause $(pause) s"
	jq -en "$(mtu) <= $1 and $(pause) < $BOUND"
}

tell() { # WHAT
	echo "# $1: longest pause $(pause) s, MTU $(mtu)"
}

hosts
router >"$work/net.log" 2>&1 || skip "no router: $(tail -n 1 "$work/net.log")"
head -c $((16 << 20)) /dev/urandom >"$work/file"
head -c 400000 "$work/file" >"$work/small"
head -c 4000000 "$work/file" >"$work/some"

check "a listener behind a router" listen 198.51.100.1
silent add >"$work/net.log" 2>&1 || skip "no silent router: $(tail -n 1 "$work/net.log")"
for how in silently "told by ICMP"; do
	[ "$how" = silently ] || silent del
	check "1500 to 1280 octets, $how: the transfer goes on" narrows 1280
	tell "1500 to 1280, $how"
	check "1280 octets from the beginning, $how" narrow 1280
	route_mtu 1500
	check "1500 to 576 octets, $how: the transfer goes on" narrows 576
	tell "1500 to 576, $how"
	check "576 octets from the beginning, $how" narrow 576
	tell "576 from the beginning, $how"
	route_mtu 1500
done
check "the listener ends in order" listen_end

# A small MTU takes an interface's IPv6 addresses away: 1280 is the least that there is.
in_ns between ip addr replace 2001:db8:b::254/64 dev rb nodad
neighbours b 2001:db8:b
check "a listener on IPv6" listen "[2001:db8:b::1]"
for how in silently "told by ICMP"; do
	if [ "$how" = silently ]; then silent add; else silent del; fi
	check "IPv6, 1500 to 1280 octets, $how: the transfer goes on" narrows 1280
	tell "IPv6, 1500 to 1280, $how"
	check "IPv6, 1280 octets from the beginning, $how" narrow 1280
	route_mtu 1500
done
check "the listener on IPv6 ends in order" listen_end

# RFC 8899 directly on IP: the probes are 8 octets larger there.
silent add
check "a listener directly on IP" listen 198.51.100.1 "&encap=off"
check "directly on IP, 1500 to 1280 octets, silently: the transfer goes on" narrows 1280
tell "on IP, 1500 to 1280, silently"
route_mtu 1500
check "the listener on IP ends in order" listen_end

# A switch on the way takes 1500 octets where both hosts have 9000: it drops what is larger, in fragments or not,
# and no router is there to tell anybody.
switch_mtu() { # MTU
	in_ns between ip link set jumboa mtu "$1" && in_ns between ip link set jumbob mtu "$1"
}

shrinks() {
	start_put "$work/some" "$uri" shrinks
	until_status ".sent > 400000 and .association.paths[0].mtu > 8000" || return
	switch_mtu 1500 || return
	end_put "$work/some" shrinks || return
	echo "mtu $(mtu), pause $(pause) s"
	jq -en "$(mtu) <= 1500 and $(pause) < $BOUND"
}

link jumbo 203.0.113.1/24 203.0.113.2/24 $SLOW >"$work/net.log" 2>&1 || skip "no link: $(tail -n 1 "$work/net.log")"
in_ns a ip addr add 2001:db8:c::1/64 dev jumbo nodad
in_ns b ip addr add 2001:db8:c::2/64 dev jumbo nodad
# a run of packets passes a bridge as one, whatever the size of each
for host in a b; do in_ns $host ip link set jumbo mtu 9000 gso_max_segs 1 || skip "no gso_max_segs"; done
for host in 203.0.113.2 "[2001:db8:c::2]"; do
	switch_mtu 9000
	check "a listener with an MTU of 9000 at $host" listen "$host"
	check "contact 13: 9000 to 1500 octets at a switch, to $host: the transfer goes on" shrinks
	tell "9000 to 1500 at a switch"
	check "the listener at $host ends in order" listen_end
done
exit "$failed"
