/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Out of memory, everywhere: set-up, data and close in one process, again and again, the n-th
 * allocation failing, for n = 1, 2, ... until the whole passes without one; then the same with
 * all allocations from the n-th on failing.  Whatever fails is to be told, within the time that
 * timers give; nothing leaks, no descriptor stays open.  Linked with --wrap; the linker sends
 * the library's calls here.  Prints "ok" and "not ok" lines.
 */
#include <ddpsess/ddpsess.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#define WAIT_MS	 8000 /* longer than every timer below, with room for a busy machine */
#define TIMER_MS 700
#define READS	 40u /* more than an inbound queue holds at first */
#define BIG	 300000u
#define N_MAX	 500u

/* ---- allocations that fail ---- */

static unsigned fail_at, count; /* 0: none fails */
static bool fail_on;		/* and all behind it */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);

static bool fails(void)
{
	if (!fail_at)
		return false;
	count++;
	return count == fail_at || (fail_on && count > fail_at);
}

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

/* ---- the scenario ---- */

#define SILENT 1 /* nobody told: what this is about */

struct world {
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_listener *listener;
	struct ddps_ep *a, *b; /* initiator, responder */
	unsigned up, down;     /* endpoints established, and at their end */
	unsigned codes;	       /* 1u << code of each Terminate 2/0/code that the peer was sent */
	uint8_t *src, *dst;
	uint32_t last; /* octets of the Write whose source goes */
	char text[300];
};

static int event(struct world *w)
{
	struct ddps_conn_param p;
	struct ddps_event ev;

	if (ddps_event_wait(w->ctx, &ev, WAIT_MS))
		return SILENT;
	if (ev.error.has_triple && ev.error.by_peer && ev.error.triple.layer == 2)
		w->codes |= 1u << (ev.error.triple.code & 7);
	switch (ev.type) {
	case DDPS_EV_CONNECT_REQUEST:
		ddps_conn_param_init(&p);
		p.private_data = "answer";
		p.private_data_len = 6;
		p.close_ms = p.setup_ms = p.first_fpdu_ms = TIMER_MS;
		p.ird = p.ord = READS;
		return ddps_accept(ev.request, w->b, &p);
	case DDPS_EV_ESTABLISHED:
		w->up++;
		return 0;
	case DDPS_EV_CLOSED:
		w->down++;
		/* fall through */
	case DDPS_EV_PEER_CLOSED:
		snprintf(w->text, sizeof w->text, "%s", ev.error.text);
		return ev.error.code;
	default:
		snprintf(w->text, sizeof w->text, "%s", ev.error.text);
		return ev.error.code ? ev.error.code : DDPS_E_CLOSED;
	}
}

static int make(struct world *w, const char *uri)
{
	struct ddps_ep_attr attr;
	int err = ddps_ctx_new(&w->ctx, NULL);

	if (!err)
		err = ddps_pd_new(w->ctx, &w->pd);
	if (!err)
		err = ddps_cq_new(w->ctx, 256, &w->cq);
	if (!err)
		err = ddps_listen(w->ctx, uri, NULL, &w->listener);
	if (err)
		return err;
	ddps_ep_attr_init(&attr);
	attr.pd = w->pd;
	attr.send_cq = attr.recv_cq = w->cq;
	err = ddps_ep_new(w->ctx, &attr, &w->a);
	return err ? err : ddps_ep_new(w->ctx, &attr, &w->b);
}

static int set_up(struct world *w)
{
	struct ddps_conn_param p;
	char uri[128];
	int err = ddps_listener_uri(w->listener, uri, sizeof uri);

	if (err < 0)
		return err;
	ddps_conn_param_init(&p);
	p.private_data = "question";
	p.private_data_len = 8;
	p.connect_ms = p.setup_ms = p.close_ms = TIMER_MS;
	p.ird = p.ord = READS;
	err = ddps_connect(w->a, uri, &p);
	while (!err && w->up < 2)
		err = event(w);
	return err;
}

static int completions(struct world *w, unsigned n)
{
	struct ddps_wc wc;

	while (n--) {
		if (ddps_cq_wait(w->cq, &wc, 1, WAIT_MS) != 1)
			return SILENT;
		if (wc.status)
			return DDPS_E_CLOSED;
	}
	return 0;
}

static int post(struct ddps_ep *ep, enum ddps_op op, void *buf, uint32_t len, struct ddps_mr *mr,
		struct ddps_mr *at, uint64_t off)
{
	struct ddps_sge sge = { buf, len, ddps_mr_stag(mr) };
	struct ddps_send_wr wr = { .op = op, .sge = &sge, .nsge = 1 };

	if (at) {
		wr.stag = ddps_mr_stag(at);
		wr.to = ddps_mr_to(at) + off;
	}
	return ddps_post_send(ep, &wr);
}

/* Many Reads at once, a Send, and a Write whose source goes while it is under way. */
static int work(struct world *w, struct ddps_mr *src, struct ddps_mr *dst)
{
	struct ddps_sge in = { w->dst, BIG, ddps_mr_stag(dst) };
	int err = ddps_post_recv(w->b, 1, &in, 1);

	for (uint32_t i = 0; !err && i < READS; i++)
		err = post(w->a, DDPS_OP_READ, w->dst + 100 * i, 100, dst, src, 100 * i);
	if (!err)
		err = completions(w, READS);
	if (!err && memcmp(w->src, w->dst, 100 * READS))
		return SILENT; /* worse: wrong */
	if (!err)
		err = post(w->a, DDPS_OP_SEND, w->src, BIG, src, NULL, 0);
	if (!err)
		err = completions(w, 2);
	if (!err && memcmp(w->src, w->dst, BIG))
		return SILENT;
	if (!err)
		err = post(w->a, DDPS_OP_WRITE, w->src, w->last, src, dst, 0);
	return err;
}

static int data(struct world *w)
{
	struct ddps_mr *src, *dst;
	int err = ddps_mr_reg(w->pd, w->src, BIG, DDPS_REMOTE_READ, NULL, &src);

	if (!err)
		err = ddps_mr_reg(w->pd, w->dst, BIG, DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE, NULL,
				  &dst);
	if (!err)
		err = work(w, src, dst);
	if (!err)
		err = ddps_mr_dereg(src);
	return err;
}

static int tear_down(struct world *w)
{
	int err = ddps_disconnect(w->a);

	if (!err)
		err = ddps_disconnect(w->b);
	while (!err && w->down < 2)
		err = event(w);
	return err;
}

/* Whoever was told that the session is up is told of its end, whatever it was. */
static int ends(struct world *w)
{
	ddps_disconnect(w->a);
	ddps_disconnect(w->b);
	while (w->down < w->up)
		if (event(w) == SILENT)
			return SILENT;
	return 0;
}

static int scenario(const char *uri, struct world *w)
{
	int err = make(w, uri);

	/* TCP keeps what the socket has not taken, SCTP takes a copy of as much as this. */
	w->last = strncmp(uri, "sctp", 4) ? BIG : BIG / 2;
	if (!err)
		err = set_up(w);
	if (!err)
		err = data(w);
	if (!err)
		err = tear_down(w);
	if (err && err != SILENT && w->up && ends(w))
		err = SILENT;
	ddps_ctx_free(w->ctx);
	return err;
}

/* ---- the test ---- */

static unsigned descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static bool leaked(void)
{
#ifdef __SANITIZE_ADDRESS__
	return __lsan_do_recoverable_leak_check();
#else
	return false;
#endif
}

static bool verdict(const char *uri, unsigned fds, const char *why, int err, const char *text)
{
	const char *mode = fail_on ? "all from" : "only";

	if (!why && descriptors() != fds)
		why = "a descriptor stays open";
	if (!why && leaked())
		why = "memory leaks";
	if (why)
		printf("not ok %s: %s allocation %u failing: %s (%s: %s)\n", uri, mode, fail_at,
		       why, ddps_strerror(err), text);
	return !why;
}

static bool run(const char *uri, bool on, uint8_t *src, uint8_t *dst)
{
	unsigned fds = descriptors(), at, survived = 0, codes = 0;
	bool good = true, passed = false;

	for (at = 1; !passed && at < N_MAX; at++) {
		struct world w = { .src = src, .dst = dst };
		const char *why = NULL;
		int err;

		memset(dst, 0, BIG);
		fail_at = at;
		fail_on = on;
		count = 0;
		err = scenario(uri, &w);
		passed = count < at;
		if (err == SILENT)
			why = "it was not told";
		else if (passed && err)
			why = "an error without a cause";
		survived += !err && !passed;
		codes |= w.codes;
		good &= verdict(uri, fds, why, err, w.text);
		fail_at = 0;
	}
	/* No memory for the private data, for the inbound queue, but for a Terminate [6581-9.3-1]. */
	if (!on && (codes & 0x60) != 0x60) {
		printf("not ok %s: Terminates 2/0 with codes %02x\n", uri, codes);
		good = false;
	}
	printf("%s %s, %s allocation 1 to %u failing: told, nothing leaks (%u did without)\n",
	       good && passed ? "ok" : "not ok", uri, on ? "all from" : "only", at - 2, survived);
	fflush(stdout);
	return good && passed;
}

/* They wait for timers most of the time, so all of them do it simultaneously. */
static pid_t start(const char *uri, bool on)
{
	static uint8_t src[BIG], dst[BIG];
	struct world w = { .src = src, .dst = dst };
	pid_t pid = fork();

	if (pid)
		return pid;
	for (uint32_t i = 0; i < BIG; i++)
		src[i] = (uint8_t)(i * 2654435761u >> 24);
	scenario(uri, &w); /* what a process opens once */
	exit(!run(uri, on, src, dst));
}

int main(void)
{
	static const char *const uris[] = { "tcp://127.0.0.1:0",
					    "sctp://127.0.0.1:0?backend=native&encap=0" };
	bool good = true;
	pid_t pid[4];
	int status;

	for (unsigned i = 0; i < 4; i++)
		pid[i] = start(uris[i / 2], i % 2);
	for (unsigned i = 0; i < 4; i++) {
		good &= pid[i] > 0 && waitpid(pid[i], &status, 0) == pid[i] && WIFEXITED(status) &&
			!WEXITSTATUS(status);
	}
	if (!good)
		printf("not ok malloc: a case failed or died\n");
	return !good;
}
