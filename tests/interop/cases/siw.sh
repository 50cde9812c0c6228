# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Set-ups with siw in each of its modes, in both roles; and siw with itself.
# needs: sessctl

# siw in this mode calls us; what was negotiated.
initiator() { # 'MODE' 'LISTEN-OPTION...' KEY=VALUE...
	local mode options
	read -ra mode <<<"$1"
	read -ra options <<<"$2"
	siw "${mode[@]}"
	siw_sets_up "${options[@]}"
	expect "$work/listen.out" established transport=tcp role=responder "${@:3}"
}

# We call siw, peer-to-peer; tshark judges the RTR.
responder_rtr() { # 'CONNECT-OPTION...' RTR
	local options
	read -ra options <<<"$1"
	rping_server
	capture tcp port "$PORT"
	established --p2p "${options[@]}"
	expect "$work/connect.out" established enhanced=true p2p=true rtr="$2"
	judge
}

# siw's own Request: enhanced, IRD and ORD 1, no CRC asked; ours asks for it.
# quick
case-siw-initiator-default() {
	initiator vanilla '' enhanced=true rev=2 peer_ird=1 peer_ord=1 ord=1 p2p=false rtr=none crc=true
}

# Nobody asks for CRCs.
case-siw-initiator-crc-off() {
	initiator vanilla '--crc off' enhanced=true crc=false
}

# siw asks for CRCs, so there are some (RFC 5044 7.1.1).
case-siw-initiator-crc() {
	initiator 'param mpa_crc_required=1' '--crc off' enhanced=true crc=true
}

# siw sets a reserved bit of the Request; receivers ignore it.
case-siw-initiator-gso() {
	initiator 'param try_gso=1' '' enhanced=true peer_ird=1
}

# Peer-to-peer; siw can send Write and Read RTRs and sends the Write.
# quick
case-siw-initiator-p2p() {
	initiator 'param peer_to_peer=1' '' enhanced=true p2p=true rtr=write
}

# Peer-to-peer with the Read RTR alone.
case-siw-initiator-p2p-read() {
	initiator 'param peer_to_peer=1 rtr_type=64' '' enhanced=true p2p=true rtr=read
}

# siw as an MPA Rev 1 peer.
# quick
case-siw-initiator-rev1() {
	initiator 'param mpa_version=1' '' enhanced=false rev=1 peer_ird=0 peer_ord=0 p2p=false
}

call() { # SIW'S OURS: one session; what siw_peer says is in $said
	listen "tcp://$HOST:0" --count 1 --ird "$2" --ord "$2"
	# sessctl gives no advert: siw_peer ends when it has the Reply
	said=$(guest "timeout 90 siw_peer -c $HOST -i $1 -o $1 $port" 2>&1 | tail -n 1) || true
}

in_force() { # SIW'S OURS SIW'S-CUT
	call "$1" "$2"
	[[ $said = *'no advert'* ]] || fail "$1 and $2: $said"
	host_wait listen || fail "$1 and $2: $(tail -n 1 "$work/listen.err")"
	expect "$work/listen.out" established role=responder enhanced=true peer_ird="$3" \
		peer_ord="$3" ird="$2" ord=$(($3 < $2 ? $3 : $2))
}

# IRD and ORD at the edges with siw as initiator: it asks for 0, 1 and 128, we have 0 to 16382; what is
# in force is the smaller one.  129 its library refuses itself, its "as many as there are" is 128.
# A Reply that leaves the numbers to the applications (0x3FFF) it takes for an error.
case-siw-initiator-limits() {
	for theirs in 0 1 128; do
		for ours in 0 1 128 129 16382; do
			in_force $theirs $ours $theirs
		done
	done
	in_force 255 129 128
	call 129 129
	[[ $said = *'connect: Invalid argument' ]] || fail "129 asked for: $said"
	kill "$pid_listen"
	call 1 ulp
	[[ $said = *'connect: Invalid argument' ]] || fail "0x3FFF in our Reply: $said"
	expect "$work/listen.out" established peer_ird=1 peer_ord=1
}

# Enhanced Request; siw answers with the values it was offered.
# quick
case-siw-responder-enhanced() {
	rping_server
	connected --ird 4 --ord 7
	expect "$work/connect.out" established enhanced=true rev=2 ird=4 ord=7 peer_ird=7 peer_ord=4 \
		p2p=false rtr=none markers_tx=false markers_rx=false
}

# Unenhanced Request (Rev 1) to siw.
# quick
case-siw-responder-plain() {
	rping_server
	connected --plain
	expect "$work/connect.out" established transport=tcp role=initiator enhanced=false rev=1 \
		crc=true p2p=false rtr=none ird=16 ord=16
}

# CRC off on both sides: the field is there and zero.
case-siw-responder-crc-off() {
	rping_server
	capture tcp port "$PORT"
	established --p2p --rtr write --crc off
	expect "$work/connect.out" established crc=false
	judge nocrc
	crcs_are_zero
}

# siw knows no markers and rejects them.
# quick
case-siw-responder-markers() {
	rping_server
	connect --markers on
	[ "$status" = 3 ] || fail "status $status, not 3 (rejected)"
	expect "$work/connect.out" rejected
}

# IRD and ORD at the edges; siw offers at most 128.
case-siw-responder-limits() {
	for n in 0 1 128 129; do
		rping_server
		connected --ird $n --ord $n
		most=$((n < 128 ? n : 128))
		expect "$work/connect.out" established peer_ird=$most peer_ord=$most ord=$most
		"$lab" reset
	done
}

# IRD and ORD at the top of the range and left to the applications: siw's Reply decides, and is
# not rounded beyond what it can do.
case-siw-responder-limits-high() {
	for n in 16382 ulp; do
		rping_server
		connected --ird $n --ord $n
		detail "$n: $(grep -o '"peer_ird":[ 0-9]*\|"peer_ord":[ 0-9]*' "$work/connect.out" | tr '\n' ' ')"
		expect "$work/connect.out" established peer_ird=128 peer_ord=128
		"$lab" reset
	done
}

# Private data: siw takes 256 octets, the enhanced word among them, and resets on more.
case-siw-responder-private-data() {
	rping_server
	head -c 253 /dev/zero >"$work/253"
	connect --private-data "@$work/253"
	[ "$status" != 0 ] || fail "siw takes 253 octets now"
	head -c 252 /dev/urandom >"$work/252"
	capture tcp port "$PORT"
	connected --private-data "@$work/252"
	capture_end
	wire -Y iwarp_mpa.req -T fields -e iwarp_mpa.privatedata >"$work/sent"
	grep -qx "00100010$(od -An -v -tx1 "$work/252" | tr -d ' \n')" "$work/sent" ||
		fail "private data on the wire: $(cut -c 1-40 "$work/sent")"
}

# Peer-to-peer with every RTR type offered; siw takes Write.
case-siw-responder-rtr-any() {
	responder_rtr '' write
}

# Peer-to-peer; the RTR is a zero-length Read.
case-siw-responder-rtr-read() {
	responder_rtr '--rtr read' read
}

# Peer-to-peer; the RTR is a zero-length Write.
# quick
case-siw-responder-rtr-write() {
	responder_rtr '--rtr write' write
}

# siw has no Send RTR; with nothing in common we send Terminate 2/0/07 (RFC 6581 9.2).
case-siw-responder-rtr-send() {
	rping_server
	connect --p2p --rtr send
	[ "$status" = 4 ] || fail "status $status, not 4 (terminated)"
	expect "$work/connect.out" terminated layer=2 etype=0 code=7 by=local
}

# The lab itself: siw against siw in the guest works, so a failure elsewhere is not the lab's.
# quick
# needs:
case-siw-siw-rping() {
	rping_server -S 1000
	guest "timeout 90 rping -c -a $GUEST -p $PORT -S 1000 -C 3" >/dev/null || fail "rping -c failed"
	rping_ended
}

run_both() { # OPTION...
	guest "cd /tmp
		(timeout 30 ib_send_bw -d siw0 $* >s.out 2>&1; echo \$? >s.rc) &
		for ((i = 0; i < 100; i++)); do ss -Hltn | grep -q :18515 && break; sleep 0.1; done
		timeout 30 ib_send_bw -d siw0 $* $GUEST >c.out 2>&1; echo \$? >c.rc
		wait; echo \$(cat s.rc c.rc)"
}

# What docs/verbs.md says of ib_send_bw between two siw devices: with -R both ends are content,
# without it they do not get as far as to measure.
# needs:
case-siw-siw-send-bw() {
	[ "$(run_both -R -n 200 -s 4096)" = "0 0" ] || fail "with -R: $(guest 'tail -n 3 /tmp/[sc].out')"
	[ "$(run_both -n 200 -s 4096)" = "1 1" ] || fail "without -R it ends otherwise than the page says"
	guest "grep -c '^ 4096 ' /tmp/s.out /tmp/c.out" >"$work/measured" || true
	grep -q ':0' "$work/measured" || fail "without -R it measures: $(cat "$work/measured")"
	detail "without -R: $(guest 'grep -ihm 1 "fail\|unable\|error\|couldn" /tmp/c.out')"
}
