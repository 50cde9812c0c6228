#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# SCTP associations over two links, between network namespaces that this script makes and removes:
# a transfer goes on when a link is cut, also when the other one is, later.
# usage: SESSCTL=... multihome.sh
# shellcheck disable=SC2154,SC2034,SC2317 # variables of pair.bash, which calls these functions
set -u
what="two links"
# shellcheck source=/dev/null
. "$(dirname "$0")/pair.bash"

SIZE=$((60 << 20))
RATE=40mbit # so that the transfer takes 13 s
ACTIVE='(.association.paths | map(select(.state == "active")) | length == 2)'

on() { # ADDRESS: data goes there
	echo "(.association.paths | any(.in_use and (.peer | startswith(\"$1\"))))"
}

# The first link is cut, then repaired; when it is used again the other one is cut.
both_cut() { # URI FIRST SECOND
	start_put "$work/file" "$1" both
	until_status "$ACTIVE and (.sent > 4000000) and $(on "$2")" || return
	cut one
	until_status "$(on "$3")" || return
	mend one
	# the primary path is used again once it has proved itself
	until_status "(.seconds > 3) and $ACTIVE and (.association.timeouts > 0) and $(on "$2")" || return
	cut two
	end_put "$work/file" both || return
	mend two
}

paused_below() { # SECONDS
	pause
	jq -en "$(pause) < $1"
}

# The first address of the URI is the primary path, the second one is not used.
first_is_primary() { # URI FIRST
	start_put "$work/small" "$1" small
	end_put "$work/small" small || return
	jq -es '[.[] | select(.event == "status")] | last.association.paths |
		length == 2 and (.[0] | .primary and .in_use and (.peer | startswith("'"$2"'")))' \
		"$work/put.json"
}

# Who opens the association needs to know one address only: it learns the others.
told() {
	start_put "$work/small" "sctp://192.0.2.2:7174?backend=native&local=192.0.2.1,[2001:db8::1]" told
	end_put "$work/small" told || return
	jq -es '[.[] | select(.event == "status")] | last.association.paths | map(.peer) |
		any(startswith("[2001:db8::2]"))' "$work/put.json"
}

# Both of one family; the responder's Read Responses change the path as well.
get_while_cut() {
	cp "$work/file" "$work/served/big"
	ip netns exec "ddps$id-a" timeout 100 "$SESSCTL" get --json --force --stat 0.1 \
		"sctp://192.0.2.2,198.51.100.2:7174?backend=native/big" "$work/got" \
		>"$work/put.json" 2>"$work/put.err" &
	putting=$!
	until_status "$ACTIVE and (.received > 4000000)" || return
	cut one
	until_status ".received > 30000000" || return
	wait "$putting" && cmp "$work/file" "$work/got" || return
	mend one
	jq -s '[.[] | select(.event == "status")] | group_by(.received) |
		map((map(.seconds) | max) - (map(.seconds) | min)) | max' "$work/put.json" >"$work/pause"
	jq -en "$(cat "$work/pause") < 3"
}

# Directly on IP, where one socket has the packets of one IP only.
ip_mixed() {
	start_put "$work/third" "$uri" ip
	until_status "$ACTIVE and (.sent > 2000000) and $(on 192.0.2.2) and
		(.association.paths | all(.encap == 0))" || return
	cut one
	end_put "$work/third" ip || return
	mend one
	jq -es '[.[] | select(.event == "status")] | last | '"$(on "[2001:db8::2]")" "$work/put.json"
}

# Any address: either family's.
ip_any() {
	local to
	for to in 192.0.2.2 "[2001:db8::2]"; do
		start_put "$work/small" "sctp://$to:7174?backend=native&encap=off" any
		end_put "$work/small" any || return
	done
}

# Both hosts have 172.17.0.1, as docker gives it to each.  Host a has a listener of its own: what is sent to
# that address comes there, and is answered by an ABORT with the tag that it had.
same_on_both() { # URI
	start_put "$work/third" "$1" same
	until_status ".sent > 4000000" || return
	end_put "$work/third" same || return
	jq -es '[.[] | select(.event == "status")] | last.association.paths |
		length == 1 and (.[0].peer | startswith("192.0.2.2"))' "$work/put.json"
}

# What host a sends to itself by mistake comes to a program.
beside_start() {
	local i
	ip netns exec "ddps$id-a" "$SESSCTL" listen --json "sctp://:7174?backend=native" >"$work/beside.json" &
	beside=$!
	for ((i = 0; i < 200; i++)); do
		grep -q '"listening"' "$work/beside.json" && return
		nap
	done
	return 1
}

beside_end() {
	kill "$beside" && wait "$beside"
}

hosts
link one 192.0.2.1/24 192.0.2.2/24 $RATE >"$work/net.log" 2>&1 || skip "no links: $(tail -n 1 "$work/net.log")"
link two 2001:db8::1/64 2001:db8::2/64 $RATE >"$work/net.log" 2>&1 || skip "no IPv6: $(tail -n 1 "$work/net.log")"
head -c $SIZE /dev/urandom >"$work/file"
head -c 100000 "$work/file" >"$work/small"
head -c 12000000 "$work/file" >"$work/third"

check "a listener has an IPv4 and an IPv6 address" listen "192.0.2.2,[2001:db8::2]"
check "IPv4, then IPv6 is cut during a transfer: all arrives" \
	both_cut "$uri" 192.0.2.2 "[2001:db8::2]"
check "the longest pause is below 3 s" paused_below 3
echo "# longest pause of the transfer: $(pause) s"
check "the first address of a URI is the primary path" first_is_primary "$uri" 192.0.2.2
check "another order, another primary path" \
	first_is_primary "sctp://[2001:db8::2],192.0.2.2:7174?backend=native" "[2001:db8::2]"
check "the peer tells its other addresses" told
check "the listener ends in order" listen_end

in_ns a ip addr add 198.51.100.1/24 dev two
in_ns b ip addr add 198.51.100.2/24 dev two
check "a listener has two IPv4 addresses" listen "192.0.2.2,198.51.100.2"
check "a link is cut while a file is read: all arrives, the pause is below 3 s" get_while_cut
check "the listener ends in order again" listen_end

in_ns b ip addr add 172.17.0.1/16 dev lo
in_ns a ip addr add 172.17.0.1/16 dev lo
check "a listener has an address that the other host has, too" listen "192.0.2.2,172.17.0.1"
check "another program listens on that host" beside_start
check "contact 12: an address that both hosts have is left out" same_on_both "sctp://192.0.2.2:7174?backend=native"
check "contact 12: also when it is given" same_on_both "sctp://172.17.0.1,192.0.2.2:7174?backend=native"
check "that program ends in order" beside_end
check "the listener with that address ends in order" listen_end

check "directly on IP a listener has an IPv4 and an IPv6 address" \
	listen "192.0.2.2,[2001:db8::2]" "&encap=off"
check "directly on IP, IPv4 is cut during a transfer: all arrives over IPv6" ip_mixed
check "that pause is below 3 s" paused_below 3
check "this listener ends in order" listen_end
check "directly on IP a listener has any address" listen "" "&encap=off"
check "it serves IPv4 and IPv6" ip_any
check "this one ends in order, too" listen_end
exit "$failed"
