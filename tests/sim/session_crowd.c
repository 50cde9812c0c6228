/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A crowd: several programs, some of one address, call one that listens, many times and many simultaneously.
 * Some are rejected, some send what nobody takes, some are killed.  Nothing is lost on the way.  Whatever
 * the others do, a call is answered soon.
 */
#include "sim/session_crowd.h"
#include "common/bytes.h"
#include "mpa_tcp/mpa_crc.h"
#include <stdlib.h>

#define ROUNDS	14u
#define TURNS	20000u	  /* of a loop at one moment */
#define MUCH	200u	  /* pieces: more than both sides keep */
#define QUIET	(8 * SEC) /* then a window is shut, if it will be */
#define LINGER	(SEC * 6 / 10)
#define MISSED	(70 * SEC)
#define SILENCE (100 * SEC) /* after which, and for which, nothing is sent */

struct crowd crowd;
static uint64_t packets;
static struct program grave[64];
static unsigned ngrave;

static void count_session_crowd(const uint8_t *p, size_t len)
{
	(void)p;
	(void)len;
	packets++;
}

/* Associations of few streams: who sets one up offers no more. */
static size_t few(uint8_t *p, size_t len)
{
	enum { INIT = 1, INIT_ACK = 2, STREAMS_AT = 24 };

	if (len < STREAMS_AT + 8 || (p[12] != INIT && p[12] != INIT_ACK))
		return len;
	for (unsigned i = 0; i < 4; i++)
		p[STREAMS_AT + i] = i % 2 ? (uint8_t)crowd.streams : 0;
	memset(p + 8, 0, 4);
	ddps_mpa_crc_store(p + 8, ddps_mpa_crc(DDPS_MPA_CRC_INIT, p, len));
	return len;
}

/* ---- programs ---- */

static void on_log(void *user, enum ddps_log_level level, const char *facility, const char *text)
{
	fprintf(stderr, "%.6f program %u %s: %s\n", (double)kern.now / 1e9,
		(unsigned)(uintptr_t)user, facility, text);
	(void)level;
}

static void begin_session_crowd_world(unsigned i)
{
	struct program *m = crowd_at(i);
	struct ddps_ctx_attr attr;
	char uri[80];

	ddps_ctx_attr_init(&attr);
	if (getenv("DDPS_SIM_TRACE")) {
		attr.log = on_log;
		attr.log_user = (void *)(uintptr_t)i;
	}
	*m = (struct program){ .host = m->host };
	check(!ddps_ctx_new(&m->ctx, &attr) && ddps_ctx_fd(m->ctx) >= 0 &&
		      !ddps_pd_new(m->ctx, &m->pd) && !ddps_cq_new(m->ctx, 65536, &m->cq) &&
		      !ddps_cq_new(m->ctx, 1024, &m->seldom) &&
		      !ddps_srq_new(m->pd, SHARED_RECVS, 1, NULL, &m->srq) &&
		      !ddps_mr_reg(m->pd, crowd.octets, PIECE, DDPS_REMOTE_READ, NULL, &m->from) &&
		      !ddps_mr_reg(m->pd, crowd.octets + PIECE, PIECE,
				   DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE, NULL, &m->into),
	      "no context");
	if (i)
		return;
	snprintf(uri, sizeof uri, "sctp://10.0.0.1:7000%s", crowd.uri);
	check(!ddps_listen(m->ctx, uri, NULL, &m->listener), "no listener");
	crowd_receives(true);
}

/* Its sockets are closed, and it says nothing more. */
static void killed(unsigned i)
{
	struct program *m = &crowd.program[i];

	kern_kill(i);
	m->dead = true;
	m->died = kern.now;
	crowd_lose(i);
	grave[ngrave++ % 64] = *m;
}

static void turn_session_crowd(unsigned i)
{
	struct program *m = crowd_at(i);
	unsigned n = 0;

	if (m->dead || m->naps_until > kern.now)
		return;
	if (crowd.naps && !crowd_rnd(8)) { /* in the middle of what there is to do */
		ddps_progress(m->ctx, 0);
		m->naps_until = kern.now + crowd_rnd(6 * kern.delay);
	} else {
		while (ddps_progress(m->ctx, 0) > 0 && !world.failed)
			check(++n < TURNS, "program %u is busy with nothing", i);
	}
	crowd_looks(i);
}

static void turn_all_session_crowd(void)
{
	for (unsigned i = 0; i < crowd.programs && !world.failed; i++)
		turn_session_crowd(i);
	for (unsigned i = 0; i < CALLS && !world.failed; i++)
		crowd_goes_on(&crowd.call[i]);
}

static void run_session_crowd(uint64_t time)
{
	uint64_t until = kern.now + time, next;

	do {
		turn_all_session_crowd();
		next = kern_next();
		if (next > kern.now + crowd.soon / 50)
			next = kern.now + crowd.soon / 50;
		for (unsigned i = 0; i < crowd.programs; i++)
			if (crowd.program[i].naps_until > kern.now &&
			    crowd.program[i].naps_until < next)
				next = crowd.program[i].naps_until;
		kern_go(next < until ? next : until);
	} while (kern.now < until && !world.failed);
}

static unsigned in(enum phase phase)
{
	unsigned n = 0;

	for (unsigned i = 0; i < CALLS; i++)
		n += crowd.call[i].phase == phase && !crowd.call[i].lost;
	return n;
}

static void until_answered(void)
{
	while (in(ASKED) && !world.failed)
		run_session_crowd(crowd.soon / 100);
}

/* An association that comes up is taken to have many streams. */
static void read_session_crowd_one_by_one(void)
{
	if (crowd.streams)
		until_answered();
}

/* ---- what happens ---- */

/* One that calls. */
static unsigned some_program(void)
{
	unsigned i;

	do
		i = 1 + (unsigned)crowd_rnd(crowd.programs - 1);
	while (crowd.program[i].dead);
	return i;
}

/* Programs that were killed begin anew when what they had has been missed: until then their ports may be
 * those of associations that the peer still has. */
static void begin_session_crowd_anew(void)
{
	unsigned alive = 0;

	for (unsigned i = 1; i < crowd.programs; i++)
		alive += !crowd.program[i].dead;
	if (!alive)
		run_session_crowd(MISSED);
	for (unsigned i = 1; i < crowd.programs; i++)
		if (crowd.program[i].dead && crowd.program[i].died + MISSED <= kern.now)
			begin_session_crowd_world(i);
}

static void a_batch(void)
{
	static const unsigned sizes[] = { 1, 1, 2, 4, 8, 60 };
	unsigned n = sizes[crowd_rnd(6)], who = some_program();
	bool several = crowd_rnd(2), stalls = crowd_rnd(crowd.streams ? 8 : 2) == 1,
	     at_once = crowd_rnd(2);

	while (n-- && !world.failed) {
		crowd_call(several ? some_program() : who, (enum kind)crowd_rnd(KINDS),
			   stalls || !crowd_rnd(8));
		if (!at_once)
			run_session_crowd(crowd_rnd(2 * kern.delay));
		read_session_crowd_one_by_one();
	}
	until_answered();
}

static void some_leave(void)
{
	for (unsigned i = 0; i < CALLS; i++)
		if (!crowd_rnd(2))
			crowd_leaves(&crowd.call[i]);
}

static void until_all_left(void)
{
	while ((in(ASKED) || in(THERE) || in(LEFT)) && !world.failed) {
		run_session_crowd(crowd.soon / 100);
		for (unsigned i = 0; i < CALLS; i++)
			crowd_leaves(&crowd.call[i]);
	}
}

/* One sends so much that it is not read any more; others of its program call then. */
static void too_much(void)
{
	unsigned who = some_program();
	struct call *c;

	until_all_left();
	c = crowd_call(who, HELD, false);
	if (!c)
		return;
	/* The kernel's window shuts only when it is full: until then a call may come behind what is not read. */
	c->sends = MUCH / 3 + (unsigned)crowd_rnd(MUCH);
	if (!crowd.native)
		c->sends = MUCH + MUCH / 3;
	c->piece = PIECE;
	run_session_crowd(QUIET);
	for (unsigned n = 1 + (unsigned)crowd_rnd(4); n && !world.failed; n--) {
		crowd_call(who, (enum kind)crowd_rnd(HELD), !crowd_rnd(4));
		read_session_crowd_one_by_one();
	}
	until_answered();
}

/* A program calls and is killed. */
static void a_caller_ends(void)
{
	unsigned who = some_program();

	for (unsigned n = (unsigned)crowd_rnd(40); n && !world.failed; n--)
		crowd_call(who, (enum kind)crowd_rnd(KINDS), crowd_rnd(2));
	if (crowd_rnd(2))
		a_batch();
	run_session_crowd(crowd_rnd(6 * kern.delay));
	if (!world.failed)
		killed(who);
}

static bool all_rejected(void)
{
	for (unsigned i = 0; i < CALLS; i++)
		if (crowd.call[i].phase != NOBODY && !crowd.call[i].lost &&
		    !crowd.call[i].leg[1].over)
			return false;
	return true;
}

/* It calls once more, and does not look for the answers to the others now. */
static void too_late(unsigned who)
{
	struct program *m = &crowd.program[who];

	crowd_call(who, REJECTED, false);
	ddps_progress(crowd_at(who)->ctx, 0);
	m->naps_until = kern.now + crowd_rnd(8 * kern.delay);
}

/* Who listens rejects all, and is killed: those are its last words, and count. */
static void last_words(void)
{
	until_all_left();
	for (unsigned n = 1 + (unsigned)crowd_rnd(12); n && !world.failed; n--) {
		crowd_call(some_program(), REJECTED, !crowd_rnd(4));
		run_session_crowd(crowd_rnd(2) ? 0 : crowd_rnd(kern.delay));
	}
	while (!all_rejected() && !world.failed)
		run_session_crowd(1 + crowd_rnd(kern.delay / 4));
	if (world.failed)
		return;
	while (ddps_progress(crowd_at(0)->ctx, 0) > 0)
		;
	for (unsigned i = 1; i < crowd.programs; i++)
		if (!crowd.program[i].dead && crowd_rnd(2))
			too_late(i);
	killed(0);
	until_all_left();
	run_session_crowd(LINGER + crowd.soon); /* associations of the one that is gone */
	begin_session_crowd_world(0);
}

static void is_session_crowd_played(void)
{
	for (unsigned i = 0; i < ROUNDS && !world.failed; i++) {
		unsigned what = (unsigned)crowd_rnd(12);

		begin_session_crowd_anew();
		if (what == 0 && crowd.native && !crowd.streams)
			a_caller_ends();
		else if (what == 1 && crowd.native && !crowd.streams)
			last_words();
		else if (what == 2 && !crowd_rnd(3))
			too_much();
		else
			a_batch();
		some_leave();
		if (!crowd_rnd(3))
			crowd_receives(false);
		run_session_crowd(crowd_rnd(2) ? crowd_rnd(8 * kern.delay) : crowd_rnd(SEC));
	}
	until_all_left();
}

/* Nobody has a session: soon nobody has an association. */
static void silence(void)
{
	run_session_crowd(SILENCE);
	packets = 0;
	run_session_crowd(SILENCE);
	check(!packets || world.failed, "%u packets when all sessions have ended",
	      (unsigned)packets);
}

static void make_session_crowd(uint64_t seed)
{
	static const char *const uris[] = { "?backend=native&encap=9899",
					    "?backend=kernel&encap=off" };

	crowd = (struct crowd){ .rng = seed * 0x9e3779b97f4a7c15u + 31,
				.octets = calloc(2, PIECE) };
	sim_events.seed = sim_next(&crowd.rng);
	kern_start(sim_next(&crowd.rng));
	crowd.native = crowd_rnd(3);
	crowd.uri = uris[!crowd.native];
	crowd.naps = crowd_rnd(2);
	crowd.streams = crowd_rnd(3) ? 0 : 2u << crowd_rnd(3);
	crowd.programs = 2 + (unsigned)crowd_rnd(PROGRAMS - 1);
	for (unsigned i = 1; i < crowd.programs; i++)
		crowd.program[i].host = 1 + (unsigned)crowd_rnd(3);
	kern.sctp = !crowd.native;
	kern.streams = crowd.native ? 0 : crowd.streams;
	kern.delay = 10000 + crowd_rnd(1u << crowd_rnd(25));
	kern.gso = crowd_rnd(2);
	kern.datagrams = 1u << 15;
	kern_watch = count_session_crowd;
	kern_alter = crowd.native && crowd.streams ? few : NULL;
	crowd.soon = 2 * SEC + 100 * kern.delay;
	crowd.late = 60 * SEC;
	ngrave = 0;
}

static void buried(void)
{
	for (unsigned i = 0; i < ngrave; i++) {
		kern.host = grave[i].host;
		kern.program = PROGRAMS;
		ddps_ctx_free(grave[i].ctx);
	}
}

bool crowd_world(uint64_t seed, struct sim_tally *t)
{
	unsigned left;
	uint64_t begin;

	world = (struct world){ .seed = seed, .quiet = true, .t = t };
	make_session_crowd(seed);
	begin = kern.now;
	for (unsigned i = 0; i < crowd.programs; i++)
		begin_session_crowd_world(i);
	is_session_crowd_played();
	if (!world.failed)
		silence();
	for (unsigned i = 0; i < crowd.programs; i++)
		if (!crowd_at(i)->dead)
			ddps_ctx_free(crowd.program[i].ctx);
	buried();
	left = kern_stop();
	kern_watch = NULL;
	kern_alter = NULL;
	check(!left, "%u descriptors are left", left);
	free(crowd.octets);
	t->n[T_SESSIONS] += crowd.made;
	t->n[T_SCTP] += crowd.made;
	t->n[T_ORDERLY] += crowd.made;
	t->n[T_WORLDS]++;
	t->n[T_SECONDS] += (kern.now - begin) / SEC;
	return !world.failed;
}
