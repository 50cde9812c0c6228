# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# The same directly on IP.
# needs: sessctl
capture ip proto 132
disorder
sessctl_in_guest "sctp://$GUEST:$PORT?backend=kernel&encap=off"
transfer get 3000000 "sctp://$GUEST:$PORT" "backend=usrsctp&encap=off"
guest "rm /tmp/dir/file"
transfer put 3000000 "sctp://$GUEST:$PORT" "backend=usrsctp&encap=off"
some_lost eth0 in0
kill "$pid_capture"
wait "$pid_capture" 2>/dev/null || true
some_disordered
detail "packets from the guest: $(cat "$work/disorder")"
