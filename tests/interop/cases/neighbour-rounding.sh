# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# siw raises its IRD to our ORD: what counts is its Reply.
# quick
# needs: sessctl
rping_server
connected --ird 2 --ord 3
expect "$work/connect.out" established peer_ird=3 peer_ord=2 ord=3
