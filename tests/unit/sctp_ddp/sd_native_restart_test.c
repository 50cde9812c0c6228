/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer that restarts an association of the native backend: RFC 9260 5.2.2, 5.2.4. */
#include "sd_hand_fixture.h"

static void send_shutdown(struct wire *x)
{
	uint8_t cum[4];
	struct ddps_rbuf r = ddps_rbuf_init(x->in + 16, 4); /* TSN of the DATA that came */
	struct ddps_wbuf w = ddps_wbuf_init(cum, sizeof cum);

	ddps_wbuf_u32(&w, ddps_rbuf_u32(&r) - 1);
	begin_sd_hand(x, x->peer_tag);
	put_sd_hand_chunk(x, C_SHUTDOWN, 0, cum, sizeof cum);
	finish_sd_hand(x);
}

enum before { IDLE, UNREAD, UNSENT, SHUTTING, SHUT_BY_PEER, STATES };

static void get_into(struct wire *x, enum before state)
{
	struct side *s = &srv.peers[0];
	uint8_t msg[100] = { 0 };

	if (state == UNREAD) { /* messages on a stream that will be no more */
		B->pause(s->a, true);
		for (int i = 0; i < 20; i++)
			send_hand_data(x, HIGH, 1000);
		expect_sd_hand(x, C_SACK);
		return;
	}
	if (state == IDLE)
		return;
	for (int i = 0; i < 20; i++) /* not acknowledged */
		give_to_hand_peer(HIGH, 16, msg, sizeof msg);
	if (state == SHUTTING) /* SHUTDOWN-PENDING */
		B->shutdown(s->a);
	expect_sd_hand(x, C_DATA);
	if (state == SHUT_BY_PEER) { /* SHUTDOWN-RECEIVED */
		send_shutdown(x);
		WAIT_FOR(s->peer_shutdown, &sn);
	}
}

/* The cookie that answers a restart, echoed: the association begins anew. */
static void restart_sd_native_restart(struct wire *x)
{
	reborn(x);
	send_sd_hand_init(x, ddp, sizeof ddp);
	expect_sd_hand(x, C_INIT_ACK);
	read_init_ack(x);
	begin_cookie(x);
	finish_sd_hand(x);
	expect_sd_hand(x, C_COOKIE_ACK);
}

/* What was said before is void, and what comes now arrives. */
static void begun_anew(struct wire *x, unsigned times)
{
	struct side *s = &srv.peers[0];
	unsigned had = s->messages;

	WAIT_FOR(s->restarted == times, &sn);
	B->pause(s->a, false);
	send_hand_data(x, 0, 100);
	WAIT_FOR(s->messages == had + 1, &sn);
	cr_expect_eq(s->stream, 0);
	cr_expect_not(s->bad);
	cr_expect_eq(s->gone, 0, "%s", s->end.text);
	cr_expect_eq(srv.accepted, 1);
	cr_expect(s->b == B);
}

/* Fewer streams than before, with messages on what is cut off [9260-5.2.4-4]. */
Test(sd_native_restart, contact_10_a_restart_in_every_state, .timeout = 60,
     .description = "9260-5.2.4-4")
{
	for (enum before state = IDLE; state < STATES; state++) {
		struct wire *x = many_streams();
		struct side *s = &srv.peers[0];

		get_into(x, state);
		restart_sd_native_restart(x);
		cr_expect_eq(s->messages, 0, "state %d", state);
		begun_anew(x, 1);
		stop_sd_hand(x);
	}
}

/* Whoever only pretends to be the peer does not see the cookie. */
Test(sd_native_restart, attack_1_an_init_alone_changes_nothing)
{
	struct wire *x = many_streams();
	uint32_t tsn = x->tsn, tag = x->my_tag, peer_tag = x->peer_tag;
	struct ddps_rbuf r = ddps_rbuf_init(x->in + 4, 4);

	for (int i = 0; i < 11; i++) { /* odd: the last one has another tag */
		reborn(x);
		send_sd_hand_init(x, ddp, sizeof ddp);
		expect_sd_hand(x, C_INIT_ACK);
	}
	x->tsn = tsn;
	x->my_tag = tag;
	x->peer_tag = peer_tag;
	send_hand_data(x, HIGH, 300);
	WAIT_FOR(srv.peers[0].messages == 1, &sn);
	cr_expect_not(srv.peers[0].bad);
	cr_expect_eq(srv.peers[0].gone, 0);
	expect_sd_hand(x, C_SACK);
	cr_expect_eq(ddps_rbuf_u32(&r), tag, "it is answered by its own tag");
	stop_sd_hand(x);
}

Test(sd_native_restart, contact_10_fifteen_restarts_in_a_row, .timeout = 60)
{
	struct wire *x = many_streams();

	for (unsigned i = 1; i < 16; i++) {
		B->pause(srv.peers[0].a, true);
		send_hand_data(x, i == 1 ? HIGH : 0, 500);
		restart_sd_native_restart(x);
		begun_anew(x, i);
	}
	stop_sd_hand(x);
}

/* From 127.0.0.2, which is not in the cookie. */
static void move_away(struct wire *x)
{
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000002) };
	struct sockaddr_storage sa;
	socklen_t len = get_sd_backend_loopback(&sa, AF_INET, srv.encap);

	close(x->fd);
	x->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(x->fd, (struct sockaddr *)&from, sizeof from), 0);
	cr_assert_eq(connect(x->fd, (struct sockaddr *)&sa, len), 0);
}

/* A cookie for the same ports from before the association lived. */
static void second_cookie(bool elsewhere)
{
	struct wire *x = malloc(sizeof *x), *other = malloc(sizeof *other);
	uint8_t cookie[2048];
	uint32_t tag;
	size_t len;

	start_sd_hand();
	wire_init(x, 4000);
	x->streams_out = x->streams_in = 1;
	send_sd_hand_init(x, ddp, sizeof ddp);
	expect_sd_hand(x, C_INIT_ACK);
	read_init_ack(x);
	len = x->cookie_len;
	tag = x->peer_tag;
	memcpy(cookie, x->cookie, len);
	x->streams_out = x->streams_in = HIGH + 1;
	send_sd_hand_init(x, ddp, sizeof ddp);
	expect_sd_hand(x, C_INIT_ACK);
	read_init_ack(x);
	begin_cookie(x);
	finish_sd_hand(x);
	expect_sd_hand(x, C_COOKIE_ACK);
	WAIT_FOR(srv.accepted == 1, &sn);
	B->pause(srv.peers[0].a, true);
	send_hand_data(x, HIGH, 700);
	expect_sd_hand(x, C_SACK);
	wire_init(other, 4000);
	move_away(other);
	for (int way = 0; way < 4; way++) {
		struct wire *by = elsewhere ? other : x;

		begin_sd_hand(by, way & 2 ? x->peer_tag : tag);
		if (way & 1) /* not as the first chunk */
			put_sd_hand_chunk(by, C_HEARTBEAT, 0, "\0\1\0\4", 4);
		put_sd_hand_chunk(by, C_COOKIE_ECHO, 0, cookie, len);
		finish_sd_hand(by);
		run_hand_node();
	}
	B->pause(srv.peers[0].a, false);
	WAIT_FOR(srv.peers[0].messages == 1, &sn);
	cr_expect_not(srv.peers[0].bad);
	cr_expect_eq(srv.peers[0].stream, HIGH);
	cr_expect_eq(srv.accepted, 1);
	cr_expect_eq(srv.peers[0].gone, 0);
	close(other->fd);
	free(other);
	stop_sd_hand(x);
}

Test(sd_native_restart, attack_1_an_older_cookie_of_the_same_ports)
{
	second_cookie(false);
}

Test(sd_native_restart, attack_1_an_older_cookie_from_another_address)
{
	second_cookie(true);
}

Test(sd_native_restart, attack_1_an_init_behind_another_chunk)
{
	struct wire *x = many_streams();
	uint8_t init[16] = { 9, 9, 9, 9, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1 };

	for (int type = C_INIT; type <= C_INIT_ACK; type++) {
		begin_sd_hand(x, x->peer_tag);
		put_sd_hand_chunk(x, C_HEARTBEAT, 0, "\0\1\0\4", 4);
		put_sd_hand_chunk(x, (uint8_t)type, 0, init, sizeof init);
		finish_sd_hand(x);
		run_hand_node();
	}
	send_hand_data(x, HIGH, 300);
	WAIT_FOR(srv.peers[0].messages == 1, &sn);
	cr_expect_eq(srv.peers[0].gone, 0);
	while (receive_sd_hand(x))
		cr_expect_neq(x->in[12], C_INIT_ACK, "it is answered");
	stop_sd_hand(x);
}

/* Every octet of a cookie counts, and its length. */
Test(sd_native_restart, attack_1_forged_cookies_end_nothing)
{
	struct wire *x = many_streams();
	uint8_t good[2048];

	reborn(x);
	send_sd_hand_init(x, ddp, sizeof ddp);
	expect_sd_hand(x, C_INIT_ACK);
	read_init_ack(x);
	memcpy(good, x->cookie, x->cookie_len);
	for (size_t bit = 0; bit < x->cookie_len * 8; bit++) {
		x->cookie[bit / 8] = good[bit / 8] ^ (uint8_t)(1 << bit % 8);
		begin_cookie(x);
		finish_sd_hand(x);
		x->cookie[bit / 8] = good[bit / 8];
		run_hand_node();
	}
	for (size_t n = 0; n < x->cookie_len; n++) {
		begin_sd_hand(x, x->peer_tag);
		put_sd_hand_chunk(x, C_COOKIE_ECHO, 0, good, n);
		finish_sd_hand(x);
		run_hand_node();
	}
	cr_expect_eq(srv.peers[0].gone, 0);
	cr_expect_eq(srv.peers[0].restarted, 0);
	begin_cookie(x);
	finish_sd_hand(x);
	WAIT_FOR(srv.peers[0].restarted == 1, &sn);
	cr_expect_eq(srv.peers[0].gone, 0);
	stop_sd_hand(x);
}

/* RFC 9260 5.2.4 D: the COOKIE ACK was lost. */
Test(sd_native_restart, a_repeated_cookie_is_acknowledged_again)
{
	struct wire *x = many_streams();

	begin_cookie(x);
	finish_sd_hand(x);
	expect_sd_hand(x, C_COOKIE_ACK);
	cr_expect_arr_eq(x->in + 4, "\x11\x22\x33\x44", 4);
	send_hand_data(x, HIGH, 10);
	WAIT_FOR(srv.peers[0].messages == 1, &sn);
	cr_expect_eq(srv.accepted, 1);
	stop_sd_hand(x);
}
