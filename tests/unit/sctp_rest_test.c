/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits of sizes and lists, and what goes with the end. */
#include "sctp_paths_fixture.h"
#include <ddpsess/err.h>

TestSuite(sctp_rest, .fini = fini);

static void nobody(void *user, struct ddps_sctp_assoc *a)
{
	(void)user;
	(void)a;
}

Test(sctp_rest, sizes_of_packets_that_make_sense)
{
	static const struct {
		uint32_t mtu, fixed;
		int err;
	} is[] = { { 0, 0, 0 },	   { 575, 0, DDPS_E_INVAL }, { 576, 0, 0 },
		   { 0, 576, 0 },  { 0, 575, DDPS_E_INVAL }, { 576, 576, 0 },
		   { 577, 577, 0 } };

	raw_init(&r);
	for (unsigned i = 0; i < sizeof is / sizeof *is; i++) {
		struct ddps_sctp_param p = { .port = (uint16_t)(7000 + i),
					     .mtu = is[i].mtu,
					     .fixed_mtu = is[i].fixed };
		struct ddps_sctp_port *l;

		cr_expect_eq(ddps_sctp_listen(r.e, &p, nobody, NULL, &l), is[i].err, "%u", i);
	}
}

/* ---- where a packet comes from ---- */

static unsigned asked;

static unsigned source(void *user, const struct ddps_sctp_addr *peer,
		       const struct ddps_sctp_addr *local, unsigned n)
{
	(void)user;
	(void)peer;
	(void)local;
	asked++;
	return n - 1;
}

Test(sctp_rest, only_among_several_is_a_choice)
{
	for (unsigned n = 0; n <= 2; n++) {
		struct ddps_sctp_param p = { .nlocal = n };
		struct ddps_sctp_assoc *a;

		if (n)
			fini();
		raw_init(&r);
		r.e->c.source = source;
		asked = 0;
		p.local[0] = r.net.node[0].addr[0];
		p.local[1] = r.net.node[0].addr[1];
		cr_assert_eq(ddps_sctp_connect(r.e, &p, first(), 1, 9, 9899, &sn_deaf, NULL,
					       r.net.now, &a),
			     0);
		cr_expect_eq(asked, n == 2);
		cr_expect_eq(a->path[0]->local.family, n == 2 ? 4 : 0);
		r.e->c.source = NULL;
	}
}

/* ---- what may be fragmented ---- */

/* An answer that the path does not take whole is for IP to fragment; what it takes is not. */
Test(sctp_rest, answers_that_ip_fragments, .description = "9260-6.9-5")
{
	static uint8_t info[3400] = { 0, 1 };
	static const struct {
		size_t len;
		bool fragment;
	} is[] = {
		{ 1000, false }, { 1456, false }, { 1460, true }, { 2900, true }, { 3300, true }
	};

	for (unsigned i = 0; i < sizeof is / sizeof *is; i++) {
		struct iovec iov[DDPS_SCTP_IOV_MIN];
		uint8_t head[DDPS_SCTP_HEAD_MIN];
		struct ddps_sctp_out out = { .iov = iov,
					     .iov_max = DDPS_SCTP_IOV_MIN,
					     .head = head,
					     .head_max = sizeof head,
					     .max_segs = 1,
					     .max_len = 65507 };

		if (i)
			fini();
		raw_up(&r);
		info[2] = (uint8_t)(is[i].len >> 8);
		info[3] = (uint8_t)is[i].len;
		ddps_sc_put_chunk(raw_begin(&r, r.tag), SC_HEARTBEAT, 0, info, is[i].len);
		raw_hand(&r);
		cr_assert(ddps_sctp_output(r.e, &out, r.net.now));
		cr_expect_eq(out.len, is[i].len + 16);
		cr_expect_eq(out.fragment, is[i].fragment, "%zu", is[i].len);
	}
}

/* ---- nobody listens ---- */

Test(sctp_rest, an_init_that_nobody_takes, .description = "9260-8.4-4")
{
	struct ddps_sc_chunk c;

	raw_init(&r);
	ddps_sctp_unlisten(r.port);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert_eq(r.n, 1);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ABORT);
	cr_expect_eq(c.vlen, 0, "there is no cause for it");
	cr_expect_eq(c.flags, 0);
	cr_expect_eq(raw_got_tag(&r, 0), RAW_TAG);
}

/* SHUTDOWN ACK says all that a SACK would, also where one was due. */
Test(sctp_rest, data_and_shutdown_in_one_packet)
{
	uint32_t cum;

	raw_up(&r);
	cum = htobe32(r.tsn - 1);
	raw_begin(&r, r.tag);
	raw_put_data(&r, RAW_TSN, 0, 0, 3, "last");
	ddps_sc_put_chunk(&r.w, SC_SHUTDOWN, 0, &cum, sizeof cum);
	raw_send(&r);
	cr_expect_eq(r.messages, 1);
	cr_expect(raw_any(&r, SC_SHUTDOWN_ACK, NULL));
	cr_expect(!raw_any(&r, SC_SACK, NULL));
	cr_expect_eq(r.n, 1);
}

/* ---- secrets ---- */

/* The secret changes with its time, and what the last one signed is good for as long again. */
Test(sctp_rest, secrets_change, .description = "9260-5.1.3-5")
{
	uint64_t begin;

	raw_init(&r);
	begin = r.e->keys.since;
	for (uint8_t id = 1; id < 5; id++) {
		r.net.now = begin + DDPS_SC_KEY_LIFE_NS - 1;
		raw_init_chunk(&r, RAW_TAG, RAW_TSN);
		cr_assert(raw_take_init_ack(&r));
		cr_expect_eq(r.cookie[1], id);
		r.net.now = begin += DDPS_SC_KEY_LIFE_NS;
		raw_init_chunk(&r, RAW_TAG, RAW_TSN);
		cr_assert(raw_take_init_ack(&r));
		cr_expect_eq(r.cookie[1], id + 1);
	}
}

/* ---- errors of several paths ---- */

/* What was sent on the second path and is acknowledged clears the errors of that one [9260-8.1-5]. */
Test(sctp_rest, errors_of_the_second_path)
{
	up();
	cr_assert_eq(ddps_sctp_set_primary(r.a, second(), r.net.now), 0);
	cr_assert_eq(raw_user_send(&r, 0, 0, "there"), 0);
	cr_assert_eq(sent_to(second(), SC_DATA, NULL), 1);
	r.a->path[0]->errors = 2;
	r.a->path[1]->errors = 3;
	r.a->errors = 4;
	raw_sack(&r, r.tsn, 100000);
	cr_expect_eq(r.a->path[0]->errors, 2);
	cr_expect_eq(r.a->path[1]->errors, 0);
	cr_expect_eq(r.a->errors, 0);
}

/* ---- configurations ---- */

Test(sctp_rest, configurations_at_their_limits)
{
	static const struct {
		size_t rwnd;
		uint32_t delay, initial, min, max;
		int err;
	} is[] = { { 4096, 500, 1000, 400, 60000, 0 },
		   { 4095, 500, 1000, 400, 60000, DDPS_E_INVAL },
		   { UINT32_MAX, 0, 1000, 400, 60000, 0 },
		   { UINT32_MAX + 1ull, 0, 1000, 400, 60000, DDPS_E_INVAL },
		   { 4096, 501, 1000, 400, 60000, DDPS_E_INVAL },
		   { 4096, 20, 0, 400, 60000, DDPS_E_INVAL },
		   { 4096, 20, 1, 400, 60000, 0 },
		   { 4096, 20, 60000, 60000, 60000, 0 },
		   { 4096, 20, 60001, 400, 60000, DDPS_E_INVAL },
		   { 4096, 20, 1000, 60001, 60000, DDPS_E_INVAL } };

	raw_init(&r);
	for (unsigned i = 0; i < sizeof is / sizeof *is; i++) {
		struct ddps_sctp_config c = r.e->c;
		struct ddps_sctp *e = NULL;

		c.rwnd = is[i].rwnd;
		c.sack_delay_ms = is[i].delay;
		c.rto_initial_ms = is[i].initial;
		c.rto_min_ms = is[i].min;
		c.rto_max_ms = is[i].max;
		cr_expect_eq(ddps_sctp_new(&c, 1, &e), is[i].err, "%u", i);
		ddps_sctp_free(e);
	}
}

/* ---- the end ---- */

/* A peer that has forgotten us has had SHUTDOWN ACK; one that aborts has not ended in order. */
Test(sctp_rest, aborts_behind_shutdown_ack, .description = "9260-8.5.1-4")
{
	for (unsigned t = 0; t < 2; t++) {
		uint32_t cum;

		if (t)
			fini();
		raw_up(&r);
		cum = htobe32(r.tsn - 1);
		raw_chunk(&r, r.tag, SC_SHUTDOWN, 0, &cum, sizeof cum);
		cr_assert_str_eq(raw_state(&r), "SHUTDOWN-ACK-SENT");
		raw_chunk(&r, t ? RAW_TAG : r.tag, SC_ABORT, t ? SC_FLAG_T : 0, NULL, 0);
		cr_assert_eq(r.gone, 1);
		cr_expect_eq(r.why.code, t ? 0 : DDPS_E_RESET, "%d", r.why.code);
	}
}

/* SHUTDOWN goes where data would go. */
Test(sctp_rest, shutdown_goes_where_data_went)
{
	up();
	cr_assert_eq(ddps_sctp_set_primary(r.a, second(), r.net.now), 0);
	ddps_sctp_shutdown(r.a, r.net.now);
	raw_wait(&r, 1);
	cr_expect_eq(sent_to(second(), SC_SHUTDOWN, NULL), 1);
	cr_expect_eq(sent_to(first(), SC_SHUTDOWN, NULL), 0);
}
