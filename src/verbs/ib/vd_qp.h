/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VERBS_VD_QP_H
#define DDPS_VERBS_VD_QP_H
/* Queue pairs of all types: how much they can hold, and what they may be told. */
#include "verbs/vd.h"

/* What counts of @cap: beside a shared queue there is none for receives [ibv_create_qp(3)]. */
static inline struct ibv_qp_cap vd_cap_used(const struct ibv_qp_cap *cap, bool srq)
{
	struct ibv_qp_cap used = *cap;

	if (srq)
		used.max_recv_wr = used.max_recv_sge = 0;
	return used;
}

/* Raise capabilities to what is granted.  Return: 0 or EINVAL. */
int vd_qp_grant(struct ibv_qp_cap *cap, bool srq);

/* Whether InfiniBand's rules of states bind it: the program connects it itself, on the RoCE face. */
bool vd_rules_bind(const struct vd_qp *qp);
/* By these rules (vd_rules.c), whether it may be modified so.  Return: 0 or EINVAL. */
int vd_rules_check(const struct vd_qp *qp, const struct ibv_qp_attr *attr, int mask);

#endif
