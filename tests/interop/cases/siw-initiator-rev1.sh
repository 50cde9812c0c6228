# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# siw as an MPA Rev 1 peer.
# quick
# needs: sessctl
siw param mpa_version=1
siw_sets_up
expect "$work/listen.out" established transport=tcp role=responder enhanced=false rev=1 \
	peer_ird=0 peer_ord=0 p2p=false
