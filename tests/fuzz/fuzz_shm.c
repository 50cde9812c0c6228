/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session through shared memory whose other side does as it likes.  The input is what that side does, in either role:
 * what it passes, which octets it writes where, what it says of its indexes, its sleep and its end, when it rings, with
 * descriptors or without, when it reads and when it goes; and what the program does meanwhile.  Most of it is nearly
 * right.  No step may keep the library busy.  An index that cannot be, and an unrequested descriptor, end the
 * session with their sentences, and each session ends when its peer has gone.  Then others still get theirs.
 */
#include "fuzz.h"
#include "shm_stranger.h"
#include "sim/kern.h"
#include <ddpsess/ddpsess.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define STEPS_MAX 100
#define SPINS_MAX 5000 /* turns of a loop at one moment */
#define POLLS	  200u
#define MS	  UINT64_C(1000000)
#define LIFE	  (60000 * MS)
#define BELLS	  64u
#define RECEIVES  4u
#define MEMORY	  4096u

/* What the first octet of the input says. */
enum { INITIATES = 1, STALLS = 2, NO_SETUP = 4 };

/* The library's side. */
struct user {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_ep *ep;
	struct ddps_mr *mr;
	struct ddps_listener *listener;
	uint64_t memory[MEMORY / 8];
	bool up, over;
	enum ddps_err code;
	char why[256];
};

struct shm_world {
	struct user user, other[2]; /* other: those that get their session afterwards */
	struct stranger s;
	unsigned flags;
	enum greeting greeting; /* the first */
	bool spoilt;		/* there was something that is not right */
};

/* ---- the program ---- */

static void make_shm_user(struct user *u, unsigned host, bool stalls)
{
	struct ddps_ep_attr attr;

	kern.host = host;
	FUZZ_CHECK(!ddps_ctx_new(&u->ctx, NULL) && !ddps_pd_new(u->ctx, &u->pd) &&
		   !ddps_cq_new(u->ctx, 256, &u->cq));
	ddps_ep_attr_init(&attr);
	attr.pd = u->pd;
	attr.send_cq = attr.recv_cq = u->cq;
	attr.sq_depth = 64;
	attr.rq_depth = RECEIVES;
	attr.no_recv = stalls ? DDPS_NO_RECV_STALL : DDPS_NO_RECV_TERMINATE;
	FUZZ_CHECK(!ddps_ep_new(u->ctx, &attr, &u->ep) &&
		   !ddps_mr_reg(u->pd, u->memory, MEMORY, DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE,
				NULL, &u->mr));
}

static void receive_from_stranger(struct user *u)
{
	struct ddps_sge sge = { u->memory, 64, ddps_mr_stag(u->mr) };

	(void)ddps_post_recv(u->ep, 1, &sge, 1);
}

static void listen_for_stranger(struct user *u)
{
	kern.host = 0;
	FUZZ_CHECK(!ddps_listen(u->ctx, "shm://" STRANGER_AT, NULL, &u->listener));
}

static void dial_stranger(struct user *u)
{
	struct ddps_conn_param p;

	ddps_conn_param_init(&p);
	p.crc = false;
	p.plain = true;
	FUZZ_CHECK(!ddps_connect(u->ep, "shm://" STRANGER_AT, &p));
}

static void take_shm_event(struct user *u, const struct ddps_event *ev)
{
	struct ddps_conn_param p;

	ddps_conn_param_init(&p);
	p.crc = false;
	if (ev->type == DDPS_EV_CONNECT_REQUEST && ddps_accept(ev->request, u->ep, &p))
		(void)ddps_reject(ev->request, NULL, 0); /* the endpoint has had its session */
	if (!ev->ep)
		return;
	u->up |= ev->type == DDPS_EV_ESTABLISHED;
	if (ev->type == DDPS_EV_CLOSED || ev->type == DDPS_EV_FAILED ||
	    ev->type == DDPS_EV_REJECTED) {
		FUZZ_CHECK(!u->over && (ev->type == DDPS_EV_CLOSED || ev->error.text[0]));
		u->over = true;
		u->code = ev->error.code;
		snprintf(u->why, sizeof u->why, "%s", ev->error.text);
	}
}

static void serve_shm_user(struct user *u, unsigned host)
{
	struct ddps_event ev;
	struct ddps_wc wc;

	if (!u->ctx)
		return;
	kern.host = host;
	for (unsigned n = 0; ddps_progress(u->ctx, 0) > 0; n++)
		FUZZ_CHECK(n < SPINS_MAX);
	while (ddps_cq_poll(u->cq, &wc, 1) == 1)
		;
	while (ddps_event_get(u->ctx, &ev) == 1)
		take_shm_event(u, &ev);
}

static void serve_shm_users(struct shm_world *w)
{
	serve_shm_user(&w->user, 0);
	serve_shm_user(&w->other[0], 2);
	serve_shm_user(&w->other[1], 3);
}

static void rest_for_shm(struct shm_world *w, uint64_t ns)
{
	uint64_t until = kern.now + ns, next;

	serve_shm_users(w);
	for (unsigned n = 0; (next = kern_next()) <= until; n++) {
		FUZZ_CHECK(n < 100000);
		kern_go(next);
		serve_shm_users(w);
	}
	kern_go(until);
	serve_shm_users(w);
}

/* ---- indexes that cannot be ---- */

/* Up to here all was right, so it is the library's turn to say what is not. */
static bool was_right(struct shm_world *w)
{
	const bool right = !w->spoilt && w->user.up && !w->user.over && w->s.far;

	w->spoilt = true;
	return right;
}

/* An index that is @by beyond what the library has read, or before that. */
static void say_written(struct shm_world *w, uint64_t by, bool rings)
{
	struct stranger *s = &w->s;
	bool right;

	if (!s->own)
		return;
	serve_shm_users(w);
	kern.host = 1;
	right = was_right(w);
	__atomic_store_n(&s->own->words.head, (s->far ? s->far->words.tail : 0) + by,
			 __ATOMIC_SEQ_CST);
	if (!rings)
		return;
	stranger_send(s, "", 1, -1);
	rest_for_shm(w, MS);
	if (right && by > DDPS_SHM_OCTETS)
		FUZZ_CHECK(w->user.over && w->user.code == DDPS_E_PROTOCOL &&
			   strstr(w->user.why, "impossible index"));
}

/* Nobody asked for a descriptor: the session ends when its bells are read. */
static void ring_with_memory(struct shm_world *w)
{
	struct stranger *s = &w->s;
	const bool right = was_right(w);
	int fd;

	fd = stranger_memory(s, 1);
	stranger_send(s, "", 1, fd);
	close(fd);
	for (unsigned i = 0; i < BELLS && right && !w->user.over; i++) {
		/* woken, it says anew that it sleeps, and reads its bells after a few */
		kern.host = 1;
		s->own->words.reader_woken = s->far->words.reader_sleeps;
		stranger_send(s, "", 1, -1);
		rest_for_shm(w, MS);
	}
	if (right)
		FUZZ_CHECK(w->user.over && w->user.code == DDPS_E_PROTOCOL &&
			   strstr(w->user.why, "passed descriptors"));
}

/* ---- a step ---- */

static void take_user_step(struct shm_world *w, unsigned how, unsigned value)
{
	struct user *u = &w->user;
	struct ddps_sge sge = { u->memory, 16 * value, ddps_mr_stag(u->mr) };
	const struct ddps_send_wr wr = { .op = DDPS_OP_SEND, .sge = &sge, .nsge = 1 };
	struct ddps_wc wc;

	kern.host = 0;
	switch (how & 7) {
	case 0:
		(void)ddps_disconnect(u->ep);
		break;
	case 1:
		(void)ddps_abort(u->ep);
		break;
	case 2:
	case 3:
		for (unsigned i = 0; i < POLLS; i++) /* nobody needs to wake it */
			(void)ddps_cq_poll(u->cq, &wc, 1);
		break;
	case 4:
		receive_from_stranger(u);
		break;
	default: /* more than the ring has room for, by and by */
		for (unsigned i = 0; i < (how >> 3 & 15) + 1; i++)
			(void)ddps_post_send(u->ep, &wr);
	}
}

static uint64_t choose_index(unsigned how, unsigned value)
{
	static const uint64_t some[] = { DDPS_SHM_OCTETS, DDPS_SHM_OCTETS + 1, UINT64_MAX,
					 UINT64_C(1) << 63 };

	return how & 0x80 ? some[how & 3] : value;
}

static void greet_strangely(struct shm_world *w, unsigned how, unsigned what)
{
	const enum greeting greeting = stranger_hello(&w->s, how, what);

	if (!w->greeting)
		w->greeting = greeting;
}

/* Not those that are judged. */
static bool has_misdeed(unsigned kind, unsigned how)
{
	switch (kind) {
	case 2:
	case 3:
		return true; /* a Send may find no receive */
	case 4:
	case 7:
	case 8:
	case 9:
	case 10:
		return false;
	case 13:
	case 14:
	case 15:
		return (how & 7) < 2; /* the program ends it */
	default:
		return true;
	}
}

static void take_strange_step(struct shm_world *w, struct ddps_rbuf *in)
{
	const unsigned kind = ddps_rbuf_u8(in), how = ddps_rbuf_u8(in), value = ddps_rbuf_u8(in);
	struct stranger *s = &w->s;
	uint8_t again[255 * 16];

	kern.host = 1;
	stranger_accept(s);
	w->spoilt |= has_misdeed(kind & 15, how);
	switch (kind & 15) {
	case 0:
		greet_strangely(w, how, value);
		break;
	case 1:
		stranger_start(s, w->flags & INITIATES, how);
		break;
	case 2:
	case 3:
		stranger_segment(s, value, how);
		break;
	case 4:
		say_written(w, choose_index(how, value), how & 0x40);
		break;
	case 5:
		if (s->own)
			stranger_word(s, how, how & 0x80 ? choose_index(how, value) : value % 4);
		break;
	case 6:
		if (s->own)
			s->own->octets[(how * 64u + value) % DDPS_SHM_OCTETS] = (uint8_t)kind;
		break;
	case 7:
		for (unsigned i = 0; i < value; i++)
			stranger_send(s, "", 1, -1);
		break;
	case 8:
		ring_with_memory(w);
		break;
	case 9:
	case 10:
		stranger_read(s);
		break;
	case 11:
		if (how & 0x80)
			stranger_leave(s);
		else if (s->sock >= 0)
			(void)shutdown(s->sock, (int)(how % 3));
		break;
	case 12:
		if (s->own) { /* not from where they go */
			memcpy(again, s->own->octets, how * 16u);
			stranger_write(s, again, how * 16u);
		}
		break;
	default:
		take_user_step(w, how, value);
	}
	if (kind & 0x40)
		rest_for_shm(w, value * MS);
	else if (kind & 0x80)
		serve_shm_users(w);
}

/* Its session is set up, unless the input does that. */
static void set_up_strangely(struct shm_world *w)
{
	struct stranger *s = &w->s;

	rest_for_shm(w, MS);
	kern.host = 1;
	stranger_accept(s);
	greet_strangely(w, 0, 0);
	if (!(w->flags & INITIATES))
		stranger_start(s, false, 0);
	rest_for_shm(w, MS);
	kern.host = 1;
	stranger_meet(s);
	FUZZ_CHECK(s->far);
	if (w->flags & INITIATES)
		stranger_start(s, true, 0);
	rest_for_shm(w, MS);
	kern.host = 1;
	stranger_read(s);
	stranger_segment(s, 8, 0);
	rest_for_shm(w, MS);
	FUZZ_CHECK(w->user.up && !w->user.over);
}

/* ---- afterwards ---- */

/* The host has sessions for others, and the listener its place. */
static void serve_others(struct shm_world *w)
{
	struct ddps_conn_param p;

	make_shm_user(&w->other[0], 2, false);
	make_shm_user(&w->other[1], 3, false);
	ddps_conn_param_init(&p);
	p.p2p = true;
	p.rtr = DDPS_RTR_WRITE;
	kern.host = 3;
	FUZZ_CHECK(!ddps_connect(w->other[1].ep, "shm://" STRANGER_AT, &p));
	rest_for_shm(w, MS);
	FUZZ_CHECK(w->other[1].up);
}

static void free_shm_user(struct user *u, unsigned host)
{
	kern.host = host;
	ddps_ctx_free(u->ctx);
	u->ctx = NULL;
}

/* The stranger's session is over once it has gone; a listener has an endpoint for the next one. */
static void finish_shm_world(struct shm_world *w)
{
	struct ddps_ep_attr attr;

	stranger_meet(&w->s);
	if (w->greeting == WRONG_GREETING) /* who initiates has passed its memory before */
		FUZZ_CHECK(!w->user.up && (w->flags & INITIATES || !w->s.far));
	stranger_leave(&w->s);
	rest_for_shm(w, LIFE);
	kern.host = 0;
	(void)ddps_disconnect(w->user.ep);
	rest_for_shm(w, LIFE);
	FUZZ_CHECK(w->user.over || !(w->user.up || w->flags & INITIATES));
	if (!(w->flags & INITIATES)) {
		ddps_ep_attr_init(&attr);
		attr.pd = w->user.pd;
		attr.send_cq = attr.recv_cq = w->user.cq;
		kern.host = 0;
		FUZZ_CHECK(!ddps_ep_new(w->user.ctx, &attr, &w->user.ep));
		w->user.over = false;
		serve_others(w);
	}
	free_shm_user(&w->user, 0);
	free_shm_user(&w->other[0], 2);
	free_shm_user(&w->other[1], 3);
	kern.host = 1;
	ddps_shm_unmap(w->s.own);
	ddps_shm_unmap(w->s.far);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct shm_world w;
	struct ddps_rbuf in = ddps_rbuf_init(data, size);
	uint64_t before = kern.live;

	memset(&w, 0, sizeof w);
	w.flags = ddps_rbuf_u8(&in);
	(void)setenv("DDPSESS_LOG", "none", false);
	kern_start(1);
	kern.locks_only = true; /* the layers alone, without who would lock */
	make_shm_user(&w.user, 0, w.flags & STALLS);
	for (unsigned i = 0; i < RECEIVES / 2; i++)
		receive_from_stranger(&w.user);
	if (!(w.flags & INITIATES))
		listen_for_stranger(&w.user);
	stranger_open(&w.s, !(w.flags & INITIATES));
	if (w.flags & INITIATES)
		dial_stranger(&w.user);
	if (!(w.flags & NO_SETUP))
		set_up_strangely(&w);
	for (unsigned n = 0; n < STEPS_MAX && fuzz_more(&in); n++)
		take_strange_step(&w, &in);
	finish_shm_world(&w);
	FUZZ_CHECK(!kern_stop());
	FUZZ_CHECK(kern.live == before);
	return 0;
}
