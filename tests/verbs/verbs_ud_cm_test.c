/* SPDX-License-Identifier: BSD-2-Clause */
/* Identifiers of RDMA_PS_UDP, address handles and groups; two processes. */
#include "support/child.h"
#include "verbs/vud.h"
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct pair {
	struct rdma_event_channel *ch[2];
	struct rdma_cm_id *listen, *ask, *answer;
	struct sockaddr_storage addr;
};

static void set_addr(struct sockaddr_storage *ss, const char *ip, uint16_t port)
{
	struct sockaddr_in6 *a6 = (struct sockaddr_in6 *)ss;
	struct sockaddr_in *a4 = (struct sockaddr_in *)ss;

	memset(ss, 0, sizeof *ss);
	ss->ss_family = strchr(ip, ':') ? AF_INET6 : AF_INET;
	a4->sin_port = htons(port);
	cr_assert_eq(inet_pton(ss->ss_family, ip,
			       ss->ss_family == AF_INET6 ? (void *)&a6->sin6_addr
							 : (void *)&a4->sin_addr),
		     1);
}

static void equip_verbs_ud_cm(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD,
					 .cap = { 8, 8, 1, 1, 0 },
					 .sq_sig_all = 1 };

	cr_assert_eq(rdma_create_qp(id, NULL, &init), 0, "%m");
	cr_expect_eq(id->qp->state, IBV_QPS_RTS);
}

static struct rdma_cm_id *make_resolved_verbs_ud_cm(struct rdma_event_channel *ch,
						    struct sockaddr_storage *to)
{
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_UDP), 0);
	cr_expect_eq(id->qp_type, IBV_QPT_UD);
	cr_assert_eq(rdma_resolve_addr(id, NULL, (struct sockaddr *)to, 2000), 0);
	vt_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_assert_eq(rdma_resolve_route(id, 2000), 0);
	vt_expect(ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

static void connect_ud_pair(struct pair *p, const char *ip)
{
	memset(p, 0, sizeof *p);
	set_addr(&p->addr, ip, 0);
	p->ch[0] = rdma_create_event_channel();
	p->ch[1] = rdma_create_event_channel();
	cr_assert_eq(rdma_create_id(p->ch[1], &p->listen, NULL, RDMA_PS_UDP), 0);
	cr_assert_eq(rdma_bind_addr(p->listen, (struct sockaddr *)&p->addr), 0);
	cr_assert_eq(rdma_listen(p->listen, 4), 0, "%m");
	set_addr(&p->addr, ip, ntohs(rdma_get_src_port(p->listen)));
	p->ask = make_resolved_verbs_ud_cm(p->ch[0], &p->addr);
	equip_verbs_ud_cm(p->ask);
}

static void close_ud_pair(struct pair *p)
{
	if (p->ask->qp)
		rdma_destroy_qp(p->ask);
	if (p->answer && p->answer->qp)
		rdma_destroy_qp(p->answer);
	cr_expect_eq(rdma_destroy_id(p->ask), 0);
	if (p->answer)
		cr_expect_eq(rdma_destroy_id(p->answer), 0);
	if (p->listen)
		cr_expect_eq(rdma_destroy_id(p->listen), 0);
	rdma_destroy_event_channel(p->ch[0]);
	rdma_destroy_event_channel(p->ch[1]);
}

/* The request, with the asker's private data. */
static void take_ud_cm_request(struct pair *p, const char *said)
{
	struct rdma_cm_event *e = vt_event(p->ch[1], RDMA_CM_EVENT_CONNECT_REQUEST);

	cr_expect_eq(e->listen_id, p->listen);
	cr_expect_eq(e->param.ud.private_data_len, strlen(said));
	cr_expect(!memcmp(e->param.ud.private_data, said, strlen(said)));
	p->answer = e->id;
	cr_expect_eq(p->answer->qp_type, IBV_QPT_UD);
	rdma_ack_cm_event(e);
}

static struct ibv_mr *receive_one_verbs_ud_cm(struct rdma_cm_id *id, uint8_t *buf, uint32_t len)
{
	struct ibv_mr *mr = ibv_reg_mr(id->pd, buf, len, IBV_ACCESS_LOCAL_WRITE);

	cr_assert_eq(rdma_post_recv(id, NULL, buf, len, mr), 0);
	return mr;
}

/* A message there, and one back to whom the completion names. */
static void exchange_verbs_ud_cm(struct pair *p, const struct rdma_ud_param *to)
{
	static uint8_t mem[2][100];
	struct ibv_ah *ah = ibv_create_ah(p->ask->pd, (struct ibv_ah_attr *)&to->ah_attr), *back;
	struct ibv_mr *mr[2] = { receive_one_verbs_ud_cm(p->ask, mem[0], 100),
				 receive_one_verbs_ud_cm(p->answer, mem[1], 100) };
	struct ibv_wc wc;

	cr_assert_not_null(ah, "%m");
	cr_assert_eq(rdma_post_ud_send(p->ask, NULL, "there", 5, NULL, IBV_SEND_INLINE, ah,
				       to->qp_num),
		     0);
	cr_assert_eq(rdma_get_recv_comp(p->answer, &wc), 1);
	cr_expect_eq(wc.status, 0);
	cr_expect_arr_eq(mem[1] + 40, "there", 5);
	cr_expect_eq(wc.src_qp, p->ask->qp->qp_num);
	back = ibv_create_ah_from_wc(p->answer->pd, &wc, (struct ibv_grh *)mem[1], 1);
	cr_assert_not_null(back, "%m");
	cr_assert_eq(rdma_post_ud_send(p->answer, NULL, "back", 4, NULL, IBV_SEND_INLINE, back,
				       wc.src_qp),
		     0);
	cr_assert_eq(rdma_get_recv_comp(p->ask, &wc), 1);
	cr_expect_arr_eq(mem[0] + 40, "back", 4);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(ibv_dereg_mr(mr[i]), 0);
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	cr_expect_eq(ibv_destroy_ah(back), 0);
}

static void asks_and_is_answered(const char *ip)
{
	struct rdma_conn_param say = { .private_data = "who?", .private_data_len = 4 };
	struct rdma_ud_param ud;
	struct rdma_cm_event *e;
	struct pair p;

	connect_ud_pair(&p, ip);
	cr_assert_eq(rdma_connect(p.ask, &say), 0, "%m");
	take_ud_cm_request(&p, "who?");
	equip_verbs_ud_cm(p.answer);
	say = (struct rdma_conn_param){ .private_data = "me", .private_data_len = 2 };
	cr_assert_eq(rdma_accept(p.answer, &say), 0);
	e = vt_event(p.ch[0], RDMA_CM_EVENT_ESTABLISHED);
	ud = e->param.ud;
	cr_expect_eq(ud.qp_num, p.answer->qp->qp_num);
	cr_expect_eq(ud.qkey, RDMA_UDP_QKEY);
	cr_expect_eq(ud.private_data_len, 2);
	cr_expect(!memcmp(ud.private_data, "me", 2));
	cr_expect(ud.ah_attr.is_global);
	rdma_ack_cm_event(e);
	exchange_verbs_ud_cm(&p, &ud);
	VT_MINUS_AS(rdma_accept(p.answer, &say), EINVAL);
	VT_MINUS_AS(rdma_disconnect(p.ask), EINVAL);
	close_ud_pair(&p);
}

Test(verbs_ud_cm, asks_and_is_answered_over_ipv4, .timeout = 30)
{
	asks_and_is_answered("127.0.0.1");
}

Test(verbs_ud_cm, asks_and_is_answered_over_ipv6, .timeout = 30)
{
	asks_and_is_answered("::1");
}

/* InfiniBand's messages have no length in them. */
Test(verbs_ud_cm, contact_27_private_data_is_padded_on_the_roce_face, .timeout = 30)
{
	static const uint8_t zeros[UD_PD_REQ];
	struct rdma_conn_param say = { .private_data = "who?", .private_data_len = 4 };
	struct rdma_cm_event *e;
	struct pair p;

	setenv("DDPSESS_FACE", "roce", 1);
	connect_ud_pair(&p, "127.0.0.1");
	cr_assert_eq(rdma_connect(p.ask, &say), 0, "%m");
	e = vt_event(p.ch[1], RDMA_CM_EVENT_CONNECT_REQUEST);
	cr_expect_eq(e->param.ud.private_data_len, UD_PD_REQ);
	cr_expect(!memcmp(e->param.ud.private_data, "who?", 4));
	cr_expect(!memcmp((const uint8_t *)e->param.ud.private_data + 4, zeros, UD_PD_REQ - 4));
	p.answer = e->id;
	rdma_ack_cm_event(e);
	equip_verbs_ud_cm(p.answer);
	cr_assert_eq(rdma_accept(p.answer, NULL), 0);
	e = vt_event(p.ch[0], RDMA_CM_EVENT_ESTABLISHED);
	cr_expect_eq(e->param.ud.private_data_len, UD_PD_REP);
	cr_expect(!memcmp(e->param.ud.private_data, zeros, UD_PD_REP));
	rdma_ack_cm_event(e);
	close_ud_pair(&p);
}

/* By the program, by the end of the request, and by that of the listener. */
Test(verbs_ud_cm, refused, .timeout = 30)
{
	for (int how = 0; how < 3; how++) {
		struct rdma_cm_event *e;
		struct pair p;

		connect_ud_pair(&p, "127.0.0.1");
		cr_assert_eq(rdma_connect(p.ask, NULL), 0);
		take_ud_cm_request(&p, "");
		if (how == 0) {
			cr_assert_eq(rdma_reject(p.answer, "no", 2), 0);
		} else {
			cr_assert_eq(rdma_destroy_id(how == 1 ? p.answer : p.listen), 0);
			*(how == 1 ? &p.answer : &p.listen) = NULL;
		}
		e = vt_event(p.ch[0], RDMA_CM_EVENT_UNREACHABLE);
		cr_expect_eq(e->status, 2);
		cr_expect_eq(e->param.ud.private_data_len, how ? 0 : 2);
		rdma_ack_cm_event(e);
		if (how == 2)
			VT_MINUS_AS(rdma_accept(p.answer, &(struct rdma_conn_param){ .qp_num = 1 }),
				    ECONNRESET);
		close_ud_pair(&p);
	}
}

/* Nobody listens there, for as long as is tried again. */
Test(verbs_ud_cm, nobody_there, .timeout = 30)
{
	struct rdma_event_channel *ch;
	struct sockaddr_storage to;
	struct rdma_cm_event *e;
	struct rdma_cm_id *id, *gone;

	setenv("DDPSESS_RETRY_MS", "100", 1);
	ch = rdma_create_event_channel();
	set_addr(&to, "127.0.0.1", 0);
	cr_assert_eq(rdma_create_id(ch, &gone, NULL, RDMA_PS_UDP), 0);
	cr_assert_eq(rdma_bind_addr(gone, (struct sockaddr *)&to), 0);
	set_addr(&to, "127.0.0.1", ntohs(rdma_get_src_port(gone)));
	cr_assert_eq(rdma_destroy_id(gone), 0);
	id = make_resolved_verbs_ud_cm(ch, &to);
	cr_assert_eq(rdma_connect(id, NULL), 0);
	e = vt_event(ch, RDMA_CM_EVENT_UNREACHABLE);
	cr_expect_eq(e->status, -ECONNREFUSED);
	rdma_ack_cm_event(e);
	cr_assert_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

/* Of what the exchange can have: private data that is too long, requests beyond the backlog. */
Test(verbs_ud_cm, bounds, .timeout = 30)
{
	uint8_t long_data[UD_PD_REQ + 1] = { 0 };
	struct rdma_conn_param say = { .private_data = long_data,
				       .private_data_len = sizeof long_data };
	struct rdma_cm_id *more[5], *got[4];
	struct rdma_cm_event *e;
	struct pair p;

	connect_ud_pair(&p, "127.0.0.1");
	VT_MINUS_AS(rdma_connect(p.ask, &say), EINVAL);
	for (int i = 0; i < 5; i++) {
		more[i] = make_resolved_verbs_ud_cm(p.ch[0], &p.addr);
		cr_assert_eq(rdma_connect(more[i], NULL), 0);
	}
	for (int i = 0; i < 4; i++) {
		e = vt_event(p.ch[1], RDMA_CM_EVENT_CONNECT_REQUEST);
		got[i] = e->id;
		rdma_ack_cm_event(e);
	}
	cr_expect_not(vt_readable(p.ch[1]->fd, 100), "the backlog is 4");
	say.private_data_len = UD_PD_REP + 1;
	say.qp_num = 0xf01234;
	VT_MINUS_AS(rdma_accept(got[0], &say), EINVAL);
	say.private_data_len = 0;
	for (int i = 0; i < 4; i++) {
		cr_assert_eq(rdma_accept(got[i], &say), 0);
		e = vt_event(p.ch[0], RDMA_CM_EVENT_ESTABLISHED);
		cr_expect_eq(e->param.ud.qp_num, 0xf01234);
		rdma_ack_cm_event(e);
	}
	take_ud_cm_request(&p, ""); /* the fifth has asked again */
	for (int i = 0; i < 4; i++)
		cr_expect_eq(rdma_destroy_id(got[i]), 0);
	for (int i = 0; i < 5; i++)
		cr_expect_eq(rdma_destroy_id(more[i]), 0);
	close_ud_pair(&p);
}

/* ---- address handles ---- */

Test(verbs_ud_cm, handles_of_addresses)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH };
	struct ibv_grh grh = { .hop_limit = 3 };
	struct ibv_ah *ah;
	struct vud v;

	vud_open(&v);
	VT_NULL_AS(ibv_create_ah(v.pd, &attr), EINVAL); /* :: is nobody's */
	attr.grh.dgid.raw[0] = 0xfd;
	ah = ibv_create_ah(v.pd, &attr);
	cr_assert_not_null(ah);
	cr_expect_eq(ibv_dealloc_pd(v.pd), EBUSY);
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	attr.port_num = 2;
	VT_NULL_AS(ibv_create_ah(v.pd, &attr), EINVAL);
	attr.port_num = 1;
	attr.grh.sgid_index = 1;
	VT_NULL_AS(ibv_create_ah(v.pd, &attr), EINVAL);
	attr.is_global = 0;
	VT_NULL_AS(ibv_create_ah(v.pd, &attr), EINVAL);
	memset(&grh.sgid, 0xab, sizeof grh.sgid);
	VT_MINUS_AS(ibv_init_ah_from_wc(v.ctx, 2, &wc, &grh, &attr), EINVAL);
	cr_assert_eq(ibv_init_ah_from_wc(v.ctx, 1, &wc, &grh, &attr), 0);
	cr_expect_arr_eq(attr.grh.dgid.raw, grh.sgid.raw, 16);
	cr_expect_eq(attr.is_global, 1);
	wc.wc_flags = 0;
	VT_MINUS_AS(ibv_init_ah_from_wc(v.ctx, 1, &wc, &grh, &attr), EINVAL);
	vud_close(&v);
}

/* ---- groups ---- */

static struct rdma_cm_id *make_verbs_ud_cm_member(struct rdma_event_channel *ch,
						  struct sockaddr_storage *group, bool receives,
						  struct rdma_ud_param *ud)
{
	struct rdma_cm_join_mc_attr_ex ex = { .comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
							   RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
					      .join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
					      .addr = (struct sockaddr *)group };
	struct sockaddr_storage own;
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	set_addr(&own, "127.0.0.1", 0);
	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_UDP), 0);
	cr_assert_eq(rdma_bind_addr(id, (struct sockaddr *)&own), 0);
	equip_verbs_ud_cm(id);
	if (receives)
		cr_assert_eq(rdma_join_multicast(id, ex.addr, id), 0, "%m");
	else
		cr_assert_eq(rdma_join_multicast_ex(id, &ex, id), 0, "%m");
	e = vt_event(ch, RDMA_CM_EVENT_MULTICAST_JOIN);
	cr_expect_eq(e->status, 0);
	cr_expect_eq(e->param.ud.private_data, id, "the program's own word");
	cr_expect_eq(e->param.ud.qp_num, 0xffffff);
	cr_expect_eq(e->param.ud.qkey, RDMA_UDP_QKEY);
	*ud = e->param.ud;
	rdma_ack_cm_event(e);
	return id;
}

Test(verbs_ud_cm, a_group_gets_what_one_sends, .timeout = 30)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_ud_param ud;
	struct sockaddr_storage group, other;
	struct rdma_cm_id *id[3];
	static uint8_t mem[3][100];
	struct ibv_mr *mr[3];
	struct ibv_ah *ah;
	struct ibv_wc wc;

	set_addr(&group, "239.255.77.1", 0);
	set_addr(&other, "239.255.77.2", 0);
	for (int i = 0; i < 3; i++) {
		id[i] = make_verbs_ud_cm_member(ch, &group, i < 2, &ud);
		mr[i] = receive_one_verbs_ud_cm(id[i], mem[i], 100);
	}
	cr_expect_eq(ud.ah_attr.grh.dgid.raw[12], 239);
	ah = ibv_create_ah(id[2]->pd, &ud.ah_attr);
	cr_assert_not_null(ah);
	cr_assert_eq(rdma_post_ud_send(id[2], NULL, "all", 3, NULL, IBV_SEND_INLINE, ah, ud.qp_num),
		     0);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(rdma_get_recv_comp(id[i], &wc), 1);
		cr_expect_eq(wc.byte_len, 43);
		cr_expect_eq(wc.src_qp, id[2]->qp->qp_num);
		cr_expect_arr_eq(mem[i] + 40, "all", 3);
		cr_expect_arr_eq(mem[i] + 24, ud.ah_attr.grh.dgid.raw, 16, "the group's GID");
	}
	cr_expect_eq(ibv_poll_cq(id[2]->recv_cq, 1, &wc), 0, "it only sends");
	/* Whoever has left gets nothing any more. */
	VT_MINUS_AS(rdma_leave_multicast(id[1], (struct sockaddr *)&other), EADDRNOTAVAIL);
	cr_assert_eq(rdma_leave_multicast(id[1], (struct sockaddr *)&group), 0);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(rdma_post_recv(id[i], NULL, mem[i], 100, mr[i]), 0);
	cr_assert_eq(rdma_post_ud_send(id[2], NULL, "one", 3, NULL, IBV_SEND_INLINE, ah, ud.qp_num),
		     0);
	cr_assert_eq(rdma_get_recv_comp(id[0], &wc), 1);
	cr_expect_eq(ibv_poll_cq(id[1]->recv_cq, 1, &wc), 0);
	cr_expect_arr_eq(mem[1] + 40, "all", 3);
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	for (int i = 0; i < 3; i++) {
		rdma_destroy_qp(id[i]);
		cr_expect_eq(ibv_dereg_mr(mr[i]), 0);
		cr_expect_eq(rdma_destroy_id(id[i]), 0);
	}
	rdma_destroy_event_channel(ch);
}

Test(verbs_ud_cm, groups_are_counted, .timeout = 30)
{
	union ibv_gid gid = { { [10] = 0xff, [11] = 0xff, [12] = 239, [13] = 255, [14] = 78 } };
	struct ibv_device_attr attr;
	struct vud_qp q;
	struct vud v;

	vud_open(&v);
	vud_up(&v, &q);
	cr_assert_eq(ibv_query_device(v.ctx, &attr), 0);
	for (uint8_t i = 0; i < attr.max_mcast_qp_attach; i++) {
		gid.raw[15] = i;
		cr_assert_eq(ibv_attach_mcast(q.qp, &gid, 0), 0, "%d", i);
	}
	cr_expect_eq(ibv_attach_mcast(q.qp, &gid, 0), 0, "twice is once");
	gid.raw[15]++;
	cr_expect_eq(ibv_attach_mcast(q.qp, &gid, 0), ENOMEM);
	cr_expect_eq(ibv_detach_mcast(q.qp, &gid, 0), EINVAL);
	gid.raw[15]--;
	cr_expect_eq(ibv_detach_mcast(q.qp, &gid, 0), 0);
	gid.raw[12] = 10; /* no group */
	cr_expect_eq(ibv_attach_mcast(q.qp, &gid, 0), EINVAL);
	vud_down(&q);
	vud_close(&v);
}

/* ---- two processes ---- */

/* The child answers each message with one more than it says. */
static _Noreturn void run_verbs_ud_cm_child(int to_parent)
{
	static struct vud_qp q;
	struct ibv_wc wc;
	struct ibv_ah *ah;
	struct vud v;
	uint32_t n = 0;

	vud_open(&v);
	vud_up(&v, &q);
	vud_recv(&q, 1, 0, 100);
	if (write(to_parent, &q.qp->qp_num, 4) != 4)
		_exit(1);
	while (n < 20) {
		struct ibv_sge sge = { (uintptr_t)&n, 4, 0 };
		struct ibv_send_wr wr, *bad;

		wc = vud_wc(&q);
		if (wc.opcode != IBV_WC_RECV)
			continue;
		memcpy(&n, q.buf + 40, 4);
		n++;
		ah = ibv_create_ah_from_wc(v.pd, &wc, (struct ibv_grh *)q.buf, 1);
		wr = vud_wr(&q, 2, &q, &sge, 1);
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = wc.src_qp;
		wr.send_flags |= IBV_SEND_INLINE;
		vud_recv(&q, 1, 0, 100);
		if (ibv_post_send(q.qp, &wr, &bad))
			_exit(2);
		ibv_destroy_ah(ah);
	}
	_exit(0);
}

Test(verbs_ud_cm, two_processes, .timeout = 30)
{
	struct vud_qp q, peer = { 0 };
	struct ibv_qp other = { 0 };
	struct vud v;
	uint32_t n = 0;
	int fds[2], status;
	pid_t pid;

	/* A queue pair from before the fork is the parent's alone. */
	vud_open(&v);
	vud_up(&v, &q);
	cr_assert_eq(pipe(fds), 0);
	pid = fork_at_rest();
	if (!pid) {
		struct ibv_wc wc;
		struct ibv_send_wr wr = vud_wr(&q, 0, &q, NULL, 0), *bad;

		if (ibv_poll_cq(q.cq, 1, &wc) >= 0 || ibv_post_send(q.qp, &wr, &bad) != EINVAL)
			_exit(3);
		run_verbs_ud_cm_child(fds[1]);
	}
	close(fds[1]);
	cr_assert_eq(read(fds[0], &other.qp_num, 4), 4);
	close(fds[0]);
	peer.qp = &other;
	for (; n < 20; n++) {
		struct ibv_wc wc;

		vud_recv(&q, 1, 0, 100);
		memcpy(q.buf, &n, 4);
		vud_send(&q, 2, &peer, 4, 0);
		while ((wc = vud_wc(&q)).opcode != IBV_WC_RECV)
			;
		memcpy(&status, q.buf + 40, 4);
		cr_assert_eq(status, (int)n + 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	vud_down(&q);
	vud_close(&v);
}
