/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection manager without an interface: node 1 of the fabric; node 0 has an interface. */
#include <criterion/criterion.h>
#include <ddpsess/ipoib_agent.h>
#include <string.h>
#include "ipoib_net_fixture.h"

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

static void on_message(void *user, uint32_t at, const void *frame, size_t len, uint64_t now)
{
	cr_assert(user == &net && frame && now == ddps_ipoib_sim_now(net.sim));
	n_message++;
	message_len = len;
	message_qpn = at;
}

static void on_joined(void *user, int err, uint32_t mtu, uint64_t now)
{
	(void)now;
	cr_expect(user == &net && !err && mtu == 2048);
	n_joined++;
}

static uint64_t deadline(void *user)
{
	return ddps_ipoib_agent_deadline(user);
}

static void tick(void *user, uint64_t now)
{
	ddps_ipoib_agent_tick(user, now);
}

static void start(void)
{
	const struct ddps_ipoib_agent_calls calls = { sizeof(calls), on_report, on_message,
						      on_joined, &net };
	struct ddps_ipoib_sim_user u = { sizeof(u), ddps_ipoib_agent_up(), deadline, tick, NULL,
					 { 0 } };

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

static void end(void)
{
	ddps_ipoib_agent_free(agent);
	ddps_ipoib_sim_detach(net.sim, 1);
	net_fini(&net);
}

#define AgentTest(name) Test(ipoib_agent, name, .init = start, .fini = end)

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
