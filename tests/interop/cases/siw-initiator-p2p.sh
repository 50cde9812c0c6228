# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Peer-to-peer; siw can send Write and Read RTRs and sends the Write.
# quick
# needs: sessctl
siw param peer_to_peer=1
siw_sets_up
expect "$work/listen.out" established transport=tcp role=responder enhanced=true \
	p2p=true rtr=write
