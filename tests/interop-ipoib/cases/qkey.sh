# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# quick
# needs: sessctl
# A controlled Q_Key: all datagrams of the link have it.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
up 1 --qkey 0x80001234
linux_up
reach 1 10.88.0.2 56
pings 1 10.88.0.2 3 56 || fail "ours first"
pings 2 10.88.0.1 3 56 || fail "Linux"
clean 1
ended_well 1
