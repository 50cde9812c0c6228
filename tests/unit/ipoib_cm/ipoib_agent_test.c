/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection manager without an interface: node 1 of the fabric; node 0 has an interface. */
#include <criterion/criterion.h>
#include <ddpsess/ipoib_agent.h>
#include <string.h>
#include "ipoib_cm/cm/cm_own.h"
#include "ipoib_cm/sim/sim_port.h"
#include "ipoib_cm/wire/wire.h"
#include "ipoib_net_fixture.h"
#include "unit/mem_fixture.h"

static struct net net;
static struct ddps_ipoib_agent *agent;
static struct ddps_cm_report last; /* its mad is not valid any more */
static unsigned n_report, n_message, n_req, n_dreq, n_joined;
static size_t message_len;
static uint32_t qpn, message_qpn;
static bool refuse, twice;

static void on_report(void *user, const struct ddps_cm_report *r, uint64_t now)
{
	struct ddps_cm_outs o;

	cr_assert_eq(user, &net);
	n_report++;
	last = *r;
	if (r->ev == DDPS_CM_EV_RX_REQ && refuse) {
		cr_assert_eq(ddps_cm_reject(ddps_ipoib_agent_cm(agent), r->id, 3, NULL, now, &o),
			     0);
		ddps_ipoib_agent_outs(agent, &o, now);
	} else if (r->ev == DDPS_CM_EV_RX_REQ) {
		n_req++;
		cr_expect_eq(ddps_ipoib_agent_accept(agent, r, now, &qpn), 0);
		if (twice)
			cr_expect_eq(ddps_ipoib_agent_accept(agent, r, now, NULL), DDPS_E_STATE);
	} else {
		cr_expect_eq(ddps_ipoib_agent_accept(agent, r, now, NULL), DDPS_E_INVAL);
	}
	if (r->ev == DDPS_CM_EV_RX_DREQ) {
		n_dreq++;
		cr_expect_eq(ddps_ipoib_agent_closed(agent, r->id, now), 0);
	}
}

static void take_ipoib_agent_message(void *user, uint32_t at, const void *frame, size_t len,
				     uint64_t now)
{
	cr_assert(user == &net && frame && now == ddps_ipoib_sim_now(net.sim));
	n_message++;
	message_len = len;
	message_qpn = at;
}

static void take_ipoib_agent_joined(void *user, int err, uint32_t mtu, uint64_t now)
{
	(void)now;
	cr_expect(user == &net && !err && mtu == 2048);
	n_joined++;
}

static uint64_t get_ipoib_agent_deadline(void *user)
{
	return ddps_ipoib_agent_deadline(user);
}

static void tick_ipoib_agent(void *user, uint64_t now)
{
	ddps_ipoib_agent_tick(user, now);
}

static void start_ipoib_agent(void)
{
	const struct ddps_ipoib_agent_calls calls = { sizeof(calls), on_report,
						      take_ipoib_agent_message,
						      take_ipoib_agent_joined, &net };
	struct ddps_ipoib_sim_user u = {
		sizeof(u), ddps_ipoib_agent_up(), get_ipoib_agent_deadline, tick_ipoib_agent, NULL,
		{ 0 }
	};

	net_init(&net, 2, 7, DDPS_IPOIB_RC);
	net_start(&net, 0);
	cr_assert_eq(ddps_ipoib_agent_new(&agent, &net.node[1].cfg, ddps_ipoib_sim_port(net.sim, 1),
					  &calls),
		     0);
	u.user = agent;
	u.addr = net.node[1].cfg.me.addr;
	cr_assert_eq(ddps_ipoib_sim_attach(net.sim, 1, &u), 0);
	cr_assert_eq(ddps_ipoib_agent_start(agent), 0);
	ddps_ipoib_sim_touch(net.sim, 1);
	net_run(&net, 10 * MS);
}

static void end_ipoib_agent(void)
{
	ddps_ipoib_agent_free(agent);
	ddps_ipoib_sim_detach(net.sim, 1);
	net_fini(&net);
}

#define AgentTest(name) Test(ipoib_agent, name, .init = start_ipoib_agent, .fini = end_ipoib_agent)

/* Found by ARP, asked by a REQ, and the packet that waited for the connection comes on it. */
AgentTest(passes_a_req)
{
	cr_expect_eq(n_joined, 1);
	net_send4(&net, 0, 1, 5000, true);
	net_run(&net, SEC);
	cr_expect_eq(n_req, 1);
	cr_expect(n_message == 1 && message_len == 5000 + DDPS_IPOIB_ENCAP_LEN &&
		  message_qpn == qpn);
	cr_expect_eq(net_conns(&net, 0), 1);
	cr_expect_eq(ddps_cm_state(ddps_ipoib_agent_cm(agent), last.id), DDPS_CM_ST_ESTABLISHED);
}

AgentTest(answers_a_dreq_and_forgets_the_connection)
{
	for (unsigned i = 1; i <= 3; i++) {
		net_send4(&net, 0, 1, 5000, true);
		net_run(&net, SEC);
		cr_assert_eq(n_message, i);
		ddps_ipoib_if_stop(net.node[0].f, ddps_ipoib_sim_now(net.sim));
		ddps_ipoib_sim_touch(net.sim, 0);
		net_run(&net, 5 * SEC);
		cr_expect_eq(n_dreq, i);
		cr_expect_eq(ddps_cm_state(ddps_ipoib_agent_cm(agent), last.id), DDPS_CM_ST_IDLE);
		cr_expect_eq(ddps_ipoib_agent_deadline(agent), DDPS_CM_NEVER);
		cr_assert_eq(ddps_ipoib_if_start(net.node[0].f, ddps_ipoib_sim_now(net.sim)), 0);
		ddps_ipoib_sim_touch(net.sim, 0);
		net_run(&net, SEC);
	}
}

AgentTest(may_refuse)
{
	refuse = true;
	net_send4(&net, 0, 1, 5000, true);
	net_run(&net, 50 * MS);
	cr_expect(n_report >= 1 && !n_message && net_conns(&net, 0) == 0);
}

/* A second answer is refused and takes nothing from the first. */
AgentTest(answers_a_req_once)
{
	twice = true;
	net_send4(&net, 0, 1, 5000, true);
	net_run(&net, SEC);
	cr_expect_eq(n_req, 1);
	cr_expect(n_message == 1 && message_qpn == qpn);
	cr_expect_eq(net_conns(&net, 0), 1);
}

/* As many as its configuration says: the next one stays without an answer. */
AgentTest(says_when_there_are_too_many)
{
	struct ddps_cm_report r = { .ev = DDPS_CM_EV_RX_REQ, .id = 1 };
	struct ddps_cm_mad mad = { .u.req = { .transport = DDPS_CM_RC } };
	int err = 0;

	r.mad = &mad;
	for (unsigned i = 0; i < 1000 && err != DDPS_E_LIMIT; i++) {
		err = ddps_ipoib_agent_accept(agent, &r, SEC, NULL);
		cr_assert_neq(err, 0); /* there is no such REQ; its queue pair has gone again */
	}
	cr_expect_neq(err, DDPS_E_LIMIT);
}

AgentTest(refuses_bad_configurations)
{
	const struct ddps_ipoib_agent_calls good = { sizeof(good), on_report, NULL, NULL, NULL };
	struct ddps_ipoib_agent_calls calls = good;
	struct ddps_ipoib_if_config cfg = net.node[1].cfg;
	struct ddps_ipoib_port *port = ddps_ipoib_sim_port(net.sim, 1);
	struct ddps_ipoib_agent *other = NULL;

	cr_expect_eq(ddps_ipoib_agent_new(&other, &cfg, NULL, &good), DDPS_E_INVAL);
	calls.report = NULL;
	cr_expect_eq(ddps_ipoib_agent_new(&other, &cfg, port, &calls), DDPS_E_INVAL);
	calls = good;
	calls.struct_size--;
	cr_expect_eq(ddps_ipoib_agent_new(&other, &cfg, port, &calls), DDPS_E_INVAL);
	cfg.me.rx_mtu = 10;
	cr_expect_eq(ddps_ipoib_agent_new(&other, &cfg, port, &good), DDPS_E_INVAL);
	cr_expect_null(other);
	ddps_ipoib_agent_free(NULL);
}

/* ---- a second one, on a port of this file ---- */

static struct {
	int resolve_err, create_err, ready_err;
	unsigned n_ud, n_resolve, n_mad, n_stopped, n_destroyed;
	uint32_t next;
	struct ddps_ipoib_arp arp; /* the last one sent */
} mine;

static int my_ud(struct ddps_ipoib_port *p, const struct ddps_ipoib_lladdr *to,
		 const struct ddps_ipoib_path *path, const void *frame, size_t len)
{
	(void)p, (void)to;
	cr_assert(path && path->addr == 77);
	cr_assert_eq(len, DDPS_IPOIB_ENCAP_LEN + DDPS_IPOIB_ARP_LEN);
	cr_assert_eq(ddps_ipoib_arp_decode(&mine.arp, (const uint8_t *)frame + 4, len - 4), 0);
	mine.n_ud++;
	return 0;
}

static int my_join(struct ddps_ipoib_port *p, const uint8_t mgid[DDPS_IPOIB_GID_LEN])
{
	(void)p, (void)mgid;
	return 0;
}

static void my_leave(struct ddps_ipoib_port *p, const uint8_t mgid[DDPS_IPOIB_GID_LEN])
{
	(void)p, (void)mgid;
}

static int my_resolve(struct ddps_ipoib_port *p, const uint8_t gid[DDPS_IPOIB_GID_LEN])
{
	(void)p, (void)gid;
	mine.n_resolve++;
	return mine.resolve_err;
}

static int fake_ipoib_agent_mad(struct ddps_ipoib_port *p, ddps_cm_addr to,
				const uint8_t mad[DDPS_CM_MAD_LEN])
{
	(void)p, (void)to, (void)mad;
	mine.n_mad++;
	return 0;
}

static int my_create(struct ddps_ipoib_port *p, uint8_t transport, uint32_t rx_mtu, uint32_t *n)
{
	(void)p, (void)transport, (void)rx_mtu;
	*n = 0x100 + mine.next++;
	return mine.create_err;
}

static int my_ready(struct ddps_ipoib_port *p, uint32_t n, const struct ddps_ipoib_qp_to *to)
{
	(void)p, (void)n, (void)to;
	return mine.ready_err;
}

static int fake_ipoib_agent_send(struct ddps_ipoib_port *p, uint32_t n, const void *frame,
				 size_t len)
{
	(void)p, (void)n, (void)frame, (void)len;
	return 0;
}

static void my_stop(struct ddps_ipoib_port *p, uint32_t n)
{
	(void)p, (void)n;
	mine.n_stopped++;
}

static void my_destroy(struct ddps_ipoib_port *p, uint32_t n)
{
	(void)p, (void)n;
	mine.n_destroyed++;
}

static const struct ddps_ipoib_port_ops my_ops = {
	sizeof(my_ops), my_ud,	    my_join,
	my_leave,	my_resolve, fake_ipoib_agent_mad,
	my_create,	my_ready,   fake_ipoib_agent_send,
	my_stop,	my_destroy
};
static struct ddps_ipoib_port my_port = { .ops = &my_ops };
static struct ddps_ipoib_agent *second;
static unsigned second_reqs;
static struct ddps_cm_report second_req;
static struct ddps_cm_mad second_mad;
static int accepted; /* what became of the answer */
static bool silent;  /* no answer */

static void on_second(void *user, const struct ddps_cm_report *r, uint64_t now)
{
	(void)user;
	if (r->ev != DDPS_CM_EV_RX_REQ)
		return;
	second_reqs++;
	second_req = *r;
	second_mad = *r->mad;
	second_req.mad = &second_mad;
	if (!silent)
		accepted = ddps_ipoib_agent_accept(second, r, now, NULL);
}

static void begin_ipoib_agent(void)
{
	const struct ddps_ipoib_agent_calls calls = { sizeof(calls), on_second, NULL, NULL, NULL };

	start_ipoib_agent();
	net_send4(&net, 0, 1, 5000, true);
	net_run(&net, SEC);
	cr_assert_eq(n_req, 1);
	net.node[1].cfg.max_qps = 2;
	cr_assert_eq(ddps_ipoib_agent_new(&second, &net.node[1].cfg, &my_port, &calls), 0);
}

static void finish_ipoib_agent(void)
{
	ddps_ipoib_agent_free(second);
	end_ipoib_agent();
}

#define SecondTest(name)                                                                           \
	Test(ipoib_agent, name, .init = begin_ipoib_agent, .fini = finish_ipoib_agent)

/* A REQ as node 0 has sent one, for another queue pair of its own. */
static void send_ipoib_agent_req(unsigned nr)
{
	struct ddps_cm_mad m = net.node[0].last_req;
	uint8_t mad[DDPS_CM_MAD_LEN];

	m.hdr.tid += nr;
	m.u.req.local_id += nr;
	m.u.req.qpn += nr;
	cr_assert_eq(ddps_cm_mad_encode(mad, &m), 0);
	ddps_ipoib_agent_up()->mad(second, 1, mad, sizeof(mad), ddps_ipoib_sim_now(net.sim));
}

SecondTest(has_as_many_queue_pairs_as_it_was_told)
{
	const struct ddps_cm_report r = { .ev = DDPS_CM_EV_RX_REQ };
	struct ddps_cm_report none;

	cr_expect_eq(ddps_ipoib_agent_accept(second, &r, SEC, NULL), DDPS_E_INVAL, "no message");
	silent = true;
	send_ipoib_agent_req(1);
	cr_assert_eq(second_reqs, 1);
	mine.create_err = DDPS_E_NOMEM;
	cr_expect_eq(ddps_ipoib_agent_accept(second, &second_req, SEC, NULL), DDPS_E_NOMEM);
	cr_expect_eq(mine.n_destroyed, 0);
	mine.create_err = 0;
	mine.ready_err = DDPS_E_ADDRESS;
	cr_expect_eq(ddps_ipoib_agent_accept(second, &second_req, SEC, NULL), DDPS_E_ADDRESS);
	cr_expect_eq(mine.n_destroyed, 1);
	mine.ready_err = 0;
	cr_expect_eq(ddps_ipoib_agent_accept(second, &second_req, SEC, NULL), 0);
	none = second_req;
	send_ipoib_agent_req(2);
	cr_expect_eq(ddps_ipoib_agent_accept(second, &second_req, SEC, NULL), 0);
	cr_expect_eq(ddps_ipoib_agent_accept(second, &none, SEC, NULL), DDPS_E_LIMIT);
	cr_expect_eq(mine.n_destroyed, 1);
	cr_expect_neq(ddps_ipoib_agent_closed(second, 0x999999, SEC), 0, "no such connection");
}

/* An error of a queue pair ends its connection, and no other. */
SecondTest(ends_what_has_failed)
{
	const struct ddps_ipoib_up *up = ddps_ipoib_agent_up();
	unsigned n;

	send_ipoib_agent_req(1);
	send_ipoib_agent_req(2);
	cr_assert_eq(second_reqs, 2);
	cr_assert_eq(accepted, 0);
	n = mine.n_mad;
	up->qp_error(second, 0x999999, DDPS_E_TIMEDOUT, SEC);
	cr_expect_eq(mine.n_mad, n);
	up->qp_error(second, 0x101, DDPS_E_TIMEDOUT, SEC); /* it waits for its RTU: no DREQ yet */
	cr_expect_leq(mine.n_mad, n + 1);
	net_send4(&net, 0, 1, 5000, true);
	up = ddps_ipoib_agent_up();
	n = n_dreq;
	up->qp_error(agent, qpn, DDPS_E_TIMEDOUT, ddps_ipoib_sim_now(net.sim));
	net_run(&net, SEC);
	cr_expect_neq(ddps_cm_state(ddps_ipoib_agent_cm(agent), last.id), DDPS_CM_ST_ESTABLISHED);
	cr_expect_eq(n_dreq, n, "it has asked, and is not asked");
	up->qp_error(agent, qpn, DDPS_E_TIMEDOUT, ddps_ipoib_sim_now(net.sim)); /* again */
}

/* ---- what its port brings ---- */

static size_t make_ipoib_agent_arp_frame(uint8_t *frame, uint16_t op, unsigned from)
{
	struct ddps_ipoib_arp arp = { .op = op, .sender = net.node[0].cfg.me.addr };

	arp.sender.gid[15] = (uint8_t)from;
	memcpy(arp.sender_ip, net.node[0].cfg.ip4, 4);
	memcpy(arp.target_ip, net.node[1].cfg.ip4, 4);
	cr_assert_eq(ddps_ipoib_arp_encode(frame + DDPS_IPOIB_ENCAP_LEN, &arp), 0);
	ddps_ipoib_encap_encode(frame, DDPS_IPOIB_TYPE_ARP);
	return DDPS_IPOIB_ENCAP_LEN + DDPS_IPOIB_ARP_LEN;
}

static void send_ipoib_agent_ud(const uint8_t *frame, size_t len)
{
	const struct ddps_ipoib_ud_from from = { .qpn = 0x48 };

	ddps_ipoib_agent_up()->ud(second, &from, frame, len, SEC);
}

SecondTest(answers_arp_when_the_way_is_known)
{
	const struct ddps_ipoib_up *up = ddps_ipoib_agent_up();
	const struct ddps_ipoib_path path = { .addr = 77 };
	uint8_t frame[100], gid[DDPS_IPOIB_GID_LEN];
	size_t len = make_ipoib_agent_arp_frame(frame, DDPS_IPOIB_ARP_REPLY, 1);

	send_ipoib_agent_ud(frame, len); /* no request */
	len = make_ipoib_agent_arp_frame(frame, DDPS_IPOIB_ARP_REQUEST, 1);
	for (size_t i = 0; i < len; i++)
		send_ipoib_agent_ud(frame, i);
	frame[4] ^= 1; /* of another hardware */
	send_ipoib_agent_ud(frame, len);
	frame[4] ^= 1;
	frame[len - 1] ^= 1; /* for somebody else */
	send_ipoib_agent_ud(frame, len);
	frame[len - 1] ^= 1;
	ddps_ipoib_encap_encode(frame, DDPS_IPOIB_TYPE_IPV4);
	send_ipoib_agent_ud(frame, len);
	cr_expect_eq(mine.n_resolve, 0);
	send_ipoib_agent_ud(frame, make_ipoib_agent_arp_frame(frame, DDPS_IPOIB_ARP_REQUEST, 1));
	send_ipoib_agent_ud(frame, make_ipoib_agent_arp_frame(frame, DDPS_IPOIB_ARP_REQUEST, 2));
	mine.resolve_err = DDPS_E_AGAIN;
	send_ipoib_agent_ud(frame, make_ipoib_agent_arp_frame(frame, DDPS_IPOIB_ARP_REQUEST, 3));
	cr_expect_eq(mine.n_resolve, 3);
	memcpy(gid, net.node[0].cfg.me.addr.gid, sizeof(gid));
	gid[15] = 3;
	up->path(second, gid, &path, SEC);
	cr_expect_eq(mine.n_ud, 0, "whoever asks asks again");
	gid[15] = 2;
	up->path(second, gid, &path, SEC);
	cr_expect_eq(mine.n_ud, 1);
	cr_expect_eq(mine.arp.op, DDPS_IPOIB_ARP_REPLY);
	cr_expect_eq(mine.arp.target.gid[15], 2);
	cr_expect_arr_eq(mine.arp.sender_ip, net.node[1].cfg.ip4, 4);
	gid[15] = 1;
	up->path(second, gid, NULL, SEC); /* there is no way to it */
	up->path(second, gid, &path, SEC);
	cr_expect_eq(mine.n_ud, 1);
}

AgentTest(passes_what_is_long_enough)
{
	const struct ddps_ipoib_up *up = ddps_ipoib_agent_up();
	const uint64_t now = ddps_ipoib_sim_now(net.sim);
	uint8_t mad[DDPS_CM_MAD_LEN] = { 9 };
	uint8_t mgid[DDPS_IPOIB_GID_LEN] = { 0xff };

	up->qp(agent, 5, "123", 3, now);
	cr_expect_eq(n_message, 0);
	up->qp(agent, 5, "1234", 4, now);
	cr_expect_eq(n_message, 1);
	up->mad(agent, 1, mad, sizeof(mad), now);
	cr_expect_eq(n_report, 0);
	up->joined(agent, mgid, 0, 2048, now);
	cr_expect_eq(n_joined, 1, "the broadcast group's alone");
	up->link(agent, false, now);
}

/* Without functions for them nothing is passed, and nothing is answered without an address. */
SecondTest(does_without)
{
	const struct ddps_ipoib_agent_calls calls = { sizeof(calls), on_second, NULL, NULL, NULL };
	const struct ddps_ipoib_up *up = ddps_ipoib_agent_up();
	uint8_t frame[100], mgid[DDPS_IPOIB_GID_LEN];

	cr_assert_eq(ddps_ipoib_mgid_broadcast(mgid, 0xffff, 2), 0);
	up->qp(second, 5, "1234", 4, SEC);
	up->joined(second, mgid, 0, 2048, SEC);
	cr_expect_eq(n_joined, 1);
	ddps_ipoib_agent_free(second);
	net.node[1].cfg.has_ip4 = false;
	cr_assert_eq(ddps_ipoib_agent_new(&second, &net.node[1].cfg, &my_port, &calls), 0);
	send_ipoib_agent_ud(frame, make_ipoib_agent_arp_frame(frame, DDPS_IPOIB_ARP_REQUEST, 1));
	cr_expect_eq(mine.n_resolve, 0);
}

AgentTest(needs_memory_and_a_port_with_functions)
{
	const struct ddps_ipoib_agent_calls calls = { sizeof(calls), on_second, NULL, NULL, NULL };
	const struct ddps_ipoib_if_config *cfg = &net.node[1].cfg;
	struct ddps_ipoib_port_ops short_ops = my_ops;
	struct ddps_ipoib_port port = { 0 };
	const long live = mem_live();
	unsigned n = 1;

	cr_expect_eq(ddps_ipoib_agent_new(&second, cfg, &port, &calls), DDPS_E_INVAL);
	short_ops.struct_size--;
	port.ops = &short_ops;
	cr_expect_eq(ddps_ipoib_agent_new(&second, cfg, &port, &calls), DDPS_E_INVAL);
	cr_expect_null(second);
	for (;; n++) {
		struct ddps_ipoib_agent *a = NULL;
		int err;

		cr_assert_lt(n, 30);
		mem_fail(n);
		err = ddps_ipoib_agent_new(&a, cfg, &my_port, &calls);
		if (!mem_failed()) {
			cr_assert_eq(err, 0);
			ddps_ipoib_agent_free(a);
			break;
		}
		cr_expect_eq(err, DDPS_E_NOMEM, "allocation %u", n);
		cr_expect_null(a);
		cr_expect_eq(mem_live(), live, "allocation %u", n);
	}
	mem_fail(0);
	cr_expect_gt(n, 5);
}
