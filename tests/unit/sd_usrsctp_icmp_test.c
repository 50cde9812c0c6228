/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer whose UDP port is gone: ICMP messages, those that end an association and all others. */
#include "sctp_ddp/backend/usrsctp/sd_usrsctp_icmp.h"
#include "sd_usrsctp_fixture.h"
#include <fcntl.h>
#include <linux/errqueue.h>
#include <unistd.h>

/* ---- what is quoted ---- */

static const uint8_t init[] = {
	0xC0, 0x01, 0x1C, 0x06, 0,    0,    0,	  0,	1, 2, 3, 4, /* ports, tag 0, checksum */
	1,    0,    0,	  20,	0xCA, 0xFE, 0xBA, 0xBE,
};
static const uint8_t data[] = { 0xC0, 0x01, 0x1C, 0x06, 0xDE, 0xAD, 0xBE, 0xEF, 1, 2, 3, 4, 0, 3 };

/* From memory of exactly that size. */
static bool parse(const uint8_t *p, size_t len, struct ddps_us_quote *q)
{
	uint8_t *copy = malloc(len ? len : 1);
	bool ok;

	memcpy(copy, p, len);
	ok = ddps_us_quote_parse(len ? copy : NULL, len, q);
	free(copy);
	return ok;
}

Test(sd_usrsctp_icmp, eight_octets_of_a_packet_tell_its_association)
{
	struct ddps_us_quote q;

	for (size_t n = 0; n <= sizeof data; n++)
		cr_expect_eq(parse(data, n, &q), n >= 8, "%zu octets", n);
	cr_expect_eq(q.sport, 0xC001);
	cr_expect_eq(q.dport, 0x1C06);
	cr_expect_eq(q.tag, 0xDEADBEEF);
	cr_expect_not(q.init);
}

Test(sd_usrsctp_icmp, twenty_octets_of_an_init_tell_its_association)
{
	struct ddps_us_quote q;

	for (size_t n = 0; n <= sizeof init; n++)
		cr_expect_eq(parse(init, n, &q), n >= 20, "%zu octets", n);
	cr_expect_eq(q.sport, 0xC001);
	cr_expect_eq(q.dport, 0x1C06);
	cr_expect_eq(q.tag, 0xCAFEBABE);
	cr_expect(q.init);
}

Test(sd_usrsctp_icmp, without_a_tag_there_is_no_association)
{
	struct ddps_us_quote q;
	uint8_t p[sizeof init];

	for (unsigned chunk = 0; chunk < 256; chunk++) {
		memcpy(p, init, sizeof p);
		p[12] = (uint8_t)chunk;
		cr_expect_eq(parse(p, sizeof p, &q), chunk == 1, "chunk %u", chunk);
	}
	memcpy(p, init, sizeof p);
	memset(p + 16, 0, 4);
	cr_expect_not(parse(p, sizeof p, &q));
}

/* ---- what is said ---- */

Test(sd_usrsctp_icmp, only_what_says_that_nobody_is_there_counts)
{
	/* RFC 792: port and protocol unreachable; RFC 4443: port unreachable, next header */
	static const uint8_t v4[][2] = { { 3, 3 }, { 3, 2 } }, v6[][2] = { { 1, 4 }, { 4, 1 } };

	for (unsigned origin = 0; origin < 256; origin++) {
		unsigned n = 0;

		for (unsigned i = 0; i < 65536; i++) {
			struct sock_extended_err e = { .ee_origin = (uint8_t)origin,
						       .ee_type = (uint8_t)(i >> 8),
						       .ee_code = (uint8_t)i };

			n += ddps_us_icmp_nobody(&e);
		}
		cr_expect_eq(n,
			     origin == SO_EE_ORIGIN_ICMP || origin == SO_EE_ORIGIN_ICMP6 ? 2 : 0);
	}
	for (int i = 0; i < 2; i++) {
		struct sock_extended_err e4 = { .ee_origin = SO_EE_ORIGIN_ICMP,
						.ee_type = v4[i][0],
						.ee_code = v4[i][1] };
		struct sock_extended_err e6 = { .ee_origin = SO_EE_ORIGIN_ICMP6,
						.ee_type = v6[i][0],
						.ee_code = v6[i][1] };

		cr_expect(ddps_us_icmp_nobody(&e4));
		cr_expect(ddps_us_icmp_nobody(&e6));
	}
}

/* ---- tags ---- */

static struct ddps_us_env env;
static struct ddps_us_carrier carrier = { .ue = &env };
static struct ddps_us_handle handle = { .carrier = &carrier };
static struct ddps_us_port port = { .num = 0xC001, .carrier = &carrier };
static struct ddps_sd_assoc assoc[3] = {
	{ .h = &handle, .port = &port, .peer_port = 0x1C06 },
	{ .h = &handle, .port = &port, .peer_port = 0x1C06 },
	{ .h = &handle, .port = &port, .peer_port = 0x1C07 },
};

static void know(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		DL_APPEND(env.assocs, &assoc[i]);
}

Test(sd_usrsctp_icmp, tags_are_those_of_the_newest_association_of_its_ports)
{
	know(3);
	ddps_us_note_tags(&handle, init, sizeof init);
	ddps_us_note_tags(&handle, data, sizeof data);
	cr_expect_eq(assoc[1].init_tag, 0xCAFEBABE);
	cr_expect_eq(assoc[1].peer_tag, 0xDEADBEEF);
	for (int i = 0; i < 3; i += 2) {
		cr_expect_eq(assoc[i].init_tag, 0);
		cr_expect_eq(assoc[i].peer_tag, 0);
	}
}

Test(sd_usrsctp_icmp, a_new_association_has_the_tag_of_what_was_sent_for_it)
{
	ddps_us_note_tags(&handle, data, sizeof data); /* the COOKIE ACK */
	know(1);
	ddps_us_inherit_tags(&assoc[0]);
	cr_expect_eq(assoc[0].peer_tag, 0xDEADBEEF);
}

Test(sd_usrsctp_icmp, a_new_association_has_no_tag_of_another)
{
	ddps_us_note_tags(&handle, data, sizeof data);
	know(3);
	ddps_us_inherit_tags(&assoc[2]);
	cr_expect_eq(assoc[2].peer_tag, 0);
	/* and the next packet counts, though it is like the last one */
	ddps_us_note_tags(&handle, data, sizeof data);
	cr_expect_eq(assoc[1].peer_tag, 0xDEADBEEF);
}

/* ---- a peer that vanishes ---- */

/* As if its process were killed: the socket is closed, and nobody says anything. */
static void vanish(struct ddps_sd_assoc *a)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	cr_assert_geq(dup2(null, a->h->carrier->io.fd), 0);
	close(null);
}

static void expect_gone(struct side *s)
{
	cr_expect_eq(s->gone, 1);
	cr_expect_eq(s->end.code, DDPS_E_RESET);
	cr_expect(strstr(s->end.text, "gone"), "%s", s->end.text);
}

static void server_vanishes(int family)
{
	uint32_t retransmitted;

	set_up(family);
	retransmitted = stats().sctps_sendretransdata;
	vanish(srv.peers[0].a);
	cr_assert_eq(send_one(&cli, 0, SEGMENT, 100), 0);
	WAIT_FOR(cli.gone, &cn);
	expect_gone(&cli);
	cr_expect_eq(stats().sctps_sendretransdata, retransmitted);
	stop();
}

Test(sd_usrsctp_icmp, a_client_that_sends_learns_that_its_server_is_gone)
{
	server_vanishes(AF_INET);
}

Test(sd_usrsctp_icmp, a_client_learns_it_over_ipv6)
{
	server_vanishes(AF_INET6);
}

static void client_vanishes(int family)
{
	struct side *s = &srv.peers[0];

	set_up(family);
	vanish(cli.a);
	cr_assert_eq(send_one(s, 0, SEGMENT, 100), 0);
	WAIT_FOR(s->gone, &sn);
	expect_gone(s);
	stop();
}

Test(sd_usrsctp_icmp, a_server_that_sends_learns_that_its_client_is_gone)
{
	client_vanishes(AF_INET);
}

Test(sd_usrsctp_icmp, a_server_learns_it_over_ipv6)
{
	client_vanishes(AF_INET6);
}

/* A heartbeat finds it. */
Test(sd_usrsctp_icmp, an_idle_server_learns_it, .timeout = 60)
{
	struct side *s = &srv.peers[0];

	set_up(AF_INET);
	vanish(cli.a);
	WAIT_FOR(s->gone, &sn);
	expect_gone(s);
	stop();
}

Test(sd_usrsctp_icmp, a_paused_reader_learns_it)
{
	set_up(AF_INET);
	B->pause(cli.a, true);
	vanish(srv.peers[0].a);
	cr_assert_eq(send_one(&cli, 0, SEGMENT, 100), 0);
	WAIT_FOR(cli.gone, &cn);
	expect_gone(&cli);
	stop();
}

/* The others of the same listener go on, though its socket saw the error. */
Test(sd_usrsctp_icmp, one_client_is_gone_and_the_other_is_not)
{
	struct side other = { 0 }, *gone = &srv.peers[0], *there = &srv.peers[1];
	struct node on;

	set_up(AF_INET);
	node_init(&on);
	cr_assert_eq(try_connect(&other, &on, B, &srv.sa, srv.sa_len, srv.encap, 5000), 0);
	WAIT_FOR(other.up && srv.accepted == 2, &on, &sn);
	vanish(cli.a);
	cr_assert_eq(send_one(gone, 0, SEGMENT, 100), 0);
	cr_assert_eq(send_one(there, 0, SEGMENT, 100), 0);
	WAIT_FOR(gone->gone && other.messages, &on, &sn);
	expect_gone(gone);
	cr_assert_eq(send_one(there, 0, SEGMENT, 100), 0);
	cr_assert_eq(send_one(&other, 0, SEGMENT, 100), 0);
	WAIT_FOR(other.messages == 2 && there->messages == 1, &on, &sn);
	cr_expect_eq(there->gone, 0);
	node_fini(&on, B);
	stop();
}

/* What came before is delivered first. */
static void expect_nothing_yet(struct side *s)
{
	cr_expect_eq(s->gone, 0);
}

Test(sd_usrsctp_icmp, what_the_peer_had_sent_is_delivered)
{
	struct side *s = &srv.peers[0];

	set_up(AF_INET);
	cli.on_message = expect_nothing_yet;
	for (int i = 0; i < 100; i++)
		cr_assert_eq(send_one(s, 0, SEGMENT, 1000), 0);
	cr_assert_geq(ddps_loop_run(sn.env.loop), 0); /* as much as a first window takes leaves */
	vanish(s->a);
	WAIT_FOR(cli.gone, &cn); /* its acknowledgement meets nobody */
	cr_expect_gt(cli.messages, 0);
	expect_gone(&cli);
	stop();
}

/* ---- forged ---- */

/* The kernel's answer to @p, sent from the client's own socket, has been looked at. */
static void provoke(const uint8_t *p, size_t len)
{
	struct pollfd f = { .fd = cli.a->h->carrier->io.fd };

	while (send(f.fd, p, len, 0) < 0) /* the error of the one before */
		cr_assert_eq(errno, ECONNREFUSED);
	WAIT_FOR(poll(&f, 1, 0) == 1 && (f.revents & POLLERR), &cn);
}

static void ignored(const uint8_t *p, size_t len)
{
	struct pollfd f = { .fd = cli.a->h->carrier->io.fd };

	provoke(p, len);
	WAIT_FOR(poll(&f, 1, 0) == 0, &cn);
	cr_expect_eq(cli.gone, 0, "%s", cli.end.text);
}

Test(sd_usrsctp_icmp, another_tag_or_port_ends_nothing)
{
	uint8_t p[20] = { 0 };
	uint32_t init_tag;
	struct ddps_us_handle *h;

	set_up(AF_INET);
	h = cli.a->h;
	init_tag = htonl(cli.a->init_tag);
	vanish(srv.peers[0].a);
	for (size_t i = 0; i < 8; i++) { /* each octet of ports and tag counts */
		memcpy(p, h->sent, 8);
		p[i] ^= 1;
		ignored(p, sizeof p);
	}
	memcpy(p, h->sent, 8);
	ignored(p, 7); /* too short for a tag */
	memset(p + 4, 0, 4);
	p[12] = 1; /* an INIT, and the association is up */
	memcpy(p + 16, &init_tag, 4);
	cr_assert_neq(init_tag, 0);
	ignored(p, sizeof p);
	memcpy(p, h->sent, 8);
	cr_assert_neq(cli.a->peer_tag, 0);
	provoke(p, 8);
	WAIT_FOR(cli.gone, &cn);
	expect_gone(&cli);
	stop();
}

/* In set-up: nobody there, but not for an INIT that was not ours. */
Test(sd_usrsctp_icmp, an_init_of_another_refuses_nothing)
{
	struct sockaddr_storage sa;
	socklen_t len = loopback(&sa, AF_INET, 0);
	uint8_t p[20] = { 0 };
	uint32_t tag;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	cr_assert_eq(bind(fd, (struct sockaddr *)&sa, len), 0);
	getsockname(fd, (struct sockaddr *)&sa, &len);
	node_init(&cn);
	cr_assert_eq(try_connect(&cli, &cn, B, &sa, len,
				 ntohs(((struct sockaddr_in *)&sa)->sin_port), 60000),
		     0);
	close(fd); /* the INIT is in there */
	memcpy(p, cli.a->h->sent, 8);
	p[12] = 1;
	tag = htonl(cli.a->init_tag ^ 1);
	memcpy(p + 16, &tag, 4);
	ignored(p, sizeof p);
	tag = htonl(cli.a->init_tag);
	memcpy(p + 16, &tag, 4);
	provoke(p, sizeof p);
	WAIT_FOR(cli.gone, &cn);
	cr_expect_eq(cli.end.code, DDPS_E_REFUSED);
	node_fini(&cn, B);
}
