/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections of a world of verbs: how they begin, and how they end.  In a poor world a call may
 * fail.  Then the program gives the connection up, and frees what it has of it.
 */
#include "sim/verbs_world.h"
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>

#define SEC	 1000000000ull
#define TRIES	 20u	    /* for a listener */
#define PATIENCE (20 * SEC) /* nobody has to wait until a time is up */

static struct ibv_qp_init_attr attributes(struct end *e)
{
	return (struct ibv_qp_init_attr){ .qp_type = IBV_QPT_RC,
					  .cap = { DEPTH, DEPTH, 2, 2, 0 },
					  .qp_context = e,
					  .send_cq = e->cq,
					  .recv_cq = e->cq,
					  .srq = e->srq };
}

static bool shared_queue(struct end *e)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = DEPTH, .max_sge = 2 } };

	return tried(e->pd = ibv_alloc_pd(e->cm->verbs)) &&
	       tried(e->srq = ibv_create_srq(e->pd, &srq));
}

static bool equip_verbs_connect(struct end *e)
{
	struct ibv_qp_init_attr attr;

	if ((w.sleeps && !tried(e->channel = ibv_create_comp_channel(e->cm->verbs))) ||
	    !tried(e->cq = ibv_create_cq(e->cm->verbs, 4 * DEPTH, e, e->channel, 0)) ||
	    (w.shares && !shared_queue(e)))
		return false;
	attr = attributes(e);
	if (!tried(!rdma_create_qp(e->cm, e->pd, &attr)) ||
	    !tried(e->mr = ibv_reg_mr(e->cm->qp->pd, e, sizeof *e, RIGHTS)))
		return false;
	if (w.windows &&
	    !tried(e->mw = ibv_alloc_mw(e->cm->qp->pd,
					w.windows == WINDOWS_1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2)))
		return false;
	for (unsigned n = 0; n < MSGS; n++)
		for (unsigned i = 0; i < MAX; i++)
			e->out[n][i] = octet(e, n, i);
	return true;
}

void end_free(struct end *e)
{
	if (e->cm)
		rdma_destroy_qp(e->cm);
	check(!e->srq || !ibv_destroy_srq(e->srq), "destroy the shared queue");
	check(!e->mw || !ibv_dealloc_mw(e->mw), "free the window");
	check(!e->mr || !ibv_dereg_mr(e->mr), "deregister");
	check(!e->pd || !ibv_dealloc_pd(e->pd), "deallocate the protection domain");
	check(!e->cq || !ibv_destroy_cq(e->cq), "destroy the queue");
	check(!e->channel || !ibv_destroy_comp_channel(e->channel), "destroy the channel");
	check(!e->cm || !rdma_destroy_id(e->cm), "destroy the identifier");
	e->cm = NULL;
	e->srq = NULL;
	e->mw = NULL;
	e->mr = NULL;
	e->pd = NULL;
	e->cq = NULL;
	e->channel = NULL;
}

/* One end of it could not go on; the other one may not even have been asked. */
static void give_up(struct end *e)
{
	if (!e->gone)
		w.t->n[T_GIVEN_UP]++;
	for (unsigned i = 0; i < 2; i++) {
		e = &w.end[e->pair][i];
		e->gone = e->dead = e->disconnected = true;
		end_free(e);
	}
}

static void route(struct end *e)
{
	struct rdma_conn_param conn = { .responder_resources = 8, .initiator_depth = 8 };
	uint8_t pair = (uint8_t)e->pair;

	conn.private_data = &pair;
	conn.private_data_len = 1;
	e->lost = !equip_verbs_connect(e) || !tried(!rdma_connect(e->cm, &conn));
}

/* Whose association was refused without memory, and set up by a double of its packet, asks again. */
static struct end *asked_again(const struct rdma_cm_event *ev, struct end *e)
{
	check(w.poor == POOR_EARLY && w.sctp && kern.n.doubled, "it asks again");
	ev->id->context = NULL;
	w.again = ev->id;
	e->lost = true;
	return e;
}

static struct end *take_verbs_request(const struct rdma_cm_event *ev)
{
	struct rdma_conn_param conn = { .responder_resources = 8, .initiator_depth = 8 };
	uint8_t pair = *(const uint8_t *)ev->param.conn.private_data;
	struct end *e = &w.end[pair % PAIRS][1];

	check(pair < w.npairs, "private data");
	if (e->cm)
		return asked_again(ev, e);
	e->cm = ev->id;
	ev->id->context = e;
	e->lost = e->gone || !equip_verbs_connect(e) || !tried(!rdma_accept(ev->id, &conn));
	return e;
}

/* Where packets of a set-up are lost, the next one comes after 1, 2, 4, 8 s: then its time is up. */
static bool unlucky(const struct rdma_cm_event *ev)
{
	return w.sctp && ev->event == RDMA_CM_EVENT_UNREACHABLE && ev->status == -ETIMEDOUT &&
	       kern.n.lost + kern.n.again > 3;
}

/* Returns whose it was, or NULL. */
static struct end *serve_verbs_connect(const struct rdma_cm_event *ev)
{
	struct end *e = ev->id->context;

	switch (ev->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		e->lost = !tried(!rdma_resolve_route(ev->id, 1000)) &&
			  !tried(!rdma_resolve_route(ev->id, 1000));
		return e;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		route(e);
		return e;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return take_verbs_request(ev);
	case RDMA_CM_EVENT_ESTABLISHED:
		check(!e->up, "established twice");
		e->up = true;
		return e;
	case RDMA_CM_EVENT_DISCONNECTED:
		check(!e->dead, "told twice that it is over");
		e->dead = true;
		if (!e->left)
			user_told(e);
		return e;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return e;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		check((w.poor == POOR_EARLY && !e->up && ev->status < 0) || unlucky(ev), "%s, %d",
		      rdma_event_str(ev->event), ev->status);
		e->lost = true;
		return e;
	default:
		check(false, "%s, %d", rdma_event_str(ev->event), ev->status);
		return NULL;
	}
}

static void next_verbs_connect_event(void)
{
	struct rdma_cm_event *ev = NULL;
	struct end *e;

	check(!rdma_get_cm_event(w.ch, &ev), "no event");
	if (!ev)
		return;
	e = serve_verbs_connect(ev);
	rdma_ack_cm_event(ev);
	if (e && e->lost && !w.failed)
		give_up(e);
	check(!w.again || !rdma_destroy_id(w.again), "destroy a second request");
	w.again = NULL;
}

static void next_async(void)
{
	struct ibv_async_event ev;
	struct end *e;

	check(!ibv_get_async_event(w.listen->verbs, &ev), "no asynchronous event");
	if (w.failed)
		return;
	e = ev.element.qp->qp_context;
	if (ev.event_type == IBV_EVENT_QP_LAST_WQE_REACHED) {
		check(e->srq && !e->last_wqe, "told twice that it takes no receive any more");
		e->last_wqe = true;
	} else {
		check(ev.event_type == IBV_EVENT_QP_FATAL ||
			      ev.event_type == IBV_EVENT_QP_ACCESS_ERR,
		      "an event of kind %d", ev.event_type);
		check(!e->fatal, "told twice that it failed");
		e->fatal = true;
	}
	ibv_ack_async_event(&ev);
}

void events(void)
{
	struct pollfd p = { w.ch->fd, POLLIN, 0 };
	struct pollfd async = { w.listen->verbs->async_fd, POLLIN, 0 };

	while (!w.failed && poll(&p, 1, 0) == 1)
		next_verbs_connect_event();
	while (!w.failed && poll(&async, 1, 0) == 1)
		next_async();
}

static struct sockaddr_in make_verbs_connect_address(void)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(7174),
				     .sin_addr.s_addr = htonl(0x0a000001) };
}

static bool begin_to_listen(void)
{
	struct sockaddr_in a = make_verbs_connect_address();

	if (!tried(w.ch = rdma_create_event_channel()))
		return false;
	if (tried(!rdma_create_id(w.ch, &w.listen, NULL, RDMA_PS_TCP))) {
		if (tried(!rdma_bind_addr(w.listen, (struct sockaddr *)&a)) &&
		    tried(!rdma_listen(w.listen, 8)))
			return true;
		rdma_destroy_id(w.listen);
	}
	rdma_destroy_event_channel(w.ch);
	return false;
}

/* Where a connection is given up, that is all over. */
static bool is_all_verbs_connect_there(void)
{
	for (unsigned i = 0; i < w.npairs; i++)
		if (!w.end[i][0].gone && (!w.end[i][0].up || !w.end[i][1].up))
			return false;
	return true;
}

void connect_all(void)
{
	struct sockaddr_in a = make_verbs_connect_address();
	uint64_t start;
	unsigned tries = 0;

	while (!begin_to_listen() && !w.failed)
		if (tries++ == TRIES)
			poor_stop();
	poor_note();
	start = kern.now;
	for (unsigned i = 0; i < w.npairs && !w.failed; i++) {
		struct end *e = &w.end[i][0];

		if (!tried(!rdma_create_id(w.ch, &e->cm, e, RDMA_PS_TCP)) ||
		    (!tried(!rdma_resolve_addr(e->cm, NULL, (struct sockaddr *)&a, 1000)) &&
		     !tried(!rdma_resolve_addr(e->cm, NULL, (struct sockaddr *)&a, 1000))))
			give_up(e);
	}
	while (!w.failed && !is_all_verbs_connect_there())
		next_verbs_connect_event();
	check(kern.now - start < PATIENCE, "connections take %u s",
	      (unsigned)((kern.now - start) / SEC));
	for (unsigned i = 0; i < w.npairs; i++) {
		w.t->n[T_CONNECTIONS] += !w.end[i][0].gone;
		w.t->n[T_SCTP] += w.sctp && !w.end[i][0].gone;
	}
}

void end_over(struct end *e)
{
	struct ibv_qp_attr err = { .qp_state = IBV_QPS_ERR };

	if (!w.tidy && draw_verbs(2))
		e->disconnected = tried(!ibv_modify_qp(e->cm->qp, &err, IBV_QP_STATE));
	else
		e->disconnected = tried(!rdma_disconnect(e->cm));
}

/*
 * What nobody has asked for before comes no sooner than the peer's answer; and when that comes, the queue pair
 * is on its way out.  Who has acknowledged all events does not wait for another one then.
 */
void end_leave(struct end *e)
{
	const uint64_t answer = kern.now + 2 * kern.delay;
	bool rests;

	check(!rdma_disconnect(e->cm), "disconnect");
	e->disconnected = true;
	rests = e->channel && !e->nsq && user_at_rest(e) && !get_other_end(e)->disconnected &&
		!e->dead && kern.now < answer;
	rdma_destroy_qp(e->cm);
	check(!rests || !user_woken(e), "a queue pair that goes is told of");
	e->left = true;
	e->nsq = e->nrq = 0;
	w.t->n[T_LEFT]++;
}
