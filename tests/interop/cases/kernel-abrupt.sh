# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# SCTP sessions that end in mid-transfer: one end killed, or aborted by its program; the other end
# has an error immediately, kernel in the guest, our engine here.
# needs: example-rdma_peer
judged_sctp
sctp_over_udp
theirs="sctp://$GUEST:$PORT?backend=kernel&$IN_UDP"
ours=${theirs/backend=kernel/backend=native}
serve_there() {
	guest_start rdma "example-rdma_peer -b 67108864 -s '$theirs'"
	guest_listens "$PORT" sctp
}

ends_there() { # WHAT
	guest_wait rdma 20 && fail "$1: taken for an orderly end in the guest"
	grep -q rdma_peer: <<<"$(guest_output rdma)" || fail "$1: the guest's end says nothing"
}

serve_there
before=$(sctp_count InUnorderChunks)
host_start rdma timeout 90 "$build/example-rdma_peer" -c "$ours"
sctp_in_transfer "$before"
# shellcheck disable=SC2016 # for the guest's shell
guest 'kill -9 $(pidof ld-linux-x86-64.so.2)'
status=0
host_wait rdma || status=$?
[ "$status" = 1 ] || fail "guest killed: status $status here, not 1"
detail "$(tail -n 1 "$work/rdma.err")"

serve_there
host timeout 90 "$build/example-rdma_peer" -a -c "$ours" >"$work/out" 2>"$work/err" ||
	fail "abort here: $(tail -n 1 "$work/err")"
ends_there "abort here"

rdma_listen "sctp://$HOST:0?backend=native&$IN_UDP" -b 67108864
guest "timeout 90 example-rdma_peer -a -c 'sctp://$HOST:$port?backend=kernel&$IN_UDP'" ||
	fail "abort in the guest"
status=0
host_wait rdma || status=$?
[ "$status" = 1 ] || fail "abort in the guest: status $status here, not 1"
