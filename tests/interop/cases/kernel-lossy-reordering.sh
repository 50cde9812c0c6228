# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# SCTP over UDP: loss 1 %, delay, reordering and duplication, both ways; put and get by
# either end, digests equal.
# needs: sessctl
judged_sctp
sctp_over_udp
disorder
sessctl_in_guest "sctp://$GUEST:$PORT?backend=kernel&$IN_UDP"
transfer get 3000000 "sctp://$GUEST:$PORT" "backend=native&$IN_UDP"
guest "rm /tmp/dir/file"
transfer put 3000000 "sctp://$GUEST:$PORT" "backend=native&$IN_UDP"
guest_puts_and_gets 3000000 "$IN_UDP"
some_lost eth0 in0
