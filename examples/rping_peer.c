/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer for rping, the RDMA ping of librdmacm: either side, over TCP or SCTP.
 *
 *	rping_peer -s URI [-t FILE] [-N] [-v]			serve one client
 *	rping_peer -c URI [-C COUNT] [-S SIZE] [-R TYPE] [-t FILE] [-N] [-v]
 *
 * -C COUNT  pings (1)		-R send|write|read  peer-to-peer, with that first message
 * -S SIZE   octets of each (100)	-N  suggest to do without MPA CRCs
 * -t FILE   what went over the wire, a line each, numbers in hex:
 *		send LEN		received LEN
 *		write STAG TO LEN	read SINK-STAG SINK-TO SOURCE-STAG SOURCE-TO LEN
 *		advertised STAG TO LEN	for the peer's Reads and Writes
 *
 * One ping, as seen on the wire:
 *
 *	client -> Send	 advert of its source buffer
 *	server -> Read	 of that buffer
 *	server -> Send	 go ahead (an advert whose content says nothing)
 *	client -> Send	 advert of its sink buffer
 *	server -> Write	 of what was read
 *	server -> Send	 done
 *
 * An advert is 16 octets, big endian: u64 tagged offset, u32 STag, u32 size.  Both sides know
 * what the payload of ping N has to be, and check it.  Exit status 0: all pings were right.
 */
#include "advert.h"
#include <ddpsess/ddpsess.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SIZE_LEAST 26	 /* rping's own limits: "rdma-ping-2147483647: " fits, */
#define SIZE_MOST  65535 /* a buffer of 64 KiB is the most */
#define STEP_MS	   20000 /* longest silence of a peer within a ping */
#define NUDGE_MS   100	 /* silence of a server that may have missed our first message */

struct peer {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_ep *ep;
	struct ddps_conn_param param;
	struct ddps_mr *in_mr, *out_mr, *source_mr, *sink_mr;
	bool over; /* the peer sends nothing more */
	bool closed, verbose;
	FILE *trace;
	unsigned done[DDPS_OP_RECV + 1]; /* completions not waited for yet */
	uint8_t in[ADVERT_LEN], out[ADVERT_LEN];
	char source[SIZE_MOST], sink[SIZE_MOST], wanted[SIZE_MOST];
};

static int fail_rping_peer(const char *what, int err)
{
	fprintf(stderr, "rping_peer: %s: %s\n", what, ddps_strerror(err));
	return -1;
}

static uint64_t read_rping_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- the payload ---- */

/* rping's payload: its number, then letters from one later every time, then NUL. */
static void fill_ping_payload(char *buf, size_t size, unsigned ping)
{
	size_t n = (size_t)snprintf(buf, size, "rdma-ping-%u: ", ping);

	for (unsigned c = ping; n < size; n++, c++)
		buf[n] = (char)('A' + c % ('z' - 'A' + 1));
	buf[size - 1] = 0;
}

static int check_ping_payload(const struct peer *p, const char *got, uint32_t size, unsigned ping)
{
	if (memcmp(got, p->wanted, size)) {
		fprintf(stderr, "rping_peer: ping %u: payload of %u octets is wrong\n", ping, size);
		return -1;
	}
	if (p->verbose)
		printf("ping %u: %u octets, %.40s\n", ping, size, got);
	return 0;
}

/* ---- waiting ---- */

static int take_rping_event(struct peer *p)
{
	struct ddps_event ev;

	if (ddps_event_get(p->ctx, &ev) <= 0 || ev.ep != p->ep)
		return 0;
	if (ev.type == DDPS_EV_PEER_CLOSED)
		p->over = true;
	if (ev.type == DDPS_EV_CLOSED)
		p->over = p->closed = true;
	if (ev.error.code) {
		fprintf(stderr, "rping_peer: %s: %s\n", ddps_event_name(ev.type), ev.error.text);
		return -1;
	}
	return 0;
}

static int take_rping_completion(struct peer *p, const struct ddps_wc *wc)
{
	if (wc->status == DDPS_WC_FLUSHED)
		return 0;
	if (wc->status != DDPS_WC_SUCCESS)
		return fail_rping_peer(ddps_wc_status_name(wc->status), DDPS_E_TERMINATED);
	if (wc->op == DDPS_OP_RECV && wc->len != ADVERT_LEN)
		return fail_rping_peer("message that is no advert", DDPS_E_PROTOCOL);
	if (wc->op == DDPS_OP_RECV && p->trace)
		fprintf(p->trace, "received %x\n", wc->len);
	p->done[wc->op]++;
	return 0;
}

/* Drive the context until @goal or @end is set, for at most @ms. */
static int drive_rping(struct peer *p, const unsigned *goal, const bool *end, unsigned ms)
{
	uint64_t due = read_rping_clock() + ms, now;
	struct ddps_wc wc;
	int e;

	for (;;) {
		while (!*goal && ddps_cq_poll(p->cq, &wc, 1) == 1)
			if (take_rping_completion(p, &wc))
				return -1;
		if (take_rping_event(p))
			return -1;
		now = read_rping_clock();
		if (*goal || *end || now >= due)
			return 0;
		e = ddps_progress(p->ctx, (int)(due - now));
		if (e < 0)
			return fail_rping_peer("progress", e);
	}
}

/* Return: 1, 0 if the peer ended first, -1. */
static int wait_done(struct peer *p, enum ddps_op op)
{
	if (drive_rping(p, &p->done[op], &p->over, STEP_MS))
		return -1;
	if (!p->done[op])
		return p->over ? 0 : fail_rping_peer("waiting for the peer", DDPS_E_TIMEDOUT);
	p->done[op]--;
	return 1;
}

/* The same, where the peer must not end. */
static int must_wait(struct peer *p, enum ddps_op op)
{
	int got = wait_done(p, op);

	return got ? got : fail_rping_peer("in the middle of a ping", DDPS_E_CLOSED);
}

static int close_session(struct peer *p)
{
	static const unsigned never;

	ddps_disconnect(p->ep);
	if (drive_rping(p, &never, &p->closed, STEP_MS))
		return -1;
	return p->closed ? 0 : fail_rping_peer("closing", DDPS_E_TIMEDOUT);
}

/* ---- work requests ---- */

static int post_advert_recv(struct peer *p)
{
	struct ddps_sge sge = { p->in, ADVERT_LEN, ddps_mr_stag(p->in_mr) };
	int e = ddps_post_recv(p->ep, 0, &sge, 1);

	return e ? fail_rping_peer("post receive", e) : 0;
}

static void trace_rping_wr(const struct peer *p, const struct ddps_send_wr *wr, struct ddps_mr *mr)
{
	uint32_t len = wr->sge->len;

	if (wr->op == DDPS_OP_SEND)
		fprintf(p->trace, "send %x\n", len);
	else if (wr->op == DDPS_OP_WRITE)
		fprintf(p->trace, "write %08x %016" PRIx64 " %x\n", wr->stag, wr->to, len);
	else
		fprintf(p->trace, "read %08x %016" PRIx64 " %08x %016" PRIx64 " %x\n",
			ddps_mr_stag(mr), ddps_mr_to(mr), wr->stag, wr->to, len);
}

static int post_rping_wr(struct peer *p, enum ddps_op op, void *buf, uint32_t len,
			 struct ddps_mr *mr, const struct advert *at)
{
	struct ddps_sge sge = { buf, len, mr ? ddps_mr_stag(mr) : 0 };
	struct ddps_send_wr wr = { .op = op, .sge = &sge, .nsge = len ? 1 : 0 };
	int e;

	if (at) {
		wr.stag = at->stag;
		wr.to = at->to;
	}
	if (p->trace)
		trace_rping_wr(p, &wr, mr);
	e = ddps_post_send(p->ep, &wr);
	return e ? fail_rping_peer(ddps_op_name(op), e) : 0;
}

/* The receive for the answer is posted before the Send that asks for it. */
static int send_advert(struct peer *p, struct ddps_mr *mr, uint32_t size)
{
	struct advert at = { .size = size };

	if (mr) {
		at.to = ddps_mr_to(mr);
		at.stag = ddps_mr_stag(mr);
	}
	advert_encode(p->out, &at);
	if (mr && p->trace)
		fprintf(p->trace, "advertised %08x %016" PRIx64 " %x\n", at.stag, at.to, size);
	return post_rping_wr(p, DDPS_OP_SEND, p->out, ADVERT_LEN, p->out_mr, NULL) ||
			       must_wait(p, DDPS_OP_SEND) < 0
		       ? -1
		       : 0;
}

/* ---- one ping, either side ---- */

static int client_ping(struct peer *p, unsigned ping, uint32_t size)
{
	fill_ping_payload(p->source, size, ping);
	memcpy(p->wanted, p->source, size);
	memset(p->sink, 0, size);
	if (send_advert(p, p->source_mr, size) || must_wait(p, DDPS_OP_RECV) < 0 ||
	    post_advert_recv(p))
		return -1;
	if (send_advert(p, p->sink_mr, size) || must_wait(p, DDPS_OP_RECV) < 0 ||
	    post_advert_recv(p))
		return -1;
	return check_ping_payload(p, p->sink, size, ping);
}

/* Return: 1, 0 if the client has had enough, -1. */
static int server_ping(struct peer *p, unsigned ping)
{
	struct advert from, to;
	int got = wait_done(p, DDPS_OP_RECV);

	if (got <= 0)
		return got;
	from = advert_decode(p->in);
	if (from.size < SIZE_LEAST || from.size > SIZE_MOST)
		return fail_rping_peer("size of the client's buffer", DDPS_E_PROTOCOL);
	if (post_advert_recv(p) ||
	    post_rping_wr(p, DDPS_OP_READ, p->sink, from.size, p->sink_mr, &from) ||
	    must_wait(p, DDPS_OP_READ) < 0)
		return -1;
	fill_ping_payload(p->wanted, from.size, ping);
	if (check_ping_payload(p, p->sink, from.size, ping) || send_advert(p, NULL, 0) ||
	    must_wait(p, DDPS_OP_RECV) < 0)
		return -1;
	to = advert_decode(p->in);
	if (to.size < from.size)
		return fail_rping_peer("client's second buffer is smaller", DDPS_E_PROTOCOL);
	if (post_advert_recv(p) ||
	    post_rping_wr(p, DDPS_OP_WRITE, p->sink, from.size, p->sink_mr, &to) ||
	    must_wait(p, DDPS_OP_WRITE) < 0 || send_advert(p, NULL, 0))
		return -1;
	return 1;
}

/* ---- set-up ---- */

static int make_rping_peer(struct peer *p)
{
	struct ddps_ep_attr attr;
	int e;

	if ((e = ddps_ctx_new(&p->ctx, NULL)) || (e = ddps_pd_new(p->ctx, &p->pd)) ||
	    (e = ddps_cq_new(p->ctx, 64, &p->cq)))
		return fail_rping_peer("context", e);
	ddps_ep_attr_init(&attr);
	attr.pd = p->pd;
	attr.send_cq = attr.recv_cq = p->cq;
	e = ddps_ep_new(p->ctx, &attr, &p->ep);
	if (e)
		return fail_rping_peer("endpoint", e);
	if ((e = ddps_mr_reg(p->pd, p->in, sizeof p->in, DDPS_LOCAL_WRITE, p->ep, &p->in_mr)) ||
	    (e = ddps_mr_reg(p->pd, p->out, sizeof p->out, 0, p->ep, &p->out_mr)) ||
	    (e = ddps_mr_reg(p->pd, p->source, sizeof p->source, DDPS_REMOTE_READ, p->ep,
			     &p->source_mr)) ||
	    (e = ddps_mr_reg(p->pd, p->sink, sizeof p->sink, DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE,
			     p->ep, &p->sink_mr)))
		return fail_rping_peer("memory region", e);
	return post_advert_recv(p);
}

/* Wait for @type; whatever ends the attempt is an error. */
static int await_rping_event(struct peer *p, enum ddps_event_type type, struct ddps_event *ev)
{
	int e;

	do {
		e = ddps_event_wait(p->ctx, ev, -1);
		if (e && e != DDPS_E_AGAIN)
			return fail_rping_peer("event", e);
	} while (e || ev->type == DDPS_EV_REQUEST_GONE);
	if (ev->type == type)
		return 0;
	fprintf(stderr, "rping_peer: %s: %s\n", ddps_event_name(ev->type), ev->error.text);
	return -1;
}

static int serve_rping(struct peer *p, const char *uri)
{
	struct ddps_listener *l;
	struct ddps_event ev;
	char bound[256];
	unsigned n = 0;
	int e = ddps_listen(p->ctx, uri, NULL, &l);

	if (e || (e = ddps_listener_uri(l, bound, sizeof bound)) < 0)
		return fail_rping_peer(uri, e);
	printf("listening on %s\n", bound);
	fflush(stdout);
	if (await_rping_event(p, DDPS_EV_CONNECT_REQUEST, &ev))
		return -1;
	e = ddps_accept(ev.request, p->ep, &p->param);
	if (e)
		return fail_rping_peer("accept", e);
	if (await_rping_event(p, DDPS_EV_ESTABLISHED, &ev))
		return -1;
	while ((e = server_ping(p, n)) == 1)
		n++;
	if (e)
		return -1;
	printf("%u pings served\n", n);
	return close_session(p) || n == 0 ? -1 : 0;
}

static int call_rping_peer(struct peer *p, const char *uri, unsigned count, uint32_t size)
{
	struct ddps_event ev;
	int e = ddps_connect(p->ep, uri, &p->param);

	if (e)
		return fail_rping_peer(uri, e);
	if (await_rping_event(p, DDPS_EV_ESTABLISHED, &ev))
		return -1;
	for (unsigned n = 0; n < count; n++)
		if (client_ping(p, n, size))
			return -1;
	printf("%u pings of %u octets\n", count, size);
	return close_session(p);
}

static int parse_rping_number(const char *text, unsigned long least, unsigned long most,
			      uint32_t *out)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || v < least || v > most) {
		fprintf(stderr, "rping_peer: '%s' is no number from %lu to %lu\n", text, least,
			most);
		return -1;
	}
	*out = (uint32_t)v;
	return 0;
}

static int rtr_type(struct ddps_conn_param *param, const char *name)
{
	static const struct {
		const char *name;
		unsigned bit;
	} type[] = { { "send", DDPS_RTR_SEND },
		     { "write", DDPS_RTR_WRITE },
		     { "read", DDPS_RTR_READ } };

	for (size_t i = 0; i < sizeof type / sizeof *type; i++)
		if (!strcmp(name, type[i].name)) {
			param->p2p = true;
			param->rtr = type[i].bit;
			return 0;
		}
	fprintf(stderr, "rping_peer: '%s' is not send, write or read\n", name);
	return -1;
}

struct options {
	const char *server, *client;
	uint32_t count, size;
};

/* Links are not followed: somebody else may have made one.  But these stand for what is open already. */
static FILE *open_rping_trace(const char *path)
{
	const bool links = !strncmp(path, "/dev/std", 8) || !strncmp(path, "/dev/fd/", 8) ||
			   !strncmp(path, "/proc/self/fd/", 14);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | (links ? 0 : O_NOFOLLOW),
		      0600);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	if (fd >= 0 && !f)
		close(fd);
	return f;
}

static int parse_rping_peer(int argc, char **argv, struct peer *p, struct options *opt)
{
	int o, bad = 0;

	while ((o = getopt(argc, argv, "s:c:C:S:R:t:Nv")) != -1) {
		switch (o) {
		case 's':
			opt->server = optarg;
			break;
		case 'c':
			opt->client = optarg;
			break;
		case 'C':
			bad |= parse_rping_number(optarg, 1, INT32_MAX, &opt->count);
			break;
		case 'S':
			bad |= parse_rping_number(optarg, SIZE_LEAST, SIZE_MOST, &opt->size);
			break;
		case 'R':
			bad |= rtr_type(&p->param, optarg);
			break;
		case 't':
			p->trace = open_rping_trace(optarg);
			if (!p->trace)
				bad = fail_rping_peer(optarg, DDPS_E_SYSTEM);
			break;
		case 'N':
			p->param.crc = false;
			break;
		case 'v':
			p->verbose = true;
			break;
		default:
			bad = -1;
		}
	}
	return bad || !opt->server == !opt->client || optind != argc ? -1 : 0;
}

/* The last messages arrive before the process ends. */
static int settle_rping_peer(struct peer *p)
{
	int e = ddps_ctx_settle(p->ctx, STEP_MS);

	return e ? fail_rping_peer("the last messages", e) : 0;
}

int main(int argc, char **argv)
{
	static struct peer p; /* large */
	struct options opt = { .count = 1, .size = 100 };
	int status;

	ddps_conn_param_init(&p.param);
	p.param.nudge_ms = NUDGE_MS;
	if (parse_rping_peer(argc, argv, &p, &opt)) {
		fprintf(stderr, "usage: rping_peer -s URI [-t FILE] [-N] [-v]\n"
				"       rping_peer -c URI [-C COUNT] [-S SIZE] [-R "
				"send|write|read] [-t FILE] [-N] [-v]\n");
		return 2;
	}
	status = make_rping_peer(&p) ||
		 (opt.server ? serve_rping(&p, opt.server)
			     : call_rping_peer(&p, opt.client, opt.count, opt.size)) ||
		 settle_rping_peer(&p);
	ddps_ctx_free(p.ctx);
	if (p.trace && fclose(p.trace))
		status = fail_rping_peer("the list of -t", DDPS_E_SYSTEM);
	return status;
}
