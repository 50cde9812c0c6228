# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# quick
# needs: sessctl
# A link MTU of 4096: datagrams of 4092 octets.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
up 1 --link-mtu 4096 --mode ud --mtu 4096
linux_up datagram
reach 2 10.88.0.1 4000
guest 'ip link set ib0 mtu 4092' || fail "Linux does not take an MTU of 4092"
pings 2 10.88.0.1 3 4000 || fail "4000 octets"
guest 'cat /sys/class/net/ib0/mtu' | grep -qx 4092 || fail "another MTU"
clean 1
ended_well 1
