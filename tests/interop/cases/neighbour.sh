# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# What there is to know about siw: docs/interop.md.

one_run() {
	capture
	rdma_listen "tcp://$HOST:0" -b 100000
	there=0 here=0
	guest "timeout 90 siw_peer -c $HOST $port" >"$work/there" || there=$?
	host_wait rdma || here=$?
	[ "$there$here" = 00 ]
}

# siw closes without a Terminate: an orderly end for us, no error.  siw sometimes sends a wrong CRC:
# if that is why a run ends, tshark has to find the same in the capture, and it is run again.
# quick
# needs: example-rdma_peer
case-neighbour-close() {
	for ((run = 1; run <= 5; run++)); do
		if one_run; then
			detail "${wrong+$wrong wrong CRCs of siw before that}"
			exit 0
		fi
		grep -q 'MPA: CRC error' "$work/rdma.err" ||
			fail "siw_peer: $(tail -n 1 "$work/there"); here: $(tail -n 1 "$work/rdma.err")"
		capture_end
		cp "$work/wire.pcap" "$work/wire-$run.pcap"
		wire -Y "ip.src == $GUEST" -V | grep -q 'Bad CRC32' ||
			fail "a CRC error here, and tshark finds none: $(tail -n 1 "$work/rdma.err")"
		wrong=$((${wrong-0} + 1))
	done
	fail "$wrong wrong CRCs of siw in a row"
}

# A good CRC that comes in two segments makes siw send Terminate "CRC error": an FPDU, siw's own
# RTR Write, is taken when it comes whole and refused when it is cut inside the CRC.
# quick
case-neighbour-crc-cut() {
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
}

# A first Send right behind siw's Reply can be overlooked: 20 sessions in a row, none hangs, since
# the initiator nudges a silent peer.
# needs: example-rping_peer
case-neighbour-first-fpdu() {
	rping_server -P -S 100
	capture tcp port "$PORT"
	for ((i = 0; i < 20; i++)); do
		host timeout 90 "$build/example-rping_peer" -c "tcp://$GUEST:$PORT" -S 100 \
			>"$work/out" 2>"$work/err" || fail "session $i: $(tail -n 1 "$work/err")"
	done
	capture_end
	nudges=$(wire -Y "iwarp_rdma.opcode == 0 && tcp.dstport == $PORT" | wc -l)
	detail "20 sessions, $nudges nudged"
}

# siw raises its IRD to our ORD: what counts is its Reply.
# quick
# needs: sessctl
case-neighbour-rounding() {
	rping_server
	connected --ird 2 --ord 3
	expect "$work/connect.out" established peer_ird=3 peer_ord=2 ord=3
}

# FPDUs that siw cuts across segments and pads: all of them are read, odd sizes too.
# needs: example-rping_peer
case-neighbour-segments() {
	capture tcp port "$PORT"
	rping_server -P -S 65000
	for size in 65 1001 1461 30003; do
		host timeout 90 "$build/example-rping_peer" -c "tcp://$GUEST:$PORT" -S $size -C 2 \
			>"$work/out" 2>"$work/err" || fail "$size octets: $(tail -n 1 "$work/err")"
	done
	judge
}

# siw's Terminate has its bits swapped: recognised, shown as such with the wire's octets.
# quick
# needs: example-rping_peer
case-neighbour-terminate() {
	rping_server
	status=0
	host timeout 90 "$build/example-rping_peer" -c "tcp://$GUEST:$PORT" -S 1000 \
		>"$work/out" 2>"$work/err" || status=$?
	[ "$status" = 1 ] || fail "status $status, not 1"
	grep -q 'bit-swapped.*wire 11 01' "$work/err" || fail "$(tail -n 1 "$work/err")"
}
