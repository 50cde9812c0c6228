/* SPDX-License-Identifier: BSD-2-Clause */
/* Identifiers where something is missing: an address, a port, a queue, memory, the channel. */
#include "support/child.h"
#include "verbs/cm/vd_event.h"
#include "verbs/vd.h"
#include "verbs/vfail.h"
#include "verbs/vt.h"
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct sockaddr_in at_port(__be16 port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = port,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

/* ---- addresses as text ---- */

Test(verbs_id_limits, addresses_as_text)
{
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_port = htons(5) };
	struct sockaddr_in a4 = at_port(htons(7));
	char text[80];

	vd_addr_text((struct sockaddr *)&a4, text, sizeof text);
	cr_expect_str_eq(text, "127.0.0.1:7");
	cr_assert_eq(inet_pton(AF_INET6, "fe80::1", &a6.sin6_addr), 1);
	vd_addr_text((struct sockaddr *)&a6, text, sizeof text);
	cr_expect_str_eq(text, "[fe80::1]:5");
	a6.sin6_scope_id = if_nametoindex("lo");
	vd_addr_text((struct sockaddr *)&a6, text, sizeof text);
	cr_expect_str_eq(text, "[fe80::1%lo]:5");
	a6.sin6_scope_id = 0x7fffffff; /* no interface's */
	vd_addr_text((struct sockaddr *)&a6, text, sizeof text);
	cr_expect_str_eq(text, "[fe80::1%2147483647]:5");
}

/* Without memory: which error it is; then the same call does it. */
Test(verbs_id_limits, hints_without_memory)
{
	struct sockaddr_in to = at_port(htons(7)), from = at_port(0);
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *ai;
	unsigned n = 0;
	int err;

	hints.ai_dst_addr = (struct sockaddr *)&to;
	hints.ai_dst_len = sizeof to;
	hints.ai_src_addr = (struct sockaddr *)&from;
	hints.ai_src_len = sizeof from;
	do {
		vfail_nth(VFAIL_MEMORY, ++n);
		err = rdma_getaddrinfo(NULL, NULL, &hints, &ai);
		cr_expect_eq(vfail_came(), err != 0, "%u", n);
		cr_expect(!err || err == (n == 1 ? -1 : EAI_MEMORY), "%u: %d", n, err);
	} while (err);
	cr_expect_eq(n, 4, "the list, both addresses");
	cr_expect_arr_eq(ai->ai_dst_addr, &to, sizeof to);
	rdma_freeaddrinfo(ai);
}

Test(verbs_id_limits, devices_without_memory)
{
	struct ibv_context **list;
	int num, n = 0;
	bool came;

	do {
		vfail_nth(VFAIL_MEMORY, (unsigned)++n);
		list = rdma_get_devices(&num);
		came = vfail_came();
		cr_expect_eq(num, list ? 1 : 0, "%d", n);
		rdma_free_devices(list);
	} while (came);
	cr_expect_gt(n, 2);
	cr_expect_eq(num, 1);
}

/* ---- ports of datagrams ---- */

static struct rdma_cm_id *datagrams(struct rdma_event_channel *ch, __be16 port, int *err)
{
	struct sockaddr_in a4 = at_port(port);
	struct rdma_cm_id *id;
	int on = 1;

	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_UDP), 0);
	cr_assert_eq(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on),
		     0);
	*err = rdma_bind_addr(id, (struct sockaddr *)&a4) ? errno : 0;
	return id;
}

/* The number of a port that another program's socket has can be sent from, not listened at; another
 * identifier's cannot be had at all. */
VT_TEST(verbs_id_limits, a_port_that_is_taken)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct sockaddr_in a4 = at_port(0);
	struct rdma_cm_id *tcp, *other, *sends, *late;
	socklen_t len = sizeof a4;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;

	cr_assert_eq(bind(fd, (struct sockaddr *)&a4, sizeof a4), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&a4, &len), 0);
	other = datagrams(ch, 0, &err);
	cr_expect_eq(err, 0);
	cr_assert_eq(rdma_create_id(ch, &tcp, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_bind_addr(tcp, (struct sockaddr *)&(
						 struct sockaddr_in){ .sin_family = AF_INET }),
		     0);
	sends = datagrams(ch, a4.sin_port, &err);
	cr_expect_eq(err, 0, "%d", err);
	VT_MINUS_AS(rdma_listen(sends, 0), EADDRINUSE);
	close(fd);
	late = datagrams(ch, a4.sin_port, &err);
	cr_expect_eq(err, 0, "it is free now: %d", err);
	VT_MINUS_AS(rdma_listen(sends, 0), EADDRINUSE);
	cr_expect_eq(rdma_listen(late, 0), 0, "%m");
	/* It sends from that number nevertheless. */
	cr_expect_eq(rdma_resolve_addr(sends, NULL, (struct sockaddr *)&a4, 1000), 0, "%m");
	vt_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_expect_eq(rdma_get_src_port(sends), a4.sin_port);
	cr_expect_eq(rdma_destroy_id(late), 0);
	cr_expect_eq(rdma_destroy_id(sends), 0);
	cr_expect_eq(rdma_destroy_id(tcp), 0);
	cr_expect_eq(rdma_destroy_id(other), 0);
	rdma_destroy_event_channel(ch);
}

/* A listener without an address that gets no port listens nowhere; with one, it does. */
VT_TEST(verbs_id_limits, no_port)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	vfail_nth(VFAIL_SOCKET, 1);
	VT_MINUS_AS(rdma_listen(id, 0), EMFILE);
	cr_expect(vfail_came());
	cr_expect_eq(rdma_get_src_port(id), 0);
	cr_expect_eq(rdma_listen(id, 0), 0, "%m");
	cr_expect_neq(rdma_get_src_port(id), 0);
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

/* ---- channels ---- */

static struct rdma_cm_id *resolving(struct rdma_event_channel *ch)
{
	struct sockaddr_in a4 = at_port(htons(9));
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_resolve_addr(id, NULL, (struct sockaddr *)&a4, 1000), 0);
	return id;
}

/* The program has closed the descriptor of one: it is an error, and others are as before. */
Test(verbs_id_limits, a_channel_without_its_descriptor)
{
	struct rdma_event_channel *ch = rdma_create_event_channel(), *to;
	struct sockaddr_in a4 = at_port(htons(9));
	struct rdma_cm_id *id, *more;
	struct rdma_cm_event *e;
	int copy = dup(ch->fd);

	close(ch->fd);
	VT_MINUS_AS(rdma_get_cm_event(ch, &e), EBADF);
	cr_assert_eq(dup2(copy, ch->fd), ch->fd);
	close(copy);
	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	vfail_nth(VFAIL_WRITE, 1);
	VT_MINUS_AS(rdma_resolve_addr(id, NULL, (struct sockaddr *)&a4, 1000), ENOSPC);
	cr_expect(vfail_came());
	cr_expect_eq(rdma_destroy_id(id), 0);
	/* An identifier moves to a channel that cannot be informed; the old one goes on. */
	id = resolving(ch);
	to = rdma_create_event_channel();
	vfail_nth(VFAIL_WRITE, 1);
	cr_expect_eq(rdma_migrate_id(id, to), 0);
	cr_expect(vfail_came());
	more = resolving(ch);
	e = vt_event(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_expect_eq(e->id, more);
	rdma_ack_cm_event(e);
	cr_expect_not(vt_readable(ch->fd, 0));
	cr_expect_eq(rdma_destroy_id(id), 0);
	cr_expect_eq(rdma_destroy_id(more), 0);
	rdma_destroy_event_channel(to);
	rdma_destroy_event_channel(ch);
}

/* All of an identifier's events move with it, and none of another's. */
Test(verbs_id_limits, events_move)
{
	struct rdma_event_channel *from = rdma_create_event_channel(),
				  *to = rdma_create_event_channel();
	struct rdma_cm_id *id = resolving(from), *stays = resolving(from);
	struct rdma_cm_event *e;

	cr_assert_eq(rdma_resolve_route(id, 1000), 0);
	cr_assert_eq(rdma_migrate_id(id, to), 0);
	e = vt_event(to, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_expect_eq(e->id, id);
	rdma_ack_cm_event(e);
	vt_expect(to, RDMA_CM_EVENT_ROUTE_RESOLVED);
	cr_expect_not(vt_readable(to->fd, 0));
	e = vt_event(from, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_expect_eq(e->id, stays);
	rdma_ack_cm_event(e);
	cr_expect_not(vt_readable(from->fd, 0));
	cr_expect_eq(rdma_destroy_id(id), 0);
	cr_expect_eq(rdma_destroy_id(stays), 0);
	rdma_destroy_event_channel(to);
	rdma_destroy_event_channel(from);
}

/* Synchronous calls: no event of one that has had none, and an error in place of one. */
Test(verbs_id_limits, synchronous_identifiers)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct sockaddr_in a4 = at_port(htons(9));
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	cr_expect_eq(rdma_migrate_id(id, ch), 0);
	cr_expect_eq(id->channel, ch);
	cr_expect_eq(rdma_destroy_id(id), 0);
	cr_assert_eq(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	vfail_nth(VFAIL_READ, 1);
	VT_MINUS_AS(rdma_resolve_addr(id, NULL, (struct sockaddr *)&a4, 1000), EIO);
	cr_expect(vfail_came());
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

/* ---- queues, domains ---- */

/* A program's own queues may stand in an identifier: they stay its own. */
Test(verbs_id_limits, queues_of_the_programs)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id = resolving(ch);
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 }
	};

	cr_assert_eq(rdma_create_qp(id, NULL, &init), 0);
	id->send_cq = id->recv_cq = cq;
	rdma_destroy_qp(id);
	cr_expect_null(id->qp);
	cr_expect_null(id->recv_cq);
	cr_expect_eq(ibv_destroy_cq(cq), 0, "it is there still");
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

/* One that nobody has given an address finds its device when it is asked for more. */
Test(verbs_id_limits, no_device_yet)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_srq_init_attr srq = { .attr = { 4, 1, 0 } };
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	vfail_size(sizeof(struct vd_context));
	VT_MINUS_AS(rdma_create_qp(id, NULL, &init), ENOMEM);
	cr_expect(vfail_came());
	vfail_size(sizeof(struct vd_context));
	VT_MINUS_AS(rdma_create_srq(id, NULL, &srq), ENOMEM);
	cr_expect(vfail_came());
	cr_expect_null(id->verbs);
	cr_expect_eq(rdma_create_srq(id, NULL, &srq), 0, "%m");
	cr_expect_eq(rdma_create_qp(id, NULL, &init), 0, "%m");
	/* While a queue pair uses it, a shared queue stays. */
	rdma_destroy_srq(id);
	cr_expect_not_null(id->srq);
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	cr_expect_null(id->srq);
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

Test(verbs_id_limits, callers_without_memory)
{
	struct in_addr addr = { htonl(INADDR_LOOPBACK) };
	struct vd_callers list = STAILQ_HEAD_INITIALIZER(list);

	vfail_nth(VFAIL_MEMORY, 1);
	cr_expect_not(vd_callers_add(&list, NULL, 1, addr));
	cr_expect(vfail_came());
	cr_expect(STAILQ_EMPTY(&list));
	cr_expect(vd_callers_add(&list, NULL, 1, addr));
	cr_expect_not(vd_callers_add(&list, NULL, 1, addr), "it waits already");
	cr_expect_null(vd_callers_take(&list));
	cr_expect(STAILQ_EMPTY(&list));
}

/* ---- a child and what is its parent's ---- */

static int try_in_child(struct rdma_cm_id *id, struct rdma_cm_event *e,
			struct rdma_event_channel *ch)
{
	struct sockaddr_in a4 = at_port(htons(9));
	struct rdma_cm_id *own;

	if (rdma_ack_cm_event(e) != -1 || errno != EINVAL)
		return 1;
	if (rdma_resolve_route(id, 1000) != -1 || errno != EINVAL)
		return 2;
	if (rdma_ack_cm_event(NULL) != -1 || errno != EINVAL)
		return 3;
	/* An identifier of its own on the parent's channel is informed of nothing. */
	if (rdma_create_id(ch, &own, NULL, RDMA_PS_TCP))
		return 4;
	if (rdma_resolve_addr(own, NULL, (struct sockaddr *)&a4, 1000) != -1 || errno != EINVAL)
		return 5;
	return 0;
}

Test(verbs_id_limits, of_the_parents)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id = resolving(ch);
	struct rdma_cm_event *e = vt_event(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	pid_t child = fork_at_rest();

	if (!child)
		_exit(try_in_child(id, e, ch));
	cr_expect_eq(await_child_status(child), 0);
	cr_expect_not(vt_readable(ch->fd, 0));
	cr_expect_eq(rdma_ack_cm_event(e), 0);
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}
