# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Unenhanced Request (Rev 1) to siw.
# quick
# needs: sessctl
rping_server
connected --plain
expect "$work/connect.out" established transport=tcp role=initiator enhanced=false rev=1 \
	crc=true p2p=false rtr=none ird=16 ord=16
