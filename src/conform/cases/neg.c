/* SPDX-License-Identifier: BSD-2-Clause */
/* Set-ups of RFC 6581 step by step, the same calls for both wires. */
#include "conform/cases/cases_neg.h"
#include "conform/peer/inside.h"
#include <string.h>

#define WORD 4u

static bool is_over_tcp(const struct cf *cf)
{
	return cf->wire == CF_TCP;
}

static bool is_peer_enhanced(struct cf *cf)
{
	if (is_over_tcp(cf))
		return cf->mpa.flags & CF_MPA_S && cf->mpa.rev >= 2;
	return cf->ctrl.code >= CF_ENH_INITIATE && cf->ctrl.code <= CF_ENH_REJECT;
}

struct word cf_word(struct cf *cf)
{
	const uint8_t *pd = is_over_tcp(cf) ? cf->mpa.pd : cf->ctrl.pd;
	size_t len = is_over_tcp(cf) ? cf->mpa.pd_len : cf->ctrl.pd_len;
	uint16_t i, o;

	CF_CHECK(cf, is_peer_enhanced(cf), "it is not enhanced");
	CF_CHECK(cf, len >= WORD, "enhanced, with %zu octets of private data", len);
	i = cf_get16(pd);
	o = cf_get16(pd + 2);
	return (struct word){ .a = i & CF_A,
			      .b = i & CF_B,
			      .c = o & CF_C,
			      .d = o & CF_D,
			      .ird = i & ULP,
			      .ord = o & ULP };
}

const uint8_t *cf_word_pd(struct cf *cf, size_t *len)
{
	size_t word = is_peer_enhanced(cf) ? WORD : 0,
	       all = is_over_tcp(cf) ? cf->mpa.pd_len : cf->ctrl.pd_len;

	CF_CHECK(cf, all >= word, "enhanced, with %zu octets of private data", all);
	*len = all - word;
	return (is_over_tcp(cf) ? cf->mpa.pd : cf->ctrl.pd) + word;
}

/* ---- what goes out ---- */

static void put_setup_frame(struct cf *cf, const struct cf_mpa *flags, uint16_t code, bool word,
			    uint16_t ird_w, uint16_t ord_w, const void *pd, size_t pd_len)
{
	uint16_t at = word ? WORD : 0;
	struct cf_mpa f = *flags;
	struct cf_ctrl c = { .code = code, .stream = cf->ctrl.stream };
	uint8_t *b = is_over_tcp(cf) ? f.pd : c.pd;

	if (word) {
		cf_put16(b, ird_w);
		cf_put16(b + 2, ord_w);
	}
	if (pd_len)
		memcpy(b + at, pd, pd_len);
	f.pd_len = c.pd_len = (uint16_t)(at + pd_len);
	if (!is_over_tcp(cf)) {
		cf_ctrl_write(cf, &c);
		return;
	}
	cf_mpa_write(cf, &f);
}

void cf_neg_ask(struct cf *cf, uint16_t ird_w, uint16_t ord_w, const void *pd, size_t pd_len)
{
	const struct cf_mpa f = { .rev = 2, .flags = CF_MPA_S | CF_MPA_C };

	cf_open(cf);
	put_setup_frame(cf, &f, CF_ENH_INITIATE, true, ird_w, ord_w, pd, pd_len);
}

void cf_neg_ask_plain(struct cf *cf, const void *pd, size_t pd_len)
{
	const struct cf_mpa f = { .rev = 1, .flags = CF_MPA_C };

	cf_open(cf);
	put_setup_frame(cf, &f, CF_INITIATE, false, 0, 0, pd, pd_len);
}

void cf_neg_hear(struct cf *cf)
{
	if (is_over_tcp(cf))
		cf_mpa_read(cf, &cf->mpa);
	else
		cf_ctrl_read(cf, &cf->ctrl);
}

bool cf_neg_rejected(struct cf *cf)
{
	if (is_over_tcp(cf))
		return cf->mpa.flags & CF_MPA_R;
	return cf->ctrl.code == CF_REJECT || cf->ctrl.code == CF_ENH_REJECT;
}

/* Segments may flow from here on. */
static void begin_segments(struct cf *cf)
{
	struct cf_conn *c = cf->conn;

	c->session = true;
	c->crc = true; /* asked for with every frame above */
	c->stream = cf->ctrl.stream;
	c->tx_ssn = c->rx_ssn = 1;
}

void cf_neg_answer(struct cf *cf, bool reject, uint16_t ird_w, uint16_t ord_w, const void *pd,
		   size_t pd_len)
{
	bool word = is_peer_enhanced(cf);
	struct cf_mpa f = { .reply = true, .rev = cf->mpa.rev, .flags = CF_MPA_C };
	uint16_t code = reject ? CF_REJECT : CF_ACCEPT;

	if (word) {
		f.flags |= CF_MPA_S;
		code = reject ? CF_ENH_REJECT : CF_ENH_ACCEPT;
	}
	f.flags |= reject ? CF_MPA_R : 0;
	put_setup_frame(cf, &f, code, word, ird_w, ord_w, pd, pd_len);
	begin_segments(cf);
}

void cf_neg_accept(struct cf *cf, uint16_t ird_w, uint16_t ord_w)
{
	cf_open(cf);
	cf_neg_hear(cf);
	cf_neg_answer(cf, false, ird_w, ord_w, NULL, 0);
}

/* ---- the target's application ---- */

int cf_neg_app_accept(struct cf *cf)
{
	struct cf_app *a = &cf->app;

	a->request = cf_app_event(cf, DDPS_EV_CONNECT_REQUEST);
	cf_app_recv(cf, 0, 0); /* makes the endpoint */
	return ddps_accept(a->request.request, a->ep, &a->param);
}

void cf_neg_listen(struct cf *cf, const struct ddps_listen_param *p)
{
	CF_CHECK(cf, !ddps_listen(cf->app.ctx, cf_self_uri(cf), p, &cf->app.listener), "listening");
}

void cf_neg_failed(struct cf *cf, uint16_t code)
{
	struct cf_ctrl end = { .code = CF_TERMINATE,
			       .stream = cf->conn->stream,
			       .ssn = cf->conn->tx_ssn };
	struct ddps_event ev;
	struct ddps_triple t;

	if (!cf->self)
		return;
	/* Our side of the end: nothing is final before. */
	if (is_over_tcp(cf))
		cf_tcp_fin(cf);
	else
		cf_ctrl_write(cf, &end);
	ev = cf_app_event(cf, DDPS_EV_FAILED);
	t = ev.error.triple;
	CF_CHECK(cf, ev.error.has_triple && (t.layer << 12 | t.etype << 8 | t.code) == code,
		 "the application gets %u/%u/%02x: %s", t.layer, t.etype, t.code, ev.error.text);
}

void cf_neg_two_reads(struct cf *cf)
{
	uint32_t sink[3];
	struct cf_mr mr = cf_app_mr(cf, 64, DDPS_LOCAL_WRITE);

	cf_ping(cf);
	for (unsigned i = 0; i < 3; i++)
		cf_app_post(cf, DDPS_OP_READ, 0, &mr, 8, 0x11, i);
	for (unsigned i = 0; i < 2; i++) {
		cf_recv(cf);
		CF_CHECK(cf, cf_in_op(cf) == CF_READ_REQ, "expected a Read Request: %s",
			 cf_hex(cf->in.b, cf->in.len));
		sink[i] = cf_get32(cf->in.b + 18);
	}
	cf_ping(cf); /* its answer comes before a third */
	cf_tagged(cf, CF_TAGGED_L, CF_READ_RESP, sink[0], mr.to, "ABCDEFGH", 8);
	cf_send(cf);
	cf_recv(cf);
	CF_CHECK(cf, cf_in_op(cf) == CF_READ_REQ && cf_in_msn(cf) == 3, "expected Read Request 3");
}
