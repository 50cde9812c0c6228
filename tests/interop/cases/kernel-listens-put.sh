# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# The guest's kernel SCTP listens, our engine here puts a file: SCTP over UDP.
# quick
# needs: sessctl
judged_sctp
sctp_over_udp
sessctl_in_guest "sctp://$GUEST:$PORT?backend=kernel&$IN_UDP"
transfer put 3000000 "sctp://$GUEST:$PORT" "backend=native&$IN_UDP"
expect "$work/put.out" established transport=sctp role=initiator backend=native "encap=$ENCAP"
