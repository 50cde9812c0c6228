/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many sessions at a time in one thread; over SCTP those to one address share an association.
 *
 *	many_peer -s URI [-n SESSIONS] [-b OCTETS]	serve so many, each with a region of its own
 *	many_peer -c URI [-n SESSIONS] [-a]		so many at a time; -a: an association each
 *
 * The protocol is that of rdma_peer, which can be at the other end: the client finds an advert of
 * its region in the server's private data, writes the region, reads it back and compares, and
 * sends one octet; the server sends one back.  Clients begin when all sessions are established.
 * Exit status 0: all was right.
 */
#include "advert.h"
#include <ddpsess/ddpsess.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HELLO	  "hello from the initiator"
#define MOST	  65536u /* octets of a region */
#define QUIET_S	  60	 /* no event and no completion */
#define NUDGE_MS  100
#define SETUP_MS  50000 /* of all, under emulation */
#define SETTLE_MS 30000 /* the same */

struct session {
	struct ddps_ep *ep;
	struct ddps_mr *region_mr, *own_mr;
	struct advert at; /* the server's region */
	uint8_t region[MOST];
	struct {
		uint8_t in, out, sink[MOST];
	} own;
};

struct peer {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_conn_param param;
	struct session **session;
	unsigned long sessions, made, established, answered, closed, open, most;
	const char *server, *client;
	uint32_t octets;
	bool alone;
};

static int fail_many_peer(const char *what, int err)
{
	fprintf(stderr, "many_peer: %s: %s\n", what, ddps_strerror(err));
	return -1;
}

/* ---- either side ---- */

/* A session with its memory, and the receive for the one message it gets. */
static struct session *make_session(struct peer *p, uint32_t octets, unsigned access)
{
	struct session *s = calloc(1, sizeof *s);
	struct ddps_ep_attr attr;
	struct ddps_sge sge;
	int e = s ? 0 : DDPS_E_NOMEM;

	if (!e) {
		p->session[p->made++] = s;
		ddps_ep_attr_init(&attr);
		attr.pd = p->pd;
		attr.send_cq = attr.recv_cq = p->cq;
		attr.sq_depth = attr.rq_depth = 4;
		attr.user = s;
		if (p->alone) /* what waits for a receive must not hold others up */
			attr.no_recv = DDPS_NO_RECV_STALL;
		e = ddps_ep_new(p->ctx, &attr, &s->ep);
	}
	if (!e)
		e = ddps_mr_reg(p->pd, s->region, octets, access, s->ep, &s->region_mr);
	if (!e)
		e = ddps_mr_reg(p->pd, &s->own, sizeof s->own, DDPS_LOCAL_WRITE, s->ep, &s->own_mr);
	if (!e) {
		sge = (struct ddps_sge){ &s->own.in, 1, ddps_mr_stag(s->own_mr) };
		e = ddps_post_recv(s->ep, 0, &sge, 1);
	}
	if (!e)
		return s;
	fail_many_peer("session", e);
	return NULL;
}

static int post_session_wr(struct session *s, enum ddps_op op, void *buf, uint32_t len,
			   struct ddps_mr *mr)
{
	struct ddps_sge sge = { buf, len, ddps_mr_stag(mr) };
	struct ddps_send_wr wr = {
		.op = op, .sge = &sge, .nsge = 1, .stag = s->at.stag, .to = s->at.to
	};
	int e;

	if (op == DDPS_OP_SEND)
		wr.stag = 0;
	e = ddps_post_send(s->ep, &wr);
	return e ? fail_many_peer(ddps_op_name(op), e) : 0;
}

static int post_octet(struct session *s)
{
	s->own.out = 1;
	return post_session_wr(s, DDPS_OP_SEND, &s->own.out, 1, s->own_mr);
}

/* ---- server ---- */

static int take_session_request(struct peer *p, const struct ddps_event *ev)
{
	struct ddps_conn_param param = p->param;
	uint8_t advert[ADVERT_LEN];
	struct session *s;
	int e;

	if (p->made == p->sessions)
		return fail_many_peer("one session too many", DDPS_E_LIMIT);
	if (ev->private_data_len < sizeof HELLO || memcmp(ev->private_data, HELLO, sizeof HELLO))
		return fail_many_peer("private data", DDPS_E_PROTOCOL);
	s = make_session(p, p->octets, DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE | DDPS_REMOTE_READ);
	if (!s)
		return -1;
	s->at = (struct advert){ ddps_mr_to(s->region_mr), ddps_mr_stag(s->region_mr), p->octets };
	advert_encode(advert, &s->at);
	param.private_data = advert;
	param.private_data_len = sizeof advert;
	e = ddps_accept(ev->request, s->ep, &param);
	return e ? fail_many_peer("accept", e) : 0;
}

/* ---- client ---- */

static int take_advert(struct session *s, const struct ddps_event *ev)
{
	if (ev->private_data_len < ADVERT_LEN)
		return fail_many_peer("server's advert", DDPS_E_PROTOCOL);
	s->at = advert_decode(ev->private_data);
	if (!s->at.size || s->at.size > MOST)
		return fail_many_peer("size of the server's region", DDPS_E_PROTOCOL);
	return 0;
}

/* Every session's octets are other ones. */
static int begin_session(struct session *s, unsigned long number)
{
	for (uint32_t i = 0; i < s->at.size; i++)
		s->region[i] = (uint8_t)((number * 251 + i) * 2654435761u >> 24);
	return post_session_wr(s, DDPS_OP_WRITE, s->region, s->at.size, s->region_mr) ||
	       post_session_wr(s, DDPS_OP_READ, s->own.sink, s->at.size, s->own_mr) ||
	       post_octet(s);
}

static int compare_session(const struct session *s)
{
	return memcmp(s->own.sink, s->region, s->at.size)
		       ? fail_many_peer("octets read", DDPS_E_PROTOCOL)
		       : 0;
}

/* ---- what happens ---- */

static int note_established(struct peer *p, struct session *s, const struct ddps_event *ev)
{
	p->established++;
	p->open++;
	if (p->open > p->most)
		p->most = p->open;
	if (p->server)
		return 0;
	if (take_advert(s, ev))
		return -1;
	for (unsigned long i = 0; p->established == p->sessions && i < p->sessions; i++)
		if (begin_session(p->session[i], i))
			return -1;
	return 0;
}

static int take_session_event(struct peer *p, const struct ddps_event *ev)
{
	if (ev->error.code) {
		fprintf(stderr, "many_peer: %s: %s\n", ddps_event_name(ev->type), ev->error.text);
		return -1;
	}
	switch (ev->type) {
	case DDPS_EV_CONNECT_REQUEST:
		return take_session_request(p, ev);
	case DDPS_EV_ESTABLISHED:
		return note_established(p, ev->user, ev);
	case DDPS_EV_PEER_CLOSED:
		ddps_disconnect(ev->ep);
		return 0;
	case DDPS_EV_CLOSED:
		p->open--;
		p->closed++;
		return 0;
	default:
		return fail_many_peer(ddps_event_name(ev->type), DDPS_E_PROTOCOL);
	}
}

static int take_session_completion(struct peer *p, const struct ddps_wc *wc)
{
	if (wc->status != DDPS_WC_SUCCESS)
		return fail_many_peer(ddps_wc_status_name(wc->status), DDPS_E_TERMINATED);
	if (wc->op == DDPS_OP_READ)
		return compare_session(wc->user);
	if (wc->op != DDPS_OP_RECV)
		return 0;
	p->answered++;
	if (p->server)
		return post_octet(wc->user);
	for (unsigned long i = 0; p->answered == p->sessions && i < p->sessions; i++)
		ddps_disconnect(p->session[i]->ep);
	return 0;
}

static int run_sessions(struct peer *p)
{
	time_t heard = time(NULL);
	struct ddps_event ev;
	struct ddps_wc wc;
	int e;

	while (p->closed < p->sessions) {
		e = ddps_progress(p->ctx, 1000);
		if (e < 0)
			return fail_many_peer("progress", e);
		for (; ddps_event_get(p->ctx, &ev) == 1; heard = time(NULL))
			if (take_session_event(p, &ev))
				return -1;
		for (; ddps_cq_poll(p->cq, &wc, 1) == 1; heard = time(NULL))
			if (take_session_completion(p, &wc))
				return -1;
		if (time(NULL) - heard > QUIET_S)
			return fail_many_peer("waiting for the peer", DDPS_E_TIMEDOUT);
	}
	printf("%lu sessions, %lu at once\n", p->closed, p->most);
	return 0;
}

/* The last messages arrive before the process ends. */
static int settle_many_peer(struct peer *p)
{
	int e = ddps_ctx_settle(p->ctx, SETTLE_MS);

	return e ? fail_many_peer("the last messages", e) : 0;
}

/* ---- set-up ---- */

static int make_many_peer(struct peer *p)
{
	int e;

	p->session = calloc(p->sessions, sizeof(struct session *));
	if (!p->session)
		return fail_many_peer("sessions", DDPS_E_NOMEM);
	if ((e = ddps_ctx_new(&p->ctx, NULL)) || (e = ddps_pd_new(p->ctx, &p->pd)) ||
	    (e = ddps_cq_new(p->ctx, (uint32_t)p->sessions * 8, &p->cq)))
		return fail_many_peer("context", e);
	return 0;
}

static int listen_for_sessions(struct peer *p)
{
	struct ddps_listener *l;
	char bound[256];
	int e = ddps_listen(p->ctx, p->server, NULL, &l);

	if (e || (e = ddps_listener_uri(l, bound, sizeof bound)) < 0)
		return fail_many_peer(p->server, e);
	printf("listening on %s\n", bound);
	fflush(stdout);
	return 0;
}

static int call_many_peer(struct peer *p)
{
	struct session *s;
	int e;

	p->param.private_data = HELLO;
	p->param.private_data_len = sizeof HELLO;
	p->param.nudge_ms = NUDGE_MS;
	p->param.connect_ms = p->param.setup_ms = p->param.close_ms = SETUP_MS;
	while (p->made < p->sessions) {
		s = make_session(p, MOST, 0);
		if (!s)
			return -1;
		e = ddps_connect(s->ep, p->client, &p->param);
		if (e)
			return fail_many_peer(p->client, e);
		/* Servers give those that come up a few seconds to ask for a session. */
		e = ddps_progress(p->ctx, 0);
		if (e < 0)
			return fail_many_peer("progress", e);
	}
	return 0;
}

static int parse_many_peer(int argc, char **argv, struct peer *p)
{
	int c;

	while ((c = getopt(argc, argv, "s:c:n:b:a")) != -1) {
		unsigned long v = optarg ? strtoul(optarg, NULL, 0) : 0;

		if (c == 's')
			p->server = optarg;
		else if (c == 'c')
			p->client = optarg;
		else if (c == 'n' && v > 0 && v <= 4096)
			p->sessions = v;
		else if (c == 'b' && v > 0 && v <= MOST)
			p->octets = (uint32_t)v;
		else if (c == 'a')
			p->alone = true;
		else
			return -1;
	}
	return !p->server == !p->client || optind != argc ? -1 : 0;
}

int main(int argc, char **argv)
{
	struct peer p = { .sessions = 1, .octets = 4096 };
	int bad;

	ddps_conn_param_init(&p.param);
	if (parse_many_peer(argc, argv, &p)) {
		fprintf(stderr, "usage: many_peer -s URI [-n SESSIONS] [-b OCTETS]\n"
				"       many_peer -c URI [-n SESSIONS] [-a]\n");
		return 2;
	}
	bad = make_many_peer(&p) || (p.server ? listen_for_sessions(&p) : call_many_peer(&p)) ||
	      run_sessions(&p) || settle_many_peer(&p);
	ddps_ctx_free(p.ctx);
	for (unsigned long i = 0; i < p.made; i++)
		free(p.session[i]);
	free(p.session);
	return bad ? 1 : 0;
}
