/* SPDX-License-Identifier: BSD-2-Clause */
/* Identifiers for datagrams whose peer is no identifier but a socket, groups, and calls out of place. */
#include "support/ip4.h"
#include "verbs/vfail.h"
#include "verbs/vud.h"
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

static int open_verbs_ud_raw_raw_socket(uint16_t *port)
{
	struct sockaddr_in a4 = get_loopback(0);
	socklen_t len = sizeof a4;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	cr_assert_eq(bind(fd, (struct sockaddr *)&a4, sizeof a4), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&a4, &len), 0);
	*port = ntohs(a4.sin_port);
	return fd;
}

static struct rdma_cm_id *new_verbs_ud_raw_id(struct rdma_event_channel *ch)
{
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_UDP), 0);
	return id;
}

static struct rdma_cm_id *make_resolved_verbs_ud_raw(struct rdma_event_channel *ch,
						     struct sockaddr *to)
{
	struct rdma_cm_id *id = new_verbs_ud_raw_id(ch);

	cr_assert_eq(rdma_resolve_addr(id, NULL, to, 2000), 0);
	vt_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_assert_eq(rdma_resolve_route(id, 2000), 0);
	vt_expect(ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

static void say_verbs_ud_raw(int fd, const struct ud_header *h, const struct sockaddr_in *to)
{
	uint8_t octets[UD_HEADER + UD_PD_REQ] = { 0 };

	ud_put(h, octets);
	cr_assert_eq(sendto(fd, octets, ud_cm_len(h->type, h->pd_len), 0,
			    (const struct sockaddr *)to, sizeof *to),
		     (ssize_t)ud_cm_len(h->type, h->pd_len));
}

/* ---- who asks ---- */

/* Only the answer to what was asked is one; then there is nothing to hear any more. */
Test(verbs_ud_raw, answers, .timeout = 30)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct ud_header asked, h = { .type = UD_REP, .src = 5, .qkey = 6 };
	uint8_t octets[UD_HEADER + UD_PD_REQ];
	struct sockaddr_in to, from;
	socklen_t len = sizeof from;
	struct rdma_conn_param conn = { .qp_num = 0xf01234 };
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;
	uint16_t port;
	ssize_t n;
	int fd = open_verbs_ud_raw_raw_socket(&port);

	to = get_loopback(port);
	id = make_resolved_verbs_ud_raw(ch, (struct sockaddr *)&to);
	cr_assert_eq(rdma_connect(id, &conn), 0, "%m");
	n = recvfrom(fd, octets, sizeof octets, 0, (struct sockaddr *)&from, &len);
	cr_assert_gt(n, 0);
	cr_assert(ud_get(octets, (size_t)n, &asked));
	cr_expect_eq(asked.type, UD_REQ);
	cr_expect_eq(asked.src, 0xf01234);
	h.ask = asked.ask + 1;
	say_verbs_ud_raw(fd, &h, &from);
	say_verbs_ud_raw(fd, &asked, &from);
	for (int i = 0; i < 20; i++) /* more than are looked at together */
		cr_assert_eq(sendto(fd, "none", 4, 0, (struct sockaddr *)&from, len), 4);
	h.ask = asked.ask;
	say_verbs_ud_raw(fd, &h, &from);
	e = vt_event(ch, RDMA_CM_EVENT_ESTABLISHED);
	cr_expect_eq(e->param.ud.qp_num, 5);
	cr_expect_eq(e->param.ud.qkey, 6);
	rdma_ack_cm_event(e);
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
	close(fd);
}

Test(verbs_ud_raw, asking_fails)
{
	static const enum vfail_call calls[] = { VFAIL_GETRANDOM, VFAIL_CONNECT };
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_conn_param conn = { .private_data = "", .private_data_len = UD_PD_REQ + 1 };
	struct sockaddr_in to = get_loopback(9);
	struct rdma_cm_id *id = make_resolved_verbs_ud_raw(ch, (struct sockaddr *)&to);

	VT_MINUS_AS(rdma_connect(id, &conn), EINVAL);
	for (size_t i = 0; i < 2; i++) {
		vfail_nth(calls[i], 1);
		cr_expect_eq(rdma_connect(id, NULL), -1);
		cr_expect(vfail_came(), "%zu", i);
	}
	VT_MINUS_AS(rdma_disconnect(id), EINVAL);
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

/* ---- who listens ---- */

struct ears {
	struct rdma_event_channel *ch;
	struct rdma_cm_id *listen;
	struct sockaddr_in at;
};

static struct ears hear_verbs_ud_raw(int backlog)
{
	struct ears l = { rdma_create_event_channel(), NULL, get_loopback(0) };

	l.listen = new_verbs_ud_raw_id(l.ch);
	cr_assert_eq(rdma_bind_addr(l.listen, (struct sockaddr *)&l.at), 0);
	cr_assert_eq(rdma_listen(l.listen, backlog), 0);
	l.at.sin_port = rdma_get_src_port(l.listen);
	return l;
}

static struct rdma_cm_id *take_verbs_ud_raw_request(struct ears *l)
{
	struct rdma_cm_event *e = vt_event(l->ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_cm_id *id = e->id;

	cr_expect_eq(e->listen_id, l->listen);
	rdma_ack_cm_event(e);
	return id;
}

/* One request for each socket and question, however often it comes, and of each listener's own. */
Test(verbs_ud_raw, requests_that_are_alike, .timeout = 30)
{
	struct ud_header h = { .type = UD_REQ, .ask = 77, .src = 5 };
	struct ears l[2] = { hear_verbs_ud_raw(1000), hear_verbs_ud_raw(1000) };
	struct rdma_conn_param conn = { .qp_num = 0x1000000 };
	struct rdma_cm_id *id[4];
	uint16_t port[2];
	uint8_t octets[200];
	int fd[2] = { open_verbs_ud_raw_raw_socket(&port[0]),
		      open_verbs_ud_raw_raw_socket(&port[1]) };

	say_verbs_ud_raw(fd[0], &h, &l[0].at);
	id[0] = take_verbs_ud_raw_request(&l[0]);
	say_verbs_ud_raw(fd[0], &h, &l[1].at);
	id[1] = take_verbs_ud_raw_request(&l[1]);
	say_verbs_ud_raw(fd[0], &h, &l[0].at); /* once more: it waits already */
	say_verbs_ud_raw(fd[1], &h, &l[0].at);
	id[2] = take_verbs_ud_raw_request(&l[0]);
	h.ask = 78;
	say_verbs_ud_raw(fd[0], &h, &l[0].at);
	id[3] = take_verbs_ud_raw_request(&l[0]);
	cr_expect_neq(id[2], id[0]);
	/* An answer names a queue pair. */
	VT_MINUS_AS(rdma_accept(id[0], NULL), EINVAL);
	VT_MINUS_AS(rdma_accept(id[0], &conn), EINVAL);
	conn.qp_num = 0xffffff;
	cr_assert_eq(rdma_accept(id[0], &conn), 0);
	VT_MINUS_AS(rdma_accept(id[0], &conn), EINVAL);
	cr_assert_gt(recv(fd[0], octets, sizeof octets, 0), 0);
	/* Asked again, it is said again; the same question of another is another. */
	h.ask = 77;
	say_verbs_ud_raw(fd[0], &h, &l[0].at);
	cr_assert_gt(recv(fd[0], octets, sizeof octets, 0), 0);
	cr_assert_eq(rdma_reject(id[2], "no", 2), 0);
	cr_assert_gt(recv(fd[1], octets, sizeof octets, 0), 0);
	VT_MINUS_AS(rdma_reject(id[2], NULL, 0), ECONNRESET);
	VT_MINUS_AS(rdma_reject(l[0].listen, NULL, 0), EINVAL);
	VT_MINUS_AS(rdma_accept(l[0].listen, &conn), EINVAL);
	cr_assert_eq(rdma_reject(id[3], NULL, 2), 0);
	cr_assert_eq(rdma_reject(id[1], NULL, 0), 0);
	for (int i = 0; i < 4; i++)
		cr_expect_eq(rdma_destroy_id(id[i]), 0);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(rdma_destroy_id(l[i].listen), 0);
		rdma_destroy_event_channel(l[i].ch);
		close(fd[i]);
	}
}

/* What is no request is counted. */
Test(verbs_ud_raw, what_is_no_request, .timeout = 30)
{
	struct ud_header h = { .type = UD_REP, .ask = 1 };
	struct ears l = hear_verbs_ud_raw(0);
	uint64_t malformed = vud_stats().malformed;
	uint16_t port;
	int fd = open_verbs_ud_raw_raw_socket(&port);

	say_verbs_ud_raw(fd, &h, &l.at);
	cr_assert_eq(sendto(fd, "none", 4, 0, (struct sockaddr *)&l.at, sizeof l.at), 4);
	for (int ms = 0; vud_stats().malformed < malformed + 2 && ms < VT_MS; ms++)
		poll(NULL, 0, 1);
	cr_expect_eq(vud_stats().malformed, malformed + 2);
	cr_expect_not(vt_readable(l.ch->fd, 0));
	cr_expect_eq(rdma_destroy_id(l.listen), 0);
	rdma_destroy_event_channel(l.ch);
	close(fd);
}

/* Without memory a request is forgotten: the peer asks again. */
Test(verbs_ud_raw, requests_without_memory, .timeout = 30)
{
	static const size_t sizes[] = { sizeof(struct vd_id), sizeof(struct vd_event),
					sizeof(struct vd_ud_id) };
	struct ud_header h = { .type = UD_REQ, .ask = 77, .src = 5 };
	struct ears l = hear_verbs_ud_raw(5);
	struct rdma_cm_id *id;
	uint16_t port;
	int fd = open_verbs_ud_raw_raw_socket(&port);

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++, h.ask++) {
		vfail_size_anywhere(sizes[i]);
		say_verbs_ud_raw(fd, &h, &l.at);
		for (int ms = 0; !vfail_taken() && ms < VT_MS; ms++)
			poll(NULL, 0, 1);
		cr_assert(vfail_came(), "%zu", i);
		cr_expect_not(vt_readable(l.ch->fd, 0));
		say_verbs_ud_raw(fd, &h, &l.at);
		id = take_verbs_ud_raw_request(&l);
		cr_expect_eq(rdma_destroy_id(id), 0);
	}
	cr_expect_eq(rdma_destroy_id(l.listen), 0);
	rdma_destroy_event_channel(l.ch);
	close(fd);
}

/* A port has one listener for datagrams; another identifier may only send from it. */
Test(verbs_ud_raw, one_listener_of_a_port)
{
	struct ears l = hear_verbs_ud_raw(1);
	struct rdma_cm_id *other = new_verbs_ud_raw_id(l.ch), *tcp;

	VT_MINUS_AS(rdma_bind_addr(other, (struct sockaddr *)&l.at), EADDRINUSE);
	cr_assert_eq(rdma_create_id(l.ch, &tcp, NULL, RDMA_PS_TCP), 0);
	cr_expect_eq(rdma_destroy_id(tcp), 0);
	cr_expect_eq(rdma_destroy_id(other), 0);
	cr_expect_eq(rdma_destroy_id(l.listen), 0);
	rdma_destroy_event_channel(l.ch);
}

/* ---- groups ---- */

Test(verbs_ud_raw, joining, .timeout = 30)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id = new_verbs_ud_raw_id(ch), *tcp;
	struct sockaddr_in group = get_loopback(0), to = get_loopback(9);
	struct sockaddr local = { .sa_family = AF_UNIX };
	struct rdma_cm_join_mc_attr_ex ex = { .comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
							   RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
					      .join_flags = 77,
					      .addr = (struct sockaddr *)&group };
	struct rdma_cm_event *e;

	group.sin_addr.s_addr = htonl(0xefff0001);
	VT_MINUS_AS(rdma_join_multicast(id, (struct sockaddr *)&group, NULL), EINVAL);
	VT_MINUS_AS(rdma_leave_multicast(id, (struct sockaddr *)&group), EINVAL);
	cr_expect_eq(rdma_destroy_id(id), 0);
	id = make_resolved_verbs_ud_raw(ch, (struct sockaddr *)&to);
	cr_assert_eq(rdma_create_id(ch, &tcp, NULL, RDMA_PS_TCP), 0);
	VT_MINUS_AS(rdma_join_multicast(tcp, (struct sockaddr *)&group, NULL), EINVAL);
	cr_expect_eq(rdma_destroy_id(tcp), 0);
	VT_MINUS_AS(rdma_join_multicast(id, NULL, NULL), EINVAL);
	VT_MINUS_AS(rdma_join_multicast(id, &local, NULL), EINVAL);
	VT_MINUS_AS(rdma_join_multicast(id, (struct sockaddr *)&to, NULL), EINVAL);
	VT_MINUS_AS(rdma_leave_multicast(id, NULL), EINVAL);
	VT_MINUS_AS(rdma_leave_multicast(id, &local), EINVAL);
	VT_MINUS_AS(rdma_leave_multicast(id, (struct sockaddr *)&group), EADDRNOTAVAIL);
	VT_MINUS_AS(rdma_join_multicast_ex(id, &ex, NULL), EINVAL);
	/* To send there is enough, without a queue pair. */
	ex.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
	cr_assert_eq(rdma_join_multicast_ex(id, &ex, id), 0);
	e = vt_event(ch, RDMA_CM_EVENT_MULTICAST_JOIN);
	cr_expect_eq(e->param.ud.private_data, id);
	cr_expect_eq(e->param.ud.qp_num, UD_QPN_MCAST);
	rdma_ack_cm_event(e);
	cr_expect_eq(rdma_leave_multicast(id, (struct sockaddr *)&group), 0);
	VT_MINUS_AS(rdma_leave_multicast(id, (struct sockaddr *)&group), EADDRNOTAVAIL);
	cr_assert_eq(rdma_join_multicast(id, (struct sockaddr *)&group, NULL), 0);
	vt_expect(ch, RDMA_CM_EVENT_MULTICAST_JOIN);
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

/* A group of IPv6 on the interface that its address names; the same one elsewhere is another. */
Test(verbs_ud_raw, groups_of_ipv6, .timeout = 30)
{
	union ibv_gid gid = { { 0xff, 0x12, [15] = 0x77 } };
	const uint16_t lo = (uint16_t)if_nametoindex("lo");
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct sockaddr_in6 group = { .sin6_family = AF_INET6, .sin6_scope_id = lo };
	struct sockaddr_in to = get_loopback(9);
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;
	struct vud_qp q;
	struct vud v;
	int err;

	vud_open(&v);
	vud_up(&v, &q);
	err = ibv_attach_mcast(q.qp, &gid, lo);
	if (err != EAFNOSUPPORT) { /* there is IPv6 */
		cr_expect_eq(err, 0);
		cr_expect_eq(ibv_attach_mcast(q.qp, &gid, lo), 0, "it is a member");
		cr_expect_eq(ibv_detach_mcast(q.qp, &gid, (uint16_t)(lo + 77)), EINVAL);
		cr_expect_eq(ibv_detach_mcast(q.qp, &gid, lo), 0);
		cr_expect_eq(ibv_detach_mcast(q.qp, &gid, lo), EINVAL);
	}
	vfail_nth(VFAIL_SETSOCKOPT, 1);
	cr_expect_neq(ibv_attach_mcast(q.qp,
				       &(union ibv_gid){
					       { [10] = 0xff, [11] = 0xff, [12] = 239, [15] = 9 } },
				       lo),
		      0);
	cr_expect(vfail_came());
	memcpy(&group.sin6_addr, gid.raw, 16);
	id = make_resolved_verbs_ud_raw(ch, (struct sockaddr *)&to);
	cr_assert_eq(rdma_join_multicast(id, (struct sockaddr *)&group, NULL), 0);
	e = vt_event(ch, RDMA_CM_EVENT_MULTICAST_JOIN);
	cr_expect_arr_eq(e->param.ud.ah_attr.grh.dgid.raw, gid.raw, 16);
	cr_expect_eq(e->param.ud.ah_attr.dlid, lo);
	rdma_ack_cm_event(e);
	cr_expect_eq(rdma_leave_multicast(id, (struct sockaddr *)&group), 0);
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
	vud_down(&q);
	vud_close(&v);
}
