# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# IPv6, SCTP directly on IP.
# needs: sessctl
sessctl_in_guest "sctp://[$GUEST6]:$PORT?backend=kernel&encap=off"
transfer put 300000 "sctp://[$GUEST6]:$PORT" "backend=usrsctp&encap=off"
