/* SPDX-License-Identifier: BSD-2-Clause */
/* What a node of a subnet in UDP answers about itself. */
#include <criterion/criterion.h>
#include <string.h>
#include "ipoib_cm/ib/agents.h"

#define DATA 64

static const struct ddps_ib_self self = {
	.gid = { 0xfe, 0x80, [15] = 9 }, .lid = 9, .sm_lid = 1, .pkey = 0x8002, .mtu = 4, .life = 18
};
static const struct ddps_ib_counters counters = { .tx_data = 0x123456789,
						  .rx_data = 77,
						  .tx = 10,
						  .rx = 20,
						  .tx_groups = 3,
						  .rx_groups = 4,
						  .rx_errors = 70000,
						  .tx_discards = 5 };
static uint8_t mad[DDPS_CM_MAD_LEN];

static bool ask_node_agent(uint8_t class, uint8_t method, uint16_t attr, uint8_t mod, uint8_t port)
{
	memset(mad, 0, sizeof(mad));
	mad[0] = mad[2] = 1;
	mad[1] = class;
	mad[3] = method;
	mad[15] = 0x55; /* of the transaction ID */
	mad[16] = (uint8_t)(attr >> 8);
	mad[17] = (uint8_t)attr;
	mad[23] = mod;
	mad[DATA + 1] = port;
	return ddps_ib_agents_answer(mad, &self, &counters);
}

static unsigned read_mad_status(void)
{
	cr_expect_eq(mad[3], 0x81);
	cr_expect_eq(mad[15], 0x55);
	return (unsigned)mad[4] << 8 | mad[5];
}

static unsigned read_mad_field(unsigned i, unsigned n)
{
	unsigned v = 0;

	while (n--)
		v = v << 8 | mad[DATA + i++];
	return v;
}

Test(ib_agents, contact_34_subnet_management)
{
	cr_assert(ask_node_agent(1, 1, 0x11, 0, 0));
	cr_expect_eq(read_mad_status(), 0);
	cr_expect_eq(read_mad_field(2, 2), 0x0101, "an adapter with one port");
	cr_expect_eq(read_mad_field(26, 2), 9, "the end of its port's GUID");
	cr_assert(ask_node_agent(1, 1, 0x10, 0, 0));
	cr_expect_str_eq((char *)mad + DATA, "ddpsess LID 9");
	cr_assert(ask_node_agent(1, 1, 0x15, 1, 0));
	cr_expect_eq(read_mad_field(16, 4), 0x00090001, "LID and manager");
	cr_assert(ask_node_agent(1, 1, 0x15, 2, 0));
	cr_expect_eq(read_mad_status(), 0x1c, "it has no port 2");
	cr_assert(ask_node_agent(1, 1, 0x16, 0, 0));
	cr_expect_eq(read_mad_field(0, 4), 0x80020000);
	cr_assert(ask_node_agent(1, 1, 0x16, 1, 0));
	cr_expect_eq(read_mad_status(), 0x1c, "nor a second block");
	cr_assert(ask_node_agent(1, 1, 0x20, 0, 0));
	cr_expect_eq(read_mad_status(), 0x0c, "the manager is elsewhere");
	cr_assert(ask_node_agent(1, 1, 0x99, 0, 0));
	cr_expect_eq(read_mad_status(), 0x0c);
	cr_assert(ask_node_agent(0x81, 1, 0x11, 0, 0));
	cr_expect_eq(read_mad_status(), 0x8000, "the way back");
}

Test(ib_agents, contact_34_performance)
{
	cr_assert(ask_node_agent(4, 1, 1, 0, 0));
	cr_expect_eq(read_mad_field(0, 4), 0x01010200);
	cr_assert(ask_node_agent(4, 1, 0x12, 0, 1));
	cr_expect_eq(read_mad_status(), 0);
	cr_expect_eq(read_mad_field(1, 1), 1);
	cr_expect_eq(read_mad_field(8, 2), 0xffff, "it stays at its end");
	cr_expect_eq(read_mad_field(14, 2), 5);
	cr_expect_eq(read_mad_field(24, 4), 0xffffffff);
	cr_expect_eq(read_mad_field(28, 4), 77);
	cr_expect_eq(read_mad_field(32, 4), 10);
	cr_expect_eq(read_mad_field(36, 4), 20);
	cr_assert(ask_node_agent(4, 1, 0x1d, 0, 255));
	cr_expect_eq(read_mad_field(8, 4), 1);
	cr_expect_eq(read_mad_field(12, 4), 0x23456789);
	cr_expect_eq(read_mad_field(44, 4), 7, "to one node");
	cr_expect_eq(read_mad_field(52, 4), 16);
	cr_expect_eq(read_mad_field(60, 4), 3, "to groups");
	cr_expect_eq(read_mad_field(68, 4), 4);
	cr_assert(ask_node_agent(4, 1, 0x12, 0, 2));
	cr_expect_eq(read_mad_status(), 0x1c);
	cr_assert(ask_node_agent(4, 1, 0x13, 0, 1));
	cr_expect_eq(read_mad_status(), 0x0c);
}

/* Nothing is written, and no answer is answered: two nodes would go on for ever. */
Test(ib_agents, contact_34_nothing_but_questions)
{
	cr_assert(ask_node_agent(4, 2, 0x12, 0, 1));
	cr_expect_eq(read_mad_status(), 0x08, "counters are not reset by others");
	cr_assert(ask_node_agent(1, 2, 0x15, 1, 0));
	cr_expect_eq(read_mad_status(), 0x08);
	for (unsigned class = 0; class < 256; class ++)
		for (unsigned method = 0; method < 256; method++) {
			const bool own = class == 1 || class == 4 || class == 0x81;
			const bool is = own && (method == 1 || method == 2);

			cr_assert_eq(ask_node_agent((uint8_t) class, (uint8_t)method, 0x11, 0, 1),
				     is, "class %u method %u", class, method);
		}
	memset(mad, 0, sizeof(mad));
	mad[1] = mad[3] = 1;
	mad[2] = 2;
	cr_expect_not(ddps_ib_agents_answer(mad, &self, &counters), "another version");
}
