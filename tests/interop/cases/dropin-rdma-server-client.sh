# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Unmodified rdma_client here calls rdma_server on siw, and the other way round.
# needs: libddpsess-verbs.so
verbs_calls "$PORT" "rdma_server -s $GUEST -p $PORT" rdma_client -s "$GUEST" -p "$PORT"
guest_wait program 10 || fail "rdma_server: $(guest_output program | tail -n 1)"
verbs_called "$PORT" "rdma_client -s $HOST -p $PORT" rdma_server -s "$HOST" -p "$PORT" ||
	fail "rdma_client: $(tail -n 1 "$work/there")"
verbs_wait
