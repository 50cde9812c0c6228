# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# quick
# needs: sessctl
# A killed bridge comes back with another queue pair number.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
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
