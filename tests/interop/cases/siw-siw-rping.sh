# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# The lab itself: siw against siw in the guest works, so a failure elsewhere is not the lab's.
# quick
rping_server -S 1000
guest "timeout 90 rping -c -a $GUEST -p $PORT -S 1000 -C 3" >/dev/null || fail "rping -c failed"
rping_ended
