/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread that takes the steps of handshakes. */
#include "secure/shaker.h"
#include "common/shares.h"
#include "common/system/lock.h"
#include "secure/secure.h"
#include "secure/shake_gate.h"
#include "secure/shake_order.h"
#include "secure/told.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

TAILQ_HEAD(shakes, ddps_shake);

struct ddps_shaker {
	struct ddps_env *env;
	pthread_t thread;
	pid_t pid; /* that has the thread */
	struct ddps_task task;
	struct ddps_gate gate;	/* of peers' handshakes; the loop's */
	struct ddps_timer ask;	/* it again */
	struct ddps_mutex lock; /* of what follows; the context's is never taken with it */
	pthread_cond_t more;
	bool stop;
	struct ddps_shake_order todo[2]; /* dials, which somebody here waits for, go first */
	struct shakes done;
};

struct ddps_shake {
	struct ddps_shake_place place; /* of todo */
	struct ddps_gate_pass pass;    /* of a peer's */
	TAILQ_ENTRY(ddps_shake) link;  /* of done */
	struct ddps_shaker *by;
	const struct ddps_tls_plugin *plugin;
	const struct ddps_hs_ops *ops; /* of it */
	struct ddps_hs_conf conf;
	char *host;		      /* of conf.want */
	struct ddps_hs *hs;	      /* from the first step on, unless that failed: @why */
	struct ddps_witness *witness; /* to be judged again, without a handshake; or NULL */
	struct ddps_verdict why, news;
	void (*stepped)(void *user);
	void *user;
	uint64_t net; /* the peer's */
	bool server, busy;
	bool begun;  /* it was at the gate */
	bool waits;  /* in todo: for the lock */
	bool orphan; /* freed while it was busy */
	enum ddps_hs_state state;
	uint8_t *in;
	size_t nin;
};

static void drop_hs(struct ddps_shake *s)
{
	if (s->hs)
		s->ops->free(s->hs);
	s->hs = NULL;
}

static void free_shake(struct ddps_shake *s)
{
	drop_hs(s);
	if (s->witness)
		s->plugin->witness_free(s->witness);
	free(s->host);
	free(s->in);
	free(s);
}

/* ---- the thread ---- */

static struct ddps_shake *next_shake(struct ddps_shaker *k)
{
	struct ddps_shake_place *p = ddps_shake_order_take(&k->todo[0]);
	struct ddps_shake *s;

	if (!p)
		p = ddps_shake_order_take(&k->todo[1]);
	if (!p)
		return NULL;
	s = (struct ddps_shake *)((char *)p - offsetof(struct ddps_shake, place));
	s->waits = false;
	return s;
}

/* Nobody is there any more who asked for the step; false: it is taken already. */
static bool withdraw_step(struct ddps_shake *s)
{
	struct ddps_shaker *k = s->by;
	bool waits;

	ddps_lock(&k->lock);
	waits = s->waits;
	if (waits)
		ddps_shake_order_del(&k->todo[s->server], &s->place);
	ddps_unlock(&k->lock);
	return waits;
}

/* The loop is to look, unless the context has gone meanwhile. */
static void tell_loop(struct ddps_shaker *k)
{
	if (k->env->enter(k->env->ctx))
		return;
	ddps_task_post(k->env->loop, &k->task);
	k->env->leave(k->env->ctx);
}

/* Here, since files may have to be read. */
static struct ddps_creds_set *use_creds_now(struct ddps_shake *s)
{
	return s->plugin->creds_use(s->by->env->secure->creds, ddps_now() / NSEC_PER_MSEC,
				    time(NULL), &s->news);
}

static bool begin_hs(struct ddps_shake *s)
{
	s->conf.set = use_creds_now(s);
	return !s->ops->make(&s->hs, &s->conf, &s->why);
}

static void judge_again(struct ddps_shake *s)
{
	struct ddps_creds_set *set = use_creds_now(s);

	(void)s->plugin->witness_judge(s->witness, set, time(NULL), &s->why);
	s->plugin->creds_release(set);
}

static void take_hs_step(struct ddps_shake *s)
{
	if (s->witness)
		judge_again(s);
	else
		s->state = s->hs || begin_hs(s) ? s->ops->step(s->hs, s->in, s->nin, time(NULL))
						: DDPS_HS_FAILED;
}

static void *run_shakes(void *user)
{
	struct ddps_shaker *k = user;
	struct ddps_shake *s;

	ddps_lock(&k->lock);
	while (!k->stop) {
		s = next_shake(k);
		if (!s) {
			pthread_cond_wait(&k->more, &k->lock.m);
			continue;
		}
		ddps_unlock(&k->lock);
		take_hs_step(s);
		ddps_lock(&k->lock);
		TAILQ_INSERT_TAIL(&k->done, s, link);
		ddps_unlock(&k->lock);
		tell_loop(k);
		ddps_lock(&k->lock);
	}
	ddps_unlock(&k->lock);
	return NULL;
}

/* With signals blocked: they are for the program's threads.  Not faults, which are this thread's own. */
static int start_shaker_thread(struct ddps_shaker *k)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&k->thread, NULL, run_shakes, k);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

/* ---- the loop ---- */

static struct ddps_shake *take_done(struct ddps_shaker *k)
{
	struct ddps_shake *s;

	ddps_lock(&k->lock);
	s = TAILQ_FIRST(&k->done);
	if (s)
		TAILQ_REMOVE(&k->done, s, link);
	ddps_unlock(&k->lock);
	return s;
}

static void enqueue_step(struct ddps_shake *s)
{
	struct ddps_shaker *k = s->by;

	ddps_lock(&k->lock);
	s->waits = true;
	ddps_shake_order_add(&k->todo[s->server], &s->place, s->net);
	pthread_cond_signal(&k->more);
	ddps_unlock(&k->lock);
}

static struct ddps_shake *shake_of(struct ddps_gate_pass *p)
{
	return (struct ddps_shake *)((char *)p - offsetof(struct ddps_shake, pass));
}

/* Its place goes to another one; the loop reports that. */
static void give_up_shake(struct ddps_shaker *k, struct ddps_shake *s)
{
	drop_hs(s);
	s->why = (struct ddps_verdict){ .code = DDPS_E_LIMIT };
	snprintf(s->why.text, sizeof s->why.text,
		 "%u handshakes were under way, and this one waited for its peer: its place went "
		 "to another",
		 DDPS_GATE_PLACES);
	s->state = DDPS_HS_FAILED;
	s->busy = true;
	ddps_gate_leave(&k->gate, &s->pass, false);
	ddps_lock(&k->lock);
	TAILQ_INSERT_TAIL(&k->done, s, link);
	ddps_unlock(&k->lock);
	ddps_task_post(k->env->loop, &k->task);
}

/* Whoever may begin now does. */
static void let_shakes_in(struct ddps_shaker *k)
{
	const uint64_t now = ddps_now();
	struct ddps_gate_pass *p;
	uint64_t later;

	do {
		while ((p = ddps_gate_next(&k->gate, now, &later)))
			enqueue_step(shake_of(p));
		p = ddps_gate_first_to_go(&k->gate, now, &later);
		if (p)
			give_up_shake(k, shake_of(p));
	} while (p);
	if (later)
		ddps_timer_after(k->env->loop, &k->ask,
				 (uint32_t)((later - now) / NSEC_PER_MSEC) + 1);
}

static void ask_gate(void *user)
{
	let_shakes_in(user);
}

static void report_done(void *user)
{
	struct ddps_shaker *k = user;
	struct ddps_shake *s;

	while ((s = take_done(k))) {
		s->busy = false;
		s->pass.idle = ddps_now();
		if (s->orphan || s->state != DDPS_HS_MORE)
			ddps_gate_leave(&k->gate, &s->pass, s->state == DDPS_HS_DONE);
		ddps_told_news(k->env, &s->news);
		s->news = (struct ddps_verdict){ .code = 0 };
		if (s->orphan)
			free_shake(s);
		else
			s->stepped(s->user);
	}
	let_shakes_in(k);
}

static struct ddps_shaker *shaker_of(struct ddps_env *env)
{
	struct ddps_shaker *k = env->shaker;

	if (k)
		return k;
	k = calloc(1, sizeof *k);
	if (!k)
		return NULL;
	k->env = env;
	k->pid = getpid();
	k->task = (struct ddps_task){ .fn = report_done, .user = k };
	k->ask = (struct ddps_timer){ .fn = ask_gate, .user = k };
	ddps_gate_init(&k->gate);
	ddps_mutex_init(&k->lock, DDPS_LOCK_SHAKER);
	pthread_cond_init(&k->more, NULL);
	ddps_shake_order_init(&k->todo[0]);
	ddps_shake_order_init(&k->todo[1]);
	TAILQ_INIT(&k->done);
	if (start_shaker_thread(k)) {
		pthread_cond_destroy(&k->more);
		pthread_mutex_destroy(&k->lock.m);
		free(k);
		return NULL;
	}
	env->shaker = k;
	return k;
}

static int explain_shake(struct ddps_error *why, int code, const char *text)
{
	*why = ddps_error_make(code, 0, "%s", text);
	return code;
}

/* @began: over datagrams, or NULL. */
static int make_shake(struct ddps_env *env, const struct ddps_creds_want *want,
		      const struct sockaddr *peer, const struct ddps_hs_began *began,
		      void (*stepped)(void *user), void *user, struct ddps_shake **out,
		      struct ddps_error *why)
{
	const struct ddps_tls_plugin *plugin;
	struct ddps_shaker *k;
	struct ddps_shake *s;

	if (!env->secure)
		return explain_shake(why, DDPS_E_NO_CERT,
				     "no certificate or pre-shared key was given to the context");
	plugin = env->secure->plugin;
	k = shaker_of(env);
	s = k ? calloc(1, sizeof *s) : NULL;
	if (!s)
		return explain_shake(why, DDPS_E_NOMEM, "no memory or thread for a handshake");
	*s = (struct ddps_shake){ .by = k,
				  .plugin = plugin,
				  .ops = began ? &plugin->dtls : &plugin->tls,
				  .conf = { .want = *want },
				  .stepped = stepped,
				  .user = user,
				  .net = ddps_share_net_sa(peer),
				  .server = want->server };
	if (began)
		s->conf.began = *began;
	s->host = want->host ? strdup(want->host) : NULL;
	s->conf.want.host = s->host;
	if (want->host && !s->host) {
		free_shake(s);
		return explain_shake(why, DDPS_E_NOMEM, "no memory for a handshake");
	}
	*out = s;
	return 0;
}

int ddps_shake_new(struct ddps_env *env, const struct ddps_creds_want *want,
		   const struct sockaddr *peer, void (*stepped)(void *user), void *user,
		   struct ddps_shake **out, struct ddps_error *why)
{
	return make_shake(env, want, peer, NULL, stepped, user, out, why);
}

int ddps_shake_datagrams(struct ddps_env *env, const struct ddps_creds_want *want,
			 const struct sockaddr *peer, const struct ddps_hs_began *began,
			 void (*stepped)(void *user), void *user, struct ddps_shake **out,
			 struct ddps_error *why)
{
	return make_shake(env, want, peer, began, stepped, user, out, why);
}

void ddps_shake_free(struct ddps_shake *s)
{
	bool waited;

	if (!s)
		return;
	waited = s->pass.at == DDPS_GATE_WAITS;
	if (s->busy && !waited && !withdraw_step(s)) {
		s->orphan = true;
		return;
	}
	if (s->pass.at != DDPS_GATE_OUT) {
		ddps_gate_leave(&s->by->gate, &s->pass, false);
		let_shakes_in(s->by);
	}
	free_shake(s);
}

bool ddps_shake_busy(const struct ddps_shake *s)
{
	return s->busy;
}

bool ddps_shake_waits(const struct ddps_shake *s)
{
	return s->pass.at == DDPS_GATE_WAITS;
}

int ddps_shake_feed(struct ddps_shake *s, const uint8_t *in, size_t n)
{
	struct ddps_shaker *k = s->by;

	if (s->busy) /* given up meanwhile: @stepped will say so */
		return 0;
	free(s->in);
	s->in = n ? malloc(n) : NULL;
	if (n && !s->in)
		return DDPS_E_NOMEM;
	if (n)
		memcpy(s->in, in, n);
	s->nin = n;
	s->busy = true;
	s->pass.idle = 0;
	if (!s->server || s->begun) {
		enqueue_step(s);
		return 0;
	}
	s->begun = true;
	ddps_gate_wait(&k->gate, &s->pass, s->net);
	let_shakes_in(k);
	k->env->secured_held += s->pass.at == DDPS_GATE_WAITS;
	return 0;
}

enum ddps_hs_state ddps_shake_state(const struct ddps_shake *s)
{
	return s->state;
}

const uint8_t *ddps_shake_output(const struct ddps_shake *s, size_t *n)
{
	*n = 0;
	return s->hs ? s->ops->output(s->hs, n) : NULL;
}

void ddps_shake_sent(struct ddps_shake *s, size_t n)
{
	if (n)
		s->ops->sent(s->hs, n);
}

const struct ddps_verdict *ddps_shake_why(const struct ddps_shake *s)
{
	return s->hs ? s->ops->why(s->hs) : &s->why;
}

void ddps_shake_take(struct ddps_shake *s, struct ddps_rec_config *keys, struct ddps_peer_id *id,
		     const uint8_t **rest, size_t *nrest)
{
	s->ops->take(s->hs, keys, id, rest, nrest);
	keys->aead = s->plugin->aead();
}

unsigned ddps_shake_timeout(const struct ddps_shake *s)
{
	return s->hs ? s->plugin->dtls_timeout(s->hs) : 0;
}

int ddps_shake_judge(struct ddps_env *env, struct ddps_witness *w, const struct sockaddr *peer,
		     void (*judged)(void *user), void *user, struct ddps_shake **out,
		     struct ddps_error *why)
{
	static const struct ddps_creds_want nobody;
	int err = make_shake(env, &nobody, peer, NULL, judged, user, out, why);

	if (err)
		return err;
	(*out)->witness = w;
	(void)ddps_shake_feed(*out, NULL, 0); /* without octets it cannot fail */
	return 0;
}

struct ddps_witness *ddps_shake_judged(struct ddps_shake *s)
{
	struct ddps_witness *w = s->witness;

	s->witness = NULL;
	return w;
}

struct ddps_witness *ddps_shake_witness(struct ddps_shake *s)
{
	return s->plugin->dtls_witness(s->hs);
}

/* ---- the end ---- */

static void free_all(struct shakes *list)
{
	struct ddps_shake *s;

	while ((s = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, s, link);
		s->busy = false;
		if (s->orphan)
			free_shake(s);
	}
}

/* They outlive it. */
static void empty_gate(struct ddps_gate *g)
{
	struct ddps_gate_pass *p;

	while (g->n)
		ddps_gate_leave(g, g->in[0], true);
	while ((p = ddps_gate_waiter(g))) {
		shake_of(p)->busy = false;
		ddps_gate_leave(g, p, true);
	}
}

void ddps_shaker_stop(struct ddps_env *env)
{
	struct ddps_shaker *k = env->shaker;
	struct ddps_shake *s;

	/* A child of fork has no thread, and may not wait for what it held. */
	if (!k || k->pid != getpid())
		return;
	ddps_lock(&k->lock);
	k->stop = true;
	pthread_cond_signal(&k->more);
	ddps_unlock(&k->lock);
	pthread_join(k->thread, NULL);
	empty_gate(&k->gate);
	while ((s = next_shake(k)))
		s->busy = false;
	free_all(&k->done);
	if (!env->enter(env->ctx)) {
		ddps_timer_stop(env->loop, &k->ask);
		ddps_task_cancel(env->loop, &k->task);
		env->leave(env->ctx);
	}
	pthread_cond_destroy(&k->more);
	pthread_mutex_destroy(&k->lock.m);
	env->shaker = NULL;
	free(k);
}
