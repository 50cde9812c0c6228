/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program of a release: compiled against its headers, run with later libraries.  It
 * opens sessions, moves data, reads counters, and looks whether the library wrote behind a
 * struct.  record.sh copies it for a release; the copy never changes.  usage: program URI...
 */
#include <ddpsess/ddpsess.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS    10000
#define GUARD 256

/* A struct and what lies behind it. */
#define GUARDED(type, name)                                                                        \
	struct {                                                                                   \
		struct type s;                                                                     \
		uint8_t guard[GUARD];                                                              \
	} name;                                                                                    \
	memset(&(name), 0xa5, sizeof(name))
#define INTACT(name) intact((name).guard, #name)

#define MUST(call) must((call) >= 0, #call)

static void must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "failed: %s\n", what);
	exit(1);
}

static void intact(const uint8_t *guard, const char *what)
{
	for (int i = 0; i < GUARD; i++)
		must(guard[i] == 0xa5, what);
}

struct world {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_srq *srq;
	struct ddps_listener *listener;
	struct ddps_ep *a, *b;
	struct ddps_mr *mr_a, *mr_b;
	uint64_t mem_a[8], mem_b[8];
};

static void open_world(struct world *w, const char *uri)
{
	GUARDED(ddps_ctx_attr, attr);
	GUARDED(ddps_listen_param, lp);
	char why[64];

	ddps_ctx_attr_init(&attr.s);
	must(attr.s.struct_size == sizeof attr.s && attr.s.max_regions == 65536, "ctx attr");
	attr.s.max_ird = 8;
	MUST(ddps_ctx_new(&w->ctx, &attr.s));
	INTACT(attr);
	MUST(ddps_pd_new(w->ctx, &w->pd));
	MUST(ddps_cq_new(w->ctx, 64, &w->cq));
	MUST(ddps_srq_new(w->pd, 4, 2, w, &w->srq));
	MUST(ddps_mr_reg(w->pd, w->mem_a, sizeof w->mem_a, DDPS_LOCAL_WRITE, NULL, &w->mr_a));
	MUST(ddps_mr_reg(w->pd, w->mem_b, sizeof w->mem_b,
			 DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE | DDPS_REMOTE_READ |
				 DDPS_REMOTE_ATOMIC | DDPS_ZERO_BASED,
			 NULL, &w->mr_b));
	must(ddps_mr_to(w->mr_b) == 0, "zero based");
	ddps_listen_param_init(&lp.s);
	must(lp.s.backlog == 1024 && lp.s.rtr == DDPS_RTR_ALL, "listen param");
	lp.s.user = w;
	MUST(ddps_uri_check(uri, why, sizeof why));
	MUST(ddps_listen(w->ctx, uri, &lp.s, &w->listener));
	INTACT(lp);
}

static void open_endpoints(struct world *w)
{
	GUARDED(ddps_ep_attr, attr);

	ddps_ep_attr_init(&attr.s);
	must(attr.s.sq_depth == 64 && attr.s.max_sge == 4 && !attr.s.srq, "ep attr");
	attr.s.pd = w->pd;
	attr.s.send_cq = attr.s.recv_cq = w->cq;
	attr.s.rfc7306 = true;
	attr.s.user = &w->a;
	MUST(ddps_ep_new(w->ctx, &attr.s, &w->a));
	attr.s.user = &w->b;
	attr.s.srq = w->srq;
	attr.s.srq_share = 4;
	MUST(ddps_ep_new(w->ctx, &attr.s, &w->b));
	INTACT(attr);
}

static struct ddps_event next_event(struct world *w, enum ddps_event_type type)
{
	GUARDED(ddps_event, ev);

	MUST(ddps_event_wait(w->ctx, &ev.s, MS));
	INTACT(ev);
	if (ev.s.type != type)
		fprintf(stderr, "%s: %s\n", ddps_event_name(ev.s.type), ev.s.error.text);
	must(ev.s.type == type, ddps_event_name(type));
	return ev.s;
}

static void connect_them(struct world *w)
{
	static const char to_b[] = "private data to b", to_a[] = "and back";
	GUARDED(ddps_conn_param, p);
	GUARDED(ddps_conn_info, info);
	struct ddps_event ev;
	char uri[128];
	int seen = 0;

	MUST(ddps_listener_uri(w->listener, uri, sizeof uri));
	ddps_conn_param_init(&p.s);
	must(p.s.ird == 16 && p.s.crc && p.s.close_ms == 5000 && !p.s.nudge_ms, "conn param");
	p.s.ord = 4;
	p.s.private_data = to_b;
	p.s.private_data_len = sizeof to_b;
	MUST(ddps_connect(w->a, uri, &p.s));
	ev = next_event(w, DDPS_EV_CONNECT_REQUEST);
	must(ev.user == w && ev.private_data_len == sizeof to_b &&
		     !memcmp(ev.private_data, to_b, sizeof to_b) && ev.info.enhanced,
	     "the request");
	p.s.private_data = to_a;
	p.s.private_data_len = sizeof to_a;
	MUST(ddps_accept(ev.request, w->b, &p.s));
	INTACT(p);
	while (seen != 3) {
		ev = next_event(w, DDPS_EV_ESTABLISHED);
		seen |= ev.user == &w->a ? 1 : ev.user == &w->b ? 2 : 4;
		must(ev.ep != w->a || (ev.private_data_len == sizeof to_a &&
				       !memcmp(ev.private_data, to_a, sizeof to_a)),
		     "the answer's private data");
	}
	MUST(ddps_ep_info(w->a, &info.s));
	INTACT(info);
	must(info.s.initiator && info.s.ord == 4 && info.s.peer_ird == 8 && info.s.mulpdu &&
		     info.s.transport != DDPS_TRANSPORT_NONE && info.s.peer[0],
	     "info");
}

static struct ddps_wc next_completion(struct world *w, const struct ddps_ep *ep, enum ddps_op op)
{
	GUARDED(ddps_wc, wc);

	must(ddps_cq_wait(w->cq, &wc.s, 1, MS) == 1, "a completion");
	INTACT(wc);
	must(wc.s.ep == ep && wc.s.op == op, ddps_op_name(op));
	must(wc.s.status == DDPS_WC_SUCCESS, ddps_wc_status_name(wc.s.status));
	return wc.s;
}

static void send_and_receive(struct world *w)
{
	struct ddps_sge from[2] = { { &w->mem_a[0], 8, ddps_mr_stag(w->mr_a) },
				    { &w->mem_a[1], 8, ddps_mr_stag(w->mr_a) } };
	struct ddps_sge to = { w->mem_b, 32, ddps_mr_stag(w->mr_b) };
	struct ddps_send_wr wr;
	struct ddps_wc wc[2];

	w->mem_a[0] = 11;
	w->mem_a[1] = 12;
	MUST(ddps_post_srq_recv(w->srq, 70, &to, 1));
	MUST(ddps_post_srq_recv(w->srq, 71, NULL, 0));
	memset(&wr, 0, sizeof wr);
	wr.op = DDPS_OP_SEND;
	wr.flags = DDPS_WR_SOLICITED | DDPS_WR_SILENT | DDPS_WR_MORE;
	wr.sge = from;
	wr.nsge = 2;
	MUST(ddps_post_send(w->a, &wr));
	memset(&wr, 0, sizeof wr);
	wr.op = DDPS_OP_IMM;
	wr.flags = DDPS_WR_SILENT;
	memcpy(wr.imm, "immediat", DDPS_IMM_OCTETS);
	MUST(ddps_post_send(w->a, &wr));
	wc[0] = next_completion(w, w->b, DDPS_OP_RECV);
	wc[1] = next_completion(w, w->b, DDPS_OP_RECV);
	must(wc[0].wr_id == 70 && wc[0].len == 16 && wc[0].solicited && !wc[0].invalidated &&
		     !wc[0].has_imm && wc[0].user == &w->b && w->mem_b[1] == 12,
	     "the receive");
	must(wc[1].wr_id == 71 && wc[1].has_imm && !memcmp(wc[1].imm, "immediat", 8),
	     "the immediate data");
}

static void one_sided(struct world *w)
{
	struct ddps_sge sge = { w->mem_a, 8, ddps_mr_stag(w->mr_a) };
	struct ddps_send_wr wr;
	struct ddps_wc wc;

	memset(&wr, 0, sizeof wr);
	wr.op = DDPS_OP_WRITE;
	wr.sge = &sge;
	wr.nsge = 1;
	wr.wr_id = 80;
	wr.stag = ddps_mr_stag(w->mr_b);
	wr.to = 24;
	w->mem_a[0] = 33;
	MUST(ddps_post_send(w->a, &wr));
	must(next_completion(w, w->a, DDPS_OP_WRITE).wr_id == 80, "wr_id");
	wr.op = DDPS_OP_READ;
	wr.flags = DDPS_WR_FENCE;
	sge.addr = &w->mem_a[2];
	MUST(ddps_post_send(w->a, &wr));
	must(next_completion(w, w->a, DDPS_OP_READ).len == 8 && w->mem_a[2] == 33, "the read");
	wr.op = DDPS_OP_FETCH_ADD;
	wr.to = (uintptr_t)&w->mem_b[3];
	wr.to -= (uintptr_t)w->mem_b; /* zero based */
	wr.atomic.data = 9;
	MUST(ddps_post_send(w->a, &wr));
	wc = next_completion(w, w->a, DDPS_OP_FETCH_ADD);
	must(wc.original == 33 && w->mem_b[3] == 42, "the atomic");
}

static void count(struct world *w)
{
	GUARDED(ddps_ep_stats, ep);
	GUARDED(ddps_ctx_stats, ctx);

	ep.s.struct_size = sizeof ep.s;
	MUST(ddps_ep_stats(w->a, &ep.s));
	INTACT(ep);
	must(ep.s.struct_size == sizeof ep.s && ep.s.sent[DDPS_STAT_WRITE].octets == 8 &&
		     ep.s.sent[DDPS_STAT_SEND_SE].messages == 1 && !ep.s.held_octets,
	     "an endpoint's counters");
	ctx.s.struct_size = sizeof ctx.s;
	MUST(ddps_ctx_stats(w->ctx, &ctx.s));
	INTACT(ctx);
	must(ctx.s.endpoints == 2 && ctx.s.regions == 2 && !ctx.s.srq_full &&
		     ctx.s.total.struct_size == sizeof ctx.s.total &&
		     ctx.s.total.received[DDPS_STAT_WRITE].octets == 8 && !ctx.s.total.held_octets,
	     "a context's counters");
}

static void end(struct world *w)
{
	int closed = 0;

	MUST(ddps_disconnect(w->a));
	while (closed < 2) {
		GUARDED(ddps_event, ev);
		MUST(ddps_event_wait(w->ctx, &ev.s, MS));
		INTACT(ev);
		if (ev.s.type == DDPS_EV_PEER_CLOSED)
			MUST(ddps_disconnect(ev.s.ep));
		if (ev.s.type == DDPS_EV_CLOSED) {
			must(ev.s.error.code == 0, ev.s.error.text);
			closed++;
		}
	}
	ddps_ep_free(w->a);
	ddps_ep_free(w->b);
	MUST(ddps_srq_free(w->srq));
	MUST(ddps_cq_free(w->cq));
	MUST(ddps_mr_dereg(w->mr_a));
	MUST(ddps_mr_dereg(w->mr_b));
	MUST(ddps_pd_free(w->pd));
	ddps_listener_free(w->listener);
	ddps_ctx_free(w->ctx);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		struct world w;

		memset(&w, 0, sizeof w);
		open_world(&w, argv[i]);
		open_endpoints(&w);
		connect_them(&w);
		send_and_receive(&w);
		one_sided(&w);
		count(&w);
		end(&w);
	}
	return argc < 2;
}
