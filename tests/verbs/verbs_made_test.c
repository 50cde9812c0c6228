/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each way by which queue pairs, completion queues, shared queues and regions come to be: strict mode and the
 * limits of a profile are the same for all of them.
 */
#include "verbs/voob.h"
#include "verbs/vt.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <dirent.h>
#include <malloc.h>
#include <poll.h>
#include <stdlib.h>

static struct vt pair;
static struct side s;

/* ---- rdma_create_ep for a server, and rdma_get_request ---- */

static struct ibv_qp_init_attr ask_made_qp(uint32_t pieces)
{
	return (struct ibv_qp_init_attr){ .cap = { 4, 4, pieces, 1, 0 }, .sq_sig_all = 0 };
}

static struct rdma_cm_id *listen_made_ep(struct ibv_qp_init_attr attr)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *ai;
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_getaddrinfo("127.0.0.1", "0", &hints, &ai), 0, "%m");
	cr_assert_eq(rdma_create_ep(&id, ai, NULL, &attr), 0, "%m");
	rdma_freeaddrinfo(ai);
	cr_assert_eq(rdma_listen(id, 4), 0, "%m");
	memcpy(&pair.addr, rdma_get_local_addr(id), sizeof(struct sockaddr_in));
	return id;
}

/* Up to the request of a server whose queue pair is as @attr says. */
static int request_made_ep(struct ibv_qp_init_attr attr, struct rdma_cm_id **l,
			   struct rdma_cm_id **got)
{
	vt_init(&pair);
	pair.access = IBV_ACCESS_LOCAL_WRITE;
	pair.init.cap.max_inline_data = 0;
	*l = listen_made_ep(attr);
	vt_dial(&pair);
	cr_assert_eq(rdma_connect(pair.a.id, &pair.connect), 0, "%m");
	return rdma_get_request(*l, got);
}

static void down_made_ep(struct rdma_cm_id *l)
{
	rdma_destroy_ep(l);
	vt_down(&pair);
}

VT_TEST(verbs_made, contact_29_a_server_made_by_rdma_create_ep_has_the_limits)
{
	struct rdma_cm_id *l, *id;

	setenv("DDPSESS_STRICT", "on", 1);
	VT_MINUS_AS(request_made_ep(ask_made_qp(7), &l, &id), EINVAL);
	vt_expect(pair.a.ch, RDMA_CM_EVENT_REJECTED);
	down_made_ep(l);
}

VT_TEST(verbs_made, contact_29_its_send_queue_is_full_when_an_adapters_is)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE }, *bad;
	struct rdma_cm_id *l, *id;

	setenv("DDPSESS_STRICT", "on", 1);
	cr_assert_eq(request_made_ep(ask_made_qp(1), &l, &id), 0, "%m");
	cr_assert_eq(rdma_accept(id, NULL), 0, "%m");
	vt_expect(pair.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	for (int i = 0; i < 4; i++)
		cr_expect_eq(ibv_post_send(id->qp, &wr, &bad), 0);
	cr_assert_eq(vt_recv(&pair.a, 1, 0, 8), 0);
	cr_expect_eq(ibv_post_send(id->qp, &wr, &bad), ENOMEM);
	cr_expect_eq(rdma_disconnect(id), 0);
	rdma_destroy_ep(id);
	down_made_ep(l);
}

static const char narrow[] = "device d0\nlimit max_inline 64\nlimit max_qp 2\nlimit max_cq 3\n"
			     "limit max_cqe 64\n";

/* The client has one queue pair and one queue, the first server one and two. */
VT_TEST(verbs_made, contact_29_its_objects_are_counted_and_its_inline_data_is_as_granted)
{
	struct ibv_qp_init_attr attr = ask_made_qp(1), said;
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *ai;
	struct rdma_cm_id *l, *id, *other;
	struct ibv_qp_attr now;

	vp_use(narrow);
	cr_assert_eq(request_made_ep(attr, &l, &id), 0, "%m");
	cr_assert_eq(ibv_query_qp(id->qp, &now, IBV_QP_CAP, &said), 0);
	cr_expect_eq(now.cap.max_inline_data, 64);
	VT_NULL_AS(ibv_create_cq(id->verbs, 1, NULL, NULL, 0), ENOMEM);
	cr_assert_eq(rdma_getaddrinfo("127.0.0.1", "9", &hints, &ai), 0, "%m");
	VT_MINUS_AS(rdma_create_ep(&other, ai, NULL, &attr), ENOMEM);
	rdma_destroy_ep(id); /* makes room for all of it */
	attr.cap = (struct ibv_qp_cap){ 4, 4, 1, 1, 65 };
	VT_MINUS_AS(rdma_create_ep(&other, ai, NULL, &attr), EINVAL);
	attr.cap = (struct ibv_qp_cap){ 65, 4, 1, 1, 0 }; /* its queue is too long */
	VT_MINUS_AS(rdma_create_ep(&other, ai, NULL, &attr), EINVAL);
	attr.cap.max_send_wr = 4;
	cr_assert_eq(rdma_create_ep(&other, ai, NULL, &attr), 0, "%m");
	rdma_destroy_ep(other);
	rdma_freeaddrinfo(ai);
	down_made_ep(l);
}

/* ---- shared receive queues ---- */

Test(verbs_made, contact_29_a_shared_queue_of_an_identifier_has_the_limits)
{
	struct rdma_event_channel *ch;
	struct ibv_srq_init_attr init = { .attr = { 9, 1, 0 } };
	struct sockaddr_in to = { AF_INET, htons(9), { htonl(INADDR_LOOPBACK) }, { 0 } };
	struct rdma_cm_id *id;

	vp_use("device d0\nlimit max_srq 1\nlimit max_srq_wr 8\n");
	ch = rdma_create_event_channel();
	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1), 0);
	vt_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	VT_MINUS_AS(rdma_create_srq(id, NULL, &init), EINVAL);
	for (int i = 0; i < 2; i++) {
		init.attr = (struct ibv_srq_attr){ 8, 1, 0 };
		cr_assert_eq(rdma_create_srq(id, NULL, &init), 0, "%m");
		VT_NULL_AS(ibv_create_srq(id->pd, &init), ENOMEM);
		rdma_destroy_srq(id);
	}
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

/* ---- memory, domains, queues that grow ---- */

Test(verbs_made, contact_29_regions_of_each_kind_have_the_limits)
{
	static char big[8192];
	struct ibv_alloc_dm_attr want = { .length = 8192 };
	const unsigned zero = IBV_ACCESS_ZERO_BASED,
		       atomic = IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE;
	struct ibv_device **list;
	struct ibv_mr *mr, *own;
	struct ibv_dm *dm;

	vp_use("device d0\natomics off\nlimit max_mr 2\nlimit max_mr_size 4096\nlimit max_cqe 8\n"
	       "limit max_pd 2\n");
	memset(&s, 0, sizeof s);
	list = ibv_get_device_list(NULL);
	s.ctx = ibv_open_device(*list);
	ibv_free_device_list(list);
	s.pd = ibv_alloc_pd(s.ctx);
	s.cq = ibv_create_cq(s.ctx, 8, NULL, NULL, 0);
	dm = ibv_alloc_dm(s.ctx, &want);
	cr_assert(s.pd && s.cq && dm);
	mr = ibv_reg_mr(s.pd, big, 4096, 0);
	cr_assert_not_null(mr);
	cr_expect_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, big, 4097, 0),
		     IBV_REREG_MR_ERR_INPUT);
	cr_expect_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, (int)atomic),
		     IBV_REREG_MR_ERR_INPUT);
	VT_NULL_AS(ibv_reg_dm_mr(s.pd, dm, 0, 4097, zero), EINVAL);
	VT_NULL_AS(ibv_reg_dm_mr(s.pd, dm, 0, 8, zero | atomic), EOPNOTSUPP);
	for (int i = 0; i < 2; i++) { /* as often as it goes, it makes room for one */
		own = ibv_reg_dm_mr(s.pd, dm, 0, 4096, zero);
		cr_assert_not_null(own, "%m");
		VT_NULL_AS(ibv_reg_mr(s.pd, big, 8, 0), ENOMEM);
		cr_expect_eq(ibv_dereg_mr(own), 0);
	}
	cr_expect_eq(ibv_resize_cq(s.cq, 9), EINVAL);
	for (int i = 0; i < 2; i++) { /* another name of a domain is none that is counted */
		struct ibv_parent_domain_init_attr of = { .pd = s.pd };
		struct ibv_pd *pd = ibv_alloc_parent_domain(s.ctx, &of), *more;

		cr_assert_not_null(pd, "%m");
		cr_expect_eq(ibv_dealloc_pd(pd), 0);
		more = ibv_alloc_pd(s.ctx);
		cr_assert_not_null(more, "%m");
		VT_NULL_AS(ibv_alloc_pd(s.ctx), ENOMEM);
		cr_expect_eq(ibv_dealloc_pd(more), 0);
	}
	s.mr = mr;
	cr_expect_eq(ibv_free_dm(dm), 0);
	close_oob_side(&s);
}

/* Memory that is paged on demand is not pinned, whether it is new or changed; what is pinned then is counted. */
Test(verbs_made, contact_29_a_changed_region_on_demand_is_not_pinned)
{
	const int odp = IBV_ACCESS_ON_DEMAND;
	const struct rlimit few = { 16384, 16384 };
	char *mem = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	cr_assert_neq(mem, MAP_FAILED);
	setenv("DDPSESS_STRICT", "on", 1);
	up_device(&s);
	cr_assert_eq(ibv_dereg_mr(s.mr), 0);
	vf_may_not_pin();
	cr_assert_eq(setrlimit(RLIMIT_MEMLOCK, &few), 0);
	mr = ibv_reg_mr(s.pd, mem, 4096, odp);
	cr_assert_not_null(mr, "%m");
	cr_expect_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, mem, 1 << 20, 0), 0);
	VT_REFUSED_AS(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), ENOMEM);
	cr_expect_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS,
				  NULL, mem, 8192, 0),
		     0);
	VT_NULL_AS(ibv_reg_mr(s.pd, mem + 8192, 12288, 0), ENOMEM);
	VT_REFUSED_AS(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, mem, 1 << 20, 0),
		      ENOMEM);
	s.mr = mr;
	close_oob_side(&s);
	munmap(mem, 1 << 20);
}

/* ---- thousands of queue pairs in one process, and what is left when they are gone ---- */

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
