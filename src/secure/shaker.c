/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread that takes the steps of handshakes. */
#include "secure/shaker_in.h"
#include "common/system/thread.h"
#include "secure/secure.h"
#include "secure/told.h"
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

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

bool ddps_shaker_withdraw(struct ddps_shake *s)
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

void ddps_shaker_enqueue(struct ddps_shake *s)
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
	ddps_shake_drop_hs(s);
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

void ddps_shaker_let_in(struct ddps_shaker *k)
{
	const uint64_t now = ddps_now();
	struct ddps_gate_pass *p;
	uint64_t later;

	do {
		while ((p = ddps_gate_next(&k->gate, now, &later)))
			ddps_shaker_enqueue(shake_of(p));
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
	ddps_shaker_let_in(user);
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
			ddps_shake_destroy(s);
		else
			s->stepped(s->user);
	}
	ddps_shaker_let_in(k);
}

struct ddps_shaker *ddps_shaker_of(struct ddps_env *env)
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
	if (ddps_thread_start(&k->thread, NULL, run_shakes, k)) {
		pthread_cond_destroy(&k->more);
		pthread_mutex_destroy(&k->lock.m);
		free(k);
		return NULL;
	}
	env->shaker = k;
	return k;
}

/* ---- the end ---- */

static void free_all(struct shakes *list)
{
	struct ddps_shake *s;

	while ((s = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, s, link);
		s->busy = false;
		if (s->orphan)
			ddps_shake_destroy(s);
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
