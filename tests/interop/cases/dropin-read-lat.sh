# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Unmodified ib_read_lat -R here on our verbs library and on siw, each as client: RDMA Reads.
# Few of them: an answer of siw often waits for our delayed acknowledgement, 40 ms.
# limit: 120
# needs: libddpsess-verbs.so
guest_start perf "ib_read_lat -R -s 4096 -n 100 -p $PORT"
guest_listens "$PORT"
verbs ib_read_lat -R -s 4096 -n 100 -p "$PORT" "$GUEST"
grep -qE '^ *4096 +100 ' "$work/verbs.out" || fail "no result: $(tail -n 1 "$work/verbs.out")"
verbs_start ib_read_lat -R -s 4096 -n 100 -p "$PORT"
host_listens "$PORT"
# Each end destroys its queue pair without a word when it is done; the other may call that an error.
guest "timeout 60 ib_read_lat -R -s 4096 -n 100 -p $PORT $HOST" >"$work/there" 2>&1 || true
grep -qE '^ *4096 +100 ' "$work/there" ||
	fail "ib_read_lat in the guest as client: $(tail -n 2 "$work/there")"
