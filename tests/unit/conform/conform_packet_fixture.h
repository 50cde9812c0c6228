/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CONFORM_PACKET_FIXTURE_H
#define CONFORM_PACKET_FIXTURE_H
/*
 * The tester's own SCTP reads whatever a target sends: packets made by hand, and what it answers to
 * them.  The test is the target: a UDP socket, and calls with what "came".
 */
#include "conform/peer/sctp_packet.h"
#include "unit/mem_fixture.h"
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEADER	 12u
#define TAG	 0x11223344u
#define TSN	 1000u
#define SCTP_OWN 7000u /* the target's port */
#define COOKIE	 7u
#define UNKNOWN	 0x8123u
#define F_WHOLE	 7u /* unordered, first and last */

static int target = -1; /* its socket */
static struct cf_run none_secured;
static struct cf cf;
static struct cf_net net;
static struct cf_assoc as;
static struct cf_link *l;
static struct cf_pkt said; /* the latest packet of the tester's */

static inline struct cf_at socket_at(int family)
{
	struct cf_at at = { .encap = 0 };
	struct sockaddr_in *v4 = (struct sockaddr_in *)&at.ss;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&at.ss;

	at.ss.ss_family = (sa_family_t)family;
	at.len = family == AF_INET6 ? sizeof *v6 : sizeof *v4;
	if (family == AF_INET6)
		v6->sin6_addr = in6addr_loopback;
	else
		v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return at;
}

static inline struct cf_below *get_tester_carrier(void)
{
	return net.below;
}

static inline void new_net(void)
{
	cf.trace = cf_trace_new();
	cf.run = &none_secured;
	net = (struct cf_net){ .cf = &cf, .carrier = &cf_sctp_packets };
	as = (struct cf_assoc){ .net = &net };
	as.last = &as.first;
}

/* An association that has sent its INIT. */
static inline void dial_conform_packet(int family)
{
	struct cf_at at = socket_at(family);
	socklen_t len = at.len;

	target = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert_geq(target, 0);
	cr_assert_eq(bind(target, (struct sockaddr *)&at.ss, at.len), 0);
	cr_assert_eq(getsockname(target, (struct sockaddr *)&at.ss, &len), 0);
	at.encap = ntohs(((struct sockaddr_in *)&at.ss)->sin_port); /* where IPv6 has it, too */
	((struct sockaddr_in *)&at.ss)->sin_port = htons(SCTP_OWN);
	new_net();
	cr_assert_eq(net.carrier->dial(&as, &at), 0);
	l = as.below;
}

static inline void take_conform_packet_down(void)
{
	net.carrier->close(&net);
	while (as.first) {
		struct cf_queued *q = as.first;

		as.first = q->next;
		free(q);
	}
	cf_trace_free(cf.trace);
	if (target >= 0)
		close(target);
}

/* The type of the tester's next packet's first chunk; -1: it has sent nothing more. */
static inline int read_tester_chunk(void)
{
	ssize_t n = recv(target, said.b, sizeof said.b, MSG_DONTWAIT);

	said.len = n < 0 ? 0 : (size_t)n;
	return n < (ssize_t)HEADER + 4 ? -1 : said.b[HEADER];
}

/* ---- what comes ---- */

static struct cf_pkt in;

static inline void begin_tester_packet(uint32_t tag)
{
	in.len = HEADER;
	cf_put16(in.b, SCTP_OWN);
	cf_put16(in.b + 2, l ? l->port : 0);
	cf_put32(in.b + 4, tag);
}

static inline void put_conform_packet_chunk(uint8_t type, uint8_t flags, const void *p, size_t len)
{
	memcpy(cf_pkt_chunk(&in, type, flags, len), p, len);
}

static inline void comes_on(int fd)
{
	struct sockaddr_storage from = { .ss_family = AF_INET };

	cf_put32(in.b + 8, cf_pkt_sum(in.b, in.len));
	cf_pkt_in(&net, fd, &from, sizeof(struct sockaddr_in), in.b, in.len);
}

/* A packet of one chunk for the association. */
static inline void bring_chunk_to_tester(uint8_t type, uint8_t flags, const void *p, size_t len)
{
	begin_tester_packet(l->tag);
	put_conform_packet_chunk(type, flags, p, len);
	comes_on(l->fd);
}

static inline void init_fields(uint8_t b[16], uint32_t tag, uint16_t out, uint16_t max_in)
{
	cf_put32(b, tag);
	cf_put32(b + 4, 1u << 20);
	cf_put16(b + 8, out);
	cf_put16(b + 10, max_in);
	cf_put32(b + 12, TSN);
}

static inline void set_conform_packet_up(void)
{
	uint8_t b[16 + 8];

	dial_conform_packet(AF_INET);
	cr_assert_eq(read_tester_chunk(), CF_C_INIT);
	init_fields(b, TAG, 10, 10);
	cf_put16(b + 16, COOKIE);
	cf_put16(b + 18, 8);
	cf_put32(b + 20, 0xc00c1e);
	bring_chunk_to_tester(CF_C_INIT_ACK, 0, b, sizeof b);
	cr_assert_eq(read_tester_chunk(), CF_C_COOKIE_ECHO);
	cr_assert_eq(cf_get32(said.b + HEADER + 4), 0xc00c1e);
	cr_assert_eq(cf_get32(said.b + 4), TAG);
	bring_chunk_to_tester(CF_C_COOKIE_ACK, 0, b, 0);
	cr_assert(as.up);
}

static inline void comes_data(uint32_t tsn, uint8_t flags, size_t len)
{
	static uint8_t b[12 + 2000];

	cf_put32(b, tsn);
	cf_put16(b + 4, 3);
	cf_put32(b + 8, PPID_SEGMENT);
	bring_chunk_to_tester(CF_C_DATA, flags, b, 12 + len);
}

/* The number of gaps in the latest SACK; 99999: it was none. */
static inline unsigned read_tester_sack(uint32_t cum)
{
	if (read_tester_chunk() != CF_C_SACK)
		return 99999;
	cr_expect_eq(cf_get32(said.b + HEADER + 4), cum);
	return cf_get16(said.b + HEADER + 12);
}

#endif
