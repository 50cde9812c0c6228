/* SPDX-License-Identifier: BSD-2-Clause */
/* Directed routes on a subnet in UDP, which looks like one switch. */
#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "umad/um.h"

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
