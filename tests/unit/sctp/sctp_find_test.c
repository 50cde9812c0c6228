/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine's tables, and when an association leaves them. */
#include "sctp_raw_fixture.h"
#include "unit/mem_fixture.h"

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

TestSuite(sctp_find, .fini = fini);

/* ---- paths ---- */

static struct ddps_sctp_assoc *peer[80];

static int connect_sctp_find_to(unsigned i)
{
	struct ddps_sctp_param p = { .port = RAW_PORT, .streams = 1 };

	return ddps_sctp_connect(r.e, &p, &r.net.node[1].addr[0], 1, (uint16_t)(RAW_PEER + i), 9899,
				 &sn_deaf, NULL, r.net.now, &peer[i]);
}

static void all_found(unsigned n)
{
	cr_expect_eq(r.e->npaths, n);
	for (unsigned i = 0; i < n; i++)
		cr_expect_eq(ddps_sc_find(r.e, 0, RAW_PORT, (uint16_t)(RAW_PEER + i),
					  &r.net.node[1].addr[0]),
			     peer[i]->path[0], "%u of %u", i, n);
	cr_expect_null(
		ddps_sc_find(r.e, 0, RAW_PORT, (uint16_t)(RAW_PEER + n), &r.net.node[1].addr[0]));
}

/* The first without an allocation: each of them must be there. */
Test(sctp_find, the_first_path_needs_its_table)
{
	unsigned n = 1;
	int err;

	raw_init(&r);
	for (;; n++) {
		mem_fail(n);
		err = connect_sctp_find_to(0);
		if (!mem_failed())
			break;
		cr_expect_eq(err, DDPS_E_NOMEM, "allocation %u", n);
		cr_expect_eq(r.e->st.assocs, 0);
		cr_expect_eq(r.e->npaths, 0);
	}
	mem_fail(0);
	cr_expect_eq(err, 0);
	cr_expect_geq(n, 5); /* association, heap, path, table */
	cr_expect_eq(r.e->chains, 16);
	all_found(1);
}

/* A table that cannot grow has longer chains. */
Test(sctp_find, a_table_that_cannot_grow_serves_on)
{
	int err = -1;

	raw_init(&r);
	for (unsigned i = 0; i < 16; i++)
		cr_assert_eq(connect_sctp_find_to(i), 0);
	cr_expect_eq(r.e->chains, 16);
	all_found(16);
	for (unsigned n = 1; err; n++) {
		mem_fail(n);
		err = connect_sctp_find_to(16);
		cr_assert(mem_failed());
	}
	mem_fail(0);
	cr_expect_eq(r.e->chains, 16, "seventeen paths in sixteen chains");
	all_found(17);
	for (unsigned i = 17; i < 70; i++) {
		cr_assert_eq(connect_sctp_find_to(i), 0);
		cr_expect_eq(r.e->chains, i < 32 ? 32 : i < 64 ? 64 : 128, "%u", i);
		all_found(i + 1);
	}
	for (unsigned i = 70; i--;) {
		ddps_sctp_assoc_free(peer[i], r.net.now);
		all_found(i);
	}
	cr_expect_eq(r.e->chains, 0);
	cr_expect_null(r.e->paths);
	sn_flush(&r.net);
	cr_expect_eq(r.e->st.assocs, 0);
}

/* ---- sizes that passed ---- */

Test(sctp_find, how_long_a_size_is_known)
{
	static const uint64_t ten = 600 * 1000 * MS;
	struct ddps_sctp_addr a = sn_v4(192, 0, 2, 1), b = a;

	raw_init(&r);
	r.e->now = 5 * MS;
	cr_expect_eq(ddps_sc_way_size(r.e, &a), 0);
	ddps_sc_way_set(r.e, &a, 1400);
	cr_expect_eq(ddps_sc_way_size(r.e, &a), 1400);
	r.e->now += ten - 1;
	cr_expect_eq(ddps_sc_way_size(r.e, &a), 1400);
	r.e->now += 1;
	cr_expect_eq(ddps_sc_way_size(r.e, &a), 0);
	ddps_sc_way_set(r.e, &a, 1300);
	cr_expect_eq(ddps_sc_way_size(r.e, &a), 1300);
	/* another address in its place, and nobody else's size for an address that is not there */
	for (unsigned i = 0; ddps_sc_way_size(r.e, &a); i++) {
		cr_assert_lt(i, 65536);
		b.ip[1] = (uint8_t)(1 + (i >> 8));
		b.ip[2] = (uint8_t)i;
		cr_expect_eq(ddps_sc_way_size(r.e, &b), 0);
		ddps_sc_way_set(r.e, &b, 1350);
		cr_expect_eq(ddps_sc_way_size(r.e, &b), 1350);
	}
	ddps_sc_way_set(r.e, &a, 0);
	cr_expect_eq(ddps_sc_way_size(r.e, &a), 0);
	cr_expect_eq(ddps_sc_way_size(r.e, &b), 0);
}

/* ---- tags of those that ended ---- */

Test(sctp_find, a_cookie_of_one_that_ended, .description = "9260-5.3.1-3")
{
	struct ddps_sc_cookie ck;

	raw_up(&r);
	raw_chunk(&r, r.tag, SC_ABORT, 0, NULL, 0);
	cr_assert_eq(r.gone, 1);
	raw_echo(&r);
	cr_expect_eq(r.accepted, 1);
	cr_expect(ddps_sc_gone_lately(r.e, r.tag, r.own));
	cr_expect_not(ddps_sc_gone_lately(r.e, r.tag, r.own + 1));
	cr_expect_not(ddps_sc_gone_lately(r.e, r.tag + 1, r.own));
	cr_assert_eq(ddps_sc_cookie_open(&r.e->keys, &ck, r.cookie, r.cookie_len), 0);
	raw_wait(&r, ck.life_ms + 1);
	raw_echo(&r); /* by now it is stale, and so is reported */
	cr_expect(raw_any(&r, SC_ERROR, NULL));
	cr_expect_eq(r.accepted, 1);
}

/* ---- who leaves when ---- */

static unsigned messages, goners;

static void take_sctp_find_message(void *user, const struct ddps_sctp_msg *m)
{
	(void)user, (void)m;
	messages++;
	ddps_sctp_assoc_free(r.a, r.net.now);
	cr_expect_eq(r.e->st.assocs, 1, "its upcall is under way");
}

static void take_sctp_find_gone(void *user, const struct ddps_error *e)
{
	(void)user, (void)e;
	goners++;
}

static void bring_sctp_find_up_with(void (*message)(void *user, const struct ddps_sctp_msg *m))
{
	static struct ddps_sctp_up up;

	raw_up(&r);
	up = raw_upcalls;
	up.gone = take_sctp_find_gone;
	if (message)
		up.message = message;
	messages = goners = 0;
	ddps_sctp_assoc_set_up(r.a, &up, &r);
}

Test(sctp_find, let_go_within_an_upcall_and_without)
{
	bring_sctp_find_up_with(take_sctp_find_message);
	raw_begin(&r, r.tag);
	raw_put_data(&r, RAW_TSN, 1, 0, 3, "x");
	raw_put_data(&r, RAW_TSN + 1, 1, 1, 3, "y");
	raw_hand(&r);
	cr_expect_eq(messages, 1);
	cr_expect_eq(r.e->st.assocs, 0);
	cr_expect(TAILQ_EMPTY(&r.e->dying) && TAILQ_EMPTY(&r.e->all));
	fini();

	bring_sctp_find_up_with(NULL);
	ddps_sctp_assoc_free(r.a, r.net.now);
	cr_expect(ddps_sctp_pending(r.e));
	r.n = 0;
	sn_flush(&r.net);
	cr_expect_eq(r.e->st.assocs, 0, "with what leaves next");
	cr_expect_eq(r.n, 1);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_ABORT);
	cr_expect_eq(goners, 0);
}

/* Over, but not let go: nothing of it leaves, and no timer of it fires. */
Test(sctp_find, over_and_not_let_go)
{
	struct iovec iov = { (void *)(uintptr_t) "x", 1 };

	bring_sctp_find_up_with(NULL);
	cr_assert_eq(ddps_sctp_send(r.a, 0, 17, 0, &iov, 1, r.net.now), 0);
	ddps_sctp_tick(r.e, r.net.now);
	cr_expect(r.a->in_tx);
	ddps_sctp_abort(r.a, NULL, r.net.now);
	r.n = 0;
	sn_flush(&r.net);
	cr_expect_eq(r.n, 1);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_ABORT);
	cr_expect_not(r.a->in_tx);
	ddps_sctp_tick(r.e, r.net.now);
	cr_expect_eq(goners, 1);
	cr_expect_not(ddps_sctp_pending(r.e));
	cr_expect_eq(ddps_sctp_deadline(r.e), UINT64_MAX);
	cr_expect_eq(r.e->st.assocs, 1);
	ddps_sctp_assoc_free(r.a, r.net.now);
	cr_expect_eq(goners, 1);
	sn_flush(&r.net);
	cr_expect_eq(r.e->st.assocs, 0);
	cr_expect_eq(r.e->st.aborts_out, 1);
}

/* What the user gives back opens the window, and the peer is informed. */
Test(sctp_find, a_window_that_opens_is_announced, .description = "9260-6.2-11")
{
	struct ddps_sc_chunk c;
	struct ddps_sc_sack s;
	int64_t all;

	raw_up(&r);
	all = (int64_t)r.e->c.rwnd;
	ddps_sctp_keep(r.a, all - 2000, r.net.now);
	raw_data(&r, RAW_TSN, 1, 0, 3, "x");
	cr_assert(raw_any(&r, SC_SACK, &c));
	cr_assert_eq(ddps_sc_decode_sack(&s, &c), 0);
	cr_expect_eq(s.rwnd, 2000 - DDPS_SC_ITEM);
	ddps_sctp_keep(r.a, 2000 - all / 4, r.net.now); /* not much more than that */
	r.n = 0;
	sn_flush(&r.net);
	cr_expect_eq(r.n, 0);
	ddps_sctp_keep(r.a, -2000, r.net.now);
	r.n = 0;
	sn_flush(&r.net);
	cr_assert(raw_any(&r, SC_SACK, &c));
	cr_assert_eq(ddps_sc_decode_sack(&s, &c), 0);
	cr_expect_eq(s.rwnd, 2000 + all / 4 - DDPS_SC_ITEM);
}
