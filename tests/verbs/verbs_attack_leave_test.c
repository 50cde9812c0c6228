/* SPDX-License-Identifier: BSD-2-Clause */
/* Attack 17: requests whose peers leave before they are answered. */
#include "verbs/vt.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define LEAVERS 50
#define TIMES	8

/* Peers that ask, and leave when they have been heard: the place of each is free again. */
static void ask_and_leave(const struct vt *v)
{
	static const char frame[] = "MPA ID Req Frame\0\1\0\0";
	const struct sockaddr *to = (const struct sockaddr *)&v->addr;
	int fd[LEAVERS], one = 1;
	char octet;

	for (int i = 0; i < LEAVERS; i++) {
		fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		cr_assert_eq(connect(fd[i], to, sizeof(struct sockaddr_in)), 0, "%m");
		setsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		cr_assert_eq(send(fd[i], frame, 20, 0), 20);
	}
	for (int i = 0; i < LEAVERS; i++) {
		cr_assert_eq(send(fd[i], "", 1, MSG_NOSIGNAL), 1); /* too much: it is closed */
		cr_expect_leq(recv(fd[i], &octet, 1, 0), 0);
		close(fd[i]);
	}
}

Test(verbs_attack, attack_17_requests_of_peers_that_left_are_few, .timeout = 60)
{
	struct rdma_cm_event *ev;
	unsigned stale = 0;
	struct vt v;

	setenv("DDPSESS_TRANSPORT", "tcp", 1);
	vt_init(&v);
	vt_listen(&v);
	for (int i = 0; i < TIMES; i++)
		ask_and_leave(&v);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0, "%m");
	for (;;) {
		cr_assert_eq(rdma_get_cm_event(v.b.ch, &ev), 0);
		cr_assert_eq(ev->event, RDMA_CM_EVENT_CONNECT_REQUEST);
		if (rdma_get_dst_port(ev->id) == rdma_get_src_port(v.a.id))
			break;
		v.b.id = ev->id;
		rdma_ack_cm_event(ev);
		rdma_destroy_id(v.b.id);
		stale++;
	}
	/* What is reported in one turn of the library's may be counted later. */
	cr_expect_leq(stale, 128 + 2 * LEAVERS, "%u of %u", stale, LEAVERS * TIMES);
	v.b.id = ev->id;
	rdma_ack_cm_event(ev);
	vt_equip(&v, &v.b);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0, "%m");
	rdma_ack_cm_event(vt_event(v.a.ch, RDMA_CM_EVENT_ESTABLISHED));
	rdma_ack_cm_event(vt_event(v.b.ch, RDMA_CM_EVENT_ESTABLISHED));
	vt_down(&v);
}
