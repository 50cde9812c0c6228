/* SPDX-License-Identifier: BSD-2-Clause */
/* Event channels of rdma_cm: a queue, and an eventfd that counts what is in it. */
#include "verbs/ud/vd_ud.h"
#include "verbs/cm/vd_event.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define STALE_MOST 128

/* An eventfd and no pipe: closing a pipe wakes whoever waits in rdma_get_cm_event. */
struct rdma_event_channel *vdi_rdma_create_event_channel(void)
{
	struct vd_process *p = vd_process();
	struct vd_evch *ch = p ? calloc(1, sizeof *ch) : NULL;

	if (!ch)
		return NULL;
	ch->p = p;
	ch->end = &ch->first;
	ch->ch.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (ch->ch.fd < 0) {
		free(ch);
		return NULL;
	}
	return &ch->ch;
}

/*
 * A thread that is in rdma_get_cm_event when its channel is destroyed waits for ever, and programs
 * like rping count on it.  It may as well be about to enter, so a channel outlives its end a while,
 * for that thread to find.  The lock is held.
 */
static void let_channel_go(struct vd_process *p, struct vd_evch *ch)
{
	const unsigned size = sizeof p->gone / sizeof *p->gone;
	struct vd_evch **slot = &p->gone[p->gone_count++ % size];

	free(*slot);
	*slot = ch;
}

VD_API void rdma_destroy_event_channel(struct rdma_event_channel *c)
{
	struct vd_evch *ch = vd_of(c, struct vd_evch, ch);

	if (!vd_mine(ch->p)) { /* the parent's, from before a fork */
		vd_close(ch->p, c->fd);
		return;
	}
	ddps_lock(&ch->p->lock);
	while (ch->first) {
		struct vd_event *e = ch->first;

		ch->first = e->next;
		free(e);
	}
	ch->end = &ch->first;
	close(__atomic_exchange_n(&c->fd, -1, __ATOMIC_SEQ_CST));
	let_channel_go(ch->p, ch);
	ddps_unlock(&ch->p->lock);
}

static void pause_forever(void)
{
	for (;;)
		pause();
}

static void fill_cm_event(struct vd_event *e, struct vd_id *id, struct vd_id *listen_id,
			  enum rdma_cm_event_type type, int status)
{
	e->id = listen_id ? listen_id : id;
	e->e.id = &id->id;
	e->e.listen_id = listen_id ? &listen_id->id : NULL;
	e->e.event = type;
	e->e.status = status;
}

struct vd_event *vd_event_new(struct vd_id *id, struct vd_id *listen_id,
			      enum rdma_cm_event_type type, int status)
{
	struct vd_event *e = calloc(1, sizeof *e);

	if (e)
		fill_cm_event(e, id, listen_id, type, status);
	return e;
}

int vd_event_keep(struct vd_id *id)
{
	if (!id->answer)
		id->answer = calloc(1, sizeof *id->answer);
	if (!id->end)
		id->end = calloc(1, sizeof *id->end);
	return id->answer && id->end ? 0 : ENOMEM;
}

struct vd_event *vd_event_kept(struct vd_id *id, struct vd_event **kept,
			       enum rdma_cm_event_type type, int status)
{
	struct vd_event *e = *kept ? *kept : calloc(1, sizeof *e);

	ddps_assert_held(&id->p->lock);
	*kept = NULL;
	if (e)
		fill_cm_event(e, id, NULL, type, status);
	return e;
}

int vd_event_queue(struct vd_event *e)
{
	struct vd_evch *ch = vd_of(e->id->id.channel, struct vd_evch, ch);
	uint64_t one = 1;

	ddps_assert_held(&e->id->p->lock);
	if (!vd_mine(ch->p)) {
		free(e);
		return EINVAL; /* the parent's, from before a fork */
	}
	*ch->end = e;
	ch->end = &e->next;
	return write(ch->ch.fd, &one, sizeof one) == sizeof one ? 0 : errno;
}

static void add_param(struct vd_event *e, const struct rdma_conn_param *conn)
{
	if (!conn)
		return;
	e->e.param.conn = *conn;
	if (conn->private_data_len)
		memcpy(e->pd, conn->private_data, conn->private_data_len);
	e->e.param.conn.private_data = conn->private_data_len ? e->pd : NULL;
}

int vd_event_post(struct vd_id *id, struct vd_id *listen_id, enum rdma_cm_event_type type,
		  int status, const struct rdma_conn_param *conn)
{
	struct vd_event *e = vd_event_new(id, listen_id, type, status);

	ddps_assert_held(&id->p->lock);
	if (!e)
		return ENOMEM;
	add_param(e, conn);
	return vd_event_queue(e);
}

void vd_event_tell(struct vd_id *id, struct vd_event **kept, enum rdma_cm_event_type type,
		   int status, const struct rdma_conn_param *conn)
{
	struct vd_event *e = vd_event_kept(id, kept, type, status);

	ddps_assert_held(&id->p->lock);
	if (!e)
		return;
	add_param(e, conn);
	vd_event_queue(e);
}

void vd_event_drop(struct vd_id *id)
{
	struct vd_evch *ch = vd_of(id->id.channel, struct vd_evch, ch);
	struct vd_event **at = &ch->first;

	ddps_assert_held(&id->p->lock);
	while (*at) {
		struct vd_event *e = *at;

		if (e->e.id != &id->id && e->id != id) {
			at = &e->next;
			continue;
		}
		*at = e->next;
		if (e->e.id != &id->id) /* a request's identifier that nobody has seen */
			vd_id_free(vd_of(e->e.id, struct vd_id, id));
		free(e);
		vd_eventfd_take(ch->ch.fd); /* its count */
	}
	ch->end = &ch->first;
	while (*ch->end)
		ch->end = &(*ch->end)->next;
}

/* Of a request whose peer has left before the program looked. */
static bool is_stale(const struct vd_event *e)
{
	return e->e.event == RDMA_CM_EVENT_CONNECT_REQUEST &&
	       vd_of(e->e.id, struct vd_id, id)->state == VD_ID_DOWN;
}

void vd_event_limit_stale(struct vd_id *id)
{
	struct vd_evch *ch = vd_of(id->id.channel, struct vd_evch, ch);
	struct vd_event **oldest = NULL, *e;
	unsigned n = 0;

	ddps_assert_held(&id->p->lock);
	for (struct vd_event **at = &ch->first; *at; at = &(*at)->next)
		if (is_stale(*at) && !n++)
			oldest = at;
	if (n <= STALE_MOST)
		return;
	e = *oldest;
	*oldest = e->next; /* there is one: the others come behind it */
	vd_id_free(vd_of(e->e.id, struct vd_id, id));
	free(e);
	vd_eventfd_take(ch->ch.fd); /* its count */
}

void vd_event_move(struct vd_id *id, struct rdma_event_channel *c)
{
	struct vd_evch *from = vd_of(id->id.channel, struct vd_evch, ch),
		       *to = vd_of(c, struct vd_evch, ch);
	struct vd_event **at = &from->first, *e;
	uint64_t moved = 0;

	ddps_assert_held(&id->p->lock);
	if (from == to)
		return;
	while ((e = *at)) {
		if (e->id != id) {
			at = &e->next;
			continue;
		}
		*at = e->next;
		e->next = NULL;
		e->e.id->channel =
			c; /* also of a request's identifier, which follows its listener */
		*to->end = e;
		to->end = &e->next;
		vd_eventfd_take(from->ch.fd);
		moved++;
	}
	from->end = at;
	if (moved && write(to->ch.fd, &moved, sizeof moved) < 0)
		return; /* the program has closed it */
}

bool vd_event_waits(const struct vd_id *id)
{
	ddps_assert_held(&id->p->lock);
	return vd_of(id->id.channel, struct vd_evch, ch)->first;
}

int vdi_rdma_get_cm_event(struct rdma_event_channel *c, struct rdma_cm_event **event)
{
	struct vd_evch *ch = vd_of(c, struct vd_evch, ch);
	struct vd_process *p = ch->p;
	struct vd_event *e = NULL;
	uint64_t one;
	ssize_t n;

	if (!vd_mine(p))
		return vd_fail(EINVAL); /* the parent's, from before a fork: so are its events */
	while (!e) {
		/* Blocks unless the program set O_NONBLOCK on the descriptor. */
		n = read(__atomic_load_n(&c->fd, __ATOMIC_SEQ_CST), &one, sizeof one);
		if (n < 0 && errno == EBADF && __atomic_load_n(&c->fd, __ATOMIC_SEQ_CST) < 0)
			pause_forever(); /* destroyed */
		if (n != sizeof one)
			return -1;
		ddps_lock(&p->lock);
		e = ch->first;
		if (e) {
			ch->first = e->next;
			if (!ch->first)
				ch->end = &ch->first;
			e->id->unacked++;
		}
		ddps_unlock(&p->lock);
	}
	*event = &e->e;
	return 0;
}

VD_API int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct vd_event *e = vd_of(event, struct vd_event, e);
	struct vd_process *p;

	if (!event || e->id->p->pid != getpid())
		return vd_fail(EINVAL);
	p = e->id->p;
	ddps_lock(&p->lock);
	e->id->unacked--;
	pthread_cond_broadcast(&e->id->acked);
	ddps_unlock(&p->lock);
	free(e);
	return 0;
}

VD_API const char *rdma_event_str(enum rdma_cm_event_type event)
{
	static const char *const names[] = {
		[RDMA_CM_EVENT_ADDR_RESOLVED] = "RDMA_CM_EVENT_ADDR_RESOLVED",
		[RDMA_CM_EVENT_ADDR_ERROR] = "RDMA_CM_EVENT_ADDR_ERROR",
		[RDMA_CM_EVENT_ROUTE_RESOLVED] = "RDMA_CM_EVENT_ROUTE_RESOLVED",
		[RDMA_CM_EVENT_ROUTE_ERROR] = "RDMA_CM_EVENT_ROUTE_ERROR",
		[RDMA_CM_EVENT_CONNECT_REQUEST] = "RDMA_CM_EVENT_CONNECT_REQUEST",
		[RDMA_CM_EVENT_CONNECT_RESPONSE] = "RDMA_CM_EVENT_CONNECT_RESPONSE",
		[RDMA_CM_EVENT_CONNECT_ERROR] = "RDMA_CM_EVENT_CONNECT_ERROR",
		[RDMA_CM_EVENT_UNREACHABLE] = "RDMA_CM_EVENT_UNREACHABLE",
		[RDMA_CM_EVENT_REJECTED] = "RDMA_CM_EVENT_REJECTED",
		[RDMA_CM_EVENT_ESTABLISHED] = "RDMA_CM_EVENT_ESTABLISHED",
		[RDMA_CM_EVENT_DISCONNECTED] = "RDMA_CM_EVENT_DISCONNECTED",
		[RDMA_CM_EVENT_DEVICE_REMOVAL] = "RDMA_CM_EVENT_DEVICE_REMOVAL",
		[RDMA_CM_EVENT_MULTICAST_JOIN] = "RDMA_CM_EVENT_MULTICAST_JOIN",
		[RDMA_CM_EVENT_MULTICAST_ERROR] = "RDMA_CM_EVENT_MULTICAST_ERROR",
		[RDMA_CM_EVENT_ADDR_CHANGE] = "RDMA_CM_EVENT_ADDR_CHANGE",
		[RDMA_CM_EVENT_TIMEWAIT_EXIT] = "RDMA_CM_EVENT_TIMEWAIT_EXIT",
	};

	return (size_t)event < sizeof names / sizeof *names ? names[event] : "UNKNOWN EVENT";
}

/* A synchronous identifier keeps its latest event until the next call. */
int vd_sync(struct vd_id *id, int ret)
{
	struct rdma_cm_event *e;

	if (ret || !id->sync)
		return ret;
	if (id->id.event) {
		rdma_ack_cm_event(id->id.event);
		id->id.event = NULL;
	}
	if (vdi_rdma_get_cm_event(id->id.channel, &e))
		return -1;
	/* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): vd_fail is never 0 */
	id->id.event = e;
	if (!e->status)
		return 0;
	if (e->event ==
	    RDMA_CM_EVENT_REJECTED) /* whatever the reason, which may be no errno value */
		return vd_fail(ECONNREFUSED);
	return vd_fail(abs(e->status)); /* a listener of datagrams answers by a number above 0 */
}
