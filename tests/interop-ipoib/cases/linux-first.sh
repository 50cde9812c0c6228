# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# quick
# needs: sessctl
# Linux connects to us: small and large echoes.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
up 1
linux_up
reach 2 10.88.0.1 60000
pings 2 10.88.0.1 5 60000 || fail "no echo of 60000 octets"
pings 2 10.88.0.1 3 56 || fail "no echo of 56 octets"
both_connected 1
clean 1
ended_well 1
