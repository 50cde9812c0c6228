# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# A good CRC that comes in two segments makes siw send Terminate "CRC error": an FPDU, siw's own
# RTR Write, is taken when it comes whole and refused when it is cut inside the CRC.
# quick
rping_server
capture tcp port "$PORT"
# A write is a segment, since the one before has been acknowledged.  siw can find two of them in one
# piece even so, when it is late: then the same again.
# shellcheck disable=SC2016 # for the other shell
host timeout 250 bash -c '
	trap "" PIPE
	say() {
		printf "$1" >&3 2>/dev/null || return 1
		until [ "$(ss -Htn dst "$to" | awk "{ print \$3 }")" = 0 ]; do
			ss -Htn state established dst "$to" | grep -q . || return 1
			sleep 0.01
		done
	}
	to=$0:$1
	exec 3<>"/dev/tcp/$0/$1"
	say "MPA ID Req Frame\x40\x01\x00\x00"
	head -c 20 <&3 >/dev/null
	fpdu="\x00\x0e\xc1\x40\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\xeb\xd3"
	for i in 1 2 3 4; do
		say "$fpdu\x4c\x5f" || exit
	done
	for i in {1..50}; do
		say "$fpdu" && say "\x4c\x5f" && sleep 0.1 || break
	done
	timeout 30 cat <&3 >/dev/null 2>&1
	[ $? != 124 ]' "$GUEST" "$PORT" ||
	fail "siw does not end the session: it reads cut CRCs now"
capture_end
wire -V >"$work/wire.txt"
if grep -q 'Bad CRC32' "$work/wire.txt"; then
	fail "not our CRC alone: $(grep -m 1 'Bad CRC32' "$work/wire.txt")"
fi
writes=$(wire -Y "iwarp_rdma.opcode == 0 && tcp.dstport == $PORT" | wc -l)
[ "$writes" -ge 5 ] || fail "tshark: $writes RDMA Writes, four taken and one refused would be five"
[ "$(wire -Y "iwarp_rdma.opcode == 7 && tcp.srcport == $PORT" | wc -l)" = 1 ] ||
	fail "no Terminate from siw"
guest 'dmesg | grep -q "siw: crc error"' || fail "siw's kernel log has no CRC error"
detail "the FPDU taken $((writes - 1)) times, then refused"
