/* SPDX-License-Identifier: BSD-2-Clause */
/* An endpoint with its message buffers, and windows of memory for RDMA. */
#include "xfer/chan.h"
#include <stdlib.h>
#include <string.h>

int chan_open(struct chan *c, struct ddps_ctx *ctx, struct ddps_pd *pd, struct ddps_cq *cq,
	      uint32_t recv_len, void *user)
{
	struct ddps_ep_attr attr;
	size_t len = (size_t)CHAN_RECVS * recv_len + (size_t)CHAN_SENDS * MSG_MAX;
	int err;

	ddps_ep_attr_init(&attr);
	attr.pd = pd;
	attr.send_cq = cq;
	attr.recv_cq = cq;
	attr.sq_depth = CHAN_SQ;
	attr.rq_depth = CHAN_RQ;
	attr.max_sge = 1;
	attr.user = user;
	*c = (struct chan){ .recv_len = recv_len, .mem = calloc(1, len) };
	if (!c->mem)
		return DDPS_E_NOMEM;
	err = ddps_ep_new(ctx, &attr, &c->ep);
	if (!err)
		err = ddps_mr_reg(pd, c->mem, len, DDPS_LOCAL_WRITE, c->ep, &c->mr);
	if (err)
		chan_close(c);
	return err;
}

void chan_close(struct chan *c)
{
	ddps_ep_free(c->ep);
	ddps_mr_dereg(c->mr);
	free(c->mem);
	*c = (struct chan){ .ep = NULL };
}

int chan_recv(struct chan *c, uint32_t i)
{
	struct ddps_sge sge = { .addr = c->mem + (size_t)i * c->recv_len,
				.len = c->recv_len,
				.lkey = ddps_mr_stag(c->mr) };

	return ddps_post_recv(c->ep, WR_ID(WR_RECV, i), &sge, 1);
}

const uint8_t *chan_data(const struct chan *c, uint32_t i)
{
	return c->mem + (size_t)i * c->recv_len;
}

static uint8_t *send_buf(struct chan *c, uint32_t i)
{
	return c->mem + (size_t)CHAN_RECVS * c->recv_len + (size_t)i * MSG_MAX;
}

static int post_buf(struct chan *c, uint32_t i, size_t len)
{
	struct ddps_sge sge = { .addr = send_buf(c, i),
				.len = (uint32_t)len,
				.lkey = ddps_mr_stag(c->mr) };
	struct ddps_send_wr wr = {
		.wr_id = WR_ID(WR_MSG, i), .op = DDPS_OP_SEND, .sge = &sge, .nsge = len ? 1 : 0
	};
	int err = ddps_post_send(c->ep, &wr);

	if (!err)
		c->sending |= 1u << i;
	return err;
}

/* A free send buffer.  Return: its number, or DDPS_E_LIMIT. */
static int free_buf(const struct chan *c)
{
	for (int i = 0; i < CHAN_SENDS; i++)
		if (!(c->sending & 1u << i))
			return i;
	return DDPS_E_LIMIT;
}

int chan_send(struct chan *c, const struct msg *m)
{
	int i = free_buf(c);
	size_t len;

	if (i < 0)
		return i;
	len = msg_encode(m, send_buf(c, (uint32_t)i), MSG_MAX);
	return len ? post_buf(c, (uint32_t)i, len) : DDPS_E_INVAL;
}

int chan_send_raw(struct chan *c, const void *data, size_t len)
{
	int i = free_buf(c);

	if (i < 0)
		return i;
	if (len > MSG_MAX)
		return DDPS_E_TOO_LONG;
	if (len)
		memcpy(send_buf(c, (uint32_t)i), data, len);
	return post_buf(c, (uint32_t)i, len);
}

void chan_sent(struct chan *c, uint32_t i)
{
	c->sending &= ~(1u << i);
}

void chan_param(struct ddps_conn_param *p, const struct opts *o)
{
	ddps_conn_param_init(p);
	if (o->ird != OPTS_RD_UNSET) {
		p->ird = o->ird;
		p->ird_hard = o->ird != DDPS_RD_ULP; /* somebody asked for just this */
	}
	if (o->ord != OPTS_RD_UNSET)
		p->ord = o->ord;
	/* no protocol of ours settles them above the transport: keep the library's usual 16 */
	p->ulp_ird = 16;
	p->ulp_ord = 16;
	p->plain = o->plain;
	p->p2p = o->p2p;
	p->rtr = o->rtr ? o->rtr : DDPS_RTR_ALL;
	p->legacy_retry = o->legacy_retry;
	p->crc = o->crc != OPTS_OFF;
	p->markers = o->markers == OPTS_ON;
	p->private_data = o->pd.b;
	p->private_data_len = o->pd.len;
	if (o->timeout_ms) {
		/* a little less than the command has: the library says more of why */
		p->connect_ms = o->timeout_ms - o->timeout_ms / 10;
		p->setup_ms = o->timeout_ms - o->timeout_ms / 20;
		p->first_fpdu_ms = o->timeout_ms;
	}
}

int window_open(struct window *w, struct ddps_pd *pd, struct ddps_ep *ep, size_t len,
		unsigned access)
{
	int err;

	*w = (struct window){ .len = len };
	if (!len)
		return 0;
	w->mem = calloc(1, len);
	err = w->mem ? ddps_mr_reg(pd, w->mem, len, access, ep, &w->mr) : DDPS_E_NOMEM;
	if (err)
		window_close(w);
	return err;
}

void window_close(struct window *w)
{
	ddps_mr_dereg(w->mr);
	free(w->mem);
	*w = (struct window){ .mem = NULL };
}
