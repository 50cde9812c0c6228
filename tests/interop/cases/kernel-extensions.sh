# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# A kernel with everything on that we have not: AUTH, ASCONF, RE-CONFIG, PR-SCTP, I-DATA, and its own
# search for the path MTU.  Both ways round, in UDP; nobody aborts, and files arrive.
# quick
# needs: sessctl
judged_sctp
sctp_over_udp
for s in auth addip reconf intl prsctp ecn; do
	guest "sysctl -q -w net.sctp.${s}_enable=1" || fail "no net.sctp.${s}_enable"
done
guest "sysctl -q -w net.sctp.plpmtud_probe_interval=5000" || fail "no PLPMTUD in this kernel"
sessctl_in_guest "sctp://$GUEST:$PORT?backend=kernel&$IN_UDP"
transfer put 300000 "sctp://$GUEST:$PORT" "backend=native&$IN_UDP"
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
