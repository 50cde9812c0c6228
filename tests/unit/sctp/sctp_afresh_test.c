/* SPDX-License-Identifier: BSD-2-Clause */
/* What begins afresh, begins with nothing of what was: associations, paths. */
#include "sctp_raw_fixture.h"
#include "sctp_sent_fixture.h"

static struct raw r;
static struct world w;

/* Whatever the association was about. */
static void make_dirty(struct ddps_sctp_assoc *a)
{
	struct ddps_sc_path *p = a->path[0];

	a->blocked = a->saw_data = true;
	a->ndups = a->sack_packets = a->early = a->errors = a->ctl_n = 3;
	a->nblobs = a->nbig = 1;
	a->sack_at = a->guard_at = a->ctl_at = a->ctl_sent = 12345;
	a->due = DUE_SACK | DUE_SHUTDOWN;
	a->notes = NOTE_WRITABLE | NOTE_ACKED | NOTE_DELIVER | NOTE_ANSWERED | NOTE_SHUTDOWN;
	a->tie_own = a->tie_peer = a->told_rwnd = 7;
	p->confirmed = p->hb_out = true;
	p->hb_nonce = p->probe_nonce = 9;
	p->state = DDPS_SCTP_INACTIVE;
	p->errors = p->good = 4;
}

static void check_control(const struct ddps_sctp_assoc *a)
{
	cr_expect_eq(a->blocked, false);
	cr_expect_eq(a->saw_data, false);
	cr_expect_eq(a->ndups, 0);
	cr_expect_eq(a->sack_packets, 0);
	cr_expect_eq(a->early, 0);
	cr_expect_eq(a->errors, 0);
	cr_expect_eq(a->ctl_n, 0);
	cr_expect_eq(a->ctl_sent, 0);
	cr_expect_eq(a->nblobs, 0);
	cr_expect_eq(a->nbig, 0);
	cr_expect_eq(a->sack_at, DDPS_SC_NEVER);
	cr_expect_eq(a->guard_at, DDPS_SC_NEVER);
	cr_expect_eq(a->ctl_at, DDPS_SC_NEVER);
	cr_expect_eq(a->due, 0);
	cr_expect_eq(a->notes, 0);
	cr_expect_eq(a->tie_own, 0);
	cr_expect_eq(a->tie_peer, 0);
	cr_expect_eq(a->told_rwnd, a->e->c.rwnd);
}

static void check_sctp_afresh_path(const struct ddps_sc_path *p)
{
	cr_expect_eq(p->confirmed, false);
	cr_expect_eq(p->hb_out, false);
	cr_expect_eq(p->hb_nonce, 0);
	cr_expect_eq(p->probe_nonce, 0);
	cr_expect_eq(p->state, DDPS_SCTP_UNCONFIRMED);
	cr_expect_eq(p->errors, 0);
	cr_expect_eq(p->good, 0);
}

/* All that was sent or received is void; but the numbers of messages go on (ddps_sctp_sent()). */
Test(sctp_afresh, an_association_of_a_peer_that_begins_anew)
{
	struct ddps_sctp_info i;

	raw_up(&r);
	for (unsigned n = 0; n < 3; n++)
		cr_assert_eq(raw_user_send(&r, (uint16_t)n, 0, "lost"), 0);
	raw_data(&r, r.next + 3, 0, 5, 7, "ahead");
	raw_data(&r, r.next + 5, 1, 0, 2, "a piece");
	ddps_sctp_info(r.a, &i);
	cr_assert(i.unacked && i.out_of_order);
	for (unsigned n = 0; n < 2; n++) { /* these have not left */
		struct iovec iov = { (void *)(uintptr_t) "unsent", 6 };

		cr_assert_eq(ddps_sctp_send(r.a, 0, 17, 0, &iov, 1, r.net.now), 0);
	}
	make_dirty(r.a);
	ddps_sc_wipe(r.a);
	check_control(r.a);
	check_sctp_afresh_path(r.a->path[0]);
	ddps_sctp_info(r.a, &i);
	cr_expect_eq(i.unacked + i.unsent, 0);
	cr_expect_eq(i.out_of_order, 0);
	cr_expect_eq(ddps_sctp_sent(r.a), 5);
	cr_expect_eq(ddps_sctp_acked(r.a), 5);
	cr_expect_null(r.a->ssn_out);
	cr_expect_eq(r.a->nssn_out, 0);
	cr_expect_null(r.a->streams);
	cr_expect_null(r.a->runs_first);
	/* that it is over was to be reported, and still is */
	r.a->notes = NOTE_GONE | NOTE_ACKED;
	r.a->blocked = true;
	ddps_sc_wipe(r.a);
	cr_expect_eq(r.a->notes, NOTE_GONE);
	cr_expect_eq(r.a->blocked, false);
	r.a->notes = 0;
	raw_fini(&r);
}

/* ---- paths ---- */

static void use_up(struct ddps_sent_path *p)
{
	p->srtt = p->rttvar = p->min_rtt = p->rto = 5 * MS;
	p->min_at = p->min_cur = p->min_last = 6 * MS;
	p->rack_pn = p->rack_rtt = p->fack = p->undo_pending = 7;
	p->reo_mult = 8;
	p->reo_late = 8 * MS;
	p->reord_seen = p->recovery = p->tlp_out = p->probe = p->force = p->dsack_round_set = true;
	p->sampled = false;
	p->frto = 2;
	p->reo_at = p->pto_at = p->pace_at = p->silent_at = p->nudge_at = p->alive_at = 9;
	p->backoff = 3;
	p->cc.cwnd = 1;
	p->next_pn = 40;
	p->epi_pn = 4;
}

static void is_new(const struct ddps_sent_path *p)
{
	cr_expect_eq(p->srtt | p->rttvar | p->min_rtt, 0);
	cr_expect_eq(p->rto, w.s.conf->rto_initial);
	cr_expect_eq(p->min_at | p->min_cur | p->min_last, 0);
	cr_expect_eq(p->rack_pn | p->rack_rtt | p->fack | p->undo_pending, 0);
	cr_expect_eq(p->reo_mult, 1);
	cr_expect_eq(p->reo_late, 0);
	cr_expect(!p->reord_seen && !p->recovery && !p->tlp_out && !p->probe && !p->force &&
		  !p->dsack_round_set);
	cr_expect(p->sampled);
	cr_expect_eq(p->frto, 0);
	cr_expect_eq(p->reo_at | p->pto_at | p->pace_at, 0);
	cr_expect_eq(p->silent_at | p->nudge_at | p->alive_at, 0);
	cr_expect_eq(p->backoff, 0);
}

Test(sctp_afresh, a_path_that_is_used_again, .description = "9260-7.2.1-1")
{
	struct ddps_sent_path *p = &w.p[0];
	uint64_t cwnd;

	sent_begin(&w, 1, 1, 100000);
	cwnd = p->cc.cwnd;
	is_new(p);
	cr_expect_eq(p->next_pn, 1);
	use_up(p);
	ddps_sent_path_again(&w.s, p);
	is_new(p);
	cr_expect_eq(p->cc.cwnd, cwnd);
	cr_expect_eq(p->next_pn, 40);
	cr_expect_eq(p->epi_pn, 40, "what was sent before is no new congestion");
	sent_end(&w);
}

/* What is known of it stays; what is planned does not. */
Test(sctp_afresh, a_path_that_is_left)
{
	struct ddps_sent_path *p = &w.p[0];

	sent_begin(&w, 1, 1, 100000);
	use_up(p);
	p->t3_at = 5;
	p->cc.phase = DDPS_CC_RECOVER;
	p->cc.ssthresh = 7777;
	ddps_sent_path_lost(&w.s, p);
	cr_expect(!p->recovery && !p->force && !p->probe && !p->tlp_out);
	cr_expect_eq(p->undo_pending, 0);
	cr_expect_eq(p->frto, 0);
	cr_expect_eq(p->reo_at | p->pto_at | p->t3_at | p->nudge_at | p->pace_at, 0);
	cr_expect_eq(p->cc.cwnd, 7777);
	cr_expect_eq(p->cc.phase, DDPS_CC_AVOID);
	cr_expect_eq(p->srtt, 5 * MS);
	cr_expect_eq(p->backoff, 3);
	cr_expect_eq(ddps_sent_deadline(&w.s, p), DDPS_SENT_NEVER);
	sent_end(&w);
}

/* An episode, and T3 that was too early: what each of them leaves. */
Test(sctp_afresh, an_episode_forgets_the_last_one)
{
	struct ddps_sent_path *p = &w.p[0];

	sent_begin(&w, 1, 1, 100000);
	use_up(p);
	p->episode = 254;
	ddps_sent_episode(p);
	cr_expect_eq(p->episode, 255);
	cr_expect_eq(p->epi_pn, 40);
	cr_expect_eq(p->undo_pending, 0);
	cr_expect_eq(p->tlp_out, false);
	ddps_sent_episode(p);
	cr_expect_eq(p->episode, 1, "0 is none");
	use_up(p);
	p->spurious = p->undone = 2;
	ddps_sent_false_t3(&w.s, p, w.now);
	cr_expect_eq(p->frto, 0);
	cr_expect_eq(p->undo_pending, 0);
	cr_expect_eq(p->backoff, 0);
	cr_expect_eq(p->silent_at | p->nudge_at, 0);
	cr_expect_eq(p->spurious, 3);
	cr_expect_eq(p->undone, 3);
	sent_end(&w);
}
