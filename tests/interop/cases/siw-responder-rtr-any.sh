# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Peer-to-peer with every RTR type offered; siw takes Write.
# needs: sessctl
rping_server
capture tcp port "$PORT"
established --p2p
expect "$work/connect.out" established p2p=true rtr=write
judge
