/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows, and regions that change. */
#include "ddp/stag.h"
#include "unit/rdmap/rdmap_fixture.h"
#include "unit/mem_fixture.h"

#define ALL (RIGHTS | DDPS_BIND)

static struct side s, t; /* two sessions of one domain */
static struct ddps_mr *mr, *mw;

static void setup(void)
{
	struct ddps_rdmap_cfg cfg = { .pd = &s.pd,
				      .stream = (uintptr_t)&t,
				      .sq_depth = 8,
				      .rq_depth = 8,
				      .max_sge = 1,
				      .up = &side_up,
				      .user = &t };

	open_rdmap_side(&s);
	memset(&t, 0, sizeof t);
	t.mr = s.mr;
	cr_assert_eq(ddps_rdmap_new(&t.r, &cfg), 0);
	side_start(&t, 4, 4);
	mr = side_reg(&s, s.mem, 1000, ALL);
	cr_assert_eq(ddps_stag_add_window(&s.pd, false, &mw), 0);
}

static void teardown(void)
{
	ddps_rdmap_free(t.r);
	close_rdmap_side(&s);
}

TestSuite(stag_window, .init = setup, .fini = teardown);

static int bind_stag_window_to(struct side *at, uint32_t stag, size_t off, size_t len,
			       unsigned access)
{
	struct ddps_sge sge = { s.mem + off, (uint32_t)len, mr->stag };
	struct ddps_send_wr wr = { .wr_id = 7,
				   .op = DDPS_OP_BIND,
				   .stag = stag,
				   .sge = &sge,
				   .nsge = len ? 1 : 0,
				   .bind = { .window = mw, .access = access } };
	uint8_t out[128];
	int err = ddps_rdmap_post_send(at->r, &wr);

	while (!err && pull(at, 1500, out))
		;
	return err;
}

static enum ddps_stag_verdict check_window_use(struct side *by, uint32_t stag, size_t off,
					       size_t len, unsigned need)
{
	uint8_t *at;

	return ddps_stag_check(&s.pd, (uintptr_t)by, stag, (uintptr_t)(s.mem + off), len, need,
			       &at);
}

/* Just the part, just the rights, just the session that bound it; never a local key. */
Test(stag_window, gives_a_part_of_a_region)
{
	struct ddps_sge local = { s.mem + 100, 4, 0 };
	uint32_t stag = mw->stag;

	cr_expect_eq(check_window_use(&s, stag, 100, 10, 0), DDPS_STAG_INVALID);
	cr_expect_eq(bind_stag_window_to(&s, stag, 100, 10, DDPS_REMOTE_READ), 0);
	cr_assert_eq(s.nsq, 1);
	expect_wc(s.sq[0], 7, DDPS_OP_BIND, DDPS_WC_SUCCESS);
	cr_expect_eq(check_window_use(&s, stag, 100, 10, DDPS_REMOTE_READ), DDPS_STAG_OK);
	cr_expect_eq(check_window_use(&s, stag, 99, 2, DDPS_REMOTE_READ), DDPS_STAG_BOUNDS);
	cr_expect_eq(check_window_use(&s, stag, 109, 2, DDPS_REMOTE_READ), DDPS_STAG_BOUNDS);
	cr_expect_eq(check_window_use(&s, stag, 100, 1, DDPS_REMOTE_WRITE), DDPS_STAG_ACCESS);
	cr_expect_eq(check_window_use(&t, stag, 100, 1, DDPS_REMOTE_READ), DDPS_STAG_ASSOCIATION);
	local.lkey = stag;
	cr_expect_neq(ddps_stag_check_local(&s.pd, (uintptr_t)&s, &local, 0), DDPS_STAG_OK);
	cr_expect_eq(mr->windows, 1);
}

/* Behind other work it waits for its turn. */
Test(stag_window, bound_in_the_order_of_the_queue)
{
	post_rdmap(&s, DDPS_OP_SEND, 8, 0, 0, 4);
	cr_expect_eq(bind_stag_window_to(&s, mw->stag, 100, 10, DDPS_REMOTE_READ), 0);
	cr_assert_eq(s.nsq, 2);
	expect_wc(s.sq[0], 8, DDPS_OP_SEND, DDPS_WC_SUCCESS);
	expect_wc(s.sq[1], 7, DDPS_OP_BIND, DDPS_WC_SUCCESS);
	cr_expect_eq(check_window_use(&s, mw->stag, 100, 10, DDPS_REMOTE_READ), DDPS_STAG_OK);
}

/* A shared one is every session's, and may be bound anew. */
Test(stag_window, shared)
{
	ddps_stag_remove(mw);
	cr_assert_eq(ddps_stag_add_window(&s.pd, true, &mw), 0);
	cr_expect_eq(bind_stag_window_to(&s, mw->stag, 100, 10, DDPS_REMOTE_READ), 0);
	cr_expect_eq(check_window_use(&t, mw->stag, 100, 1, DDPS_REMOTE_READ), DDPS_STAG_OK);
	cr_expect_eq(bind_stag_window_to(&s, mw->stag, 200, 10, DDPS_REMOTE_READ), 0);
	cr_expect_eq(s.terms, 0);
	cr_expect_eq(check_window_use(&t, mw->stag, 100, 1, DDPS_REMOTE_READ), DDPS_STAG_BOUNDS);
	cr_expect_eq(check_window_use(&t, mw->stag, 200, 1, DDPS_REMOTE_READ), DDPS_STAG_OK);
	cr_expect_eq(mr->windows, 1);
}

/* The low octet is whoever binds it; the old STag is nobody's then. */
Test(stag_window, new_low_octet)
{
	uint32_t old = mw->stag;

	cr_expect_eq(bind_stag_window_to(&s, old ^ 1, 100, 10, DDPS_REMOTE_READ), 0);
	cr_expect_eq(mw->stag, old ^ 1);
	cr_expect_eq(check_window_use(&s, old, 100, 1, DDPS_REMOTE_READ), DDPS_STAG_INVALID);
	cr_expect_eq(check_window_use(&s, old ^ 1, 100, 1, DDPS_REMOTE_READ), DDPS_STAG_OK);
	cr_expect_eq(bind_stag_window_to(&s, old ^ 0x100, 0, 0, 0), 0);
	cr_expect_eq(s.terms, 1, "another window's name");
}

static int unbind_now(struct side *at)
{
	struct ddps_send_wr inv = {
		.wr_id = 9, .op = DDPS_OP_LOCAL_INV, .flags = DDPS_WR_SILENT, .stag = mw->stag
	};

	return ddps_rdmap_post_send(at->r, &inv);
}

/* All names that a window has, one after the other and around: as programs count them up. */
Test(stag_window, has_256_names_and_begins_again)
{
	const uint32_t first = mw->stag, all = ddps_stag_count(s.pd.table);

	for (uint32_t i = 1; i <= 2 * 256; i++) {
		uint32_t old = mw->stag, now = (first & ~0xffu) | ((first + i) & 0xff);

		s.nsq = 0;
		cr_assert_eq(bind_stag_window_to(&s, now, i, 10, DDPS_REMOTE_READ), 0, "bind %u",
			     i);
		cr_assert_eq(s.nsq, 1);
		cr_assert_eq(s.sq[0].status, DDPS_WC_SUCCESS, "bind %u", i);
		cr_assert_eq(mw->stag, now);
		cr_assert_eq(check_window_use(&s, now, i, 10, DDPS_REMOTE_READ), DDPS_STAG_OK);
		cr_assert_eq(check_window_use(&s, now, i - 1, 1, DDPS_REMOTE_READ),
			     DDPS_STAG_BOUNDS);
		cr_assert_eq(check_window_use(&s, old, i, 10, DDPS_REMOTE_READ), DDPS_STAG_INVALID);
		cr_assert_eq(ddps_stag_find(s.pd.table, now), mw);
		cr_assert_eq(mr->windows, 1);
		cr_assert_eq(ddps_stag_count(s.pd.table), all);
		cr_assert_eq(unbind_now(&s), 0);
		cr_assert_eq(check_window_use(&s, now, i, 10, DDPS_REMOTE_READ), DDPS_STAG_INVALID);
		cr_assert_eq(mr->windows, 0);
	}
	cr_expect_eq(mw->stag, first);
	cr_expect_eq(s.terms, 0);
}

/* A region that was given one of them would end the session that binds it. */
Test(stag_window, its_names_are_given_to_nobody_else)
{
	const uint32_t own = mw->stag, name = own & ~0xffu, region = mr->stag & ~0xffu;

	for (uint32_t i = 0; i < 256; i++) {
		cr_expect_not(ddps_stag_usable(s.pd.table, name | i, false), "%u", i);
		cr_expect_not(ddps_stag_usable(s.pd.table, name | i, true), "%u", i);
		cr_expect_not(ddps_stag_usable(s.pd.table, region | i, true), "%u", i);
		cr_expect_eq(ddps_stag_usable(s.pd.table, region | i, false),
			     (region | i) != mr->stag, "%u", i);
	}
	ddps_stag_remove(mw);
	cr_expect(ddps_stag_usable(s.pd.table, own ^ 1, false));
	cr_expect(ddps_stag_usable(s.pd.table, own ^ 1, true));
	cr_expect_not(ddps_stag_usable(s.pd.table, own, false), "it rests");
}

/* What a bind may not do ends the session, the window stays as it was. */
Test(stag_window, refused, .description = "5040-7.1-2")
{
	const struct {
		unsigned region, access;
		size_t off, len;
		bool bound;
	} row[] = {
		{ RIGHTS, DDPS_REMOTE_READ, 0, 4, false },     /* no DDPS_BIND */
		{ DDPS_BIND, DDPS_REMOTE_WRITE, 0, 4, false }, /* not its own to write */
		{ ALL, DDPS_REMOTE_READ, 0, 4, true },	       /* bound by one session */
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		teardown();
		setup();
		if (row[i].bound)
			cr_expect_eq(bind_stag_window_to(&s, mw->stag, 8, 8, DDPS_REMOTE_READ), 0);
		mr->access = row[i].region | (mr->access & 0x80000000u);
		bind_stag_window_to(&s, mw->stag, row[i].off, row[i].len, row[i].access);
		cr_expect_eq(s.terms, 1, "row %zu", i);
		cr_expect_eq(s.sq[s.nsq - 1].status, DDPS_WC_LOCAL_ACCESS, "row %zu", i);
		cr_expect_eq(mw->valid, row[i].bound);
	}
	teardown();
	setup();
	cr_expect_eq(bind_stag_window_to(&s, mw->stag, 996, 8, DDPS_REMOTE_READ), DDPS_E_ACCESS,
		     "beyond it");
	cr_expect_eq(bind_stag_window_to(&s, mw->stag, 0, 4, DDPS_LOCAL_WRITE), DDPS_E_INVAL);
}

/* By oneself, in the order of the queue; by the peer's Send with Invalidate; by unbinding. */
Test(stag_window, invalidated, .description = "5040-5.3-16 5040-5.3-17")
{
	struct ddps_send_wr inv = { .wr_id = 9, .op = DDPS_OP_LOCAL_INV };
	uint8_t out[128];

	bind_stag_window_to(&s, mw->stag, 100, 10, DDPS_REMOTE_READ);
	inv.stag = mw->stag;
	post_rdmap(&s, DDPS_OP_SEND, 8, 0, 0, 4);
	cr_expect_eq(ddps_rdmap_post_send(s.r, &inv), 0);
	cr_expect(mw->valid, "the Send is before it");
	while (pull(&s, 1500, out))
		;
	cr_assert_eq(s.nsq, 3);
	expect_wc(s.sq[2], 9, DDPS_OP_LOCAL_INV, DDPS_WC_SUCCESS);
	cr_expect(!mw->valid && !mr->windows);

	bind_stag_window_to(&s, mw->stag, 100, 10, DDPS_REMOTE_READ);
	post_rdmap_recv(&s, 1, 0, 8);
	cr_expect_eq(feed_untagged(&s, 4, mw->stag, 0, 1, 0, true, "", 0), 0);
	cr_expect(!mw->valid && !mr->windows);
	cr_expect(s.rq[0].invalidated);

	bind_stag_window_to(&s, mw->stag, 100, 10, DDPS_REMOTE_READ);
	ddps_stag_remove(mw);
	cr_expect_eq(mr->windows, 0);
	cr_expect_eq(s.terms, 0);
}

/* A fence holds it back, and it never goes to the wire. */
Test(stag_window, keeps_its_turn)
{
	struct ddps_send_wr inv = {
		.wr_id = 9, .op = DDPS_OP_LOCAL_INV, .flags = DDPS_WR_FENCE, .stag = mr->stag
	};
	uint8_t out[128];

	post_rdmap(&s, DDPS_OP_READ, 1, 0, 0, 4);
	cr_expect_eq(ddps_rdmap_post_send(s.r, &inv), 0);
	while (pull(&s, 1500, out))
		;
	cr_expect(mr->valid);
	cr_expect_eq(feed_rresp(&s, s.mr->stag, 0, true, "abcd"), 0);
	cr_expect_eq(s.want, 1, "there is something to do");
	cr_expect_eq(pull(&s, 1500, out), 0);
	cr_expect(!mr->valid);
	cr_expect_eq(s.nsq, 2);
}

/* However many stand in a row behind something that could not leave. */
Test(stag_window, a_full_queue_of_them_takes_no_stack)
{
	struct ddps_rdmap_cfg cfg = { .pd = &s.pd,
				      .stream = 2,
				      .sq_depth = 65535,
				      .rq_depth = 1,
				      .max_sge = 1,
				      .up = &side_up,
				      .user = &t };
	struct ddps_send_wr wr = {
		.op = DDPS_OP_BIND, .flags = DDPS_WR_SILENT, .stag = mw->stag, .bind = { mw, 0, 0 }
	};
	struct ddps_send_wr first = { .op = DDPS_OP_WRITE, .flags = DDPS_WR_SILENT };
	struct ddps_seg seg;

	ddps_rdmap_free(t.r);
	cr_assert_eq(ddps_rdmap_new(&t.r, &cfg), 0);
	cr_assert_eq(ddps_rdmap_start(t.r, &(struct ddps_rdmap_start){ 0 }), 0);
	cr_assert_eq(ddps_rdmap_post_send(t.r, &first), 0);
	for (unsigned i = 1; i < cfg.sq_depth; i++)
		cr_assert_eq(ddps_rdmap_post_send(t.r, &wr), 0);
	cr_assert_eq(mw->pending, cfg.sq_depth - 1);
	cr_expect_eq(ddps_rdmap_data.tx_next(t.r, &seg, 1500), 1);
	cr_expect_eq(ddps_rdmap_data.tx_next(t.r, &seg, 1500), 0);
	ddps_rdmap_data.tx_done(t.r, 1);
	cr_expect_eq(mw->pending, 0);
}

/* Neither the region nor the window goes while something hangs on it. */
Test(stag_window, flushed_binds_let_go)
{
	const struct ddps_sge sge[2] = { { s.mem, 4, s.mr->stag }, { s.mem + 4, 4, s.mr->stag } };
	struct ddps_send_wr wr = {
		.op = DDPS_OP_BIND, .stag = mw->stag, .sge = sge, .bind = { mw, 0, 0 }
	};

	post_rdmap(&s, DDPS_OP_SEND, 8, 0, 0, 4);
	wr.bind.reserved = 1;
	cr_expect_eq(ddps_rdmap_post_send(s.r, &wr), DDPS_E_INVAL);
	wr.bind.reserved = 0;
	wr.nsge = 2; /* a window is of one region */
	cr_expect_eq(ddps_rdmap_post_send(s.r, &wr), DDPS_E_INVAL);
	wr.nsge = 0;
	cr_expect_eq(ddps_rdmap_post_send(s.r, &wr), 0);
	cr_expect_eq(mw->pending, 1);
	ddps_rdmap_flush(s.r);
	cr_expect_eq(mw->pending, 0);
	cr_expect_eq(ddps_rdmap_post_send(t.r, &(struct ddps_send_wr){ .op = DDPS_OP_SEND }), 0);
	cr_expect_eq(ddps_rdmap_post_send(t.r, &wr), 0);
	cr_expect_eq(mw->pending, 1);
	ddps_rdmap_free(t.r);
	cr_expect_eq(mw->pending, 0);
	cr_assert_eq(ddps_rdmap_new(&t.r, &(struct ddps_rdmap_cfg){ .pd = &s.pd,
								    .stream = 1,
								    .sq_depth = 1,
								    .rq_depth = 1,
								    .max_sge = 1,
								    .up = &side_up,
								    .user = &t }),
		     0);
}

/* Each way in which a bind may be refused, and what is left of the window. */
Test(stag_window, what_a_bind_needs)
{
	struct ddps_pd other = { .table = s.table };
	struct ddps_sge p = { s.mem + 100, 10, mr->stag };
	const uint64_t me = (uintptr_t)&s;
	struct ddps_mr *own = NULL, *elsewhere = NULL;

	cr_assert_eq(ddps_stag_add(&s.pd, s.mem, 100, ALL, me, &own), 0);
	cr_assert_eq(ddps_stag_add(&other, s.mem, 100, ALL, 0, &elsewhere), 0);
#define BIND(name) ddps_stag_bind(&s.pd, me, mw, name, &p, DDPS_REMOTE_READ)
	cr_expect_eq(BIND(mw->stag ^ 0x100), DDPS_STAG_INVALID, "another window's name");
	cr_expect_eq(BIND(0), DDPS_STAG_INVALID);
	p.lkey = mr->stag ^ 0x100;
	cr_expect_eq(BIND(mw->stag), DDPS_STAG_INVALID, "no region");
	p.lkey = mw->stag;
	mw->valid = mw->shared = true; /* so that no more than this is wrong with it */
	cr_expect_eq(BIND(mw->stag), DDPS_STAG_INVALID, "a window");
	mw->valid = mw->shared = false;
	p.lkey = mr->stag;
	mr->valid = false;
	cr_expect_eq(BIND(mw->stag), DDPS_STAG_INVALID, "invalidated");
	mr->valid = true;
	p.lkey = own->stag;
	cr_expect_eq(BIND(mw->stag), DDPS_STAG_ASSOCIATION, "a session's own");
	p.lkey = elsewhere->stag;
	cr_expect_eq(BIND(mw->stag), DDPS_STAG_ASSOCIATION, "of another domain");
	p = (struct ddps_sge){ s.mem + 995, 6, mr->stag };
	cr_expect_eq(BIND(mw->stag), DDPS_STAG_BOUNDS, "beyond the end");
	p = (struct ddps_sge){ s.mem + 1001, 1, mr->stag };
	cr_expect_eq(BIND(mw->stag), DDPS_STAG_BOUNDS, "behind the end");
	p = (struct ddps_sge){ s.mem - 1, 1, mr->stag };
	cr_expect_eq(BIND(mw->stag), DDPS_STAG_BOUNDS, "before it");
	cr_expect_not(mw->valid);
	cr_expect_eq(mr->windows, 0);
	p = (struct ddps_sge){ s.mem + 990, 10, mr->stag };
	cr_expect_eq(BIND(mw->stag), DDPS_STAG_OK, "up to the end");
	cr_expect_eq(mr->windows, 1);
	ddps_stag_remove(elsewhere);
}

Test(stag_window, unbound_by_a_bind_of_nothing)
{
	const uint64_t me = (uintptr_t)&s;
	struct ddps_sge p = { s.mem + 100, 0, mr->stag };
	uint32_t old = mw->stag;

	cr_expect_eq(bind_stag_window_to(&s, old, 100, 10, DDPS_REMOTE_READ), 0);
	cr_expect_eq(ddps_stag_bind(&s.pd, me, mw, old ^ 1, &p, 0), DDPS_STAG_OK);
	cr_expect_eq(check_window_use(&s, old ^ 1, 100, 1, 0), DDPS_STAG_INVALID);
	cr_expect_eq(mr->windows, 0);
	cr_expect_eq(mw->stag, old ^ 1);
	cr_expect_eq(bind_stag_window_to(&s, old, 100, 10, DDPS_REMOTE_READ), 0);
	cr_expect_eq(ddps_stag_bind(&s.pd, me, mw, old, NULL, 0), DDPS_STAG_OK);
	cr_expect_eq(check_window_use(&s, old, 100, 1, 0), DDPS_STAG_INVALID);
	cr_expect_eq(mr->windows, 0);
}

/* The one found last is under its new name only. */
Test(stag_window, the_old_name_is_forgotten)
{
	const uint64_t me = (uintptr_t)&s;
	uint32_t old = mw->stag;

	cr_expect_eq(ddps_stag_find(s.table, old), mw);
	cr_expect_eq(ddps_stag_bind(&s.pd, me, mw, old ^ 1, NULL, 0), DDPS_STAG_OK);
	cr_expect_null(ddps_stag_find(s.table, old));
	cr_expect_eq(ddps_stag_find(s.table, old ^ 1), mw);
}

Test(stag_window, zero_based)
{
	uint8_t *at = NULL;

	cr_expect_eq(bind_stag_window_to(&s, mw->stag, 100, 10, DDPS_REMOTE_READ | DDPS_ZERO_BASED),
		     0);
	cr_expect_eq(ddps_stag_check(&s.pd, (uintptr_t)&s, mw->stag, 9, 1, DDPS_REMOTE_READ, &at),
		     DDPS_STAG_OK);
	cr_expect_eq(at, s.mem + 109);
	cr_expect_eq(check_window_use(&s, mw->stag, 100, 1, DDPS_REMOTE_READ), DDPS_STAG_BOUNDS);
}

Test(stag_window, what_is_one)
{
	struct ddps_pd other = { .table = s.table };

	cr_expect(ddps_stag_is_window(&s.pd, mw, DDPS_REMOTE_READ));
	cr_expect_not(ddps_stag_is_window(&s.pd, NULL, DDPS_REMOTE_READ));
	cr_expect_not(ddps_stag_is_window(&s.pd, mr, DDPS_REMOTE_READ));
	cr_expect_not(ddps_stag_is_window(&other, mw, DDPS_REMOTE_READ));
	cr_expect_not(ddps_stag_is_window(&s.pd, mw, DDPS_LOCAL_WRITE));
}

/* By oneself: a region that has a window stays; one that is gone cannot go. */
Test(stag_window, revoked)
{
	const uint64_t me = (uintptr_t)&s;

	cr_expect_eq(bind_stag_window_to(&s, mw->stag, 100, 10, DDPS_REMOTE_READ), 0);
	cr_expect_eq(ddps_stag_revoke(&s.pd, me, mr->stag), DDPS_STAG_ACCESS);
	cr_expect(mr->valid);
	cr_expect_eq(ddps_stag_revoke(&s.pd, me, mw->stag), DDPS_STAG_OK);
	cr_expect_eq(ddps_stag_revoke(&s.pd, me, mw->stag), DDPS_STAG_INVALID);
	cr_expect_eq(ddps_stag_revoke(&s.pd, me, mr->stag), DDPS_STAG_OK);
	cr_expect_not(mr->valid);
}

Test(stag_window, verdicts_have_texts)
{
	for (int v = DDPS_STAG_OK; v <= DDPS_STAG_BOUNDS; v++)
		for (int w = DDPS_STAG_OK; w < v; w++)
			cr_expect_neq(strcmp(ddps_stag_verdict_text((enum ddps_stag_verdict)v),
					     ddps_stag_verdict_text((enum ddps_stag_verdict)w)),
				      0);
	cr_expect_str_eq(ddps_stag_verdict_text((enum ddps_stag_verdict)99), "?");
}

/* ---- regions that change ---- */

/* The base of the tagged offsets goes with the right, also where memory stays. */
Test(stag_window, region_becomes_zero_based)
{
	struct ddps_mr_change to = { .access = DDPS_REMOTE_READ | DDPS_ZERO_BASED };
	uint8_t *at = NULL;

	cr_expect_eq(ddps_stag_change(mr, DDPS_CHANGE_ACCESS, &to), 0);
	cr_expect_eq(ddps_stag_check(&s.pd, 1, mr->stag, 5, 1, DDPS_REMOTE_READ, &at),
		     DDPS_STAG_OK);
	cr_expect_eq(at, s.mem + 5);
	to.access = DDPS_REMOTE_READ;
	cr_expect_eq(ddps_stag_change(mr, DDPS_CHANGE_ACCESS, &to), 0);
	cr_expect_eq(check_window_use(&s, mr->stag, 5, 1, DDPS_REMOTE_READ), DDPS_STAG_OK);
}

/* Where it was placed elsewhere that stays while its memory does. */
Test(stag_window, a_region_stays_where_it_was_placed)
{
	struct ddps_mr_change to = { .access = DDPS_REMOTE_READ, .addr = s.mem, .len = 100 };

	mr->base = 0x5000;
	cr_expect_eq(ddps_stag_change(mr, DDPS_CHANGE_ACCESS, &to), 0);
	cr_expect_eq(mr->base, 0x5000);
	to.access |= DDPS_ZERO_BASED;
	cr_expect_eq(ddps_stag_change(mr, DDPS_CHANGE_ACCESS, &to), 0);
	cr_expect_eq(mr->base, 0);
	mr->base = 0x5000;
	cr_expect_eq(ddps_stag_change(mr, DDPS_CHANGE_ACCESS, &to), 0);
	cr_expect_eq(mr->base, 0x5000);
	cr_expect_eq(ddps_stag_change(mr, DDPS_CHANGE_MEMORY, &to), 0);
	cr_expect_eq(mr->base, 0);
	to.access = DDPS_REMOTE_READ;
	cr_expect_eq(ddps_stag_change(mr, DDPS_CHANGE_ACCESS, &to), 0);
	cr_expect_eq(mr->base, (uintptr_t)s.mem);
}

Test(stag_window, region_changes)
{
	struct ddps_pd other = { .table = s.table };
	struct ddps_mr_change to = { .pd = &other,
				     .addr = s.mem + 2000,
				     .len = 100,
				     .access = DDPS_LOCAL_WRITE | DDPS_REMOTE_READ };
	uint64_t losses = ddps_stag_losses(s.table);
	unsigned users = s.pd.users;
	uint32_t stag = mr->stag;

	cr_expect_eq(ddps_stag_change(mr, DDPS_CHANGE_ACCESS, &to), 0);
	cr_expect_eq(check_window_use(&s, stag, 0, 1, DDPS_REMOTE_WRITE), DDPS_STAG_ACCESS);
	cr_expect_eq(check_window_use(&s, stag, 0, 1, DDPS_REMOTE_READ), DDPS_STAG_OK);
	cr_expect_gt(ddps_stag_losses(s.table), losses);
	cr_expect_eq(ddps_stag_change(mr, DDPS_CHANGE_MEMORY, &to), 0);
	cr_expect_eq(check_window_use(&s, stag, 0, 1, 0), DDPS_STAG_BOUNDS);
	cr_expect_eq(check_window_use(&s, stag, 2000, 100, 0), DDPS_STAG_OK);
	cr_expect_eq(ddps_stag_change(mr, DDPS_CHANGE_PD, &to), 0);
	cr_expect_eq(check_window_use(&s, stag, 2000, 1, 0), DDPS_STAG_ASSOCIATION);
	cr_expect_eq(s.pd.users, users - 1);
	cr_expect_eq(other.users, 1);
	to.pd = &s.pd;
	cr_expect_eq(ddps_stag_change(mr, DDPS_CHANGE_PD, &to), 0);
	cr_expect_eq(mr->stag, stag);

	to.access = 0x4000;
	cr_expect_eq(ddps_stag_change(mr, DDPS_CHANGE_ACCESS, &to), DDPS_E_INVAL);
	to.access = ALL;
	to.len = SIZE_MAX;
	cr_expect_eq(ddps_stag_change(mr, DDPS_CHANGE_MEMORY, &to), DDPS_E_INVAL);
	cr_expect_eq(ddps_stag_change(mw, DDPS_CHANGE_ACCESS, &to), DDPS_E_INVAL);
	cr_expect_eq(ddps_stag_change(mr, DDPS_CHANGE_ACCESS, &to), 0);
	bind_stag_window_to(&s, mw->stag, 2000, 8, DDPS_REMOTE_READ);
	cr_expect_eq(ddps_stag_change(mr, DDPS_CHANGE_ACCESS, &to), DDPS_E_BUSY);
	cr_expect_eq(ddps_stag_invalidate(&s.pd, (uintptr_t)&s, stag), DDPS_STAG_ASSOCIATION);
	s.pd.verbs_rules = true;
	cr_expect_eq(ddps_stag_invalidate(&s.pd, (uintptr_t)&s, stag), DDPS_STAG_ACCESS);
}

/* ---- no memory ---- */

/* A window alone in the table, which finds no memory for the table under its next name. */
static struct ddps_mr *lost_its_name(struct ddps_pd *pd)
{
	struct ddps_mr *lone;
	uint32_t old;

	memset(pd, 0, sizeof *pd);
	cr_assert_eq(ddps_stag_table_new(&pd->table, 10), 0);
	cr_assert_eq(ddps_stag_add_window(pd, false, &lone), 0);
	old = lone->stag;
	cr_expect_eq(ddps_stag_find(pd->table, old), lone);
	mem_fail(1);
	cr_expect_eq(ddps_stag_bind(pd, 1, lone, old ^ 1, NULL, 0), DDPS_STAG_INVALID);
	cr_assert(mem_failed());
	cr_expect_null(ddps_stag_find(pd->table, old));
	cr_expect_null(ddps_stag_find(pd->table, old ^ 1));
	cr_expect_not(lone->valid);
	return lone;
}

Test(stag_memory, a_window_gets_its_next_name)
{
	struct ddps_pd pd;
	struct ddps_mr *lone = lost_its_name(&pd);
	uint32_t next = lone->stag ^ 2;

	cr_expect_eq(ddps_stag_bind(&pd, 1, lone, next, NULL, 0), DDPS_STAG_OK);
	cr_expect_eq(ddps_stag_find(pd.table, next), lone);
	cr_expect_eq(ddps_stag_count(pd.table), 1);
	ddps_stag_remove(lone);
	cr_expect_eq(pd.users, 0);
	cr_expect_null(ddps_stag_find(pd.table, next));
	ddps_stag_table_free(pd.table);
}

Test(stag_memory, a_window_without_a_name_goes)
{
	struct ddps_pd pd;
	struct ddps_mr *lone = lost_its_name(&pd);

	ddps_stag_remove(lone);
	cr_expect_eq(pd.users, 0);
	cr_expect_eq(ddps_stag_count(pd.table), 0);
	ddps_stag_table_free(pd.table);
}
