# SPDX-License-Identifier: BSD-2-Clause
# An iWARP adapter with so little of everything that a program meets the limits.
device tiny0
face iwarp
atomics off
limit max_qp 8
limit max_qp_wr 16
limit max_sge 2
limit max_inline 64
limit max_cq 4
limit max_cqe 64
limit max_mr 16
limit max_mr_size 1048576
limit max_pd 4
limit max_srq 1
limit max_srq_wr 16
limit max_srq_sge 1
limit max_qp_rd_atom 4
limit max_qp_init_rd_atom 4
port 1
mtu 256
width 1
speed 2.5
