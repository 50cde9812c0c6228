/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A day in an hour: thousands of sessions come and go over TCP and SCTP, each after some twenty
 * seconds, and some of them badly.  What the process takes is written down each second, and has to be the same at
 * the end as it was when it had warmed up: memory, descriptors, and how long a ping takes.
 *
 * usage: day SECONDS [SESSIONS [SEED]]		lines of figures for plot.py
 */
#include "support/clock.h"
#include <ddpsess/ddpsess.h>
#include <ddpsess/wr.h>
#include <dirent.h>
#include <malloc.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PING	64u
#define RECVS	8192u
#define PINGS	4096u  /* whose times are kept until they are written down */
#define SECONDS 86400u /* at most */
#define AT_ONCE 200u   /* sessions that are being set up */
#define SLACK	1.05   /* memory, descriptors */
#define SLOWER	2.0    /* the median ping: others may use the machine */

#define CHECK(call)                                                                                \
	do {                                                                                       \
		int err_ = (call);                                                                 \
		if (err_ < 0) {                                                                    \
			printf("not ok day: %s: %s\n", #call, ddps_strerror(err_));                \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

struct session {
	struct ddps_ep *ep[2];
	bool up[2], over[2], pinged, ending;
	uint64_t sent;
};

struct side {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_srq *srq;
	struct ddps_mr *mr;
	uint8_t mem[RECVS * PING];
};

struct second { /* what it was like */
	double kib, fds, p50, p99;
};

static struct side side[2];
static struct session *sessions;
static unsigned nsessions, alive, starting;
static char uri[96];  /* over SCTP */
static unsigned port; /* over TCP */
static struct sockaddr_in tcp_addr;
static uint64_t rng, made, refused, aborted, wrong, strangers;
static double ping[PINGS];
static unsigned npings;
static struct second seconds[SECONDS];

static unsigned draw_day_number(unsigned n)
{
	rng ^= rng >> 12;
	rng ^= rng << 25;
	rng ^= rng >> 27;
	return (unsigned)((rng * 2685821657736338717u >> 33) % n);
}

/* ---- sessions ---- */

static void post_day_receive(struct side *s, uint64_t i)
{
	struct ddps_sge sge = { s->mem + i * PING, PING, ddps_mr_stag(s->mr) };

	CHECK(ddps_post_srq_recv(s->srq, i, &sge, 1));
}

static void open_day_side(struct side *s)
{
	struct ddps_ctx_attr attr;

	ddps_ctx_attr_init(&attr);
	CHECK(ddps_ctx_new(&s->ctx, &attr));
	CHECK(ddps_pd_new(s->ctx, &s->pd));
	CHECK(ddps_cq_new(s->ctx, 65536, &s->cq));
	CHECK(ddps_srq_new(s->pd, RECVS, 1, NULL, &s->srq));
	CHECK(ddps_mr_reg(s->pd, s->mem, sizeof s->mem, DDPS_LOCAL_WRITE, NULL, &s->mr));
	for (uint64_t i = 0; i < RECVS; i++)
		post_day_receive(s, i);
}

static struct ddps_ep *new_ep(unsigned who, unsigned nr)
{
	struct side *s = &side[who];
	struct ddps_ep_attr attr;
	struct ddps_ep *ep;

	ddps_ep_attr_init(&attr);
	attr.pd = s->pd;
	attr.send_cq = attr.recv_cq = s->cq;
	attr.srq = s->srq;
	attr.sq_depth = 8;
	attr.no_recv = DDPS_NO_RECV_STALL;
	attr.user = (void *)(uintptr_t)(nr + 1);
	CHECK(ddps_ep_new(s->ctx, &attr, &ep));
	return ep;
}

static void begin_day_session(unsigned nr)
{
	struct session *s = &sessions[nr];
	struct ddps_conn_param p;
	char to[64];

	*s = (struct session){ .ep = { new_ep(0, nr) } };
	ddps_conn_param_init(&p);
	p.private_data = &nr;
	p.private_data_len = sizeof nr;
	/* Many addresses, since each has its own ports, and those that were used rest for a minute. */
	snprintf(to, sizeof to, "tcp://127.0.%u.%u:%u", draw_day_number(8),
		 1 + draw_day_number(250), port);
	CHECK(ddps_connect(s->ep[0], draw_day_number(2) ? to : uri, &p));
	alive++;
	starting++;
}

static void forget_day_session(struct session *s)
{
	starting -= !s->up[0];
	ddps_ep_free(s->ep[0]);
	ddps_ep_free(s->ep[1]);
	*s = (struct session){ 0 };
	alive--;
}

static void send_ping(unsigned who, struct session *s)
{
	struct ddps_sge sge = { side[who].mem, PING, ddps_mr_stag(side[who].mr) };
	struct ddps_send_wr wr = { .op = DDPS_OP_SEND, .sge = &sge, .nsge = 1 };

	/* it may have ended, and not be known yet */
	if (!ddps_post_send(s->ep[who], &wr) && !who) {
		s->pinged = true;
		s->sent = read_clock_ns();
	}
}

/* Writes where it may not: a Terminate ends the session. */
static void write_wrong(struct session *s)
{
	struct ddps_sge sge = { side[0].mem, PING, ddps_mr_stag(side[0].mr) };
	struct ddps_send_wr wr = {
		.op = DDPS_OP_WRITE, .sge = &sge, .nsge = 1, .stag = 1 + draw_day_number(1u << 30)
	};

	wrong += !ddps_post_send(s->ep[0], &wr);
}

/* Connects, says something or nothing, and goes. */
static void send_day_stranger(void)
{
	char noise[64];
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0)
		return;
	for (unsigned i = 0; i < sizeof noise; i++)
		noise[i] = (char)draw_day_number(256);
	if (!connect(fd, (struct sockaddr *)&tcp_addr, sizeof tcp_addr) && draw_day_number(2))
		(void)!send(fd, noise, sizeof noise, MSG_NOSIGNAL);
	close(fd);
	strangers++;
}

static void take_day_step(void)
{
	unsigned nr = draw_day_number(nsessions), what = draw_day_number(100);
	struct session *s = &sessions[nr];

	if (!s->ep[0]) {
		if (starting < AT_ONCE)
			begin_day_session(nr);
	} else if (s->up[0] && s->up[1] && !s->ending) {
		if (what < 60) {
			if (!s->pinged)
				send_ping(0, s);
			return;
		}
		s->ending = what < 80;
		if (what < 76) {
			ddps_disconnect(s->ep[draw_day_number(2)]);
		} else if (what < 78) {
			ddps_abort(s->ep[draw_day_number(2)]);
			aborted++;
		} else if (what < 80) {
			write_wrong(s);
		} else if (what == 99 && !draw_day_number(10)) {
			send_day_stranger();
		}
	}
}

/* ---- what comes ---- */

static void note_day_end(struct session *s, unsigned who)
{
	s->over[who] = true;
	/* a responder that was never asked has nothing to end */
	if (s->over[!who] || !s->ep[!who] || (!who && !s->up[0]))
		forget_day_session(s);
}

static void take_day_request(const struct ddps_event *ev)
{
	struct ddps_conn_param p;
	unsigned nr = nsessions;
	struct session *s;

	if (ev->private_data_len >= sizeof nr)
		memcpy(&nr, ev->private_data, sizeof nr);
	s = &sessions[nr];
	if (nr >= nsessions || !s->ep[0] || s->ep[1] || !draw_day_number(50)) {
		refused++;
		ddps_reject(ev->request, NULL, 0);
		return;
	}
	s->ep[1] = new_ep(1, nr);
	ddps_conn_param_init(&p);
	if (ddps_accept(ev->request, s->ep[1], &p) < 0) {
		ddps_ep_free(s->ep[1]);
		s->ep[1] = NULL;
	}
}

static void take_day_events(unsigned who)
{
	struct ddps_event ev;

	while (ddps_event_get(side[who].ctx, &ev) == 1) {
		struct session *s = &sessions[(uintptr_t)ev.user - 1];

		switch (ev.type) {
		case DDPS_EV_CONNECT_REQUEST:
			take_day_request(&ev);
			break;
		case DDPS_EV_ESTABLISHED:
			s->up[who] = true;
			made += who;
			starting -= !who;
			break;
		case DDPS_EV_PEER_CLOSED:
			ddps_disconnect(ev.ep);
			s->ending = true;
			break;
		case DDPS_EV_TERMINATED:
			s->ending = true;
			break;
		case DDPS_EV_REJECTED:
		case DDPS_EV_FAILED:
		case DDPS_EV_CLOSED:
			note_day_end(s, who);
			break;
		default:
			break;
		}
	}
}

static void take_day_completions(unsigned who)
{
	struct ddps_wc wc[64];
	int n;

	while ((n = ddps_cq_poll(side[who].cq, wc, 64)) > 0) {
		for (int i = 0; i < n; i++) {
			struct session *s = &sessions[(uintptr_t)wc[i].user - 1];

			if (wc[i].op != DDPS_OP_RECV)
				continue;
			post_day_receive(&side[who], wc[i].wr_id);
			if (wc[i].status != DDPS_WC_SUCCESS || wc[i].ep != s->ep[who])
				continue;
			if (who) {
				send_ping(1, s);
				continue;
			}
			s->pinged = false;
			if (npings < PINGS)
				ping[npings++] = (double)(read_clock_ns() - s->sent) / 1e3;
		}
	}
}

static void turn_day(void)
{
	static const struct timespec nap = { .tv_nsec = 50000 };
	bool any = false;

	for (unsigned who = 0; who < 2; who++) {
		any |= ddps_progress(side[who].ctx, 0) > 0;
		take_day_events(who);
		take_day_completions(who);
	}
	if (!any)
		nanosleep(&nap, NULL);
}

/* ---- figures ---- */

static unsigned count_day_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static double heap_kib(void)
{
	struct mallinfo2 m = mallinfo2();

	return (double)(m.uordblks + m.hblkhd) / 1024;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void write_down(unsigned t)
{
	qsort(ping, npings, sizeof *ping, compare_doubles);
	seconds[t] = (struct second){ .kib = heap_kib(),
				      .fds = count_day_fds(),
				      .p50 = npings ? ping[npings / 2] : 0,
				      .p99 = npings ? ping[npings * 99 / 100] : 0 };
	npings = 0;
	printf("%u\t%u\t%llu\t%.0f\t%.0f\t%.0f\t%.0f\n", t, alive, (unsigned long long)made,
	       seconds[t].kib, seconds[t].fds, seconds[t].p50, seconds[t].p99);
	fflush(stdout);
}

static double median(unsigned from, unsigned to, size_t member)
{
	static double v[SECONDS];
	unsigned n = 0;

	for (unsigned i = from; i < to; i++)
		memcpy(&v[n++], (const char *)&seconds[i] + member, sizeof *v);
	qsort(v, n, sizeof *v, compare_doubles);
	return n ? v[n / 2] : 0;
}

/* The last quarter against the second, when it had warmed up. */
static bool flat(unsigned n, const char *what, size_t member, double slack, double more)
{
	double was = median(n / 4, n / 2, member), is = median(n - n / 4, n, member);
	bool good = is <= was * slack + more;

	printf("%s day: %s: %.0f, then %.0f\n", good ? "ok" : "not ok", what, was, is);
	return good;
}

static bool all_flat(unsigned n)
{
	bool good = flat(n, "octets of the heap, KiB", offsetof(struct second, kib), SLACK, 0);

	good &= flat(n, "descriptors", offsetof(struct second, fds), SLACK, 0);
	return good & flat(n, "median ping, us", offsetof(struct second, p50), SLOWER, 1000);
}

/* ---- from the beginning to the end ---- */

static void begin_all(void)
{
	struct rlimit r;
	struct ddps_listener *l;

	getrlimit(RLIMIT_NOFILE, &r);
	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);
	open_day_side(&side[0]);
	open_day_side(&side[1]);
	CHECK(ddps_listen(side[1].ctx, "tcp://0.0.0.0:0", NULL, &l));
	CHECK(ddps_listener_uri(l, uri, sizeof uri));
	port = (unsigned)atoi(strrchr(uri, ':') + 1);
	tcp_addr = (struct sockaddr_in){ .sin_family = AF_INET,
					 .sin_port = htons((uint16_t)port),
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	CHECK(ddps_listen(side[1].ctx, "sctp://127.0.0.1:0?encap=0", NULL, &l));
	CHECK(ddps_listener_uri(l, uri, sizeof uri));
}

static bool end_all(void)
{
	uint64_t until = read_clock_ns() + 60000000000u;

	for (unsigned i = 0; i < nsessions; i++)
		if (sessions[i].ep[0] && !sessions[i].ending)
			ddps_abort(sessions[i].ep[0]);
	while (alive && read_clock_ns() < until)
		turn_day();
	printf("%s day: %u sessions have not ended\n", alive ? "not ok" : "ok", alive);
	ddps_ctx_free(side[0].ctx);
	ddps_ctx_free(side[1].ctx);
	return !alive;
}

int main(int argc, char **argv)
{
	unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 0, t = 0, fds, left;
	uint64_t start, next, steps = 0;
	bool good;

	nsessions = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : 10000;
	rng = argc > 3 ? strtoull(argv[3], NULL, 0) | 1 : 1;
	if (n < 8 || n > SECONDS || !nsessions) {
		fprintf(stderr, "usage: %s SECONDS (8 at least) [SESSIONS [SEED]]\n", argv[0]);
		return 2;
	}
	sessions = calloc(nsessions, sizeof *sessions);
	if (!sessions)
		return 2;
	fds = count_day_fds();
	begin_all();
	printf("second\talive\tmade\tKiB\tfds\tp50\tp99\n");
	for (start = read_clock_ns(), next = start + 1000000000; t < n; turn_day()) {
		for (; steps < (read_clock_ns() - start) / 1000000 * nsessions / 4000; steps++)
			take_day_step();
		if (read_clock_ns() < next)
			continue;
		write_down(t++);
		next += 1000000000;
	}
	good = all_flat(n);
	good = end_all() && good;
	left = count_day_fds() - fds;
	printf("%s day: %u descriptors are left\n", left ? "not ok" : "ok", left);
	printf("# %llu sessions made, %llu refused, %llu aborted, %llu ended by a Terminate, %llu "
	       "strangers\n",
	       (unsigned long long)made, (unsigned long long)refused, (unsigned long long)aborted,
	       (unsigned long long)wrong, (unsigned long long)strangers);
	free(sessions);
	return !good || left;
}
