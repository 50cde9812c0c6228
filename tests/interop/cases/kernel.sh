# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# The kernel's SCTP in the guest, with our engine here: files.
# needs: sessctl

# The guest serves files by its kernel's SCTP; every packet is judged.
served_there() { # QUERY
	judged_sctp
	[ "$1" = "$ON_IP" ] || sctp_over_udp
	sessctl_in_guest "sctp://$GUEST:$PORT?backend=kernel&$1"
}

# Our engine's part.
ours() { # put|get OCTETS QUERY
	transfer "$1" "$2" "sctp://$GUEST:$PORT" "backend=native&$3"
}

# Put and get by either end, digests equal.
in_disorder() { # QUERY
	served_there "$1"
	disorder
	ours get 3000000 "$1"
	guest "rm /tmp/dir/file"
	ours put 3000000 "$1"
	guest_puts_and_gets 3000000 "$1"
	some_lost eth0 in0
}

# Our engine here listens, the guest's kernel SCTP connects and puts a file.
# quick
case-kernel-connects-put() {
	judged_sctp
	sctp_over_udp
	mkdir "$work/dir"
	listen "sctp://$HOST:0?backend=native&$IN_UDP" --dir "$work/dir"
	guest "head -c 3000000 /dev/urandom >/tmp/file
		timeout 90 sessctl put --json /tmp/file 'sctp://$HOST:$port/file?backend=kernel&$IN_UDP'" \
		>"$work/put.out" || fail "put in the guest: $(tail -n 1 "$work/put.out")"
	same_digest "$work/dir/file" /tmp/file
	expect "$work/put.out" established transport=sctp backend=kernel
	expect "$work/listen.out" established backend=native role=responder
}

# A kernel with everything on that we have not: AUTH, ASCONF, RE-CONFIG, PR-SCTP, I-DATA, and its own
# search for the path MTU.  Both ways round, in UDP; nobody aborts, and files arrive.
# quick
case-kernel-extensions() {
	judged_sctp
	sctp_over_udp
	for s in auth addip reconf intl prsctp ecn; do
		guest "sysctl -q -w net.sctp.${s}_enable=1" || fail "no net.sctp.${s}_enable"
	done
	guest "sysctl -q -w net.sctp.plpmtud_probe_interval=5000" || fail "no PLPMTUD in this kernel"
	sessctl_in_guest "sctp://$GUEST:$PORT?backend=kernel&$IN_UDP"
	ours put 300000 "$IN_UDP"
	guest_puts_and_gets 300000 "$IN_UDP"
	# Its first probe comes when the timer has run once; ours must answer.
	host_start idle "$sessctl" connect --wait --timeout 9 \
		"sctp://$GUEST:$PORT?backend=native&$IN_UDP"
	await 12 wire_has "ip.src == $GUEST && sctp.chunk_type == 132" || fail "no PAD from the kernel"
	await 5 wire_has "ip.src == $HOST && sctp.chunk_type == 5 && frame.number > $(
		wire -Y "ip.src == $GUEST && sctp.chunk_type == 132" -T fields -e frame.number | head -n 1)" ||
		fail "the kernel's probe was not answered"
	wire_has "ip.src == $GUEST && sctp.chunk_type == 1 && sctp.parameter_type == 0x8002" ||
		fail "the kernel's INIT has no RANDOM of AUTH"
	! wire_has "sctp.chunk_type == 6" || fail "an ABORT"
}

# IPv6, SCTP directly on IP.
case-kernel-ipv6() {
	judged_sctp
	sessctl_in_guest "sctp://[$GUEST6]:$PORT?backend=kernel&$ON_IP"
	transfer put 300000 "sctp://[$GUEST6]:$PORT" "backend=native&$ON_IP"
}

# Whole sessions on our kernel backend, in the guest, where the kernel has SCTP: lists of addresses,
# paths and the primary one, and a session that stalls.
# needs: e2e
case-kernel-kernel-e2e() {
	guest_install "$build/e2e"
	# Criterion starts its own file again, which must not be the dynamic linker.
	run="LD_LIBRARY_PATH=/opt/lib timeout 160 /opt/libexec/e2e --jobs 1 --color=never --verbose"
	LAB_LIMIT=170 guest "$run --filter '*_kernel/*'" >"$work/e2e" ||
		fail "$(grep -a -m 1 '^\[FAIL\]\|^\[----\]' "$work/e2e")"
	passed=$(grep -ac '^\[PASS\]' "$work/e2e") || true
	all=$(cat "${lab%/*}"/../e2e/*_test.c | grep -c '^Test([a-z0-9]*_kernel,')
	[ "$passed" = "$all" ] || fail "$passed of $all passed"
	detail "$passed tests passed"
}

# The lab itself: kernel SCTP works in the guest, encapsulated in UDP too.
# quick
# needs:
case-kernel-kernel-sctp() {
	guest checksctp >/dev/null || fail "checksctp says no"
	sctp_over_udp
	guest_start server "exec sctp_test -H $GUEST -P 5000 -l"
	guest_listens 5000 sctp
	guest "timeout 90 sctp_test -H $GUEST -P 5001 -h $GUEST -p 5000 -s -x 2 -c 3" >/dev/null ||
		fail "sctp_test failed"
}

# Our kernel backend on both ends, in the guest, SCTP directly on IP.
case-kernel-kernel-transfer() {
	sessctl_in_guest "sctp://$GUEST:$PORT?backend=kernel&$ON_IP"
	guest "head -c 3000000 /dev/urandom >/tmp/file
		timeout 90 sessctl put --json /tmp/file 'sctp://$GUEST:$PORT/copy?backend=kernel&$ON_IP'
		cmp /tmp/file /tmp/dir/copy" >"$work/put.out" || fail "put: $(tail -n 1 "$work/put.out")"
	expect "$work/put.out" established backend=kernel encap=0
}

# The unit tests of our kernel backend, in the guest, where the kernel has SCTP: over IP, and in UDP
# with our engine at the other end.  None may be skipped but the one for a kernel without SCTP.
# quick
# needs: unit
case-kernel-kernel-unit() {
	sctp_over_udp
	guest_install "$build/unit"
	# Criterion starts its own file again, which must not be the dynamic linker.
	run="LD_LIBRARY_PATH=/opt/lib timeout 100 /opt/libexec/unit --jobs 1 --color=never --verbose"
	LAB_LIMIT=110 guest "$run --filter 'sd_kernel/*'" >"$work/unit" ||
		fail "$(grep -a -m 1 '^\[FAIL\]' "$work/unit")"
	passed=$(grep -ac '^\[PASS\]' "$work/unit") || true
	skipped=$(grep -ac '^\[SKIP\] sd_kernel::' "$work/unit") || true
	all=$(grep -c '^Test(sd_kernel,' "${lab%/*}/../unit/sctp_ddp/sd_kernel_test.c")
	[ $((passed + skipped)) = "$all" ] || fail "$passed of $all passed"
	[ "$skipped" = 1 ] || fail "$skipped skipped: $(grep -a '^\[SKIP\] sd_kernel::' "$work/unit" | tr '\n' ' ')"
	detail "$passed tests passed"
}

# The guest's kernel SCTP listens, our engine here puts a file: SCTP over UDP.
# quick
case-kernel-listens-put() {
	served_there "$IN_UDP"
	ours put 3000000 "$IN_UDP"
	expect "$work/put.out" established transport=sctp role=initiator backend=native "encap=$ENCAP"
}

# The same, a file fetched.
# quick
case-kernel-listens-get() {
	served_there "$IN_UDP"
	ours get 3000000 "$IN_UDP"
}

# SCTP over UDP from the guest to here while the guest loses and reorders packets.
case-kernel-loss() {
	served_there "$IN_UDP"
	lossy 2
	ours get 3000000 "$IN_UDP"
	some_lost
}

# SCTP over UDP: loss 1 %, delay, reordering and duplication, both ways; put and get by
# either end, digests equal.
case-kernel-lossy-reordering() {
	in_disorder "$IN_UDP"
}

# The same directly on IP.
case-kernel-native-lossy() {
	in_disorder "$ON_IP"
	some_disordered
	detail "packets from the guest: $(cat "$work/disorder")"
}

# SCTP directly on IP: our engine with raw sockets here, the kernel in the guest, both ways round.
case-kernel-native() {
	served_there "$ON_IP"
	ours put 3000000 "$ON_IP"
	expect "$work/put.out" established backend=native encap=0
	mkdir "$work/dir"
	listen "sctp://$HOST:0?backend=native&$ON_IP" --dir "$work/dir"
	guest "timeout 90 sessctl put --json /tmp/dir/file \
		'sctp://$HOST:$port/file?backend=kernel&$ON_IP'" >"$work/back.out" ||
		fail "put in the guest: $(tail -n 1 "$work/back.out")"
	cmp "$work/file" "$work/dir/file" || fail "the file came back changed"
}

# tshark judges SCTP: payload protocols 16 and 17, good CRC32c checksums, nothing malformed.
# quick
case-kernel-wire() {
	served_there "$ON_IP"
	ours put 300000 "$ON_IP"
	ids=$(wire -T fields -e sctp.data_payload_proto_id | tr , '\n' | grep . | sort -un | tr '\n' ' ')
	[ "$ids" = "16 17 " ] || fail "payload protocols: $ids"
}
