/* SPDX-License-Identifier: BSD-2-Clause */
/* What an attack from outside found in the drop-in, by its numbers: addresses and connections. */
#include "verbs/vt.h"
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

static struct sockaddr_in make_conn_address(const char *host, uint16_t port)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, host, &a4.sin_addr);
	return a4;
}

static struct rdma_cm_id *make_verbs_attack_conn_identifier(struct rdma_event_channel *ch)
{
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	return id;
}

/* ---- 20: binding ---- */

VT_TLS_TEST(verbs_attack, attack_20_a_port_is_bound_once)
{
	struct sockaddr_in a4 = make_conn_address("127.0.0.1", 0);
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *a = make_verbs_attack_conn_identifier(ch),
			  *b = make_verbs_attack_conn_identifier(ch),
			  *c = make_verbs_attack_conn_identifier(ch);

	cr_assert_eq(rdma_bind_addr(a, (struct sockaddr *)&a4), 0);
	a4.sin_port = rdma_get_src_port(a);
	VT_MINUS_AS(rdma_bind_addr(b, (struct sockaddr *)&a4), EADDRINUSE);
	cr_assert_eq(rdma_listen(a, 1), 0, "%m");
	cr_expect_eq(rdma_get_src_port(a), a4.sin_port);
	cr_assert_eq(rdma_destroy_id(a), 0);
	/* It is free again immediately. */
	cr_assert_eq(rdma_bind_addr(c, (struct sockaddr *)&a4), 0, "%m");
	cr_assert_eq(rdma_listen(c, 1), 0, "%m");
	cr_assert_eq(rdma_destroy_id(b), 0);
	cr_assert_eq(rdma_destroy_id(c), 0);
	rdma_destroy_event_channel(ch);
}

/* perftest and others listen again at the port of a connection that goes on. */
VT_TLS_TEST(verbs_attack, attack_20_a_port_of_connections_alone_is_free)
{
	struct rdma_cm_id *again;
	struct vt v;

	vt_init(&v);
	vt_up(&v);
	cr_assert_eq(rdma_destroy_id(v.listen), 0);
	again = make_verbs_attack_conn_identifier(v.b.ch);
	cr_assert_eq(rdma_bind_addr(again, (struct sockaddr *)&v.addr), 0, "%m");
	cr_assert_eq(rdma_listen(again, 1), 0, "%m");
	v.listen = again;
	vt_down(&v);
}

static int get_verbs_attack_conn_option(struct rdma_cm_id *id, int name, int v)
{
	return rdma_set_option(id, RDMA_OPTION_ID, name, &v, sizeof v);
}

Test(verbs_attack, attack_20_options_are_done_or_refused, .timeout = 30)
{
	struct sockaddr_in a4 = make_conn_address("127.0.0.1", 0);
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *a = make_verbs_attack_conn_identifier(ch),
			  *b = make_verbs_attack_conn_identifier(ch);
	uint8_t octet = 1;
	int one = 1;

	VT_MINUS_AS(rdma_set_option(a, RDMA_OPTION_ID, 99, &one, sizeof one), ENOSYS);
	VT_MINUS_AS(rdma_set_option(a, 99, RDMA_OPTION_ID_AFONLY, &one, sizeof one), ENOSYS);
	VT_MINUS_AS(rdma_set_option(a, RDMA_OPTION_IB, 99, &one, sizeof one), ENOSYS);
	VT_MINUS_AS(rdma_set_option(a, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &one, 4), EOPNOTSUPP);
	cr_expect_eq(rdma_set_option(a, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &octet, 1), 0);
	VT_MINUS_AS(rdma_set_option(a, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &one, 4), EINVAL);
	cr_expect_eq(rdma_set_option(a, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &octet, 1), 0);
	octet = 32;
	VT_MINUS_AS(rdma_set_option(a, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &octet, 1),
		    EINVAL);
	VT_MINUS_AS(rdma_set_option(a, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &one, 4),
		    EINVAL);
	VT_MINUS_AS(rdma_set_option(a, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &octet, 1),
		    EINVAL);
	VT_MINUS_AS(rdma_set_option(a, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, NULL, 4), EINVAL);
	/* Who both say so share a port until one of them listens. */
	cr_expect_eq(get_verbs_attack_conn_option(a, RDMA_OPTION_ID_REUSEADDR, 1), 0);
	cr_expect_eq(get_verbs_attack_conn_option(b, RDMA_OPTION_ID_REUSEADDR, 1), 0);
	cr_assert_eq(rdma_bind_addr(a, (struct sockaddr *)&a4), 0);
	a4.sin_port = rdma_get_src_port(a);
	cr_expect_eq(rdma_bind_addr(b, (struct sockaddr *)&a4), 0, "%m");
	cr_expect_eq(rdma_listen(a, 1), 0, "%m");
	VT_MINUS_AS(rdma_listen(b, 1), EADDRINUSE);
	VT_MINUS_AS(get_verbs_attack_conn_option(a, RDMA_OPTION_ID_AFONLY, 1), EINVAL);
	cr_assert_eq(rdma_destroy_id(a), 0);
	cr_assert_eq(rdma_destroy_id(b), 0);
	rdma_destroy_event_channel(ch);
}

static bool can_connect_verbs_attack_conn(struct vt *v)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *asked;
	struct pollfd fd[2];
	bool yes;

	vt_dial(v);
	cr_assert_eq(rdma_connect(v->a.id, &v->connect), 0);
	fd[0] = (struct pollfd){ v->a.ch->fd, POLLIN, 0 };
	fd[1] = (struct pollfd){ v->b.ch->fd, POLLIN, 0 };
	cr_assert_geq(poll(fd, 2, VT_MS), 1);
	yes = fd[1].revents;
	if (yes) {
		e = vt_event(v->b.ch, RDMA_CM_EVENT_CONNECT_REQUEST);
		asked = e->id;
		cr_assert_eq(rdma_reject(asked, NULL, 0), 0);
		cr_assert_eq(rdma_ack_cm_event(e), 0);
		cr_assert_eq(rdma_destroy_id(asked), 0);
	}
	vt_expect(v->a.ch, RDMA_CM_EVENT_REJECTED);
	vt_end_down(&v->a);
	return yes;
}

static void listen_any6(bool alone, bool taken)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_addr = in6addr_any };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
	struct sockaddr_in four = make_conn_address("127.0.0.1", 0);
	struct vt v;

	vt_init(&v);
	v.b.ch = rdma_create_event_channel();
	v.listen = make_verbs_attack_conn_identifier(v.b.ch);
	if (alone)
		cr_assert_eq(get_verbs_attack_conn_option(v.listen, RDMA_OPTION_ID_AFONLY, 1), 0);
	cr_assert_eq(rdma_bind_addr(v.listen, (struct sockaddr *)&any), 0);
	cr_assert_eq(rdma_listen(v.listen, 4), 0);
	four.sin_port = six.sin6_port = rdma_get_src_port(v.listen);
	memcpy(&v.addr, &four, sizeof four);
	cr_expect_eq(can_connect_verbs_attack_conn(&v), taken, "IPv4");
	memcpy(&v.addr, &six, sizeof six);
	cr_expect(can_connect_verbs_attack_conn(&v), "IPv6");
	vt_down(&v);
}

VT_TLS_TEST(verbs_attack, attack_20_any_ipv6_address_means_ipv4_too)
{
	setenv("DDPSESS_RETRY_MS", "0", 1);
	listen_any6(false, true);
}

VT_TLS_TEST(verbs_attack, attack_20_any_ipv6_address_alone)
{
	setenv("DDPSESS_RETRY_MS", "0", 1);
	listen_any6(true, false);
}

/* Both families have a listener of their own at one port, as tgt wants it, and each hears its own. */
VT_TLS_TEST(verbs_attack, any_ipv6_address_next_to_any_ipv4_address)
{
	struct sockaddr_in6 any6 = { .sin6_family = AF_INET6, .sin6_addr = in6addr_any };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
	struct sockaddr_in any4 = { .sin_family = AF_INET },
			   four = make_conn_address("127.0.0.1", 0);
	struct rdma_cm_id *other;
	struct vt v;

	setenv("DDPSESS_RETRY_MS", "0", 1);
	vt_init(&v);
	v.b.ch = rdma_create_event_channel();
	v.listen = make_verbs_attack_conn_identifier(v.b.ch);
	other = make_verbs_attack_conn_identifier(v.b.ch);
	cr_assert_eq(rdma_bind_addr(v.listen, (struct sockaddr *)&any4), 0);
	cr_assert_eq(rdma_listen(v.listen, 4), 0);
	any6.sin6_port = six.sin6_port = four.sin_port = rdma_get_src_port(v.listen);
	VT_MINUS_AS(rdma_bind_addr(other, (struct sockaddr *)&any6), EADDRINUSE);
	cr_assert_eq(get_verbs_attack_conn_option(other, RDMA_OPTION_ID_AFONLY, 1), 0);
	cr_assert_eq(rdma_bind_addr(other, (struct sockaddr *)&any6), 0, "%m");
	cr_assert_eq(rdma_listen(other, 4), 0, "%m");
	memcpy(&v.addr, &four, sizeof four);
	cr_expect(can_connect_verbs_attack_conn(&v), "IPv4");
	memcpy(&v.addr, &six, sizeof six);
	cr_expect(can_connect_verbs_attack_conn(&v), "IPv6");
	cr_assert_eq(rdma_destroy_id(other), 0);
	cr_expect_not(can_connect_verbs_attack_conn(&v), "its listener has gone");
	vt_down(&v);
}

Test(verbs_attack, attack_20_endpoints_without_an_address_are_refused, .timeout = 30)
{
	struct rdma_addrinfo none = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP };
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct rdma_cm_id *id = NULL;
	struct ibv_context *ctx;

	VT_MINUS_AS(rdma_create_ep(&id, &none, NULL, NULL), EINVAL);
	none.ai_flags = 0;
	VT_MINUS_AS(rdma_create_ep(&id, &none, NULL, NULL), EINVAL);
	id = make_verbs_attack_conn_identifier(NULL);
	VT_MINUS_AS(rdma_bind_addr(id, NULL), EINVAL);
	VT_MINUS_AS(rdma_resolve_addr(id, NULL, NULL, 100), EINVAL);
	/* LeakSanitizer sees a shared queue that stays. */
	cr_assert_eq(rdma_create_srq(id, NULL, &attr), 0);
	ctx = id->verbs;
	cr_assert_not_null(ctx);
	rdma_destroy_ep(id);
}

/* ---- 20, 24a: where a connection comes from ---- */

static void resolve_verbs_attack_conn(struct vt *v, struct sockaddr *src)
{
	v->a.ch = rdma_create_event_channel();
	v->a.id = make_verbs_attack_conn_identifier(v->a.ch);
	cr_assert_eq(rdma_resolve_addr(v->a.id, src, (struct sockaddr *)&v->addr, 2000), 0, "%m");
	vt_expect(v->a.ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_assert_eq(rdma_resolve_route(v->a.id, 2000), 0);
	vt_expect(v->a.ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static void establish_verbs_attack_conn(struct vt *v)
{
	vt_equip(v, &v->a);
	cr_assert_eq(rdma_connect(v->a.id, &v->connect), 0, "%m");
	vt_take_request(v);
	cr_assert_eq(rdma_accept(v->b.id, &v->accept), 0);
	vt_expect(v->a.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_expect(v->b.ch, RDMA_CM_EVENT_ESTABLISHED);
}

static const char *peer_of(struct rdma_cm_id *id)
{
	static char text[INET_ADDRSTRLEN];
	const struct sockaddr_in *a4 = (const struct sockaddr_in *)rdma_get_peer_addr(id);

	return inet_ntop(AF_INET, &a4->sin_addr, text, sizeof text);
}

VT_TLS_TEST(verbs_attack, attack_24a_a_connection_comes_from_the_address_that_was_bound)
{
	struct sockaddr_in src = make_conn_address("127.0.0.3", 0);
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	resolve_verbs_attack_conn(&v, (struct sockaddr *)&src);
	establish_verbs_attack_conn(&v);
	cr_expect_str_eq(peer_of(v.b.id), "127.0.0.3");
	vt_down(&v);
}

Test(verbs_attack, attack_20_a_connection_comes_from_the_port_that_was_bound, .timeout = 30)
{
	struct sockaddr_in src = make_conn_address("127.0.0.1", 0);
	struct rdma_cm_id *probe = make_verbs_attack_conn_identifier(NULL);
	struct vt v;

	cr_assert_eq(rdma_bind_addr(probe, (struct sockaddr *)&src), 0);
	src.sin_port = rdma_get_src_port(probe);
	cr_assert_eq(rdma_destroy_id(probe), 0);
	vt_init(&v);
	vt_listen(&v);
	resolve_verbs_attack_conn(&v, (struct sockaddr *)&src);
	cr_expect_eq(rdma_get_src_port(v.a.id), src.sin_port);
	establish_verbs_attack_conn(&v);
	cr_expect_eq(rdma_get_dst_port(v.b.id), src.sin_port);
	vt_down(&v);
}

Test(verbs_attack, attack_20_the_source_port_is_known_before_the_connection, .timeout = 30)
{
	__be16 port;
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	resolve_verbs_attack_conn(&v, NULL);
	port = rdma_get_src_port(v.a.id);
	cr_expect_neq(port, 0);
	establish_verbs_attack_conn(&v);
	cr_expect_eq(rdma_get_dst_port(v.b.id), port);
	cr_expect_eq(rdma_get_src_port(v.a.id), port);
	vt_down(&v);
}

Test(verbs_attack, attack_20_a_source_port_is_refused_over_sctp, .timeout = 30)
{
	struct sockaddr_in src = make_conn_address("127.0.0.1", 47);
	struct vt v;

	setenv("DDPSESS_TRANSPORT", "sctp", 1);
	vt_init(&v);
	vt_listen(&v);
	resolve_verbs_attack_conn(&v, (struct sockaddr *)&src);
	vt_equip(&v, &v.a);
	VT_MINUS_AS(rdma_connect(v.a.id, &v.connect), EOPNOTSUPP);
	vt_down(&v);
}

/* ---- 20, 24a: queue pairs that are not the identifier's ---- */

struct own {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static void own_open(struct own *o, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask;

	o->cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
	init.send_cq = init.recv_cq = o->cq;
	o->qp = ibv_create_qp(id->pd, &init);
	cr_assert(o->cq && o->qp);
	cr_assert_eq(rdma_init_qp_attr(id, &attr, &mask), 0);
	cr_assert_eq(ibv_modify_qp(o->qp, &attr, mask), 0);
}

static void move_verbs_attack_conn_to_rtr(struct own *o, struct rdma_cm_id *id)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	int mask;

	cr_assert_eq(rdma_init_qp_attr(id, &attr, &mask), 0);
	cr_assert_eq(ibv_modify_qp(o->qp, &attr, mask), 0);
}

static struct ibv_wc await_verbs_attack_conn(struct own *o)
{
	struct ibv_wc wc;

	while (!ibv_poll_cq(o->cq, 1, &wc))
		;
	return wc;
}

static void own_close(struct own *o)
{
	cr_expect_eq(ibv_destroy_qp(o->qp), 0);
	cr_expect_eq(ibv_destroy_cq(o->cq), 0);
}

/* @answered: the program has a word to say when the peer has accepted. */
static void over_own(bool by_number, bool answered)
{
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *no;
	struct ibv_recv_wr recv = { .wr_id = 8 }, *none;
	struct rdma_cm_event *e;
	struct own a, b;
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	resolve_verbs_attack_conn(&v, NULL);
	own_open(&a, v.a.id);
	v.connect.qp_num = by_number ? a.qp->qp_num : 0;
	v.a.id->qp = by_number ? NULL : a.qp;
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0, "%m");
	e = vt_event(v.b.ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	v.b.id = e->id;
	rdma_ack_cm_event(e);
	own_open(&b, v.b.id);
	move_verbs_attack_conn_to_rtr(&b, v.b.id);
	cr_assert_eq(ibv_post_recv(b.qp, &recv, &none), 0);
	v.accept.qp_num = by_number ? b.qp->qp_num : 0;
	v.b.id->qp = by_number ? NULL : b.qp;
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0, "%m");
	vt_expect(v.a.ch, answered ? RDMA_CM_EVENT_CONNECT_RESPONSE : RDMA_CM_EVENT_ESTABLISHED);
	vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	if (answered) {
		move_verbs_attack_conn_to_rtr(&a, v.a.id);
		cr_expect_eq(rdma_establish(v.a.id), 0);
	}
	cr_expect_eq(a.qp->state, IBV_QPS_RTS);
	cr_assert_eq(ibv_post_send(a.qp, &send, &no), 0);
	cr_expect_eq(await_verbs_attack_conn(&a).status, IBV_WC_SUCCESS);
	cr_expect_eq(await_verbs_attack_conn(&b).wr_id, 8);
	cr_assert_eq(rdma_disconnect(v.a.id), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	v.a.id->qp = v.b.id->qp = NULL;
	own_close(&a);
	own_close(&b);
	vt_down(&v);
}

VT_TLS_TEST(verbs_attack, attack_24a_a_queue_pair_that_the_program_puts_there)
{
	over_own(false, false);
}

VT_TLS_TEST(verbs_attack, attack_24a_a_queue_pair_that_is_named_by_its_number)
{
	over_own(true, false);
}

VT_TLS_TEST(verbs_attack, the_answer_comes_first_with_the_face_of_roce)
{
	setenv("DDPSESS_FACE", "roce", 1);
	over_own(true, true);
}

VT_TLS_TEST(verbs_attack, attack_24a_what_a_queue_pair_has_to_know_is_filled_in)
{
	struct sockaddr_in to;
	struct ibv_qp_attr attr;
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };
	int mask = 0;
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	resolve_verbs_attack_conn(&v, NULL);
	memset(&attr, 0x55, sizeof attr);
	attr.qp_state = IBV_QPS_RTR;
	cr_assert_eq(rdma_init_qp_attr(v.a.id, &attr, &mask), 0);
	memcpy(&to, &v.addr, sizeof to);
	memcpy(gid.raw + 12, &to.sin_addr, 4);
	cr_expect_arr_eq(&attr.ah_attr.grh.dgid, &gid, sizeof gid);
	cr_expect_eq(attr.ah_attr.is_global, 1);
	cr_expect_eq(attr.ah_attr.grh.sgid_index, 0);
	cr_expect_eq(attr.ah_attr.port_num, 1);
	cr_expect_eq(attr.path_mtu, IBV_MTU_1024);
	cr_expect_eq(attr.alt_ah_attr.dlid, 0, "nothing of what was there stays");
	attr.qp_state = IBV_QPS_ERR;
	VT_MINUS_AS(rdma_init_qp_attr(v.a.id, &attr, &mask), EINVAL);
	vt_down(&v);
}

VT_TLS_TEST(verbs_attack, attack_20_a_connection_without_a_queue_pair)
{
	static const char hello[] = "control";
	struct rdma_cm_event *e;
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	resolve_verbs_attack_conn(&v, NULL);
	v.connect.private_data = v.accept.private_data = hello;
	v.connect.private_data_len = v.accept.private_data_len = sizeof hello;
	VT_MINUS_AS(rdma_establish(v.a.id), EINVAL);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0, "%m");
	e = vt_event(v.b.ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	v.b.id = e->id;
	cr_expect_str_eq(e->param.conn.private_data, hello);
	rdma_ack_cm_event(e);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0, "%m");
	e = vt_event(v.a.ch, RDMA_CM_EVENT_CONNECT_RESPONSE);
	cr_expect_str_eq(e->param.conn.private_data, hello);
	rdma_ack_cm_event(e);
	cr_expect_eq(rdma_establish(v.a.id), 0, "%m");
	vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	cr_expect_null(v.a.id->qp);
	cr_assert_eq(rdma_disconnect(v.b.id), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
}
