/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VERBS_VD_QP_H
#define DDPS_VERBS_VD_QP_H
/* Queue pairs of all types: how much they can hold, and what may be asked of them. */
#include "verbs/vd.h"
#include <errno.h>

/* What counts of @cap: with a shared queue there is none for receives [ibv_create_qp(3)]. */
static inline struct ibv_qp_cap vd_cap_used(const struct ibv_qp_cap *cap, bool srq)
{
	struct ibv_qp_cap used = *cap;

	if (srq)
		used.max_recv_wr = used.max_recv_sge = 0;
	return used;
}

/* Raise capabilities to what is granted.  Return: 0 or EINVAL. */
int vd_qp_grant(struct ibv_qp_cap *cap, bool srq);

struct ibv_qp *vd_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
/* An endpoint for it.  Return: 0 or DDPS_E_*. */
int vd_qp_make_ep(struct vd_qp *qp, struct ddps_ep **ep);
/* It is to be its own peer: give it an endpoint to send through.  Return: 0 or errno. */
int vd_qp_double(struct vd_qp *qp);
/* What the peer may do with it, whatever regions allow: IBV_ACCESS_*.  Return: 0 or errno. */
int vd_qp_allow(struct vd_qp *qp, unsigned access);

/* In strict mode an end on a RoCE device is over when its peer's host has acknowledged nothing for as long
 * as @said's timeout and retry_cnt say. */
void vd_qp_answer(struct vd_qp *qp);

/* Its session has ended. */
void vd_qp_ended(struct vd_qp *qp);
/* Close its session in order.  Return: 0 or errno. */
int vd_qp_close(struct vd_qp *qp);

/* ---- requests ----
 *
 * Its own lock is held where it orders requests: of a queue pair that its program connects itself, or on a RoCE
 * device, whose requests may wait; of inline data; and of what ibv_wr_* build.  What @sends_told counts is atomic.
 * Otherwise the context's lock is enough, which all take. */

/* Whether no call but those of rdma_cm moves it; then @recvs_told is under the context's lock. */
static inline bool vd_has_own_states(const struct vd_qp *qp)
{
	return !qp->oob && !qp->ud;
}
/* ... and requests to send never wait. */
static inline bool vd_is_unlocked(const struct vd_qp *qp)
{
	return vd_has_own_states(qp) && !qp->roce;
}

/* InfiniBand's bound of a message, in octets; one of DDP ends where its offset of 32 bits does. */
#define VD_ROCE_MSG_MAX (1u << 31)
/* What can be said of one without a session; its operation.  Return: 0 or errno. */
int vd_check_send(const struct vd_qp *qp, const struct ibv_send_wr *wr, struct ddps_send_wr *to);
/* As vd_post_send. */
int vd_post_list(struct vd_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
/* Whether a completion says that it is done; and one of its completions, or of a receive, is fetched. */
static inline bool vd_is_told(const struct vd_qp *qp, const struct ibv_send_wr *wr)
{
	return wr->send_flags & IBV_SEND_SIGNALED || qp->init.sq_sig_all;
}
static inline void vd_fetched(struct vd_qp *qp, bool recv)
{
	__atomic_add_fetch(recv ? &qp->recvs_fetched : &qp->sends_fetched, 1, __ATOMIC_RELAXED);
}
/* After an error more completions come than requests asked for one: then it is below 0. */
static inline bool vd_all_unfetched(uint32_t told, const uint32_t *fetched, uint32_t places)
{
	return (int32_t)(told - __atomic_load_n(fetched, __ATOMIC_RELAXED)) >= (int32_t)places;
}
/*
 * A request that is to be informed of takes a place of the send queue until its completion is fetched, as an
 * adapter's does: while the session is up, a completion queue as deep as the send queue does not overflow.
 * ENOMEM: there is none.
 */
static inline int vd_take_place(struct vd_qp *qp, const struct ibv_send_wr *wr)
{
	uint32_t told = __atomic_load_n(&qp->sends_told, __ATOMIC_RELAXED);

	if (!vd_is_told(qp, wr))
		return 0;
	do
		if (vd_all_unfetched(told, &qp->sends_fetched, qp->init.cap.max_send_wr))
			return ENOMEM;
	while (!__atomic_compare_exchange_n(&qp->sends_told, &told, told + 1, true,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return 0;
}
static inline void vd_leave_place(struct vd_qp *qp, const struct ibv_send_wr *wr)
{
	if (vd_is_told(qp, wr))
		__atomic_sub_fetch(&qp->sends_told, 1, __ATOMIC_RELAXED);
}
/* As vd_take_place, for a receive of its own queue. */
static inline int vd_take_recv_place(struct vd_qp *qp)
{
	if (vd_all_unfetched(qp->recvs_told, &qp->recvs_fetched, qp->init.cap.max_recv_wr))
		return ENOMEM;
	qp->recvs_told++;
	return 0;
}
/* Those that are as most are, from *@wr on, with the context's lock taken once; inline data only if @inl, since it
 * needs the lock of the queue pair.  @wr: the first that was not posted, which is for vd_post_one if 0 is returned, or
 * NULL.  Return: 0 or errno. */
int vd_post_plain(struct vd_qp *qp, struct ibv_send_wr **wr, bool inl);
/* One, and whether others follow it immediately.  Return: 0 or errno. */
int vd_post_one(struct vd_qp *qp, const struct ibv_send_wr *wr, bool more);
/* Whether they wait (vd_later.c); they do; they go now, or come back flushed; they are forgotten,
 * without the lock where nobody else has the queue pair any more. */
bool vd_later_waits(const struct vd_qp *qp);
int vd_later_keep(struct vd_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
void vd_later_flush(struct vd_qp *qp);
void vd_later_drop(struct vd_qp *qp);

/* ---- SQD; the process's lock is held ---- */

/* Whether requests from before are under way. */
bool vd_drains(const struct vd_qp *qp);
/* See that IBV_EVENT_SQ_DRAINED can be raised.  Return: 0 or errno.  Raise it when none is; and not any more. */
int vd_drain_prepare(struct vd_qp *qp);
void vd_drain_tell(struct vd_qp *qp);
void vd_drain_forget(struct vd_qp *qp);

/* ---- InfiniBand's rules of states (vd_rules.c) ---- */

/* Whether they are about it: the program connects it itself.  The RoCE face binds it to them. */
bool vd_rules_concern(const struct vd_qp *qp);
bool vd_rules_bind(const struct vd_qp *qp);
/* The state that the program has moved it to, or an error. */
enum ibv_qp_state vd_rules_state(const struct vd_qp *qp);
/* What forbids to modify it so, in a few words; NULL: nothing. */
const char *vd_rules_against(const struct vd_qp *qp, const struct ibv_qp_attr *attr, int mask);
/* It is refused; in strict mode that is said.  Return: EINVAL. */
int vd_rules_refuse(const struct vd_qp *qp, const char *call, const char *why);

#endif
