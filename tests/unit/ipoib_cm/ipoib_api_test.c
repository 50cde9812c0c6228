/* SPDX-License-Identifier: BSD-2-Clause */
/* What the headers of libddpsess-ipoib promise whoever was compiled with other releases of them. */
#include <criterion/criterion.h>
#include <ddpsess/err.h>
#include <ddpsess/ib_udp.h>
#include <ddpsess/ib_verbs.h>
#include <ddpsess/ipoib_sim.h>
#include <stdlib.h>
#include <string.h>
#include "ipoib_cm/cm/cm_own.h"
#include "ipoib_cm/sim/sim_port.h"
#include "unit/ipoib_cm/ipoib_net_fixture.h"

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
