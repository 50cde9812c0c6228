/* SPDX-License-Identifier: BSD-2-Clause */
/* What real programs rely on, each point as tests with a number of their own. */
#include "verbs/vt.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- 1: teardown ---- */

static void *destroy(void *arg)
{
	cr_assert_eq(rdma_destroy_id(arg), 0);
	return NULL;
}

VT_TLS_TEST(verbs_finding, finding_1_destroy_id_waits_for_acknowledgements)
{
	struct rdma_cm_event *e;
	pthread_t thread;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	cr_assert_eq(rdma_disconnect(v.b.id), 0);
	e = vt_event(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_qp(v.a.id);
	pthread_create(&thread, NULL, destroy, v.a.id);
	/* It cannot have ended: the event is not acknowledged. */
	cr_assert_eq(pthread_tryjoin_np(thread, NULL), EBUSY);
	cr_assert_eq(e->id, v.a.id);
	cr_assert_eq(rdma_ack_cm_event(e), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	v.a.id = NULL;
	vt_down(&v);
}

static void *wait_verbs_finding_event(void *arg)
{
	struct rdma_cm_event *e;

	cr_assert_eq(rdma_get_cm_event(arg, &e), 0, "it waits for an event, nothing else wakes it");
	cr_assert_eq(e->event, RDMA_CM_EVENT_DISCONNECTED);
	rdma_ack_cm_event(e);
	return NULL;
}

static void *enter_late(void *ch)
{
	struct rdma_cm_event *e;

	rdma_get_cm_event(ch, &e);
	return NULL;
}

/* rping's thread may be about to ask when its program destroys the channel: it is to sleep. */
Test(verbs_finding, finding_1_who_enters_a_destroyed_channel_waits, .timeout = 60)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct timespec at;
	pthread_t thread;
	void *result;

	cr_assert(ch);
	rdma_destroy_event_channel(ch);
	pthread_create(&thread, NULL, enter_late, ch);
	clock_gettime(CLOCK_REALTIME, &at);
	at.tv_sec++; /* bounds how long it is given to come back, which it must not */
	cr_assert_eq(pthread_timedjoin_np(thread, &result, &at), ETIMEDOUT);
	cr_assert_eq(pthread_cancel(thread), 0);
	cr_assert_eq(pthread_join(thread, &result), 0);
	cr_expect_eq(result, PTHREAD_CANCELED);
}

Test(verbs_finding, finding_1_a_waiter_is_woken_by_events_alone, .timeout = 60)
{
	struct rdma_cm_id *other;
	pthread_t thread;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	cr_assert_eq(rdma_create_id(v.b.ch, &other, NULL, RDMA_PS_TCP), 0);
	pthread_create(&thread, NULL, wait_verbs_finding_event, v.b.ch);
	cr_assert_eq(rdma_destroy_id(other), 0);
	cr_assert_eq(rdma_disconnect(v.a.id), 0);
	pthread_join(thread, NULL);
	vt_down(&v);
}

/* ---- 2: the client is first ---- */

VT_TLS_TEST(verbs_finding, finding_2_a_refused_connection_is_tried_again)
{
	struct rdma_cm_id *keep;
	struct vt v;

	setenv("DDPSESS_RETRY_MS", "15000", 1);
	vt_init(&v);
	v.b.ch = rdma_create_event_channel();
	cr_assert_eq(rdma_create_id(v.b.ch, &keep, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_bind_addr(keep, (struct sockaddr *)&v.addr), 0);
	((struct sockaddr_in *)&v.addr)->sin_port = rdma_get_src_port(keep);
	cr_assert_neq(rdma_get_src_port(keep), 0, "a port is chosen when it is bound");
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	cr_assert_eq(rdma_listen(keep, 1), 0);
	v.listen = keep;
	vt_take_request(&v);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_down(&v);
}

VT_TLS_TEST(verbs_finding, finding_2_nobody_there)
{
	struct rdma_cm_event *e;
	struct vt v;

	setenv("DDPSESS_RETRY_MS", "0", 1);
	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	cr_assert_eq(rdma_destroy_id(v.listen), 0);
	v.listen = NULL;
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	cr_assert(vt_readable(v.a.ch->fd, VT_MS));
	cr_assert_eq(rdma_get_cm_event(v.a.ch, &e), 0);
	cr_assert(e->event == RDMA_CM_EVENT_REJECTED || e->event == RDMA_CM_EVENT_UNREACHABLE, "%s",
		  rdma_event_str(e->event));
	cr_assert_lt(e->status, 0);
	rdma_ack_cm_event(e);
	vt_down(&v);
}

/* ---- 3, 4: rdma_create_ep, rdma_getaddrinfo ---- */

Test(verbs_finding, finding_3_create_ep_takes_the_type_of_the_addresses, .timeout = 60)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP };
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 } };
	struct rdma_addrinfo *ai, *to;
	struct rdma_cm_id *listen, *id;
	char port[8];

	cr_assert_eq(rdma_getaddrinfo("127.0.0.1", NULL, &hints, &ai), 0);
	cr_assert_eq(ai->ai_qp_type, IBV_QPT_RC);
	cr_assert_eq(rdma_create_ep(&listen, ai, NULL, NULL), 0, "%m");
	cr_assert_eq(rdma_listen(listen, 1), 0);
	snprintf(port, sizeof port, "%u", ntohs(rdma_get_src_port(listen)));
	hints.ai_flags = 0;
	cr_assert_eq(rdma_getaddrinfo("127.0.0.1", port, &hints, &to), 0);
	attr.qp_type = 0;
	cr_assert_eq(rdma_create_ep(&id, to, NULL, &attr), 0, "%m");
	cr_assert_eq(id->qp->qp_type, IBV_QPT_RC);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listen);
	rdma_freeaddrinfo(ai);
	rdma_freeaddrinfo(to);
}

Test(verbs_finding, finding_4_addresses_of_hints_are_copied)
{
	struct sockaddr_in src = { .sin_family = AF_INET }, dst = { .sin_family = AF_INET };
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP,
				       .ai_src_addr = (struct sockaddr *)&src,
				       .ai_src_len = sizeof src,
				       .ai_dst_addr = (struct sockaddr *)&dst,
				       .ai_dst_len = sizeof dst };
	struct rdma_addrinfo *ai;

	dst.sin_port = htons(7);
	cr_assert_eq(rdma_getaddrinfo(NULL, NULL, &hints, &ai), 0);
	cr_assert_neq((void *)ai->ai_dst_addr, (void *)&dst);
	cr_assert_neq((void *)ai->ai_src_addr, (void *)&src);
	cr_assert_eq(memcmp(ai->ai_dst_addr, &dst, sizeof dst), 0);
	rdma_freeaddrinfo(ai);
}

/* ---- 5, 6: binding ---- */

Test(verbs_finding, finding_5_and_6_wildcards_belong_to_no_device)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct sockaddr_in a4 = { .sin_family = AF_INET };
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_listen(id, 1), 0, "an identifier that was not bound gets the wildcard");
	cr_assert_null(id->verbs);
	cr_assert_neq(rdma_get_src_port(id), 0);
	rdma_destroy_id(id);
	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_bind_addr(id, (struct sockaddr *)&a4), 0);
	cr_assert_null(id->verbs);
	rdma_destroy_id(id);
	a4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_bind_addr(id, (struct sockaddr *)&a4), 0);
	cr_assert_not_null(id->verbs);
	cr_assert_not_null(id->pd);
	cr_assert_eq(id->port_num, 1);
	cr_assert_lt(rdma_bind_addr(id, (struct sockaddr *)&a4), 0, "once only");
	rdma_destroy_id(id);
	a4.sin_addr.s_addr = htonl(0xcb007101); /* 203.0.113.1, nobody's */
	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	cr_assert_lt(rdma_bind_addr(id, (struct sockaddr *)&a4), 0);
	cr_assert_eq(errno, EADDRNOTAVAIL);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ch);
}

/* ---- 7: other addresses ---- */

static void exchange_verbs_finding(struct vt *v)
{
	vt_up(v);
	cr_assert_eq(vt_recv(&v->b, 1, 0, 64), 0);
	cr_assert_eq(vt_post(&v->a, 2, IBV_WR_SEND, 5, NULL), 0);
	vt_expect_wc(&v->b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_down(v);
}

VT_TLS_TEST(verbs_finding, finding_7_an_address_that_is_not_loopback)
{
	struct ifaddrs *all, *i;
	struct vt v;

	cr_assert_eq(getifaddrs(&all), 0);
	for (i = all; i; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && i->ifa_flags & IFF_UP &&
		    !(i->ifa_flags & IFF_LOOPBACK))
			break;
	if (!i)
		cr_skip_test("this host has no other address");
	vt_init(&v);
	memcpy(&v.addr, i->ifa_addr, sizeof(struct sockaddr_in));
	freeifaddrs(all);
	exchange_verbs_finding(&v);
}

VT_TLS_TEST(verbs_finding, finding_7_ipv6)
{
	struct sockaddr_in6 *a6;
	struct vt v;

	vt_init(&v);
	a6 = (struct sockaddr_in6 *)&v.addr;
	memset(a6, 0, sizeof *a6);
	a6->sin6_family = AF_INET6;
	a6->sin6_addr = in6addr_loopback;
	exchange_verbs_finding(&v);
}

/* ---- 8, 9, 10: queue pairs ---- */

VT_TLS_TEST(verbs_finding, finding_8_and_9_and_17_what_is_granted_and_ignored)
{
	struct ibv_qp_attr attr = { .min_rnr_timer = 12 };
	struct ibv_qp_init_attr init = { .cap = { 1, 1, 1, 1, 2 }, .qp_type = IBV_QPT_RC };
	struct ibv_port_attr port;
	union ibv_gid gid;
	struct ibv_device_attr dev;
	struct ibv_qp *qp;
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	init.send_cq = init.recv_cq = v.a.cq;
	qp = ibv_create_qp(v.a.id->pd, &init);
	cr_assert_not_null(qp);
	cr_assert_eq(init.cap.max_inline_data, 512);
	cr_assert_eq(ibv_modify_qp(qp, &attr, IBV_QP_MIN_RNR_TIMER), 0);
	cr_assert_eq(ibv_destroy_cq(v.a.cq), EBUSY);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_query_port(v.a.id->verbs, 1, &port), 0);
	cr_assert_eq(port.state, IBV_PORT_ACTIVE);
	cr_assert_eq(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	cr_assert_eq(v.a.id->verbs->device->transport_type, IBV_TRANSPORT_IWARP);
	cr_assert_eq(ibv_query_gid(v.a.id->verbs, 1, 0, &gid), 0);
	cr_assert_eq(ibv_query_device(v.a.id->verbs, &dev), 0);
	cr_assert_eq(dev.max_qp_rd_atom, 128);
	vt_down(&v);
}

Test(verbs_finding, finding_10_queues_are_made_for_whoever_brings_none)
{
	struct ibv_qp_init_attr init = { .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct sockaddr_in a4 = { AF_INET, 0, { htonl(INADDR_LOOPBACK) }, { 0 } };
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_bind_addr(id, (struct sockaddr *)&a4), 0);
	cr_assert_eq(rdma_create_qp(id, NULL, &init), 0);
	cr_assert_eq(id->send_cq->cq_context, id);
	cr_assert_eq(id->recv_cq->cq_context, id);
	cr_assert_not_null(id->send_cq_channel);
	cr_assert_not_null(id->recv_cq_channel);
	rdma_destroy_qp(id);
	cr_assert_null(id->qp);
	cr_assert_null(id->send_cq);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ch);
}
