# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# needs: sessctl
# What tshark makes of the wire: every kind of message.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
[ -n "${pid_wire-}" ] || skip "no tshark"
up 1
linux_up
reach 1 10.88.0.2 5000
pings 1 10.88.0.2 3 5000 || fail "ours first"
pings 2 10.88.0.1 2 5000 || fail "Linux"
ended_well 1
await 10 eval 'tshark -r "$work/wire.pcap" -Y "infiniband.mad.attributeid == 0x16" 2>/dev/null | grep -q .' ||
	fail "no DREP"
tshark -r "$work/wire.pcap" -T fields -e infiniband.mad.attributeid >"$work/attributes" 2>/dev/null
for a in 0x0010 0x0013 0x0014 0x0015 0x0016 0x0035 0x0038; do
	grep -q "$a" "$work/attributes" || fail "no MAD with attribute $a"
done
