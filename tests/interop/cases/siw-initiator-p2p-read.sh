# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Peer-to-peer with the Read RTR alone.
# needs: sessctl
siw param peer_to_peer=1 rtr_type=64
siw_sets_up
expect "$work/listen.out" established transport=tcp role=responder enhanced=true \
	p2p=true rtr=read
