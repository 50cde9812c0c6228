# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# needs: sessctl
# Linux's interface goes down and up: DREQs, leaves and joins.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
up 1
linux_up
for ((round = 0; round < 4; round++)); do
	reach 1 10.88.0.2 20000
	pings 1 10.88.0.2 3 20000 || fail "round $round"
	guest 'ip link set ib0 down; ip link set ib0 up
		for ((i = 0; i < 200; i++)); do
			[ "$(cat /sys/class/net/ib0/carrier)" = 1 ] && exit 0; sleep 0.05; done; exit 1' ||
		fail "Linux does not join again"
done
reach 2 10.88.0.1 20000
pings 2 10.88.0.1 3 20000 || fail "at the end"
clean 1
ended_well 1
