/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that share queue pairs for datagrams; also for ThreadSanitizer. */
#include "verbs/vud.h"
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#define POSTERS 3
#define EACH	400
#define ALL	(POSTERS * EACH)

struct shared {
	struct vud v;
	struct vud_qp a, b;
	sem_t room; /* in a's send queue */
	unsigned done, got;
	unsigned times[ALL];
	bool stop;
};

struct poster {
	struct shared *s;
	uint32_t first;
};

static void *post_verbs_ud_threads(void *arg)
{
	struct poster *p = arg;
	struct shared *s = p->s;

	for (uint32_t i = p->first; i < p->first + EACH; i++) {
		struct ibv_sge sge = { (uintptr_t)&i, sizeof i, 0 };
		struct ibv_send_wr wr = vud_wr(&s->a, i, &s->b, &sge, 1), *bad;

		wr.send_flags |= IBV_SEND_INLINE;
		while (sem_wait(&s->room))
			;
		cr_assert_eq(ibv_post_send(s->a.qp, &wr, &bad), 0);
	}
	return NULL;
}

/* Polls without a pause. */
static void *poll_sends(void *arg)
{
	struct shared *s = arg;
	struct ibv_wc wc;

	while (s->done < ALL) {
		if (ibv_poll_cq(s->a.cq, 1, &wc) <= 0)
			continue;
		cr_assert_eq(wc.status, 0);
		s->done++;
		sem_post(&s->room);
	}
	return NULL;
}

/* Sleeps between completions; each receive has a slot of its own. */
static void *take_receives(void *arg)
{
	struct shared *s = arg;

	while (s->got < ALL) {
		struct ibv_wc wc = vud_wc(&s->b);
		uint32_t n;

		cr_assert_eq(wc.status, 0);
		memcpy(&n, s->b.buf + wc.wr_id * 48 + 40, sizeof n);
		cr_assert(n < ALL);
		s->times[n]++;
		s->got++;
		vud_recv(&s->b, wc.wr_id, wc.wr_id * 48, 48);
	}
	return NULL;
}

/* Others come and go meanwhile. */
static void *come_and_go_in_verbs_ud_threads(void *arg)
{
	struct shared *s = arg;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		struct vud_qp q;

		vud_up(&s->v, &q);
		vud_recv(&q, 0, 0, 100);
		vud_send(&q, 1, &q, 4, 0);
		vud_wc(&q);
		vud_down(&q);
	}
	return NULL;
}

/* No datagram is lost here: what is on its way has a bound, and the receiver's socket holds it. */
Test(verbs_ud_threads, they_share_queue_pairs, .timeout = 60)
{
	struct poster p[POSTERS];
	pthread_t posters[POSTERS], others[3];
	struct shared *s = calloc(1, sizeof *s);

	cr_assert_not_null(s);
	vud_open(&s->v);
	vud_up(&s->v, &s->a);
	vud_up(&s->v, &s->b);
	cr_assert_eq(sem_init(&s->room, 0, s->a.max_send), 0);
	for (unsigned i = 0; i < s->b.max_recv; i++)
		vud_recv(&s->b, i, i * 48, 48);
	cr_assert_eq(pthread_create(&others[0], NULL, poll_sends, s), 0);
	cr_assert_eq(pthread_create(&others[1], NULL, take_receives, s), 0);
	cr_assert_eq(pthread_create(&others[2], NULL, come_and_go_in_verbs_ud_threads, s), 0);
	for (uint32_t i = 0; i < POSTERS; i++) {
		p[i] = (struct poster){ s, i * EACH };
		cr_assert_eq(pthread_create(&posters[i], NULL, post_verbs_ud_threads, &p[i]), 0);
	}
	for (unsigned i = 0; i < POSTERS; i++)
		cr_assert_eq(pthread_join(posters[i], NULL), 0);
	pthread_join(others[0], NULL);
	pthread_join(others[1], NULL);
	__atomic_store_n(&s->stop, true, __ATOMIC_RELAXED);
	pthread_join(others[2], NULL);
	for (unsigned i = 0; i < ALL; i++)
		cr_assert_eq(s->times[i], 1);
	vud_down(&s->a);
	vud_down(&s->b);
	vud_close(&s->v);
	free(s);
}
