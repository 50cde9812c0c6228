/* SPDX-License-Identifier: BSD-2-Clause */
/* See soft_session.h. */
#include "soft_session.h"
#include "fuzz.h"
#include <stdio.h>

struct event {
	struct ddps_event ev;
	struct event *next;
};

struct done {
	struct ddps_wc wc;
	struct ddps_ep *ep;
	struct done *next;
};

static struct soft_session x;
static struct ddps_ep *eps;
static struct event *events;
static struct done *dones;

struct soft_session *soft_session_reset(const uint8_t me[DDPS_IPOIB_GID_LEN])
{
	soft_session_end();
	x = (struct soft_session){ .me = me };
	return &x;
}

void soft_session_end(void)
{
	FUZZ_CHECK(!eps && !dones && !events);
}

void soft_session_event(const struct ddps_event *ev)
{
	struct event *e = calloc(1, sizeof *e), **end = &events;

	FUZZ_CHECK(e);
	e->ev = *ev;
	while (*end)
		end = &(*end)->next;
	*end = e;
}

void soft_session_done(struct ddps_ep *ep, const struct ddps_wc *wc)
{
	struct done *d = calloc(1, sizeof *d), **end = &dones;

	FUZZ_CHECK(d);
	*d = (struct done){ .wc = *wc, .ep = ep };
	d->wc.user = ep->user;
	while (*end)
		end = &(*end)->next;
	*end = d;
}

void soft_session_received(struct ddps_ep *ep, const struct ddps_wc *wc)
{
	soft_session_done(ep, wc);
	ep->nrecv--;
	memmove(ep->recv_id, ep->recv_id + 1, ep->nrecv * sizeof *ep->recv_id);
	memmove(ep->recv_at, ep->recv_at + 1, ep->nrecv * sizeof *ep->recv_at);
}

/* ---- the API ---- */

int ddps_ctx_new(struct ddps_ctx **out, const struct ddps_ctx_attr *p)
{
	FUZZ_CHECK(!p);
	*out = (void *)&x;
	return 0;
}

void ddps_ctx_free(struct ddps_ctx *ctx)
{
	FUZZ_CHECK(!ctx || !eps);
}

int ddps_pd_new(struct ddps_ctx *ctx, struct ddps_pd **out)
{
	*out = (void *)ctx;
	return 0;
}

int ddps_cq_new(struct ddps_ctx *ctx, uint32_t depth, struct ddps_cq **out)
{
	FUZZ_CHECK(depth >= 8 * SOFT_SLOTS_MAX);
	*out = (void *)ctx;
	return 0;
}

int ddps_cq_arm(struct ddps_cq *cq, bool solicited)
{
	(void)cq;
	FUZZ_CHECK(!solicited);
	return 0;
}

int ddps_cq_fd(struct ddps_cq *cq)
{
	(void)cq;
	return -1;
}

int ddps_ctx_fd(struct ddps_ctx *ctx)
{
	(void)ctx;
	return -1;
}

int ddps_event_fd(struct ddps_ctx *ctx)
{
	(void)ctx;
	return -1;
}

int ddps_progress(struct ddps_ctx *ctx, int timeout_ms)
{
	(void)ctx;
	FUZZ_CHECK(!timeout_ms);
	return 0;
}

int ddps_listen(struct ddps_ctx *ctx, const char *uri, const struct ddps_listen_param *p,
		struct ddps_listener **out)
{
	(void)ctx;
	(void)p;
	FUZZ_CHECK(uri);
	*out = (void *)&x;
	return 0;
}

int ddps_listener_uri(struct ddps_listener *l, char *buf, size_t len)
{
	(void)l;
	return snprintf(buf, len, "tcp://127.0.0.1:1");
}

int ddps_mr_reg(struct ddps_pd *pd, void *addr, size_t len, unsigned access, struct ddps_ep *ep,
		struct ddps_mr **out)
{
	(void)pd;
	(void)ep;
	FUZZ_CHECK(addr && len && access == DDPS_LOCAL_WRITE);
	*out = addr;
	return 0;
}

int ddps_mr_dereg(struct ddps_mr *mr)
{
	FUZZ_CHECK(mr);
	return 0;
}

uint32_t ddps_mr_stag(const struct ddps_mr *mr)
{
	return mr ? 0x100 : 0;
}

int ddps_ep_new(struct ddps_ctx *ctx, const struct ddps_ep_attr *attr, struct ddps_ep **out)
{
	struct ddps_ep *ep = calloc(1, sizeof *ep);

	(void)ctx;
	FUZZ_CHECK(ep && attr->no_recv == DDPS_NO_RECV_STALL && attr->rq_depth <= SOFT_SLOTS_MAX);
	ep->user = attr->user;
	ep->next = eps;
	eps = ep;
	*out = ep;
	return 0;
}

/* With what it has not fetched. */
void ddps_ep_free(struct ddps_ep *ep)
{
	if (!ep)
		return;
	for (struct event **e = &events; *e;) {
		struct event *gone = *e;

		if (gone->ev.ep != ep) {
			e = &gone->next;
			continue;
		}
		*e = gone->next;
		free(gone);
	}
	for (struct done **d = &dones; *d;) {
		struct done *gone = *d;

		if (gone->ep != ep) {
			d = &gone->next;
			continue;
		}
		*d = gone->next;
		free(gone);
	}
	for (struct ddps_ep **e = &eps; *e; e = &(*e)->next)
		if (*e == ep) {
			*e = ep->next;
			free(ep);
			return;
		}
	FUZZ_CHECK(false);
}

int ddps_post_recv(struct ddps_ep *ep, uint64_t wr_id, const struct ddps_sge *sge, uint32_t nsge)
{
	FUZZ_CHECK(nsge == 1 && sge->lkey && ep->nrecv < SOFT_SLOTS_MAX);
	for (unsigned i = 0; i < ep->nrecv; i++)
		FUZZ_CHECK(ep->recv_id[i] != wr_id && ep->recv_at[i] != sge->addr);
	ep->recv_id[ep->nrecv] = wr_id;
	ep->recv_at[ep->nrecv++] = sge->addr;
	ep->recv_len = sge->len;
	return 0;
}

/* In the order of qp_send(), each once, on a session that is up. */
int ddps_post_send(struct ddps_ep *ep, const struct ddps_send_wr *wr)
{
	FUZZ_CHECK(ep->up && wr->op == DDPS_OP_SEND && wr->nsge == 1 && wr->sge->lkey);
	if (ep->ended)
		return DDPS_E_STATE;
	FUZZ_CHECK((wr->wr_id & ~(UINT64_C(1) << 63)) == ep->next_send);
	FUZZ_CHECK(((const uint8_t *)wr->sge->addr)[0] == (uint8_t)ep->next_send);
	ep->next_send++;
	return 0;
}

int ddps_connect(struct ddps_ep *ep, const char *uri, const struct ddps_conn_param *p)
{
	struct ddps_soft_open o;

	FUZZ_CHECK(!ep->used && !strcmp(uri, "tcp://peer"));
	FUZZ_CHECK(!ddps_soft_open_decode(&o, p->private_data, p->private_data_len));
	FUZZ_CHECK(o.from_qpn == ep->user->qpn && !memcmp(o.from, x.me, 16));
	ep->used = true;
	return 0;
}

int ddps_accept(struct ddps_request *req, struct ddps_ep *ep, const struct ddps_conn_param *p)
{
	FUZZ_CHECK(x.asked && !x.answered && req == (void *)&x && p->p2p);
	if (ep->used)
		return DDPS_E_STATE;
	ep->used = x.answered = x.accepted = true;
	return 0;
}

int ddps_reject(struct ddps_request *req, const void *pd, size_t len)
{
	FUZZ_CHECK(x.asked && !x.answered && req == (void *)&x && !pd && !len);
	x.answered = true;
	return 0;
}

int ddps_cq_poll(struct ddps_cq *cq, struct ddps_wc *wc, int n)
{
	struct done *d = dones;

	(void)cq;
	FUZZ_CHECK(n == 1);
	if (!d)
		return 0;
	dones = d->next;
	*wc = d->wc;
	free(d);
	return 1;
}

int ddps_event_get(struct ddps_ctx *ctx, struct ddps_event *ev)
{
	struct event *e = events;

	(void)ctx;
	if (!e)
		return 0;
	events = e->next;
	*ev = e->ev;
	x.asked |= ev->type == DDPS_EV_CONNECT_REQUEST;
	if (ev->type == DDPS_EV_ESTABLISHED)
		ev->ep->up = true;
	free(e);
	return 1;
}
