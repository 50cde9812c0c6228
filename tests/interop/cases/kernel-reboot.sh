# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# The guest goes down in mid-transfer and is up again immediately, with nothing of its associations
# (a snapshot of the booted guest): our session ends with an error, and the next one works.  In UDP
# and on IP, the guest as server.
# needs: example-rdma_peer
judged_sctp
sctp_over_udp
"$lab" save booted
for query in "$IN_UDP" "$ON_IP"; do
	before=$(sctp_count InUnorderChunks)
	rdma_there "$query" -b 67108864
	host_start rdma timeout 90 "$build/example-rdma_peer" \
		-c "sctp://$GUEST:$PORT?backend=native&$query"
	sctp_in_transfer "$before"
	"$lab" reset booted
	from=$SECONDS status=0
	host_wait rdma || status=$?
	took=$((SECONDS - from))
	[ "$status" = 1 ] || fail "$query: status $status here, not 1"
	grep -q 'peer aborted the SCTP association' "$work/rdma.err" ||
		fail "$query: $(tail -n 1 "$work/rdma.err")"
	[ "$took" -le 15 ] || fail "$query: noticed after $took s"
	rdma_there "$query" -b 500000
	rdma_calls "$query" "after the reboot"
	guest_wait rdma 30 || fail "$query: rdma_peer there: $(guest_output rdma | tail -n 1)"
	guest_output rdma >"$work/there"
	digests_agree "$work/here" "$work/there"
	told="${told+$told, }$query $took s"
done
detail "noticed: $told"
