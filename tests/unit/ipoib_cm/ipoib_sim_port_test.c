/* SPDX-License-Identifier: BSD-2-Clause */
/* The fabric in memory by itself: its limits, its addresses, its queue pairs; no interface is behind it. */
#include <criterion/criterion.h>
#include <string.h>
#include "ipoib_cm/sim/port_sim_in.h"
#include "ipoib_cm/sim/sim_port.h"
#include "unit/mem_fixture.h"

#define MS    1000000ull
#define USERS 3

static struct user {
	struct ddps_ipoib_sim_user calls;
	uint64_t due;
	unsigned n_tick, n_ud, n_mad, n_qp, n_error, n_path, n_no_path, n_joined, n_link;
	ddps_cm_addr path, from;
	uint32_t qpn, error_qpn;
	int err;
	bool link;
} user[USERS];
static struct ddps_ipoib_sim *sim;
static struct ddps_ipoib_port *port[USERS];

static void take_ipoib_sim_port_ud(void *u, const struct ddps_ipoib_ud_from *from,
				   const void *frame, size_t len, uint64_t now)
{
	(void)from, (void)frame, (void)len, (void)now;
	((struct user *)u)->n_ud++;
}

static void take_ipoib_sim_port_mad(void *u, ddps_cm_addr from, const void *mad, size_t len,
				    uint64_t now)
{
	(void)mad, (void)now;
	cr_expect_eq(len, DDPS_CM_MAD_LEN);
	((struct user *)u)->n_mad++;
	((struct user *)u)->from = from;
}

static void take_ipoib_sim_port_qp(void *u, uint32_t qpn, const void *frame, size_t len,
				   uint64_t now)
{
	(void)frame, (void)len, (void)now;
	((struct user *)u)->n_qp++;
	((struct user *)u)->qpn = qpn;
}

static void take_ipoib_sim_port_qp_error(void *u, uint32_t qpn, int err, uint64_t now)
{
	(void)now;
	((struct user *)u)->n_error++;
	((struct user *)u)->error_qpn = qpn;
	((struct user *)u)->err = err;
}

static void take_ipoib_sim_port_path(void *u, const uint8_t *gid,
				     const struct ddps_ipoib_path *path, uint64_t now)
{
	(void)gid, (void)now;
	((struct user *)u)->n_path += path != NULL;
	((struct user *)u)->n_no_path += path == NULL;
	((struct user *)u)->path = path ? path->addr : 0;
}

static void take_ipoib_sim_port_joined(void *u, const uint8_t *mgid, int err, uint32_t mtu,
				       uint64_t now)
{
	(void)mgid, (void)now;
	cr_expect_eq(err, 0);
	cr_expect_eq(mtu, 2048);
	((struct user *)u)->n_joined++;
}

static void take_ipoib_sim_port_link(void *u, bool up, uint64_t now)
{
	(void)now;
	((struct user *)u)->n_link++;
	((struct user *)u)->link = up;
}

static const struct ddps_ipoib_up up = { sizeof(struct ddps_ipoib_up), take_ipoib_sim_port_ud,
					 take_ipoib_sim_port_mad,      take_ipoib_sim_port_qp,
					 take_ipoib_sim_port_qp_error, take_ipoib_sim_port_path,
					 take_ipoib_sim_port_joined,   take_ipoib_sim_port_link };

static uint64_t on_deadline(void *u)
{
	return ((struct user *)u)->due;
}

static void on_tick(void *u, uint64_t now)
{
	cr_expect_geq(now, ((struct user *)u)->due);
	((struct user *)u)->n_tick++;
	((struct user *)u)->due = DDPS_CM_NEVER;
}

static void attach(unsigned i, unsigned gid)
{
	user[i] = (struct user){ .calls = { .struct_size = sizeof(user[i].calls),
					    .up = &up,
					    .deadline = on_deadline,
					    .tick = on_tick,
					    .user = &user[i],
					    .addr = { .qpn = 0x48 + i } },
				 .due = DDPS_CM_NEVER };
	user[i].calls.addr.gid[15] = (uint8_t)gid;
	cr_assert_eq(ddps_ipoib_sim_attach(sim, i, &user[i].calls), 0);
}

static void make_ipoib_sim_port(unsigned max_events)
{
	struct ddps_ipoib_sim_config c;

	ddps_ipoib_sim_config_init(&c);
	c.nodes = USERS;
	c.max_events = max_events;
	cr_assert_eq(ddps_ipoib_sim_new(&sim, &c), 0);
	for (unsigned i = 0; i < USERS; i++) {
		port[i] = ddps_ipoib_sim_port(sim, i);
		attach(i, 1 + i);
	}
}

static void init(void)
{
	make_ipoib_sim_port(0);
}

static void fini(void)
{
	ddps_ipoib_sim_free(sim);
}

static void run_ipoib_sim_port(void)
{
	ddps_ipoib_sim_run(sim, ddps_ipoib_sim_now(sim) + MS);
}

static const struct ddps_ipoib_sim_stats *get_ipoib_sim_port_stats(void)
{
	return ddps_ipoib_sim_stats(sim);
}

/* ---- its life ---- */

Test(ipoib_sim_port, limits_of_the_configuration)
{
	struct ddps_ipoib_sim_config c;
	struct ddps_ipoib_sim *s = NULL;

	ddps_ipoib_sim_config_init(&c);
	c.nodes = 0;
	cr_expect_eq(ddps_ipoib_sim_new(&s, &c), DDPS_E_INVAL);
	c.nodes = 49152;
	cr_expect_eq(ddps_ipoib_sim_new(&s, &c), DDPS_E_INVAL);
	c.nodes = 49151;
	c.faults = (struct ddps_ipoib_sim_faults){ .min_delay = 2, .max_delay = 1 };
	cr_expect_eq(ddps_ipoib_sim_new(&s, &c), DDPS_E_INVAL);
	c.struct_size = 3;
	cr_expect_eq(ddps_ipoib_sim_new(&s, &c), DDPS_E_INVAL);
	cr_expect_null(s, "unchanged");
	c.struct_size = sizeof(c);
	c.faults.max_delay = 2;
	cr_assert_eq(ddps_ipoib_sim_new(&s, &c), 0);
	cr_expect_not_null(ddps_ipoib_sim_port(s, 49150));
	cr_expect_null(ddps_ipoib_sim_port(s, 49151));
	ddps_ipoib_sim_free(s);
	ddps_ipoib_sim_free(NULL);
}

Test(ipoib_sim_port, each_allocation_may_fail)
{
	struct ddps_ipoib_sim_config c;
	const long live = mem_live();
	unsigned n = 1;

	ddps_ipoib_sim_config_init(&c);
	for (;; n++) {
		struct ddps_ipoib_sim *s = NULL;
		int err;

		cr_assert_lt(n, 20);
		mem_fail(n);
		err = ddps_ipoib_sim_new(&s, &c);
		if (!mem_failed()) {
			cr_assert_eq(err, 0);
			ddps_ipoib_sim_free(s);
			break;
		}
		cr_expect_eq(err, DDPS_E_NOMEM, "allocation %u", n);
		cr_expect_null(s);
		cr_expect_eq(mem_live(), live, "allocation %u", n);
	}
	cr_expect_gt(n, 5);
}

Test(ipoib_sim_port, whom_it_does_not_attach, .init = init, .fini = fini)
{
	struct ddps_ipoib_sim_user u = user[0].calls;
	struct ddps_ipoib_up short_up = up;

	cr_expect_eq(ddps_ipoib_sim_attach(sim, USERS, &u), DDPS_E_INVAL);
	u.struct_size--;
	cr_expect_eq(ddps_ipoib_sim_attach(sim, 0, &u), DDPS_E_INVAL);
	u.struct_size++;
	short_up.struct_size--;
	u.up = &short_up;
	cr_expect_eq(ddps_ipoib_sim_attach(sim, 0, &u), DDPS_E_INVAL);
	u.up = &up;
	cr_expect_eq(ddps_ipoib_sim_attach(sim, 0, &u), 0);
}

/* ---- its events ---- */

static unsigned n_called;

static void on_call(void *arg, uint64_t now)
{
	cr_expect_eq(now, *(uint64_t *)arg);
	n_called++;
}

Test(ipoib_sim_port, calls_at_a_time, .init = init, .fini = fini)
{
	uint64_t at = 3 * MS;

	cr_expect_eq(ddps_ipoib_sim_at(sim, at, on_call, &at), 0);
	ddps_ipoib_sim_run(sim, at - 1);
	cr_expect_eq(n_called, 0);
	ddps_ipoib_sim_run(sim, at);
	cr_expect_eq(n_called, 1);
	cr_expect_eq(ddps_ipoib_sim_at(sim, 1, on_call, &at), 0, "that has passed");
	ddps_ipoib_sim_run(sim, at);
	cr_expect_eq(n_called, 2, "so it is now");
}

Test(ipoib_sim_port, a_deadline_that_has_passed_is_now, .init = init, .fini = fini)
{
	ddps_ipoib_sim_run(sim, 5 * MS);
	user[1].due = MS;
	ddps_ipoib_sim_touch(sim, 1);
	ddps_ipoib_sim_run(sim, 5 * MS);
	cr_expect_eq(user[1].n_tick, 1);
	cr_expect_eq(user[0].n_tick + user[2].n_tick, 0);
}

static int send_ud(unsigned from, ddps_cm_addr to)
{
	const struct ddps_ipoib_lladdr a = { .qpn = 0x48 + 1 };
	const struct ddps_ipoib_path path = { .addr = to };

	return port[from]->ops->ud_send(port[from], &a, &path, "12345", 5);
}

/* No more wait than max_events says; what is beyond is counted. */
Test(ipoib_sim_port, events_are_bounded, .fini = fini)
{
	uint64_t at = MS;

	make_ipoib_sim_port(1);
	cr_expect_eq(ddps_ipoib_sim_at(sim, at, on_call, &at), 0);
	cr_expect_eq(ddps_ipoib_sim_at(sim, at, on_call, &at), DDPS_E_LIMIT);
	cr_expect_eq(get_ipoib_sim_port_stats()->overflow, 1);
	cr_expect_eq(send_ud(0, 2), 0, "lost as on any fabric");
	cr_expect_eq(get_ipoib_sim_port_stats()->overflow, 2);
	user[0].due = MS;
	ddps_ipoib_sim_touch(sim, 0);
	cr_expect_eq(get_ipoib_sim_port_stats()->overflow, 3);
	ddps_ipoib_sim_run(sim, MS);
	cr_expect_eq(user[1].n_ud, 0);
	cr_expect_eq(n_called, 1);
}

Test(ipoib_sim_port, messages_that_find_no_memory, .init = init, .fini = fini)
{
	for (unsigned n = 1; n <= 2; n++) { /* the event, its octets */
		mem_fail(n);
		cr_expect_eq(send_ud(0, 2), 0);
		cr_expect(mem_failed());
		cr_expect_eq(get_ipoib_sim_port_stats()->overflow, n);
	}
	cr_expect_eq(send_ud(0, 2), 0);
	run_ipoib_sim_port();
	cr_expect_eq(user[1].n_ud, 1);
}

Test(ipoib_sim_port, faults_that_cannot_be_are_not_taken, .init = init, .fini = fini)
{
	struct ddps_ipoib_sim_faults f = { .loss = 1000000, .min_delay = 2, .max_delay = 1 };

	ddps_ipoib_sim_set_faults(sim, &f);
	cr_expect_eq(send_ud(0, 2), 0);
	run_ipoib_sim_port();
	cr_expect_eq(user[1].n_ud, 1);
	f.max_delay = 2;
	ddps_ipoib_sim_set_faults(sim, &f);
	cr_expect_eq(send_ud(0, 2), 0);
	run_ipoib_sim_port();
	cr_expect_eq(user[1].n_ud, 1);
	cr_expect_eq(get_ipoib_sim_port_stats()->lost, 1);
}

/* ---- addresses ---- */

Test(ipoib_sim_port, addresses_that_are_none, .init = init, .fini = fini)
{
	static const ddps_cm_addr none[] = { 0, 0xc000, 0x1000000000001 };
	const struct ddps_ipoib_lladdr a = { .qpn = 0x49 };
	const uint8_t mad[DDPS_CM_MAD_LEN] = { 1, 7 }, frame[2049] = { 8 };
	const struct ddps_ipoib_path path = { .addr = 2 };

	for (unsigned i = 0; i < 3; i++) {
		cr_expect_eq(send_ud(0, none[i]), DDPS_E_ADDRESS, "%u", i);
		cr_expect_eq(port[0]->ops->mad_send(port[0], none[i], mad), DDPS_E_ADDRESS);
	}
	cr_expect_eq(port[0]->ops->ud_send(port[0], &a, NULL, frame, 5), DDPS_E_ADDRESS);
	cr_expect_eq(port[0]->ops->ud_send(port[0], &a, &path, frame, 2049), DDPS_E_TOO_LONG);
	cr_expect_eq(port[0]->ops->ud_send(port[0], &a, &path, frame, 2048), 0);
	cr_expect_eq(send_ud(0, 0xbfff), 0, "nobody's: lost");
	cr_expect_eq(port[0]->ops->mad_send(port[0], 2, mad), 0);
	run_ipoib_sim_port();
	cr_expect_eq(user[1].n_ud, 1);
	cr_expect_eq(user[1].n_mad, 1);
	cr_expect_eq(user[1].from, 1, "who can be answered");
	cr_expect_eq(get_ipoib_sim_port_stats()->lost, 1);
}

static ddps_cm_addr get_ipoib_sim_port_path_to(uint8_t gid)
{
	const uint8_t to[16] = { [15] = gid };
	const unsigned n = user[0].n_path + user[0].n_no_path;

	cr_expect_eq(port[0]->ops->resolve(port[0], to), 0);
	run_ipoib_sim_port();
	cr_expect_eq(user[0].n_path + user[0].n_no_path, n + 1, "one answer");
	return user[0].path;
}

/* Of two that have a GID, the first is found; one that is gone or plugged out is not. */
Test(ipoib_sim_port, gids_are_found, .init = init, .fini = fini)
{
	cr_expect_eq(get_ipoib_sim_port_path_to(2), 2);
	cr_expect_eq(get_ipoib_sim_port_path_to(99), 0);
	ddps_ipoib_sim_plug(sim, 1, true); /* it is */
	cr_expect_eq(user[1].n_link, 0);
	ddps_ipoib_sim_plug(sim, 1, false);
	cr_expect_eq(user[1].n_link, 1);
	cr_expect_eq(get_ipoib_sim_port_path_to(2), 0);
	ddps_ipoib_sim_plug(sim, 1, true);
	cr_expect_eq(get_ipoib_sim_port_path_to(2), 2);
	for (unsigned i = 0; i < 2; i++) {
		attach(2 - i, 2); /* the later one comes first in the table, and then last */
		cr_expect_eq(get_ipoib_sim_port_path_to(2), 2);
	}
	ddps_ipoib_sim_detach(sim, 1);
	cr_expect_eq(get_ipoib_sim_port_path_to(2), 3);
	cr_expect_eq(ddps_ipoib_sim_move(sim, 2, 0xbfff), 0);
	cr_expect_eq(get_ipoib_sim_port_path_to(2), 0xbfff);
	cr_expect_eq(ddps_ipoib_sim_move(sim, 2, 1), DDPS_E_INVAL, "another one's");
	cr_expect_eq(ddps_ipoib_sim_move(sim, 2, 0), DDPS_E_INVAL);
	cr_expect_eq(ddps_ipoib_sim_move(sim, 2, 0xc000), DDPS_E_INVAL);
	cr_expect_eq(ddps_ipoib_sim_move(sim, USERS, 9), DDPS_E_INVAL);
	cr_expect_eq(ddps_ipoib_sim_move(sim, 2, 0xbfff), 0, "its own");
}

Test(ipoib_sim_port, groups_are_bounded, .init = init, .fini = fini)
{
	uint8_t mgid[16] = { 0xff };

	for (unsigned i = 0; i < 16; i++) {
		mgid[15] = (uint8_t)i;
		cr_assert_eq(port[0]->ops->join(port[0], mgid), 0);
	}
	cr_expect_eq(port[0]->ops->join(port[0], mgid), 0, "again");
	mgid[15] = 99;
	port[0]->ops->leave(port[0], mgid); /* it is not in there */
	cr_expect_eq(port[0]->ops->join(port[0], mgid), DDPS_E_LIMIT);
	run_ipoib_sim_port();
	cr_expect_eq(user[0].n_joined, 17);
	mgid[15] = 3;
	port[0]->ops->leave(port[0], mgid);
	mgid[15] = 99;
	cr_expect_eq(port[0]->ops->join(port[0], mgid), 0);
}

/* ---- queue pairs ---- */

static uint32_t create_ipoib_sim_port(unsigned i, uint8_t transport, uint32_t rx_mtu)
{
	uint32_t qpn = 0;

	cr_assert_eq(port[i]->ops->qp_create(port[i], transport, rx_mtu, &qpn), 0);
	cr_assert_gt(qpn, 1);
	return qpn;
}

static int ready_ipoib_sim_port(unsigned i, uint32_t qpn, ddps_cm_addr lid, uint32_t to_qpn)
{
	const struct ddps_ipoib_qp_to to = { .path = { .addr = lid }, .qpn = to_qpn };

	return port[i]->ops->qp_ready(port[i], qpn, &to);
}

static int send_ipoib_sim_port(unsigned i, uint32_t qpn)
{
	return port[i]->ops->qp_send(port[i], qpn, "123456789", 9);
}

/* Of nodes 0 and 1, to each other. */
static void pair_ipoib_sim_port(uint8_t transport, uint32_t qpn[2])
{
	for (unsigned i = 0; i < 2; i++)
		qpn[i] = create_ipoib_sim_port(i, transport, 9);
	for (unsigned i = 0; i < 2; i++)
		cr_assert_eq(ready_ipoib_sim_port(i, qpn[i], 2 - i, qpn[1 - i]), 0);
}

Test(ipoib_sim_port, queue_pairs_have_bounds, .init = init, .fini = fini)
{
	uint32_t qpn = 42;

	cr_expect_eq(port[0]->ops->qp_create(port[0], DDPS_CM_RD, 9, &qpn), DDPS_E_UNSUPPORTED);
	mem_fail(1);
	cr_expect_eq(port[0]->ops->qp_create(port[0], DDPS_CM_RC, 9, &qpn), DDPS_E_LIMIT);
	cr_expect_eq(qpn, 42);
	for (unsigned i = 0; i < 4096; i++)
		qpn = create_ipoib_sim_port(0, DDPS_CM_UC, 9);
	cr_expect_eq(port[0]->ops->qp_create(port[0], DDPS_CM_UC, 9, &qpn), DDPS_E_LIMIT);
	port[0]->ops->qp_destroy(port[0], qpn);
	port[0]->ops->qp_destroy(port[0], qpn); /* there is none any more */
	port[0]->ops->qp_stop(port[0], qpn);
	(void)create_ipoib_sim_port(0, DDPS_CM_UC, 9);
}

/* 24 bits without 0, 1 and the number of groups, and none twice. */
Test(ipoib_sim_port, numbers_go_around, .init = init, .fini = fini)
{
	struct sim_node *n = &sim->node[0];

	n->next_qpn = 0xfffffd;
	cr_expect_eq(create_ipoib_sim_port(0, DDPS_CM_RC, 9), 0xfffffe);
	cr_expect_eq(create_ipoib_sim_port(0, DDPS_CM_RC, 9), 2);
	n->next_qpn = 0xfffffd;
	cr_expect_eq(create_ipoib_sim_port(0, DDPS_CM_RC, 9), 3);
	n->next_qpn = 1;
	cr_expect_eq(create_ipoib_sim_port(1, DDPS_CM_RC, 9), 0x401, "each node has its own");
}

Test(ipoib_sim_port, states_of_queue_pairs, .init = init, .fini = fini)
{
	uint32_t qpn = create_ipoib_sim_port(0, DDPS_CM_RC, 9);

	cr_expect_eq(ready_ipoib_sim_port(0, 0x9999, 2, 5), DDPS_E_INVAL);
	cr_expect_eq(ready_ipoib_sim_port(0, qpn, 0, 5), DDPS_E_ADDRESS);
	cr_expect_eq(ready_ipoib_sim_port(0, qpn, 0xc000, 5), DDPS_E_ADDRESS);
	cr_expect_eq(send_ipoib_sim_port(0, 0x9999), DDPS_E_STATE);
	cr_expect_eq(send_ipoib_sim_port(0, qpn), DDPS_E_STATE, "not ready");
	cr_expect_eq(ready_ipoib_sim_port(0, qpn, 2, 5), 0);
	cr_expect_eq(send_ipoib_sim_port(0, qpn), 0);
	port[0]->ops->qp_stop(port[0], qpn);
	cr_expect_eq(send_ipoib_sim_port(0, qpn), DDPS_E_STATE, "stopped");
	cr_expect_eq(ready_ipoib_sim_port(0, qpn, 2, 5), DDPS_E_INVAL);
}

Test(ipoib_sim_port, messages_arrive_at_whom_they_are_for, .init = init, .fini = fini)
{
	uint32_t qpn[2], other;

	pair_ipoib_sim_port(DDPS_CM_RC, qpn);
	cr_expect_eq(send_ipoib_sim_port(0, qpn[0]), 0);
	run_ipoib_sim_port();
	cr_expect_eq(user[1].n_qp, 1);
	cr_expect_eq(user[1].qpn, qpn[1]);
	/* one that nobody is ready for, or whose peer is another one: RC says so */
	other = create_ipoib_sim_port(0, DDPS_CM_RC, 9);
	cr_assert_eq(ready_ipoib_sim_port(0, other, 2, qpn[1]), 0);
	cr_expect_eq(send_ipoib_sim_port(0, other), 0);
	run_ipoib_sim_port();
	cr_expect_eq(user[0].n_error, 1);
	cr_expect_eq(user[0].error_qpn, other);
	cr_expect_eq(user[0].err, DDPS_E_TIMEDOUT);
	cr_assert_eq(ready_ipoib_sim_port(0, other, 2, create_ipoib_sim_port(1, DDPS_CM_RC, 9)), 0);
	cr_expect_eq(send_ipoib_sim_port(0, other), 0);
	run_ipoib_sim_port();
	cr_expect_eq(user[0].n_error, 2, "it is not ready");
	cr_assert_eq(ready_ipoib_sim_port(0, other, 2, 0x9999), 0);
	cr_expect_eq(send_ipoib_sim_port(0, other), 0);
	run_ipoib_sim_port();
	cr_expect_eq(user[0].n_error, 3, "there is none");
	cr_assert_eq(ready_ipoib_sim_port(1, qpn[1], 3, qpn[0]), 0);
	cr_expect_eq(send_ipoib_sim_port(0, qpn[0]), 0);
	run_ipoib_sim_port();
	cr_expect_eq(user[0].n_error, 4, "it is another node's");
	port[1]->ops->qp_stop(port[1], qpn[1]);
	cr_expect_eq(send_ipoib_sim_port(0, qpn[0]), 0);
	run_ipoib_sim_port();
	cr_expect_eq(user[0].n_error, 5, "it is stopped");
	cr_expect_eq(user[1].n_qp, 1);
}

Test(ipoib_sim_port, messages_that_are_too_long, .init = init, .fini = fini)
{
	uint32_t qpn[2];

	pair_ipoib_sim_port(DDPS_CM_RC, qpn);
	cr_expect_eq(port[0]->ops->qp_send(port[0], qpn[0], "1234567890", 10), 0);
	run_ipoib_sim_port();
	cr_expect_eq(user[1].err, DDPS_E_TOO_LONG);
	cr_expect_eq(user[1].error_qpn, qpn[1]);
	cr_expect_eq(user[0].err, DDPS_E_RESET);
	cr_expect_eq(user[0].error_qpn, qpn[0]);
	pair_ipoib_sim_port(DDPS_CM_UC, qpn);
	cr_expect_eq(port[0]->ops->qp_send(port[0], qpn[0], "1234567890", 10), 0);
	run_ipoib_sim_port();
	cr_expect_eq(user[1].n_error, 2);
	cr_expect_eq(user[0].n_error, 1, "UC does not hear of it");
	cr_expect_eq(get_ipoib_sim_port_stats()->messages, 0);
}

/* RC learns of what does not cross, UC does not [4755-7.1-1]. */
Test(ipoib_sim_port, messages_that_do_not_cross, .init = init, .fini = fini)
{
	uint32_t rc[2], uc[2];

	pair_ipoib_sim_port(DDPS_CM_RC, rc);
	pair_ipoib_sim_port(DDPS_CM_UC, uc);
	for (unsigned i = 0; i < 2; i++) {
		ddps_ipoib_sim_plug(sim, i, false);
		cr_expect_eq(send_ipoib_sim_port(0, rc[0]), 0);
		cr_expect_eq(send_ipoib_sim_port(0, uc[0]), 0);
		ddps_ipoib_sim_plug(sim, i, true);
		run_ipoib_sim_port();
		cr_expect_eq(user[0].n_error, i + 1);
		cr_expect_eq(user[0].error_qpn, rc[0]);
		cr_expect_eq(user[0].err, DDPS_E_TIMEDOUT);
		cr_expect_eq(get_ipoib_sim_port_stats()->lost, 2 * (i + 1));
	}
	cr_expect_eq(ddps_ipoib_sim_move(sim, 1, 77), 0);
	cr_expect_eq(send_ipoib_sim_port(0, rc[0]), 0);
	run_ipoib_sim_port();
	cr_expect_eq(user[0].n_error, 3, "nobody is there");
	cr_expect_eq(user[1].n_qp, 0);
	cr_expect_eq(send_ipoib_sim_port(1, rc[1]), 0);
	run_ipoib_sim_port();
	cr_expect_eq(user[0].n_qp, 0, "its peer is at another place");
}

Test(ipoib_sim_port, messages_that_find_no_room, .fini = fini)
{
	uint32_t qpn[2];
	uint64_t at = MS;

	make_ipoib_sim_port(1);
	pair_ipoib_sim_port(DDPS_CM_RC, qpn);
	cr_expect_eq(ddps_ipoib_sim_at(sim, at, on_call, &at), 0);
	cr_expect_eq(send_ipoib_sim_port(0, qpn[0]), DDPS_E_AGAIN);
	ddps_ipoib_sim_plug(sim, 1, false);
	cr_expect_eq(send_ipoib_sim_port(0, qpn[0]), 0);
	run_ipoib_sim_port();
	cr_expect_eq(user[0].n_error, 0, "there was no room for that, either");
	cr_expect_eq(get_ipoib_sim_port_stats()->overflow, 2);
}
