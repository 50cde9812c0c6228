# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# IRD and ORD at the edges over SCTP, kernel in the guest, our engine here: the smaller one is in force;
# 0x3FFF leaves them to the applications, at either end.
# needs: sessctl
judged_sctp
sctp_over_udp
session() { # THEIRS OURS
	host timeout 90 "$sessctl" connect --json --ird "$2" --ord "$2" \
		"sctp://$GUEST:$PORT?backend=native&$IN_UDP" >"$work/out" 2>"$work/err" ||
		fail "$1 there, $2 here: $(tail -n 1 "$work/err")"
	if [ "$1" = ulp ] || [ "$2" = ulp ]; then
		expect "$work/out" established peer_ird=16383 peer_ord=16383
	else
		expect "$work/out" established peer_ird="$1" ird="$2" ord=$(($1 < $2 ? $1 : $2))
	fi
}

many=(0 1 128 129 16382 ulp)
for theirs in "${many[@]}"; do
	guest_start sessctl "timeout 90 sessctl listen --count ${#many[@]} --ird $theirs \
		--ord $theirs 'sctp://$GUEST:$PORT?backend=kernel&$IN_UDP'"
	guest_listens "$PORT" sctp
	for ours in "${many[@]}"; do
		session "$theirs" "$ours"
	done
	guest_wait sessctl 20 || fail "$theirs there: $(guest_output sessctl | tail -n 1)"
done
