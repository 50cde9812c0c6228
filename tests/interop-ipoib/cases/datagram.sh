# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# quick
# needs: sessctl
# Linux in datagram mode: it takes our connection and answers in datagrams.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
up 1
linux_up datagram
reach 1 10.88.0.2 1000
pings 1 10.88.0.2 4 1000 || fail "ours first"
pings 2 10.88.0.1 3 1000 || fail "Linux"
pings 1 10.88.0.2 3 20000 || fail "a large packet, which Linux answers in fragments"
clean 1
ended_well 1
