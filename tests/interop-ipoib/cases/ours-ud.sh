# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# quick
# needs: sessctl
# We take no connections: Linux uses datagrams.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
up 1 --mode ud
linux_up
reach 1 10.88.0.2 1000
pings 1 10.88.0.2 4 1000 || fail "ours first"
pings 2 10.88.0.1 3 1000 || fail "Linux"
[ "$(connections 1)" = 0 ] || fail "there is a connection"
clean 1
ended_well 1
