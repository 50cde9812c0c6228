# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# quick
# needs: sessctl
# Linux joins the broadcast group of our administration, and takes what it says.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
up 1
linux_up
guest 'ip -o link show ib0' | grep -q 'mtu 65520' || fail "no connected mode"
await 5 eval '[ "$(count 1 sa_queries)" -ge 6 ]' || fail "Linux asked $(count 1 sa_queries) times"
# of ours those for groups that are not there
[ "$(count 1 sa_refused)" = "$(count 1 sac_refused)" ] || fail "a query of Linux was refused"
guest 'cat /sys/class/infiniband/rxe0/ports/1/link_layer' | grep -q InfiniBand || fail "no InfiniBand"
clean 1
detail "$(count 1 sa_queries) queries, $(count 1 sa_groups) groups"
ended_well 1
