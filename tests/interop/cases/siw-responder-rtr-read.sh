# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Peer-to-peer; the RTR is a zero-length Read.
# needs: sessctl
rping_server
capture tcp port "$PORT"
established --p2p --rtr read
expect "$work/connect.out" established enhanced=true p2p=true rtr=read
judge
