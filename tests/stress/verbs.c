/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random calls of the drop-in from four threads, by seed: identifiers are resolved, connected, used,
 * disconnected and destroyed while other threads get events, post and poll; objects that nobody
 * shares come and go; the process forks, signals come.  Nothing is expected of most calls but that
 * they return in time.  Two connections that nobody else touches carry pings, each of which has to
 * wake whoever waits for it.
 *
 * usage: stress-verbs SEED SECONDS
 */
#include "stress/run.h"
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NSLOTS	6
#define NPINGS	2
#define DEPTH	32
#define BUF_LEN 65536
#define ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

struct end {
	struct rdma_cm_id *id;
	struct ibv_comp_channel *cc;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	bool up; /* it has been informed of that */
};

/* Whoever uses it holds the lock for reading, whoever makes or destroys something of it for writing. */
struct slot {
	pthread_rwlock_t lock;
	struct end end[2]; /* active, passive */
};

static struct {
	struct rdma_event_channel *ch[2];
	struct rdma_cm_id *listen;
	struct sockaddr_in addr;
	struct ibv_mr *mr;
	uint8_t buf[BUF_LEN];
	struct slot slots[NSLOTS + NPINGS]; /* pings last */
	pthread_mutex_t ping_lock[NPINGS];
	unsigned ups; /* connections that were established; atomic */
} w;

static bool is_verbs_stress_readable(int fd, uint32_t ms)
{
	struct pollfd p = { fd, POLLIN, 0 };

	return poll(&p, 1, (int)ms) == 1;
}

static void no_blocking(int fd)
{
	CHECK(!fcntl(fd, F_SETFL, O_NONBLOCK));
}

/* ---- connections; the slot's lock is held for writing ---- */

static void equip_verbs_stress(struct end *e, bool passive, uint64_t *rng)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC,
					 .cap = { DEPTH, DEPTH, 2, 2, 64 },
					 .sq_sig_all = 1 };
	struct ibv_srq_init_attr srq = { .attr = { DEPTH, 2, 0 } };

	e->cc = ibv_create_comp_channel(e->id->verbs);
	CHECK(e->cc);
	no_blocking(e->cc->fd);
	e->cq = ibv_create_cq(e->id->verbs, 4 * DEPTH, NULL, e->cc, 0);
	CHECK(e->cq);
	if (passive && !stress_draw(rng, 3)) {
		e->srq = ibv_create_srq(e->id->pd, &srq);
		CHECK(e->srq);
	}
	attr.send_cq = attr.recv_cq = e->cq;
	attr.srq = e->srq;
	CHECK(!rdma_create_qp(e->id, NULL, &attr));
}

static void end_clear(struct end *e)
{
	if (e->cq)
		rdma_destroy_qp(e->id);
	if (e->srq)
		CHECK(!ibv_destroy_srq(e->srq));
	if (e->cq)
		CHECK(!ibv_destroy_cq(e->cq));
	if (e->cc)
		CHECK(!ibv_destroy_comp_channel(e->cc));
	if (e->id)
		CHECK(!rdma_destroy_id(e->id));
	memset(e, 0, sizeof *e);
}

static void dial_verbs_stress(struct slot *s)
{
	struct end *e = &s->end[0];

	CHECK(!rdma_create_id(w.ch[0], &e->id, s, RDMA_PS_TCP));
	CHECK(!rdma_resolve_addr(e->id, NULL, (struct sockaddr *)&w.addr, 1000));
}

static struct rdma_conn_param param_of(const uint8_t *number)
{
	return (struct rdma_conn_param){ .private_data = number,
					 .private_data_len = 1,
					 .responder_resources = 4,
					 .initiator_depth = 4 };
}

/* The next step of the active side: its identifier may be another's by now. */
static void step_active(struct slot *s, const struct rdma_cm_event *ev, uint64_t *rng)
{
	const uint8_t number = (uint8_t)(s - w.slots);
	struct rdma_conn_param param = param_of(&number);
	struct end *e = &s->end[0];

	if (e->id != ev->id)
		return;
	if (ev->event == RDMA_CM_EVENT_ADDR_RESOLVED) {
		CHECK(!rdma_resolve_route(e->id, 1000));
	} else if (ev->event == RDMA_CM_EVENT_ROUTE_RESOLVED) {
		equip_verbs_stress(e, false, rng);
		CHECK(!rdma_connect(e->id, &param));
	} else if (ev->event == RDMA_CM_EVENT_ESTABLISHED) {
		e->up = true;
		__atomic_add_fetch(&w.ups, 1, __ATOMIC_RELAXED);
	}
}

static void step_passive(struct slot *s, const struct rdma_cm_event *ev)
{
	if (s->end[1].id == ev->id && ev->event == RDMA_CM_EVENT_ESTABLISHED)
		s->end[1].up = true;
}

/* A request is answered with an end of its slot, or refused. */
static void take_verbs_stress_request(struct rdma_cm_id *id, uint8_t number, uint64_t *rng)
{
	struct rdma_conn_param param = param_of(&number);
	struct slot *s = &w.slots[number];
	bool taken = false;

	if (!pthread_rwlock_trywrlock(&s->lock)) {
		if (!s->end[1].id && s->end[0].id) {
			id->context = s;
			s->end[1].id = id;
			equip_verbs_stress(&s->end[1], true, rng);
			if (rdma_accept(id, &param))
				end_clear(&s->end[1]); /* its peer has gone */
			taken = true;
		}
		pthread_rwlock_unlock(&s->lock);
	}
	if (taken)
		return;
	if (stress_draw(rng, 2))
		(void)rdma_reject(id, NULL, 0); /* its peer may have gone */
	CHECK(!rdma_destroy_id(id));
}

/* An event that is held keeps its identifier, so whoever holds one waits for no lock. */
static void cm_event(int side, uint32_t ms, uint64_t *rng)
{
	struct rdma_cm_id *id = NULL;
	struct rdma_cm_event *ev;
	struct slot *s;
	uint8_t number = 0;

	if (!is_verbs_stress_readable(w.ch[side]->fd, ms) || rdma_get_cm_event(w.ch[side], &ev))
		return;
	if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		CHECK(ev->param.conn.private_data_len >= 1);
		number = *(const uint8_t *)ev->param.conn.private_data;
		CHECK(number < NSLOTS + NPINGS);
		id = ev->id;
	} else {
		s = ev->id->context;
		if (!pthread_rwlock_trywrlock(&s->lock)) {
			if (side)
				step_passive(s, ev);
			else
				step_active(s, ev, rng);
			pthread_rwlock_unlock(&s->lock);
		}
	}
	CHECK(!rdma_ack_cm_event(ev));
	if (id)
		take_verbs_stress_request(id, number, rng);
}

/* ---- pings ---- */

static int post_verbs_stress_send(struct end *e, enum ibv_wr_opcode op, uint32_t off, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)w.buf + off, len, w.mr->lkey };
	struct ibv_send_wr wr = { .opcode = op, .sg_list = &sge, .num_sge = 1 }, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)w.buf + BUF_LEN / 2;
	wr.wr.rdma.rkey = w.mr->rkey;
	return ibv_post_send(e->id->qp, &wr, &bad);
}

static int post_verbs_stress_recv(struct end *e, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)w.buf + BUF_LEN / 2, len, w.mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	return e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) : ibv_post_recv(e->id->qp, &wr, &bad);
}

static void take_event(struct end *e)
{
	struct ibv_cq *cq;
	void *user;

	if (ibv_get_cq_event(e->cc, &cq, &user)) {
		CHECK(errno == EAGAIN || errno == EINTR);
		return;
	}
	CHECK(cq == e->cq);
	ibv_ack_cq_events(cq, 1);
}

/* Sleep until the queue's event comes, which has been asked for before what causes it. */
static void completes(struct end *e, enum ibv_wc_opcode op)
{
	const uint64_t until = stress_ms() + STRESS_LOST_MS;
	struct ibv_wc wc;
	int n;

	for (;;) {
		while (!is_verbs_stress_readable(e->cc->fd, 100))
			CHECK(stress_ms() < until);
		take_event(e);
		CHECK(!ibv_req_notify_cq(e->cq, 0));
		n = ibv_poll_cq(e->cq, 1, &wc);
		CHECK(n >= 0);
		if (n)
			break;
	}
	if (wc.status != IBV_WC_SUCCESS)
		printf("# ping: %s\n", ibv_wc_status_str(wc.status));
	CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == op);
}

static void ping_verbs_stress(struct slot *s, uint32_t side)
{
	CHECK(!post_verbs_stress_recv(&s->end[side], 64));
	CHECK(!ibv_req_notify_cq(s->end[side].cq, 0));
	CHECK(!ibv_req_notify_cq(s->end[!side].cq, 0));
	CHECK(!post_verbs_stress_send(&s->end[!side], IBV_WR_SEND, 0, 8));
	completes(&s->end[side], IBV_WC_RECV);
	completes(&s->end[!side], IBV_WC_SEND);
}

/* ---- the world ---- */

static void bring_verbs_stress_pings_up(uint64_t *rng)
{
	for (struct slot *s = &w.slots[NSLOTS]; s < &w.slots[NSLOTS + NPINGS]; s++) {
		const uint64_t until = stress_ms() + STRESS_LOST_MS;

		dial_verbs_stress(s);
		while (!s->end[0].up || !s->end[1].up) {
			CHECK(stress_ms() < until);
			cm_event(0, 1, rng);
			cm_event(1, 1, rng);
		}
	}
}

static void open_verbs_stress_world(uint64_t seed)
{
	uint64_t rng = seed;

	setenv("DDPSESS_TRANSPORT", seed % 2 ? "tcp" : "sctp", 1);
	for (int i = 0; i < NSLOTS + NPINGS; i++)
		pthread_rwlock_init(&w.slots[i].lock, NULL);
	for (int i = 0; i < NPINGS; i++)
		pthread_mutex_init(&w.ping_lock[i], NULL);
	for (int side = 0; side < 2; side++) {
		w.ch[side] = rdma_create_event_channel();
		CHECK(w.ch[side]);
		no_blocking(w.ch[side]->fd);
	}
	w.addr.sin_family = AF_INET;
	w.addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(!rdma_create_id(w.ch[1], &w.listen, NULL, RDMA_PS_TCP));
	CHECK(!rdma_bind_addr(w.listen, (struct sockaddr *)&w.addr));
	CHECK(!rdma_listen(w.listen, 16));
	w.addr.sin_port = rdma_get_src_port(w.listen);
	w.mr = ibv_reg_mr(w.listen->pd, w.buf, sizeof w.buf, ACCESS);
	CHECK(w.mr);
	no_blocking(w.listen->verbs->async_fd);
	bring_verbs_stress_pings_up(&rng);
}

static unsigned close_verbs_stress_world(void)
{
	for (int i = 0; i < NSLOTS + NPINGS; i++)
		for (int side = 0; side < 2; side++)
			end_clear(&w.slots[i].end[side]);
	CHECK(!rdma_destroy_id(w.listen));
	CHECK(!ibv_dereg_mr(w.mr));
	for (int side = 0; side < 2; side++)
		rdma_destroy_event_channel(w.ch[side]);
	return w.ups - NPINGS;
}

/* ---- what a thread does ---- */

static void do_verbs_stress_connect(struct stress_worker *t)
{
	struct slot *s = &w.slots[stress_draw(&t->rng, NSLOTS)];

	if (pthread_rwlock_trywrlock(&s->lock))
		return;
	if (!s->end[0].id)
		dial_verbs_stress(s);
	pthread_rwlock_unlock(&s->lock);
}

static void do_destroy(struct stress_worker *t)
{
	struct slot *s = &w.slots[stress_draw(&t->rng, NSLOTS)];
	const uint32_t first = stress_draw(&t->rng, 2);

	pthread_rwlock_wrlock(&s->lock);
	end_clear(&s->end[first]);
	end_clear(&s->end[!first]);
	pthread_rwlock_unlock(&s->lock);
}

static void do_cm(struct stress_worker *t)
{
	cm_event((int)stress_draw(&t->rng, 2), stress_draw(&t->rng, 10), &t->rng);
}

static void use_any_end(struct stress_worker *t, void (*fn)(struct stress_worker *t, struct end *e))
{
	struct slot *s = &w.slots[stress_draw(&t->rng, NSLOTS)];
	struct end *e = &s->end[stress_draw(&t->rng, 2)];

	pthread_rwlock_rdlock(&s->lock);
	if (e->cq)
		fn(t, e);
	pthread_rwlock_unlock(&s->lock);
}

static void send_some_verbs_stress(struct stress_worker *t, struct end *e)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						  IBV_WR_RDMA_READ };
	const enum ibv_wr_opcode op = ops[stress_draw(&t->rng, 3)];

	/* Nobody's Read lands where somebody's Write comes from. */
	(void)post_verbs_stress_send(e, op, op == IBV_WR_RDMA_READ ? BUF_LEN / 2 : 0,
				     stress_draw(&t->rng, 3) ? stress_draw(&t->rng, 256)
							     : BUF_LEN / 2);
}

static void recv_some(struct stress_worker *t, struct end *e)
{
	(void)t;
	(void)post_verbs_stress_recv(e, BUF_LEN / 2);
}

static void poll_some(struct stress_worker *t, struct end *e)
{
	struct ibv_wc wc[4];

	for (uint32_t i = stress_draw(&t->rng, 50); i; i--)
		CHECK(ibv_poll_cq(e->cq, 4, wc) >= 0);
}

static void await_some(struct stress_worker *t, struct end *e)
{
	CHECK(!ibv_req_notify_cq(e->cq, (int)stress_draw(&t->rng, 2)));
	if (is_verbs_stress_readable(e->cc->fd, stress_draw(&t->rng, 10)))
		take_event(e);
}

static void end_some(struct stress_worker *t, struct end *e)
{
	struct ibv_qp_attr err = { .qp_state = IBV_QPS_ERR };

	if (stress_draw(&t->rng, 2))
		(void)rdma_disconnect(e->id);
	else
		(void)ibv_modify_qp(e->id->qp, &err, IBV_QP_STATE);
}

static void do_verbs_stress_send(struct stress_worker *t)
{
	use_any_end(t, send_some_verbs_stress);
}
static void do_verbs_stress_recv(struct stress_worker *t)
{
	use_any_end(t, recv_some);
}
static void do_poll(struct stress_worker *t)
{
	use_any_end(t, poll_some);
}
static void do_await(struct stress_worker *t)
{
	use_any_end(t, await_some);
}
static void do_verbs_stress_end(struct stress_worker *t)
{
	use_any_end(t, end_some);
}

static void do_async(struct stress_worker *t)
{
	struct ibv_async_event ev;

	if (is_verbs_stress_readable(w.listen->verbs->async_fd, stress_draw(&t->rng, 5)) &&
	    !ibv_get_async_event(w.listen->verbs, &ev))
		ibv_ack_async_event(&ev);
}

/* One of each that nobody else knows, with a receive that is flushed. */
static void do_objects(struct stress_worker *t)
{
	struct ibv_qp_attr err = { .qp_state = IBV_QPS_ERR };
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 2, 2, 64 } };
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct ibv_pd *pd = ibv_alloc_pd(w.listen->verbs);
	struct ibv_comp_channel *cc = ibv_create_comp_channel(w.listen->verbs);
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct ibv_wc wc;
	uint8_t octets[64];

	CHECK(pd && cc);
	attr.send_cq = attr.recv_cq = ibv_create_cq(w.listen->verbs, 8, NULL, cc, 0);
	mr = ibv_reg_mr(pd, octets, sizeof octets, ACCESS);
	qp = ibv_create_qp(pd, &attr);
	CHECK(attr.send_cq && mr && qp);
	CHECK(!ibv_req_notify_cq(attr.send_cq, 0));
	CHECK(!ibv_post_recv(qp, &wr, &bad));
	CHECK(!ibv_modify_qp(qp, &err, IBV_QP_STATE));
	if (stress_draw(&t->rng, 2))
		CHECK(ibv_poll_cq(attr.send_cq, 1, &wc) == 1 && wc.wr_id == 1);
	CHECK(!ibv_destroy_qp(qp));
	CHECK(!ibv_dereg_mr(mr));
	CHECK(!ibv_destroy_cq(attr.send_cq));
	CHECK(!ibv_destroy_comp_channel(cc));
	CHECK(!ibv_dealloc_pd(pd));
}

/* The parent's objects are none of the child's; and it can have its own, of threads too. */
static int run_in_verbs_stress_child(void)
{
	struct rdma_cm_event *ev;

	if (ibv_destroy_cq(w.slots[NSLOTS].end[0].cq) != EINVAL)
		return 1;
	if (rdma_get_cm_event(w.ch[0], &ev) != -1 || errno != EINVAL)
		return 2;
/* Under ThreadSanitizer no thread begins in a child; and AddressSanitizer's memory stays locked there
 * if a thread of the parent was taking some. */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
	struct rdma_event_channel *ch = rdma_create_event_channel();

	if (!ch)
		return 3;
	rdma_destroy_event_channel(ch);
#endif
	return 0;
}

static void do_verbs_stress_ping(struct stress_worker *t)
{
	const uint32_t i = stress_draw(&t->rng, NPINGS);

	if (pthread_mutex_trylock(&w.ping_lock[i]))
		return;
	ping_verbs_stress(&w.slots[NSLOTS + i], stress_draw(&t->rng, 2));
	pthread_mutex_unlock(&w.ping_lock[i]);
}

static const struct stress_op ops[] = {
	{ "connect", do_verbs_stress_connect, 6 },
	{ "destroy", do_destroy, 2 },
	{ "cm_event", do_cm, 12 },
	{ "send", do_verbs_stress_send, 12 },
	{ "recv", do_verbs_stress_recv, 12 },
	{ "poll", do_poll, 6 },
	{ "await", do_await, 8 },
	{ "end", do_verbs_stress_end, 2 },
	{ "async", do_async, 3 },
	{ "objects", do_objects, 4 },
	{ "signal", stress_signal, 2 },
	{ "fork", stress_fork, 2 },
	{ "ping", do_verbs_stress_ping, 12 },
};

int main(int argc, char **argv)
{
	static const struct stress test = { "verbs",
					    ops,
					    sizeof ops / sizeof *ops,
					    open_verbs_stress_world,
					    close_verbs_stress_world,
					    run_in_verbs_stress_child };

	return stress_main(&test, argc, argv);
}
