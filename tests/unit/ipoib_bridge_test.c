/* SPDX-License-Identifier: BSD-2-Clause */
/* What sessctl ipoib bridge says of its own accord. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include "ipoib/bridge/ipoib_bridge.h"
#include "ipoib/ipoib.h"
#include "ipoib_net_fixture.h"

static struct net net;
static struct bridge b;

static unsigned lines(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

/* A join that fails is tried again and again; it is said once for each group and cause. */
Test(ipoib_bridge, failed_joins_are_said_once, .description = "4391-12-1")
{
	static const uint8_t group[2][16] = { { 0xff, 0x12, 0x40, 0x1b, [15] = 1 },
					      { 0xff, 0x12, 0x40, 0x1b, [15] = 2 } };
	const struct ipoib_opts o = { .tun = "ib0" };
	char *text = NULL;
	size_t size;

	net_init(&net, 2, 1, DDPS_IPOIB_RC);
	net_start_all(&net);
	b.o = &o;
	b.f = net.node[0].f;
	out_init(&b.out, "ipoib bridge", true);
	b.out.f = open_memstream(&text, &size);
	for (unsigned i = 0; i < 3; i++) {
		bridge_up.joined(&b, group[0], DDPS_E_REJECTED, 0, SEC);
		bridge_up.joined(&b, group[1], DDPS_E_REJECTED, 0, SEC);
	}
	fflush(b.out.f);
	cr_expect_eq(lines(text, "join_failed"), 2, "%s", text);
	cr_expect_eq(lines(text, "ff12:401b::1\""), 1, "%s", text);
	bridge_up.joined(&b, group[0], DDPS_E_TIMEDOUT, 0, SEC); /* another cause */
	bridge_up.joined(&b, group[1], 0, 2048, SEC);
	bridge_up.joined(&b, group[1], DDPS_E_REJECTED, 0, SEC); /* anew */
	fflush(b.out.f);
	cr_expect_eq(lines(text, "join_failed"), 4, "%s", text);
	fclose(b.out.f);
	free(text);
	net_fini(&net);
}
