# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# needs: sessctl
# --port verbs in one guest, Linux's ib_ipoib in a second one, the administration here: each reaches each.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
more_guests 5
up 1
verbs_up
linux_up connected 5
reach 2 10.88.0.5 56
pings 2 10.88.0.5 4 60000 || fail "60000 octets to Linux"
pings 5 10.88.0.2 4 60000 || fail "60000 octets from Linux"
pings 5 fd88::2 3 1000 || fail "IPv6 from Linux"
[ "$(verbs_connections)" = 2 ] || fail "$(verbs_connections) connections, not one in each direction"
pings 1 10.88.0.2 3 20000 || fail "ours to the adapter"
pings 1 10.88.0.5 3 20000 || fail "ours to Linux"
verbs_clean
clean 1
detail "$(verbs_count qp_tx) messages sent, $(verbs_count qp_rx) received"
verbs_down
await 10 eval 'at 5 "cat /sys/class/infiniband/rxe0/ports/1/cm_rx_msgs/dreq" | grep -qv "^0$"' ||
	fail "no DREQ came to Linux"
ended_well 1
