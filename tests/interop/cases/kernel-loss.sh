# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# SCTP over UDP from the guest to here while the guest loses and reorders packets.
# needs: sessctl
judged_sctp
sctp_over_udp
lossy 2
sessctl_in_guest "sctp://$GUEST:$PORT?backend=kernel&$IN_UDP"
transfer get 3000000 "sctp://$GUEST:$PORT" "backend=native&$IN_UDP"
some_lost
