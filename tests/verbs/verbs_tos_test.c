/* SPDX-License-Identifier: BSD-2-Clause */
/* The class of service of a connection's packets: RDMA_OPTION_ID_TOS. */
#include "verbs/vt.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLASS 0x28 /* AF11 */
#define FDS   256

static int set_verbs_tos(struct rdma_cm_id *id, uint8_t tos)
{
	return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1);
}

static struct sockaddr_storage get_verbs_tos_loopback(int family)
{
	struct sockaddr_storage ss = { .ss_family = (sa_family_t)family };

	if (family == AF_INET6)
		((struct sockaddr_in6 *)&ss)->sin6_addr = in6addr_loopback;
	else
		((struct sockaddr_in *)&ss)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return ss;
}

/* The sockets of this process whose packets have the class. */
static int marked(int family)
{
	const int level = family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
	const int option = family == AF_INET6 ? IPV6_TCLASS : IP_TOS;
	int n = 0, tos;
	socklen_t len;

	for (int fd = 0; fd < FDS; fd++) {
		tos = 0;
		len = sizeof tos;
		n += !getsockopt(fd, level, option, &tos, &len) && tos == CLASS;
	}
	return n;
}

/* The header of the packet that asked for this connection has it. */
static uint8_t of_syn(int listener)
{
	uint8_t syn[128] = { 0 };
	socklen_t len = sizeof syn;
	int fd = accept(listener, NULL, NULL);

	cr_assert_geq(fd, 0, "%m");
	cr_assert_eq(getsockopt(fd, IPPROTO_TCP, TCP_SAVED_SYN, syn, &len), 0, "%m");
	close(fd);
	if (syn[0] >> 4 != 6)
		return syn[1];
	return (uint8_t)((unsigned)syn[0] << 4 | syn[1] >> 4);
}

static uint8_t of_datagram(int fd)
{
	union {
		struct cmsghdr c;
		uint8_t room[256];
	} ctrl;
	uint8_t octets[2048];
	struct iovec v = { octets, sizeof octets };
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = &ctrl, .msg_controllen = sizeof ctrl
	};
	int class;

	cr_assert_gt(recvmsg(fd, &m, 0), 0);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS)
			return *CMSG_DATA(c);
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
			memcpy(&class, CMSG_DATA(c), sizeof class);
			return (uint8_t) class;
		}
	}
	return 0;
}

/* A socket that is no listener of ours: it sees what comes first. */
static int open_plain_verbs_tos(struct vt *v, bool tcp)
{
	int fd = socket(v->addr.ss_family, tcp ? SOCK_STREAM : SOCK_DGRAM, 0), on = 1;
	socklen_t len = sizeof v->addr;

	cr_assert_eq(bind(fd, (struct sockaddr *)&v->addr, len), 0, "%m");
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&v->addr, &len), 0);
	if (tcp) {
		cr_assert_eq(setsockopt(fd, IPPROTO_TCP, TCP_SAVE_SYN, &on, sizeof on), 0);
		cr_assert_eq(listen(fd, 1), 0);
	} else if (v->addr.ss_family == AF_INET6) {
		setsockopt(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, &on, sizeof on);
	} else {
		setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof on);
	}
	return fd;
}

/* The bits of ECN are the system's. */
VT_TEST(verbs_tos, contact_23_on_the_wire)
{
	static const int families[] = { AF_INET, AF_INET6 };
	static const uint8_t classes[][2] = { { 0, 0 }, { CLASS, CLASS }, { 0xff, 0xfc } };
	const bool tcp = !strcmp(getenv("DDPSESS_TRANSPORT"), "tcp");
	uint8_t seen;
	struct vt v;
	int fd;

	for (unsigned i = 0; i < 6; i++) {
		vt_init(&v);
		v.addr = get_verbs_tos_loopback(families[i % 2]);
		fd = open_plain_verbs_tos(&v, tcp);
		vt_dial(&v);
		cr_assert_eq(set_verbs_tos(v.a.id, classes[i / 2][0]), 0, "%m");
		cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0, "%m");
		cr_assert(vt_readable(fd, VT_MS));
		seen = tcp ? of_syn(fd) : of_datagram(fd);
		cr_expect_eq(tcp ? seen & ~3 : seen, classes[i / 2][1], "%#x", seen);
		vt_end_down(&v.a);
		rdma_destroy_event_channel(v.a.ch);
		close(fd);
	}
}

/* What a listener accepts has the listener's; another connection to the same place has its own. */
VT_TEST(verbs_tos, contact_23_of_a_listener)
{
	static const int families[] = { AF_INET, AF_INET6 };
	const bool tcp = !strcmp(getenv("DDPSESS_TRANSPORT"), "tcp");
	struct rdma_cm_event *ev;
	struct rdma_cm_id *second;
	struct vt_end first;
	struct vt v;

	for (int i = 0; i < 2; i++) {
		vt_init(&v);
		v.b.ch = rdma_create_event_channel();
		v.addr = get_verbs_tos_loopback(families[i]);
		cr_assert_eq(rdma_create_id(v.b.ch, &v.listen, NULL, RDMA_PS_TCP), 0);
		cr_assert_eq(rdma_bind_addr(v.listen, (struct sockaddr *)&v.addr), 0);
		cr_assert_eq(set_verbs_tos(v.listen, CLASS), 0, "%m");
		cr_assert_eq(rdma_listen(v.listen, 1), 0, "%m");
		((struct sockaddr_in *)&v.addr)->sin_port = rdma_get_src_port(v.listen);
		vt_dial(&v);
		cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
		vt_take_request(&v);
		cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
		vt_expect(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
		vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
		cr_expect_eq(marked(families[i]), tcp ? 2 : 1);
		first = v.a;
		v.a = (struct vt_end){ .ch = first.ch };
		vt_dial(&v);
		cr_assert_eq(set_verbs_tos(v.a.id, CLASS), 0);
		cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
		ev = vt_event(v.b.ch, RDMA_CM_EVENT_CONNECT_REQUEST);
		second = ev->id;
		rdma_ack_cm_event(ev);
		cr_expect_eq(marked(families[i]), tcp ? 4 : 2);
		cr_expect_eq(rdma_destroy_id(second), 0);
		vt_end_down(&first);
		vt_down(&v);
	}
}

/* Datagrams have no time that a peer could acknowledge in. */
Test(verbs_tos, contact_23_no_acknowledgement_of_datagrams, .timeout = 60)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id;
	uint8_t octet = 14;

	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_UDP), 0);
	VT_MINUS_AS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &octet, 1),
		    EINVAL);
	cr_expect_eq(set_verbs_tos(id, CLASS), 0);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ch);
}
