# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# 64 MiB over SCTP directly on IP, written and read back at random offsets, either end as client.
# limit: 600
# needs: example-rdma_peer
judged_sctp
bulk_both_ways "$ON_IP" 67108864
