/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VD_FLUSH_H
#define DDPS_VD_FLUSH_H
/*
 * Atomic Writes and Flushes.  Headers of libibverbs have names for the first since 44 and for the second
 * since 45, so this one has the values itself; programs have them from newer headers.
 */
#include "verbs/vd.h"

#define VD_ACCESS_FLUSH_GLOBAL	    (1u << 8)
#define VD_ACCESS_FLUSH_PERSISTENT  (1u << 9)
#define VD_ACCESS_FLUSH		    (VD_ACCESS_FLUSH_GLOBAL | VD_ACCESS_FLUSH_PERSISTENT)
#define VD_QP_EX_WITH_FLUSH	    (1u << 11)
#define VD_QP_EX_WITH_ATOMIC_WRITE  (1u << 12)
#define VD_ODP_SUPPORT_FLUSH	    (1u << 6)
#define VD_ODP_SUPPORT_ATOMIC_WRITE (1u << 7)
/* In device_cap_flags_ex: both Flushes, Atomic Write. */
#define VD_DEVICE_FLUSH	       (UINT64_C(3) << 38)
#define VD_DEVICE_ATOMIC_WRITE (UINT64_C(1) << 40)
#define VD_WC_FLUSH	       8
#define VD_WC_ATOMIC_WRITE     9

/* Opcodes of requests.  A Flush has no form in struct ibv_send_wr, so ibv_post_send has none; what ibv_wr_*
 * builds has opcodes of its own, and all it needs in wr.atomic. */
#define VD_WR_FLUSH	      14
#define VD_WR_ATOMIC_WRITE    15
#define VD_BUILT_FLUSH	      (0x1000 + VD_WR_FLUSH)
#define VD_BUILT_ATOMIC_WRITE (0x1000 + VD_WR_ATOMIC_WRITE)

/* Whether it is one of them. */
static inline bool vd_is_flush(const struct ibv_send_wr *wr)
{
	const int op = (int)wr->opcode & 0xfff;

	return op == VD_WR_FLUSH || op == VD_WR_ATOMIC_WRITE;
}

/* The operation of one of them.  Return: 0 or errno. */
int vd_flush_operation(const struct ibv_send_wr *wr, struct ddps_send_wr *to);
/* The octets of an Atomic Write that ibv_post_send has in pieces, @sge, VD_MAX_SGE of them.  Return: 0 or errno. */
int vd_flush_octets(const struct vd_qp *qp, const struct ibv_send_wr *wr, struct ddps_sge *sge,
		    struct ddps_send_wr *to);
/* What a Flush asks for, in the library's form; 0: it is none. */
uint64_t vd_flush_what(uint8_t type, uint8_t level);

#endif
