# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# The same, a file fetched.
# quick
# needs: sessctl
sctp_over_udp
sessctl_in_guest "sctp://$GUEST:$PORT?backend=kernel&encap=$ENCAP"
transfer get 3000000 "sctp://$GUEST:$PORT" "backend=usrsctp&encap=$ENCAP"
