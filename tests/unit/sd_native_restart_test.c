/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer that restarts an association of the native backend: RFC 9260 5.2.2, 5.2.4. */
#include "sctp_ddp/sd_backend.h"

#define B (&ddps_sd_native)
#include "sd_hand_fixture.h"

enum before { IDLE, UNREAD, UNSENT, STATES };

static void get_into(struct wire *x, enum before state)
{
	struct side *s = &srv.peers[0];
	uint8_t msg[100] = { 0 };
	struct iovec iov = { msg, sizeof msg };

	if (state == UNREAD) { /* messages on a stream that will be no more */
		B->pause(s->a, true);
		for (int i = 0; i < 20; i++)
			data(x, HIGH, 1000);
		expect(x, C_SACK);
	} else if (state == UNSENT) { /* not acknowledged */
		for (int i = 0; i < 20; i++)
			cr_assert_eq(B->send(s->a, HIGH, 16, &iov, 1), 0);
		B->flush(s->a);
		expect(x, C_DATA);
	}
}

/* Fewer streams than before, with messages on what is cut off: the association ends, and the peer
 * comes again. */
Test(sd_native_restart, attack_1_a_restart_in_every_state, .timeout = 60,
     .description = "5043-11.1-3")
{
	for (enum before state = IDLE; state < STATES; state++) {
		struct wire *x = many_streams();
		struct side *s = &srv.peers[0];

		get_into(x, state);
		reborn(x);
		send_init(x, ddp, sizeof ddp);
		expect(x, C_INIT_ACK);
		read_init_ack(x);
		begin_cookie(x);
		finish(x);
		WAIT_FOR(s->gone, &sn);
		cr_expect_eq(s->end.code, DDPS_E_RESET, "state %d: %s", state, s->end.text);
		cr_expect_eq(s->messages, 0);
		expect(x, C_ABORT);
		reborn(x);
		set_up_again(x, 2);
		stop(x);
	}
}

/* Whoever only pretends to be the peer does not see the cookie. */
Test(sd_native_restart, attack_1_an_init_alone_changes_nothing)
{
	struct wire *x = many_streams();
	uint32_t tsn = x->tsn, tag = x->my_tag, peer_tag = x->peer_tag;

	for (int i = 0; i < 10; i++) {
		reborn(x);
		send_init(x, ddp, sizeof ddp);
		expect(x, C_INIT_ACK);
	}
	x->tsn = tsn;
	x->my_tag = tag;
	x->peer_tag = peer_tag;
	data(x, HIGH, 300);
	WAIT_FOR(srv.peers[0].messages == 1, &sn);
	cr_expect_not(srv.peers[0].bad);
	cr_expect_eq(srv.peers[0].gone, 0);
	stop(x);
}
