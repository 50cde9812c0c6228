/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion channels: a queue of events, and an eventfd that counts them.  One that waits for an
 * event waits in read(), as with an adapter: a stop of the process, a debugger or a handler that was
 * installed with SA_RESTART does not end it, another handler does (EINTR).
 */
#include "verbs/vd.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct vd_channel *channel_of(struct ibv_comp_channel *c)
{
	return vd_of(c, struct vd_channel, c);
}

static struct vd_process *get_channel_process(const struct ibv_comp_channel *c)
{
	return vd_of(c->context, struct vd_context, v.context)->p;
}

struct ibv_comp_channel *vdi_ibv_create_comp_channel(struct ibv_context *ctx)
{
	struct vd_channel *ch = calloc(1, sizeof *ch);

	if (!ch)
		return NULL;
	ch->c.context = ctx;
	TAILQ_INIT(&ch->told);
	ch->holders = 1;
	ch->c.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	if (ch->c.fd < 0) {
		free(ch);
		return NULL;
	}
	ddps_mutex_init(&ch->lock, DDPS_LOCK_CHANNEL);
	return &ch->c;
}

static void hold_channel(struct vd_channel *ch)
{
	__atomic_add_fetch(&ch->holders, 1, __ATOMIC_RELAXED);
}

static void release_channel(void *arg)
{
	struct vd_channel *ch = arg;

	if (__atomic_sub_fetch(&ch->holders, 1, __ATOMIC_ACQ_REL))
		return;
	pthread_mutex_destroy(&ch->lock.m);
	free(ch);
}

VD_API int ibv_destroy_comp_channel(struct ibv_comp_channel *c)
{
	if (__atomic_load_n(&c->refcnt, __ATOMIC_RELAXED))
		return vd_refuse(EBUSY);
	ddps_lock(&channel_of(c)->lock);
	channel_of(c)->gone = true;
	vd_close(get_channel_process(c), __atomic_exchange_n(&c->fd, -1, __ATOMIC_SEQ_CST));
	ddps_unlock(&channel_of(c)->lock);
	release_channel(channel_of(c));
	return 0;
}

/* ---- queues ---- */

void vd_channel_tell(void *user)
{
	struct vd_cq *cq = user;
	struct vd_channel *ch = channel_of(cq->cq.channel);
	uint64_t one = 1;

	if (!vd_mine(get_channel_process(&ch->c)))
		return; /* its number is another file's */
	ddps_lock(&ch->lock);
	/* Who reads the count finds the event: that one takes the lock, too. */
	if (write(ch->c.fd, &one, sizeof one) == sizeof one && !cq->told++)
		TAILQ_INSERT_TAIL(&ch->told, cq, told_link);
	ddps_unlock(&ch->lock);
}

void vd_channel_forget(struct vd_cq *cq)
{
	struct vd_channel *ch = channel_of(cq->cq.channel);

	ddps_lock(&ch->lock);
	if (cq->told)
		TAILQ_REMOVE(&ch->told, cq, told_link);
	for (; cq->told; cq->told--)
		vd_eventfd_take(ch->c.fd); /* somebody who waits may have taken it */
	ddps_unlock(&ch->lock);
}

/* Counted as fetched before the lock is released: from here on the queue waits for the
 * acknowledgement with its end.  NULL: there is none, since its queue is gone. */
static struct vd_cq *fetch_cq_event(struct vd_channel *ch, bool *gone)
{
	struct vd_cq *cq;

	ddps_lock(&ch->lock);
	cq = TAILQ_FIRST(&ch->told);
	if (cq) {
		TAILQ_REMOVE(&ch->told, cq, told_link);
		if (--cq->told) /* the others first */
			TAILQ_INSERT_TAIL(&ch->told, cq, told_link);
		ddps_lock(&cq->acks);
		cq->taken++;
		ddps_unlock(&cq->acks);
	}
	*gone = ch->gone;
	ddps_unlock(&ch->lock);
	return cq;
}

static struct vd_cq *await_cq_event(struct vd_channel *ch)
{
	struct vd_cq *cq;
	bool gone;

	do {
		uint64_t one;

		/* Blocks, or fails with EAGAIN, as the program set the descriptor. */
		if (read(__atomic_load_n(&ch->c.fd, __ATOMIC_SEQ_CST), &one, sizeof one) !=
		    sizeof one)
			return NULL;
		cq = fetch_cq_event(ch, &gone);
	} while (!cq && !gone);
	if (!cq)
		errno = EBADF; /* destroyed meanwhile */
	return cq;
}

int vdi_ibv_get_cq_event(struct ibv_comp_channel *c, struct ibv_cq **ibcq, void **context)
{
	struct vd_channel *ch = channel_of(c);
	struct vd_cq *cq;

	if (!vd_mine(get_channel_process(c)))
		return vd_fail(EINVAL); /* the parent's, from before a fork: so are its events */
	hold_channel(ch);
	pthread_cleanup_push(release_channel, ch); /* the thread may be cancelled in there */
	cq = await_cq_event(ch);
	pthread_cleanup_pop(1);
	if (!cq)
		return -1;
	*ibcq = ibv_cq_ex_to_cq(&cq->cq);
	*context = cq->cq.cq_context;
	return 0;
}

VD_API void ibv_ack_cq_events(struct ibv_cq *ibcq, unsigned int n)
{
	struct vd_cq *cq = vd_of(ibcq, struct vd_cq, cq);

	if (vd_process_of(ibcq->context)->pid != getpid())
		return;
	ddps_lock(&cq->acks);
	cq->cq.comp_events_completed += n;
	pthread_cond_signal(&cq->cq.cond);
	ddps_unlock(&cq->acks);
}
