/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/e2e.h"
#include "peer/usrsctp.h"
#include "sctp_ddp/sd_assoc.h"
#include "session/session.h"
#include <ddpsess/secure.h>
#include <dirent.h>
#include <string.h>

const char *const e2e_wires[E2E_NWIRES] = {
	"tcp://127.0.0.1:0",
	"tcp://[::1]:0",
	"sctp://127.0.0.1:0?backend=native&encap=0",
	"sctp://[::1]:0?backend=native&encap=0",
	"sctp://127.0.0.2:0?backend=native&encap=0",
	"sctp://127.0.0.3:0?backend=native&encap=0",
	"tls://127.0.0.1:0",
	"sctps://127.0.0.1:0",
	"shm://@",
	"tcp://127.0.0.6:0",
};

/* On two of them a stranger connects to us, and we to a stranger. */
static void call_stranger(struct e2e *e, const char *uri)
{
	bool connects = strstr(uri, "://127.0.0.2:"), listens = strstr(uri, "://127.0.0.3:");

	cr_assert_eq(ddps_sd_use_backend(&e->ctx->env, &peer_usrsctp, connects, listens), 0);
}

void e2e_open(struct e2e *e, const char *uri)
{
	e2e_open_with(e, uri, NULL);
}

void e2e_open_with(struct e2e *e, const char *uri, const struct ddps_ctx_attr *attr)
{
	const bool secured = strstr(uri, "s://") || !strncmp(uri, "tls:", 4);
	struct ddps_secure *keys = secured && !(attr && attr->secure) ? e2e_secure() : NULL;
	struct ddps_ctx_attr with;

	memset(e, 0, sizeof *e);
	ddps_ctx_attr_init(&with);
	if (attr)
		with = *attr;
	if (keys)
		with.secure = keys;
	cr_assert_eq(ddps_ctx_new(&e->ctx, &with), 0);
	ddps_secure_close(keys);
	cr_assert_eq(ddps_pd_new(e->ctx, &e->pd), 0);
	cr_assert_eq(ddps_cq_new(e->ctx, 16384, &e->cq), 0);
	call_stranger(e, uri);
	cr_assert_eq(ddps_listen(e->ctx, uri, NULL, &e->listener), 0, "%s", uri);
	cr_assert_gt(ddps_listener_uri(e->listener, e->uri, sizeof e->uri), 0);
	ddps_ep_attr_init(&e->attr);
	e->attr.pd = e->pd;
	e->attr.send_cq = e->attr.recv_cq = e->cq;
	ddps_conn_param_init(&e->connect);
	ddps_conn_param_init(&e->accept);
	/* Here TCP makes way for shared memory. */
	e->connect.shm = e->accept.shm = strstr(uri, "://127.0.0.6:") != NULL;
	e->accept_result = 1;
}

void e2e_close(struct e2e *e)
{
	ddps_ep_free(e->a.ep);
	ddps_ep_free(e->b.ep);
	ddps_listener_free(e->listener);
	cr_expect_eq(ddps_cq_free(e->cq), 0);
	ddps_ctx_free(e->ctx);
}

static void answer_e2e_request(struct e2e *e)
{
	if (e->keep_request)
		return;
	if (e->reject) {
		cr_expect_eq(ddps_reject(e->request.request, e->reject_pd, e->reject_pd_len), 0);
		e->accept_result = 0;
		return;
	}
	if (!e->b.ep)
		cr_assert_eq(ddps_ep_new(e->ctx, &e->attr, &e->b.ep), 0);
	if (e->before_accept)
		e->before_accept(e, e->b.ep);
	e->accept_result = ddps_accept(e->request.request, e->b.ep, &e->accept);
}

static void serve_e2e(struct e2e *e)
{
	struct ddps_event ev;
	struct e2e_end *end;

	cr_assert_eq(ddps_event_wait(e->ctx, &ev, E2E_MS), 0, "no event for %d ms", E2E_MS);
	if (ev.type == DDPS_EV_CONNECT_REQUEST) {
		e->request = ev;
		answer_e2e_request(e);
		return;
	}
	if (ev.type == DDPS_EV_REQUEST_GONE) {
		e->request = ev;
		e->b.seen |= E2E_SEEN(ev.type);
		return;
	}
	end = ev.ep == e->a.ep ? &e->a : &e->b;
	end->seen |= E2E_SEEN(ev.type);
	if (ev.type == DDPS_EV_ESTABLISHED || ev.type == DDPS_EV_REJECTED)
		end->established = ev;
	if (ev.type != DDPS_EV_ESTABLISHED && ev.type != DDPS_EV_PEER_CLOSED)
		end->error = ev.error;
}

void e2e_wait(struct e2e *e, struct e2e_end *end, unsigned mask)
{
	while ((end->seen & mask) != mask)
		serve_e2e(e);
}

#define OUTCOME                                                                                    \
	(E2E_SEEN(DDPS_EV_ESTABLISHED) | E2E_SEEN(DDPS_EV_REJECTED) | E2E_SEEN(DDPS_EV_FAILED))

void e2e_connect(struct e2e *e)
{
	if (!e->a.ep)
		cr_assert_eq(ddps_ep_new(e->ctx, &e->attr, &e->a.ep), 0);
	cr_assert_eq(ddps_connect(e->a.ep, e->uri, &e->connect), 0, "%s", e->uri);
	while (!(e->a.seen & OUTCOME) || (e->b.ep && !(e->b.seen & OUTCOME) && !e->accept_result))
		serve_e2e(e);
}

void e2e_up(struct e2e *e, const char *uri)
{
	e2e_open(e, uri);
	e2e_connect(e);
	cr_assert(e->a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s: %s", uri, e->a.error.text);
	cr_assert(e->b.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s: %s", uri, e->b.error.text);
}

struct ddps_wc e2e_wc(struct e2e *e)
{
	struct ddps_wc wc = { 0 };

	cr_assert_eq(ddps_cq_wait(e->cq, &wc, 1, E2E_MS), 1, "no completion for %d ms", E2E_MS);
	return wc;
}

void e2e_expect_wc(struct e2e *e, const struct e2e_end *end, enum ddps_op op,
		   enum ddps_wc_status status, uint32_t len)
{
	struct ddps_wc wc = e2e_wc(e);

	cr_expect_eq(wc.ep, end->ep);
	cr_expect_eq(wc.op, op, "%s", ddps_op_name(wc.op));
	cr_expect_eq(wc.status, status, "%s", ddps_wc_status_name(wc.status));
	if (op == DDPS_OP_RECV || op == DDPS_OP_READ)
		cr_expect_eq(wc.len, len);
}

struct ddps_mr *e2e_reg(struct e2e *e, void *buf, size_t len, unsigned access)
{
	struct ddps_mr *mr = NULL;

	cr_assert_eq(ddps_mr_reg(e->pd, buf, len, access, NULL, &mr), 0);
	return mr;
}

struct ddps_sge e2e_sge(void *buf, size_t len, struct ddps_mr *mr)
{
	return (struct ddps_sge){ buf, (uint32_t)len, mr ? ddps_mr_stag(mr) : 0 };
}

int e2e_post(struct e2e_end *end, enum ddps_op op, void *buf, size_t len, struct ddps_mr *mr,
	     uint32_t stag, uint64_t to)
{
	struct ddps_sge sge = e2e_sge(buf, len, mr);
	struct ddps_send_wr wr = {
		.op = op, .sge = &sge, .nsge = len ? 1 : 0, .stag = stag, .to = to
	};

	return ddps_post_send(end->ep, &wr);
}

void e2e_disconnect(struct e2e *e, struct e2e_end *end)
{
	struct e2e_end *other = end == &e->a ? &e->b : &e->a;

	cr_expect_eq(ddps_disconnect(end->ep), 0);
	e2e_wait(e, other, E2E_SEEN(DDPS_EV_PEER_CLOSED));
	cr_expect_eq(ddps_disconnect(other->ep), 0);
	e2e_wait(e, end, E2E_SEEN(DDPS_EV_CLOSED));
	e2e_wait(e, other, E2E_SEEN(DDPS_EV_CLOSED));
	cr_expect_eq(end->error.code, 0, "%s", end->error.text);
	cr_expect_eq(other->error.code, 0, "%s", other->error.text);
}

unsigned e2e_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	cr_assert(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

void e2e_fill(uint8_t *buf, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++) {
		seed = seed * 1664525u + 1013904223u;
		buf[i] = (uint8_t)(seed >> 24);
	}
}
