/* SPDX-License-Identifier: BSD-2-Clause */
/* A context's capture: each packet of its wires, both ways. */
#include "support/e2e.h"
#include <arpa/inet.h>
#include <string.h>
#include <sys/uio.h>

struct seen {
	unsigned packets, init, abort_or_complete;
	size_t octets[2]; /* sent, received */
	bool ports;
};

static void on_packet(void *user, const struct ddps_packet *p)
{
	const uint8_t *b = p->iov[0].iov_base;
	struct sockaddr_in local, peer;
	struct seen *s = user;
	size_t all = 0;

	for (int i = 0; i < p->niov; i++)
		all += p->iov[i].iov_len;
	cr_expect_geq(all, p->len);
	cr_expect_gt(p->len, 0);
	memcpy(&local, p->local, sizeof local);
	memcpy(&peer, p->peer, sizeof peer);
	cr_expect_eq(peer.sin_family, AF_INET);
	cr_expect_eq(local.sin_family, AF_INET);
	cr_expect_eq(local.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	s->packets++;
	s->octets[!p->sent] += p->len;
	s->ports = local.sin_port && peer.sin_port;
	if (p->transport != DDPS_TRANSPORT_SCTP)
		return;
	cr_expect_geq(p->iov[0].iov_len, 16);
	s->init += b[12] == 1;
	s->abort_or_complete += b[12] == 6 || b[12] == 14;
}

static void capture(const char *uri, struct seen *s)
{
	struct ddps_ctx_attr attr;
	struct e2e e;

	ddps_ctx_attr_init(&attr);
	cr_expect_null(attr.capture);
	attr.capture = on_packet;
	attr.capture_user = s;
	e2e_open_with(&e, uri, &attr);
	e2e_connect(&e);
	cr_assert(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED));
	e2e_disconnect(&e, &e.a);
	e2e_close(&e);
}

Test(capture, all_that_a_context_sends_it_receives, .timeout = 60)
{
	struct seen s = { 0 };

	capture("tcp://127.0.0.1:0", &s);
	cr_expect_geq(s.packets, 4, "Request and Reply, at both ends");
	cr_expect_eq(s.octets[0], s.octets[1], "both ends are in this context");
	cr_expect(s.ports);
	s = (struct seen){ 0 };
	capture("sctp://127.0.0.1:0?encap=0", &s);
	cr_expect_eq(s.init, 2, "sent, and received");
	cr_expect_geq(s.abort_or_complete, 1);
	cr_expect(!s.ports);
}
