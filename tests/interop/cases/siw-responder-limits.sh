# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# IRD and ORD at the edges; siw offers at most 128.
# needs: sessctl
for n in 0 1 128 129; do
	rping_server
	connected --ird $n --ord $n
	most=$((n < 128 ? n : 128))
	expect "$work/connect.out" established peer_ird=$most peer_ord=$most ord=$most
	"$lab" reset
done
