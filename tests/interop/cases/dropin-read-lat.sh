# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Unmodified ib_read_lat -R here on our verbs library and on siw, each as client: RDMA Reads.
# Few of them: an answer of siw often waits for our delayed acknowledgement, 40 ms.
# needs: libddpsess-verbs.so
perf_both_ways 100 ib_read_lat
