# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# needs: sessctl
# The node with the administration is killed: what is connected goes on; a new one serves joins.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
up 1
up 3
linux_up
reach 3 10.88.0.2 20000
killed 1
pings 3 10.88.0.2 5 20000 || fail "ours, without the administration"
pings 2 10.88.0.3 3 20000 || fail "Linux, without the administration"
up 1
# nothing informs Linux that there is a new one, so it joins again because it is asked to
guest 'ip link set ib0 down; ip link set ib0 up
	for ((i = 0; i < 400; i++)); do
		[ "$(cat /sys/class/net/ib0/carrier)" = 1 ] && exit 0; sleep 0.05; done; exit 1' ||
	fail "Linux does not join again"
reach 1 10.88.0.2 20000
pings 1 10.88.0.2 3 20000 || fail "the new one"
ended_well 3
ended_well 1
