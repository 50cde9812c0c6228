# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Unmodified rdma_client here calls rdma_server on siw, and the other way round.
# needs: libddpsess-verbs.so
guest_start rdma "rdma_server -s $GUEST -p $PORT"
guest_listens "$PORT"
verbs rdma_client -s "$GUEST" -p "$PORT"
guest_wait rdma 10 || fail "rdma_server: $(guest_output rdma | tail -n 1)"
verbs_start rdma_server -s "$HOST" -p "$PORT"
host_listens "$PORT"
guest "timeout 30 rdma_client -s $HOST -p $PORT" >"$work/there" ||
	fail "rdma_client: $(tail -n 1 "$work/there")"
verbs_wait
