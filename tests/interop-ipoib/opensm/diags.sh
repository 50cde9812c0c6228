#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# infiniband-diags, unmodified, on our subnet in UDP: sessctl run --fabric.  One line a case; root.
# usage: diags.sh BUILD
# shellcheck disable=SC2317 # functions are called through test_case
set -u
here=$(cd "$(dirname "$0")" && pwd)
SESSCTL=$(realpath "$1/sessctl")
PATH=$PATH:/usr/sbin

what='contact 34: infiniband-diags'
# shellcheck source=tests/interop-ipoib/opensm/udp.bash
. "$here/udp.bash"
for need in saquery ip; do
	command -v $need >/dev/null || skip "try: apt-get install -y --no-install-recommends infiniband-diags iproute2"
done
[ "$(id -u)" = 0 ] || skip "it needs root"
[ -c /dev/net/tun ] || skip "/dev/net/tun is missing; try: modprobe tun"

preload='' umad2sim='' # no ibsim here
# shellcheck source=tests/ib/lib.bash
. "$here/../../ib/lib.bash"
mkfifo "$work/never"
stop() {
	[[ $BASHPID = "$$" ]] || return
	udp_stop
	fabric_stop
}
trap stop EXIT
trap 'exit 1' INT TERM

# says TEXT COMMAND...: as node 9, well, and with that line (an extended regular expression) in what it says
says() {
	local text=$1 got
	shift
	got=$(udp_run 9 "$@" 2>&1)
	why="status $? of $*: $(tail -n 3 <<<"$got")"
	[[ $why = "status 0 "* ]] || return
	why="$* does not say '$text': $(head -n 5 <<<"$got")"
	grep -qE "$text" <<<"$got"
}

saqueries() {
	says 'NodeDescription.*ddpsess LID 2' saquery && says 'Mlid\.+0xC000' saquery -g &&
		says 'dlid\.+2' saquery --src-to-dst 1:2 && says 'base_lid\.+1$' saquery -s &&
		says 'Capability mask\.+0x2200' saquery -c && says 'sm lid 1 .*SMINFO_MASTER' sminfo
}

tables() { # several segments: 24 groups of the host
	local i
	ip netns exec "$udp_net" python3 -c 'import socket, sys
s = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for i in range(2)]
for i in range(24):
    s[i // 12].setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
        socket.inet_aton("239.1.1.%d" % i) + socket.inet_aton("10.9.2.1"))
print("joined", flush=True)
sys.stdin.read()' <>"$work/never" >"$work/member" &
	udp_nodes+=($!)
	counted() {
		i=$(udp_run 9 saquery -g 2>&1 | grep -c MGID)
		why="$i groups"
		[ "$i" -ge 25 ]
	}
	until_ready 10 counted
}

counters() {
	says 'Port counters: Lid 2 port' perfquery 2 && says 'PortXmitPkts:\.+[1-9]' perfquery 2 1 &&
		until_ready 15 says 'PortMulticastXmitPkts:\.+[1-9]' perfquery -x 1 1 &&
		says 'Lid 9 port 1' perfquery
}

management() {
	says 'PortGuid:\.+0x0*2$' smpquery nodeinfo 2 && says 'Lid:\.+2$' smpquery portinfo 2 &&
		says '0xffff' smpquery pkeys 2 && says 'ddpsess LID 1' smpquery nodedesc 1 &&
		says 'PortGuid:\.+0x0*9$' smpquery -D nodeinfo 0 && says 'GID fe80::9 LID start 0x9' ibaddr &&
		says 'Base lid: 9' ibstat
}

discovery() {
	says '^Ca	: 0x0*1 .*ddpsess LID 1' ibhosts && says '^Ca	: 0x0*2 ' ibhosts && says '^Ca	: 0x0*9 ' ibhosts &&
		says '^\[2\]	"H-0*2"\[1\]\(2\).*lid 2 ' ibnetdiscover &&
		says '^Switch.*network 127.0.0.0/24' ibswitches && says 'ddpsess LID 2' iblinkinfo &&
		says 'PortGuid:\.+0x0*2$' smpquery -D nodeinfo 0,1,2
}

traces() { # through the network, which looks like a switch
	says '^\[1\] -> switch port \{0x0.*\}\[9\] lid 255-255 "network 127.0.0.0/24"' ibtracert 9 2 &&
		says '^\[2\] -> ca port \{0x0*2\}\[1\] lid 2-2 ' ibtracert 9 2 && says '^\[2\] -> ca port' ibtracert 1 2 &&
		says '[3-9] nodes checked, 0 bad nodes found' ibqueryerrors &&
		says 'Port counters: Lid 255 port 3' perfquery 255 3 || return
	! udp_run 9 ibqueryerrors 2>&1 | grep -i fail
}

taken_gid() { # of a node that has joined: refused, with the node and what to try
	why=$(ip netns exec "$udp_net" "$SESSCTL" run --fabric 127.0.0.7:4791,127.0.0.1,fe80::2 -- ibaddr 2>&1) &&
		return 1
	[[ $why = *"the node with LID 2 has the GID fe80::2 already; try: another GID in --fabric"* ]] &&
		says 'GID fe80::9' ibaddr
}

pings() {
	udp_run 8 ibping -S >"$work/pong" 2>&1 &
	udp_nodes+=($!)
	heard() { says '1 received, 0% packet loss' ibping -c 1 8; }
	until_ready 10 heard && says '3 packets transmitted, 3 received' ibping -f -c 3 8
}

nobody() { # a LID without a node: an error, in time
	why="no error"
	! udp_run 9 smpquery -t 200 nodeinfo 77 >"$work/nobody" 2>&1 && grep -q failed "$work/nobody" &&
		! udp_run 9 smpquery -t 200 -D nodeinfo 0,1,77 >"$work/nobody" 2>&1 && grep -q failed "$work/nobody"
}

refusals() {
	why="no reason: $(udp_run 2 ibstat -p 2>&1; udp_run 2 saquery 2>&1)"
	[[ $why = *"UDP on 127.0.0.2:4791: Address already in use"* ]] || return
	why=$("$SESSCTL" run --fabric 127.0.0.9,fe80::9 -- true 2>&1)
	[[ $why = *"--fabric"* ]]
}

if ! udp_start; then
	echo "not ok contact 34: a subnet in UDP: $(tail -n 1 "$work"/udp*.err | tr '\n' ' ')"
	exit 1
fi
test_case 'contact 34: saquery, sminfo' saqueries
test_case 'contact 34: tables in segments' tables
test_case 'contact 34: perfquery' counters
test_case 'contact 34: smpquery, ibaddr, ibstat' management
test_case 'contact 34: ibnetdiscover, ibhosts, iblinkinfo' discovery
test_case 'contact 34: ibtracert, ibqueryerrors' traces
test_case 'contact 35: a GID that a node has already' taken_gid
test_case 'contact 34: ibping' pings
test_case 'contact 34: a node that is not there' nobody
test_case 'contact 34: an address that is taken, a fabric that cannot be' refusals
exit $((failures > 0))
