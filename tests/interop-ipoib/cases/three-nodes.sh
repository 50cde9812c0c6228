# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# needs: sessctl
# Two of ours and Linux: everybody reaches everybody.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
up 1
up 3
linux_up
for to in 1 3; do
	reach 2 "10.88.0.$to" 20000
	pings 2 "10.88.0.$to" 3 20000 || fail "Linux to $to"
done
pings 1 10.88.0.2 3 20000 || fail "1 to Linux"
pings 3 10.88.0.2 3 20000 || fail "3 to Linux"
both_connected 3
clean 1
clean 3
ended_well 3
ended_well 1
