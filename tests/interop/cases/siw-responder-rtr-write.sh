# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Peer-to-peer; the RTR is a zero-length Write.
# quick
# needs: sessctl
rping_server
capture tcp port "$PORT"
established --p2p --rtr write
expect "$work/connect.out" established enhanced=true p2p=true rtr=write
judge
