# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# 200 sessions at once on one association of the kernel's SCTP: with our kernel backend at both ends,
# and with usrsctp here as client and as server.  The kernel counts the associations.
# needs: example-many_peer
many=200
associations() { # Active|Passive: established since the guest began
	guest "sed -n 's/^Sctp$1Estabs[[:space:]]*//p' /proc/net/sctp/snmp"
}

one_more() { # Active|Passive BEFORE WHAT
	local n
	n=$(associations "$1")
	[ "$n" = $(($2 + 1)) ] || fail "$3: $((n - $2)) associations, not 1"
}

serve() { # BACKEND-QUERY
	guest_start many "example-many_peer -n $many -s 'sctp://$GUEST:$PORT?$1'"
	guest_listens "$PORT" sctp
}

as_many() { # FILE WHAT
	grep -qx "$many sessions, $many at once" "$1" || fail "$2: $(tail -n 1 "$1")"
}

serve "backend=kernel&encap=off"
active=$(associations Active) passive=$(associations Passive)
guest "timeout 90 example-many_peer -n $many -c 'sctp://$GUEST:$PORT?backend=kernel&encap=off'" \
	>"$work/there" 2>&1 || fail "kernel, kernel: $(tail -n 1 "$work/there")"
guest_wait many 30 || fail "kernel, kernel: $(guest_output many | tail -n 1)"
as_many "$work/there" "kernel, kernel"
one_more Active "$active" "kernel, kernel"
one_more Passive "$passive" "kernel, kernel"

sctp_over_udp
serve "backend=kernel&encap=$ENCAP"
passive=$(associations Passive)
host timeout 90 "$build/example-many_peer" -n $many \
	-c "sctp://$GUEST:$PORT?backend=usrsctp&encap=$ENCAP" >"$work/here" 2>"$work/err" ||
	fail "usrsctp, kernel: $(tail -n 1 "$work/err")"
guest_wait many 30 || fail "usrsctp, kernel: $(guest_output many | tail -n 1)"
as_many "$work/here" "usrsctp, kernel"
one_more Passive "$passive" "usrsctp, kernel"

many_listen "sctp://$HOST:0?backend=usrsctp&encap=$ENCAP" -n $many
active=$(associations Active)
guest "timeout 90 example-many_peer -n $many \
	-c 'sctp://$HOST:$port?backend=kernel&encap=$ENCAP'" >"$work/there" 2>&1 ||
	fail "kernel, usrsctp: $(tail -n 1 "$work/there")"
host_wait many || fail "kernel, usrsctp: $(tail -n 1 "$work/many.err")"
as_many "$work/there" "kernel, usrsctp"
one_more Active "$active" "kernel, usrsctp"
detail "3 times $many sessions, one association each"
