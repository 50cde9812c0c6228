# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# IRD and ORD at the top of the range and left to the applications: siw's Reply decides, and is
# not rounded beyond what it can do.
# needs: sessctl
for n in 16382 ulp; do
	rping_server
	connected --ird $n --ord $n
	detail "$n: $(grep -o '"peer_ird":[ 0-9]*\|"peer_ord":[ 0-9]*' "$work/connect.out" | tr '\n' ' ')"
	expect "$work/connect.out" established peer_ird=128 peer_ord=128
	"$lab" reset
done
