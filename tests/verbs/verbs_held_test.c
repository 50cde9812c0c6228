/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a connection is reported after the completions that came before it. */
#include "support/clock.h"
#include "verbs/vd.h"
#include "verbs/vt.h"
#include <sched.h>
#include <time.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

/* Until the passive side's session is over, without looking for an event or a completion. */
static void await_verbs_held_end(struct vt *v)
{
	const uint64_t until = read_clock_ms() + VT_MS;
	struct vd_process *p = vd_process();
	enum ibv_qp_state state;

	do {
		sched_yield();
		cr_assert(read_clock_ms() < until, "the session does not end");
		ddps_lock(&p->lock);
		state = v->b.id->qp->state;
		ddps_unlock(&p->lock);
	} while (state != IBV_QPS_ERR);
}

/* Until b has the message, which nobody fetches: what breaks a connection off may overtake it. */
static void await_message(struct vt *v)
{
	const struct vd_qp *qp = vd_of(v->b.id->qp, struct vd_qp, qp.qp_base);
	const uint64_t until = read_clock_ms() + VT_MS;

	while (!ddps_ep_unfetched(qp->ep)) {
		sched_yield();
		cr_assert(read_clock_ms() < until, "the message does not come");
	}
}

static void leave_verbs_held(struct vt_end *e)
{
	cr_assert_eq(rdma_disconnect(e->id), 0);
}

static void break_off(struct vt_end *e)
{
	cr_assert_eq(ibv_modify_qp(e->id->qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_ERR },
				   IBV_QP_STATE),
		     0);
}

/* The end is held back for @hold_ms; a message and the end come between two polls of b's. */
static void send_and_end(struct vt *v, unsigned hold_ms, void (*end)(struct vt_end *))
{
	vd_process()->hold_ms = hold_ms;
	cr_assert_eq(vt_recv(&v->b, 7, 0, 64), 0);
	cr_assert_eq(vt_post(&v->a, 1, IBV_WR_SEND, 64, NULL), 0);
	vt_expect_wc(&v->a, 1, IBV_WC_SEND, IBV_WC_SUCCESS);
	await_message(v);
	end(&v->a);
	await_verbs_held_end(v);
}

static void send_and_leave(struct vt *v, unsigned hold_ms)
{
	vt_init(v);
	vt_up(v);
	send_and_end(v, hold_ms, leave_verbs_held);
}

/* For @quiet_ms nothing is reported; the completion is fetched, and then the end is. */
static void told_behind_the_completion(struct vt *v, int quiet_ms)
{
	cr_expect(!vt_readable(v->b.ch->fd, quiet_ms), "the end is told before the completion");
	vt_expect_wc(&v->b, 7, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_expect(v->b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect(v->a.ch, RDMA_CM_EVENT_DISCONNECTED);
}

/* What nobody fetched before the end was reported is there after it. */
static void told_before_the_completion(struct vt *v)
{
	vt_expect(v->b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect(v->a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect_wc(&v->b, 7, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_down(v);
}

VT_TLS_TEST(verbs_held, attack_25_the_last_completion_comes_before_the_end)
{
	struct vt v;

	send_and_leave(&v, 10 * VT_MS);
	/* What libfabric's rxm does: events first, and at the end of the connection it destroys. */
	told_behind_the_completion(&v, 0);
	rdma_destroy_qp(v.b.id);
	vt_down(&v);
}

VT_TLS_TEST(verbs_held, attack_25_the_end_waits_for_nobody_for_long)
{
	struct vt v;

	send_and_leave(&v, 50);
	told_before_the_completion(&v);
}

/* The queue pair goes while its end waits. */
VT_TLS_TEST(verbs_held, attack_25_a_queue_pair_that_goes_holds_nothing_back)
{
	struct vt v;

	send_and_leave(&v, 10 * VT_MS);
	cr_expect(!LIST_EMPTY(&vd_process()->held));
	rdma_destroy_qp(v.b.id);
	cr_expect(LIST_EMPTY(&vd_process()->held));
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
}

VT_TLS_TEST(verbs_held, attack_25_an_end_with_nothing_before_it_is_reported_immediately)
{
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	vd_process()->hold_ms = 10 * VT_MS;
	cr_assert_eq(vt_recv(&v.b, 7, 0, 64), 0);
	cr_assert_eq(rdma_disconnect(v.a.id), 0);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect_wc(&v.b, 7, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
}

/* libfabric's rxm on a busy host: what it has not fetched is not lost because it did not run for a while. */
VT_TLS_TEST(verbs_held, attack_25_who_fetches_is_waited_for_longer)
{
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	cr_assert_eq(vt_recv(&v.b, 6, 0, 64), 0);
	cr_assert_eq(vt_post(&v.a, 1, IBV_WR_SEND, 64, NULL), 0);
	vt_expect_wc(&v.b, 6, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_expect_wc(&v.a, 1, IBV_WC_SEND, IBV_WC_SUCCESS);
	send_and_end(&v, 50, leave_verbs_held);
	told_behind_the_completion(&v, 500);
	vt_down(&v);
}

/* A peer that goes without a word, as a process that is killed does. */
VT_TLS_TEST(verbs_held, attack_25_the_last_completion_comes_before_a_broken_end)
{
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	send_and_end(&v, 10 * VT_MS, break_off);
	told_behind_the_completion(&v, 100);
	vt_down(&v);
}

/* Who ends it, too, waits for nothing. */
VT_TLS_TEST(verbs_held, attack_25_an_end_from_both_sides_is_reported_immediately)
{
	struct vt v;

	send_and_leave(&v, 10 * VT_MS);
	cr_expect(!LIST_EMPTY(&vd_process()->held));
	cr_assert_eq(rdma_disconnect(v.b.id), 0);
	cr_expect(LIST_EMPTY(&vd_process()->held));
	told_before_the_completion(&v);
}

/* ---- flood ---- */

/* The calls of the drop-in that wait by themselves end in time while a peer goes on sending. */

#define SLACK_MS 1500 /* a busy machine; a wait that traffic renews takes for ever */

struct flood {
	struct vt v; /* a sends, b is the victim */
	pthread_t thread;
	unsigned sent; /* atomic */
	bool stop;     /* atomic */
};

/* Writes of no octets, until the connection ends and after. */
static void *flood_verbs_flood(void *arg)
{
	struct flood *f = arg;
	struct ibv_wc wc[16];

	while (!__atomic_load_n(&f->stop, __ATOMIC_RELAXED)) {
		if (!vt_post(&f->v.a, 1, IBV_WR_RDMA_WRITE, 0, &f->v.b))
			__atomic_add_fetch(&f->sent, 1, __ATOMIC_RELAXED);
		ibv_poll_cq(f->v.a.cq, 16, wc);
	}
	return NULL;
}

static void flood_start(struct flood *f)
{
	const uint64_t until = read_clock_ms() + VT_MS;

	vt_init(&f->v);
	vt_up(&f->v);
	cr_assert_eq(pthread_create(&f->thread, NULL, flood_verbs_flood, f), 0);
	while (__atomic_load_n(&f->sent, __ATOMIC_RELAXED) < 1000)
		cr_assert(read_clock_ms() < until, "no flood");
}

static void flood_stop(struct flood *f)
{
	__atomic_store_n(&f->stop, true, __ATOMIC_RELAXED);
	pthread_join(f->thread, NULL);
	vt_down(&f->v);
}

/* What a synchronous identifier asks for is there when the calls return. */
static void wait_resolve(struct flood *f)
{
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	cr_expect_eq(rdma_resolve_addr(id, NULL, (struct sockaddr *)&f->v.addr, 100), 0, "%m");
	cr_expect_eq(rdma_resolve_route(id, 100), 0, "%m");
	cr_assert_eq(rdma_destroy_id(id), 0);
}

static void wait_disconnect(struct flood *f)
{
	cr_assert_eq(rdma_migrate_id(f->v.b.id, NULL), 0, "%m");
	cr_expect_eq(rdma_disconnect(f->v.b.id), 0, "%m");
}

static void wait_destroy(struct flood *f)
{
	cr_expect_eq(rdma_disconnect(f->v.b.id), 0, "%m");
	rdma_destroy_qp(f->v.b.id);
}

static const struct {
	const char *name;
	void (*wait)(struct flood *f);
	unsigned ms; /* as asked; CLOSE_MS of vd_conn.c; CLOSE_SECONDS of vd_qp.c */
} waits[] = {
	{ "rdma_resolve_addr and _route", wait_resolve, 200 },
	{ "rdma_disconnect", wait_disconnect, 2000 },
	{ "ibv_destroy_qp", wait_destroy, 1000 },
};

VT_TEST(verbs_flood, attack_9_every_wait_ends_in_time_under_a_flood)
{
	for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
		struct flood f = { .stop = false };
		uint64_t took, began;

		flood_start(&f);
		began = read_clock_ms();
		waits[i].wait(&f);
		took = read_clock_ms() - began;
		cr_expect_leq(took, waits[i].ms + SLACK_MS, "%s took %llu ms", waits[i].name,
			      (unsigned long long)took);
		flood_stop(&f);
	}
}

/* ---- a peer made by hand, which sends on whatever this side says ---- */

struct rude {
	pthread_t thread;
	int fd;
	bool stop; /* atomic */
};

/* RDMA Writes of no octets, without CRC. */
static void *send_on_verbs_flood(void *arg)
{
	static const uint8_t fpdu[20] = { 0, 14, 0xc1, 0x40 };
	const struct timespec moment = { .tv_nsec = 1000000 };
	struct rude *r = arg;

	while (!__atomic_load_n(&r->stop, __ATOMIC_RELAXED)) {
		for (int i = 0; i < 10; i++)
			send(r->fd, fpdu, sizeof fpdu, MSG_DONTWAIT | MSG_NOSIGNAL);
		nanosleep(&moment, NULL);
	}
	return NULL;
}

static void rude_up(struct rude *r, struct vt *v)
{
	vt_init(v);
	vt_listen(v);
	r->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(connect(r->fd, (struct sockaddr *)&v->addr, sizeof(struct sockaddr_in)), 0);
	cr_assert_eq(send(r->fd, "MPA ID Req Frame\0\1\0\0", 20, 0), 20);
	vt_take_request(v);
	cr_assert_eq(rdma_accept(v->b.id, &v->accept), 0, "%m");
	vt_expect(v->b.ch, RDMA_CM_EVENT_ESTABLISHED);
	cr_assert_eq(pthread_create(&r->thread, NULL, send_on_verbs_flood, r), 0);
}

Test(verbs_flood, attack_9_a_peer_that_ignores_the_close_holds_nobody, .timeout = 60)
{
	setenv("DDPSESS_TRANSPORT", "tcp", 1);
	setenv("DDPSESS_CRC", "off", 1);
	for (size_t i = 1; i < sizeof waits / sizeof *waits; i++) { /* those that close */
		struct flood f = { .stop = false };
		struct rude r = { .stop = false };
		uint64_t took;

		rude_up(&r, &f.v);
		took = read_clock_ms();
		waits[i].wait(&f);
		took = read_clock_ms() - took;
		cr_expect_leq(took, waits[i].ms + SLACK_MS, "%s took %llu ms", waits[i].name,
			      (unsigned long long)took);
		cr_expect_geq(took, waits[i].ms - 100, "%s ended by itself: %llu ms", waits[i].name,
			      (unsigned long long)took);
		__atomic_store_n(&r.stop, true, __ATOMIC_RELAXED);
		pthread_join(r.thread, NULL);
		close(r.fd);
		vt_down(&f.v);
	}
}
