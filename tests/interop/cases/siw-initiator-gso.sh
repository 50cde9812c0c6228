# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# siw sets a reserved bit of the Request; receivers ignore it.
# needs: sessctl
siw param try_gso=1
siw_sets_up
expect "$work/listen.out" established transport=tcp role=responder enhanced=true peer_ird=1
