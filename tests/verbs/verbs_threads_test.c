/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that share a queue pair, a completion queue or a listener; also for ThreadSanitizer. */
#include "verbs/vt.h"
#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#define POSTERS 4
#define POLLERS 2 /* of each of the two queues */
#define EACH	500
#define ALL	(POSTERS * EACH)
#define SLOT	2048
#define DEPTH	64 /* requests under way, and receives posted */
#define LAST	ALL

enum kind { SEND, WRITE, READ, KINDS };

struct area {
	uint8_t out[ALL][SLOT]; /* what goes to the peer, or is read by it */
	uint8_t in[ALL][SLOT];	/* where Writes and the octets of Reads come */
	uint8_t pool[DEPTH][SLOT];
	struct ibv_mr *mr;
};

struct shared {
	struct vt v;
	struct area *a, *b;
	sem_t room; /* for requests */
	unsigned done_a, done_b;
	unsigned times_a[ALL + 1], times_b[ALL + 1]; /* how often each was completed */
};

struct poster {
	struct shared *s;
	uint32_t first;
};

static enum kind get_verbs_threads_kind(uint32_t n)
{
	return (enum kind)(n % KINDS);
}

static uint32_t get_verbs_threads_length_of(uint32_t n)
{
	static const uint32_t lengths[] = { 4, 2048, 64, 513, 5, 1459, 512, 1461 };

	return lengths[n * 2654435761u >> 29];
}

static uint8_t make_slot_octet(uint32_t n, uint32_t at, uint8_t salt)
{
	return (uint8_t)(n * 31 + at * 7 + salt);
}

/* A slot begins with its number. */
static void fill_verbs_threads(struct area *r, uint8_t salt)
{
	for (uint32_t n = 0; n < ALL; n++) {
		for (uint32_t i = 4; i < SLOT; i++)
			r->out[n][i] = make_slot_octet(n, i, salt);
		memcpy(r->out[n], &n, sizeof n);
	}
}

static bool is_right(const uint8_t *slot, uint32_t n, uint8_t salt)
{
	if (memcmp(slot, &n, sizeof n) != 0)
		return false;
	for (uint32_t i = 4; i < get_verbs_threads_length_of(n); i++)
		if (slot[i] != make_slot_octet(n, i, salt))
			return false;
	return true;
}

static struct area *area(const struct vt_end *e, uint8_t salt)
{
	struct area *r = calloc(1, sizeof *r);

	cr_assert(r);
	fill_verbs_threads(r, salt);
	r->mr = ibv_reg_mr(e->id->pd, r, sizeof *r,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ);
	cr_assert(r->mr);
	return r;
}

static void receive_verbs_threads(struct shared *s, uint64_t slot)
{
	struct ibv_sge sge = { (uintptr_t)s->b->pool[slot], SLOT, s->b->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	cr_assert_eq(ibv_post_recv(s->v.b.id->qp, &wr, &bad), 0);
}

static void post_verbs_threads(struct shared *s, uint32_t n)
{
	static const enum ibv_wr_opcode op[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };
	const enum kind k = get_verbs_threads_kind(n);
	uint8_t *at = k == READ ? s->a->in[n] : s->a->out[n];
	struct ibv_sge sge = { (uintptr_t)at, get_verbs_threads_length_of(n), s->a->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = n,
		.opcode = op[k],
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma.remote_addr = (uintptr_t)(k == READ ? s->b->out[n] : s->b->in[n]),
		.wr.rdma.rkey = s->b->mr->rkey,
	}, *bad;

	if (k != READ && sge.length <= 512 && n & 1)
		wr.send_flags = IBV_SEND_INLINE;
	while (sem_wait(&s->room))
		;
	cr_assert_eq(ibv_post_send(s->v.a.id->qp, &wr, &bad), 0);
}

static void *post_some_verbs_threads(void *arg)
{
	struct poster *p = arg;

	for (uint32_t i = 0; i < EACH; i++)
		post_verbs_threads(p->s, p->first + i);
	return NULL;
}

/* One completion of either side is enough until @done has reached @all. */
static bool next_in_verbs_threads(struct vt_end *e, const unsigned *done, unsigned all,
				  struct ibv_wc *wc)
{
	while (__atomic_load_n(done, __ATOMIC_ACQUIRE) < all) {
		int n = ibv_poll_cq(e->cq, 1, wc);

		cr_assert_geq(n, 0);
		if (n) {
			cr_assert_eq(wc->status, IBV_WC_SUCCESS, "%s",
				     ibv_wc_status_str(wc->status));
			return true;
		}
		sched_yield();
	}
	return false;
}

static void count_verbs_threads(unsigned *times, unsigned *done)
{
	__atomic_add_fetch(times, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(done, 1, __ATOMIC_RELEASE);
}

static void *poll_a(void *arg)
{
	static const enum ibv_wc_opcode op[] = { IBV_WC_SEND, IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ };
	struct shared *s = arg;
	struct ibv_wc wc;

	while (next_in_verbs_threads(&s->v.a, &s->done_a, ALL, &wc)) {
		const uint32_t n = (uint32_t)wc.wr_id;

		cr_assert_eq(wc.opcode, op[get_verbs_threads_kind(n)]);
		if (get_verbs_threads_kind(n) == READ)
			cr_assert(is_right(s->a->in[n], n, 'b'), "what %u has read", n);
		sem_post(&s->room);
		count_verbs_threads(&s->times_a[n], &s->done_a);
	}
	return NULL;
}

static unsigned count_all_sends(void)
{
	unsigned all = 0;

	for (uint32_t n = 0; n < ALL; n++)
		all += get_verbs_threads_kind(n) == SEND;
	return all;
}

static void *poll_b(void *arg)
{
	struct shared *s = arg;
	const unsigned all = count_all_sends();
	struct ibv_wc wc;

	while (next_in_verbs_threads(&s->v.b, &s->done_b, all, &wc)) {
		const uint8_t *slot = s->b->pool[wc.wr_id];
		uint32_t n;

		memcpy(&n, slot, sizeof n);
		cr_assert(n < ALL && get_verbs_threads_kind(n) == SEND);
		cr_assert_eq(wc.byte_len, get_verbs_threads_length_of(n));
		cr_assert(is_right(slot, n, 'a'), "what %u has sent", n);
		receive_verbs_threads(s, wc.wr_id);
		count_verbs_threads(&s->times_b[n], &s->done_b);
	}
	return NULL;
}

static void run_threads(struct shared *s)
{
	pthread_t t[POSTERS + 2 * POLLERS];
	struct poster p[POSTERS];
	unsigned n = 0;

	for (unsigned i = 0; i < POLLERS; i++) {
		cr_assert_eq(pthread_create(&t[n++], NULL, poll_a, s), 0);
		cr_assert_eq(pthread_create(&t[n++], NULL, poll_b, s), 0);
	}
	for (unsigned i = 0; i < POSTERS; i++) {
		p[i] = (struct poster){ s, i * EACH };
		cr_assert_eq(pthread_create(&t[n++], NULL, post_some_verbs_threads, &p[i]), 0);
	}
	for (unsigned i = 0; i < n; i++)
		pthread_join(t[i], NULL);
}

/* A Send behind all the rest: what was written before it is there when it is. */
static void check_verbs_threads_writes(struct shared *s)
{
	cr_assert_eq(vt_post(&s->v.a, LAST, IBV_WR_SEND, 4, NULL), 0);
	vt_expect_wc(&s->v.a, LAST, IBV_WC_SEND, IBV_WC_SUCCESS);
	cr_assert_eq(vt_wc(&s->v.b).opcode, IBV_WC_RECV);
	for (uint32_t n = 0; n < ALL; n++)
		if (get_verbs_threads_kind(n) == WRITE)
			cr_assert(is_right(s->b->in[n], n, 'a'), "what %u has written", n);
}

VT_TEST(verbs_threads, four_post_on_one_queue_pair_and_two_poll_each_queue)
{
	struct shared *s = calloc(1, sizeof *s);

	cr_assert(s);
	vt_init(&s->v);
	s->v.init.cap = (struct ibv_qp_cap){ DEPTH, DEPTH, 1, 1, 512 };
	s->v.cqe = 2 * DEPTH;
	vt_up(&s->v);
	s->a = area(&s->v.a, 'a');
	s->b = area(&s->v.b, 'b');
	sem_init(&s->room, 0, DEPTH);
	for (uint64_t i = 0; i < DEPTH; i++)
		receive_verbs_threads(s, i);
	run_threads(s);
	for (uint32_t n = 0; n < ALL; n++) {
		cr_assert_eq(s->times_a[n], 1, "%u was completed %u times", n, s->times_a[n]);
		cr_assert_eq(s->times_b[n], get_verbs_threads_kind(n) == SEND, "%u came %u times",
			     n, s->times_b[n]);
	}
	check_verbs_threads_writes(s);
	cr_assert_eq(ibv_dereg_mr(s->a->mr), 0);
	cr_assert_eq(ibv_dereg_mr(s->b->mr), 0);
	vt_down(&s->v);
	sem_destroy(&s->room);
	free(s->a);
	free(s->b);
	free(s);
}

/* ---- threads that come and go ---- */

#define CALLERS 4
#define CALLS	20

/* Connects, sends one message and goes, again and again. */
static void *call_verbs_threads(void *arg)
{
	const struct vt *to = arg;

	for (int i = 0; i < CALLS; i++) {
		struct vt v;

		vt_init(&v);
		v.addr = to->addr;
		vt_dial(&v);
		cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
		vt_expect(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
		cr_assert_eq(vt_post(&v.a, 1, IBV_WR_SEND, 64, NULL), 0);
		vt_expect_wc(&v.a, 1, IBV_WC_SEND, IBV_WC_SUCCESS);
		vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
		vt_down(&v);
	}
	return NULL;
}

/* One for each connection, found by its identifier. */
static void answer_verbs_threads(struct vt *v, struct rdma_cm_id *id)
{
	struct vt_end *e = calloc(1, sizeof *e);

	cr_assert(e);
	e->id = id;
	id->context = e;
	vt_equip(v, e);
	cr_assert_eq(vt_recv(e, 9, 0, 64), 0);
	cr_assert_eq(rdma_accept(id, &v->accept), 0);
}

static void *hang_up(void *arg)
{
	struct vt_end *e = arg;

	vt_expect_wc(e, 9, IBV_WC_RECV, IBV_WC_SUCCESS);
	cr_assert_eq(rdma_disconnect(e->id), 0);
	return NULL;
}

static void serve_calls(struct vt *v)
{
	pthread_t t[CALLERS * CALLS];
	struct vt_end *e[CALLERS * CALLS];
	unsigned gone = 0, up = 0;

	while (gone < CALLERS * CALLS) {
		struct rdma_cm_event *ev;

		cr_assert(vt_readable(v->b.ch->fd, VT_MS));
		cr_assert_eq(rdma_get_cm_event(v->b.ch, &ev), 0);
		if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			answer_verbs_threads(v, ev->id);
		} else if (ev->event == RDMA_CM_EVENT_ESTABLISHED) {
			e[up] = ev->id->context;
			cr_assert_eq(pthread_create(&t[up], NULL, hang_up, e[up]), 0);
			up++;
		} else {
			cr_assert_eq(ev->event, RDMA_CM_EVENT_DISCONNECTED);
			gone++;
		}
		rdma_ack_cm_event(ev);
	}
	for (unsigned i = 0; i < up; i++) {
		pthread_join(t[i], NULL);
		vt_end_down(e[i]);
		free(e[i]);
	}
}

VT_TEST(verbs_threads, four_connect_and_go_while_one_serves)
{
	pthread_t t[CALLERS];
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	for (unsigned i = 0; i < CALLERS; i++)
		cr_assert_eq(pthread_create(&t[i], NULL, call_verbs_threads, &v), 0);
	serve_calls(&v);
	for (unsigned i = 0; i < CALLERS; i++)
		pthread_join(t[i], NULL);
	vt_down(&v);
}

/* ---- a queue pair that goes while its queue is polled ---- */

#define GOINGS 50

struct watcher {
	struct ibv_cq *cq;
	bool stop;
	unsigned seen;
};

static void *watch_cq_thread(void *arg)
{
	struct watcher *w = arg;
	struct ibv_wc wc;

	while (!__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE)) {
		int n = ibv_poll_cq(w->cq, 1, &wc);

		cr_assert_geq(n, 0);
		if (!n) {
			sched_yield();
			continue;
		}
		cr_assert_neq(wc.qp_num, 0);
		w->seen++;
	}
	return NULL;
}

/* Its receives are flushed while it is destroyed: whoever polls gets them, or does not. */
static void come_and_go_in_verbs_threads(struct vt *v)
{
	struct rdma_cm_event *e;

	cr_assert_eq(rdma_connect(v->a.id, &v->connect), 0);
	e = vt_event(v->b.ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	v->b.id = e->id;
	rdma_ack_cm_event(e);
	v->init.send_cq = v->init.recv_cq = v->b.cq;
	cr_assert_eq(rdma_create_qp(v->b.id, NULL, &v->init), 0);
	for (uint64_t i = 0; i < 16; i++)
		cr_assert_eq(vt_recv(&v->b, i, 0, 64), 0);
	cr_assert_eq(rdma_accept(v->b.id, &v->accept), 0);
	vt_expect(v->a.ch, RDMA_CM_EVENT_ESTABLISHED);
	cr_assert_eq(rdma_disconnect(v->a.id), 0);
	vt_expect(v->b.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_expect(v->b.ch, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_qp(v->b.id);
	cr_assert_eq(rdma_destroy_id(v->b.id), 0);
	v->b.id = NULL;
	vt_expect(v->a.ch, RDMA_CM_EVENT_DISCONNECTED);
}

VT_TEST(verbs_threads, one_polls_while_another_destroys)
{
	struct watcher w = { 0 };
	pthread_t t;
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	for (int i = 0; i < GOINGS; i++) {
		vt_dial(&v);
		if (!i) {
			w.cq = v.b.cq = ibv_create_cq(v.a.id->verbs, 1024, NULL, NULL, 0);
			v.b.mr = ibv_reg_mr(v.a.id->pd, v.b.buf, sizeof v.b.buf,
					    IBV_ACCESS_LOCAL_WRITE);
			cr_assert(v.b.cq && v.b.mr);
			cr_assert_eq(pthread_create(&t, NULL, watch_cq_thread, &w), 0);
		}
		come_and_go_in_verbs_threads(&v);
		vt_end_down(&v.a);
	}
	__atomic_store_n(&w.stop, true, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
	cr_assert_leq(w.seen, 16 * GOINGS);
	vt_down(&v);
}
