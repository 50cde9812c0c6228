/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ordinary programs end.  A writer sends and ends in one of the ways of docs/ends.md; a reader, a
 * process of its own, takes what arrives.  What the table promises is checked, and nothing else is
 * known of the two.  First each cell of the table, then programs drawn by seed: several writers one
 * after the other, with and without threads, with a child of fork, with a reader that answers,
 * that posts its receives when the writer is gone, or that ends in the midst of it and begins anew.
 *
 * usage: stress-ends SEED SECONDS
 */
#include "stress/run.h"
#include <ddpsess/ddpsess.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT	 64u
#define LEN	 65536u
#define FEW	 8u    /* messages of a reader that answers, and for one that is late: those ... */
#define SHORT	 4096u /* ... of so many octets, for it does not read on meanwhile */
#define LONG_MS	 20000 /* for what comes */
#define QUIET_MS 300   /* for what may never come */
#define LIMIT_S	 120   /* a process that is stuck ends by this */

enum way {
	SETTLE_FREE,
	SETTLE_EXIT,
	SETTLE__EXIT,
	SETTLE_KILL,
	SETTLE_EXEC,
	CLOSED_EXIT,
	CLOSED_KILL,
	DISCONNECT_FREE,
	DISCONNECT_EXIT,
	DISCONNECT_KILL,
	COMPLETED_EXIT,
	COMPLETED_KILL,
	FREE,
	EXIT,
	KILL,
	WAYS
};

static const char *const way_names[WAYS] = {
	"settle, free",
	"settle, exit",
	"settle, _exit",
	"settle, SIGKILL",
	"settle, exec",
	"disconnect, closed, exit",
	"disconnect, closed, SIGKILL",
	"disconnect, free",
	"disconnect, exit",
	"disconnect, SIGKILL",
	"all completed, exit",
	"all completed, SIGKILL",
	"free",
	"exit",
	"SIGKILL",
};

enum wire { TCP, NATIVE, KERNEL, WIRES };

static const char *const wire_names[WIRES] = { "tcp", "sctp native", "sctp kernel" };
static const char *const uris[WIRES] = { "tcp://127.0.0.1:0",
					 "sctp://127.0.0.1:0?backend=native&encap=0",
					 "sctp://127.0.0.1:0?backend=kernel&encap=off" };

/* A program of ten lines. */
struct plan {
	enum way way;
	bool threads;  /* the library's, one for events, two that post */
	bool forks;    /* a child that does nothing outlives it */
	bool answers;  /* the reader sends, too */
	bool late;     /* the reader stalls, and posts receives when the writer is gone */
	unsigned lost; /* the reader is killed after so many milliseconds; 0: it is not */
};

/* What docs/ends.md promises of it. */
struct promise {
	bool all;      /* every message arrives */
	bool in_order; /* the peer sees an end in order */
	bool told;     /* the peer sees an end */
};

static struct promise promise_of(const struct plan *p, enum wire wire)
{
	struct promise none = { 0 };

	if (p->lost)
		return none;
	if (p->way <= DISCONNECT_FREE)
		return (struct promise){ true, true, true };
	if (p->way == FREE)
		return (struct promise){ .told = true };
	if (wire == TCP) /* the system ends it, and delivers what it has, unless it was spoken to */
		return (struct promise){
			.told = true,
			.all = (p->way == COMPLETED_EXIT || p->way == COMPLETED_KILL) && !p->answers
		};
	return none;
}

static unsigned count_planned_messages(const struct plan *p)
{
	return p->late ? FEW : COUNT;
}

static uint32_t get_planned_length(const struct plan *p)
{
	return p->late ? SHORT : LEN;
}

/* What a reader saw of a session. */
struct seen {
	unsigned got;
	bool torn;  /* a message that was not sent like this, or not now */
	bool ended; /* else: nothing came any more */
	int code;   /* of the end */
	char text[200];
};

static const char *doing = "";
static uint64_t doing_seed;

static _Noreturn void give_up_ends(int line, const char *what)
{
	printf("not ok ends: %s, seed %llu: line %d: %s (%s)\n", doing,
	       (unsigned long long)doing_seed, line, what, strerror(errno));
	fflush(stdout);
	kill(0, SIGTERM); /* all of this run, which has a group of its own */
	_exit(1);
}

#define NEED(cond) ((cond) ? (void)0 : give_up_ends(__LINE__, #cond))

/* ---- one end of a session ---- */

static struct side {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_mr *mr;
	struct ddps_ep *ep;
	uint8_t out[LEN], in[COUNT][LEN];
} me;

static void open_ends_side(bool thread)
{
	struct ddps_ctx_attr attr;

	alarm(LIMIT_S);
	ddps_ctx_attr_init(&attr);
	attr.thread = thread;
	NEED(!ddps_ctx_new(&me.ctx, &attr));
	NEED(!ddps_pd_new(me.ctx, &me.pd));
	NEED(!ddps_mr_reg(me.pd, &me.out, sizeof me.out + sizeof me.in, DDPS_LOCAL_WRITE, NULL,
			  &me.mr));
}

static void post_ends_receives(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct ddps_sge sge = { me.in[i], LEN, ddps_mr_stag(me.mr) };

		(void)ddps_post_recv(me.ep, i, &sge, 1); /* it may have ended */
	}
}

static void make_end(unsigned receives)
{
	struct ddps_ep_attr attr;

	NEED(!ddps_cq_new(me.ctx, 4 * COUNT, &me.cq));
	ddps_ep_attr_init(&attr);
	attr.pd = me.pd;
	attr.send_cq = attr.recv_cq = me.cq;
	attr.no_recv = receives ? DDPS_NO_RECV_TERMINATE : DDPS_NO_RECV_STALL;
	NEED(!ddps_ep_new(me.ctx, &attr, &me.ep));
	post_ends_receives(receives);
}

/* A message begins and ends with its number.  It lies in memory of its own until it is sent. */
static int post_number(unsigned n, uint32_t len)
{
	struct ddps_sge sge = { me.in[n], len, ddps_mr_stag(me.mr) };
	const struct ddps_send_wr wr = { .op = DDPS_OP_SEND, .wr_id = n, .sge = &sge, .nsge = 1 };

	memcpy(me.in[n], &n, sizeof n);
	memcpy(me.in[n] + len - sizeof n, &n, sizeof n);
	return ddps_post_send(me.ep, &wr);
}

static bool is_number(const uint8_t *p, unsigned n, uint32_t len)
{
	return !memcmp(p, &n, sizeof n) && !memcmp(p + len - sizeof n, &n, sizeof n);
}

/* ---- the reader ---- */

static void take_messages(const struct plan *p, struct seen *seen)
{
	struct ddps_wc wc;

	while (ddps_cq_poll(me.cq, &wc, 1) == 1) {
		if (wc.op != DDPS_OP_RECV || wc.status != DDPS_WC_SUCCESS)
			continue;
		seen->torn |= wc.wr_id != seen->got || wc.len != get_planned_length(p) ||
			      !is_number(me.in[seen->got], seen->got, get_planned_length(p));
		seen->got++;
	}
}

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* @over is readable when the writer is no more. */
static void read_session(int over, const struct plan *p, struct seen *seen)
{
	struct ddps_event ev;
	uint64_t until = stress_ms() + LONG_MS;
	bool gone = false, went = false;
	char go;

	for (;;) {
		int err = ddps_event_wait(me.ctx, &ev, 20);
		unsigned before = seen->got;

		if (me.cq)
			take_messages(p, seen);
		if (p->late && !went && is_readable(over)) {
			went = true;
			NEED(read(over, &go, 1) == 1);
		}
		if (!gone && is_readable(over)) {
			gone = true;
			until = stress_ms() + QUIET_MS;
			if (p->late && me.ep && !seen->got)
				post_ends_receives(count_planned_messages(p));
		} else if (seen->got != before) {
			until = stress_ms() + (gone ? QUIET_MS : LONG_MS);
		}
		if (err == DDPS_E_TIMEDOUT && stress_ms() >= until)
			return;
		if (err)
			continue;
		if (ev.type == DDPS_EV_CONNECT_REQUEST) {
			make_end(p->late ? 0 : COUNT);
			(void)ddps_accept(ev.request, me.ep, NULL);
		} else if (ev.type == DDPS_EV_ESTABLISHED) {
			for (unsigned i = 0; i < FEW && p->answers; i++) {
				struct ddps_sge sge = { me.out, LEN, ddps_mr_stag(me.mr) };
				struct ddps_send_wr wr = { .op = DDPS_OP_SEND,
							   .sge = &sge,
							   .nsge = 1 };

				(void)ddps_post_send(ev.ep, &wr); /* it may have ended */
			}
			/* It looks again when the writer has posted everything, or is gone. */
			if (!p->late)
				NEED(read(over, &go, 1) >= 0);
		} else if (ev.type == DDPS_EV_PEER_CLOSED) {
			ddps_disconnect(ev.ep);
		} else if (ev.type == DDPS_EV_CLOSED || ev.type == DDPS_EV_FAILED) {
			take_messages(p, seen);
			seen->ended = true;
			seen->code = ev.error.code;
			memcpy(seen->text, ev.error.text, sizeof seen->text);
			return;
		}
	}
}

/* A program that does its work also while it waits for orders. */
static bool next_order(int order, struct plan *p)
{
	while (!is_readable(order))
		NEED(ddps_progress(me.ctx, 5) >= 0);
	return read(order, p, sizeof *p) == sizeof *p;
}

/* Prints its URI, then each session that @order asks for. */
static _Noreturn void run_reader(enum wire wire, int order, int over, int news)
{
	struct ddps_listener *l;
	char uri[128] = "";
	struct plan p;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_ends_side(false);
	NEED(!ddps_listen(me.ctx, uris[wire], NULL, &l));
	NEED(ddps_listener_uri(l, uri, sizeof uri) > 0);
	NEED(write(news, uri, sizeof uri) == sizeof uri);
	while (next_order(order, &p)) {
		struct seen seen = { 0 };

		read_session(over, &p, &seen);
		ddps_ep_free(me.ep);
		if (me.cq)
			NEED(!ddps_cq_free(me.cq));
		me.ep = NULL;
		me.cq = NULL;
		NEED(write(news, &seen, sizeof seen) == sizeof seen);
	}
	ddps_ctx_free(me.ctx);
	_exit(0);
}

/* ---- the writer ---- */

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static unsigned next_number;
static bool stop_events, closed; /* atomic */

static void *post_numbers(void *arg)
{
	const struct plan *p = arg;

	for (;;) {
		bool last;

		pthread_mutex_lock(&turn);
		last = next_number == count_planned_messages(p);
		if (!last)
			(void)post_number(next_number++, get_planned_length(p));
		pthread_mutex_unlock(&turn);
		if (last)
			return NULL;
	}
}

static void await_event(const struct plan *p, enum ddps_event_type type)
{
	const uint64_t until = stress_ms() + LONG_MS;
	struct ddps_event ev = { .type = DDPS_EV_SRQ_LIMIT };

	while (ev.type != type && ev.type != DDPS_EV_CLOSED && ev.type != DDPS_EV_FAILED &&
	       stress_ms() < until)
		(void)ddps_event_wait(me.ctx, &ev, 1000);
	NEED(ev.type == type || ev.type == DDPS_EV_CLOSED || p->lost);
	if (type == DDPS_EV_CLOSED)
		__atomic_store_n(&closed, !ev.error.code, __ATOMIC_RELEASE);
}

static void *take_events(void *unused)
{
	struct ddps_event ev;

	while (!__atomic_load_n(&stop_events, __ATOMIC_ACQUIRE))
		if (!ddps_event_wait(me.ctx, &ev, 20) && ev.type == DDPS_EV_CLOSED)
			__atomic_store_n(&closed, !ev.error.code, __ATOMIC_RELEASE);
	return unused;
}

static void send_numbers(const struct plan *p, pthread_t *events)
{
	pthread_t worker[2];

	if (!p->threads) {
		post_numbers((void *)(uintptr_t)p);
		return;
	}
	NEED(!pthread_create(events, NULL, take_events, NULL));
	for (int i = 0; i < 2; i++)
		NEED(!pthread_create(&worker[i], NULL, post_numbers, (void *)(uintptr_t)p));
	for (int i = 0; i < 2; i++)
		pthread_join(worker[i], NULL);
}

static void leave_child(void)
{
	pid_t parent = getpid();

	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* of the thread that made it: the writer's only one */
	if (getppid() == parent)
		pause();
	_exit(0);
}

static void await_closed(const struct plan *p)
{
	const uint64_t until = stress_ms() + LONG_MS;

	if (!p->threads)
		await_event(p, DDPS_EV_CLOSED);
	while (!__atomic_load_n(&closed, __ATOMIC_ACQUIRE) && !p->lost && stress_ms() < until)
		poll(NULL, 0, 1);
	NEED(p->lost || __atomic_load_n(&closed, __ATOMIC_ACQUIRE));
}

static void await_sends(const struct plan *p)
{
	struct ddps_wc wc;

	for (unsigned n = 0; n < count_planned_messages(p); n += wc.op == DDPS_OP_SEND) {
		int err = ddps_cq_wait(me.cq, &wc, 1, LONG_MS);

		NEED(err >= 0 || p->lost);
		NEED(wc.status == DDPS_WC_SUCCESS || p->lost);
		if (err < 0)
			return;
	}
}

static void end_session(const struct plan *p)
{
	if (p->way <= SETTLE_EXEC)
		NEED(!ddps_ctx_settle(me.ctx, LONG_MS) || p->lost);
	else if (p->way <= DISCONNECT_KILL)
		NEED(!ddps_disconnect(me.ep));
	else if (p->way <= COMPLETED_KILL)
		await_sends(p);
	if (p->way == CLOSED_EXIT || p->way == CLOSED_KILL)
		await_closed(p);
}

static _Noreturn void end_process(const struct plan *p, pthread_t events)
{
	switch (p->way) {
	case SETTLE_FREE:
	case DISCONNECT_FREE:
	case FREE:
		if (p->threads) {
			__atomic_store_n(&stop_events, true, __ATOMIC_RELEASE);
			pthread_join(events, NULL);
		}
		ddps_ctx_free(me.ctx);
		_exit(0);
	case SETTLE_EXIT:
	case CLOSED_EXIT:
	case DISCONNECT_EXIT:
	case COMPLETED_EXIT:
	case EXIT:
		exit(0);
	case SETTLE_EXEC:
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	case SETTLE_KILL:
	case CLOSED_KILL:
	case DISCONNECT_KILL:
	case COMPLETED_KILL:
	case KILL:
		kill(getpid(), SIGKILL);
		pause();
		_exit(1);
	default:
		_exit(0);
	}
}

static _Noreturn void run_writer(const struct plan *p, const char *uri, int go)
{
	pthread_t events = { 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_ends_side(p->threads);
	make_end(0);
	for (unsigned i = 0; i < FEW; i++) {
		struct ddps_sge sge = { me.out, LEN, ddps_mr_stag(me.mr) };

		NEED(!ddps_post_recv(me.ep, i, &sge, 1));
	}
	NEED(!ddps_connect(me.ep, uri, NULL));
	await_event(p, DDPS_EV_ESTABLISHED);
	if (p->forks)
		leave_child();
	send_numbers(p, &events);
	NEED(write(go, "", 1) == 1);
	end_session(p);
	end_process(p, events);
}

/* ---- who looks at both ---- */

static struct reader {
	pid_t pid;
	int order, over[2], news;
	char uri[128];
} reader;

static void start_reader(enum wire wire)
{
	int order[2], news[2];

	NEED(!pipe(order) && !pipe(news) && !pipe(reader.over));
	reader.pid = fork();
	NEED(reader.pid >= 0);
	if (!reader.pid) {
		close(order[1]);
		close(reader.over[1]);
		run_reader(wire, order[0], reader.over[0], news[1]);
	}
	close(order[0]);
	close(news[1]);
	reader.order = order[1];
	reader.news = news[0];
	NEED(read(reader.news, reader.uri, sizeof reader.uri) == sizeof reader.uri);
}

static void stop_reader(bool kills)
{
	int status;

	if (kills)
		kill(reader.pid, SIGKILL);
	close(reader.order);
	close(reader.news);
	close(reader.over[0]);
	close(reader.over[1]);
	NEED(waitpid(reader.pid, &status, 0) == reader.pid);
	NEED(kills || !status);
}

static void say_broken(const struct plan *p, enum wire wire, const struct seen *seen)
{
	printf("not ok ends: %s: seed %llu: %s over %s%s%s%s%s: %u of %u messages%s, %s %d: %s\n",
	       doing, (unsigned long long)doing_seed, way_names[p->way], wire_names[wire],
	       p->threads ? ", threads" : "", p->forks ? ", a child" : "",
	       p->answers ? ", answers" : "", p->late ? ", late" : "", seen->got,
	       count_planned_messages(p), seen->torn ? ", torn" : "",
	       seen->ended ? "ended by" : "no end", seen->code, seen->text);
	fflush(stdout);
}

/* Whether what is promised was kept. */
static bool try_plan(const struct plan *p, enum wire wire)
{
	const struct promise promise = promise_of(p, wire);
	struct seen seen = { 0 };
	int status;
	pid_t pid;

	NEED(write(reader.order, p, sizeof *p) == sizeof *p);
	pid = fork();
	NEED(pid >= 0);
	if (!pid)
		run_writer(p, reader.uri, reader.over[1]);
	if (p->lost) {
		poll(NULL, 0, (int)p->lost);
		stop_reader(true);
		NEED(waitpid(pid, &status, 0) == pid);
		start_reader(wire);
		return true;
	}
	NEED(waitpid(pid, &status, 0) == pid);
	NEED(write(reader.over[1], "", 1) == 1);
	NEED(read(reader.news, &seen, sizeof seen) == sizeof seen);
	while (is_readable(reader.over[0]))
		NEED(read(reader.over[0], &(char){ 0 }, 1) == 1);
	if (!seen.torn && (!promise.all || seen.got == count_planned_messages(p)) &&
	    (!promise.told || seen.ended) && (!promise.in_order || !seen.code))
		return true;
	say_broken(p, wire, &seen);
	return false;
}

static bool has_wire(enum wire wire)
{
	return wire != KERNEL || ddps_has_backend("kernel") == 1;
}

/* Each cell of the table. */
static bool try_table(void)
{
	bool good = true;

	for (int wire = 0; wire < WIRES; wire++) {
		if (!has_wire((enum wire)wire)) {
			printf("ok contact 1: all ways over %s # SKIP the kernel has no SCTP\n",
			       wire_names[wire]);
			continue;
		}
		for (int k = 0; k < 2 * WAYS; k++) {
			const struct plan p = { .way = (enum way)(k / 2), .threads = k % 2 };
			char name[100];

			snprintf(name, sizeof name, "contact 1: %s over %s%s", way_names[p.way],
				 wire_names[wire], p.threads ? ", with threads" : "");
			doing = name;
			start_reader((enum wire)wire);
			if (try_plan(&p, (enum wire)wire))
				printf("ok %s\n", name);
			else
				good = false;
			stop_reader(false);
		}
	}
	return good;
}

static bool try_seed(uint64_t seed, unsigned *programs)
{
	uint64_t rng = seed * 0x9e3779b97f4a7c15u | 1;
	enum wire wire = (enum wire)stress_draw(&rng, WIRES);
	unsigned n = 1 + stress_draw(&rng, 3);
	bool good = true;

	if (!has_wire(wire))
		wire = NATIVE;
	start_reader(wire);
	for (; n && good; n--) {
		struct plan p = { .way = (enum way)stress_draw(&rng, WAYS),
				  .threads = stress_draw(&rng, 2),
				  .forks = !stress_draw(&rng, 3),
				  .answers = !stress_draw(&rng, 3),
				  .lost = stress_draw(&rng, 8) ? 0 : 1 + stress_draw(&rng, 30) };

		/* it does not close while it waits for receives, nor answer */
		p.late = !p.lost && !p.answers && p.way != CLOSED_EXIT && p.way != CLOSED_KILL &&
			 !stress_draw(&rng, 3);
		good = try_plan(&p, wire);
		(*programs)++;
		if (good && !stress_draw(&rng, 3)) {
			stop_reader(stress_draw(&rng, 2));
			start_reader(wire);
		}
	}
	stop_reader(!good);
	return good;
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1, until;
	unsigned programs = 0;

	setpgid(0, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	if (!try_table())
		return 1;
	doing = "programs";
	until = stress_ms() + 1000 * (argc > 2 ? strtoull(argv[2], NULL, 0) : 5);
	for (; stress_ms() < until; seed++) {
		doing_seed = seed;
		if (!try_seed(seed, &programs))
			return 1;
	}
	printf("ok ends: %u programs, seeds up to %llu\n", programs, (unsigned long long)seed - 1);
	return 0;
}
