# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# quick
# needs: sessctl
# Linux starts anew with its old queue pair numbers, and we send first.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
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
