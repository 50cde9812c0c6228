/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions of RFC 5043 chunk by chunk, several on one association. */
#include "conform/cases/cases_sctp.h"
#include "conform/peer/inside.h"
#include <string.h>

struct ddps_event cf_hear(struct cf *cf, enum ddps_event_type type)
{
	struct ddps_event ev;

	do
		CF_CHECK(cf, cf_app_next(cf, &ev), "application: no event '%s'",
			 ddps_event_name(type));
	while (ev.type != type);
	return ev;
}

void cf_chunk(struct cf *cf, uint16_t stream, uint16_t ssn, uint16_t code, const void *pd,
	      size_t len)
{
	struct cf_ctrl c = { .stream = stream, .ssn = ssn, .code = code, .pd_len = (uint16_t)len };

	if (len)
		memcpy(c.pd, pd, len);
	cf_ctrl_write(cf, &c);
}

void cf_initiate(struct cf *cf, uint16_t stream)
{
	static const uint8_t word[] = { 0, 16, 0, 16 };

	cf_chunk(cf, stream, 0, CF_ENH_INITIATE, word, sizeof word);
}

void cf_at_stream(struct cf *cf, uint16_t stream)
{
	cf->conn->stream = stream;
}

void cf_send_as(struct cf *cf, uint16_t ssn)
{
	cf->conn->tx_ssn = ssn;
	cf_send(cf);
}

void cf_expect_ctrl(struct cf *cf, uint16_t stream, uint16_t ssn, uint16_t code)
{
	cf_ctrl_read(cf, &cf->ctrl);
	CF_CHECK(cf, cf->ctrl.code == code && cf->ctrl.stream == stream && cf->ctrl.ssn == ssn,
		 "function code %u on stream %u, DDP-SSN %u, wanted code %u on stream %u, %u",
		 cf->ctrl.code, cf->ctrl.stream, cf->ctrl.ssn, code, stream, ssn);
	CF_CHECK(cf, code != CF_TERMINATE || !cf->ctrl.pd_len,
		 "a session Terminate with private data");
}

void cf_expect_session_end(struct cf *cf)
{
	const struct cf_msg *m;

	do
		m = cf_sctp_in_order(cf);
	while (!cf->self && m->ppid == PPID_SEGMENT);
	CF_CHECK(cf, m->ppid == PPID_CONTROL && m->len == 4 && cf_get16(m->b + 2) == CF_TERMINATE,
		 "expected the session's Terminate, got PPID %u: %s", m->ppid,
		 cf_hex(m->b, m->len));
}

/* The application takes the request with an endpoint of its own. */
static void app_accepts(struct cf *cf)
{
	struct ddps_event ev;

	if (!cf->self)
		return;
	cf->app.ep = NULL;
	ev = cf_hear(cf, DDPS_EV_CONNECT_REQUEST);
	cf_app_recv(cf, 0, 0); /* makes the endpoint */
	CF_CHECK(cf, !ddps_accept(ev.request, cf->app.ep, &cf->app.param), "accepting");
	cf_hear(cf, DDPS_EV_ESTABLISHED);
}

static void begin_sctp_session(struct cf *cf, uint16_t stream)
{
	struct cf_conn *c = cf->conn;

	c->session = true;
	c->stream = stream;
	c->tx_ssn = c->rx_ssn = 1;
	for (unsigned i = 0; i < CF_NQN; i++)
		c->msn[i] = 1;
}

void cf_settle(struct cf *cf, uint16_t stream, uint16_t maybe)
{
	unsigned ends = 0;

	cf_initiate(cf, stream);
	app_accepts(cf);
	for (;;) {
		cf_ctrl_read(cf, &cf->ctrl);
		if (cf->ctrl.stream == stream)
			break;
		CF_CHECK(cf, cf->ctrl.stream == maybe && cf->ctrl.code == CF_TERMINATE && !ends++,
			 "function code %u on stream %u", cf->ctrl.code, cf->ctrl.stream);
	}
	CF_CHECK(cf, cf->ctrl.code == CF_ENH_ACCEPT && !cf->ctrl.ssn,
		 "expected an Accept, got function code %u", cf->ctrl.code);
	begin_sctp_session(cf, stream);
}

void cf_session_on(struct cf *cf, uint16_t stream)
{
	cf_settle(cf, stream, UINT16_MAX);
}
