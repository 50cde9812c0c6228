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
	STAILQ_INIT(&ch->events);
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

	ddps_assert_held(&p->lock);
	free(*slot);
	*slot = ch;
}

VD_API void rdma_destroy_event_channel(struct rdma_event_channel *c)
{
	struct vd_evch *ch = vd_of(c, struct vd_evch, ch);
	struct vd_event *e;

	if (!vd_mine(ch->p)) { /* the parent's, from before a fork */
		vd_close(ch->p, c->fd);
		return;
	}
	ddps_lock(&ch->p->lock);
	while ((e = STAILQ_FIRST(&ch->events))) {
		STAILQ_REMOVE_HEAD(&ch->events, link);
		free(e);
	}
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
	STAILQ_INSERT_TAIL(&ch->events, e, link);
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
	struct vd_event *next;

	ddps_assert_held(&id->p->lock);
	for (struct vd_event *e = STAILQ_FIRST(&ch->events); e; e = next) {
		next = STAILQ_NEXT(e, link);
		if (e->e.id != &id->id && e->id != id)
			continue;
		STAILQ_REMOVE(&ch->events, e, vd_event, link);
		if (e->e.id != &id->id) /* a request's identifier that nobody has seen */
			vd_id_free(vd_of(e->e.id, struct vd_id, id));
		free(e);
		vd_eventfd_take(ch->ch.fd); /* its count */
	}
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
	struct vd_event *oldest = NULL, *e;
	unsigned n = 0;

	ddps_assert_held(&id->p->lock);
	STAILQ_FOREACH(e, &ch->events, link)
		if (is_stale(e) && !n++)
			oldest = e;
	if (n <= STALE_MOST)
		return;
	STAILQ_REMOVE(&ch->events, oldest, vd_event, link);
	vd_id_free(vd_of(oldest->e.id, struct vd_id, id));
	free(oldest);
	vd_eventfd_take(ch->ch.fd); /* its count */
}

void vd_event_move(struct vd_id *id, struct rdma_event_channel *c)
{
	struct vd_evch *from = vd_of(id->id.channel, struct vd_evch, ch),
		       *to = vd_of(c, struct vd_evch, ch);
	struct vd_event *next;
	uint64_t moved = 0;

	ddps_assert_held(&id->p->lock);
	if (from == to)
		return;
	for (struct vd_event *e = STAILQ_FIRST(&from->events); e; e = next) {
		next = STAILQ_NEXT(e, link);
		if (e->id != id)
			continue;
		STAILQ_REMOVE(&from->events, e, vd_event, link);
		e->e.id->channel =
			c; /* also of a request's identifier, which follows its listener */
		STAILQ_INSERT_TAIL(&to->events, e, link);
		vd_eventfd_take(from->ch.fd);
		moved++;
	}
	if (moved && write(to->ch.fd, &moved, sizeof moved) < 0)
		return; /* the program has closed it */
}

bool vd_event_waits(const struct vd_id *id)
{
	ddps_assert_held(&id->p->lock);
	return !STAILQ_EMPTY(&vd_of(id->id.channel, struct vd_evch, ch)->events);
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
		e = STAILQ_FIRST(&ch->events);
		if (e) {
			STAILQ_REMOVE_HEAD(&ch->events, link);
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

/* ---- vd callers ---- */

#define PLACES 16 /* for one queue pair ... */
#define OF_ONE 4  /* ... of one address */

bool vd_callers_add(struct vd_callers *list, struct ddps_request *request, uint32_t number,
		    struct in_addr addr)
{
	struct vd_caller *c;
	unsigned n = 0, of_one = 0;

	STAILQ_FOREACH(c, list, link) {
		n++;
		if (c->addr.s_addr != addr.s_addr)
			continue;
		of_one++;
		if (c->number == number)
			return false;
	}
	if (n == PLACES || of_one == OF_ONE)
		return false;
	c = malloc(sizeof *c);
	if (!c)
		return false;
	*c = (struct vd_caller){ .request = request, .number = number, .addr = addr };
	STAILQ_INSERT_TAIL(list, c, link);
	return true;
}

struct ddps_request *vd_callers_take(struct vd_callers *list)
{
	struct vd_caller *c = STAILQ_FIRST(list);
	struct ddps_request *request = c->request;

	STAILQ_REMOVE_HEAD(list, link);
	free(c);
	return request;
}

void vd_callers_forget(struct vd_callers *list, const struct ddps_request *request)
{
	struct vd_caller *c;

	STAILQ_FOREACH(c, list, link)
		if (c->request == request)
			break;
	if (!c)
		return;
	STAILQ_REMOVE(list, c, vd_caller, link);
	free(c);
}
