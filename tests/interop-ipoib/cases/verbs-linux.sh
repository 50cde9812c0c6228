# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# needs: sessctl
# --port verbs in one guest, Linux's ib_ipoib in a second one, the administration here: each reaches each.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
second_up
up 1
verbs_up
second "modprobe ib_ipoib && echo connected >/sys/class/net/ib0/mode && ip link set ib0 mtu 65520 &&
	ip addr add 10.88.0.5/24 dev ib0 && ip -6 addr add fd88::5/64 dev ib0 nodad && ip link set ib0 up &&
	for ((i = 0; i < 200; i++)); do
		[ \"\$(cat /sys/class/net/ib0/carrier 2>/dev/null)\" = 1 ] && exit 0; sleep 0.05; done; exit 1" ||
	fail "Linux does not join"
reach 2 10.88.0.5 56
pings 2 10.88.0.5 4 60000 || fail "60000 octets to Linux"
second "ping -q -c 4 -s 60000 -W 3 10.88.0.2" >"$work/ping" || fail "60000 octets from Linux: $(cat "$work/ping")"
second "ping -q -c 3 -s 1000 -W 3 fd88::2" >/dev/null || fail "IPv6 from Linux"
[ "$(verbs_connections)" = 2 ] || fail "$(verbs_connections) connections, not one in each direction"
pings 1 10.88.0.2 3 20000 || fail "ours to the adapter"
pings 1 10.88.0.5 3 20000 || fail "ours to Linux"
verbs_clean
clean 1
detail "$(verbs_count qp_tx) messages sent, $(verbs_count qp_rx) received"
verbs_down
await 10 eval 'second "cat /sys/class/infiniband/rxe0/ports/1/cm_rx_msgs/dreq" | grep -qv "^0$"' ||
	fail "no DREQ came to Linux"
ended_well 1
second_down
