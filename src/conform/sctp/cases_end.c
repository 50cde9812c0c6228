/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 9260 section 9: SHUTDOWN in every crossing, ABORT with every cause. */
#include "conform/sctp/raw.h"
#include <string.h>

static void send_shutdown_complete(struct cf_raw *r)
{
	cf_raw_say(r, CF_C_SHUTDOWN_COMPLETE, 0, NULL, 0);
	cf_raw_dead(r);
}

/* ---- we begin ---- */

static void check_shutdown_begun(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_up(cf, &r);
	cf_raw_alive(&r);
	cf_raw_shutdown(&r);
	cf_raw_want(&r, CF_C_SHUTDOWN_ACK);
	cf_raw_shutdown(&r); /* its answer was lost */
	cf_raw_want(&r, CF_C_SHUTDOWN_ACK);
	cf_raw_quiet(&r);
	send_shutdown_complete(&r);
}

/* It waits for SHUTDOWN COMPLETE, and asks for it. */
static void check_shutdown_again(struct cf *cf)
{
	uint64_t at;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	cf_raw_shutdown(&r);
	cf_raw_want(&r, CF_C_SHUTDOWN_ACK);
	at = r.in_at;
	cf_raw_want(&r, CF_C_SHUTDOWN_ACK);
	CF_CHECK(cf, r.in_at - at > 100000000u, "SHUTDOWN ACK again after %u ms",
		 (unsigned)((r.in_at - at) / 1000000));
	send_shutdown_complete(&r);
}

/* With DATA outstanding it waits; what is new it takes no more. */
static void check_shutdown_outstanding(struct cf *cf)
{
	uint8_t cum[4];
	uint32_t tsn;
	unsigned n;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	r.mute = true;
	cf_raw_ask(&r, 1);
	cf_raw_want_answer(&r, 1);
	tsn = r.tsn;
	cf_put32(cum, tsn - 1);
	cf_raw_say(&r, CF_C_SHUTDOWN, 0, cum, sizeof cum);
	cf_raw_quiet(&r);
	n = r.ndata;
	cf_raw_want_data(&r); /* again: it is owed */
	CF_CHECK(cf, r.ndata > n && r.tsn == tsn, "TSN %u, %u is outstanding", r.tsn, tsn);
	cf_raw_say(&r, CF_C_SHUTDOWN, 0, cum, sizeof cum);
	cf_raw_quiet(&r);
	cf_raw_sack(&r, tsn, CF_RWND);
	cf_raw_want(&r, CF_C_SHUTDOWN_ACK);
	cf_raw_quiet(&r);
	send_shutdown_complete(&r);
}

/* The same, acknowledged by the SHUTDOWN itself. */
static void acked_by_shutdown(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_up(cf, &r);
	r.mute = true;
	cf_raw_ask(&r, 1);
	cf_raw_want_answer(&r, 1);
	cf_raw_shutdown(&r); /* its cumulative TSN is the answer's */
	cf_raw_want(&r, CF_C_SHUTDOWN_ACK);
	send_shutdown_complete(&r);
}

static void acks_cross(struct cf *cf)
{
	struct cf_raw_chunk c;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	cf_raw_say(&r, CF_C_SHUTDOWN_ACK, 0, NULL, 0); /* nobody asked */
	cf_raw_quiet(&r);
	cf_raw_shutdown(&r);
	cf_raw_want(&r, CF_C_SHUTDOWN_ACK);
	cf_raw_say(&r, CF_C_SHUTDOWN_ACK, 0, NULL, 0);
	c = cf_raw_want(&r, CF_C_SHUTDOWN_COMPLETE);
	CF_CHECK(cf, c.tag == r.l->tag && !c.flags, "SHUTDOWN COMPLETE under tag %08x, flags %u",
		 c.tag, c.flags);
	cf_raw_dead(&r);
}

/* SHUTDOWN COMPLETE counts where it is waited for, and under the right tag. */
static void complete_tags(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_up(cf, &r);
	cf_raw_say(&r, CF_C_SHUTDOWN_COMPLETE, 0, NULL, 0);
	cf_raw_say_tag(&r, r.l->tag, CF_C_SHUTDOWN_COMPLETE, RAW_T, NULL, 0);
	cf_raw_quiet(&r);
	cf_raw_shutdown(&r);
	cf_raw_want(&r, CF_C_SHUTDOWN_ACK);
	cf_raw_say(&r, CF_C_SHUTDOWN_COMPLETE, RAW_T, NULL, 0);
	cf_raw_say_tag(&r, r.l->tag, CF_C_SHUTDOWN_COMPLETE, 0, NULL, 0);
	cf_raw_begin(&r); /* it must be alone */
	cf_raw_put(&r, CF_C_SHUTDOWN_COMPLETE, 0, NULL, 0);
	cf_raw_put(&r, CF_C_HEARTBEAT, 0, "\0\1\0\4", 4);
	cf_raw_send(&r);
	cf_raw_quiet(&r);
	cf_raw_say_tag(&r, r.l->tag, CF_C_SHUTDOWN_COMPLETE, RAW_T, NULL, 0);
	cf_raw_dead(&r);
}

/* DATA, SACK and ERROR while it waits for SHUTDOWN COMPLETE. */
static void check_shutdown_late(struct cf *cf)
{
	struct cf_raw r;
	unsigned n, s;

	cf_raw_up(cf, &r);
	cf_raw_shutdown(&r);
	cf_raw_want(&r, CF_C_SHUTDOWN_ACK);
	n = r.ndata;
	s = r.nsack;
	cf_raw_ask(&r, 1);
	cf_raw_sack(&r, r.l->cum, CF_RWND);
	cf_raw_say(&r, CF_C_ERROR, 0, "\0\6\0\10\376\0\0\4", 8);
	cf_raw_say(&r, CF_C_COOKIE_ACK, 0, NULL, 0);
	cf_raw_quiet(&r);
	CF_CHECK(cf, r.ndata == n && r.nsack == s, "DATA is taken after SHUTDOWN ACK");
	send_shutdown_complete(&r);
}

/* An INIT that meets SHUTDOWN ACK: nothing new before the old is over. */
static void init_meets(struct cf *cf)
{
	uint32_t tag;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	tag = r.l->tag;
	cf_raw_shutdown(&r);
	cf_raw_want(&r, CF_C_SHUTDOWN_ACK);
	cf_raw_begin_tag(&r, 0);
	cf_raw_put_init(&r, CF_C_INIT, tag ^ 0x44444444, CF_RWND, 10, 10, 7, cf_raw_ddp,
			sizeof cf_raw_ddp);
	cf_raw_send(&r);
	cf_raw_want(&r, CF_C_SHUTDOWN_ACK);
	send_shutdown_complete(&r);
}

/* ---- it begins ---- */

/* An initiator whose only session was refused has no use for the association. */
static void refuse_session(struct cf_raw *r)
{
	static const uint8_t no[8] = { 0, 0, 0, CF_ENH_REJECT, 0, 16, 0, 16 };

	cf_raw_begin(r);
	cf_raw_put_data(r, r->l->tsn++, r->sid, 0, RAW_WHOLE | RAW_U, PPID_CONTROL, no, sizeof no);
	cf_raw_send(r);
}

static uint32_t want_shutdown(struct cf_raw *r)
{
	struct cf_raw_chunk c = cf_raw_want(r, CF_C_SHUTDOWN);

	return cf_get32(c.v);
}

static void its(struct cf *cf)
{
	struct cf_raw_chunk c;
	uint32_t cum;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	refuse_session(&r);
	cum = want_shutdown(&r);
	CF_CHECK(cf, cum == r.l->tsn - 1, "SHUTDOWN of TSN %u, it was %u", cum, r.l->tsn - 1);
	cf_raw_say(&r, CF_C_SHUTDOWN_COMPLETE, 0, NULL, 0); /* not yet */
	cf_raw_quiet(&r);
	cf_raw_say(&r, CF_C_SHUTDOWN_ACK, 0, NULL, 0);
	c = cf_raw_want(&r, CF_C_SHUTDOWN_COMPLETE);
	CF_CHECK(cf, c.tag == r.l->tag && !c.flags, "SHUTDOWN COMPLETE under tag %08x, flags %u",
		 c.tag, c.flags);
	cf_raw_dead(&r);
}

/* What is acknowledged last counts: not before all is. */
static void its_waits(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	r.mute = true;
	cf_raw_finish(&r); /* its Initiate is not acknowledged */
	refuse_session(&r);
	while (cf_raw_came(&r, CF_C_DATA, 900, NULL)) /* and no SHUTDOWN among them */
		if (r.ndata > 4)
			break;
	cf_raw_sack(&r, r.l->cum, CF_RWND);
	want_shutdown(&r);
	cf_raw_say(&r, CF_C_SHUTDOWN_ACK, 0, NULL, 0);
	cf_raw_want(&r, CF_C_SHUTDOWN_COMPLETE);
	cf_raw_dead(&r);
}

/* DATA that was under way: SHUTDOWN again with what has come by now, a SACK too for gaps. */
static void its_data(struct cf *cf)
{
	uint32_t cum;
	unsigned n;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	refuse_session(&r);
	cum = want_shutdown(&r);
	n = r.nsack;
	cf_raw_ask_at(&r, cum + 2, 7, RAW_WHOLE | RAW_U);
	while (r.nsack == n)
		cf_raw_want(&r, CF_C_SACK);
	CF_CHECK(cf, r.ngaps == 1 && r.gap[0][0] == 2 && r.sack_cum == cum,
		 "SACK of TSN %u, %u gap blocks", r.sack_cum, r.ngaps);
	CF_CHECK(cf, want_shutdown(&r) == cum, "SHUTDOWN of what is missing");
	cf_raw_ask_at(&r, cum + 1, 8, RAW_WHOLE | RAW_U);
	while (want_shutdown(&r) != cum + 2)
		;
	cf_raw_say(&r, CF_C_SHUTDOWN_ACK, 0, NULL, 0);
	cf_raw_want(&r, CF_C_SHUTDOWN_COMPLETE);
	cf_raw_dead(&r);
}

static void its_again(struct cf *cf)
{
	uint32_t cum;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	refuse_session(&r);
	cum = want_shutdown(&r);
	CF_CHECK(cf, want_shutdown(&r) == cum, "another SHUTDOWN"); /* T2 */
	cf_raw_say(&r, CF_C_SHUTDOWN_ACK, 0, NULL, 0);
	cf_raw_want(&r, CF_C_SHUTDOWN_COMPLETE);
	cf_raw_dead(&r);
}

static void its_crosses(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_up(cf, &r);
	refuse_session(&r);
	want_shutdown(&r);
	cf_raw_shutdown(&r);
	cf_raw_want(&r, CF_C_SHUTDOWN_ACK);
	cf_raw_say(&r, CF_C_SHUTDOWN_ACK, 0, NULL, 0);
	cf_raw_want(&r, CF_C_SHUTDOWN_COMPLETE);
	cf_raw_dead(&r);
}

/* ---- ABORT ---- */

static void abort_with(struct cf *cf, const void *v, size_t len, bool wrong)
{
	struct cf_raw r;

	cf_raw_up(cf, &r);
	r.wrong = wrong;
	cf_raw_say(&r, CF_C_ABORT, 0xfe, v, len); /* flags but T are not looked at */
	cf_raw_dead(&r);
}

CF_CALL(abort_plain, abort_with(cf, NULL, 0, false));
CF_CALL(abort_cause, abort_with(cf, "\0\14\0\11hello\0\0\0\0\15\0\4", 16, false));

/* A cause that is longer than its chunk. */
CF_CALL(abort_odd, abort_with(cf, "\0\14\3\11", 4, true));

/* It comes behind others, and before some that are not read. */
static void abort_among(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_up(cf, &r);
	r.sid = 0;
	cf_raw_begin(&r);
	cf_raw_put(&r, CF_C_HEARTBEAT, 0, "\0\1\0\10abcd", 8);
	cf_raw_put(&r, CF_C_ABORT, 0, NULL, 0);
	cf_raw_put_question(&r, 3);
	cf_raw_send(&r);
	cf_raw_dead(&r);
	CF_CHECK(cf, r.sid != 3, "what stands behind an ABORT is read");
}

#define WITH_APP(point, run, ids, rule)                                                            \
	{                                                                                          \
		"assoc-i-" point, ids, rule, CF_SCTP, CF_INITIATOR, true, run                      \
	}

const struct cf_case cf_cases_assoc_end[] = {
	BOTH("shutdown", check_shutdown_begun,
	     "9260-3.3.9-1 9260-9.2-12 9260-9.2-16 9260-8.5.1-9 9260-8.3-2 etsi-at-2-13",
	     "SHUTDOWN is answered by SHUTDOWN ACK, and ends with SHUTDOWN COMPLETE"),
	BOTH("shutdown-again", check_shutdown_again, "9260-9.2-13 9260-9.2-12 etsi-at-2-11",
	     "SHUTDOWN ACK is repeated"),
	BOTH("shutdown-owed", check_shutdown_outstanding,
	     "9260-9.2-7 9260-9.2-12 9260-4-7 9260-6-1 9260-6-4 etsi-at-2-7-2 etsi-at-2-9 "
	     "etsi-at-2-10",
	     "what is outstanding is delivered before SHUTDOWN ACK"),
	BOTH("shutdown-acks", acked_by_shutdown, "9260-6.2-29 9260-9.2-12 etsi-at-2-14",
	     "SHUTDOWN acknowledges DATA"),
	BOTH("shutdown-crossed", acks_cross,
	     "9260-9.2-22 9260-8.5.1-5 9260-3.3.13-1 etsi-dm-4-7-2 etsi-dm-4-7-3",
	     "crossing SHUTDOWN ACKs end by SHUTDOWN COMPLETE"),
	BOTH("complete-tag", complete_tags,
	     "9260-8.5.1-8 9260-8.5.1-9 9260-9.2-16 9260-3-1 etsi-imh-3-10 etsi-bdc-7-3 pkdr-vtag",
	     "SHUTDOWN COMPLETE is checked as ABORT is, where it is expected, if alone"),
	BOTH("shutdown-late", check_shutdown_late,
	     "9260-6-2 9260-6-3 9260-6-6 9260-5.2.5-1 9260-3.3.10-d1 etsi-at-2-7-4 etsi-dm-4-10",
	     "after SHUTDOWN ACK no DATA and no SACK counts"),
	BOTH("shutdown-init", init_meets, "9260-9.2-18 etsi-dm-4-2-2",
	     "an INIT that meets SHUTDOWN ACK brings it again"),
	WITH_APP("shuts-down", its,
		 "9260-3.3.8-1 9260-9.2-d1 9260-9.2-15 9260-9.2-16 9260-3.3.13-1 9260-8.5.1-5 "
		 "9260-3.3.9-1 etsi-at-2-6",
		 "its SHUTDOWN says what has come, and ends with SHUTDOWN COMPLETE"),
	WITH_APP("shuts-down-later", its_waits, "9260-9.2-23 9260-9.2-d1 etsi-at-2-3",
		 "no SHUTDOWN while DATA is outstanding"),
	WITH_APP("shuts-down-data", its_data,
		 "9260-9.2-9 9260-9.2-10 9260-4-5 9260-6.2-15 9260-3.3.8-2 9260-3.3.8-3 "
		 "9260-6.2-29 etsi-at-2-8",
		 "DATA in SHUTDOWN-SENT brings SHUTDOWN again, and a SACK if there is a hole"),
	WITH_APP("shuts-down-again", its_again, "9260-9.2-1 9260-9.2-2 etsi-at-2-4",
		 "SHUTDOWN is repeated"),
	WITH_APP("shuts-down-crossing", its_crosses, "9260-9.2-21 9260-9.2-22 etsi-dm-4-5",
		 "crossing SHUTDOWNs are answered by SHUTDOWN ACK"),
	BOTH("abort", abort_plain, "9260-9.1-3 9260-9.1-4 9260-3.3.7-5 9260-3.2-d5 etsi-at-2-2",
	     "an ABORT without cause ends it"),
	BOTH("abort-cause", abort_cause, "9260-9.1-3 9260-9.1-4", "an ABORT with causes ends it"),
	BOTH("abort-odd", abort_odd, "9260-9.1-4", "an ABORT with a broken cause ends it"),
	BOTH("abort-among", abort_among, "9260-3.3.7-2 9260-3.3.7-3 9260-9.1-3",
	     "an ABORT may stand behind chunks; what follows it is not read"),
	{ 0 },
};
