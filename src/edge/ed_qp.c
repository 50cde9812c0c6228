/* SPDX-License-Identifier: BSD-2-Clause */
/* What the edge knows of queue pairs, shared receive queues and completion queues. */
#include "edge/ed.h"
#include <stdio.h>
#include <stdlib.h>

static struct ed_qps *get_qp_bucket(uint32_t qp_num)
{
	return &ed.qps[qp_num % ED_BUCKETS];
}

static struct ed_qp *find_qp(uint32_t qp_num)
{
	struct ed_qp *q;

	LIST_FOREACH(q, get_qp_bucket(qp_num), link)
		if (q->qp->qp_num == qp_num)
			break;
	return q;
}

/* Requests that are built by ibv_wr_* pass the edge as others do. */
static int complete_edge_wr(struct ibv_qp_ex *ex)
{
	return vd_wr_complete_by(ex, ed_post_send);
}

static void add_qp(struct ibv_qp *qp)
{
	struct vd_qp *v = vd_of(qp, struct vd_qp, qp.qp_base);
	struct ed_qp *q = calloc(1, sizeof *q);

	if (!q)
		return; /* no rule finds it */
	q->qp = qp;
	STAILQ_INIT(&q->rq.recvs);
	STAILQ_INIT(&q->sends);
	STAILQ_INIT(&q->recvs);
	ed_depth_init(q, v);
	if (ck_on())
		ck_note(&q->made);
	q->rq.max = v->init.cap.max_recv_wr;
	v->qp.wr_complete = complete_edge_wr;
	q->number = ++ed.qp_count;
	LIST_INSERT_HEAD(get_qp_bucket(qp->qp_num), q, link);
}

void ed_qp_new(struct ibv_qp *qp)
{
	if (vd_is_inherited(qp->context))
		return; /* the parent's, from before a fork: its number may be another one's here */
	ddps_lock(&ed.lock);
	if (!find_qp(qp->qp_num))
		add_qp(qp);
	ddps_unlock(&ed.lock);
}

struct ed_qp *ed_qp_numbered(uint32_t qp_num)
{
	struct ed_qp *q;

	ddps_lock(&ed.lock);
	q = find_qp(qp_num);
	if (q)
		q->busy++;
	ddps_unlock(&ed.lock);
	return q;
}

struct ed_qp *ed_qp_of(struct ibv_qp *qp)
{
	return qp && !vd_is_inherited(qp->context) ? ed_qp_numbered(qp->qp_num) : NULL;
}

void ed_qp_done(struct ed_qp *q)
{
	if (!q)
		return;
	ddps_lock(&ed.lock);
	if (!--q->busy)
		pthread_cond_broadcast(&ed.less);
	ddps_unlock(&ed.lock);
}

void ed_moved(struct ed_qp *q, size_t octets)
{
	ddps_lock(&ed.lock);
	q->bytes += octets;
	ddps_unlock(&ed.lock);
}

struct ed_qp *ed_qp_next(struct ed_qp *q)
{
	struct ed_qp *next;
	unsigned i = q ? q->qp->qp_num % ED_BUCKETS + 1 : 0;

	ddps_lock(&ed.lock);
	next = q ? LIST_NEXT(q, link) : NULL;
	for (; !next && i < ED_BUCKETS; i++)
		next = LIST_FIRST(&ed.qps[i]);
	if (next)
		next->busy++;
	ddps_unlock(&ed.lock);
	ed_qp_done(q);
	return next;
}

static void recvs_free(struct ed_rq *rq)
{
	while (!STAILQ_EMPTY(&rq->recvs)) {
		struct ed_recv *r = STAILQ_FIRST(&rq->recvs);

		STAILQ_REMOVE_HEAD(&rq->recvs, link);
		free(r);
	}
}

static void await_not_busy(const unsigned *busy)
{
	while (*busy)
		pthread_cond_wait(&ed.less, &ed.lock.m);
}

void ed_qp_gone(struct ibv_qp *qp)
{
	struct ed_qp *q;

	if (vd_is_inherited(qp->context))
		return;
	ddps_lock(&ed.lock);
	q = find_qp(qp->qp_num);
	if (q) {
		await_not_busy(&q->busy);
		LIST_REMOVE(q, link);
	}
	ddps_unlock(&ed.lock);
	if (!q)
		return;
	recvs_free(&q->rq);
	ck_queue_free(&q->sends);
	ck_queue_free(&q->recvs);
	while (!SLIST_EMPTY(&q->copies)) {
		struct ed_copy *c = SLIST_FIRST(&q->copies);

		SLIST_REMOVE_HEAD(&q->copies, link);
		vdi_ibv_dereg_mr(c->mr);
		free(c);
	}
	free(q->depth.told);
	free(q);
}

/* ---- shared receive queues ---- */

/* What is known of one stays with it: another one may have its address as soon as it has gone. */
struct ed_srq *ed_srq_of(struct ibv_srq *srq)
{
	struct vd_srq *v = vd_of(srq, struct vd_srq, srq);
	struct ed_srq *s;

	if (vd_is_inherited(srq->context))
		return NULL;
	ddps_lock(&ed.lock);
	s = v->front;
	if (!s && (s = calloc(1, sizeof *s))) {
		v->front = s;
		s->srq = srq;
		STAILQ_INIT(&s->rq.recvs);
		STAILQ_INIT(&s->recvs);
		s->rq.max = v->attr.max_wr;
		LIST_INSERT_HEAD(&ed.srqs, s, link);
	}
	if (s)
		s->busy++;
	ddps_unlock(&ed.lock);
	return s;
}

void ed_srq_done(struct ed_srq *s)
{
	ddps_lock(&ed.lock);
	if (!--s->busy)
		pthread_cond_broadcast(&ed.less);
	ddps_unlock(&ed.lock);
}

struct ed_srq *ed_srq_leave(struct ibv_srq *srq)
{
	struct ed_srq *s = ed_srq_of(srq);

	if (!s)
		return NULL;
	ddps_lock(&ed.lock);
	s->busy--;
	await_not_busy(&s->busy);
	LIST_REMOVE(s, link);
	ddps_unlock(&ed.lock);
	return s;
}

void ed_srq_stays(struct ed_srq *s)
{
	if (!s)
		return;
	ddps_lock(&ed.lock);
	LIST_INSERT_HEAD(&ed.srqs, s, link);
	ddps_unlock(&ed.lock);
	ed_clock_wake();
}

void ed_srq_free(struct ed_srq *s)
{
	if (!s)
		return;
	recvs_free(&s->rq);
	ck_queue_free(&s->recvs);
	free(s);
}

/* ---- completion queues ---- */

struct ed_cq *ed_cq_of(struct ibv_cq *cq)
{
	struct vd_cq *v = vd_of(cq, struct vd_cq, cq);
	struct ed_cq *c;

	if (vd_is_inherited(cq->context))
		return NULL;
	ddps_lock(&ed.lock);
	c = v->front;
	if (!c && (c = calloc(1, sizeof *c))) {
		v->front = c;
		c->cq = cq;
		STAILQ_INIT(&c->held);
		ddps_mutex_init(&c->polls, DDPS_LOCK_ED_POLLS);
		LIST_INSERT_HEAD(&ed.cqs, c, link);
	}
	if (c)
		c->busy++;
	ddps_unlock(&ed.lock);
	return c;
}

void ed_cq_done(struct ed_cq *c)
{
	ddps_lock(&ed.lock);
	if (!--c->busy)
		pthread_cond_broadcast(&ed.less);
	ddps_unlock(&ed.lock);
}

struct ed_cq *ed_cq_leave(struct ibv_cq *cq)
{
	struct ed_cq *c = ed_cq_of(cq);

	if (!c)
		return NULL;
	ddps_lock(&ed.lock);
	c->busy--;
	await_not_busy(&c->busy);
	LIST_REMOVE(c, link);
	ddps_unlock(&ed.lock);
	return c;
}

void ed_cq_stays(struct ed_cq *c)
{
	if (!c)
		return;
	ddps_lock(&ed.lock);
	LIST_INSERT_HEAD(&ed.cqs, c, link);
	ddps_unlock(&ed.lock);
	ed_clock_wake();
}

void ed_cq_free(struct ed_cq *c)
{
	if (!c)
		return;
	while (!STAILQ_EMPTY(&c->held)) {
		struct ed_held *h = STAILQ_FIRST(&c->held);

		STAILQ_REMOVE_HEAD(&c->held, link);
		free(h);
	}
	pthread_mutex_destroy(&c->polls.m);
	free(c);
}

/* ---- peers ---- */

/* Another thread may reset it meanwhile, which frees the endpoint. */
static bool info_of(const struct vd_qp *v, struct ddps_conn_info *info)
{
	struct vd_process *p = vd_process_of(v->qp.qp_base.context);
	bool has;

	ddps_lock(&p->lock);
	has = v->ep && !ddps_ep_info(v->ep, info);
	ddps_unlock(&p->lock);
	return has;
}

void ed_peer_of(const struct rdma_cm_id *id, const struct ibv_qp *qp, char *text, size_t len)
{
	const struct vd_qp *v = qp ? vd_of(qp, struct vd_qp, qp.qp_base) : NULL;
	const struct sockaddr *sa = NULL;
	struct ddps_conn_info info = { 0 };

	*text = 0;
	if (v && info_of(v, &info)) {
		snprintf(text, len, "%s", info.peer);
		return;
	}
	if (id)
		sa = &id->route.addr.dst_addr;
	if (sa && (sa->sa_family == AF_INET || sa->sa_family == AF_INET6))
		vd_addr_text(sa, text, len);
}
