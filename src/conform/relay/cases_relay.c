/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Impairments: between the target and a partner that is known to be good, a relay does what
 * networks do.  What a network may do must not be seen above it; what damages a session must end it
 * and nothing else.
 */
#include "conform/relay/relay_in.h"
#include "conform/peer/inside.h"
#include <inttypes.h>

#define READS  48
#define DEPTH  8
#define TRIES  8 /* of a fault, each at another place */
#define SILENT 2 /* of those that only time ends */

/* The session is made and does all its work, whatever the relay does. */
static void holds(struct cf *cf, const struct cf_relay_plan *plan, unsigned reads)
{
	CF_CHECK(cf, cf_partner_connects(cf, plan), "no session: %s", cf_partner_why(cf));
	CF_CHECK(cf, cf_partner_works(cf, reads, DEPTH), "the session ended: %s",
		 cf_partner_why(cf));
}

/* The target takes somebody new: a fault of another session is not its own. */
static void still_there(struct cf *cf, const char *behind, uint64_t at)
{
	static const struct cf_relay_plan plain = { .seed = 1 };

	CF_CHECK(cf, cf_partner_connects(cf, &plain) && cf_partner_works(cf, 1, 1),
		 "behind %s at %" PRIu64 " a new session fails: %s", behind, at,
		 cf_partner_why(cf));
}

static void check_relay_plain(struct cf *cf)
{
	const struct cf_relay_plan plan = { .seed = 1 };

	holds(cf, &plan, READS);
}

static void recut(struct cf *cf)
{
	static const unsigned sizes[] = { 1, 2, 3, 7, 19, 60, 1000 };

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		const struct cf_relay_plan plan = { .seed = (uint32_t)i, .piece = sizes[i] };

		holds(cf, &plan, sizes[i] < 10 ? DEPTH : READS);
	}
}

static void check_relay_late(struct cf *cf)
{
	const struct cf_relay_plan plan = { .seed = 3, .piece = 300, .jitter_ms = 4 };

	holds(cf, &plan, READS);
}

static void check_relay_silence(struct cf *cf)
{
	const struct cf_relay_plan plan = {
		.seed = 4, .stroke = CF_STALL, .at = cf->wire == CF_TCP ? 300 : 8, .stall_ms = 300
	};

	holds(cf, &plan, READS);
	CF_CHECK(cf, cf_partner_relay(cf).strokes, "case: the silence never came");
}

static void lossy(struct cf *cf)
{
	const struct cf_relay_plan plan = {
		.seed = 5, .lose = 30, .twice = 30, .flip = 60, .jitter_ms = 3
	};
	struct cf_relay_sum done;

	holds(cf, &plan, 4 * READS);
	done = cf_partner_relay(cf);
	CF_CHECK(cf, done.lost && done.doubled && done.flipped,
		 "case: %" PRIu64 " lost, %" PRIu64 " doubled, %" PRIu64 " changed", done.lost,
		 done.doubled, done.flipped);
}

/* Where the first FPDU to the target begins: behind the Request, which has 20 octets and 4. */
#define REQUEST 24u

/* One bit of an FPDU: the CRC finds it, or the target waits for octets that a wrong length promises. */
static void flip(struct cf *cf)
{
	for (unsigned i = 0; i < TRIES; i++) {
		const struct cf_relay_plan plan = { .seed = 100 + i,
						    .stroke = CF_FLIP,
						    .at = REQUEST + 2 + 19 * i };

		CF_CHECK(cf, !cf_partner_manages(cf, &plan, READS),
			 "an FPDU was taken though octet %u was changed", 2 + 19 * i);
		CF_CHECK(cf, cf_partner_relay(cf).strokes, "case: nothing was changed");
		still_there(cf, "a changed bit", plan.at);
	}
}

/* One bit of the Request: a session, a rejection or an end, and then another session. */
static void flip_request(struct cf *cf)
{
	for (unsigned i = 0; i < 3 * TRIES; i++) {
		const struct cf_relay_plan plan = { .seed = 200 + i,
						    .stroke = CF_FLIP,
						    .at = i % REQUEST };

		(void)cf_partner_manages(cf, &plan, 1);
		still_there(cf, "a changed bit of a Request", plan.at);
	}
}

static void check_relay_cut(struct cf *cf)
{
	for (unsigned i = 0; i < TRIES; i++) {
		const struct cf_relay_plan plan = { .seed = 300 + i,
						    .stroke = i % 2 ? CF_RST : CF_FIN,
						    .at = 5 + 37 * i };

		CF_CHECK(cf, !cf_partner_manages(cf, &plan, READS),
			 "work was done behind the end of the connection");
		still_there(cf, plan.stroke == CF_FIN ? "a close" : "a reset", plan.at);
	}
}

/* Nothing more from that datagram on.  The partner's association is left to its timers. */
static void check_relay_cut_off(struct cf *cf)
{
	for (unsigned i = 0; i < SILENT; i++) {
		const struct cf_relay_plan plan = {
			.seed = 400 + i, .stroke = CF_STALL, .at = 1 + 2 * i, .stall_ms = 1u << 30
		};

		(void)cf_partner_manages(cf, &plan, READS);
		still_there(cf, "silence", plan.at);
	}
}

const struct cf_case cf_cases_relay[] = {
	{ "relay-nothing", "5040-5.5-21 5041-5.2-9",
	  "a session through a relay that changes nothing", CF_BOTH, CF_RESPONDER, false,
	  check_relay_plain },
	{ "relay-recut", "5044-7.1.2-3 5044-4.4-18", "a TCP stream may be cut anywhere", CF_TCP,
	  CF_RESPONDER, false, recut },
	{ "relay-late", "5040-5.5-21 5041-5.3-7",
	  "octets and datagrams come late, these in any order", CF_BOTH, CF_RESPONDER, false,
	  check_relay_late },
	{ "relay-silence", "5040-5.5-21", "0.3 s without a word do not end a session", CF_BOTH,
	  CF_RESPONDER, false, check_relay_silence },
	{ "relay-lossy", "5043-10-2 5041-5.3-6 9260-6.8-1",
	  "datagrams are lost, doubled, changed and overtaken, and no work is", CF_SCTP,
	  CF_RESPONDER, false, lossy },
	{ "relay-flip", "5044-4.4-18 5044-4.4-19 5044-8-8",
	  "a changed bit ends the session, and no other", CF_TCP, CF_RESPONDER, false, flip },
	{ "relay-flip-request", "5044-8-6", "a changed bit in a Request harms that session at most",
	  CF_TCP, CF_RESPONDER, false, flip_request },
	{ "relay-cut", "5041-6.2.2-1 5041-6.2.2-2",
	  "a connection that ends anywhere ends its session, and no other", CF_TCP, CF_RESPONDER,
	  false, check_relay_cut },
	{ "relay-cut-off", "5041-6.2.2-1", "a peer that vanishes keeps nobody else out", CF_SCTP,
	  CF_RESPONDER, false, check_relay_cut_off },
	{ 0 },
};
