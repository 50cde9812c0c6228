# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# siw asks for CRCs, so there are some (RFC 5044 7.1.1).
# needs: sessctl
siw param mpa_crc_required=1
siw_sets_up --crc off
expect "$work/listen.out" established transport=tcp role=responder enhanced=true crc=true
