/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bulk RDMA Writes and Reads, checked: one region, every part of it, in random order.
 *
 *	rdma_peer -s URI [-b OCTETS] [-n CLIENTS] [-r] [-N]	-r: reject them
 *	rdma_peer -c URI [-i IRD] [-o ORD] [-N]	-N: suggest to do without CRCs
 *		[-a]				-a: abort in the middle of a Write of the region
 *
 * The client's private data is HELLO.  The server's answer carries an advert of its region, 16
 * octets, big endian: u64 tagged offset, u32 STag, u32 size.  The client writes the region in
 * chunks, reads every chunk back and compares, then sends one octet; the server sends one
 * back, and the client closes.  Each side prints a digest (FNV-1a, 64 bits) of what it holds.
 * Exit status 0: all was right; 3: rejected.
 */
#include "advert.h"
#include <ddpsess/ddpsess.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK	  65521u /* a prime: chunks are aligned to nothing */
#define HELLO	  "hello from the initiator"
#define REJECTION "not today"
#define STEP_MS	  20000	 /* one work request */
#define CLIENT_MS 300000 /* all of a client's, which the server does not see */
#define TURN_MS	  120000 /* until the server, who serves one at a time, says yes */
#define NUDGE_MS  100
#define SETTLE_MS 20000 /* the last messages */

struct peer {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_ep *ep;
	struct ddps_conn_param param;
	struct ddps_mr *mr, *small_mr;
	uint8_t *region, small[2];
	uint32_t octets;
	bool abort;
	struct ddps_event *waiting; /* requests of clients that are not served yet, oldest first */
	size_t nwaiting;
};

struct options {
	const char *server, *client;
	unsigned long clients;
	bool reject;
};

static int fail_rdma_peer(const char *what, int err)
{
	fprintf(stderr, "rdma_peer: %s: %s\n", what, ddps_strerror(err));
	return 1;
}

static uint64_t digest_octets(const uint8_t *p, size_t len)
{
	uint64_t h = 0xcbf29ce484222325;

	while (len--)
		h = (h ^ *p++) * 0x100000001b3;
	return h;
}

static uint32_t draw_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

/* ---- one step ---- */

static int done_within(struct peer *p, enum ddps_op op, int ms)
{
	struct ddps_event ev;
	struct ddps_wc wc;
	int got = ddps_cq_wait(p->cq, &wc, 1, ms);

	if (got == 1 && wc.status == DDPS_WC_SUCCESS && wc.op == op)
		return 0;
	if (got == 1)
		fprintf(stderr, "rdma_peer: %s: %s\n", ddps_op_name(wc.op),
			ddps_wc_status_name(wc.status));
	while (ddps_event_get(p->ctx, &ev) == 1)
		if (ev.error.code)
			fprintf(stderr, "rdma_peer: %s\n", ev.error.text);
	if (got == 1)
		return 1;
	return fail_rdma_peer(ddps_op_name(op), got);
}

static int await_operation(struct peer *p, enum ddps_op op)
{
	return done_within(p, op, STEP_MS);
}

static int post_rdma_wr(struct peer *p, enum ddps_op op, void *buf, uint32_t len,
			struct ddps_mr *mr, uint32_t stag, uint64_t to)
{
	struct ddps_sge sge = { buf, len, ddps_mr_stag(mr) };
	struct ddps_send_wr wr = { .op = op, .sge = &sge, .nsge = 1, .stag = stag, .to = to };
	int e = ddps_post_send(p->ep, &wr);

	return e ? fail_rdma_peer(ddps_op_name(op), e) : await_operation(p, op);
}

static int post_small_recv(struct peer *p)
{
	struct ddps_sge sge = { p->small, 1, ddps_mr_stag(p->small_mr) };
	int e = ddps_post_recv(p->ep, 0, &sge, 1);

	return e ? fail_rdma_peer("receive", e) : 0;
}

static void waiting_remove(struct peer *p, size_t i)
{
	p->nwaiting--;
	memmove(p->waiting + i, p->waiting + i + 1, (p->nwaiting - i) * sizeof *p->waiting);
}

static void waiting_add(struct peer *p, const struct ddps_event *request)
{
	struct ddps_event *more = realloc(p->waiting, (p->nwaiting + 1) * sizeof *more);

	if (!more) {
		ddps_reject(request->request, NULL, 0);
		return;
	}
	p->waiting = more;
	p->waiting[p->nwaiting++] = *request;
}

/* Clients call, and leave again, while another one is served.  Return: whether @ev was about that. */
static bool take_client(struct peer *p, const struct ddps_event *ev)
{
	if (ev->type == DDPS_EV_CONNECT_REQUEST)
		waiting_add(p, ev);
	else if (ev->type != DDPS_EV_REQUEST_GONE)
		return false;
	for (size_t i = p->nwaiting; ev->type == DDPS_EV_REQUEST_GONE && i-- > 0;)
		if (p->waiting[i].request == ev->request)
			waiting_remove(p, i);
	return true;
}

static int take_next_event(struct peer *p, struct ddps_event *ev)
{
	int e;

	do {
		e = ddps_event_wait(p->ctx, ev, -1);
	} while (e == DDPS_E_AGAIN);
	return e ? fail_rdma_peer("event", e) : 0;
}

static int report_failed_event(const struct ddps_event *ev)
{
	fprintf(stderr, "rdma_peer: %s: %s\n", ddps_event_name(ev->type), ev->error.text);
	return 1;
}

/* Wait for @type; whatever ends the attempt is an error. */
static int await_rdma_event(struct peer *p, enum ddps_event_type type, struct ddps_event *ev)
{
	do {
		if (take_next_event(p, ev))
			return 1;
	} while (take_client(p, ev) || (ev->type != type && !ev->error.code));
	if (ev->type == DDPS_EV_REJECTED) {
		printf("rejected: %.*s\n", (int)ev->private_data_len,
		       (const char *)ev->private_data);
		return 3;
	}
	return ev->type == type && !ev->error.code ? 0 : report_failed_event(ev);
}

static int await_client(struct peer *p, struct ddps_event *request)
{
	struct ddps_event ev;

	while (!p->nwaiting) {
		if (take_next_event(p, &ev))
			return 1;
		if (!take_client(p, &ev) && ev.error.code)
			return report_failed_event(&ev);
	}
	*request = p->waiting[0];
	waiting_remove(p, 0);
	return 0;
}

static int new_session(struct peer *p)
{
	struct ddps_ep_attr attr;
	int e;

	ddps_ep_attr_init(&attr);
	attr.pd = p->pd;
	attr.send_cq = attr.recv_cq = p->cq;
	e = ddps_ep_new(p->ctx, &attr, &p->ep);
	return e ? fail_rdma_peer("endpoint", e) : post_small_recv(p);
}

static int make_region(struct peer *p, unsigned access)
{
	int e;

	p->region = calloc(1, p->octets);
	if (!p->region)
		return fail_rdma_peer("region", DDPS_E_NOMEM);
	e = ddps_mr_reg(p->pd, p->region, p->octets, access, NULL, &p->mr);
	return e ? fail_rdma_peer("region", e) : 0;
}

/* ---- server ---- */

static int serve_client(struct peer *p, const struct ddps_event *request, bool reject)
{
	uint8_t advert[ADVERT_LEN];
	struct ddps_event ev;
	int e;

	if (request->private_data_len < sizeof HELLO ||
	    memcmp(request->private_data, HELLO, sizeof HELLO))
		return fail_rdma_peer("private data", DDPS_E_PROTOCOL);
	if (reject) {
		e = ddps_reject(request->request, REJECTION, sizeof REJECTION);
		return e ? fail_rdma_peer("reject", e) : 0;
	}
	advert_encode(advert,
		      &(struct advert){ ddps_mr_to(p->mr), ddps_mr_stag(p->mr), p->octets });
	p->param.private_data = advert;
	p->param.private_data_len = sizeof advert;
	if (new_session(p))
		return 1;
	e = ddps_accept(request->request, p->ep, &p->param);
	if (e)
		return fail_rdma_peer("accept", e);
	if (await_rdma_event(p, DDPS_EV_ESTABLISHED, &ev) ||
	    done_within(p, DDPS_OP_RECV, CLIENT_MS) ||
	    post_rdma_wr(p, DDPS_OP_SEND, p->small + 1, 1, p->small_mr, 0, 0))
		return 1;
	printf("digest %016llx\n", (unsigned long long)digest_octets(p->region, p->octets));
	/* The client ends it: some lose a message that a close follows immediately. */
	e = await_rdma_event(p, DDPS_EV_PEER_CLOSED, &ev);
	if (!e) {
		ddps_disconnect(p->ep);
		e = await_rdma_event(p, DDPS_EV_CLOSED, &ev);
	}
	ddps_ep_free(p->ep);
	return e;
}

static int serve_region(struct peer *p, const struct options *o)
{
	struct ddps_listener *l;
	struct ddps_event ev;
	char bound[256];
	int e = ddps_listen(p->ctx, o->server, NULL, &l);

	if (e || (e = ddps_listener_uri(l, bound, sizeof bound)) < 0)
		return fail_rdma_peer(o->server, e);
	if (make_region(p, DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE | DDPS_REMOTE_READ))
		return 1;
	printf("listening on %s\n", bound);
	fflush(stdout);
	for (unsigned long n = 0; n < o->clients; n++)
		if (await_client(p, &ev) || serve_client(p, &ev, o->reject))
			return 1;
	return 0;
}

/* ---- client ---- */

/* Every chunk once, in random order: Writes, or Reads that are compared. */
static int move_chunks(struct peer *p, const struct advert *at, uint8_t *sink,
		       struct ddps_mr *sink_mr)
{
	uint32_t n = (p->octets + CHUNK - 1) / CHUNK, len, j;
	uint32_t *order = n ? calloc(n, sizeof *order) : NULL;
	uint64_t random = sink ? 2 : 1, off;
	int bad = order ? 0 : fail_rdma_peer("order", DDPS_E_NOMEM);

	for (uint32_t i = 0; i < n && !bad; i++) {
		j = draw_random(&random) % (i + 1);
		order[i] = order[j];
		order[j] = i;
	}
	for (uint32_t i = 0; i < n && !bad; i++) {
		off = (uint64_t)order[i] * CHUNK;
		len = p->octets - off < CHUNK ? (uint32_t)(p->octets - off) : CHUNK;
		if (sink)
			bad = post_rdma_wr(p, DDPS_OP_READ, sink, len, sink_mr, at->stag,
					   at->to + off);
		else
			bad = post_rdma_wr(p, DDPS_OP_WRITE, p->region + off, len, p->mr, at->stag,
					   at->to + off);
		if (!bad && sink && memcmp(sink, p->region + off, len))
			bad = fail_rdma_peer("octets read", DDPS_E_PROTOCOL);
	}
	free(order);
	return bad;
}

static int abort_write(struct peer *p, const struct advert *at)
{
	struct ddps_sge sge = { p->region, p->octets, ddps_mr_stag(p->mr) };
	struct ddps_send_wr wr = {
		.op = DDPS_OP_WRITE, .sge = &sge, .nsge = 1, .stag = at->stag, .to = at->to
	};
	int e = ddps_post_send(p->ep, &wr);

	if (!e && (e = ddps_progress(p->ctx, 1000)) >= 0)
		e = ddps_abort(p->ep);
	if (e)
		return fail_rdma_peer("abort", e);
	ddps_ep_free(p->ep); /* its work was given up: ddps_ctx_settle need not report it */
	return 0;
}

static int talk_to_peer(struct peer *p, const struct ddps_event *ev)
{
	static uint8_t sink[CHUNK];
	struct ddps_event end;
	struct ddps_mr *sink_mr;
	struct advert at;
	uint64_t random = 3;
	int e;

	if (ev->private_data_len < ADVERT_LEN)
		return fail_rdma_peer("server's advert", DDPS_E_PROTOCOL);
	at = advert_decode(ev->private_data);
	p->octets = at.size;
	if (!p->octets || p->octets > UINT32_MAX - CHUNK)
		return fail_rdma_peer("size of the server's region", DDPS_E_PROTOCOL);
	if (make_region(p, 0))
		return 1;
	e = ddps_mr_reg(p->pd, sink, sizeof sink, DDPS_LOCAL_WRITE, p->ep, &sink_mr);
	if (e)
		return fail_rdma_peer("sink", e);
	for (uint32_t i = 0; i < p->octets; i++)
		p->region[i] = (uint8_t)draw_random(&random);
	if (p->abort)
		return abort_write(p, &at);
	if (move_chunks(p, &at, NULL, NULL) || move_chunks(p, &at, sink, sink_mr) ||
	    post_rdma_wr(p, DDPS_OP_SEND, p->small + 1, 1, p->small_mr, 0, 0) ||
	    await_operation(p, DDPS_OP_RECV))
		return 1;
	printf("digest %016llx\n", (unsigned long long)digest_octets(p->region, p->octets));
	ddps_disconnect(p->ep);
	return await_rdma_event(p, DDPS_EV_CLOSED, &end);
}

static int call_rdma_peer(struct peer *p, const struct options *o)
{
	struct ddps_event ev;
	int e;

	p->param.private_data = HELLO;
	p->param.private_data_len = sizeof HELLO;
	p->param.nudge_ms = NUDGE_MS;
	p->param.setup_ms = TURN_MS;
	if (new_session(p))
		return 1;
	e = ddps_connect(p->ep, o->client, &p->param);
	if (e)
		return fail_rdma_peer(o->client, e);
	e = await_rdma_event(p, DDPS_EV_ESTABLISHED, &ev);
	return e ? e : talk_to_peer(p, &ev);
}

static int make_rdma_peer(struct peer *p)
{
	int e;

	if ((e = ddps_ctx_new(&p->ctx, NULL)) || (e = ddps_pd_new(p->ctx, &p->pd)) ||
	    (e = ddps_cq_new(p->ctx, 64, &p->cq)) ||
	    (e = ddps_mr_reg(p->pd, p->small, sizeof p->small, DDPS_LOCAL_WRITE, NULL,
			     &p->small_mr)))
		return fail_rdma_peer("context", e);
	return 0;
}

static int parse_rdma_peer(int argc, char **argv, struct peer *p, struct options *o)
{
	int c;

	while ((c = getopt(argc, argv, "s:c:b:n:i:o:rNa")) != -1) {
		unsigned long v = optarg ? strtoul(optarg, NULL, 0) : 0;

		if (c == 's')
			o->server = optarg;
		else if (c == 'c')
			o->client = optarg;
		else if (c == 'r')
			o->reject = true;
		else if (c == 'N')
			p->param.crc = false;
		else if (c == 'a')
			p->abort = true;
		else if (c == 'b' && v > 0 && v <= UINT32_MAX)
			p->octets = (uint32_t)v;
		else if (c == 'n')
			o->clients = v;
		else if (c == 'i' && v <= DDPS_RD_ULP)
			p->param.ird = (uint16_t)v;
		else if (c == 'o' && v <= DDPS_RD_ULP)
			p->param.ord = (uint16_t)v;
		else
			return -1;
	}
	return !o->server == !o->client || optind != argc ? -1 : 0;
}

/* The last messages arrive before the process ends. */
static int settle_rdma_peer(struct peer *p)
{
	int e = ddps_ctx_settle(p->ctx, SETTLE_MS);

	return e ? fail_rdma_peer("the last messages", e) : 0;
}

int main(int argc, char **argv)
{
	struct peer p = { .octets = 1 << 20 };
	struct options o = { .clients = 1 };
	int status;

	ddps_conn_param_init(&p.param);
	if (parse_rdma_peer(argc, argv, &p, &o)) {
		fprintf(stderr, "usage: rdma_peer -s URI [-b OCTETS] [-n CLIENTS] [-r] [-N]\n"
				"       rdma_peer -c URI [-i IRD] [-o ORD] [-N] [-a]\n");
		return 2;
	}
	status = make_rdma_peer(&p);
	if (!status)
		status = o.server ? serve_region(&p, &o) : call_rdma_peer(&p, &o);
	if (!status)
		status = settle_rdma_peer(&p);
	ddps_ctx_free(p.ctx);
	free(p.waiting);
	free(p.region);
	return status;
}
