/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams where something is missing or odd: memory, sockets, interfaces, fields of a header. */
#include "support/child.h"
#include "verbs/vfail.h"
#include "verbs/vt.h"
#include "verbs/vud.h"
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in get_verbs_ud_corners_loopback(uint32_t host, uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK + host) };
}

static int open_verbs_ud_corners_raw_socket(uint32_t host, uint16_t *port)
{
	struct sockaddr_in a4 = get_verbs_ud_corners_loopback(host, *port);
	socklen_t len = sizeof a4;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	cr_assert_eq(bind(fd, (struct sockaddr *)&a4, sizeof a4), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&a4, &len), 0);
	*port = ntohs(a4.sin_port);
	return fd;
}

static void hurl(int fd, const struct ud_header *h, size_t payload, uint16_t port)
{
	const struct sockaddr_in to = get_verbs_ud_corners_loopback(0, port);
	uint8_t octets[UD_HEADER + 64] = { 0 };

	ud_put(h, octets);
	cr_assert_eq(sendto(fd, octets, UD_HEADER + payload, 0, (const struct sockaddr *)&to,
			    sizeof to),
		     (ssize_t)(UD_HEADER + payload));
}

/* ---- addresses ---- */

Test(verbs_ud_corners, interfaces_of_addresses)
{
	const union ibv_gid local = { { 0xfe, 0x80, [15] = 1 } };
	struct sockaddr_in6 *a6;
	struct ibv_ah_attr attr;
	struct ud_addr a;
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	struct vud v;

	vud_open(&v);
	ud_addr_of_gid(v.ctx, &local, (uint16_t)if_nametoindex("lo"), &a);
	cr_expect_eq(a.ifindex, if_nametoindex("lo"));
	ud_ah_attr_of(&a, &attr);
	cr_expect_eq(attr.dlid, if_nametoindex("lo"));
	a.ifindex = UINT16_MAX + 1;
	ud_ah_attr_of(&a, &attr);
	cr_expect_eq(attr.dlid, 0, "there is no room for it");
	/* A route says the same. */
	ch = rdma_create_event_channel();
	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_UDP), 0);
	a6 = (struct sockaddr_in6 *)&id->route.addr.dst_storage;
	a6->sin6_family = AF_INET6;
	memcpy(&a6->sin6_addr, local.raw, 16);
	a6->sin6_scope_id = 7;
	cr_expect_eq(vd_ud_route(vd_id_of(id)), 0);
	cr_expect_eq(id->route.path_rec->dlid, htons(7));
	a6->sin6_scope_id = UINT16_MAX + 1;
	cr_expect_eq(vd_ud_route(vd_id_of(id)), 0);
	cr_expect_eq(id->route.path_rec->dlid, 0);
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
	vud_close(&v);
}

/* Only the domain that identifiers share has an address without a GID, the port's own. */
Test(verbs_ud_corners, addresses_without_a_gid)
{
	struct ibv_ah_attr attr = { .port_num = 1 };
	struct ibv_ah *ah;
	struct vud v;

	vud_open(&v);
	cr_expect_null(ibv_create_ah(v.pd, &attr));
	ah = ibv_create_ah(vd_shared_pd(0), &attr);
	cr_expect_not_null(ah);
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	attr.dlid = 5;
	cr_expect_null(ibv_create_ah(vd_shared_pd(0), &attr));
	vud_close(&v);
}

/* Interfaces without an address, of other families, and that are not up. */
static struct ifaddrs *odd_interfaces(struct ifaddrs all[4])
{
	static struct sockaddr_storage ss[3];
	struct sockaddr_in6 *a6 = (struct sockaddr_in6 *)&ss[1];
	struct sockaddr_in *a4 = (struct sockaddr_in *)&ss[2];
	static char lo[] = "lo";

	ss[0].ss_family = AF_PACKET;
	a6->sin6_family = AF_INET6;
	a6->sin6_addr.s6_addr[15] = 1;
	*a4 = get_verbs_ud_corners_loopback(0, 0);
	for (int i = 0; i < 4; i++)
		all[i] = (struct ifaddrs){ .ifa_next = i < 3 ? &all[i + 1] : NULL,
					   .ifa_name = lo,
					   .ifa_flags = IFF_UP | IFF_LOOPBACK,
					   .ifa_addr = i ? (struct sockaddr *)&ss[i - 1] : NULL };
	return all;
}

Test(verbs_ud_corners, odd_interfaces)
{
	struct sockaddr_in group = { .sin_family = AF_INET };
	struct sockaddr_in a4 = get_verbs_ud_corners_loopback(0, 0),
			   none = get_verbs_ud_corners_loopback(55, 0);
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct ifaddrs all[4];
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_UDP), 0);
	cr_assert_eq(rdma_bind_addr(id, (struct sockaddr *)&a4), 0);
	vfail_interfaces(odd_interfaces(all));
	cr_expect_eq(vd_host_address(&a4), if_nametoindex("lo"));
	cr_expect_eq(a4.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	group.sin_addr.s_addr = htonl(0xefff0009); /* 239.255.0.9 */
	for (int i = 0; i < 2; i++) {
		struct rdma_cm_join_mc_attr_ex ex = { .comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
								   RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
						      .join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER,
						      .addr = (struct sockaddr *)&group };

		cr_assert_eq(rdma_join_multicast_ex(id, &ex, NULL), 0, "%m");
		e = vt_event(ch, RDMA_CM_EVENT_MULTICAST_JOIN);
		cr_expect_eq(e->param.ud.ah_attr.dlid, if_nametoindex("lo"), "%d", i);
		rdma_ack_cm_event(e);
		cr_assert_eq(rdma_leave_multicast(id, (struct sockaddr *)&group), 0);
		/* Then with an address that no interface has: it is the device's own. */
		memcpy(&id->route.addr.src_sin.sin_addr, &none.sin_addr, 4);
	}
	vfail_interfaces(NULL);
	vfail_size(sizeof(struct ud_join));
	VT_MINUS_AS(rdma_join_multicast(id, (struct sockaddr *)&group, NULL), ENOMEM);
	cr_expect(vfail_came());
	cr_expect_eq(rdma_destroy_id(id), 0);
	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_UDP), 0);
	cr_assert_eq(rdma_bind_addr(id, (struct sockaddr *)&a4), 0);
	vfail_size(sizeof(struct vd_ud_id));
	VT_MINUS_AS(rdma_join_multicast(id, (struct sockaddr *)&group, NULL), ENOMEM);
	cr_expect(vfail_came());
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

/* ---- sockets ---- */

/* What a socket does not say of a datagram is not known; what it says besides that does not matter. */
Test(verbs_ud_corners, datagrams_that_say_more_or_less)
{
	struct ud_packet pk = { .data = (uint8_t[8]){ 0 } };
	struct ud_addr to = { .ip = { { { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 } } } };
	struct iovec iov = { (void *)(uintptr_t) "datagram", 8 };
	struct ud_sock s = { .family = AF_INET };
	int one = 1;

	s.fd = open_verbs_ud_corners_raw_socket(0, &to.port);
	cr_assert_eq(ud_send(&s, &to, NULL, 0, &iov, 1), 0);
	cr_assert(vt_readable(s.fd, VT_MS));
	cr_assert_eq(ud_recv(&s, &pk, 1, 4), 1);
	cr_expect_eq(pk.len, 4, "as long as the room that it does not fit in");
	cr_expect_eq(pk.from.port, to.port);
	cr_expect(IN6_IS_ADDR_UNSPECIFIED(&pk.to));
	cr_assert_eq(setsockopt(s.fd, IPPROTO_IP, IP_RECVTTL, &one, sizeof one), 0);
	cr_assert_eq(setsockopt(s.fd, SOL_SOCKET, SO_TIMESTAMP, &one, sizeof one), 0);
	cr_assert_eq(setsockopt(s.fd, IPPROTO_IP, IP_PKTINFO, &one, sizeof one), 0);
	to.ifindex = if_nametoindex("lo");
	cr_assert_eq(ud_send(&s, &to, NULL, 3, &iov, 1), 0);
	cr_assert(vt_readable(s.fd, VT_MS));
	cr_assert_eq(ud_recv(&s, &pk, 1, 8), 1);
	cr_expect_eq(pk.len, 8);
	cr_expect_eq(pk.from.ifindex, to.ifindex);
	cr_expect_arr_eq(&pk.to, &to.ip, 16);
	cr_expect_eq(ud_send(&s, &(struct ud_addr){ .port = 5 }, NULL, 0, &iov, 1), EAFNOSUPPORT);
	close(s.fd);
}

Test(verbs_ud_corners, datagrams_of_ipv6)
{
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct ud_packet pk = { .data = (uint8_t[8]){ 0 } };
	struct ud_addr to = { .ip = IN6ADDR_LOOPBACK_INIT };
	struct iovec iov = { (void *)(uintptr_t) "datagram", 8 };
	struct ud_sock s = { .family = AF_INET6 };
	socklen_t len = sizeof a6;
	int one = 1;

	s.fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s.fd < 0 || bind(s.fd, (struct sockaddr *)&a6, sizeof a6))
		cr_skip("no IPv6");
	cr_assert_eq(getsockname(s.fd, (struct sockaddr *)&a6, &len), 0);
	cr_assert_eq(setsockopt(s.fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &one, sizeof one), 0);
	cr_assert_eq(setsockopt(s.fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, &one, sizeof one), 0);
	to.port = ntohs(a6.sin6_port);
	to.ifindex = if_nametoindex("lo");
	cr_assert_eq(ud_send(&s, &to, NULL, 9, &iov, 1), 0);
	cr_assert(vt_readable(s.fd, VT_MS));
	cr_assert_eq(ud_recv(&s, &pk, 1, 8), 1);
	cr_expect_eq(pk.from.ifindex, to.ifindex);
	cr_expect_arr_eq(&pk.to, &to.ip, 16);
	close(s.fd);
}

/* Without sockets, without memory: the queue pair is not made, and the next one is. */
Test(verbs_ud_corners, queue_pairs_without_sockets)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct vud v;
	bool came;
	int n = 0;

	vfail_size(sizeof(struct vd_process));
	cr_expect_null(ud_of_process());
	cr_expect(vfail_came());
	vud_open(&v);
	vfail_size(sizeof(struct vd_ud_cq));
	VT_NULL_AS(ibv_create_cq(v.ctx, 4, NULL, NULL, 0), ENOMEM);
	cr_expect(vfail_came());
	cq = ibv_create_cq(v.ctx, 4, NULL, NULL, 0);
	init.send_cq = init.recv_cq = cq;
	vfail_size(32 *
		   sizeof(int)); /* for the descriptors that a child closes: IPv4 is tried then */
	qp = ibv_create_qp(v.pd, &init);
	cr_expect(vfail_came());
	if (qp)
		cr_expect_eq(ibv_destroy_qp(qp), 0);
	for (int kind = 0; kind < 2; kind++)
		do {
			vfail_from(kind ? VFAIL_SOCKET : VFAIL_MEMORY, (unsigned)++n);
			qp = ibv_create_qp(v.pd, &init);
			came = vfail_came();
			cr_expect(qp || came, "%d", n);
			if (qp)
				cr_expect_eq(ibv_destroy_qp(qp), 0);
			if (qp && !came)
				n = 0;
		} while (came);
	cr_expect_eq(ibv_destroy_cq(cq), 0);
	vud_close(&v);
}

/* ---- completions ---- */

/* A queue of its own for each way, which has no room for a completion: it is lost, which is reported. */
Test(verbs_ud_corners, contact_27_a_completion_without_room, .timeout = 30)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_async_event e;
	struct ibv_cq *cq[2];
	struct vud_qp q = { 0 };
	struct vud v;

	vud_open(&v);
	for (int i = 0; i < 2; i++)
		cq[i] = ibv_create_cq(v.ctx, 1, NULL, NULL, 0);
	init.send_cq = cq[0];
	init.recv_cq = cq[1];
	q.v = &v;
	q.qp = ibv_create_qp(v.pd, &init);
	cr_assert_not_null(q.qp);
	vud_move(&q, IBV_QPS_RTS);
	q.mr = ibv_reg_mr(v.pd, q.buf, sizeof q.buf, IBV_ACCESS_LOCAL_WRITE);
	q.key = q.mr->lkey;
	for (int i = 0; i < 2; i++)
		vud_send(&q, 1, &q, 8, IBV_SEND_SIGNALED);
	e = vt_async(v.ctx, IBV_EVENT_CQ_ERR);
	cr_expect_eq(e.element.cq, cq[0]);
	ibv_ack_async_event(&e);
	/* What overflows later is reported later, and the other not again. */
	for (int i = 0; i < 2; i++)
		vud_recv(&q, 1, 4096, 64);
	for (int i = 0; i < 2; i++)
		vud_send(&q, 1, &q, 8, 0);
	e = vt_async(v.ctx, IBV_EVENT_CQ_ERR);
	cr_expect_eq(e.element.cq, cq[1]);
	ibv_ack_async_event(&e);
	cr_expect_eq(ibv_destroy_qp(q.qp), 0);
	cr_expect_eq(ibv_dereg_mr(q.mr), 0);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(ibv_destroy_cq(cq[i]), 0);
	vud_close(&v);
}

/* Of a queue that two queue pairs use only the one's go that goes.  What is armed for solicited
 * ones alone is not informed of others. */
Test(verbs_ud_corners, one_queue_of_two, .timeout = 30)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD,
					 .cap = { 4, 4, 1, 1, 0 },
					 .sq_sig_all = 0 };
	struct vud_qp q, more;
	struct ibv_sge sge = { 0 };
	struct ibv_send_wr wr, *bad;
	struct ibv_recv_wr recv = { .num_sge = 1 }, *bad_recv;
	struct ibv_wc wc;
	struct vud v;

	vud_open(&v);
	vud_up(&v, &q);
	cr_expect_eq(ibv_post_recv(q.qp, &recv, &bad_recv), EINVAL, "a piece that is not there");
	init.send_cq = init.recv_cq = q.cq;
	more = q;
	more.qp = ibv_create_qp(v.pd, &init);
	vud_move(&more, IBV_QPS_RTS);
	vud_send(&q, 1, &q, 8, IBV_SEND_SIGNALED);
	sge = (struct ibv_sge){ (uintptr_t)q.buf, 8, q.key };
	wr = vud_wr(&q, 2, &q, &sge, 1);
	cr_assert_eq(ibv_post_send(more.qp, &wr, &bad), 0);
	cr_assert_eq(ibv_req_notify_cq(q.cq, 1), 0);
	cr_expect_not(vt_readable(q.cc->fd, 0));
	cr_assert_eq(ibv_req_notify_cq(q.cq, 0), 0);
	vud_event(&q);
	cr_expect_eq(ibv_destroy_qp(more.qp), 0);
	cr_assert_eq(ibv_poll_cq(q.cq, 1, &wc), 1);
	cr_expect_eq(wc.wr_id, 1);
	cr_expect_eq(ibv_poll_cq(q.cq, 1, &wc), 0, "that of the other is gone");
	/* An unsignalled one that fails is reported; one that does not is not. */
	more.qp = ibv_create_qp(v.pd, &init);
	vud_move(&more, IBV_QPS_RTS);
	wr = vud_wr(&q, 3, &q, &sge, 1);
	wr.send_flags = 0;
	cr_assert_eq(ibv_post_send(more.qp, &wr, &bad), 0);
	sge.lkey ^= 0x5a5a00;
	wr.wr_id = 4;
	cr_assert_eq(ibv_post_send(more.qp, &wr, &bad), 0);
	wc = vud_wc(&q);
	cr_expect(wc.wr_id == 4 && wc.status == IBV_WC_LOC_PROT_ERR, "%llu %d",
		  (unsigned long long)wc.wr_id, wc.status);
	cr_expect_eq(ibv_destroy_qp(more.qp), 0);
	vud_down(&q);
	vud_close(&v);
}

/* ---- peers ---- */

/* One that was known and falls silent is waited for again; one that never was is not, for a while. */
Test(verbs_ud_corners, a_peer_that_falls_silent)
{
	struct ud_peer alive = { .seq = 60000, .alive = true, .full_at = 1 },
		       never = { .seq = 60000, .full_at = 1 };
	uint64_t retry_at;

	cr_expect(ud_peer_ready(&alive, 64, 1000000, &retry_at));
	cr_expect_not(alive.alive);
	cr_expect_eq(alive.acked, alive.seq);
	cr_expect_eq(alive.open_until, 0);
	cr_expect(ud_peer_ready(&never, 64, 1000000, &retry_at));
	cr_expect_gt(never.open_until, 1000000);
}

Test(verbs_ud_corners, peers_without_memory, .timeout = 30)
{
	struct vud_qp q;
	struct vud v;

	vud_open(&v);
	vud_up(&v, &q);
	vud_recv(&q, 7, 0, 256);
	vfail_size(UD_PEERS * sizeof(struct ud_peer));
	vud_send(&q, 1, &q, 8, IBV_SEND_SIGNALED);
	cr_expect(vfail_came());
	cr_expect_eq(vud_wc(&q).status, IBV_WC_SUCCESS, "as a datagram may be lost, or not");
	vud_down(&q);
	vud_close(&v);
}

/* ---- what comes from strangers ---- */

static void get_verbs_ud_corners_counted(uint64_t malformed)
{
	while (vud_stats().malformed < malformed)
		sched_yield();
	cr_expect_eq(vud_stats().malformed, malformed);
}

/* Messages of other kinds, and acknowledgements that are none, are counted; one that does not say
 * where to acknowledge it is taken nevertheless. */
Test(verbs_ud_corners, strangers, .timeout = 30)
{
	struct ud_header h = { .type = UD_ACK, .qkey = VUD_QKEY, .flags = UD_F_ACK };
	uint16_t port = 0;
	struct vud_qp q;
	struct vud v;
	int fd = open_verbs_ud_corners_raw_socket(0, &port);

	vud_open(&v);
	vud_up(&v, &q);
	h.dest = q.qp->qp_num;
	h.src = 0xf00000u | port;
	vud_recv(&q, 7, 0, 256);
	hurl(fd, &h, 0, (uint16_t)q.qp->qp_num);
	get_verbs_ud_corners_counted(1);
	hurl(fd, &h, 3, ud_of_process()->ack_port);
	get_verbs_ud_corners_counted(2);
	h.type = UD_DATA;
	hurl(fd, &h, 8, (uint16_t)q.qp->qp_num);
	cr_expect_eq(vud_wc(&q).wr_id, 7);
	get_verbs_ud_corners_counted(2);
	vud_down(&q);
	vud_close(&v);
	close(fd);
}

/* ---- children ---- */

static int in_a_child(struct vud_qp *q, struct vud_qp *of_srq)
{
	struct ibv_sge sge = { (uintptr_t)q->buf, 8, q->key };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad_send = NULL;
	struct ibv_recv_wr recv = { 0 }, *bad_recv = NULL;
	struct vd_qp *qp = vd_of(q->qp, struct vd_qp, qp.qp_base);

	wr.wr.ud.ah = q->v->self;
	ddps_lock(&qp->lock);
	if (vd_ud_post_send(qp, &wr, &bad_send) != EINVAL || bad_send != &wr)
		return 1;
	if (vd_ud_post_recv(qp, &recv, &bad_recv) != EINVAL || bad_recv != &recv)
		return 2;
	ddps_unlock(&qp->lock);
	vd_ud_srq_wake(vd_of(of_srq->v->srq, struct vd_srq, srq));
	vd_channel_tell(vd_of(q->cq, struct vd_cq, cq));
	return 0;
}

/* The parent's queue pairs are nothing that a child could use. */
Test(verbs_ud_corners, of_the_parents, .timeout = 30)
{
	struct ibv_srq_init_attr init = { .attr = { 4, 1, 0 } };
	struct vud_qp q, of_srq;
	struct vud v;
	pid_t child;

	vud_open(&v);
	vud_up(&v, &q);
	v.srq = ibv_create_srq(v.pd, &init);
	vud_up(&v, &of_srq);
	child = fork_at_rest();
	if (!child)
		_exit(in_a_child(&q, &of_srq));
	cr_expect_eq(await_child_status(child), 0);
	cr_expect_not(vt_readable(q.cc->fd, 0));
	vud_down(&of_srq);
	cr_expect_eq(ibv_destroy_srq(v.srq), 0);
	vud_down(&q);
	vud_close(&v);
}
