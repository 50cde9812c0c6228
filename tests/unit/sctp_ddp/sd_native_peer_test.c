/* SPDX-License-Identifier: BSD-2-Clause */
/* The native backend and a peer made by hand: ICMP about it, its moves, and what it may cost. */
#include "sctp_ddp/backend/native/sd_native.h"

#include "sd_hand_fixture.h"
#include <errno.h>
#include <netinet/udp.h>

/* Our host answers a packet from our own socket, @p, to where nobody is any more, with ICMP that
 * quotes it: as anybody may have it do, or make up. */
static void provoke(const struct sockaddr_storage *to, socklen_t len, const uint8_t *p, size_t n)
{
	struct pollfd f = { .fd = srv.ep->sock->io.fd };

	while (sendto(f.fd, p, n, 0, (const struct sockaddr *)to, len) < 0)
		cr_assert_eq(errno, ECONNREFUSED); /* the error of the one before */
	WAIT_FOR(poll(&f, 1, 0) == 1 && (f.revents & POLLERR), &sn);
	WAIT_FOR(poll(&f, 1, 0) == 0, &sn);
}

Test(sd_native_peer, attack_2_icmp_with_another_tag_or_port_ends_nothing)
{
	struct sockaddr_storage at = { 0 };
	socklen_t len = sizeof at;
	uint8_t p[20] = { 0 };
	struct ddps_wbuf w = ddps_wbuf_init(p, 8);
	struct wire *x;

	start_sd_hand();
	x = wire_up(ddp, sizeof ddp);
	getsockname(x->fd, (struct sockaddr *)&at, &len);
	close(x->fd);
	ddps_wbuf_u16(&w, x->dport);
	ddps_wbuf_u16(&w, x->sport);
	ddps_wbuf_u32(&w, x->my_tag);
	for (size_t i = 0; i < 8; i++) { /* each octet of ports and tag counts */
		p[i] ^= 1;
		provoke(&at, len, p, sizeof p);
		p[i] ^= 1;
	}
	provoke(&at, len, p, 7); /* too short for a tag */
	memset(p + 4, 0, 4);
	p[12] = C_INIT; /* and the association is up */
	memcpy(p + 16, &(uint32_t){ htonl(x->peer_tag) }, 4);
	cr_expect_eq(srv.peers[0].gone, 0);
	w = ddps_wbuf_init(p + 4, 4);
	ddps_wbuf_u32(&w, x->my_tag);
	provoke(&at, len, p, 8);
	WAIT_FOR(srv.peers[0].gone, &sn);
	cr_expect_eq(srv.peers[0].end.code, DDPS_E_RESET);
	x->fd = dup(0);
	stop_sd_hand(x);
}

/* ---- the peer moves ---- */

static int another_socket(void)
{
	struct sockaddr_storage sa;
	socklen_t len = get_sd_backend_loopback(&sa, AF_INET, srv.encap);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	cr_assert_eq(connect(fd, (struct sockaddr *)&sa, len), 0);
	return fd;
}

/* A NAT has given the peer another UDP port: it is followed once a packet has the tag
 * [6951-5.4-1], and not before. */
Test(sd_native_peer, attack_6_a_moved_udp_port_is_followed)
{
	struct wire *x;
	int was, now;

	start_sd_hand();
	x = wire_up(ddp, sizeof ddp);
	was = x->fd;
	now = another_socket();
	x->fd = now;
	x->peer_tag ^= 1;
	send_hand_data(x, 1, 100);
	x->peer_tag ^= 1;
	x->tsn--;
	run_hand_node();
	give_to_hand_peer(1, 16, "from us", 7);
	x->fd = was;
	expect_sd_hand(x, C_DATA);
	x->fd = now;
	send_hand_data(x, 1, 100);
	expect_sd_hand(x, C_SACK);
	WAIT_FOR(srv.peers[0].messages == 1, &sn);
	give_to_hand_peer(1, 16, "from us", 7);
	expect_sd_hand(x, C_DATA);
	cr_expect_eq(srv.peers[0].gone, 0);
	close(was);
	stop_sd_hand(x);
}

/* Whoever has our host answer to an address that is not his gets little out of it. */
Test(sd_native_peer, attack_7_an_init_ack_is_not_much_longer_than_an_init)
{
	struct wire *x = malloc(sizeof *x);

	start_sd_hand();
	wire_init(x, 4000);
	send_sd_hand_init(x, NULL, 0);
	expect_sd_hand(x, C_INIT_ACK);
	read_init_ack(x);
	cr_expect_leq(x->in_len - x->cookie_len, 3 * 32, "%zu octets", x->in_len);
	cr_expect_leq(x->in_len, 140, "%zu octets", x->in_len);
	stop_sd_hand(x);
}

/* ---- a share of each turn ---- */

#define PER_PACKET 64u	 /* DATA chunks */
#define PACKETS	   50u	 /* that come as one datagram */
#define DATAGRAMS  6u	 /* as many as a socket of modest size holds */
#define TURN_MOST  4096u /* messages and packets, and one batch more */

/* 50 packets of 64 messages as one run, which the kernel does not cut for a socket that takes runs. */
static void flood_once(struct wire *x)
{
	const size_t len = 12 + PER_PACKET * 20;
	uint8_t *all = malloc(PACKETS * len);

	for (unsigned i = 0; i < PACKETS; i++) {
		begin_sd_hand(x, x->peer_tag);
		for (unsigned k = 0; k < PER_PACKET; k++)
			send_sd_hand_data_chunk(x, F_UNORDERED | F_FIRST | F_LAST, 1, 16, "four",
						4);
		cr_assert_eq((size_t)(x->w.p - x->out), len);
		put_sd_hand_sum(x->out, len);
		memcpy(all + i * len, x->out, len);
	}
	cr_assert_eq(send(x->fd, all, PACKETS * len, 0), (ssize_t)(PACKETS * len));
	free(all);
}

/* Whoever sends many small messages has no more of a turn than anybody else. */
Test(sd_native_peer, attack_16_a_flood_has_its_share_of_a_turn, .timeout = 60)
{
	const int len = 12 + (int)PER_PACKET * 20;
	struct side *s = &srv.peers[0];
	unsigned turns = 0, before;
	struct wire *x;

	start_sd_hand();
	x = wire_up(ddp, sizeof ddp);
	if (setsockopt(x->fd, IPPROTO_UDP, UDP_SEGMENT, &len, sizeof len) < 0)
		cr_skip_test("the kernel does not know runs");
	for (unsigned i = 0; i < DATAGRAMS; i++)
		flood_once(x);
	while (s->messages < DATAGRAMS * PACKETS * PER_PACKET) {
		before = s->messages;
		cr_assert_gt(ddps_loop_run(sn.env.loop), 0, "%u came, then none", before);
		cr_expect_leq(s->messages - before, TURN_MOST + PACKETS * PER_PACKET);
		turns++;
	}
	cr_expect_geq(turns, 3);
	cr_expect_eq(s->gone, 0);
	stop_sd_hand(x);
}
