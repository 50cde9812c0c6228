/* SPDX-License-Identifier: BSD-2-Clause */
/* A queue of work, a few threads, and a queue of what is done. */
#include "xfer/serve/disk.h"
#include "cli/sessctl.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define THREADS 4 /* at most: so many tasks are under way at a time */

STAILQ_HEAD(queue, disk_task);

struct disk {
	pthread_mutex_t lock;
	pthread_cond_t more, less;
	pthread_t thread[THREADS];
	unsigned threads, idle;
	unsigned held;	 /* tasks that have not been taken back */
	unsigned queued; /* of them, in @todo */
	struct queue todo, done;
	int fd;
	bool ends;
};

static struct disk_task *take_task(struct queue *q)
{
	struct disk_task *t = STAILQ_FIRST(q);

	if (t)
		STAILQ_REMOVE_HEAD(q, of_queue);
	return t;
}

/* With the lock, which is released meanwhile. */
static void do_task(struct disk *d, struct disk_task *t)
{
	bool off = t->off;

	pthread_mutex_unlock(&d->lock);
	if (!off)
		t->work(t->arg);
	pthread_mutex_lock(&d->lock);
	if (STAILQ_EMPTY(&d->done))
		eventfd_write(d->fd, 1);
	STAILQ_INSERT_TAIL(&d->done, t, of_queue);
	pthread_cond_signal(&d->less);
}

static void *do_tasks(void *arg)
{
	struct disk *d = arg;
	struct disk_task *t;

	pthread_mutex_lock(&d->lock);
	while (!d->ends) {
		t = take_task(&d->todo);
		if (t) {
			d->queued--;
			do_task(d, t);
			continue;
		}
		d->idle++;
		pthread_cond_wait(&d->more, &d->lock);
		d->idle--;
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

struct disk *disk_new(void)
{
	struct disk *d = calloc(1, sizeof *d);

	if (!d)
		return NULL;
	d->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (d->fd < 0) {
		free(d);
		return NULL;
	}
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->more, NULL);
	pthread_cond_init(&d->less, NULL);
	STAILQ_INIT(&d->todo);
	STAILQ_INIT(&d->done);
	return d;
}

void disk_free(struct disk *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	d->ends = true;
	pthread_cond_broadcast(&d->more);
	pthread_mutex_unlock(&d->lock);
	for (unsigned i = 0; i < d->threads; i++)
		pthread_join(d->thread[i], NULL);
	pthread_cond_destroy(&d->more);
	pthread_cond_destroy(&d->less);
	pthread_mutex_destroy(&d->lock);
	close(d->fd);
	free(d);
}

int disk_fd(const struct disk *d)
{
	return d->fd;
}

bool disk_last(const struct disk *d)
{
	const uint64_t due = clock_ns() + DISK_LAST_S * NS_PER_S;
	struct pollfd p = { .fd = d->fd, .events = POLLIN };
	int n;

	do
		n = poll(&p, 1, clock_left_ms(due));
	while (n < 0 && errno == EINTR);
	return n > 0;
}

/* One thread more.  Signals are the main thread's. */
static void add_thread(struct disk *d)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	d->threads += !pthread_create(&d->thread[d->threads], NULL, do_tasks, d);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void disk_do(struct disk *d, struct disk_task *t)
{
	t->off = false;
	pthread_mutex_lock(&d->lock);
	d->held++;
	if (d->queued >= d->idle && d->threads < THREADS)
		add_thread(d);
	if (d->threads) {
		d->queued++;
		STAILQ_INSERT_TAIL(&d->todo, t, of_queue);
		pthread_cond_signal(&d->more);
	} else {
		do_task(d, t);
	}
	pthread_mutex_unlock(&d->lock);
}

void disk_call_off(struct disk *d, struct disk_task *t)
{
	pthread_mutex_lock(&d->lock);
	t->off = true;
	pthread_mutex_unlock(&d->lock);
}

struct disk_task *disk_take(struct disk *d, bool wait)
{
	struct disk_task *t;
	eventfd_t n;

	pthread_mutex_lock(&d->lock);
	while (wait && d->held && STAILQ_EMPTY(&d->done))
		pthread_cond_wait(&d->less, &d->lock);
	t = take_task(&d->done);
	d->held -= t != NULL;
	if (STAILQ_EMPTY(&d->done))
		eventfd_read(d->fd, &n);
	pthread_mutex_unlock(&d->lock);
	return t;
}
