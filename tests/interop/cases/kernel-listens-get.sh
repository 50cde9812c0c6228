# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# The same, a file fetched.
# quick
# needs: sessctl
judged_sctp
sctp_over_udp
sessctl_in_guest "sctp://$GUEST:$PORT?backend=kernel&$IN_UDP"
transfer get 3000000 "sctp://$GUEST:$PORT" "backend=native&$IN_UDP"
