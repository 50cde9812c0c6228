# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Unmodified ib_write_bw -R here on our verbs library and on siw, each as client: RDMA Writes.
# limit: 120
# needs: libddpsess-verbs.so
guest_start perf "ib_write_bw -R -s 4096 -n 1000 -p $PORT"
guest_listens "$PORT"
verbs ib_write_bw -R -s 4096 -n 1000 -p "$PORT" "$GUEST"
grep -qE '^ *4096 +1000 ' "$work/verbs.out" || fail "no result: $(tail -n 1 "$work/verbs.out")"
verbs_start ib_write_bw -R -s 4096 -n 1000 -p "$PORT"
host_listens "$PORT"
# Each end destroys its queue pair without a word when it is done; the other may call that an error.
guest "timeout 60 ib_write_bw -R -s 4096 -n 1000 -p $PORT $HOST" >"$work/there" 2>&1 || true
grep -qE '^ *4096 +1000 ' "$work/there" ||
	fail "ib_write_bw in the guest as client: $(tail -n 2 "$work/there")"
host_wait verbs || true
grep -qE '^ *4096 +1000 ' "$work/verbs.out" || fail "as server: $(tail -n 1 "$work/verbs.err")"
