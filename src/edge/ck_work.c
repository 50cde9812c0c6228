/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests between post and completion.  Their memory is the device's: what is sent must stay as it
 * is, and what is to be received into must not be written, which shows behind what was received.
 * Memory that a peer may write, that two requests share, or that is not at its own address (other
 * offsets) is left out: a change there need not be the program's.
 */
#include "edge/ck.h"
#include "edge/ed.h"
#include <stdlib.h>
#include <string.h>

#define BLOCK 64 /* octets that a receive's sum is made of */

void ck_queue_free(struct ck_queue *q)
{
	while (!STAILQ_EMPTY(q)) {
		struct ck_work *w = STAILQ_FIRST(q);

		STAILQ_REMOVE_HEAD(q, link);
		free(w);
	}
}

/* ---- sums ---- */

static uint64_t sum_octets(uint64_t sum, const uint8_t *p, size_t n)
{
	uint64_t word;

	for (; n >= sizeof word; p += sizeof word, n -= sizeof word) {
		memcpy(&word, p, sizeof word);
		sum = (sum ^ word) * UINT64_C(0x100000001b3);
		sum ^= sum >> 29;
	}
	for (; n; n--)
		sum = (sum ^ *p++) * UINT64_C(0x100000001b3);
	return sum;
}

/* All but the first @skip octets. */
static uint64_t sum_work(const struct ck_work *w, size_t skip)
{
	uint64_t sum = 1;

	for (int i = 0; i < w->n; i++) {
		const struct ibv_sge *s = &w->sge[i];
		size_t n = skip < s->length ? skip : s->length;

		sum = sum_octets(sum, (const uint8_t *)(uintptr_t)s->addr + n, s->length - n);
		skip -= n;
	}
	return sum;
}

/*
 * The last octets of a receive, which a shorter message leaves alone: a sum over the whole would say
 * nothing once a message has come.
 */
static size_t tail_of(const struct ck_work *w)
{
	size_t all = 0;

	for (int i = 0; i < w->n; i++)
		all += w->sge[i].length;
	return all > BLOCK ? all - BLOCK : 0;
}

/* ---- posting ---- */

static bool overlap(const struct ibv_sge *a, const struct ibv_sge *b)
{
	return a->addr < b->addr + b->length && b->addr < a->addr + a->length;
}

/* @w is not in it yet; ed.lock is held. */
static void check_shared_memory(struct ck_queue *q, struct ck_work *w)
{
	struct ck_work *o;

	ddps_assert_held(&ed.lock);
	STAILQ_FOREACH(o, q, link)
		for (int i = 0; i < o->n; i++)
			for (int k = 0; k < w->n; k++)
				if (overlap(&o->sge[i], &w->sge[k]))
					o->known = w->known = false;
}

static void share_all(struct ck_work *w)
{
	struct ed_srq *s;
	struct ed_qp *q;

	for (unsigned i = 0; i < ED_BUCKETS; i++)
		LIST_FOREACH(q, &ed.qps[i], link) {
			check_shared_memory(&q->sends, w);
			check_shared_memory(&q->recvs, w);
		}
	LIST_FOREACH(s, &ed.srqs, link)
		check_shared_memory(&s->recvs, w);
}

static struct ck_work *new_work(uint64_t wr_id, const struct ibv_sge *sge, int n)
{
	struct ck_work *w = calloc(1, sizeof *w);

	if (!w || !sge || n < 0 || n > CK_PIECES) /* a wrong number is refused behind this */
		n = 0;
	if (!w)
		return NULL;
	w->wr_id = wr_id;
	w->n = n;
	w->known = n > 0;
	if (n)
		memcpy(w->sge, sge, (size_t)n * sizeof *sge);
	for (int i = 0; i < n; i++)
		w->known = w->known && ck_is_own(&sge[i]);
	ck_note(&w->posted);
	return w;
}

static void add_work(struct ck_queue *q, struct ck_work *w)
{
	ddps_lock(&ed.lock);
	if (w->n)
		share_all(w);
	STAILQ_INSERT_TAIL(q, w, link);
	ddps_unlock(&ed.lock);
}

static bool has_send_source(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM ||
	       wr->opcode == IBV_WR_SEND_WITH_INV || wr->opcode == IBV_WR_RDMA_WRITE ||
	       wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* The program has seen the end of the connection, by a completion. */
static void after_error(struct ed_qp *q, const char *call)
{
	if (q->failed)
		ck_report(
			CK_POST_AFTER_ERROR, NULL,
			"%s on queue pair %u, which has reported an error: it can only be flushed",
			call, q->number);
}

/* @q: NULL, a shared receive queue, which does not fail. */
static void check_regions(const struct ed_qp *q, const struct ck_work *w, const char *call)
{
	struct ck_trace at;

	for (int i = 0; i < w->n; i++)
		if (w->sge[i].length && ck_is_gone(w->sge[i].lkey, &at)) {
			ck_report(
				CK_DEREG_USED, &at,
				"%s, request %#llx: the region with key %#x has been deregistered: "
				"the request fails with %s",
				call, (unsigned long long)w->wr_id, w->sge[i].lkey,
				q && ck_flushes(q) ? "IBV_WC_WR_FLUSH_ERR" : "IBV_WC_LOC_PROT_ERR");
			return;
		}
}

struct ck_work *ck_send(struct ed_qp *q, const struct ibv_send_wr *wr)
{
	const bool inl = wr->send_flags & IBV_SEND_INLINE;
	struct ck_work *w = new_work(wr->wr_id, wr->sg_list, inl ? 0 : wr->num_sge);

	after_error(q, "ibv_post_send");
	if (!w)
		return NULL;
	check_regions(q, w, "ibv_post_send");
	w->told = ed_is_told(q, wr);
	if (!has_send_source(wr))
		w->known = false;
	add_work(&q->sends, w);
	if (w->known)
		w->sum = sum_work(w, 0);
	return w;
}

void ck_queue_full(const struct ed_qp *q, unsigned places)
{
	ck_report(CK_QUEUE_FULL, NULL,
		  "queue pair %u: its send queue has %u places, and all are taken until the "
		  "program fetches a completion: an adapter refuses this request",
		  q->number, places);
}

/* Sends that had to wait say that a receive was missing: here it comes. */
static void report_late_receive(struct ed_qp *q)
{
	const struct vd_qp *v = vd_of(q->qp, struct vd_qp, qp.qp_base);
	struct ddps_ep_stats st = { .struct_size = sizeof st };

	if (v->ep) /* datagrams come without being asked for */
		ddps_ep_stats(v->ep, &st);
	if (st.stalls <= q->stalls)
		return;
	q->stalls = st.stalls;
	ck_report(CK_LATE_RECV, NULL,
		  "queue pair %u: a Send of the peer was there before its receive; an adapter ends "
		  "the connection then, or makes the sender wait",
		  q->number);
}

struct ck_work *ck_recv(struct ed_qp *q, struct ck_queue *to, const struct ibv_recv_wr *wr)
{
	struct ck_work *w = new_work(wr->wr_id, wr->sg_list, wr->num_sge);

	if (q) {
		after_error(q, "ibv_post_recv");
		report_late_receive(q);
	}
	if (!w)
		return NULL;
	check_regions(q, w, q ? "ibv_post_recv" : "ibv_post_srq_recv");
	w->told = true;
	add_work(to, w);
	if (w->known)
		w->sum = sum_work(w, tail_of(w));
	return w;
}

void ck_not_posted(struct ck_queue *q, struct ck_work *w)
{
	if (!w)
		return;
	ddps_lock(&ed.lock);
	STAILQ_REMOVE(q, w, ck_work, link);
	ddps_unlock(&ed.lock);
	free(w);
}

/* ---- completing ---- */

static void judge_send(const struct ed_qp *q, const struct ck_work *w)
{
	if (w->known && sum_work(w, 0) != w->sum)
		ck_report(
			CK_SEND_CHANGED, &w->posted,
			"queue pair %u, request %#llx: the %u octets at %#llx were changed before "
			"the request was done",
			q->number, (unsigned long long)w->wr_id, w->sge[0].length,
			(unsigned long long)w->sge[0].addr);
}

static void judge_recv(const struct ed_qp *q, const struct ck_work *w, const struct ibv_wc *wc)
{
	size_t from = tail_of(w), room = 0;

	if (wc->status == IBV_WC_LOC_LEN_ERR) {
		for (int i = 0; i < w->n; i++)
			room += w->sge[i].length;
		ck_report(
			CK_SHORT_RECV, &w->posted,
			"queue pair %u, receive %#llx: it has room for %zu octets, and the peer's "
			"message is longer",
			q->number, (unsigned long long)w->wr_id, room);
	}
	if (!w->known || (wc->status == IBV_WC_SUCCESS && wc->byte_len > from) ||
	    sum_work(w, from) == w->sum)
		return;
	ck_report(CK_RECV_CHANGED, &w->posted,
		  "queue pair %u, receive %#llx: memory at %#llx was written while it was posted, "
		  "behind what came",
		  q->number, (unsigned long long)w->wr_id, (unsigned long long)w->sge[0].addr);
}

/* The first that has this identity and is reported, or NULL. */
static struct ck_work *find_work(struct ck_queue *q, uint64_t wr_id, bool error)
{
	struct ck_work *w;

	STAILQ_FOREACH(w, q, link)
		if (w->wr_id == wr_id && (w->told || error))
			break;
	return w;
}

/* Those before it in the queue are done, too. */
static void send_done(struct ed_qp *q, const struct ibv_wc *wc)
{
	struct ck_work *w, *last;
	bool more;

	do {
		ddps_lock(&ed.lock);
		last = find_work(&q->sends, wc->wr_id, wc->status != IBV_WC_SUCCESS);
		w = last ? STAILQ_FIRST(&q->sends) : NULL;
		more = w && w != last;
		if (w)
			STAILQ_REMOVE(&q->sends, w, ck_work, link);
		ddps_unlock(&ed.lock);
		if (w)
			judge_send(q, w);
		free(w);
	} while (more);
}

static void recv_done(struct ed_qp *q, const struct ibv_wc *wc)
{
	struct ed_srq *s = q->qp->srq ? ed_srq_of(q->qp->srq) : NULL;
	struct ck_queue *from = s ? &s->recvs : &q->recvs;
	struct ck_work *w;

	ddps_lock(&ed.lock);
	w = find_work(from, wc->wr_id, true);
	if (w)
		STAILQ_REMOVE(from, w, ck_work, link);
	ddps_unlock(&ed.lock);
	if (w)
		judge_recv(q, w, wc);
	free(w);
	if (s) {
		report_late_receive(q);
		ed_srq_done(s);
	}
}

void ck_completed(struct ed_qp *q, const struct ibv_wc *wc)
{
	if (wc->opcode & IBV_WC_RECV)
		recv_done(q, wc);
	else
		send_done(q, wc);
	if (wc->status != IBV_WC_SUCCESS)
		q->failed = true;
}
