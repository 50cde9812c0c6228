# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# siw's own Request: enhanced, IRD and ORD 1, no CRC asked; ours asks for it.
# quick
# needs: sessctl
siw vanilla
siw_sets_up
expect "$work/listen.out" established transport=tcp role=responder enhanced=true rev=2 \
	peer_ird=1 peer_ord=1 ord=1 p2p=false rtr=none crc=true
