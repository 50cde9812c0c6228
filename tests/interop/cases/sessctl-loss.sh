# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# TCP from the guest to here while the guest loses and reorders packets.
# needs: sessctl
lossy 1
sessctl_in_guest "tcp://$GUEST:$PORT"
transfer get 3000000 "tcp://$GUEST:$PORT" ""
some_lost
