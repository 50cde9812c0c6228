/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SCTP_PATHS_FIXTURE_H
#define SCTP_PATHS_FIXTURE_H
/* A peer with two addresses that is the test itself, packet by packet. */
#include "sctp_raw_fixture.h"

static struct raw r;
static enum ddps_sctp_path_state told; /* the last that the user learned of the second path */
static unsigned first_told, second_told;

static inline void fini(void)
{
	raw_fini(&r);
}

static inline const struct ddps_sctp_addr *get_first_address(void)
{
	return &r.net.node[1].addr[0];
}

static inline const struct ddps_sctp_addr *get_second_address(void)
{
	return &r.net.node[1].addr[1];
}

static inline bool is_same_paths_address(const struct ddps_sctp_addr *a,
					 const struct ddps_sctp_addr *b)
{
	return !memcmp(a->ip, b->ip, sizeof a->ip);
}

static inline void note_second_path(void *user, const struct ddps_sctp_addr *peer,
				    enum ddps_sctp_path_state s)
{
	(void)user;
	if (is_same_paths_address(peer, get_second_address()))
		told = s, second_told++;
	else
		first_told++;
}

/* Packets since the last send that went to @to and have @type; the last of them in @c. */
static inline unsigned sent_to(const struct ddps_sctp_addr *to, uint8_t type,
			       struct ddps_sc_chunk *c)
{
	unsigned n = 0;
	struct ddps_sc_chunk none;

	for (unsigned k = 0; k < r.n; k++)
		if (is_same_paths_address(&r.log[k].to.peer, to) &&
		    ddps_sc_contains(r.log[k].data, r.log[k].len, type, c ? c : &none))
			n++;
	return n;
}

/* From the second address, to the one that the engine has. */
static inline void send_second(void)
{
	struct ddps_sctp_in in = { .from = { .peer = *get_second_address(),
					     .local = r.net.node[0].addr[0],
					     .encap = r.net.node[1].udp },
				   .data = r.buf,
				   .len = (size_t)(r.w.p - r.buf) };

	ddps_sc_crc_put(r.buf, in.len);
	r.n = 0;
	ddps_sctp_input(r.e, &in, 1, r.net.now);
	sn_flush(&r.net);
}

/* An INIT that lists the second address; the COOKIE ECHO is not sent yet. */
static inline void invite(void)
{
	uint8_t params[32];
	struct ddps_wbuf w = ddps_wbuf_init(params, sizeof params);

	first_told = second_told = 0;
	raw_init(&r);
	ddps_sc_put_addr(&w, get_second_address());
	raw_begin(&r, 0);
	r.own = RAW_TAG;
	raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, params, (size_t)(w.p - params));
	raw_send(&r);
	cr_assert(raw_take_init_ack(&r));
}

static inline void watch_second_path(void)
{
	static struct ddps_sctp_up up;

	up = raw_upcalls;
	up.path = note_second_path;
	ddps_sctp_assoc_set_up(r.a, &up, &r);
}

static inline void answer_sctp_paths_heartbeat(const struct ddps_sc_chunk *c, bool from_second)
{
	uint8_t info[64];
	size_t n = c->vlen;

	cr_assert_leq(n, sizeof info);
	memcpy(info, c->val, n);
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_HEARTBEAT_ACK, 0, info, n);
	if (from_second)
		send_second();
	else
		raw_send(&r);
}

/* Both addresses are confirmed. */
static inline void open_both_paths(void)
{
	struct ddps_sc_chunk c;

	invite();
	raw_echo(&r);
	cr_assert_eq(r.accepted, 1);
	watch_second_path();
	if (!sent_to(get_second_address(), SC_HEARTBEAT, &c)) {
		raw_wait(&r, 1000);
		cr_assert(sent_to(get_second_address(), SC_HEARTBEAT, &c));
	}
	answer_sctp_paths_heartbeat(&c, true);
	cr_assert_eq(r.a->path[1]->state, DDPS_SCTP_ACTIVE);
}

/* In r.w: an INIT of a peer that has begun anew, with both addresses. */
static inline void put_restart(void)
{
	uint8_t params[64];
	struct ddps_wbuf w = ddps_wbuf_init(params, sizeof params);

	ddps_sc_put_addr(&w, get_first_address());
	ddps_sc_put_addr(&w, get_second_address());
	r.own = RAW_TAG + 1;
	raw_begin(&r, 0);
	raw_put_init(&r, r.own, 100000, 5, 5, RAW_TSN, params, (size_t)(w.p - params));
}

#endif
