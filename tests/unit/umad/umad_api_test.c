/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of libibumad, as a program calls them: what they refuse, and what they give back. */
#include <criterion/criterion.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "umad/um.h"
#include <stdarg.h>

#define SMP 0x01

/* The port of a program on an address of the loopback net that no other test has; nobody else is there. */
static void setup(void)
{
	unsigned at = (unsigned)getpid() + 3;
	char text[100];
	int err = -1;

	for (unsigned i = 0; i < 50 && err; i++, at += 7919) {
		snprintf(text, sizeof(text), "127.%u.%u.9:4791,127.%u.%u.9,fe80::9", 90 + at % 30,
			 at / 30 % 256, 90 + at % 30, at / 30 % 256);
		cr_assert_eq(setenv(UM_VARIABLE, text, 1), 0);
		err = umad_open_port(NULL, 0);
		if (err) /* the setting is read once */
			cr_skip_test("%s is taken", text);
	}
}

static void teardown(void)
{
	cr_expect_eq(umad_close_port(0), 0);
}

#define ApiTest(name) Test(umad_api, name, .init = setup, .fini = teardown)

ApiTest(contact_34_one_device_with_one_port)
{
	char names[2][UMAD_CA_NAME_LEN];
	umad_port_t port;
	umad_ca_t ca;
	__be64 guids[3] = { 1, 1, 1 };

	cr_expect_eq(umad_init(), 0);
	cr_expect_eq(umad_get_cas_names(names, 0), 0);
	cr_expect_eq(umad_get_cas_names(names, 2), 1);
	cr_expect_str_eq(names[0], "ddpsess0");
	cr_expect_eq(umad_get_ca_portguids("ddpsess0", guids, 3), 2);
	cr_expect_eq(guids[1], htobe64(9));
	cr_expect_eq(umad_get_ca_portguids("mlx5_0", guids, 3), -ENODEV);
	cr_expect_eq(umad_get_port("ddpsess0", 2, &port), -ENODEV);
	cr_assert_eq(umad_get_port("ddpsess0", 1, &port), 0);
	cr_expect_eq(port.base_lid, 9);
	cr_expect_eq(port.pkeys[0], 0xffff);
	cr_expect_eq(umad_release_port(&port), 0);
	cr_assert_eq(umad_get_ca(NULL, &ca), 0);
	cr_expect_eq(ca.numports, 1);
	cr_expect_eq(umad_release_ca(&ca), 0);
	cr_expect_eq(umad_release_ca(&ca), 0, "twice");
}

ApiTest(contact_34_agents_are_bounded_and_checked)
{
	uint8_t oui[3] = { 0, 1, 2 };
	int first = umad_register(0, SMP, 1, 0, NULL), n = 0;

	cr_assert_gt(first, UM_OWN);
	cr_expect_eq(umad_register(1, SMP, 1, 0, NULL), -EINVAL, "no such port");
	cr_expect_eq(umad_register_oui(0, 0x2f, 0, oui, NULL), -EINVAL, "no vendor's class");
	cr_expect_eq(umad_unregister(0, UM_OWN), -EINVAL);
	cr_expect_eq(umad_unregister(0, UM_AGENTS), -EINVAL);
	cr_expect_eq(umad_unregister(0, -1), -EINVAL);
	while (umad_register_oui(0, 0x30, 0, oui, NULL) > 0)
		cr_assert_lt(++n, UM_AGENTS);
	cr_expect_eq(umad_register(0, SMP, 1, 0, NULL), -ENOMEM);
	cr_expect_eq(umad_unregister(0, first), 0);
	cr_expect_eq(umad_register(0, SMP, 1, 0, NULL), first);
}

ApiTest(contact_34_a_question_to_itself)
{
	const int agent = umad_register(0, SMP, 1, 0, NULL);
	struct ib_user_mad *m = calloc(1, umad_size() + DDPS_CM_MAD_LEN);
	uint8_t *mad = umad_get_mad(m);
	int len = DDPS_CM_MAD_LEN;
	struct pollfd p = { .fd = umad_get_fd(0), .events = POLLIN };

	cr_assert_gt(agent, 0);
	cr_expect_eq(umad_recv(0, m, &len, 0), -EWOULDBLOCK);
	cr_expect_eq(umad_poll(0, 10), -ETIMEDOUT);
	cr_expect_eq(umad_send(0, agent, m, -1, 100, 0), -EINVAL);
	cr_expect_eq(umad_send(0, UM_AGENTS, m, len, 100, 0), -EINVAL);
	cr_expect_eq(umad_send(0, agent + 1, m, len, 100, 0), -EINVAL, "not registered");
	cr_expect_eq(umad_send(0, agent, m, len + 1, 100, 0), -EMSGSIZE);
	cr_expect_eq(umad_send(0, agent, m, len, 100, 0), -EHOSTUNREACH, "LID 0");
	mad[0] = mad[1] = mad[2] = mad[3] = 1;
	mad[17] = 0x11;
	umad_get_mad_addr(m)->lid = htobe16(9);
	cr_assert_eq(umad_send(0, agent, m, len, 2000, 0), 0);
	cr_assert_eq(poll(&p, 1, 2000), 1);
	cr_assert_eq(umad_poll(0, 2000), 0);
	len = 10;
	cr_expect_eq(umad_recv(0, m, &len, 2000), -ENOSPC);
	cr_expect_eq(len, DDPS_CM_MAD_LEN, "as long as it has to be");
	cr_assert_eq(umad_recv(0, m, &len, 2000), agent);
	cr_expect_eq(umad_status(m), 0);
	cr_expect_eq(mad[3], 0x81);
	free(m);
}

ApiTest(contact_34_a_port_is_closed_by_the_last)
{
	uint8_t room[512] = { 0 };
	int len = DDPS_CM_MAD_LEN;

	cr_expect_eq(umad_open_port("ddpsess0", 1), 0);
	cr_expect_eq(umad_close_port(0), 0);
	cr_expect_geq(umad_get_fd(0), 0, "the other one has it");
	cr_expect_eq(umad_close_port(0), 0);
	cr_expect_eq(umad_get_fd(0), -EINVAL);
	cr_expect_eq(umad_close_port(0), -EINVAL);
	cr_expect_eq(umad_recv(0, room, &len, 10), -EINVAL);
	cr_expect_eq(umad_open_port("ddpsess0", 1), 0);
	cr_expect_eq(umad_open_port("ddpsess0", 2), -ENODEV);
}

/* Another process has the address. */
ApiTest(contact_34_an_address_that_is_taken)
{
	pid_t child = fork();
	int status = 0;

	cr_assert_geq(child, 0);
	if (!child) {
		struct um m = { 0 };
		char why[300];

		_exit(um_read(&m, getenv(UM_VARIABLE), why, sizeof(why)) ||
		      um_open(&m, why, sizeof(why)) != -1 ||
		      !strstr(why, "Address already in use; try: "));
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0);
}

/* ---- directed routes on a subnet in UDP, which looks like one switch ---- */

#define DATA 64

static struct um *u;
static uint8_t mad[DDPS_CM_MAD_LEN];

static void init(void)
{
	u = calloc(1, sizeof(*u));
	u->wire.ip = 0xc0000209;
	u->self = (struct ddps_ib_self){
		.gid = { 0xfe, 0x80, [15] = 9 }, .lid = 9, .sm_lid = 1, .mtu = 4
	};
	u->there[1] = u->there[2] = u->there[9] = true;
}

static void fini(void)
{
	free(u);
}

static struct um_route route_um_switch(unsigned hops, ...)
{
	va_list ap;

	memset(mad, 0, sizeof(mad));
	mad[7] = (uint8_t)hops;
	va_start(ap, hops);
	for (unsigned i = 1; i <= hops && i <= 8; i++)
		mad[128 + i] = (uint8_t)va_arg(ap, int);
	va_end(ap);
	return um_follow(u, mad);
}

Test(um_switch, contact_34_where_routes_lead, .init = init, .fini = fini)
{
	struct um_route r = route_um_switch(0);

	cr_expect(!r.nowhere && !r.is_switch && r.lid == 9, "here");
	r = route_um_switch(1, 1);
	cr_expect(!r.nowhere && r.is_switch && r.lid == 9, "the switch, by our port");
	r = route_um_switch(2, 1, 2);
	cr_expect(!r.nowhere && !r.is_switch && r.lid == 2);
	r = route_um_switch(3, 1, 2, 1);
	cr_expect(!r.nowhere && r.is_switch && r.lid == 2, "and back by its port");
	r = route_um_switch(4, 1, 2, 1, 9);
	cr_expect(!r.nowhere && !r.is_switch && r.lid == 9);
	cr_expect(route_um_switch(1, 2).nowhere, "a node has one port");
	cr_expect(route_um_switch(2, 1, 7).nowhere, "nobody is there");
	cr_expect(route_um_switch(2, 1, 0).nowhere);
	cr_expect(route_um_switch(2, 1, 255).nowhere);
	mad[7] = 64;
	cr_expect(um_follow(u, mad).nowhere, "longer than a MAD has room for");
}

static unsigned ask_um_switch(uint16_t attr, uint8_t port)
{
	memset(mad, 0xff, sizeof(mad));
	mad[1] = 0x81; /* by a directed route */
	mad[3] = 1;
	mad[4] = mad[5] = 0;
	mad[16] = (uint8_t)(attr >> 8);
	mad[17] = (uint8_t)attr;
	memset(mad + 20, 0, 3);
	mad[23] = port;
	cr_assert(um_switch_answer(u, 2, mad));
	cr_assert_eq(mad[3], 0x81);
	return (unsigned)mad[4] << 8 | mad[5];
}

Test(um_switch, contact_34_what_the_switch_says, .init = init, .fini = fini)
{
	cr_expect_eq(ask_um_switch(0x11, 0), 0x8000);
	cr_expect_eq(mad[DATA + 2], 2);
	cr_expect_eq(mad[DATA + 36], 2, "the port that it came in by");
	cr_expect_eq(ask_um_switch(0x10, 0), 0x8000);
	cr_expect_str_eq((char *)mad + DATA, "network 192.0.2.0/24");
	cr_expect_eq(ask_um_switch(0x12, 0), 0x8000);
	for (unsigned port = 0; port < 256; port++) {
		const bool up = !port || (port < 255 && u->there[port]);

		cr_expect_eq(ask_um_switch(0x15, (uint8_t)port), port > 254 ? 0x801c : 0x8000);
		if (port > 254)
			continue;
		cr_expect_eq(mad[DATA + 32] & 15, up ? 4 : 1, "port %u", port);
		cr_expect_eq(mad[DATA + 33] >> 4, up ? 5 : 2, "port %u", port);
		cr_expect_eq(mad[DATA + 28], 2, "the port that it came in by");
	}
	cr_expect_eq(ask_um_switch(0x1b, 0), 0x800c);
	mad[3] = 2;
	cr_expect_not(um_switch_answer(u, 2, mad));
}
