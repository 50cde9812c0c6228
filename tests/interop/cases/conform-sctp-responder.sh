# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# sessctl conform against the kernel's SCTP as responder: what the profile knows and nothing else.
# limit: 900
# needs: sessctl
sctp_over_udp
guest_start hold "sctp_hold -s $GUEST $PORT"
guest_listens "$PORT" sctp
conform_sctp responder "sctp://$GUEST:$PORT?$IN_UDP"
