# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# siw has no Send RTR; with nothing in common we send Terminate 2/0/07 (RFC 6581 9.2).
# needs: sessctl
rping_server
connect --p2p --rtr send
[ "$status" = 4 ] || fail "status $status, not 4 (terminated)"
expect "$work/connect.out" terminated layer=2 etype=0 code=7 by=local
