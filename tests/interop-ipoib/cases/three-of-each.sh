# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# needs: sessctl
# Three of ours and three guests with Linux on one subnet: everybody reaches everybody, with 20 000 octets
# and by IPv6, and each pair has the connections that it should have.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
ours=(1 3 4) linux=(2 5 6)
all=("${ours[@]}" "${linux[@]}")
more_guests 5 6
apart 3 4
for n in "${ours[@]}"; do
	up "$n"
done
for n in "${linux[@]}"; do
	linux_up connected "$n"
done

ways=0
for from in "${all[@]}"; do
	for to in "${all[@]}"; do
		[ "$from" != "$to" ] || continue
		reach "$from" "10.88.0.$to" 20000
		pings "$from" "10.88.0.$to" 2 20000 || fail "$from to $to"
		ways=$((ways + 1))
	done
done

# With each of ours one connection, with each Linux one in each direction.
for n in "${ours[@]}"; do
	await 10 eval '[ "$(connections "$n")" = 8 ]' || fail "$n has $(connections "$n") connections, not 8"
done
for n in "${linux[@]}"; do
	for to in "${all[@]}"; do
		[ "$n" = "$to" ] || pings "$n" "fd88::$to" 2 1000 ||
			fail "IPv6 from $n to $to"
	done
done
detail "$ways ways, 8 connections at each of ours"
for n in "${ours[@]}"; do
	clean "$n"
done
for n in 4 3 1; do
	ended_well "$n"
done
