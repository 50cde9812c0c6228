# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# needs: sessctl
# Linux gets another LID, with the same GID and queue pair: it is found there.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
up 1
linux_up
reach 1 10.88.0.2 20000
pings 2 10.88.0.1 2 20000 || fail "before"
# its LID is the first address; the other one is for the commands of this test
guest 'ip addr add 10.77.0.12/24 dev eth0; ip addr del 10.77.0.2/24 dev eth0
	ip addr replace 10.77.0.12/24 dev eth0; ip addr add 10.77.0.2/24 dev eth0
	ip link set ib0 down; ip link set ib0 up
	for ((i = 0; i < 200; i++)); do
		[ "$(cat /sys/class/net/ib0/carrier)" = 1 ] && exit 0; sleep 0.05; done; exit 1' ||
	fail "Linux does not join again"
reach 1 10.88.0.2 20000
[ "$reached_ms" -lt 5000 ] || fail "found after $reached_ms ms"
pings 1 10.88.0.2 3 20000 || fail "afterwards"
pings 2 10.88.0.1 3 20000 || fail "afterwards, Linux"
[ "$(count 1 sa_moved)" = 1 ] || fail "sa_moved: $(count 1 sa_moved)"
[ "$(count 1 path_moved)" -ge 1 ] || fail "path_moved: $(count 1 path_moved)"
detail "found after $reached_ms ms"
clean 1
ended_well 1
