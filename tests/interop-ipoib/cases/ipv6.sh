# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# quick
# needs: sessctl
# Neighbour discovery and echoes over IPv6.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
up 1
linux_up
reach 1 fd88::2 60000
pings 1 fd88::2 4 60000 || fail "ours first"
pings 2 fd88::1 3 60000 || fail "Linux"
clean 1
ended_well 1
