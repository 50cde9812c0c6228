/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When all else is over: a program of several threads.  One serves, two dial, one takes the completions
 * of all of them from one queue.  Each ends what it has when it likes to, while others use what belongs to
 * it: the caller goes before it has an answer, the one that serves answers somebody who has gone.
 */
#include "sim/verbs_world.h"
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>

#define DIALERS	 2u
#define DIALS	 4u /* of each */
#define LIVES	 (2 * DIALERS * DIALS)
#define POSTED	 4u   /* receives, and Sends */
#define WRS	 100u /* identifiers of each */
#define MS	 1000000ull
#define PATIENCE (20000 * MS)

struct life {
	struct rdma_cm_id *id;
	uint32_t qpn;
	bool served, kept, up, over; /* kept: a request that is not answered yet */
	uint8_t buf[64];
};

static struct {
	struct rdma_event_channel *ch[2]; /* of whoever serves; the listener moves between them */
	struct rdma_cm_id *listen;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	uint16_t port;
	struct life life[LIVES];
	unsigned n;
	unsigned dialing; /* who still do */
	bool served;
	uint64_t rng[DIALERS + 2];
} b;

/* ---- lives ---- */

static struct life *begin_verbs_parallel(struct rdma_cm_id *id)
{
	struct life *l = &b.life[b.n];

	check(b.n < LIVES, "more connections than were asked for");
	if (w.failed)
		return NULL;
	b.n++;
	l->id = id;
	id->context = l;
	return l;
}

static unsigned number(const struct life *l)
{
	return (unsigned)(l - b.life);
}

static void equip_verbs_parallel(struct life *l)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC,
					 .cap = { POSTED, POSTED, 1, 1, 0 },
					 .send_cq = b.cq,
					 .recv_cq = b.cq,
					 .sq_sig_all = 1 };
	struct ibv_sge sge = { (uintptr_t)l->buf, sizeof l->buf, b.mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	check(!rdma_create_qp(l->id, b.pd, &attr), "create a queue pair: %s", strerror(errno));
	if (w.failed)
		return;
	l->qpn = l->id->qp->qp_num;
	for (unsigned i = 0; i < POSTED; i++) {
		wr.wr_id = number(l) * WRS + i;
		check(!ibv_post_recv(l->id->qp, &wr, &bad), "a receive is refused");
	}
}

/* Whoever has gone meanwhile does not hear it. */
static void say_verbs_parallel(struct life *l)
{
	struct ibv_sge sge = { (uintptr_t)l->buf, 8, b.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	for (unsigned i = 0; i < POSTED; i++) {
		wr.wr_id = number(l) * WRS + WRS / 2 + i;
		if (ibv_post_send(l->id->qp, &wr, &bad))
			return;
	}
}

static void finish_verbs_parallel(struct life *l, uint64_t *rng)
{
	struct ibv_qp_attr err = { .qp_state = IBV_QPS_ERR };

	if (l->id->qp && l->up && sim_below(rng, 3))
		check(!rdma_disconnect(l->id), "disconnect: %s", strerror(errno));
	else if (l->id->qp && sim_below(rng, 2))
		check(!ibv_modify_qp(l->id->qp, &err, IBV_QP_STATE), "to ERR");
	if (sim_below(rng, 4) == 0)
		let_pass(sim_below(rng, 4 * kern.delay));
	rdma_destroy_qp(l->id);
	check(!rdma_destroy_id(l->id), "destroy an identifier");
	l->over = true;
}

/* ---- who serves ---- */

/* At another port: what was before may be on its way out. */
static void serve_anew(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };

	check(!rdma_create_id(b.ch[0], &b.listen, NULL, RDMA_PS_TCP) &&
		      !rdma_bind_addr(b.listen, (struct sockaddr *)&any) &&
		      !rdma_listen(b.listen, LIVES),
	      "no listener: %s", strerror(errno));
	b.port = w.failed ? 0 : rdma_get_src_port(b.listen);
}

static void answer_verbs_parallel(struct life *l, uint64_t *rng)
{
	struct rdma_conn_param conn = { .responder_resources = 1, .initiator_depth = 1 };
	uint64_t how = sim_below(rng, 5);

	l->kept = false;
	if (sim_below(rng, 2))
		let_pass(sim_below(rng, 4 * kern.delay));
	if (how > 1) {
		equip_verbs_parallel(l);
		if (!w.failed && !rdma_accept(l->id, &conn))
			return;
		check(errno == ECONNRESET || errno == EINVAL, "accept: %s", strerror(errno));
	} else if (how) {
		check(!rdma_reject(l->id, NULL, 0) || errno == EINVAL, "reject: %s",
		      strerror(errno));
	}
	finish_verbs_parallel(l, rng);
}

static void take_parallel_request(struct rdma_cm_id *id, uint64_t *rng)
{
	struct life *l = begin_verbs_parallel(id);

	if (!l)
		return;
	l->served = true;
	l->kept = sim_below(rng, 3) == 0;
	if (!l->kept)
		answer_verbs_parallel(l, rng);
}

/* Returns an end of which there was news. */
static struct life *next_verbs_parallel_event(struct rdma_event_channel *ch, uint64_t *rng)
{
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;
	enum rdma_cm_event_type type;
	struct life *l;

	check(!rdma_get_cm_event(ch, &ev), "no event");
	if (w.failed)
		return NULL;
	type = ev->event;
	id = ev->id;
	check(id->channel == ch, "an event of an identifier of another channel");
	rdma_ack_cm_event(ev);
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		take_parallel_request(id, rng);
		return NULL;
	}
	l = id->context;
	check(l >= b.life && l < b.life + b.n && l->id == id && !l->over, "whose is %s?",
	      rdma_event_str(type));
	if (w.failed)
		return NULL;
	if (type == RDMA_CM_EVENT_ESTABLISHED) {
		l->up = true;
		say_verbs_parallel(l);
	}
	return l;
}

/* Within @ns, which less than a millisecond is slept through. */
static bool news(struct rdma_event_channel *ch, uint64_t ns)
{
	struct pollfd p = { ch->fd, POLLIN, 0 };

	if (ns && ns < MS)
		let_pass(ns);
	return poll(&p, 1, (int)(ns / MS)) == 1;
}

/* Whatever has an end, and nobody waits for that: a connection, a request, the listener. */
static void go_on_parallel(uint64_t *rng)
{
	struct life *l = b.n ? &b.life[sim_below(rng, b.n)] : NULL;

	if (l && l->served && !l->over && l->up && sim_below(rng, 4) == 0)
		finish_verbs_parallel(l, rng);
	for (unsigned i = 0; i < b.n && !w.failed; i++)
		if (b.life[i].kept && sim_below(rng, 4) == 0)
			answer_verbs_parallel(&b.life[i], rng);
	if (sim_below(rng, 4) == 0)
		check(!rdma_migrate_id(b.listen, b.ch[sim_below(rng, 2)]), "move the listener");
	if (sim_below(rng, 16) || w.failed)
		return;
	check(!rdma_destroy_id(b.listen), "destroy the listener");
	serve_anew();
}

/* At either channel. */
static bool serve_one(int ms, uint64_t *rng)
{
	struct pollfd p[] = { { b.ch[0]->fd, POLLIN, 0 }, { b.ch[1]->fd, POLLIN, 0 } };
	struct life *l;

	if (poll(p, 2, ms) < 1)
		return false;
	l = next_verbs_parallel_event(b.ch[!p[0].revents], rng);
	if (l && !l->up) /* it has gone */
		finish_verbs_parallel(l, rng);
	return true;
}

static void *serve_verbs_parallel(void *arg)
{
	uint64_t *rng = arg;

	while (!w.failed && (serve_one(1 << sim_below(rng, 8), rng) || b.dialing)) {
		if (!w.failed)
			go_on_parallel(rng);
	}
	for (unsigned i = 0; i < b.n && !w.failed; i++)
		if (!b.life[i].over)
			finish_verbs_parallel(&b.life[i], rng);
	b.served = true;
	return NULL;
}

/* ---- who dials ---- */

static bool step_verbs_parallel(struct rdma_event_channel *ch, uint64_t *rng, int ret)
{
	check(!ret && news(ch, PATIENCE), "there is no answer");
	return !w.failed && next_verbs_parallel_event(ch, rng);
}

static void dial(struct rdma_event_channel *ch, uint64_t *rng)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = b.port,
				  .sin_addr.s_addr = htonl(0x0a000001) };
	struct rdma_conn_param conn = { .responder_resources = 1, .initiator_depth = 1 };
	struct rdma_cm_id *id = NULL;
	struct life *l;

	check(!rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), "create an identifier");
	l = w.failed ? NULL : begin_verbs_parallel(id);
	if (!l ||
	    !step_verbs_parallel(ch, rng,
				 rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000)) ||
	    !step_verbs_parallel(ch, rng, rdma_resolve_route(id, 1000)))
		return;
	equip_verbs_parallel(l);
	if (w.failed)
		return;
	check(!rdma_connect(id, &conn), "connect: %s", strerror(errno));
	if (sim_below(rng, 2))
		step_verbs_parallel(ch, rng, 0);
	else if (news(ch, sim_below(rng, 6 * kern.delay)))
		next_verbs_parallel_event(ch, rng);
	if (sim_below(rng, 2))
		let_pass(sim_below(rng, 4 * kern.delay));
	while (!w.failed && news(ch, 0))
		next_verbs_parallel_event(ch, rng);
	if (!w.failed)
		finish_verbs_parallel(l, rng);
}

static void *dial_some(void *arg)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();

	check(ch, "no channel");
	for (unsigned i = 0; i < DIALS && !w.failed; i++)
		dial(ch, arg);
	if (!w.failed)
		rdma_destroy_event_channel(ch);
	b.dialing--;
	return NULL;
}

/* ---- who takes completions ---- */

static void take_checked_verbs_parallel(const struct ibv_wc *wc)
{
	const uint64_t n = wc->wr_id / WRS;
	const bool recv = wc->wr_id % WRS < WRS / 2;

	check(n < b.n && wc->wr_id % (WRS / 2) < POSTED && wc->qp_num == b.life[n].qpn,
	      "a completion %u of queue pair %u", (unsigned)wc->wr_id, wc->qp_num);
	check(wc->status || (wc->opcode == IBV_WC_RECV) == recv, "opcode %d", wc->opcode);
}

static void *take_parallel_completion(void *arg)
{
	struct pollfd p = { b.channel->fd, POLLIN, 0 };
	uint64_t *rng = arg, nap = 1;
	const bool sleeps = sim_below(rng, 2);
	struct ibv_wc wc[2];
	struct ibv_cq *cq;
	void *of;
	int n;

	while (!w.failed && !b.served) {
		if (sleeps && poll(&p, 1, 20) == 1) {
			check(!ibv_get_cq_event(b.channel, &cq, &of) && of == &b, "no event");
			ibv_ack_cq_events(b.cq, 1);
		}
		if (sleeps)
			check(!ibv_req_notify_cq(b.cq, 0), "arm the queue");
		while ((n = ibv_poll_cq(b.cq, 1 + (int)sim_below(rng, 2), wc)) > 0) {
			nap = 1;
			for (int i = 0; i < n; i++)
				take_checked_verbs_parallel(&wc[i]);
		}
		check(n == 0, "poll");
		if (!sleeps)
			let_pass(1 + sim_below(rng, nap = nap < MS ? 2 * nap : nap));
	}
	return NULL;
}

/* ---- all of them ---- */

static bool prepare(void)
{
	struct ibv_context *ctx = w.listen->verbs;

	b.ch[0] = rdma_create_event_channel();
	b.ch[1] = rdma_create_event_channel();
	b.pd = ibv_alloc_pd(ctx);
	b.mr = b.pd ? ibv_reg_mr(b.pd, &b, sizeof b, IBV_ACCESS_LOCAL_WRITE) : NULL;
	b.channel = ibv_create_comp_channel(ctx);
	b.cq = b.channel ? ibv_create_cq(ctx, 4 * LIVES * POSTED, &b, b.channel, 0) : NULL;
	check(b.ch[0] && b.ch[1] && b.mr && b.cq, "nothing to share");
	if (!w.failed)
		serve_anew();
	return !w.failed;
}

static void take_verbs_parallel_down(void)
{
	rdma_destroy_id(b.listen);
	for (unsigned i = 0; i < 2; i++)
		rdma_destroy_event_channel(b.ch[i]);
	check(!ibv_destroy_cq(b.cq) && !ibv_destroy_comp_channel(b.channel) &&
		      !ibv_dereg_mr(b.mr) && !ibv_dealloc_pd(b.pd),
	      "take it down");
}

void parallel_play(void)
{
	uint64_t state = w.seed * 0x9e3779b97f4a7c15u + 9;
	pthread_t id[DIALERS + 2];

	for (unsigned i = 0; i < DIALERS + 2; i++)
		b.rng[i] = sim_next(&state);
	if (!prepare())
		return;
	b.dialing = DIALERS;
	for (unsigned i = 0; i < DIALERS + 2; i++)
		check(!pthread_create(&id[i], NULL,
				      i < DIALERS    ? dial_some
				      : i == DIALERS ? serve_verbs_parallel
						     : take_parallel_completion,
				      &b.rng[i]),
		      "no thread");
	for (unsigned i = 0; i < DIALERS + 2; i++)
		pthread_join(id[i], NULL);
	w.t->n[T_BESIDE] += b.n;
	if (!w.failed)
		take_verbs_parallel_down();
}
