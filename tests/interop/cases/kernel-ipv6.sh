# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# IPv6, SCTP directly on IP.
# needs: sessctl
judged_sctp
sessctl_in_guest "sctp://[$GUEST6]:$PORT?backend=kernel&$ON_IP"
transfer put 300000 "sctp://[$GUEST6]:$PORT" "backend=native&$ON_IP"
