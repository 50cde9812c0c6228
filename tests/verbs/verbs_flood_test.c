/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of the drop-in that wait by themselves end in time while a peer goes on sending. */
#include "support/clock.h"
#include "verbs/vt.h"
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

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
