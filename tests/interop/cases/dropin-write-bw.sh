# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Unmodified ib_write_bw -R here on our verbs library and on siw, each as client: RDMA Writes.
# needs: libddpsess-verbs.so
perf_both_ways 1000 ib_write_bw
host_wait verbs || true
perf_result 1000 "$work/verbs.out" "here as server"
