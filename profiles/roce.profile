# SPDX-License-Identifier: BSD-2-Clause
# One RoCE adapter of 100 Gb/s at the host's address.
device mlx5_0
face roce
vendor 0x0002c9
part 0x1017
firmware 16.35.2000
limit max_qp 131072
limit max_qp_wr 32768
limit max_cqe 4194303
limit max_srq_wr 32767
limit max_qp_rd_atom 16
limit max_qp_init_rd_atom 16
port 1
mtu 4096
width 4
speed 25
