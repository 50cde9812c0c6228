/* SPDX-License-Identifier: BSD-2-Clause */
/* Sentences of the headers of libddpsess-ipoib that no other test is about: tests/promises.tsv. */
#include <criterion/criterion.h>
#include <ddpsess/ib_rdmacm.h>
#include <ddpsess/ib_udp.h>
#include <ddpsess/ib_umad.h>
#include <ddpsess/ib_verbs.h>
#include <string.h>
#include "ipoib_cm/cm/cm_own.h"
#include "ipoib_cm/iface/iface_in.h"
#include "ipoib_cm/wire/wire.h"
#include "unit/ipoib_cm/ipoib_net_fixture.h"
#include "ipoib_cm/sim/sim_port.h"
#include <ddpsess/err.h>
#include <ddpsess/ipoib_sim.h>
#include <stdlib.h>

Test(ipoib_promise, null_may_be_freed)
{
	struct net net;

	ddps_cm_free(NULL);
	ddps_ipoib_if_free(NULL);
	ddps_ipoib_sim_free(NULL);
	ddps_umad_close(NULL);
	ddps_rdmacm_close(NULL);
	ddps_ib_udp_free(NULL);
	ddps_ib_verbs_free(NULL);
	net_init(&net, 1, 1, 0);
	ddps_ipoib_sim_if_kill(NULL, net.sim, 0);
	net_fini(&net);
}

Test(ipoib_promise, defaults_are_those_of_the_header)
{
	const struct ddps_ipoib_if_config *c;
	struct net net;

	net_init(&net, 1, 1, 0);
	net.node[0].cfg.cm_timeout = 0;
	memset(&net.node[0].cfg.policy, 0, sizeof(net.node[0].cfg.policy));
	net_start(&net, 0);
	c = &net.node[0].f->cfg;
	cr_expect_eq(c->scope, 2);
	cr_expect(c->policy.backoff_ns == SEC && c->policy.long_ns == 30 * SEC &&
		  c->policy.soon_ns == 100 * MS);
	cr_expect(c->max_nbr == 256 && c->max_peers == 256 && c->max_qps == 512);
	cr_expect_eq(c->queue_octets, 4u << 20);
	cr_expect(c->retry_ns == SEC && c->tries == 3);
	cr_expect(c->reachable_ns == 30 * SEC && c->failed_ns == 3 * SEC &&
		  c->idle_ns == 120 * SEC);
	cr_expect(c->cm_timeout == 18 && c->cm_retries == 7);
	net_fini(&net);
}

Test(ipoib_promise, defaults_of_a_port_of_an_adapter)
{
	struct ddps_ib_verbs_config c;

	ddps_ib_verbs_config_init(&c);
	cr_expect_null(c.device);
	cr_expect(!c.port && !c.gid_index);
	cr_expect_eq(c.pkey, 0xffff);
	cr_expect_eq(c.scope, 2);
	cr_expect_eq(c.max_qps, 512);
	cr_expect(c.tx_octets == 16u << 20 && c.rx_octets == 16u << 20);
	cr_expect(!c.qkey && !c.mtu);
}

Test(ipoib_promise, defaults_of_a_port_over_udp)
{
	struct ddps_ib_udp_config c;

	ddps_ib_udp_config_init(&c);
	cr_expect_eq(c.udp_port, 4791);
	cr_expect_eq(c.pkey, 0xffff);
	cr_expect_eq(c.scope, 2);
	cr_expect_eq(c.mtu, 4, "2048");
	cr_expect_eq(c.qkey, 0x0b1b);
	cr_expect_eq(c.life, 18);
	cr_expect_eq(c.max_qps, 512);
	cr_expect(c.tx_octets == 16u << 20 && c.rx_octets == 16u << 20);
}

#define UNTOUCHED(what, call)                                                                      \
	do {                                                                                       \
		memset(&what, 0x5a, sizeof(what));                                                 \
		cr_expect_lt(call, 0, #call);                                                      \
		for (size_t i = 0; i < sizeof(what); i++)                                          \
			cr_expect_eq(((const uint8_t *)&what)[i], 0x5a, #call " at %zu", i);       \
	} while (0)

Test(ipoib_promise, decoders_that_fail_leave_their_result)
{
	uint8_t octets[64] = { 0 };
	struct ddps_ipoib_lladdr addr;
	struct ddps_ipoib_priv priv;
	struct ddps_ipoib_arp arp;
	uint8_t flags, gid[16];
	uint64_t sid;

	UNTOUCHED(addr, ddps_ipoib_lladdr_decode(&addr, octets, 19));
	UNTOUCHED(addr, ddps_ipoib_lladdr_parse(&addr, "80:00:00:48"));
	UNTOUCHED(flags, ddps_ipoib_flags_parse(&flags, "rc,xx"));
	UNTOUCHED(gid, ddps_ipoib_gid_parse(gid, "fe80::g"));
	UNTOUCHED(sid, ddps_ipoib_service_id_parse(&sid, "0x1g"));
	UNTOUCHED(priv, ddps_ipoib_priv_decode(&priv, octets, 7));
	UNTOUCHED(priv, ddps_ipoib_priv_parse(&priv, "00000048"));
	UNTOUCHED(arp, ddps_ipoib_arp_decode(&arp, octets, 55));
	UNTOUCHED(arp, ddps_ipoib_arp_decode(&arp, octets, sizeof(octets)));
	octets[0] = DDPS_IPOIB_ND_SOURCE;
	UNTOUCHED(addr, ddps_ipoib_nd_find(&addr, DDPS_IPOIB_ND_SOURCE, octets, 24));
}

static void note_time(void *arg, uint64_t now)
{
	*(uint64_t *)arg = now;
}

Test(ipoib_promise, the_fabric_calls_when_it_was_asked_to)
{
	struct net net;
	uint64_t at = 0;

	net_init(&net, 1, 1, 0);
	cr_assert_eq(ddps_ipoib_sim_at(net.sim, 5 * MS, note_time, &at), 0);
	ddps_ipoib_sim_run(net.sim, 5 * MS - 1);
	cr_expect_eq(at, 0);
	ddps_ipoib_sim_run(net.sim, 20 * MS);
	cr_expect_eq(at, 5 * MS);
	cr_expect_eq(ddps_ipoib_sim_now(net.sim), 20 * MS);
	net_fini(&net);
}

Test(ipoib_promise, a_fabric_has_its_limits)
{
	static const struct {
		unsigned nodes;
		uint64_t min_delay, max_delay;
		int err;
	} row[] = { { 1, 0, 0, 0 },
		    { 49151, 5, 5, 0 },
		    { 0, 0, 0, DDPS_E_INVAL },
		    { 49152, 0, 0, DDPS_E_INVAL },
		    { 1, 6, 5, DDPS_E_INVAL } };
	struct ddps_ipoib_sim_config cfg;
	struct ddps_ipoib_sim *sim = NULL;
	uint64_t at = 0;

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		ddps_ipoib_sim_config_init(&cfg);
		cfg.nodes = row[i].nodes;
		cfg.faults.min_delay = row[i].min_delay;
		cfg.faults.max_delay = row[i].max_delay;
		cr_expect_eq(ddps_ipoib_sim_new(&sim, &cfg), row[i].err, "row %zu", i);
		ddps_ipoib_sim_free(sim);
		sim = NULL;
	}
	ddps_ipoib_sim_config_init(&cfg);
	cfg.max_events = 1;
	cr_assert_eq(ddps_ipoib_sim_new(&sim, &cfg), 0);
	ddps_ipoib_sim_run(sim, SEC);
	cr_expect_eq(ddps_ipoib_sim_at(sim, MS, note_time, &at), 0);
	cr_expect_eq(ddps_ipoib_sim_at(sim, 2 * SEC, note_time, &at), DDPS_E_LIMIT);
	cr_expect_eq(ddps_ipoib_sim_stats(sim)->overflow, 1);
	ddps_ipoib_sim_run(sim, 2 * SEC);
	cr_expect_eq(at, SEC, "what has passed stands for the present");
	ddps_ipoib_sim_free(sim);
}

/* Whether node 1 gets a packet of node 0. */
static bool does_packet_arrive(struct net *net)
{
	const uint64_t before = net->node[1].n_rx;

	net_send4(net, 0, 1, 100, true);
	net_run(net, 10 * SEC);
	return net->node[1].n_rx > before;
}

Test(ipoib_promise, faults_begin_immediately_and_have_to_make_sense)
{
	const struct ddps_ipoib_sim_faults none = { .min_delay = 1, .max_delay = 2 },
					   all = { .loss = 1000000 },
					   nonsense = { .loss = 1000000, .min_delay = 2 };
	struct net net;

	net_init(&net, 2, 1, 0);
	net_start_all(&net);
	cr_expect(does_packet_arrive(&net));
	ddps_ipoib_sim_set_faults(net.sim, &nonsense);
	cr_expect(does_packet_arrive(&net), "ignored");
	ddps_ipoib_sim_set_faults(net.sim, &all);
	cr_expect_not(does_packet_arrive(&net));
	ddps_ipoib_sim_set_faults(net.sim, &none);
	cr_expect(does_packet_arrive(&net));
	net_fini(&net);
}

Test(ipoib_promise, numbers_of_the_fabric_are_in_their_range)
{
	struct net net;
	unsigned seen = 0;

	net_init(&net, 1, 1, 0);
	for (int i = 0; i < 200; i++) {
		const uint64_t n = ddps_ipoib_sim_random(net.sim, 4);

		cr_assert_lt(n, 4);
		seen |= 1u << n;
	}
	cr_expect_eq(seen, 15);
	net_fini(&net);
}

static uint32_t connect_as(struct ddps_cm *cm, void *user, struct ddps_cm_outs *o)
{
	struct ddps_cm_connect c = { .req = { .qpn = 1, .local_cm_timeout = 4 }, .user = user };
	uint32_t id;

	cr_assert_eq(ddps_cm_connect(cm, &c, 0, &id, o), 0);
	return id;
}

/* The one that it was made with, or was given later, comes with its reports. */
Test(ipoib_promise, reports_bring_the_users_pointer)
{
	struct ddps_cm_config cfg;
	struct ddps_cm_outs o;
	struct ddps_cm *cm;
	int first, later;
	uint32_t id[2];
	void *seen[2] = { NULL };

	ddps_cm_config_init(&cfg);
	cr_assert_eq(ddps_cm_new(&cm, &cfg), 0);
	for (int i = 0; i < 2; i++)
		id[i] = connect_as(cm, &first, &o);
	cr_expect_eq(ddps_cm_set_user(cm, id[1], &later), 0);
	cr_expect_eq(ddps_cm_set_user(cm, ~id[0] ^ id[1], &later), DDPS_E_INVAL);
	cr_expect_eq(ddps_cm_state(cm, id[0]), DDPS_CM_ST_REQ_SENT);
	cr_expect_eq(ddps_cm_state(cm, ~id[0] ^ id[1]), DDPS_CM_ST_IDLE);
	while (ddps_cm_deadline(cm) != DDPS_CM_NEVER)
		while (ddps_cm_tick(cm, ddps_cm_deadline(cm), &o) == 1)
			for (unsigned k = 0; k < o.n_report; k++)
				for (int i = 0; i < 2; i++)
					if (o.report[k].id == id[i])
						seen[i] = o.report[k].user;
	cr_expect(seen[0] == &first && seen[1] == &later);
	ddps_cm_free(cm);
}

Test(ipoib_promise, counters_are_those_of_the_interface)
{
	struct net net;
	uint8_t mad[DDPS_CM_MAD_LEN] = { 0 };

	net_init(&net, 1, 1, 0);
	net_start_all(&net);
	ddps_ipoib_if_up()->mad(net.node[0].f, 1, mad, sizeof(mad), ddps_ipoib_sim_now(net.sim));
	cr_expect_eq(net_stats(&net, 0)->mad_bad, 1);
	cr_expect_eq(ddps_ipoib_if_cm_stats(net.node[0].f)->malformed, 1);
	net_fini(&net);
}

/* ---- api ---- */

/* What the headers of libddpsess-ipoib promise whoever was compiled with other releases of them. */

#define RC DDPS_IPOIB_RC

static void deliver_to_ipoib_api(void *user, const void *packet, size_t len)
{
	(void)user, (void)packet, (void)len;
}

Test(ipoib_api, texts_are_those_of_the_other_library)
{
	static const int err[] = { 0,
#define DDPS_X(name, value, text) value,
				   DDPS_ERRORS(DDPS_X)
#undef DDPS_X
					   1,
				   -1000 };

	for (size_t i = 0; i < sizeof(err) / sizeof(err[0]); i++)
		cr_expect_str_eq(ddps_ipoib_strerror(err[i]), ddps_strerror(err[i]));
}

Test(ipoib_api, names_of_what_does_not_exist)
{
	cr_expect_str_eq(ddps_cm_state_name(DDPS_CM_ST_REP_SENT), "REP_SENT");
	cr_expect_str_eq(ddps_cm_state_name((enum ddps_cm_state)DDPS_CM_NSTATE), "?");
	cr_expect_str_eq(ddps_cm_event_name(DDPS_CM_EV_RX_DREQ), "RX_DREQ");
	cr_expect_str_eq(ddps_cm_event_name((enum ddps_cm_event) - 1), "?");
}

/* An init function fills what the caller has and nothing behind. */
#define INIT_FILLS(type)                                                                           \
	do {                                                                                       \
		struct {                                                                           \
			struct type it;                                                            \
			uint8_t behind[64];                                                        \
		} was;                                                                             \
		for (size_t size = sizeof(size_t); size <= sizeof(was); size += 8) {               \
			const uint8_t *octet = (const uint8_t *)&was;                              \
			memset(&was, 0xa5, sizeof(was));                                           \
			type##_init_sized(&was.it, size);                                          \
			cr_expect_eq(was.it.struct_size, size, #type);                             \
			for (size_t i = sizeof(was.it); i < size; i++)                             \
				cr_expect_eq(octet[i], 0, #type " at %zu of %zu", i, size);        \
			for (size_t i = size; i < sizeof(was); i++)                                \
				cr_expect_eq(octet[i], 0xa5, #type " at %zu of %zu", i, size);     \
		}                                                                                  \
	} while (0)

Test(ipoib_api, init_stays_in_the_callers_memory)
{
	INIT_FILLS(ddps_cm_config);
	INIT_FILLS(ddps_ipoib_if_config);
	INIT_FILLS(ddps_ipoib_sim_config);
	INIT_FILLS(ddps_ib_udp_config);
	INIT_FILLS(ddps_ib_verbs_config);
}

/* @make: 0 or an error, from a configuration that is larger than this release's. */
#define FROM_A_LATER_RELEASE(type, set, call, undo)                                                \
	do {                                                                                       \
		struct {                                                                           \
			struct type it;                                                            \
			uint8_t more[16];                                                          \
		} c;                                                                               \
		type##_init_sized(&c.it, sizeof(c));                                               \
		set;                                                                               \
		cr_expect_eq(call, 0, #type);                                                      \
		undo;                                                                              \
		c.more[15] = 1;                                                                    \
		cr_expect_eq(call, DDPS_E_UNSUPPORTED, #type);                                     \
		c.it.struct_size = 3;                                                              \
		cr_expect_eq(call, DDPS_E_INVAL, #type);                                           \
		c.it.struct_size = SIZE_MAX / 2 + 1;                                               \
		cr_expect_eq(call, DDPS_E_INVAL, #type);                                           \
	} while (0)

Test(ipoib_api, configurations_of_a_later_release)
{
	const struct ddps_ipoib_if_calls calls = { .struct_size = sizeof(calls),
						   .deliver = deliver_to_ipoib_api };
	struct ddps_ipoib_sim *sim;
	struct ddps_ipoib_if *f;
	struct ddps_cm *cm;
	struct net net;

	net_init(&net, 1, 1, RC);
	FROM_A_LATER_RELEASE(ddps_cm_config, , ddps_cm_new(&cm, &c.it), ddps_cm_free(cm));
	FROM_A_LATER_RELEASE(ddps_ipoib_sim_config, , ddps_ipoib_sim_new(&sim, &c.it),
			     ddps_ipoib_sim_free(sim));
	FROM_A_LATER_RELEASE(ddps_ipoib_if_config,
			     (c.it.me = net.node[0].cfg.me, c.it.has_ip4 = true),
			     ddps_ipoib_if_new(&f, &c.it, ddps_ipoib_sim_port(net.sim, 0), &calls),
			     ddps_ipoib_if_free(f));
	net_fini(&net);
}

Test(ipoib_api, tables_without_their_size_are_refused)
{
	struct ddps_ipoib_if_calls calls = { .struct_size = sizeof(calls),
					     .deliver = deliver_to_ipoib_api };
	struct ddps_ipoib_port_ops ops = { .struct_size = sizeof(ops) - 1 };
	struct ddps_ipoib_port port = { &ops };
	struct ddps_ipoib_up up = { .struct_size = 0 };
	struct ddps_ipoib_sim_user user = { .struct_size = sizeof(user), .up = &up };
	struct ddps_ipoib_if *f;
	struct net net;

	net_init(&net, 1, 1, RC);
#define NEW(port) ddps_ipoib_if_new(&f, &net.node[0].cfg, port, &calls)
	cr_expect_eq(NEW(&port), DDPS_E_INVAL);
	cr_expect_eq(NEW(NULL), DDPS_E_INVAL);
	calls.deliver = NULL;
	cr_expect_eq(NEW(ddps_ipoib_sim_port(net.sim, 0)), DDPS_E_INVAL);
	calls = (struct ddps_ipoib_if_calls){ .deliver = deliver_to_ipoib_api };
	cr_expect_eq(NEW(ddps_ipoib_sim_port(net.sim, 0)), DDPS_E_INVAL);
#undef NEW
	cr_expect_eq(ddps_ipoib_sim_attach(net.sim, 0, &user), DDPS_E_INVAL);
	net_fini(&net);
}

Test(ipoib_api, nodes_that_do_not_exist)
{
	struct ddps_ipoib_sim_user user = { .struct_size = sizeof(user), .up = ddps_ipoib_if_up() };
	struct ddps_ipoib_if_calls calls = { .struct_size = sizeof(calls),
					     .deliver = deliver_to_ipoib_api };
	struct ddps_ipoib_if *f = (void *)&user;
	struct net net;

	net_init(&net, 2, 1, RC);
	cr_expect_null(ddps_ipoib_sim_port(net.sim, 2));
	cr_expect_eq(ddps_ipoib_sim_attach(net.sim, 2, &user), DDPS_E_INVAL);
	cr_expect_eq(ddps_ipoib_sim_if_start(&f, net.sim, 2, &net.node[0].cfg, &calls),
		     DDPS_E_INVAL);
	cr_expect_eq((void *)f, (void *)&user, "what was there stays");
	net_fini(&net);
}
