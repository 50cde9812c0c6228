/* SPDX-License-Identifier: BSD-2-Clause */
/* Whatever the system refuses, a call that needs it fails, says why, and leaves nothing behind. */
#include "support/child.h"
#include "verbs/vfail.h"
#include "verbs/vt.h"
#include "verbs/vud.h"
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <string.h>

/* Everything that a program may have; what is NULL is not there. */
struct all {
	struct ibv_context *ctx, *again;
	struct ibv_pd *pd, *parent, *named;
	struct ibv_td *td;
	struct ibv_comp_channel *cc;
	struct ibv_cq *cq;
	struct ibv_cq_ex *cqx;
	struct ibv_srq *srq;
	struct ibv_qp *qp, *ud;
	struct ibv_mr *mr, *dm_mr, *mr_named;
	struct ibv_mw *mw;
	struct ibv_dm *dm, *dm_named;
	struct ibv_ah *ah;
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id, *sync;
	struct rdma_addrinfo *ai;
	struct ibv_context **devices;
	union ibv_gid group;
	char mem[64];
};

static bool is_known(int error)
{
	static const int known[] = { ENOMEM,	   EMFILE, EADDRINUSE, EADDRNOTAVAIL, ENOBUFS,
				     EAFNOSUPPORT, ENOSPC, ENOSYS,     EAGAIN,	      EIO };

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (error == known[i])
			return true;
	return false;
}

/* ---- libibverbs ---- */

static bool open_all(struct all *s)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list)
		return false;
	s->ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	return s->ctx && (s->pd = ibv_alloc_pd(s->ctx)) &&
	       (s->cc = ibv_create_comp_channel(s->ctx)) &&
	       (s->cq = ibv_create_cq(s->ctx, 8, NULL, s->cc, 0));
}

static bool build_objects(struct all *s)
{
	struct ibv_cq_init_attr_ex ex = { .cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_td_init_attr td = { 0 };
	struct ibv_parent_domain_init_attr parent = { 0 };
	struct ibv_srq_init_attr srq = { .attr = { 4, 1, 0 } };
	struct ibv_alloc_dm_attr dm = { .length = 64 };
	struct ibv_ah_attr ah = { .is_global = 1, .port_num = 1 };
	const int access = IBV_ACCESS_LOCAL_WRITE;

	ah.grh.dgid.raw[15] = 1;
	if (!open_all(s) || !(s->cqx = ibv_create_cq_ex(s->ctx, &ex)) ||
	    !(s->td = ibv_alloc_td(s->ctx, &td)))
		return false;
	parent.pd = s->pd;
	parent.td = s->td;
	return (s->parent = ibv_alloc_parent_domain(s->ctx, &parent)) &&
	       (s->srq = ibv_create_srq(s->pd, &srq)) &&
	       (s->mr = ibv_reg_mr_iova(s->pd, s->mem, 64, 0x1000, access)) &&
	       (s->mw = ibv_alloc_mw(s->pd, IBV_MW_TYPE_2)) &&
	       (s->dm = ibv_alloc_dm(s->ctx, &dm)) &&
	       (s->dm_mr = ibv_reg_dm_mr(s->pd, s->dm, 0, 64, access | IBV_ACCESS_ZERO_BASED)) &&
	       (s->ah = ibv_create_ah(s->pd, &ah)) &&
	       (s->again = ibv_import_device(s->ctx->cmd_fd)) &&
	       (s->named = ibv_import_pd(s->ctx, s->pd->handle)) &&
	       (s->mr_named = ibv_import_mr(s->pd, s->mr->handle)) &&
	       (s->dm_named = ibv_import_dm(s->ctx, s->dm->handle)) && !ibv_resize_cq(s->cq, 16) &&
	       !ibv_req_notify_cq(s->cq, 0);
}

static bool build_queue_pair(struct all *s)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 2, 2, 1, 1, 16 } };

	if (!open_all(s))
		return false;
	init.send_cq = init.recv_cq = s->cq;
	return (s->qp = ibv_create_qp(s->pd, &init));
}

static bool build_datagrams(struct all *s)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 2, 2, 1, 1, 16 } };
	union ibv_gid group = { { [10] = 0xff, [11] = 0xff, [12] = 239, [15] = 77 } };
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	const uint16_t loopback = (uint16_t)if_nametoindex("lo");
	int err;

	if (!open_all(s))
		return false;
	init.send_cq = init.recv_cq = s->cq;
	s->ud = ibv_create_qp(s->pd, &init);
	if (!s->ud || ibv_modify_qp(s->ud, &attr, mask))
		return false;
	err = ibv_attach_mcast(s->ud, &group, loopback);
	if (!err) {
		s->group = group;
		err = ibv_post_recv(s->ud, &wr, &bad);
	}
	if (err)
		errno = err;
	return !err;
}

/* ---- librdmacm ---- */

static bool bind_verbs_failing_to(struct rdma_cm_id *id)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	return !rdma_bind_addr(id, (struct sockaddr *)&a4);
}

/* What an address comes to is reported by an event, which synchronous identifiers fetch themselves. */
static bool is_resolved(struct rdma_cm_id *id)
{
	struct rdma_cm_event *e = id->event;
	int status;

	if (!e && rdma_get_cm_event(id->channel, &e))
		return false;
	status = e->status;
	if (e != id->event)
		rdma_ack_cm_event(e);
	errno = -status;
	return !status;
}

static bool resolve_verbs_failing(struct rdma_cm_id *id)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET,
				  .sin_port = htons(9),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	return !rdma_resolve_addr(id, NULL, (struct sockaddr *)&a4, 1000) && is_resolved(id) &&
	       !rdma_resolve_route(id, 1000) && is_resolved(id);
}

static bool build_listener(struct all *s)
{
	return (s->ch = rdma_create_event_channel()) &&
	       !rdma_create_id(s->ch, &s->id, NULL, RDMA_PS_TCP) && bind_verbs_failing_to(s->id) &&
	       !rdma_listen(s->id, 2) && !rdma_migrate_id(s->id, NULL);
}

static bool build_caller(struct all *s)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 2, 3, 1, 1, 16 } };
	struct ibv_srq_init_attr srq = { .attr = { 4, 1, 0 } };

	return !rdma_create_id(NULL, &s->sync, NULL, RDMA_PS_TCP) &&
	       resolve_verbs_failing(s->sync) && !rdma_create_srq(s->sync, NULL, &srq) &&
	       !rdma_create_qp(s->sync, NULL, &init) && (s->devices = rdma_get_devices(NULL));
}

/* To where nobody listens. */
static bool build_connecting(struct all *s)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 2, 3, 1, 1, 16 } };

	return (s->ch = rdma_create_event_channel()) &&
	       !rdma_create_id(s->ch, &s->id, NULL, RDMA_PS_TCP) && resolve_verbs_failing(s->id) &&
	       !rdma_create_qp(s->id, NULL, &init) && !rdma_connect(s->id, NULL);
}

static bool build_endpoint(struct all *s)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 2, 2, 1, 1, 16 } };
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP };
	int err;

	hints.ai_src_addr = (struct sockaddr *)&a4;
	hints.ai_src_len = sizeof a4;
	err = rdma_getaddrinfo("127.0.0.1", "9", &hints, &s->ai);
	if (err > 0 || err < -1)
		errno = err == EAI_MEMORY ? ENOMEM : EINVAL;
	if (err)
		s->ai = NULL;
	return !err && !rdma_create_ep(&s->sync, s->ai, NULL, &init);
}

static bool build_datagram_listener(struct all *s)
{
	return !rdma_create_id(NULL, &s->id, NULL, RDMA_PS_UDP) && bind_verbs_failing_to(s->id) &&
	       !rdma_listen(s->id, 2);
}

static bool build_datagram_caller(struct all *s)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 2, 3, 1, 1, 16 } };
	struct sockaddr_in a4 = { .sin_family = AF_INET };

	a4.sin_addr.s_addr = htonl(0xefff0001); /* 239.255.0.1 */
	return (s->ch = rdma_create_event_channel()) &&
	       !rdma_create_id(s->ch, &s->id, NULL, RDMA_PS_UDP) && resolve_verbs_failing(s->id) &&
	       !rdma_create_qp(s->id, NULL, &init) &&
	       !rdma_join_multicast(s->id, (struct sockaddr *)&a4, NULL) &&
	       !rdma_connect(s->id, NULL);
}

/* ---- nothing remains ---- */

#define UNDO(call, what)                                                                           \
	do {                                                                                       \
		if (s->what)                                                                       \
			bad |= call(s->what) != 0;                                                 \
	} while (0)

static bool undo_ids(struct all *s)
{
	int bad = 0;

	if (s->sync && s->sync->qp)
		rdma_destroy_qp(s->sync);
	if (s->sync && s->sync->srq)
		rdma_destroy_srq(s->sync);
	if (s->id && s->id->qp)
		rdma_destroy_qp(s->id);
	/* That one's channel is its own once it has moved. */
	UNDO(rdma_destroy_id, sync);
	UNDO(rdma_destroy_id, id);
	if (s->ch)
		rdma_destroy_event_channel(s->ch);
	if (s->ai)
		rdma_freeaddrinfo(s->ai);
	if (s->devices)
		rdma_free_devices(s->devices);
	return !bad;
}

static bool undo(struct all *s)
{
	int bad = 0;

	if (s->dm_named)
		ibv_unimport_dm(s->dm_named);
	if (s->mr_named)
		ibv_unimport_mr(s->mr_named);
	if (s->named)
		ibv_unimport_pd(s->named);
	UNDO(ibv_close_device, again);
	UNDO(ibv_destroy_ah, ah);
	UNDO(ibv_dereg_mr, dm_mr);
	UNDO(ibv_free_dm, dm);
	UNDO(ibv_dealloc_mw, mw);
	UNDO(ibv_dereg_mr, mr);
	if (s->group.raw[10])
		bad |= ibv_detach_mcast(s->ud, &s->group, (uint16_t)if_nametoindex("lo")) != 0;
	UNDO(ibv_destroy_qp, ud);
	UNDO(ibv_destroy_qp, qp);
	UNDO(ibv_destroy_srq, srq);
	UNDO(ibv_dealloc_pd, parent);
	UNDO(ibv_dealloc_td, td);
	if (s->cqx)
		bad |= ibv_destroy_cq(ibv_cq_ex_to_cq(s->cqx)) != 0;
	UNDO(ibv_destroy_cq, cq);
	UNDO(ibv_destroy_comp_channel, cc);
	UNDO(ibv_dealloc_pd, pd);
	UNDO(ibv_close_device, ctx);
	return undo_ids(s) && !bad;
}

/* ---- each call, one after the other ---- */

enum { DONE = 1, LEFT_OVER, WITHOUT_REASON, NOT_AGAIN };

/* In a process that has nothing yet.  Return: 0, or why not; DONE: the @n-th call does not exist. */
static int try_cold(bool (*build)(struct all *s), unsigned n)
{
	struct all s = { 0 }, more = { 0 };
	bool ok, came;
	int err;

	vfail_nth(VFAIL_ALL, n);
	errno = 0;
	ok = build(&s);
	err = errno;
	came = vfail_came();
	if (!ok && !is_known(err))
		return WITHOUT_REASON;
	if (!undo(&s))
		return LEFT_OVER;
	if (!build(&more) || !undo(&more))
		return NOT_AGAIN;
	return came ? 0 : DONE;
}

static void each_cold(bool (*build)(struct all *s))
{
	int status = 0;
	unsigned n;

	for (n = 1; !status; n++) {
		pid_t child = fork();

		if (!child)
			_exit(try_cold(build, n));
		status = await_child_status(child);
	}
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == DONE, "call %u: %#x", n - 1, status);
	cr_expect_gt(n, 10);
}

/* Return: whether there was an @n-th call. */
static bool try_warm(bool (*build)(struct all *s), unsigned n, bool measured)
{
	const long live = vfail_live();
	const int files = vfail_files();
	struct all s = { 0 };
	bool ok, came;

	vfail_nth(VFAIL_ALL, n);
	errno = 0;
	ok = build(&s);
	cr_expect(ok || is_known(errno), "call %u: %m", n);
	came = vfail_came();
	cr_expect(came || ok);
	cr_expect(undo(&s), "call %u: something remains", n);
	if (measured)
		cr_expect(vfail_nothing_more(live, files), "call %u: something remains", n);
	return came;
}

/* In one that has had all of it before, so that nothing but what leaks is new. */
static void each_warm(bool (*build)(struct all *s))
{
	for (int round = 0; round < 2; round++) {
		unsigned n = 1;

		while (try_warm(build, n, round))
			n++;
		cr_expect_gt(n, 4);
		/* A channel outlives its end until so many others have gone: vd_event.c. */
		for (int i = 0; i < 16; i++) {
			struct all s = { 0 };

			cr_assert(build(&s), "%m");
			cr_assert(undo(&s));
		}
	}
}

static const char profile[] = "device a0\nlimit max_qp 100\nport 1\n"
			      "device b0\nface roce\nport 1\n";

/* Over each wire; and with an edge that looks at each call, or makes devices of a profile. */
#define EACH(name)                                                                                 \
	VT_TEST(verbs_failing, name)                                                               \
	{                                                                                          \
		each_cold(build_##name);                                                           \
		each_warm(build_##name);                                                           \
	}                                                                                          \
	Test(verbs_failing, name##_checked, .timeout = 60)                                         \
	{                                                                                          \
		setenv("DDPSESS_CHECK", "on", 1);                                                  \
		each_cold(build_##name);                                                           \
	}                                                                                          \
	Test(verbs_failing, name##_profiled, .timeout = 60)                                        \
	{                                                                                          \
		vp_use(profile);                                                                   \
		ibv_free_device_list(ibv_get_device_list(NULL)); /* which reads it */              \
		each_cold(build_##name);                                                           \
	}

EACH(objects)
EACH(queue_pair)
EACH(datagrams)
EACH(listener)
EACH(caller)
EACH(connecting)
EACH(endpoint)
EACH(datagram_listener)
EACH(datagram_caller)
