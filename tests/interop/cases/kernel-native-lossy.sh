# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# The same directly on IP.
# needs: sessctl
judged_sctp
disorder
sessctl_in_guest "sctp://$GUEST:$PORT?backend=kernel&$ON_IP"
transfer get 3000000 "sctp://$GUEST:$PORT" "backend=native&$ON_IP"
guest "rm /tmp/dir/file"
transfer put 3000000 "sctp://$GUEST:$PORT" "backend=native&$ON_IP"
guest_puts_and_gets 3000000 "$ON_IP"
some_lost eth0 in0
some_disordered
detail "packets from the guest: $(cat "$work/disorder")"
