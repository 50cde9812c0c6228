/* SPDX-License-Identifier: BSD-2-Clause */
/* A port of the software adapter by itself: its configuration, numbers and wrong arguments. */
#include <criterion/criterion.h>
#include <string.h>
#include <ddpsess/ipoib_if.h>
#include "ipoib_cm/ib/node_in.h"
#include "unit/mem_fixture.h"

#define SEC   1000000000ull
#define QUEUE 64

static struct ddps_ib_node *n;
static struct ddps_ipoib_port *port;
static unsigned n_wire, n_joined, n_error, n_down, n_up;
static int error;
static struct {
	uint16_t lid;
	struct ddps_ib_pkt p;
	uint8_t data[DDPS_IB_MTU_MAX];
} wire[QUEUE];

static bool take_ib_node_rare_send(void *w, uint16_t lid, unsigned group, struct ddps_ib_pkt *p)
{
	(void)w, (void)group;
	cr_assert_lt(n_wire, QUEUE);
	wire[n_wire].lid = lid;
	wire[n_wire].p = *p;
	if (p->len)
		memcpy(wire[n_wire].data, p->data, p->len);
	n_wire++;
	return true;
}

static void take_ib_node_rare_joined(void *user, const uint8_t *mgid, int err, uint32_t mtu,
				     uint64_t now)
{
	(void)user, (void)mgid, (void)now;
	n_joined += !err && mtu == 2048;
}

static void take_ib_node_rare_ud(void *user, const struct ddps_ipoib_ud_from *from,
				 const void *frame, size_t len, uint64_t now)
{
	(void)user, (void)from, (void)frame, (void)len, (void)now;
}

static void take_ib_node_rare_mad(void *user, ddps_cm_addr from, const void *mad, size_t len,
				  uint64_t now)
{
	(void)user, (void)from, (void)mad, (void)len, (void)now;
}

static void take_ib_node_rare_qp(void *user, uint32_t qpn, const void *frame, size_t len,
				 uint64_t now)
{
	(void)user, (void)qpn, (void)frame, (void)len, (void)now;
}

static void take_ib_node_rare_qp_error(void *user, uint32_t qpn, int err, uint64_t now)
{
	(void)user, (void)qpn, (void)now;
	n_error++;
	error = err;
}

static void take_ib_node_rare_path(void *user, const uint8_t *gid,
				   const struct ddps_ipoib_path *path, uint64_t now)
{
	(void)user, (void)gid, (void)path, (void)now;
}

static void take_ib_node_rare_link(void *user, bool is_up, uint64_t now)
{
	(void)user, (void)now;
	n_up += is_up;
	n_down += !is_up;
}

static const struct ddps_ipoib_up up = { sizeof(up),
					 take_ib_node_rare_ud,
					 take_ib_node_rare_mad,
					 take_ib_node_rare_qp,
					 take_ib_node_rare_qp_error,
					 take_ib_node_rare_path,
					 take_ib_node_rare_joined,
					 take_ib_node_rare_link };

static struct ddps_ib_node_config make_ib_node_rare_config(void)
{
	struct ddps_ib_node_config c = { .lid = 1,
					 .sa_lid = 1,
					 .qpn = 0x48,
					 .pkey = 0xffff,
					 .scope = 2,
					 .mtu_max = 5,
					 .mtu = 4,
					 .life = 14,
					 .qkey = 0x1234,
					 .max_qps = 8,
					 .tx_octets = 1 << 20,
					 .rx_octets = 1 << 20,
					 .send = take_ib_node_rare_send,
					 .up = &up };

	c.gid[15] = 1;
	return c;
}

static void make_ib_node_rare(const struct ddps_ib_node_config *c)
{
	cr_assert_eq(ddps_ib_node_new(&n, c), 0);
	port = ddps_ib_node_port(n);
	ddps_ib_node_tick(n, SEC);
}

static void init(void)
{
	const struct ddps_ib_node_config c = make_ib_node_rare_config();

	make_ib_node_rare(&c);
}

static void fini(void)
{
	ddps_ib_node_free(n);
}

static uint64_t count_ib_node_rare(const char *name)
{
	const char *at;
	uint64_t v;

	for (unsigned k = 0; (at = ddps_ib_node_counter(n, k, &v)); k++)
		if (!strcmp(at, name))
			return v;
	cr_assert(false, "no counter %s", name);
	return 0;
}

/* What the port sends comes to itself: it asks the administration that it has. */
static void settle_ib_node_rare(void)
{
	for (unsigned i = 0; i < n_wire; i++) {
		cr_assert_lt(i, QUEUE);
		wire[i].p.data = wire[i].data;
		if (wire[i].lid == 1)
			ddps_ib_node_rx(n, 1, 0, &wire[i].p, SEC);
	}
	n_wire = 0;
}

static void linked(void)
{
	uint8_t broadcast[16];

	init();
	cr_assert_eq(ddps_ipoib_mgid_broadcast(broadcast, 0xffff, 2), 0);
	cr_assert_eq(port->ops->join(port, broadcast), 0);
	settle_ib_node_rare();
	cr_assert_eq(n_joined, 1);
}

/* ---- the configuration ---- */

static int try_make_node(const struct ddps_ib_node_config *c)
{
	struct ddps_ib_node *other = NULL;
	int err = ddps_ib_node_new(&other, c);

	cr_expect_eq(!other, err != 0);
	ddps_ib_node_free(other);
	return err;
}

#define LIMIT(member, inside, outside)                                                             \
	do {                                                                                       \
		struct ddps_ib_node_config c = make_ib_node_rare_config();                         \
		c.member = inside;                                                                 \
		cr_expect_eq(try_make_node(&c), 0, #member " " #inside);                           \
		c.member = outside;                                                                \
		cr_expect_eq(try_make_node(&c), DDPS_E_INVAL, #member " " #outside);               \
	} while (0)

Test(ib_node_rare, limits_of_the_configuration)
{
	LIMIT(lid, 1, 0);
	LIMIT(lid, DDPS_SA_LIDS - 1, DDPS_SA_LIDS);
	LIMIT(sa_lid, 1, 0);
	LIMIT(sa_lid, DDPS_SA_LIDS - 1, DDPS_SA_LIDS);
	LIMIT(qpn, 2, 1);
	LIMIT(qpn, 0xfffffe, 0xffffff);
	LIMIT(pkey, 1, 0x8000);
	LIMIT(mtu, 1, 0);
	LIMIT(mtu, 5, 6);
	LIMIT(mtu_max, 4, 3);
	LIMIT(mtu_max, 5, 6);
	LIMIT(life, 31, 32);
	LIMIT(max_qps, 1, 0);
	LIMIT(max_qps, 65536, 65537);
	LIMIT(send, take_ib_node_rare_send, NULL);
	LIMIT(up, &up, NULL);
}

Test(ib_node_rare, partitions_of_the_administration)
{
	struct ddps_ib_node_config c = make_ib_node_rare_config();

	for (unsigned i = 0; i < DDPS_IB_UDP_PKEYS; i++)
		c.pkeys[i] = (uint16_t)(0x8001 + i);
	cr_expect_eq(try_make_node(&c), 0, "as many as there are places");
	c.pkeys[1] = 0x8000;
	cr_expect_eq(try_make_node(&c), DDPS_E_INVAL, "none");
	c.pkeys[1] = 0x7fff;
	cr_expect_eq(try_make_node(&c), DDPS_E_INVAL, "the link's own");
	c.pkeys[1] = 0x0001;
	cr_expect_eq(try_make_node(&c), DDPS_E_INVAL, "twice");
	c.pkeys[1] = 0x0100;
	cr_expect_eq(try_make_node(&c), 0);
	c.sa_lid = 2;
	cr_expect_eq(try_make_node(&c), DDPS_E_INVAL, "and without an administration");
}

Test(ib_node_rare, each_allocation_may_fail)
{
	const struct ddps_ib_node_config c = make_ib_node_rare_config();
	const long live = mem_live();
	unsigned k = 1;

	for (;; k++) {
		struct ddps_ib_node *other = NULL;
		int err;

		cr_assert_lt(k, 20);
		mem_fail(k);
		err = ddps_ib_node_new(&other, &c);
		if (!mem_failed()) {
			cr_assert_eq(err, 0);
			ddps_ib_node_free(other);
			break;
		}
		cr_expect_eq(err, DDPS_E_NOMEM, "allocation %u", k);
		cr_expect_null(other);
		cr_expect_eq(mem_live(), live, "allocation %u", k);
	}
	cr_expect_gt(k, 4);
}

/* ---- arguments ---- */

Test(ib_node_rare, addresses_that_are_none, .init = linked, .fini = fini)
{
	static const ddps_cm_addr none[] = { 0, 0xc000, 0x100000001 };
	const struct ddps_ipoib_lladdr to = { .qpn = 5 };
	const uint8_t mad[DDPS_CM_MAD_LEN] = { 1, 7 };
	struct ddps_ipoib_path path = { 0 };

	for (unsigned i = 0; i < 3; i++) {
		path.addr = none[i];
		cr_expect_eq(port->ops->ud_send(port, &to, &path, "12345", 5), DDPS_E_ADDRESS);
		cr_expect_eq(port->ops->mad_send(port, none[i], mad), DDPS_E_ADDRESS);
	}
	cr_expect_eq(port->ops->ud_send(port, &to, NULL, "12345", 5), DDPS_E_ADDRESS);
	cr_expect_eq(n_wire, 0);
	path.addr = 0xbfff;
	cr_expect_eq(port->ops->ud_send(port, &to, &path, "12345", 5), 0);
	cr_expect_eq(port->ops->mad_send(port, 0xbfff, mad), 0);
	cr_expect_eq(n_wire, 2);
	cr_expect_eq(wire[1].lid, 0xbfff);
}

static uint32_t create_ib_node_rare(void)
{
	uint32_t qpn = 0;

	cr_assert_eq(port->ops->qp_create(port, DDPS_CM_RC, 1000, &qpn), 0);
	return qpn;
}

static int ready_ib_node_rare(uint32_t qpn, ddps_cm_addr addr, uint8_t mtu)
{
	const struct ddps_ipoib_qp_to to = { .qpn = 9, .path = { .addr = addr, .mtu = mtu } };

	return port->ops->qp_ready(port, qpn, &to);
}

Test(ib_node_rare, queue_pairs_have_bounds, .init = linked, .fini = fini)
{
	uint32_t qpn = 42;

	cr_expect_eq(port->ops->qp_create(port, DDPS_CM_RD, 1000, &qpn), DDPS_E_UNSUPPORTED);
	cr_expect_eq(port->ops->qp_create(port, DDPS_CM_RC, 0, &qpn), DDPS_E_LIMIT);
	cr_expect_eq(port->ops->qp_create(port, DDPS_CM_RC, (1u << 17) + 1, &qpn), DDPS_E_LIMIT);
	cr_expect_eq(qpn, 42);
	for (unsigned i = 0; i < 8; i++)
		qpn = create_ib_node_rare();
	cr_expect_eq(port->ops->qp_create(port, DDPS_CM_RC, 1000, &qpn), DDPS_E_LIMIT);
	port->ops->qp_stop(port, 0x999999);
	port->ops->qp_destroy(port, 0x999999);
	port->ops->qp_destroy(port, qpn);
	cr_expect_neq(create_ib_node_rare(), qpn, "another number each time");
	cr_expect_eq(ready_ib_node_rare(qpn, 2, 4), DDPS_E_STATE, "it is gone");
}

Test(ib_node_rare, queue_pairs_need_a_link_and_a_way, .fini = fini)
{
	uint32_t qpn;

	init();
	qpn = create_ib_node_rare();
	cr_expect_eq(ready_ib_node_rare(qpn, 2, 4), DDPS_E_STATE, "no link yet");
	ddps_ib_node_free(n);
	n_wire = 0;
	linked();
	qpn = create_ib_node_rare();
	cr_expect_eq(ready_ib_node_rare(qpn, 0, 4), DDPS_E_ADDRESS);
	cr_expect_eq(ready_ib_node_rare(qpn, DDPS_SA_LIDS, 4), DDPS_E_ADDRESS);
	cr_expect_neq(ready_ib_node_rare(qpn, 2, 6), 0, "8192 octets");
	cr_expect_neq(ready_ib_node_rare(qpn, 2, 8), 0, "128 octets");
	cr_expect_eq(port->ops->qp_send(port, qpn, "12345", 5), DDPS_E_STATE);
	cr_expect_eq(ready_ib_node_rare(qpn, 2, 0), 0, "as the link is");
	cr_expect_eq(port->ops->qp_send(port, qpn, "12345", 5), 0);
}

/* ---- numbers ---- */

/* Neither those of management, nor that of groups, nor that of datagrams. */
Test(ib_node_rare, numbers_that_no_connection_has, .fini = fini)
{
	struct ddps_ib_node_config c = make_ib_node_rare_config();

	c.qpn = 8;
	make_ib_node_rare(&c);
	cr_expect_eq(create_ib_node_rare(), 16, "8 is that of datagrams");
	ddps_ib_node_free(n);
	c = make_ib_node_rare_config();
	c.seed = 0x1fffffu << 8; /* lives go around */
	make_ib_node_rare(&c);
	cr_expect_eq(create_ib_node_rare(), 8, "not 0");
	cr_expect_eq(create_ib_node_rare(), 9, "nor 1");
	ddps_ib_node_free(n);
	c.seed = 0x1ffffeu << 8;
	make_ib_node_rare(&c);
	for (uint32_t i = 0; i < 7; i++)
		cr_expect_eq(create_ib_node_rare(), 0xfffff8 + i);
	cr_expect_eq(create_ib_node_rare(), 7, "not 0xffffff");
}

Test(ib_node_rare, numbers_beyond_the_last, .fini = fini)
{
	struct ddps_ib_node_config c = make_ib_node_rare_config();

	c.max_qps = 5;
	make_ib_node_rare(&c);
	cr_expect_eq(port->ops->qp_send(port, 8 | 6, "12345", 5), DDPS_E_STATE);
}

/* ---- packets ---- */

Test(ib_node_rare, partitions_of_packets, .init = linked, .fini = fini)
{
	const uint8_t mad[DDPS_CM_MAD_LEN] = { 1, 7, 2, 3 };
	struct ddps_ib_pkt p = { .opcode = DDPS_IB_UD | DDPS_IB_SEND_ONLY,
				 .qpn = 1,
				 .qkey = 0x80010000,
				 .src_qpn = 1,
				 .data = mad,
				 .len = sizeof(mad) };
	static const uint16_t bad[] = { 0x8001, 0, 0x8000 };

	for (unsigned i = 0; i < 3; i++) {
		p.pkey = bad[i];
		ddps_ib_node_rx(n, 2, 0, &p, SEC);
		cr_expect_eq(count_ib_node_rare("rx_pkey"), i + 1);
	}
	p.pkey = 0x7fff;
	ddps_ib_node_rx(n, 2, 0, &p, SEC);
	cr_expect_eq(count_ib_node_rare("rx_pkey"), 3);
	cr_expect_not(ddps_ib_pkey_match(0x8000, 0x8000), "a number of no partition");
	cr_expect_not(ddps_ib_pkey_match(0x7fff, 0x7fff), "two limited members");
	cr_expect(ddps_ib_pkey_match(0x7fff, 0xffff));
}

/* ---- the network below ---- */

Test(ib_node_rare, contact_30_a_network_that_shrinks_takes_the_link_down, .init = linked,
     .fini = fini)
{
	uint8_t broadcast[16];

	cr_assert_eq(ddps_ipoib_mgid_broadcast(broadcast, 0xffff, 2), 0);
	cr_expect_not(ddps_ib_node_network(n, 4, "", SEC), "enough for the link");
	cr_expect_eq(n_down + n_up, 0);
	cr_expect(ddps_ib_node_network(n, 3, "", SEC));
	cr_expect(ddps_ib_node_network(n, 3, "", SEC), "said once");
	cr_expect_eq(n_down, 1);
	cr_expect_str_eq(ddps_ib_node_why(n),
			 "the link's MTU is 2048, and the network carries packets of 1024; try: a "
			 "larger MTU of the network, or a smaller one of the link (--link-mtu)");
	/* what is tried meanwhile is refused, and the link stays down though it is not joined now */
	cr_assert_eq(port->ops->join(port, broadcast), 0);
	settle_ib_node_rare();
	cr_expect_eq(n_joined, 1);
	cr_expect(ddps_ib_node_network(n, 3, "", SEC));
	cr_expect_not(ddps_ib_node_network(n, 5, "", SEC));
	cr_expect_eq(n_up, 1);
	cr_expect_str_eq(ddps_ib_node_why(n), "");
	cr_assert_eq(port->ops->join(port, broadcast), 0);
	settle_ib_node_rare();
	cr_expect_eq(n_joined, 2);
}

/* The administration is started again, with what the network carries now. */
Test(ib_node_rare, contact_35_a_link_that_became_narrower_is_joined, .init = linked, .fini = fini)
{
	struct ddps_sa_mcm rec = { .mgid = { 0xff }, .mtu = 3 };
	uint8_t broadcast[16];

	cr_assert_eq(ddps_ipoib_mgid_broadcast(broadcast, 0xffff, 2), 0);
	cr_expect(ddps_ib_node_network(n, 3, "", SEC));
	cr_assert_eq(port->ops->join(port, broadcast), 0);
	settle_ib_node_rare(); /* refused, as it is what it was */
	cr_expect_eq(ddps_ib_node_sac_ops.hold(n, 0, &rec), DDPS_E_LIMIT);
	cr_expect(ddps_ib_node_network(n, 3, "", SEC), "another group says nothing of it");
	memcpy(rec.mgid, broadcast, sizeof(broadcast));
	cr_expect_eq(ddps_ib_node_sac_ops.hold(n, 0, &rec), DDPS_E_LIMIT, "not while it is down");
	cr_expect_not(ddps_ib_node_network(n, 3, "", SEC));
	cr_expect_eq(n_up, 1);
}

Test(ib_node_rare, contact_30_a_network_that_is_gone_takes_the_link_down, .init = linked,
     .fini = fini)
{
	cr_expect(ddps_ib_node_network(n, 4, "eth0 is down", SEC));
	cr_expect_str_eq(ddps_ib_node_why(n), "eth0 is down");
	cr_expect(ddps_ib_node_network(n, 3, "", SEC), "it is back, but too narrow");
	cr_expect_not_null(strstr(ddps_ib_node_why(n), "packets of 1024"));
	cr_expect_eq(n_down, 1);
	cr_expect_not(ddps_ib_node_network(n, 4, "", SEC));
	cr_expect_eq(n_up, 1);
}
