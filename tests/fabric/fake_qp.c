/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs, what is posted to them, and where it goes. */
#include "fabric/fake_in.h"

static struct fake_qp *get_fake_qp_qp(struct ibv_qp *qp)
{
	return (struct fake_qp *)qp;
}

struct fake_qp *fake_qp_of(unsigned i, uint32_t qpn)
{
	for (unsigned k = 0; k < FAKE_QPS; k++)
		if (fake[i].qp[k].used && fake[i].qp[k].qp.qp_num == qpn)
			return &fake[i].qp[k];
	return NULL;
}

struct ibv_qp *fake_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	static uint32_t number;
	struct fake *f = fake_of(pd->context);
	struct fake_qp *q = f->qp;

	FAKE_CHECK(a->sq_sig_all);
	if (fake_fails(f, "create_qp"))
		return NULL;
	if (f->no_uc && a->qp_type == IBV_QPT_UC) {
		errno = EINVAL;
		return NULL;
	}
	while (q->used)
		q++;
	FAKE_CHECK(q < f->qp + f->max_qp);
	memset(q, 0, sizeof(*q));
	q->used = true;
	q->init = *a;
	q->qp.context = pd->context;
	/* on RoCE those of all adapters are alike */
	q->qp.qp_num = f->same_numbers ? 0x100 + (uint32_t)(q - f->qp)
				       : 0x1000 + 0x10 * (fake_roce ? ++f->n_made : ++number);
	f->n_qp++;
	return &q->qp;
}

void fake_event(unsigned i, enum ibv_event_type type, struct ibv_qp *qp)
{
	struct ibv_async_event *e = &fake[i].event[fake[i].n_event++];

	FAKE_CHECK(fake[i].n_event <= FAKE_EVENTS);
	e->event_type = type;
	if (qp)
		e->element.qp = qp;
	else
		e->element.port_num = 1;
}

void fake_wc(unsigned i, unsigned cq, const struct ibv_wc *wc)
{
	FAKE_CHECK(fake[i].n_wc[cq] < FAKE_WCS);
	fake[i].wc[cq][fake[i].n_wc[cq]++] = *wc;
}

static unsigned cq_index(const struct ibv_cq *cq)
{
	return (unsigned)(cq - fake_of(cq->context)->cq);
}

/* ---- what is posted ---- */

static unsigned *get_fake_qp_count(struct fake *f, const struct fake_wqe *e)
{
	if (!e->q)
		return &f->n_srq;
	return e->kind == FAKE_UD_IN ? &e->q->n_in : &e->q->n_out;
}

struct fake_wqe fake_take(unsigned i, unsigned at)
{
	struct fake *f = &fake[i];
	struct fake_wqe e = f->posted[at];

	FAKE_CHECK(at < f->n_posted);
	--*get_fake_qp_count(f, &e);
	f->ghost = e.wr_id;
	memmove(f->posted + at, f->posted + at + 1, (--f->n_posted - at) * sizeof(e));
	return e;
}

/* The oldest of that queue, or n_posted. */
static unsigned get_first_fake_qp(const struct fake *f, enum fake_kind kind,
				  const struct fake_qp *q)
{
	unsigned i = 0;

	while (i < f->n_posted && (f->posted[i].kind != kind || f->posted[i].q != q))
		i++;
	return i;
}

void fake_drop(struct fake *f, enum fake_kind kind, const struct fake_qp *q)
{
	for (unsigned i; (i = get_first_fake_qp(f, kind, q)) < f->n_posted;)
		(void)fake_take(fake_index(f), i);
}

/* Nobody else has that buffer. */
static void post_fake_qp(struct fake *f, const struct fake_wqe *e)
{
	FAKE_CHECK(f->n_posted < FAKE_WQES && e->at);
	for (unsigned i = 0; i < f->n_posted; i++)
		FAKE_CHECK(f->posted[i].at != e->at && f->posted[i].wr_id != e->wr_id);
	f->posted[f->n_posted++] = *e;
	++*get_fake_qp_count(f, e);
}

static struct fake_wqe wqe_in(const struct ibv_recv_wr *wr, enum fake_kind kind, struct fake_qp *q)
{
	FAKE_CHECK(wr->num_sge == 1 && wr->sg_list->lkey == FAKE_LKEY && !wr->next);
	return (struct fake_wqe){ .wr_id = wr->wr_id,
				  .at = (uint8_t *)(uintptr_t)wr->sg_list->addr,
				  .len = wr->sg_list->length,
				  .kind = kind,
				  .q = q };
}

static void flush_fake_qp(struct fake *f, struct fake_qp *q)
{
	for (unsigned i; (i = get_first_fake_qp(f, FAKE_UD_IN, q)) < f->n_posted;) {
		const struct ibv_wc wc = { .wr_id = fake_take(fake_index(f), i).wr_id,
					   .status = IBV_WC_WR_FLUSH_ERR,
					   .qp_num = q->qp.qp_num };

		fake_wc(fake_index(f), cq_index(q->init.recv_cq), &wc);
	}
}

static void drop_all_fake_qp(struct fake *f, struct fake_qp *q)
{
	for (unsigned kind = FAKE_UD_IN; kind <= FAKE_MSG_OUT; kind++)
		fake_drop(f, kind, q);
}

/* ---- states ---- */

/* What a connection's queue pair has to be given, and what it may not be: a kernel refuses both. */
static void check_mask(const struct fake_qp *q, enum ibv_qp_state to, int mask)
{
	static const struct {
		enum ibv_qp_state to;
		int both, rc;
	} rule[] = {
		{ IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0 },
		{ IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
		  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER },
		{ IBV_QPS_RTS, IBV_QP_SQ_PSN,
		  IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC },
	};

	if (q->init.qp_type == IBV_QPT_UD || !(mask & IBV_QP_STATE))
		return;
	for (unsigned i = 0; i < sizeof(rule) / sizeof(rule[0]); i++)
		FAKE_CHECK(rule[i].to != to ||
			   mask == (IBV_QP_STATE | rule[i].both |
				    (q->init.qp_type == IBV_QPT_RC ? rule[i].rc : 0)));
}

int fake_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask)
{
	struct fake_qp *q = get_fake_qp_qp(qp);
	struct fake *f = fake_of(qp->context);

	FAKE_CHECK(q->used);
	check_mask(q, a->qp_state, mask);
	FAKE_CHECK(!(mask & IBV_QP_AV) || a->ah_attr.port_num == 1);
	FAKE_CHECK(!(mask & IBV_QP_PATH_MTU) ||
		   (a->path_mtu >= IBV_MTU_256 && a->path_mtu <= IBV_MTU_4096));
	FAKE_CHECK(!(mask & IBV_QP_SQ_PSN) || a->sq_psn <= 0xffffff ||
		   q->init.qp_type != IBV_QPT_UD);
	if (fake_fails(f, "modify_qp"))
		return f->fail_errno;
	if (mask & IBV_QP_QKEY && a->qkey >> 31 && !f->privileged)
		return EPERM;
	if (mask & IBV_QP_QKEY)
		q->attr.qkey = a->qkey;
	if (mask & IBV_QP_PKEY_INDEX)
		q->attr.pkey_index = a->pkey_index;
	if (mask & IBV_QP_AV)
		q->attr.ah_attr = a->ah_attr;
	if (mask & IBV_QP_DEST_QPN)
		q->attr.dest_qp_num = a->dest_qp_num;
	if (mask & IBV_QP_PATH_MTU)
		q->attr.path_mtu = a->path_mtu;
	if (mask & IBV_QP_TIMEOUT)
		q->attr.timeout = a->timeout;
	if (!(mask & IBV_QP_STATE))
		return 0;
	if (a->qp_state == IBV_QPS_RESET)
		drop_all_fake_qp(f, q);
	if (a->qp_state == IBV_QPS_ERR && q->state != IBV_QPS_ERR && !f->stuck) {
		flush_fake_qp(f, q);
		if (q->init.srq && !f->no_last_wqe)
			fake_event(fake_index(f), IBV_EVENT_QP_LAST_WQE_REACHED, qp);
	}
	q->state = a->qp_state;
	return 0;
}

int fake_destroy_qp(struct ibv_qp *qp)
{
	FAKE_CHECK(get_fake_qp_qp(qp)->used);
	drop_all_fake_qp(fake_of(qp->context), get_fake_qp_qp(qp));
	get_fake_qp_qp(qp)->used = false;
	fake_of(qp->context)->n_qp--;
	return 0;
}

int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_qp *q = get_fake_qp_qp(qp);
	struct fake_wqe e = wqe_in(wr, FAKE_UD_IN, q);

	*bad = wr;
	if (fake_fails(fake_of(qp->context), "post_recv"))
		return ENOMEM;
	FAKE_CHECK(q->used && q->init.qp_type == IBV_QPT_UD && q->n_in < VP_UD_RX);
	post_fake_qp(fake_of(qp->context), &e);
	return 0;
}

int fake_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake *f = fake_of(srq->context);
	struct fake_wqe e = wqe_in(wr, FAKE_MSG_IN, NULL);

	*bad = wr;
	if (fake_fails(f, "post_srq_recv"))
		return ENOMEM;
	FAKE_CHECK(f->n_srq < f->srq_max);
	post_fake_qp(f, &e);
	return 0;
}

/* ---- packets ---- */

struct fake *fake_at_lid(uint16_t lid)
{
	for (unsigned i = 0; i < FAKES; i++)
		if (fake[i].port.lid == (lid & ~((1u << fake[i].port.lmc) - 1)))
			return &fake[i];
	return NULL;
}

struct fake *fake_at(const struct ibv_ah_attr *a)
{
	for (unsigned i = 0; i < FAKES && fake_roce; i++)
		if (a->is_global && !memcmp(fake[i].gid.raw, a->grh.dgid.raw, 16))
			return &fake[i];
	return fake_roce ? NULL : fake_at_lid(a->dlid);
}

static bool is_group(const struct ibv_ah_attr *a)
{
	return fake_roce ? a->grh.dgid.raw[0] == 0xff : a->dlid >= 0xc000;
}

static bool attached(const struct fake *f, const struct ibv_ah_attr *a)
{
	for (unsigned i = 0; i < f->n_group; i++)
		if ((fake_roce || f->group[i].mlid == a->dlid) && a->is_global &&
		    !memcmp(f->group[i].mgid, a->grh.dgid.raw, 16))
			return true;
	return false;
}

static void ud_to(struct fake *from, const struct fake_qp *src, struct fake *to,
		  const struct ibv_send_wr *wr)
{
	const struct ibv_ah_attr *a = fake_attr_of(wr->wr.ud.ah);
	struct ibv_wc wc = { .src_qp = src->qp.qp_num, .slid = from->port.lid };

	for (unsigned k = 0; k < FAKE_QPS; k++) {
		struct fake_qp *q = &to->qp[k];
		struct fake_wqe w;

		if (!q->used || q->init.qp_type != IBV_QPT_UD || q->state < IBV_QPS_RTR ||
		    q->state > IBV_QPS_RTS || !q->n_in || q->attr.qkey != wr->wr.ud.remote_qkey ||
		    (!is_group(a) && q->qp.qp_num != wr->wr.ud.remote_qpn))
			continue;
		w = fake_take(fake_index(to), get_first_fake_qp(to, FAKE_UD_IN, q));
		memset(w.at, 0xff, 40); /* says "a group" to whoever looks at it without a GRH */
		if (a->is_global) {
			wc.wc_flags = IBV_WC_GRH;
			memcpy(w.at + 8, from->gid.raw, 16);
			memcpy(w.at + 24, a->grh.dgid.raw, 16);
		}
		wc.wr_id = w.wr_id;
		wc.qp_num = q->qp.qp_num;
		wc.byte_len = 40 + wr->sg_list->length;
		memcpy(w.at + 40, (void *)(uintptr_t)wr->sg_list->addr, wr->sg_list->length);
		fake_wc(fake_index(to), cq_index(q->init.recv_cq), &wc);
	}
}

/* To the peer's queue pair; RC says whether it came there, UC does not know. */
static enum ibv_wc_status conn_send(struct fake_qp *q, const struct ibv_send_wr *wr)
{
	struct fake *to = fake_at(&q->attr.ah_attr);
	struct fake_qp *peer = to ? fake_qp_of(fake_index(to), q->attr.dest_qp_num) : NULL;
	const bool uc = q->init.qp_type == IBV_QPT_UC;
	struct fake_wqe w;
	struct ibv_wc wc = { .byte_len = wr->sg_list->length };

	if (!peer || peer->init.qp_type != q->init.qp_type || peer->state < IBV_QPS_RTR ||
	    peer->state > IBV_QPS_RTS)
		return uc ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR;
	if (!to->n_srq)
		return uc ? IBV_WC_SUCCESS : IBV_WC_RNR_RETRY_EXC_ERR;
	w = fake_take(fake_index(to), get_first_fake_qp(to, FAKE_MSG_IN, NULL));
	FAKE_CHECK(wr->sg_list->length <= w.len);
	memcpy(w.at, (void *)(uintptr_t)wr->sg_list->addr, wr->sg_list->length);
	wc.wr_id = w.wr_id;
	wc.qp_num = peer->qp.qp_num;
	fake_wc(fake_index(to), cq_index(peer->init.recv_cq), &wc);
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status ud_post(struct fake *f, struct fake_qp *q, const struct ibv_send_wr *wr)
{
	enum ibv_wc_status status = f->ud_status;
	const struct ibv_ah_attr *a = fake_attr_of(wr->wr.ud.ah);
	struct fake *to = is_group(a) ? NULL : fake_at(a);

	f->ud_status = IBV_WC_SUCCESS;
	if (status)
		return status;
	if (to)
		ud_to(f, q, to, wr);
	for (unsigned i = 0; i < FAKES && is_group(a); i++)
		if (attached(&fake[i], a))
			ud_to(f, q, &fake[i], wr); /* the sender, too */
	return IBV_WC_SUCCESS;
}

/* Sends it and says how that went. */
static enum ibv_wc_status carry_fake_qp(struct fake *f, struct fake_qp *q,
					const struct ibv_send_wr *wr)
{
	enum ibv_wc_status status = f->rc_status;

	if (q->state != IBV_QPS_RTS)
		return IBV_WC_WR_FLUSH_ERR;
	if (q->init.qp_type == IBV_QPT_UD)
		return ud_post(f, q, wr);
	f->rc_status = IBV_WC_SUCCESS;
	return status ? status : conn_send(q, wr);
}

int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fake *f = fake_of(qp->context);
	struct fake_qp *q = get_fake_qp_qp(qp);
	const bool ud = q->init.qp_type == IBV_QPT_UD;
	struct ibv_wc wc = { .wr_id = wr->wr_id, .qp_num = qp->qp_num };
	struct fake_wqe e = { .wr_id = wr->wr_id,
			      .at = (uint8_t *)(uintptr_t)wr->sg_list->addr,
			      .len = wr->sg_list->length,
			      .kind = ud ? FAKE_UD_OUT : FAKE_MSG_OUT,
			      .q = q,
			      .ah = ud ? wr->wr.ud.ah : NULL };

	*bad = wr;
	FAKE_CHECK(wr->sg_list->lkey == FAKE_LKEY && q->used);
	if (fake_fails(f, "post_send"))
		return ENOMEM;
	FAKE_CHECK(wr->num_sge == 1 && wr->opcode == IBV_WR_SEND && !wr->next);
	FAKE_CHECK(q->n_out < (ud ? VP_UD_TX : VP_QP_TX));
	FAKE_CHECK(e.len <= (ud ? 4096u : VP_MSG_LEN));
	post_fake_qp(f, &e);
	if (f->stuck)
		return 0;
	(void)fake_take(fake_index(f), f->n_posted - 1);
	wc.status = carry_fake_qp(f, q, wr);
	fake_wc(fake_index(f), cq_index(q->init.send_cq), &wc);
	return 0;
}

int fake_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct fake *f = fake_of(cq->context);
	unsigned c = cq_index(cq), k = f->n_wc[c] < (unsigned)n ? f->n_wc[c] : (unsigned)n;

	memcpy(wc, f->wc[c], k * sizeof(*wc));
	memmove(f->wc[c], f->wc[c] + k, (f->n_wc[c] -= k) * sizeof(*wc));
	return (int)k;
}
