#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Both wires through a NAT, between network namespaces that this script makes and removes: one that gives
# the initiator another address and port, one that forgets what it gave, one that publishes a port.
# usage: SESSCTL=... nat.sh
# shellcheck disable=SC2154,SC2034,SC2317 # variables of pair.bash, which calls these functions
set -u
what="a NAT"
# shellcheck source=/dev/null
. "$(dirname "$0")/pair.bash"

RATE=40mbit
BOUND=8 # s: longest pause that is no fault on a busy machine
GIVEN=40 # thousand: the ports that the NAT gives

# 10.0.0.1 - 10.0.0.254 (NAT) 192.0.2.254 - 192.0.2.1
router() {
	in_ns between sysctl -qw net.ipv4.ip_forward=1 || return
	in_ns between ip link add ra type veth peer name r netns "ddps$id-a" || return
	in_ns between ip link add rb type veth peer name r netns "ddps$id-b" || return
	in_ns between ip addr add 10.0.0.254/24 dev ra && in_ns between ip addr add 192.0.2.254/24 dev rb || return
	in_ns between ip link set ra up && in_ns between ip link set rb up || return
	in_ns between tc qdisc add dev rb root tbf rate $RATE burst 128k latency 50ms || return
	in_ns a ip addr add 10.0.0.1/24 dev r && in_ns a ip link set r up || return
	in_ns a ip route add default via 10.0.0.254 || return
	in_ns b ip addr add 192.0.2.1/24 dev r && in_ns b ip link set r up || return
	in_ns between nft -f - <<-EOF || return
		table ip nat {
			chain in { type nat hook prerouting priority -100; }
			chain out { type nat hook postrouting priority 100; }
		}
	EOF
	give $GIVEN
}

give() { # THOUSAND: of ports, to whoever comes next
	in_ns between nft flush chain ip nat out || return
	in_ns between nft add rule ip nat out oifname rb meta l4proto '{ tcp, udp }' counter masquerade to ":${1}000-${1}999"
}

# With its address goes all that the NAT gave; the peer sees another port from then on.
forget() {
	in_ns between ip addr del 192.0.2.254/24 dev rb && give $((GIVEN + 1)) &&
		in_ns between ip addr add 192.0.2.254/24 dev rb
}


whole() { # URI FILE
	start_put "$2" "$1" whole
	end_put "$2" whole
}

given_anew() { # did the NAT see somebody whom it had forgotten?
	in_ns between nft list chain ip nat out | grep -q "counter packets [1-9]"
}

lives_on() {
	start_put "$work/file" "$uri" on
	until_status ".sent > 4000000" && forget || return
	end_put "$work/file" on && given_anew || return
	echo "pause $(pause) s"
	jq -en "$(pause) < $BOUND"
}

# TCP has no way to follow: the peer knows nobody at the new port.  This end says so, and no part of the file is left.
says_lost() {
	start_put "$work/file" "$uri" lost
	until_status ".sent > 4000000" && forget || return
	! wait "$putting" || return
	cat "$work/put.err"
	given_anew && grep -q "NAT" "$work/put.err" && [ ! -e "$work/served/lost" ]
}

hosts
command -v nft >/dev/null || skip "nft is missing (tools/deps.sh check)"
router >"$work/net.log" 2>&1 || skip "no NAT: $(tail -n 1 "$work/net.log")"
head -c $((16 << 20)) /dev/urandom >"$work/file"
head -c 400000 "$work/file" >"$work/small"

check "a listener on SCTP beyond a NAT" listen 192.0.2.1 "&encap=9899"
check "SCTP passes a NAT" whole "$uri" "$work/small"
check "the NAT forgets: SCTP goes on from another port" lives_on
echo "# longest pause: $(pause) s"
give $GIVEN
in_ns a ip addr add 172.17.0.1/16 dev lo
in_ns b ip addr add 172.18.0.1/16 dev lo
check "the initiator lists an address that nobody reaches: SCTP passes the NAT" whole "$uri" "$work/small"
in_ns between nft add rule ip nat in iifname ra udp dport 19899 dnat to 192.0.2.1:9899
check "a published port of UDP leads to the listener" \
	whole "sctp://10.0.0.254:7174?backend=native&encap=19899" "$work/small"
check "the listener on SCTP ends in order" listen_end

wire=tcp
check "a listener on TCP beyond a NAT" listen 192.0.2.1
check "TCP passes a NAT" whole "$uri" "$work/small"
check "the NAT forgets: TCP says that the connection is lost" says_lost
in_ns between nft add rule ip nat in iifname ra tcp dport 17174 dnat to 192.0.2.1:7174
check "a published port of TCP leads to the listener" whole "tcp://10.0.0.254:17174" "$work/small"
check "the listener on TCP ends in order" listen_end
exit "$failed"
