# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# Nodes that come, go and move.
# needs: sessctl
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"

# The node with the administration is killed: what is connected goes on; a new one serves joins.
case-administration-restart() {
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
}

# A thousand starts of nodes of ours towards Linux, ten simultaneously: both ends ask for a connection.
# needs: sessctl ipoib-starts
# limit: 400
case-crossed-1000() {
	up 1
	linux_up
	for ((n = 20; n < 70; n++)); do
		host ip addr add "10.77.0.$n/24" dev tap0
	done
	host "$build/ipoib-starts" 10.77.0 20 50 1 10.88.0 2 1000 >"$work/starts" 2>&1 ||
		fail "$(tail -n 1 "$work/starts")"
	detail "$(tail -n 1 "$work/starts")"
	clean 1
	ended_well 1
}

# Linux gets another LID, with the same GID and queue pair: it is found there.
case-linux-moves() {
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
}

# Linux starts anew with its old queue pair numbers, and we send first.
# quick
case-restart-of-linux() {
	up 1
	linux_up
	reach 1 10.88.0.2 56
	pings 1 10.88.0.2 3 56 || fail "before"
	pings 2 10.88.0.1 2 56 || fail "before, Linux"
	both_connected 1
	guest 'rmmod ib_ipoib' || fail "ib_ipoib is in use"
	linux_up
	reach 1 10.88.0.2 20000
	[ "$reached_ms" -lt 5000 ] || fail "first answer after $reached_ms ms"
	pings 1 10.88.0.2 3 20000 || fail "afterwards"
	detail "first answer after $reached_ms ms"
	ended_well 1
}

# A killed bridge comes back with another queue pair number.
# quick
case-restart-of-ours() {
	up 1
	up 3
	linux_up
	reach 2 10.88.0.3 20000
	pings 2 10.88.0.3 3 20000 || fail "before"
	killed 3
	up 3
	reach 3 10.88.0.2 20000
	detail "first answer after $reached_ms ms"
	[ "$reached_ms" -lt 10000 ] || fail "first answer after $reached_ms ms"
	reach 2 10.88.0.3 20000
	pings 3 10.88.0.2 3 20000 || fail "ours first"
	pings 2 10.88.0.3 3 20000 || fail "Linux"
	ended_well 3
	ended_well 1
}

# Linux's interface goes down and up: DREQs, leaves and joins.
case-up-and-down() {
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
}
