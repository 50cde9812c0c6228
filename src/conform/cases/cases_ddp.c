/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 5041: tagged buffers, versions, and what follows an error. */
#include "conform/peer/peer.h"
#include <string.h>

#define FILL 7 /* of memory from cf_app_mr */

static const char text[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345";

static void untouched(struct cf *cf, const struct cf_mr *m)
{
	uint8_t want[256];

	cf_fill(want, m->len, FILL);
	CF_CHECK(cf, !memcmp(m->mem, want, m->len), "memory was written: %s",
		 cf_hex(m->mem, m->len));
}

/* ---- tagged ---- */

static void unknown_stag(struct cf *cf)
{
	cf_session(cf, NULL);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, 0x00000001, 0x10000, "ABCDEFGH", 8);
	cf_send(cf);
	cf_expect_term(cf, 0x1100, CF_DDP);
}

static void zero_length_write(struct cf *cf)
{
	cf_session(cf, NULL);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, 0xffffffff, UINT64_MAX, NULL, 0);
	cf_send(cf);
	cf_ping(cf);
}

static void write_reserved(struct cf *cf)
{
	cf_session(cf, NULL);
	cf_tagged(cf, CF_TAGGED_L | 0x3c, CF_WRITE, 0, 0, NULL, 0);
	cf_send(cf);
	cf_ping(cf);
}

/* A Write of @len octets at @off octets from the start of a region of 64. */
static void write_at(struct cf *cf, unsigned access, int64_t off, size_t len, uint16_t code)
{
	struct cf_mr m = cf_app_mr(cf, 64, access);

	cf_session(cf, NULL);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, m.stag, m.to + (uint64_t)off, text, len);
	cf_send(cf);
	if (code) {
		cf_expect_term(cf, code, CF_DDP);
		untouched(cf, &m);
		return;
	}
	cf_ping(cf);
	CF_CHECK(cf, !memcmp(m.mem + off, text, len), "not in place: %s", cf_hex(m.mem, 64));
	cf_app_no_wc(cf); /* placed, not delivered */
}

CF_CALL(write_last_octets, write_at(cf, DDPS_REMOTE_WRITE, 32, 32, 0));
CF_CALL(write_past_end, write_at(cf, DDPS_REMOTE_WRITE, 33, 32, 0x1101));
CF_CALL(write_at_end, write_at(cf, DDPS_REMOTE_WRITE, 64, 1, 0x1101));
CF_CALL(write_below_base, write_at(cf, DDPS_REMOTE_WRITE, -1, 2, 0x1101));
CF_CALL(write_without_right, write_at(cf, DDPS_REMOTE_READ | DDPS_LOCAL_WRITE, 0, 8, 0x1100));
CF_CALL(write_wrap, write_at(cf, DDPS_REMOTE_WRITE | DDPS_ZERO_BASED, -4, 8, 0x1103));
CF_CALL(write_wrap_to_zero, write_at(cf, DDPS_REMOTE_WRITE | DDPS_ZERO_BASED, -8, 8, 0x1103));

/* One octet below the wrap: out of bounds only. */
CF_CALL(write_before_wrap, write_at(cf, DDPS_REMOTE_WRITE | DDPS_ZERO_BASED, -9, 8, 0x1101));

static void write_segments(struct cf *cf)
{
	struct cf_mr m = cf_app_mr(cf, 64, DDPS_REMOTE_WRITE);

	cf_session(cf, NULL);
	for (unsigned i = 0; i < 4; i++) {
		cf_tagged(cf, i == 3 ? CF_TAGGED_L : CF_TAGGED, CF_WRITE, m.stag, m.to + 8 * i,
			  text + 8 * i, 8);
		cf_send(cf);
	}
	cf_ping(cf);
	CF_CHECK(cf, !memcmp(m.mem, text, 32), "not in place: %s", cf_hex(m.mem, 64));
}

/* Each segment is checked, not the first one alone. */
static void write_second_segment(struct cf *cf)
{
	struct cf_mr m = cf_app_mr(cf, 64, DDPS_REMOTE_WRITE);

	cf_session(cf, NULL);
	cf_tagged(cf, CF_TAGGED, CF_WRITE, m.stag, m.to + 56, text, 8);
	cf_send(cf);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, m.stag, m.to + 64, text, 8);
	cf_send(cf);
	cf_expect_term(cf, 0x1101, CF_DDP);
}

static void write_changes_stag(struct cf *cf)
{
	struct cf_mr m = cf_app_mr(cf, 64, DDPS_REMOTE_WRITE);
	struct cf_mr n = cf_app_mr(cf, 64, DDPS_REMOTE_WRITE);

	cf_session(cf, NULL);
	cf_tagged(cf, CF_TAGGED, CF_WRITE, m.stag, m.to, text, 8);
	cf_send(cf);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, n.stag, n.to, text, 8);
	cf_send(cf);
	cf_expect_term(cf, 0x1100, CF_DDP);
	untouched(cf, &n);
}

static void write_revoked(struct cf *cf)
{
	struct cf_mr m = cf_app_mr(cf, 64, DDPS_REMOTE_WRITE);

	cf_session(cf, NULL);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, m.stag, m.to, text, 8);
	cf_send(cf);
	cf_ping(cf);
	ddps_mr_dereg(m.mr);
	memset(m.mem, 0, m.len);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, m.stag, m.to, text, 8);
	cf_send(cf);
	cf_expect_term(cf, 0x1100, CF_DDP);
	CF_CHECK(cf, !m.mem[0], "memory was written after it was revoked");
}

static void write_other_domain(struct cf *cf)
{
	struct ddps_pd *own = cf->app.pd;
	struct cf_mr m;

	CF_CHECK(cf, !ddps_pd_new(cf->app.ctx, &cf->app.pd), "application: no domain");
	m = cf_app_mr(cf, 64, DDPS_REMOTE_WRITE);
	cf->app.pd = own;
	cf_session(cf, NULL);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, m.stag, m.to, text, 8);
	cf_send(cf);
	cf_expect_term(cf, 0x1102, CF_DDP);
	untouched(cf, &m);
}

static void write_other_stream(struct cf *cf)
{
	static uint8_t mem[64];
	struct ddps_ep *other;
	struct ddps_mr *mr;

	CF_CHECK(cf, !ddps_ep_new(cf->app.ctx, &cf->app.attr, &other), "application: endpoint");
	CF_CHECK(cf, !ddps_mr_reg(cf->app.pd, mem, sizeof mem, DDPS_REMOTE_WRITE, other, &mr),
		 "application: a region of one endpoint");
	cf_session(cf, NULL);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, ddps_mr_stag(mr), ddps_mr_to(mr), text, 8);
	cf_send(cf);
	cf_expect_term(cf, 0x1102, CF_DDP);
	CF_CHECK(cf, !mem[0], "memory was written");
}

/* ---- versions and short segments ---- */

static void tagged_version(struct cf *cf, uint8_t dv)
{
	cf_session(cf, NULL);
	cf_tagged(cf, (CF_TAGGED_L & 0xfc) | dv, CF_WRITE, 0, 0, NULL, 0);
	cf_send(cf);
	cf_expect_term(cf, 0x1104, CF_ANY);
}

CF_CALL(tagged_version_0, tagged_version(cf, 0));
CF_CALL(tagged_version_2, tagged_version(cf, 2));
CF_CALL(tagged_version_3, tagged_version(cf, 3));

static void untagged_version(struct cf *cf)
{
	cf_session(cf, NULL);
	cf_read_req(cf, 1, 1, 1, 0, 0, 0);
	cf->out.b[0] = 0x40;
	cf_send(cf);
	cf_expect_term(cf, 0x1206, CF_ANY);
}

/* DV is the same on all segments of a stream, the first or a later one. */
static void version_changes(struct cf *cf)
{
	cf_session(cf, NULL);
	cf_ping(cf);
	cf_read_req(cf, cf_msn(cf, 1), 1, 1, 0, 0, 0);
	cf->out.b[0] = 0x42;
	cf_send(cf);
	cf_expect_term(cf, 0x1206, CF_ANY);
}

/* No DDP code exists for it: MPA's, or none in particular. */
static void send_short_segment(struct cf *cf, size_t len)
{
	cf_session(cf, NULL);
	if (len == 17)
		cf_read_req(cf, 1, 1, 1, 0, 0, 0);
	else
		cf_tagged(cf, CF_TAGGED_L, CF_WRITE, 0, 0, NULL, 0);
	cf->out.len = len;
	cf_send(cf);
	if (!cf->self)
		cf_expect_dead(cf);
	else
		cf_expect_term(cf, cf->wire == CF_TCP ? 0x2003 : 0x1000, CF_BARE);
}

CF_CALL(short_tagged, send_short_segment(cf, 13));
CF_CALL(short_untagged, send_short_segment(cf, 17));
CF_CALL(send_control_octet, send_short_segment(cf, 1));

/* ---- after an error ---- */

static void dropped_after_error(struct cf *cf)
{
	struct cf_mr m = cf_app_mr(cf, 64, DDPS_REMOTE_WRITE);

	cf_app_recv(cf, 1, 64);
	cf_session(cf, NULL);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, ~m.stag, m.to, text, 8);
	cf_send(cf);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, m.stag, m.to, text, 8);
	cf_send(cf);
	cf_untagged(cf, CF_UNTAGGED_L, CF_SEND, 0, 0, 1, 0, text, 8);
	cf_send(cf);
	cf_read_req(cf, 1, 1, 1, 0, 0, 0);
	cf_send(cf);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, ~m.stag, m.to, text, 8); /* what failed */
	cf_expect_term(cf, 0x1100, CF_DDP);
	untouched(cf, &m);
	CF_CHECK(cf, cf_app_wc(cf).status == DDPS_WC_FLUSHED, "delivered after an error");
}

#define CASE(name, app, run, ids, rule)                                                            \
	{                                                                                          \
		name, ids, rule, CF_BOTH, CF_RESPONDER, app, run                                   \
	}

const struct cf_case cf_cases_ddp[] = {
	CF_ROLES("ddp-", "write-unknown-stag", false, unknown_stag,
		 "5041-7.1-11 5041-7.1-12 5041-7.1-18 5041-7.1-19 5041-7.2-1 5041-8.3-5 5040-7.1-3 "
		 "5040-7.2-1 5040-3.1-9",
		 "a Write to an STag that does not exist is 1/1/00"),
	CF_ROLES("ddp-", "write-zero", false, zero_length_write, "5041-5.2-11",
		 "STag and TO of a zero-length Write are not checked"),
	CF_ROLES("ddp-", "write-reserved-bits", false, write_reserved, "5041-4.1-10",
		 "reserved bits of the DDP control octet are not checked"),
	CF_ROLES("ddp-", "write-last-octets", true, write_last_octets,
		 "5041-4.1-1 5041-5.2-5 5041-7.1-14 5040-5.1-3",
		 "a Write may reach the last octet of a region; it is placed and not delivered"),
	CF_ROLES("ddp-", "write-past-end", true, write_past_end,
		 "5041-7.1-15 5041-7.1-17 5041-8.1-1 5041-8.3.1-4 5042-6.2.1-1 5040-8.1.1-3",
		 "a Write one octet past the end is 1/1/01 and nothing is placed"),
	CASE("ddp-write-at-end", true, write_at_end, "5041-7.1-14 5041-8.1-1",
	     "a Write that begins at the end of the region is 1/1/01"),
	CASE("ddp-write-below-base", true, write_below_base, "5041-7.1-14 5041-8.1-1",
	     "a Write that begins before the region is 1/1/01"),
	CF_ROLES("ddp-", "write-without-right", true, write_without_right,
		 "5041-7.1-13 5041-8.3.1-6 5040-8.1.1-5",
		 "a Write to a region without the right is 1/1/00"),
	CASE("ddp-write-wrap", true, write_wrap, "5041-7.1-16",
	     "TO + length beyond 2^64 is 1/1/03, reported before the bounds"),
	CASE("ddp-write-wrap-to-zero", true, write_wrap_to_zero, "5041-7.1-16",
	     "TO + length of just 2^64 is 1/1/03"),
	CASE("ddp-write-before-wrap", true, write_before_wrap, "5041-7.1-14",
	     "TO + length of 2^64 - 1 does not wrap: 1/1/01"),
	CASE("ddp-write-segments", true, write_segments, "5041-5.2-5 5041-4.1-1",
	     "all segments of a Write are placed, each at its TO"),
	CASE("ddp-write-second-segment", true, write_second_segment, "5041-7.1-11 5041-7.1-15",
	     "each segment of a Write is checked, not only the first"),
	CASE("ddp-write-changes-stag", true, write_changes_stag, "5041-7.1-12",
	     "another STag inside one message is 1/1/00"),
	CASE("ddp-write-revoked", true, write_revoked,
	     "5041-8.3-2 5041-8.3.1-5 5041-8.3.1-7 5042-6.2.2-2 5040-8.1.1-4 5040-8.1.1-6",
	     "a region that was deregistered cannot be written"),
	CF_ROLES("ddp-", "write-other-domain", true, write_other_domain,
		 "5041-8.2-1 5041-8.2-4 5041-8.3.1-2 5042-6.1.1-1 5042-6.1.1-2 5040-8.1.1-1",
		 "an STag of another protection domain is 1/1/02"),
	CASE("ddp-write-other-stream", true, write_other_stream,
	     "5041-8.2-2 5041-8.2-4 5041-8.3-3 5041-8.3.1-3 5042-6.1.1-3 5040-8.1.1-2",
	     "an STag bound to another stream is 1/1/02"),
	CF_ROLES("ddp-", "tagged-version-0", false, tagged_version_0, "5041-7.2-1 5041-4.1-12",
		 "a tagged segment with DV 0 is 1/1/04"),
	CASE("ddp-tagged-version-2", false, tagged_version_2, "5041-7.2-1 5041-4.1-12",
	     "a tagged segment with DV 2 is 1/1/04"),
	CASE("ddp-tagged-version-3", false, tagged_version_3, "5041-7.2-1 5041-4.1-12",
	     "a tagged segment with DV 3 is 1/1/04"),
	CF_ROLES("ddp-", "untagged-version", false, untagged_version, "5041-7.2-1 5041-4.1-12",
		 "an untagged segment with DV 0 is 1/2/06"),
	CASE("ddp-version-changes", false, version_changes, "5041-4.1-12",
	     "DV may not change after the first segment: 1/2/06"),
	CF_ROLES("ddp-", "short-tagged", false, short_tagged, "5041-6.2.2-3",
		 "a tagged segment of 13 octets ends the stream"),
	CASE("ddp-short-untagged", false, short_untagged, "5041-6.2.2-3",
	     "an untagged segment of 17 octets ends the stream"),
	CASE("ddp-short-control", false, send_control_octet, "5041-6.2.2-3",
	     "a segment of one octet ends the stream"),
	CF_ROLES("ddp-", "dropped-after-error", true, dropped_after_error,
		 "5040-6.2.1-4 5041-7.1-20 5041-7.1-21 5041-6.2.2-5 5041-6.2.2-6",
		 "after an error one Terminate goes out and all that comes is dropped"),
	{ 0 },
};
