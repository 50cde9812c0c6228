/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs of the soft port.  The side that sent the REQ opens a session to the other and
 * names both queue pairs in its private data; each message is one Send.  A receiver that is
 * slow stalls the sender (DDPS_NO_RECV_STALL), whose slots fill, and then frames are dropped.
 */
#include "ipoib/soft/soft_in.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH	  128
#define CQ_DEPTH  65536
#define FRAME_MAX (DDPS_IPOIB_MTU_CM_MAX + DDPS_IPOIB_ENCAP_LEN)
#define SEND_ID	  (1ull << 63) /* in wr_id: a send */

static struct soft_qp *find(struct ddps_soft *s, uint32_t qpn)
{
	struct soft_qp *q = s->qp;

	while (q && q->qpn != qpn)
		q = q->next;
	return q;
}

int ddps_soft_qp_create(struct ddps_ipoib_port *port, uint8_t transport, uint32_t rx_mtu,
			uint32_t *qpn)
{
	struct ddps_soft *s = SOFT(port);
	struct soft_qp *q;

	if (transport != DDPS_CM_RC && transport != DDPS_CM_UC)
		return DDPS_E_UNSUPPORTED;
	if (s->n_qp >= s->cfg.max_qps || !rx_mtu || rx_mtu > FRAME_MAX)
		return DDPS_E_LIMIT;
	q = calloc(1, sizeof(*q));
	if (!q)
		return DDPS_E_NOMEM;
	do
		s->next_qpn = (s->next_qpn + 1) & DDPS_IPOIB_QPN_MAX;
	while (s->next_qpn < 2 || s->next_qpn == DDPS_IPOIB_QPN_MCAST ||
	       s->next_qpn == s->cfg.qpn || find(s, s->next_qpn));
	q->soft = s;
	q->qpn = s->next_qpn;
	q->uc = transport == DDPS_CM_UC;
	q->rx_mtu = rx_mtu;
	q->next = s->qp;
	s->qp = q;
	s->n_qp++;
	*qpn = q->qpn;
	return 0;
}

static int post_recv(struct soft_qp *q, uint64_t slot)
{
	struct ddps_sge sge = { q->mem + slot * q->rx_mtu, q->rx_mtu, ddps_mr_stag(q->mr) };

	return ddps_post_recv(q->ep, slot, &sge, 1);
}

/* Small messages take many slots, or a burst of them finds none. */
static unsigned slots(uint32_t mtu)
{
	unsigned n = SOFT_OCTETS / mtu;

	return n < SOFT_SLOTS_MIN ? SOFT_SLOTS_MIN : n > SOFT_SLOTS_MAX ? SOFT_SLOTS_MAX : n;
}

static uint8_t *tx_slot(const struct soft_qp *q, uint64_t id)
{
	return q->mem + (size_t)q->rx_slots * q->rx_mtu + id % q->tx_slots * q->tx_mtu;
}

static int make_ep(struct soft_qp *q)
{
	struct ddps_soft *s = q->soft;
	struct ddps_ep_attr a;
	size_t len;
	int err;

	q->rx_slots = slots(q->rx_mtu);
	q->tx_slots = slots(q->tx_mtu);
	len = (size_t)q->rx_slots * q->rx_mtu + (size_t)q->tx_slots * q->tx_mtu;
	q->mem = malloc(len);
	if (!q->mem)
		return DDPS_E_NOMEM;
	ddps_ep_attr_init(&a);
	a.pd = s->pd;
	a.send_cq = a.recv_cq = s->cq;
	a.sq_depth = q->tx_slots;
	a.rq_depth = q->rx_slots;
	a.user = q;
	a.no_recv = DDPS_NO_RECV_STALL;
	err = ddps_mr_reg(s->pd, q->mem, len, DDPS_LOCAL_WRITE, NULL, &q->mr);
	if (!err)
		err = ddps_ep_new(s->ctx, &a, &q->ep);
	for (unsigned i = 0; !err && i < q->rx_slots; i++)
		err = post_recv(q, i);
	return err;
}

static void conn_param(struct ddps_conn_param *p)
{
	ddps_conn_param_init(p);
	p->ird = p->ord = 0;
	p->p2p = true; /* either side may send first */
	p->close_ms = 1000;
}

static int open_session(struct soft_qp *q)
{
	const struct ddps_soft *s = q->soft;
	struct ddps_soft_open o = { .from_qpn = q->qpn, .to_qpn = q->to_qpn };
	uint8_t priv[DDPS_SOFT_OPEN_LEN];
	struct ddps_conn_param p;

	memcpy(o.from, s->cfg.gid, sizeof(o.from));
	memcpy(o.to, s->peer[q->peer].gid, sizeof(o.to));
	ddps_soft_open_encode(priv, &o);
	conn_param(&p);
	p.rtr = DDPS_RTR_WRITE;
	p.private_data = priv;
	p.private_data_len = sizeof(priv);
	return ddps_connect(q->ep, s->peer[q->peer].uri, &p);
}

int ddps_soft_qp_ready(struct ddps_ipoib_port *port, uint32_t qpn,
		       const struct ddps_ipoib_qp_to *to)
{
	struct ddps_soft *s = SOFT(port);
	struct soft_qp *q = find(s, qpn);
	int err;

	if (!q || q->stopped || q->ready)
		return DDPS_E_INVAL;
	if (!to->path.addr || to->path.addr > s->n_peers)
		return DDPS_E_ADDRESS;
	q->peer = (unsigned)to->path.addr - 1;
	q->to_qpn = to->qpn;
	q->active = to->active;
	/* the peer's word is a bound on what is sent, never on what is allocated here */
	q->tx_mtu = to->rx_mtu && to->rx_mtu < FRAME_MAX ? to->rx_mtu : FRAME_MAX;
	if (q->active && !s->peer[q->peer].uri)
		return DDPS_E_UNSUPPORTED;
	err = make_ep(q);
	if (!err && q->active)
		err = open_session(q);
	q->ready = !err;
	return err;
}

/* Gives waiting messages to the session. */
static int push(struct soft_qp *q)
{
	while (q->up && q->tx_posted != q->tx_id) {
		struct ddps_sge sge = {
			.addr = tx_slot(q, q->tx_posted),
			.len = q->tx_len[q->tx_posted % q->tx_slots],
			.lkey = ddps_mr_stag(q->mr),
		};
		struct ddps_send_wr wr = {
			.wr_id = SEND_ID | q->tx_posted, .op = DDPS_OP_SEND, .sge = &sge, .nsge = 1
		};
		int err = ddps_post_send(q->ep, &wr);

		if (err)
			return err;
		q->tx_posted++;
	}
	return 0;
}

static void see(const struct soft_qp *q, bool tx, const void *frame, size_t len)
{
	const struct ddps_soft *s = q->soft;
	const uint8_t *peer = s->peer[q->peer].gid;
	const struct ddps_soft_seen seen = { .tx = tx,
					     .connected = true,
					     .uc = q->uc,
					     .peer = (ddps_cm_addr)q->peer + 1,
					     .from_qpn = tx ? q->qpn : q->to_qpn,
					     .to_qpn = tx ? q->to_qpn : q->qpn,
					     .from = tx ? s->cfg.gid : peer,
					     .to = tx ? peer : s->cfg.gid,
					     .frame = frame,
					     .len = len };

	if (s->cfg.see)
		s->cfg.see(s->cfg.see_user, &seen);
}

int ddps_soft_qp_send(struct ddps_ipoib_port *port, uint32_t qpn, const void *frame, size_t len)
{
	struct ddps_soft *s = SOFT(port);
	struct soft_qp *q = find(s, qpn);

	if (!q || !q->ready || q->stopped)
		return DDPS_E_STATE;
	if (len > q->tx_mtu)
		return DDPS_E_TOO_LONG;
	if (q->tx_id - q->tx_done == q->tx_slots) {
		s->stats.qp_full++;
		return DDPS_E_AGAIN;
	}
	memcpy(tx_slot(q, q->tx_id), frame, len);
	q->tx_len[q->tx_id % q->tx_slots] = (uint32_t)len;
	q->tx_id++;
	see(q, true, frame, len);
	/* a session that has just ended says so by an event, hence qp_error */
	(void)push(q);
	return 0;
}

static void stop(struct soft_qp *q)
{
	ddps_ep_free(q->ep);
	if (q->mr)
		(void)ddps_mr_dereg(q->mr);
	free(q->mem);
	q->ep = NULL;
	q->mr = NULL;
	q->mem = NULL;
	q->up = false;
	q->stopped = true;
}

void ddps_soft_qp_stop(struct ddps_ipoib_port *port, uint32_t qpn)
{
	struct soft_qp *q = find(SOFT(port), qpn);

	if (q)
		stop(q);
}

void ddps_soft_qp_destroy(struct ddps_ipoib_port *port, uint32_t qpn)
{
	struct ddps_soft *s = SOFT(port);

	for (struct soft_qp **p = &s->qp; *p; p = &(*p)->next)
		if ((*p)->qpn == qpn) {
			struct soft_qp *q = *p;

			*p = q->next;
			stop(q);
			free(q);
			s->n_qp--;
			return;
		}
}

/* ---- sessions ---- */

int ddps_soft_sessions_open(struct ddps_soft *s, char *why, size_t why_len)
{
	int err = ddps_ctx_new(&s->ctx, NULL);

	if (!err)
		err = ddps_pd_new(s->ctx, &s->pd);
	if (!err)
		err = ddps_cq_new(s->ctx, CQ_DEPTH, &s->cq);
	if (err)
		return err;
	if (s->cfg.listen) {
		err = ddps_listen(s->ctx, s->cfg.listen, NULL, &s->listener);
		if (err)
			snprintf(why, why_len, "listening on %s: %s", s->cfg.listen,
				 err == DDPS_E_SYSTEM ? strerror(errno) : ddps_strerror(err));
	}
	return err ? err : ddps_cq_arm(s->cq, false);
}

void ddps_soft_sessions_close(struct ddps_soft *s)
{
	while (s->qp)
		ddps_soft_qp_destroy(&s->port, s->qp->qpn);
	ddps_ctx_free(s->ctx);
}

static void refuse(struct ddps_soft *s, struct ddps_request *req)
{
	s->stats.session_refused++;
	(void)ddps_reject(req, NULL, 0);
}

static void request(struct ddps_soft *s, const struct ddps_event *ev)
{
	struct ddps_soft_open o;
	struct soft_qp *q = NULL;
	struct ddps_conn_param p;
	int err;

	if (!ddps_soft_open_decode(&o, ev->private_data, ev->private_data_len) &&
	    memcmp(o.to, s->cfg.gid, sizeof(o.to)) == 0)
		q = find(s, o.to_qpn);
	if (!q || !q->ready || q->stopped || q->active || q->taken || q->to_qpn != o.from_qpn ||
	    memcmp(o.from, s->peer[q->peer].gid, sizeof(o.from)) != 0) {
		refuse(s, ev->request);
		return;
	}
	conn_param(&p);
	err = ddps_accept(ev->request, q->ep, &p);
	q->taken = !err;
	if (err == DDPS_E_NOMEM)
		refuse(s, ev->request);
	else if (err) /* the request is no more; the queue pair times out or is stopped */
		s->stats.session_refused++;
}

static void failed(struct soft_qp *q, int err, uint64_t now)
{
	struct ddps_soft *s = q->soft;
	uint32_t qpn = q->qpn;

	s->stats.session_down++;
	stop(q);
	s->cfg.up->qp_error(s->cfg.user, qpn, err, now);
}

static void event(struct ddps_soft *s, const struct ddps_event *ev, uint64_t now)
{
	struct soft_qp *q = ev->ep ? ev->user : NULL;

	if (ev->type == DDPS_EV_CONNECT_REQUEST) {
		request(s, ev);
	} else if (q && ev->type == DDPS_EV_ESTABLISHED) {
		s->stats.session_up++;
		q->up = true;
		(void)push(q);
	} else if (q && ev->type != DDPS_EV_TERMINATED) {
		failed(q, ev->error.code ? ev->error.code : DDPS_E_RESET, now);
	}
}

static void completion(struct ddps_soft *s, const struct ddps_wc *wc, uint64_t now)
{
	struct soft_qp *q = wc->user;
	uint32_t qpn = q->qpn;

	if (wc->wr_id & SEND_ID) {
		q->tx_done++;
		return;
	}
	if (wc->status != DDPS_WC_SUCCESS)
		return; /* the session's end is told by its event */
	see(q, false, q->mem + wc->wr_id * q->rx_mtu, wc->len);
	s->cfg.up->qp(s->cfg.user, qpn, q->mem + wc->wr_id * q->rx_mtu, wc->len, now);
	q = find(s, qpn); /* the call may have destroyed it */
	if (q && q->ep)
		(void)post_recv(q, wc->wr_id);
}

bool ddps_soft_sessions_run(struct ddps_soft *s, uint64_t now)
{
	struct ddps_event ev;
	struct ddps_wc wc;
	unsigned n = 0;

	(void)ddps_progress(s->ctx, 0);
	/* completions first: a session's last messages come before its end */
	for (; n < BATCH && ddps_cq_poll(s->cq, &wc, 1) == 1; n++)
		completion(s, &wc, now);
	for (; n < 2 * BATCH && ddps_event_get(s->ctx, &ev) == 1; n++)
		event(s, &ev, now);
	if (!n)
		(void)ddps_cq_arm(s->cq, false);
	return n;
}
