/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 6581 9.2 and 9.3: the peer-to-peer model, its first message, and what goes wrong. */
#include "conform/cases/cases_neg.h"
#include <string.h>

/* ---- the target answers ---- */

/* A and these flags, which must come back as far as the target has them. */
static struct word offer(struct cf *cf, uint16_t b, uint16_t cd)
{
	const struct cf_opts o = { .ird_w = (uint16_t)(CF_A | b | 16), .ord_w = cd | 16 };
	struct word w;

	cf_session(cf, &o);
	w = cf_word(cf);
	CF_CHECK(cf, w.a, "A is 0 in answer to 1");
	CF_CHECK(cf, w.b || w.c || w.d, "no RTR type at all");
	return w;
}

/* What @offer said was taken; the RTR has been sent. */
static void running(struct cf *cf)
{
	if (cf->self)
		cf->app.established = cf_app_event(cf, DDPS_EV_ESTABLISHED);
	cf_ping(cf);
	if (cf->self)
		cf_app_no_wc(cf);
}

static void send_nothing(struct cf *cf)
{
	cf_untagged(cf, CF_UNTAGGED_L, CF_SEND, 0, 0, cf_msn(cf, 0), 0, NULL, 0);
	cf_send(cf);
}

static void write_nothing(struct cf *cf)
{
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, 1, 0, NULL, 0);
	cf_send(cf);
}

static void rtr_send(struct cf *cf)
{
	struct word w = offer(cf, CF_B, 0);

	CF_CHECK(cf, !cf->self || (w.b && !w.c && !w.d), "flags %d %d %d", w.b, w.c, w.d);
	if (!w.b)
		cf_skip(cf, "the target does not take Sends");
	send_nothing(cf);
	running(cf);
}

static void rtr_write(struct cf *cf)
{
	struct word w = offer(cf, 0, CF_C);

	CF_CHECK(cf, !cf->self || (!w.b && w.c && !w.d), "flags %d %d %d", w.b, w.c, w.d);
	if (!w.c)
		cf_skip(cf, "the target does not take Writes");
	write_nothing(cf);
	running(cf);
}

static void rtr_read(struct cf *cf)
{
	struct word w = offer(cf, 0, CF_D);

	CF_CHECK(cf, !cf->self || (!w.b && !w.c && w.d), "flags %d %d %d", w.b, w.c, w.d);
	if (!w.d)
		cf_skip(cf, "the target does not take Reads");
	CF_CHECK(cf, w.ird, "a Read is to come, and IRD is 0");
	cf_ping(cf);
	running(cf);
}

static void rtr_any(struct cf *cf)
{
	struct word w = offer(cf, CF_B, CF_C | CF_D);

	CF_CHECK(cf, !cf->self || (w.b && w.c && w.d), "flags %d %d %d", w.b, w.c, w.d);
	if (w.c)
		write_nothing(cf);
	else if (w.d)
		cf_ping(cf);
	else
		send_nothing(cf);
	running(cf);
}

/* Queue 0 counts the RTR, the application's receives do not. */
static void rtr_send_counts(struct cf *cf)
{
	struct ddps_wc wc;

	cf_app_recv(cf, 1, 64);
	offer(cf, CF_B, 0);
	send_nothing(cf);
	running(cf);
	cf_untagged(cf, CF_UNTAGGED_L, CF_SEND, 0, 0, cf_msn(cf, 0), 0, "hello", 5);
	cf_send(cf);
	wc = cf_app_wc(cf);
	CF_CHECK(cf, wc.op == DDPS_OP_RECV && wc.len == 5, "%s of %u octets", ddps_op_name(wc.op),
		 wc.len);
}

/* Read is all we have, and we ask for no IRD: the target finds one slot for it. */
static void read_without_ird(struct cf *cf)
{
	const struct cf_opts o = { .ird_w = CF_A | 16, .ord_w = CF_D };
	struct word w;

	cf->app.param.ird = 0;
	cf_session(cf, &o);
	w = cf_word(cf);
	CF_CHECK(cf, w.a && w.d && w.ird == 1, "A %d, D %d, IRD %u", w.a, w.d, w.ird);
	cf_ping(cf);
	running(cf);
}

static void client_server(struct cf *cf)
{
	const struct cf_opts o = { .ird_w = CF_B | 16, .ord_w = CF_C | CF_D | 16 };
	struct word w;

	cf_session(cf, &o);
	w = cf_word(cf);
	CF_CHECK(cf, !w.a && !w.b && !w.c && !w.d, "A %d, flags %d %d %d", w.a, w.b, w.c, w.d);
	cf_ping(cf);
}

/* Without A a zero-length Send is a Send like any other. */
static void no_rtr_in_client_server(struct cf *cf)
{
	const struct cf_opts o = { .ird_w = CF_B | 16, .ord_w = 16 };
	struct ddps_wc wc;

	cf_app_recv(cf, 1, 64);
	cf_session(cf, &o);
	send_nothing(cf);
	wc = cf_app_wc(cf);
	CF_CHECK(cf, wc.op == DDPS_OP_RECV && !wc.len, "%s of %u octets", ddps_op_name(wc.op),
		 wc.len);
}

static void listen_for_rtr(struct cf *cf, unsigned rtr, bool mismatch_accept)
{
	struct ddps_listen_param p;

	ddps_listen_param_init(&p);
	p.rtr = rtr;
	p.rtr_mismatch_accept = mismatch_accept;
	cf_neg_listen(cf, &p);
	cf->app.param.rtr = rtr;
}

static void own_flags(struct cf *cf)
{
	struct word w = cf_word(cf);

	CF_CHECK(cf, w.a && !w.b && w.c && !w.d, "A %d, flags %d %d %d", w.a, w.b, w.c, w.d);
}

static void none_common(struct cf *cf)
{
	listen_for_rtr(cf, DDPS_RTR_WRITE, false);
	cf_neg_ask(cf, CF_A | CF_B | 16, CF_D | 16, NULL, 0);
	cf_neg_hear(cf);
	CF_CHECK(cf, cf_neg_rejected(cf), "no rejection");
	own_flags(cf);
}

static void none_offered(struct cf *cf)
{
	listen_for_rtr(cf, DDPS_RTR_WRITE, false);
	cf_neg_ask(cf, CF_A | 16, 16, NULL, 0);
	cf_neg_hear(cf);
	CF_CHECK(cf, cf_neg_rejected(cf), "no rejection");
	own_flags(cf);
}

static void term(struct cf *cf, const char *word)
{
	cf_untagged(cf, CF_UNTAGGED_L, CF_TERM, 0, 2, 1, 0, word, 4);
	cf_send(cf);
}

static void none_common_accept(struct cf *cf)
{
	const struct cf_opts o = { .ird_w = CF_A | CF_B | 16, .ord_w = 16 };

	listen_for_rtr(cf, DDPS_RTR_WRITE, true);
	cf_session(cf, &o);
	own_flags(cf);
	term(cf, "\x20\x07\0");
	cf_neg_failed(cf, 0x2007);
}

/* The initiator may choose what it likes of what the answer has. */
static void one_common(struct cf *cf)
{
	struct word w;

	listen_for_rtr(cf, DDPS_RTR_WRITE | DDPS_RTR_SEND, false);
	w = offer(cf, 0, CF_C | CF_D);
	CF_CHECK(cf, !w.b && w.c && !w.d, "flags %d %d %d", w.b, w.c, w.d);
	write_nothing(cf);
	running(cf);
}

static void told_failure(struct cf *cf, const char *word, uint16_t code)
{
	offer(cf, 0, CF_C);
	term(cf, word);
	cf_neg_failed(cf, code);
}

CF_CALL(told_5, told_failure(cf, "\x20\x05\0", 0x2005));
CF_CALL(told_6, told_failure(cf, "\x20\x06\0", 0x2006));
CF_CALL(told_7, told_failure(cf, "\x20\x07\0", 0x2007));

static void no_rtr(struct cf *cf)
{
	struct ddps_wc wc;

	cf_app_recv(cf, 1, 64);
	offer(cf, 0, CF_C);
	cf_untagged(cf, CF_UNTAGGED_L, CF_SEND, 0, 0, cf_msn(cf, 0), 0, "hello", 5);
	cf_send(cf);
	cf_app_event(cf, DDPS_EV_ESTABLISHED);
	wc = cf_app_wc(cf);
	CF_CHECK(cf, wc.op == DDPS_OP_RECV && wc.len == 5, "%s of %u octets", ddps_op_name(wc.op),
		 wc.len);
}

static void no_rtr_strict(struct cf *cf)
{
	cf->app.param.rtr_strict = true;
	cf_app_recv(cf, 1, 64);
	offer(cf, 0, CF_C);
	cf_untagged(cf, CF_UNTAGGED_L, CF_SEND, 0, 0, cf_msn(cf, 0), 0, "hello", 5);
	cf_send(cf);
	cf_expect_term(cf, 0x2007, CF_ANY);
}

/* Over SCTP nobody waits for anybody. */
static void sctp_first(struct cf *cf)
{
	cf_session(cf, NULL);
	cf_app_post(cf, DDPS_OP_SEND, 0, NULL, 0, 0, 0);
	cf_recv(cf);
	CF_CHECK(cf, cf_in_op(cf) == CF_SEND, "expected a Send: %s", cf_hex(cf->in.b, cf->in.len));
}

/* ---- the target asks ---- */

static void i_p2p(struct cf *cf, unsigned rtr)
{
	cf->app.param.p2p = true;
	cf->app.param.rtr = rtr;
}

static void i_word(struct cf *cf)
{
	struct word w;

	i_p2p(cf, DDPS_RTR_ALL);
	cf_open(cf);
	cf_neg_hear(cf);
	w = cf_word(cf);
	CF_CHECK(cf, w.a && w.b && w.c && w.d, "A %d, flags %d %d %d", w.a, w.b, w.c, w.d);
}

static void i_word_some(struct cf *cf)
{
	struct word w;

	i_p2p(cf, DDPS_RTR_SEND | DDPS_RTR_READ);
	cf_open(cf);
	cf_neg_hear(cf);
	w = cf_word(cf);
	CF_CHECK(cf, w.a && w.b && !w.c && w.d, "A %d, flags %d %d %d", w.a, w.b, w.c, w.d);
}

/* The first message is of no length and of type @op; the application's comes behind it. */
static void i_first(struct cf *cf, uint16_t b, uint16_t cd, uint8_t op)
{
	const struct cf_opts o = { .ird_w = (uint16_t)(CF_A | b | 16), .ord_w = cd | 16 };
	bool read = op == CF_READ_REQ;
	size_t len;

	i_p2p(cf, DDPS_RTR_ALL);
	cf_session(cf, &o);
	if (cf->self)
		cf_app_event(cf, DDPS_EV_ESTABLISHED);
	cf_app_post(cf, DDPS_OP_SEND, 0, NULL, 0, 0, 0);
	cf_recv(cf);
	cf_in_payload(cf, &len);
	CF_CHECK(cf, cf_in_op(cf) == op && cf_in_last(cf), "expected an RTR of type %02x: %s", op,
		 cf_hex(cf->in.b, cf->in.len));
	CF_CHECK(cf, len == (read ? 28u : 0u), "%zu octets of payload", len);
	if (!cf_in_tagged(cf))
		CF_CHECK(cf, cf_in_msn(cf) == 1, "MSN %u", cf_in_msn(cf));
	if (read) {
		CF_CHECK(cf, !cf_get32(cf->in.b + 30), "a Read of %u octets",
			 cf_get32(cf->in.b + 30));
		cf_tagged(cf, CF_TAGGED_L, CF_READ_RESP, cf_get32(cf->in.b + 18),
			  cf_get64(cf->in.b + 22), NULL, 0);
		cf_send(cf);
	}
	cf_recv(cf); /* no second RTR */
	CF_CHECK(cf, cf_in_op(cf) == CF_SEND && cf_in_msn(cf) == (op == CF_SEND ? 2 : 1),
		 "expected the application's Send: %s", cf_hex(cf->in.b, cf->in.len));
	cf_ping(cf);
}

CF_CALL(i_first_send, i_first(cf, CF_B, 0, CF_SEND));
CF_CALL(i_first_write, i_first(cf, 0, CF_C, CF_WRITE));
CF_CALL(i_first_read, i_first(cf, 0, CF_D, CF_READ_REQ));

/* Which one is the initiator's choice; but one it is. */
CF_CALL(i_first_any, i_first(cf, CF_B, CF_C | CF_D, CF_WRITE));

static void i_no_match(struct cf *cf, uint16_t ird_w, uint16_t ord_w)
{
	cf_neg_accept(cf, ird_w, ord_w);
	cf_expect_term(cf, 0x2007, CF_BARE);
	cf_neg_failed(cf, 0x2007);
}

static void i_other_types(struct cf *cf)
{
	i_p2p(cf, DDPS_RTR_SEND);
	i_no_match(cf, CF_A | 16, CF_C | CF_D | 16);
}

static void i_no_types(struct cf *cf)
{
	i_p2p(cf, DDPS_RTR_ALL);
	i_no_match(cf, CF_A | 16, 16);
}

static void i_read_without_ird(struct cf *cf)
{
	i_p2p(cf, DDPS_RTR_ALL);
	i_no_match(cf, CF_A, CF_D | 16);
}

static void i_other_model(struct cf *cf)
{
	i_p2p(cf, DDPS_RTR_ALL);
	i_no_match(cf, CF_B | 16, CF_C | CF_D | 16);
}

CF_CALL(i_model_unasked, i_no_match(cf, CF_A | CF_B | 16, CF_C | CF_D | 16));

/* B, C, D without A: nothing, and no RTR comes of it. */
static void i_client_server(struct cf *cf)
{
	const struct cf_opts o = { .ird_w = CF_B | 16, .ord_w = CF_C | CF_D | 16 };

	cf_session(cf, &o);
	if (cf_word(cf).a)
		cf_skip(cf, "the target asks for the peer-to-peer model");
	cf_ping(cf);
}

/* Both things wrong: too little IRD is the one that is reported. */
static void i_both_wrong(struct cf *cf)
{
	i_p2p(cf, DDPS_RTR_SEND);
	cf->app.param.ird_hard = true;
	cf_neg_accept(cf, CF_A | 16, CF_C | 17);
	cf_expect_term(cf, 0x2006, CF_BARE);
	cf_neg_failed(cf, 0x2006);
}

#define MATCH "6581-9.2-10 6581-9.2-11 6581-8-d1 6581-8-d2 5044u-9.2-4"

const struct cf_case cf_cases_neg_p2p[] = {
	{ "neg-p2p-rtr-send", "6581-9.2-3 6581-9.2-4 6581-9.2-5 6581-1.1-d1 5044u-9.2-3",
	  "a zero-length Send is taken as RTR", CF_BOTH, CF_RESPONDER, false, rtr_send },
	{ "neg-p2p-rtr-write", "6581-9.2-3 6581-9.2-4 6581-9.2-5 6581-1.1-d1 5044u-9.2-3",
	  "a zero-length Write is taken as RTR", CF_BOTH, CF_RESPONDER, false, rtr_write },
	{ "neg-p2p-rtr-read", "6581-9.2-3 6581-9.2-4 6581-9.2-5 6581-1.1-d1 5044u-9.2-3",
	  "a zero-length Read is taken as RTR, and answered", CF_BOTH, CF_RESPONDER, false,
	  rtr_read },
	{ "neg-p2p-rtr-any", "6581-9.2-3 6581-9.2-4 6581-9.2-5 6581-9.2-6 6581-1.1-d2",
	  "all three offered: at least one comes back", CF_BOTH, CF_RESPONDER, false, rtr_any },
	{ "neg-p2p-rtr-send-counts", "6581-5-d2 6581-1.1-d1",
	  "an RTR takes MSN 1 and no receive of the application's", CF_BOTH, CF_RESPONDER, true,
	  rtr_send_counts },
	{ "neg-p2p-read-ird-0", "6581-9.1-3 6581-9.2-5", "only Read, IRD 0: raised to 1", CF_BOTH,
	  CF_RESPONDER, true, read_without_ird },
	{ "neg-a0", "6581-9.2-13 6581-9.2-14 6581-9.2-15 5044u-9.2-1 5044u-9.2-2 5044u-9.2-3",
	  "B, C and D without A are ignored, and not sent", CF_BOTH, CF_RESPONDER, false,
	  client_server },
	{ "neg-a0-no-rtr", "6581-9.2-15 5044u-9.2-2",
	  "no A: a zero-length Send is the application's", CF_BOTH, CF_RESPONDER, true,
	  no_rtr_in_client_server },
	{ "neg-p2p-none-common", "6581-7-8 6581-9.2-8 6581-9.2-4 6581-7-1",
	  "no common type: rejected, the own ones named", CF_BOTH, CF_RESPONDER, true,
	  none_common },
	{ "neg-p2p-none-offered", "6581-9.2-8 6581-9.2-4", "the same when nothing was offered",
	  CF_BOTH, CF_RESPONDER, true, none_offered },
	{ "neg-p2p-none-common-accept", "6581-9.2-8 6581-8-d2",
	  "accepted all the same if so configured: the own types are named", CF_BOTH, CF_RESPONDER,
	  true, none_common_accept },
	{ "neg-p2p-one-common", "6581-9.2-5 6581-9.2-d1", "what is common, and only that", CF_BOTH,
	  CF_RESPONDER, true, one_common },
	{ "neg-p2p-told-5", "6581-8-d1 6581-8-d2", "a Terminate 2/0/05 for an RTR is reported",
	  CF_BOTH, CF_RESPONDER, true, told_5 },
	{ "neg-p2p-told-6", "6581-8-d1 6581-8-d2", "2/0/06", CF_BOTH, CF_RESPONDER, true, told_6 },
	{ "neg-p2p-told-7", "6581-8-d1 6581-8-d2", "2/0/07", CF_BOTH, CF_RESPONDER, true, told_7 },
	{ "neg-p2p-no-rtr", "6581-7-d5", "a first message that is no RTR is not lost", CF_BOTH,
	  CF_RESPONDER, true, no_rtr },
	{ "neg-p2p-no-rtr-strict", "6581-8-d1", "a strict responder: 2/0/07", CF_BOTH, CF_RESPONDER,
	  true, no_rtr_strict },
	{ "neg-sctp-first", "6581-7-d5", "the responder may send first", CF_SCTP, CF_RESPONDER,
	  true, sctp_first },
	{ "neg-i-p2p-word", "6581-9.2-1 6581-9.2-2 6581-9-1", "A, and all types that there are",
	  CF_BOTH, CF_INITIATOR, true, i_word },
	{ "neg-i-p2p-word-some", "6581-9.2-1 6581-9.2-2", "A, and the types that are configured",
	  CF_BOTH, CF_INITIATOR, true, i_word_some },
	{ "neg-i-rtr-send", "6581-9.2-9 6581-5-1 6581-9.3-d1 5044u-5-1 5044u-9.2-4",
	  "only B in the answer: a zero-length Send comes first", CF_BOTH, CF_INITIATOR, true,
	  i_first_send },
	{ "neg-i-rtr-write", "6581-9.2-9 6581-5-1 6581-9.3-d1 5044u-5-1 5044u-9.2-4",
	  "only C: a zero-length Write", CF_BOTH, CF_INITIATOR, true, i_first_write },
	{ "neg-i-rtr-read", "6581-9.2-9 6581-5-1 6581-9.3-d1 5044u-5-1 5044u-9.2-4",
	  "only D: a zero-length Read", CF_BOTH, CF_INITIATOR, true, i_first_read },
	{ "neg-i-rtr-any", "6581-9.2-9 6581-5-1 6581-1.1-d2 5044u-5-1 5044u-9.2-4",
	  "all of them: one", CF_BOTH, CF_INITIATOR, true, i_first_any },
	{ "neg-i-rtr-other", MATCH, "only types that it has not: 2/0/07", CF_BOTH, CF_INITIATOR,
	  true, i_other_types },
	{ "neg-i-rtr-none", MATCH, "A without any type: 2/0/07", CF_BOTH, CF_INITIATOR, true,
	  i_no_types },
	{ "neg-i-rtr-read-ird-0", MATCH, "only D, and IRD 0: 2/0/07", CF_BOTH, CF_INITIATOR, true,
	  i_read_without_ird },
	{ "neg-i-model", "6581-8-d2", "A answered without A: 2/0/07", CF_BOTH, CF_INITIATOR, true,
	  i_other_model },
	{ "neg-i-model-unasked", "6581-8-d2", "A in answer to none: 2/0/07", CF_BOTH, CF_INITIATOR,
	  true, i_model_unasked },
	{ "neg-i-a0", "6581-9.2-15 5044u-9.2-2", "B, C and D without A are ignored", CF_BOTH,
	  CF_INITIATOR, false, i_client_server },
	{ "neg-i-both-wrong", "6581-9.1-10 6581-9.1-9", "IRD and RTR both wrong: 2/0/06", CF_BOTH,
	  CF_INITIATOR, true, i_both_wrong },
	{ 0 },
};
