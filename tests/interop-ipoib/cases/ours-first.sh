# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# quick
# needs: sessctl
# We connect to Linux: small and large echoes.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
up 1
linux_up
reach 1 10.88.0.2 56
pings 1 10.88.0.2 5 56 || fail "no echo of 56 octets"
pings 1 10.88.0.2 5 60000 || fail "no echo of 60000 octets"
both_connected 1
clean 1
ended_well 1
guest 'cat /sys/class/infiniband/rxe0/ports/1/cm_rx_msgs/dreq' | grep -qv '^0$' || fail "no DREQ came"
