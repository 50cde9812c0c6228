/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What several threads do with the drop-in: its channels, and what waits for events when it goes.
 * Behind the calls there are the library's thread and the one that hands out events.
 */
#include "sched/sides.h"
#include "sim/kern.h"
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>

#define QPS 2u

static struct {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *cc;
	struct ibv_srq *srq;
	struct ibv_cq *cq[QPS];
	struct ibv_qp *qp[QPS];
	struct rdma_event_channel *ch[2];
	struct rdma_cm_id *id[2];
	/* What a thread has been given and has not given back, and what is no more. */
	unsigned held[QPS], given;
	bool gone[QPS];
} v;

static void make_verbs(void)
{
	struct ibv_device **list;

	wrong = NULL;
	v = (typeof(v)){ 0 };
	kern_start(1);
	kern.locks_only = true;
	setenv("DDPSESS_TRANSPORT", "tcp", 1);
	setenv("DDPSESS_WATCH", "off", 1);
	list = ibv_get_device_list(NULL);
	v.ctx = ibv_open_device(*list);
	ibv_free_device_list(list);
	want(v.ctx);
	v.pd = v.ctx ? ibv_alloc_pd(v.ctx) : NULL;
	want(v.pd);
}

/* Queues that tell the channel, and a queue pair with a receive for each. */
static void make_queues(unsigned n)
{
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;

	v.cc = ibv_create_comp_channel(v.ctx);
	want(v.cc);
	for (unsigned i = 0; i < n && !wrong; i++) {
		struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };

		v.cq[i] = ibv_create_cq(v.ctx, 8, &v.cq[i], v.cc, 0);
		want(v.cq[i] && !ibv_req_notify_cq(v.cq[i], 0));
		attr.send_cq = attr.recv_cq = v.cq[i];
		attr.srq = v.srq;
		v.qp[i] = ibv_create_qp(v.pd, &attr);
		want(v.qp[i]);
		if (!v.srq)
			want(!ibv_post_recv(v.qp[i], &wr, &bad));
	}
}

/* Its receive completes, which is an event of its queue. */
static void flush_sched_verbs_worlds(unsigned i)
{
	struct ibv_qp_attr err = { .qp_state = IBV_QPS_ERR };

	want(v.qp[i] && !ibv_modify_qp(v.qp[i], &err, IBV_QP_STATE));
}

static void flush_0(void)
{
	flush_sched_verbs_worlds(0);
}

static void flush_both(void)
{
	flush_sched_verbs_worlds(0);
	flush_sched_verbs_worlds(1);
}

/* An event of a queue that is there, as long as it is not acknowledged. */
static unsigned get_event(void)
{
	struct ibv_cq *cq = NULL;
	void *user = NULL;
	unsigned i;

	want(!ibv_get_cq_event(v.cc, &cq, &user));
	if (wrong)
		return 0;
	i = (unsigned)((struct ibv_cq **)user - v.cq);
	want(i < QPS && !v.gone[i]);
	sched_point();
	want(!v.gone[i]);
	v.given++;
	ibv_ack_cq_events(cq, 1);
	return i;
}

static void get_one_event(void)
{
	get_event();
}

static void get_until_last(void)
{
	while (!wrong && get_event() != 1)
		;
}

static void destroy_first_then_tell(void)
{
	want(!ibv_destroy_qp(v.qp[0]));
	want(!ibv_destroy_cq(v.cq[0]));
	v.gone[0] = true;
	flush_sched_verbs_worlds(1);
}

/* As programs do it: arm, look once more, sleep. */
static void arm_look_sleep(void)
{
	struct ibv_wc wc = { .wr_id = 0 };

	while (!wrong) {
		want(!ibv_req_notify_cq(v.cq[0], 0));
		if (ibv_poll_cq(v.cq[0], 1, &wc) == 1)
			break;
		get_event();
	}
	want(wc.wr_id == 1 && wc.status == IBV_WC_WR_FLUSH_ERR);
}

/* ---- asynchronous events ---- */

static void get_async_until_last(void)
{
	struct ibv_async_event e;
	unsigned i = 0;

	while (!wrong && i != 1) {
		want(!ibv_get_async_event(v.ctx, &e));
		want(e.event_type == IBV_EVENT_QP_LAST_WQE_REACHED);
		for (i = 0; i < QPS && v.qp[i] != e.element.qp; i++)
			;
		want(i < QPS && !v.gone[i]);
		sched_point();
		want(i < QPS && !v.gone[i]);
		ibv_ack_async_event(&e);
	}
}

static void destroy_first_pair_then_tell(void)
{
	want(!ibv_destroy_qp(v.qp[0]));
	v.gone[0] = true;
	flush_sched_verbs_worlds(1);
}

/* ---- identifiers ---- */

static void make_ids(unsigned n)
{
	for (unsigned i = 0; i < 2; i++) {
		v.ch[i] = rdma_create_event_channel();
		want(v.ch[i]);
	}
	for (unsigned i = 0; i < n; i++)
		want(!rdma_create_id(v.ch[0], &v.id[i], NULL, RDMA_PS_TCP));
}

static void resolve(unsigned i)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(7174),
				  .sin_addr.s_addr = htonl(0x0a000002) };

	want(!rdma_resolve_addr(v.id[i], NULL, (struct sockaddr *)&to, 1000));
}

static unsigned get_cm(struct rdma_event_channel *ch)
{
	struct rdma_cm_event *e = NULL;
	unsigned i;

	want(!rdma_get_cm_event(ch, &e));
	if (wrong)
		return 0;
	want(e->event == RDMA_CM_EVENT_ADDR_RESOLVED && !e->status);
	for (i = 0; i < 2 && v.id[i] != e->id; i++)
		;
	want(i < 2 && !v.gone[i] && e->id->channel == ch);
	sched_point();
	want(i < 2 && !v.gone[i] && e->id->channel == ch);
	want(!rdma_ack_cm_event(e));
	return i;
}

static void get_cm_until_last(void)
{
	while (!wrong && get_cm(v.ch[0]) != 1)
		;
}

static void destroy_first_id_then_tell(void)
{
	want(!rdma_destroy_id(v.id[0]));
	v.gone[0] = true;
	resolve(1);
}

static void resolve_0(void)
{
	resolve(0);
}

static void move_then_resolve(void)
{
	want(!rdma_migrate_id(v.id[0], v.ch[1]));
	resolve(1); /* whoever waits at the old channel may have that */
}

static void move_0(void)
{
	want(!rdma_migrate_id(v.id[0], v.ch[1]));
}

/* Either channel's: that of the move is seen once. */
static unsigned moved_seen;

static void get_from_old(void)
{
	while (!wrong && get_cm(v.ch[0]) != 1)
		moved_seen++;
}

static void get_from_new(void)
{
	want(get_cm(v.ch[1]) == 0);
	moved_seen++;
}

/* ---- worlds: what is to be reported has happened when the threads begin, so that one preemption is enough ---- */

static const char *two_get(void)
{
	make_verbs();
	make_queues(2);
	RUN(get_one_event, get_one_event, flush_both);
	want(v.given == 2);
	return wrong;
}

static const char *queue_goes(void)
{
	make_verbs();
	make_queues(2);
	flush_sched_verbs_worlds(0);
	RUN(get_until_last, destroy_first_then_tell);
	return wrong;
}

static const char *look_and_sleep(void)
{
	make_verbs();
	make_queues(1);
	RUN(arm_look_sleep, flush_0);
	return wrong;
}

static const char *pair_goes(void)
{
	struct ibv_srq_init_attr srq = { .attr = { 4, 1, 0 } };

	make_verbs();
	v.srq = ibv_create_srq(v.pd, &srq);
	want(v.srq);
	make_queues(2);
	flush_sched_verbs_worlds(0);
	RUN(get_async_until_last, destroy_first_pair_then_tell);
	return wrong;
}

static const char *id_goes(void)
{
	make_verbs();
	make_ids(2);
	resolve(0);
	RUN(get_cm_until_last, destroy_first_id_then_tell);
	return wrong;
}

static const char *id_moves(void)
{
	make_verbs();
	make_ids(2);
	moved_seen = 0;
	resolve(0);
	RUN(get_from_old, move_then_resolve);
	/* Whatever nobody had taken moved along. */
	if (!moved_seen)
		get_from_new();
	want(moved_seen == 1);
	return wrong;
}

static const char *id_moves_beside_event(void)
{
	make_verbs();
	make_ids(1);
	moved_seen = 0;
	RUN(get_from_new, resolve_0, move_0);
	return wrong;
}

const struct sched_world verbs_worlds[] = {
	{ .name = "drop-in: a queue goes beside its event", .play = queue_goes, .apart = true },
	{ .name = "drop-in: arm, look, sleep", .play = look_and_sleep, .apart = true },
	{ .name = "drop-in: a queue pair goes beside its event", .play = pair_goes, .apart = true },
	{ .name = "drop-in: an identifier goes beside its event", .play = id_goes, .apart = true },
	{ .name = "drop-in: an identifier moves", .play = id_moves, .apart = true },
	{ .name = "drop-in: two get events", .play = two_get, .apart = true, .large = true },
	{ .name = "drop-in: an identifier moves to who waits",
	  .play = id_moves_beside_event,
	  .apart = true,
	  .large = true },
};
const unsigned verbs_nworlds = sizeof verbs_worlds / sizeof *verbs_worlds;
