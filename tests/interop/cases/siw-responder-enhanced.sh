# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Enhanced Request; siw answers with the values it was offered.
# quick
# needs: sessctl
rping_server
connected --ird 4 --ord 7
expect "$work/connect.out" established enhanced=true rev=2 ird=4 ord=7 peer_ird=7 peer_ord=4 \
	p2p=false rtr=none markers_tx=false markers_rx=false
