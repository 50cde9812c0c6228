/* SPDX-License-Identifier: BSD-2-Clause */
/* Thousands of queue pairs in one process, and what is left when they are gone. */
#include "verbs/vt.h"
#include <dirent.h>
#include <malloc.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define PAIRS	 1500
#define ROUNDS	 2
#define FD_PAIR	 4 /* descriptors of a connected pair, at most */
#define FD_REST	 256
#define STAYS_MS 50
#define SLACK	 32768 /* octets that the second round may add: tables that grow, no leak a pair */

size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

struct pair {
	struct rdma_cm_id *id[2];
};

static size_t allocated(void)
{
	if (__sanitizer_get_current_allocated_bytes)
		return __sanitizer_get_current_allocated_bytes();
	return mallinfo2().uordblks;
}

/* The same once nothing is under way any more: it has stayed for a while. */
static size_t settle_whole_verbs_many(void)
{
	size_t now = allocated();

	for (int ms = 0, same = 0; ms < VT_MS && same < STAYS_MS; ms++, same++) {
		poll(NULL, 0, 1);
		if (allocated() != now)
			same = 0;
		now = allocated();
	}
	return now;
}

static unsigned count_verbs_many_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	cr_assert_not_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* As many as the hard limit of descriptors allows. */
static unsigned how_many(void)
{
	struct rlimit lim;
	rlim_t room;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &lim), 0);
	lim.rlim_cur = lim.rlim_max;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
	cr_assert_gt(lim.rlim_cur, FD_REST + FD_PAIR, "a limit of %llu is too low to test anything",
		     (unsigned long long)lim.rlim_cur);
	room = (lim.rlim_cur - FD_REST) / FD_PAIR;
	return room < PAIRS ? (unsigned)room : PAIRS;
}

static void make_verbs_many_queue_pair(struct vt *v, struct rdma_cm_id *id, unsigned i)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC,
					 .cap = { 1, 1, 1, 1, 0 },
					 .send_cq = v->a.cq,
					 .recv_cq = v->a.cq,
					 .sq_sig_all = 1 };

	cr_assert_eq(rdma_create_qp(id, NULL, &attr), 0, "pair %u: %m", i);
}

static void bring_up(struct vt *v, struct pair *p, unsigned i)
{
	struct rdma_cm_event *e;

	cr_assert_eq(rdma_create_id(v->a.ch, &p->id[0], NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_resolve_addr(p->id[0], NULL, (struct sockaddr *)&v->addr, 1), 0);
	vt_expect(v->a.ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_assert_eq(rdma_resolve_route(p->id[0], 1), 0);
	vt_expect(v->a.ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_verbs_many_queue_pair(v, p->id[0], i);
	cr_assert_eq(rdma_connect(p->id[0], &v->connect), 0, "pair %u: %m", i);
	e = vt_event(v->b.ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	p->id[1] = e->id;
	rdma_ack_cm_event(e);
	make_verbs_many_queue_pair(v, p->id[1], i);
	cr_assert_eq(rdma_accept(p->id[1], &v->accept), 0, "pair %u: %m", i);
	vt_expect(v->a.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_expect(v->b.ch, RDMA_CM_EVENT_ESTABLISHED);
}

/* From the first octets of the memory to the last. */
static void transfer_verbs_many(struct vt *v, const struct pair *p, uint32_t i)
{
	uint8_t *from = v->a.buf, *to = v->a.buf + 4096;
	struct ibv_sge in = { (uintptr_t)to, 64, v->a.mr->lkey },
		       out = { (uintptr_t)from, 64, v->a.mr->lkey };
	struct ibv_recv_wr rwr = { .wr_id = i, .sg_list = &in, .num_sge = 1 }, *rbad;
	struct ibv_send_wr swr = { .wr_id = i,
				   .sg_list = &out,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND },
			   *sbad;
	unsigned got = 0;

	memcpy(from + 60, &i, sizeof i);
	cr_assert_eq(ibv_post_recv(p->id[1]->qp, &rwr, &rbad), 0);
	cr_assert_eq(ibv_post_send(p->id[0]->qp, &swr, &sbad), 0);
	for (int n = 0; n < 2; n++) {
		struct ibv_wc wc = vt_wc(&v->a);

		cr_assert_eq(wc.status, IBV_WC_SUCCESS);
		cr_assert_eq(wc.wr_id, i);
		got |= wc.opcode == IBV_WC_RECV ? 2 : 1;
	}
	cr_assert_eq(got, 3);
	cr_assert_arr_eq(to, from, 64);
}

/* Some say that they go, some are informed, and some just go. */
static void take_verbs_many_down(struct pair *p, unsigned n)
{
	for (unsigned i = 0; i < n; i += 3)
		cr_assert_eq(rdma_disconnect(p[i].id[0]), 0);
	for (unsigned i = 0; i < n; i++)
		for (int end = 0; end < 2; end++) {
			rdma_destroy_qp(p[i].id[end]);
			cr_assert_eq(rdma_destroy_id(p[i].id[end]), 0);
		}
}

/* Connections that have ended close their sockets soon. */
static void await_descriptors(unsigned want)
{
	for (int ms = 0; ms < VT_MS && count_verbs_many_descriptors() > want; ms++)
		poll(NULL, 0, 1);
	cr_assert_leq(count_verbs_many_descriptors(), want);
}

static void await_memory(size_t want)
{
	for (int ms = 0; ms < VT_MS && allocated() > want; ms++)
		poll(NULL, 0, 1);
	cr_assert_leq(allocated(), want, "%zu octets are left", allocated() - want);
}

static void run_verbs_many_round(struct pair *p, unsigned n)
{
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v); /* for its queue and memory */
	for (unsigned i = 0; i < n; i++)
		bring_up(&v, &p[i], i);
	for (unsigned i = 0; i < n; i++)
		transfer_verbs_many(&v, &p[i], i);
	take_verbs_many_down(p, n);
	vt_down(&v);
}

VT_TLS_TEST(verbs_many, thousands_of_queue_pairs_leave_nothing)
{
	const unsigned n = how_many();
	struct pair *p = calloc(n, sizeof *p);
	size_t bytes = 0;
	unsigned fds;

	cr_assert_not_null(p);
	run_verbs_many_round(p, 1); /* what the process keeps is there now */
	fds = count_verbs_many_descriptors();
	for (int round = 0; round < ROUNDS; round++) {
		run_verbs_many_round(p, n);
		await_descriptors(fds);
		if (round)
			await_memory(bytes + SLACK);
		else
			bytes = settle_whole_verbs_many();
	}
	free(p);
}

/* A listener that goes while requests wait that nobody has fetched. */
VT_TLS_TEST(verbs_many, requests_that_nobody_fetched_leave_nothing)
{
	size_t bytes = 0;

	setenv("DDPSESS_RETRY_MS", "0", 1); /* over SCTP they are asked again, of nobody */
	for (int i = 0; i < 200; i++) {
		struct vt v;

		vt_init(&v);
		vt_listen(&v);
		vt_dial(&v);
		cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
		cr_assert(vt_readable(v.b.ch->fd, VT_MS));
		cr_assert_eq(rdma_destroy_id(v.listen), 0);
		v.listen = NULL;
		vt_expect(v.a.ch, RDMA_CM_EVENT_REJECTED);
		vt_down(&v);
		if (i == 99)
			bytes = settle_whole_verbs_many();
	}
	await_memory(bytes + SLACK);
}
