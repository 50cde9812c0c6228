# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# The lab itself: kernel SCTP works in the guest, encapsulated in UDP too.
# quick
guest checksctp >/dev/null || fail "checksctp says no"
sctp_over_udp
guest_start server "exec sctp_test -H $GUEST -P 5000 -l"
guest_listens 5000 sctp
guest "timeout 90 sctp_test -H $GUEST -P 5001 -h $GUEST -p 5000 -s -x 2 -c 3" >/dev/null ||
	fail "sctp_test failed"
