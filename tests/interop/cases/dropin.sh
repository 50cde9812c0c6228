# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Unmodified programs here on our verbs library, with the same on siw.
# needs: libddpsess-verbs.so

figures() { # FILE
	[ "$(grep -cE '^ +latency +=' "$1")" = 1 ] || fail "no figures: $(tail -n 1 "$1")"
}

# Unmodified qperf here on our verbs library and on siw, each as client: Sends one way at a time.
# rc_bi_bw has no flow control, and the guest is slower than we are: see docs/interop.md.  Its other
# tests end with an error between siw and siw too.
case-dropin-qperf() {
	tests=(-cm 1 -t 1 -m 4096 rc_lat)
	control=19765
	verbs_calls "$control" qperf qperf "$GUEST" "${tests[@]}"
	figures "$work/verbs.out"
	verbs_called "$control" "qperf $HOST ${tests[*]}" qperf ||
		fail "qperf in the guest: $(tail -n 1 "$work/there")"
	figures "$work/there"
}

# Unmodified rdma_client here calls rdma_server on siw, and the other way round.
case-dropin-rdma-server-client() {
	verbs_calls "$PORT" "rdma_server -s $GUEST -p $PORT" rdma_client -s "$GUEST" -p "$PORT"
	guest_wait program 10 || fail "rdma_server: $(guest_output program | tail -n 1)"
	verbs_called "$PORT" "rdma_client -s $HOST -p $PORT" rdma_server -s "$HOST" -p "$PORT" ||
		fail "rdma_client: $(tail -n 1 "$work/there")"
	verbs_wait
}

# Unmodified ib_read_lat -R here on our verbs library and on siw, each as client: RDMA Reads.
# Few of them: an answer of siw often waits for our delayed acknowledgement, 40 ms.
case-dropin-read-lat() {
	perf_both_ways 100 ib_read_lat
}

# Unmodified rping here on our verbs library, as client of siw's; data checked (-V).
# quick
case-dropin-rping-client() {
	verbs_calls "$PORT" "rping -s -a $GUEST -p $PORT -S 65000 -V" \
		rping -c -a "$GUEST" -p "$PORT" -S 65000 -C 10 -V
}

# Unmodified rping here on our verbs library serves siw's; data checked (-V).
case-dropin-rping-server() {
	verbs_called "$PORT" "rping -c -a $HOST -p $PORT -S 65000 -C 10 -V" \
		rping -s -a "$HOST" -p "$PORT" -S 65000 -C 10 -V || fail "rping -c: $(tail -n 1 "$work/there")"
}

# Unmodified ib_write_bw -R here on our verbs library and on siw, each as client: RDMA Writes.
case-dropin-write-bw() {
	perf_both_ways 1000 ib_write_bw
	host_wait verbs || true
	perf_result 1000 "$work/verbs.out" "here as server"
}
