# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# A good CRC that comes in two segments makes siw send Terminate "CRC error": an FPDU, siw's own
# RTR Write, is taken when it comes whole and refused when it is cut inside the CRC.
# quick
rping_server
capture tcp port "$PORT"
# Each write is a segment: the first goes out at once, the next ones when their forerunner is acked.
# shellcheck disable=SC2016 # for the other shell
host timeout 20 bash -c '
	exec 3<>"/dev/tcp/$0/$1"
	printf "MPA ID Req Frame\x40\x01\x00\x00" >&3
	head -c 20 <&3 >/dev/null
	for i in 1 2 3 4; do
		printf "\x00\x0e\xc1\x40\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\xeb\xd3\x4c\x5f" >&3
		sleep 0.1
	done
	printf "\x00\x0e\xc1\x40\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\xeb\xd3" >&3
	printf "\x4c\x5f" >&3
	cat <&3 >/dev/null' "$GUEST" "$PORT" || fail "siw does not end the session: it reads cut CRCs now"
capture_end
wire -V >"$work/wire.txt"
if grep -q 'Bad CRC32' "$work/wire.txt"; then
	fail "not our CRC alone: $(grep -m 1 'Bad CRC32' "$work/wire.txt")"
fi
[ "$(wire -Y "iwarp_rdma.opcode == 0 && tcp.dstport == $PORT" | wc -l)" = 5 ] ||
	fail "tshark: not five RDMA Writes"
[ "$(wire -Y "iwarp_rdma.opcode == 7 && tcp.srcport == $PORT" | wc -l)" = 1 ] ||
	fail "no Terminate from siw"
guest 'dmesg | grep -q "siw: crc error"' || fail "siw's kernel log has no CRC error"
