# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# The guest's kernel SCTP listens, usrsctp here puts a file: SCTP over UDP.
# quick
# needs: sessctl
sctp_over_udp
sessctl_in_guest "sctp://$GUEST:$PORT?backend=kernel&encap=$ENCAP"
transfer put 3000000 "sctp://$GUEST:$PORT" "backend=usrsctp&encap=$ENCAP"
expect "$work/put.out" established transport=sctp role=initiator backend=usrsctp "encap=$ENCAP"
