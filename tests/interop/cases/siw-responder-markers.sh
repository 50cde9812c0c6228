# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# siw knows no markers and rejects them.
# quick
# needs: sessctl
rping_server
connect --markers on
[ "$status" = 3 ] || fail "status $status, not 3 (rejected)"
expect "$work/connect.out" rejected
