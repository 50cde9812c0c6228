# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Nobody asks for CRCs.
# needs: sessctl
siw vanilla
siw_sets_up --crc off
expect "$work/listen.out" established transport=tcp role=responder enhanced=true crc=false
