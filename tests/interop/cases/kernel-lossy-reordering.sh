# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# SCTP over UDP: loss 1 %, delay, reordering and duplication, both ways; put and get, digests
# equal.
# needs: sessctl
sctp_over_udp
disorder
sessctl_in_guest "sctp://$GUEST:$PORT?backend=kernel&encap=$ENCAP"
transfer get 3000000 "sctp://$GUEST:$PORT" "backend=usrsctp&encap=$ENCAP"
guest "rm /tmp/dir/file"
transfer put 3000000 "sctp://$GUEST:$PORT" "backend=usrsctp&encap=$ENCAP"
some_lost eth0 in0
