/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues. */
#include "session/direct.h"
#include "verbs/ib/vd_flush.h"
#include "verbs/ib/vd_qp.h"
#include "verbs/ud/vd_ud.h"
#include "verbs/cm/vd_oob.h"
#include <endian.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

int vd_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct vd_cq *cq = vd_of(ibcq, struct vd_cq, cq);
	int err, keep = errno;

	if (!cq->cq.channel || vd_is_inherited(ibcq->context))
		return EINVAL;
	vd_ud_cq_arm(cq, solicited_only);
	err = ddps_cq_arm_next(cq->d, solicited_only);
	errno = keep;
	return err ? vd_errno(err) : 0;
}

/* ---- queues ---- */

static int make_parts(struct vd_cq *cq)
{
	struct vd_process *p = vd_process_of(cq->cq.context);
	int err = vd_errno(ddps_cq_new(p->ctx, (uint32_t)cq->cq.cqe, &cq->d));

	if (!err)
		err = vd_ud_cq_init(cq);
	return err ? err : vd_async_keep(&cq->overflow);
}

/* The library's is gone, or nothing uses it. */
static void free_cq(struct vd_cq *cq)
{
	vd_ud_cq_fini(cq);
	free(cq->overflow);
	free(cq);
}

static struct vd_cq *new_cq(struct ibv_context *ctx, uint32_t depth, void *user,
			    struct ibv_comp_channel *ch)
{
	struct vd_cq *cq = calloc(1, sizeof *cq);
	int err;

	if (!cq)
		return NULL;
	cq->cq.context = ctx;
	cq->cq.channel = ch;
	cq->cq.cq_context = user;
	cq->cq.cqe = (int)depth;
	err = make_parts(cq);
	if (err) {
		ddps_cq_free(cq->d);
		free_cq(cq);
		errno = err;
		return NULL;
	}
	pthread_mutex_init(&cq->cq.mutex, NULL);
	ddps_mutex_init(&cq->acks, DDPS_LOCK_CQ_ACKS);
	pthread_cond_init(&cq->cq.cond, NULL);
	ddps_mutex_init(&cq->reading, DDPS_LOCK_CQ);
	if (ch) {
		ddps_cq_on_notify(cq->d, vd_ud_cq_notified, cq);
		__atomic_add_fetch(&ch->refcnt, 1, __ATOMIC_RELAXED);
	}
	vd_context_hold(ctx);
	return cq;
}

struct ibv_cq *vdi_ibv_create_cq(struct ibv_context *ctx, int cqe, void *user,
				 struct ibv_comp_channel *ch, int vector)
{
	struct vd_cq *cq;

	if (cqe < 1 || cqe > VD_MAX_CQE || vector < 0 || vector >= ctx->num_comp_vectors) {
		errno = EINVAL;
		return NULL;
	}
	cq = new_cq(ctx, (uint32_t)cqe, user, ch);
	if (!cq)
		return NULL;
	vd_cq_ex_init(cq);
	return ibv_cq_ex_to_cq(&cq->cq);
}

#define STAMPS (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

/* Flow tags and the like are no part of this device; nor is a queue that may overflow unnoticed. */
static int check_ex(const struct ibv_context *ctx, const struct ibv_cq_init_attr_ex *attr)
{
	const uint32_t known = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
	const struct vd_pd *pd = NULL;

	if (attr->wc_flags & ~(uint64_t)(IBV_WC_STANDARD_FLAGS | STAMPS) ||
	    attr->comp_mask & ~known ||
	    (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
	     attr->flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED))
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD && attr->parent_domain)
		pd = vd_of(attr->parent_domain, struct vd_pd, pd);
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD && (!pd || !pd->of)) || !attr->cqe ||
	    attr->cqe > VD_MAX_CQE || attr->comp_vector >= (uint32_t)ctx->num_comp_vectors)
		return EINVAL;
	return 0;
}

struct ibv_cq_ex *vd_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr)
{
	int err = check_ex(ctx, attr);
	struct vd_cq *cq = err ? NULL : new_cq(ctx, attr->cqe, attr->cq_context, attr->channel);

	if (err)
		errno = err;
	if (!cq)
		return NULL;
	vd_cq_ex_init(cq);
	cq->alone = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS && attr->flags;
	cq->stamped = attr->wc_flags & STAMPS;
	if (cq->stamped)
		ddps_cq_stamp(cq->d);
	return &cq->cq;
}

int vdi_ibv_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct vd_cq *cq = vd_of(ibcq, struct vd_cq, cq);
	struct vd_process *p = vd_process_of(ibcq->context);
	int err = 0;

	if (cqe < 1 || cqe > VD_MAX_CQE || vd_is_inherited(ibcq->context))
		return vd_refuse(EINVAL);
	ddps_lock(&p->shared_lock); /* of two that do it one is the last, in all parts */
	if ((uint32_t)cqe < vd_ud_cq_count(cq))
		err = EINVAL;
	else if (cqe > ibcq->cqe)
		err = vd_ud_cq_reserve(cq, (uint32_t)cqe);
	if (!err)
		err = vd_errno(ddps_cq_resize(cq->d, (uint32_t)cqe));
	if (!err) {
		ibcq->cqe = cqe;
		vd_ud_cq_deepen(cq);
	}
	ddps_unlock(&p->shared_lock);
	return err ? vd_refuse(err) : 0;
}

int vdi_ibv_destroy_cq(struct ibv_cq *ibcq)
{
	struct vd_cq *cq = vd_of(ibcq, struct vd_cq, cq);
	struct vd_process *p = vd_of(ibcq->context, struct vd_context, v.context)->p;
	int err;

	if (!vd_mine(p))
		return vd_refuse(
			EINVAL); /* the parent's, from before a fork, like its descriptors */
	if (vd_ud_cq_busy(cq))
		return vd_refuse(EBUSY);
	err = ddps_cq_free(cq->d); /* it informs nobody any more */
	if (err)
		return vd_refuse(vd_errno(err));
	if (cq->cq.channel) {
		vd_channel_forget(cq);
		__atomic_sub_fetch(&cq->cq.channel->refcnt, 1, __ATOMIC_RELAXED);
	}
	ddps_lock(&p->lock);
	vd_async_forget(ibcq->context, ibcq);
	ddps_unlock(&p->lock);
	ddps_lock(&cq->acks);
	while (cq->cq.comp_events_completed != cq->taken)
		pthread_cond_wait(&cq->cq.cond, &cq->acks.m);
	ddps_unlock(&cq->acks);
	vd_context_release(ibcq->context);
	free_cq(cq);
	return 0;
}

/* ---- completions ---- */

/* The peer's Terminate: its own memory failed it, the message was none it could take, or what it was
 * asked for was not allowed. */
static enum ibv_wc_status get_remote_status(const struct ddps_wc *wc)
{
	static const struct ddps_triple local = { .layer = 1 }; /* DDP, local catastrophic error */
	static const struct ddps_triple no_recv = { .layer = 1, .etype = 2, .code = 2 };
	const struct vd_qp *qp = wc->user;

	if (!memcmp(&wc->term, &local, sizeof local))
		return IBV_WC_REM_OP_ERR;
	if (qp->roce && !memcmp(&wc->term, &no_recv, sizeof no_recv))
		return IBV_WC_RNR_RETRY_EXC_ERR;
	return wc->op == DDPS_OP_SEND || wc->op == DDPS_OP_IMM || wc->op == DDPS_OP_SEND_IMM
		       ? IBV_WC_REM_INV_REQ_ERR
		       : IBV_WC_REM_ACCESS_ERR;
}

/* The first that comes back from a session that has ended for too many Reads. */
static bool is_overread(struct vd_qp *qp, const struct ddps_wc *wc)
{
	return wc->status == DDPS_WC_FLUSHED && wc->op != DDPS_OP_RECV &&
	       __atomic_load_n(&qp->overread, __ATOMIC_RELAXED) &&
	       __atomic_exchange_n(&qp->overread, false, __ATOMIC_RELAXED);
}

static enum ibv_wc_status get_wc_status(const struct ddps_wc *wc)
{
	switch (wc->status) {
	case DDPS_WC_SUCCESS:
		return IBV_WC_SUCCESS;
	case DDPS_WC_LOCAL_ACCESS:
		return wc->op == DDPS_OP_BIND ? IBV_WC_MW_BIND_ERR : IBV_WC_LOC_PROT_ERR;
	case DDPS_WC_LENGTH:
		return IBV_WC_LOC_LEN_ERR;
	case DDPS_WC_REMOTE:
		return get_remote_status(wc);
	case DDPS_WC_UNANSWERED:
		return IBV_WC_RETRY_EXC_ERR;
	case DDPS_WC_FLUSHED:
		break;
	}
	return IBV_WC_WR_FLUSH_ERR;
}

/* Numbers of docs/verbs.md: they stay, whatever the library's enumeration does. */
static uint32_t vendor_err(enum ddps_wc_status status)
{
	static const uint8_t numbers[] = {
		[DDPS_WC_SUCCESS] = 0, [DDPS_WC_LOCAL_ACCESS] = 1, [DDPS_WC_LENGTH] = 2,
		[DDPS_WC_REMOTE] = 3,  [DDPS_WC_FLUSHED] = 4,	   [DDPS_WC_UNANSWERED] = 6
	};

	return numbers[status];
}

/* What vd_post.c put into the 8 octets of RFC 7306. */
static void put_wc_immediate(struct ibv_wc *to, const uint8_t *imm)
{
	uint32_t len;

	memcpy(&to->imm_data, imm, sizeof to->imm_data);
	memcpy(&len, imm + sizeof to->imm_data, sizeof len);
	len = be32toh(len);
	to->wc_flags |= IBV_WC_WITH_IMM;
	if (len == VD_IMM_SEND || len == VD_IMM_AHEAD)
		return;
	to->opcode = IBV_WC_RECV_RDMA_WITH_IMM;
	/* The peer says it, nothing here depends on it. */
	to->byte_len = len;
}

static bool is_plain_wc(const struct ddps_wc *wc)
{
	return wc->status == DDPS_WC_SUCCESS && !wc->invalidated && !wc->has_imm;
}

/* What is to be said of one that is not plain. */
static __attribute__((noinline)) void tell_rest(struct ibv_wc *to, const struct ddps_wc *from)
{
	to->status = get_wc_status(from);
	to->vendor_err = vendor_err(from->status);
	if (from->invalidated) {
		to->wc_flags |= IBV_WC_WITH_INV;
		to->invalidated_rkey = from->inv_stag;
	}
	if (from->has_imm)
		put_wc_immediate(to, from->imm);
	if (is_overread(from->user, from)) {
		to->status = IBV_WC_REM_INV_REQ_ERR;
		to->vendor_err = vendor_err(DDPS_WC_REMOTE);
	}
}

static inline void translate_wc(struct vd_cq *cq, struct ibv_wc *to, const struct ddps_wc *from)
{
	static const enum ibv_wc_opcode op[] = { [DDPS_OP_SEND] = IBV_WC_SEND,
						 [DDPS_OP_WRITE] = IBV_WC_RDMA_WRITE,
						 [DDPS_OP_READ] = IBV_WC_RDMA_READ,
						 [DDPS_OP_RECV] = IBV_WC_RECV,
						 [DDPS_OP_IMM] = IBV_WC_SEND,
						 [DDPS_OP_WRITE_IMM] = IBV_WC_RDMA_WRITE,
						 [DDPS_OP_FETCH_ADD] = IBV_WC_FETCH_ADD,
						 [DDPS_OP_CMP_SWAP] = IBV_WC_COMP_SWAP,
						 [DDPS_OP_BIND] = IBV_WC_BIND_MW,
						 [DDPS_OP_LOCAL_INV] = IBV_WC_LOCAL_INV,
						 [DDPS_OP_SEND_IMM] = IBV_WC_SEND,
						 [DDPS_OP_ATOMIC_WRITE] = VD_WC_ATOMIC_WRITE,
						 [DDPS_OP_FLUSH] = VD_WC_FLUSH };
	struct vd_qp *qp = from->user;

	if (cq->stamped) /* several threads may poll */
		__atomic_store_n(&cq->stamp, from->time_ns, __ATOMIC_RELAXED);
	vd_fetched(qp, from->op == DDPS_OP_RECV);
	if (!__atomic_load_n(&qp->fetches, __ATOMIC_RELAXED))
		__atomic_store_n(&qp->fetches, true, __ATOMIC_RELAXED);
	*to = (struct ibv_wc){ .wr_id = from->wr_id,
			       .opcode = op[from->op],
			       .byte_len = from->len,
			       .qp_num = qp->qp.qp_base.qp_num };
	if (!is_plain_wc(from))
		tell_rest(to, from);
}

/* Whether vd_oob_hold is to be asked. */
static bool may_be_held(const struct ddps_wc *wc)
{
	return wc->status == DDPS_WC_FLUSHED && wc->op == DDPS_OP_RECV &&
	       ((const struct vd_qp *)wc->user)->oob;
}

/* Where they lie, the context's lock being held; but for one that may be held, with which the row ends.
 * Return: how many went to @wc; -1: the context is gone. */
static int poll_row(struct vd_cq *cq, int n, struct ibv_wc *wc, bool *more)
{
	struct ddps_cq *d = __atomic_load_n(&cq->d, __ATOMIC_ACQUIRE);
	const struct ddps_wc *row;
	struct ddps_wc last;
	int k = ddps_direct_poll(d, &row, n), i;

	*more = false;
	if (k <= 0)
		return k < 0 ? -1 : 0;
	for (i = 0; i < k && !may_be_held(&row[i]); i++)
		translate_wc(cq, &wc[i], &row[i]);
	if (i == k) {
		*more = ddps_direct_taken(d, k);
		return k;
	}
	last = row[i];
	*more = ddps_direct_taken(d, i + 1);
	if (!vd_oob_hold(last.user, last.wr_id))
		translate_wc(cq, &wc[i++], &last);
	return i;
}

static int poll_vd_cq(struct vd_cq *cq, int n, struct ibv_wc *wc)
{
	int k, keep = errno; /* it stays, see vd_post.c */
	int all = vd_ud_cq_poll(cq, n, wc);
	bool more = all >= 0;

	for (; more && all < n; all += k) {
		k = poll_row(cq, n - all, wc + all, &more);
		if (k < 0)
			return -1;
	}
	errno = keep;
	return all;
}

int vd_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct vd_cq *cq = vd_of(ibcq, struct vd_cq, cq);
	unsigned *polls = &cq->polls[__atomic_load_n(&cq->epoch, __ATOMIC_SEQ_CST) & 1];
	int got;

	__atomic_add_fetch(polls, 1, __ATOMIC_SEQ_CST);
	got = poll_vd_cq(cq, n, wc);
	__atomic_sub_fetch(polls, 1, __ATOMIC_RELEASE);
	return got;
}

/*
 * Calls that begin from now on count themselves in the other epoch, so those of the first come to
 * an end however busy the queue is.  Twice, since one may have read the epoch and not counted
 * itself when it changed.
 */
void vd_await_polls(struct ibv_cq *ibcq)
{
	struct vd_cq *cq = vd_of(ibcq, struct vd_cq, cq);

	for (int i = 0; i < 2; i++) {
		unsigned epoch = __atomic_fetch_add(&cq->epoch, 1, __ATOMIC_SEQ_CST);

		while (__atomic_load_n(&cq->polls[epoch & 1], __ATOMIC_ACQUIRE))
			sched_yield();
	}
}
