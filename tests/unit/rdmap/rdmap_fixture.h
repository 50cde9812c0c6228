/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RDMAP_FIXTURE_H
#define RDMAP_FIXTURE_H
/* One RDMAP stream with a recording upper layer, fed and read as octets. */
#include "rdmap/rdmap_priv.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAYBE  __attribute__((unused))
#define RIGHTS (DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE | DDPS_REMOTE_READ | DDPS_REMOTE_ATOMIC)
#define MAX_WC 4096

struct side {
	struct ddps_stag_table *table;
	struct ddps_pd pd;
	struct ddps_rdmap *r;
	struct ddps_mr *mr; /* of mem */
	uint8_t mem[4096];
	/* recorded */
	struct ddps_wc sq[MAX_WC], rq[MAX_WC];
	unsigned nsq, nrq, want, drained, first, terms, ready;
	unsigned rtr; /* of the first message */
	struct ddps_term term;
	bool by_peer;
	unsigned sq_at_term, rq_at_term; /* completions when terminated was called */
};

static void take_rdmap_complete(void *user, bool recv, struct ddps_wc *wc)
{
	struct side *s = user;

	if (recv)
		s->rq[s->nrq++ % MAX_WC] = *wc;
	else
		s->sq[s->nsq++ % MAX_WC] = *wc;
}

static void take_rdmap_want(void *user)
{
	((struct side *)user)->want++;
}

static void take_rdmap_term(void *user, const struct ddps_term *t, bool by_peer)
{
	struct side *s = user;

	s->terms++;
	s->term = *t;
	s->by_peer = by_peer;
	s->sq_at_term = s->nsq;
	s->rq_at_term = s->nrq;
}

static void take_rdmap_first(void *user, unsigned rtr)
{
	struct side *s = user;

	s->first++;
	s->rtr = rtr;
}

static void take_rdmap_ready(void *user)
{
	((struct side *)user)->ready++;
}

static void take_rdmap_drained(void *user)
{
	((struct side *)user)->drained++;
}

static const struct ddps_rdmap_up side_up = {
	.complete = take_rdmap_complete,
	.want_tx = take_rdmap_want,
	.terminated = take_rdmap_term,
	.first_message = take_rdmap_first,
	.drained = take_rdmap_drained,
	.rx_ready = take_rdmap_ready,
};

/* ---- making ---- */

static MAYBE void side_init(struct side *s, uint32_t sq, uint32_t rq, uint32_t sge)
{
	struct ddps_rdmap_cfg cfg = { .pd = &s->pd,
				      .stream = (uintptr_t)s,
				      .sq_depth = sq,
				      .rq_depth = rq,
				      .max_sge = sge,
				      .up = &side_up,
				      .user = s };

	memset(s, 0, sizeof *s);
	cr_assert_eq(ddps_stag_table_new(&s->table, 1000), 0);
	s->pd.table = s->table;
	cr_assert_eq(ddps_rdmap_new(&s->r, &cfg), 0);
	cr_assert_eq(ddps_stag_add(&s->pd, s->mem, sizeof s->mem, RIGHTS | DDPS_ZERO_BASED, 0,
				   &s->mr),
		     0);
	for (size_t i = 0; i < sizeof s->mem; i++)
		s->mem[i] = (uint8_t)(i ^ i >> 8);
}

static MAYBE void side_start(struct side *s, uint16_t ird, uint16_t ord)
{
	struct ddps_rdmap_start st = { .ird = ird, .ord = ord, .llp_mpa_codes = true };

	cr_assert_eq(ddps_rdmap_start(s->r, &st), 0);
}

/* The usual one: 8 deep each way, 4 pieces, IRD = ORD = 4, MPA below. */
static MAYBE void open_rdmap_side(struct side *s)
{
	side_init(s, 8, 8, 4);
	side_start(s, 4, 4);
}

static MAYBE void close_rdmap_side(struct side *s)
{
	ddps_rdmap_free(s->r);
	cr_expect_eq(s->pd.streams, 0);
	ddps_stag_table_free(s->table);
}

static MAYBE struct ddps_mr *side_reg(struct side *s, void *p, size_t len, unsigned access)
{
	struct ddps_mr *mr = NULL;

	cr_assert_eq(ddps_stag_add(&s->pd, p, len, access, 0, &mr), 0);
	return mr;
}

/* ---- posting; memory is mem[off..off + len) ---- */

static MAYBE struct ddps_sge get_rdmap_piece(struct side *s, size_t off, size_t len)
{
	return (struct ddps_sge){ s->mem + off, (uint32_t)len, s->mr->stag };
}

static MAYBE int post_rdmap(struct side *s, enum ddps_op op, uint64_t id, unsigned flags,
			    size_t off, size_t len)
{
	struct ddps_sge sge = get_rdmap_piece(s, off, len);
	struct ddps_send_wr wr = { .wr_id = id,
				   .op = op,
				   .flags = flags,
				   .sge = &sge,
				   .nsge = 1,
				   .stag = 0x1a2b3c01,
				   .to = 0x10000 };

	return ddps_rdmap_post_send(s->r, &wr);
}

static MAYBE int post_rdmap_recv(struct side *s, uint64_t id, size_t off, size_t len)
{
	struct ddps_sge sge = get_rdmap_piece(s, off, len);

	return ddps_rdmap_post_recv(s->r, id, &sge, 1);
}

/* ---- octets ---- */

static MAYBE size_t unhex(const char *text, uint8_t *out)
{
	size_t n = 0;
	unsigned v;
	int used;

	while (sscanf(text, " %2x%n", &v, &used) == 1) {
		out[n++] = (uint8_t)v;
		text += used;
	}
	return n;
}

/* One segment in, in a block of its exact size. */
static MAYBE int feed_rdmap(struct side *s, const void *seg, size_t len)
{
	uint8_t *copy = malloc(len);
	int err;

	if (len)
		memcpy(copy, seg, len);
	err = ddps_rdmap_rx_segment(s->r, copy, len);
	free(copy);
	return err;
}

static MAYBE int feed_hex(struct side *s, const char *text)
{
	uint8_t buf[256];

	return feed_rdmap(s, buf, unhex(text, buf));
}

static MAYBE size_t make_untagged_rdmap(uint8_t *out, unsigned op, uint32_t word, uint32_t qn,
					uint32_t msn, uint32_t mo, bool last, const void *pay,
					size_t len)
{
	struct ddps_ddp_hdr h = { .last = last,
				  .ulp = (uint8_t)(0x40 | op),
				  .ulp_word = word,
				  .qn = qn,
				  .msn = msn,
				  .mo = mo };

	ddps_ddp_encode(&h, out);
	if (len)
		memcpy(out + 18, pay, len);
	return 18 + len;
}

static MAYBE int feed_untagged(struct side *s, unsigned op, uint32_t word, uint32_t qn,
			       uint32_t msn, uint32_t mo, bool last, const void *pay, size_t len)
{
	uint8_t buf[512];

	return feed_rdmap(s, buf, make_untagged_rdmap(buf, op, word, qn, msn, mo, last, pay, len));
}

static MAYBE int feed_send(struct side *s, uint32_t msn, uint32_t mo, bool last, const char *text)
{
	return feed_untagged(s, 3, 0, 0, msn, mo, last, text, strlen(text));
}

static MAYBE size_t make_tagged_rdmap(uint8_t *out, unsigned op, uint32_t stag, uint64_t to,
				      bool last, const char *text)
{
	struct ddps_ddp_hdr h = {
		.tagged = true, .last = last, .ulp = (uint8_t)(0x40 | op), .stag = stag, .to = to
	};
	size_t len = strlen(text);

	ddps_ddp_encode(&h, out);
	memcpy(out + 14, text, len);
	return 14 + len;
}

static MAYBE int feed_tagged(struct side *s, unsigned op, uint32_t stag, uint64_t to, bool last,
			     const char *text)
{
	uint8_t buf[512];

	return feed_rdmap(s, buf, make_tagged_rdmap(buf, op, stag, to, last, text));
}

static MAYBE int feed_write(struct side *s, uint32_t stag, uint64_t to, bool last, const char *text)
{
	return feed_tagged(s, 0, stag, to, last, text);
}

static MAYBE int feed_rresp(struct side *s, uint32_t stag, uint64_t to, bool last, const char *text)
{
	return feed_tagged(s, 2, stag, to, last, text);
}

static MAYBE int feed_rreq(struct side *s, uint32_t msn, uint32_t size, uint32_t src_stag,
			   uint64_t src_to)
{
	struct ddps_rreq q = { 0xa501, 0x7f0000001000, size, src_stag, src_to };
	uint8_t body[28];

	ddps_rreq_encode(&q, body);
	return feed_untagged(s, 1, 0, 1, msn, 0, true, body, sizeof body);
}

/* Next segment as octets; 0: none.  Not counted as done. */
static MAYBE size_t pull_only(struct side *s, size_t mulpdu, uint8_t *out)
{
	struct ddps_seg seg;
	size_t n;

	if (mulpdu > DDPS_SEG_HDR_MAX && ddps_rdmap_tx_into(s->r, out, mulpdu))
		return mulpdu;
	memset(&seg, 0xa5, sizeof seg); /* all that is looked at has to be set */
	if (!ddps_rdmap_tx_next(s->r, &seg, mulpdu))
		return 0;
	cr_expect(!seg.final || !ddps_rdmap_tx_ready(s->r), "final, and there is more");
	cr_assert(seg.npay >= 0 && seg.npay <= DDPS_SEG_IOV_MAX);
	cr_assert_leq(seg.hdr_len + seg.pay_len, mulpdu);
	memcpy(out, seg.hdr, seg.hdr_len);
	n = seg.hdr_len;
	for (int i = 0; i < seg.npay; i++) {
		memcpy(out + n, seg.pay[i].iov_base, seg.pay[i].iov_len);
		n += seg.pay[i].iov_len;
	}
	cr_assert_eq(n, seg.hdr_len + seg.pay_len);
	return n;
}

static MAYBE size_t pull(struct side *s, size_t mulpdu, uint8_t *out)
{
	size_t n = pull_only(s, mulpdu, out);

	if (n)
		ddps_rdmap_tx_done(s->r, 1);
	return n;
}

#define expect_octets(got, len, hex)                                                               \
	do {                                                                                       \
		uint8_t want_[256];                                                                \
		size_t n_ = unhex(hex, want_);                                                     \
		cr_assert_eq(len, n_, "%zu octets, expected %zu", (size_t)(len), n_);              \
		cr_expect_arr_eq(got, want_, n_);                                                  \
	} while (0)

/* The next segment is exactly this. */
#define expect_pull(s, hex)                                                                        \
	do {                                                                                       \
		uint8_t out_[4096];                                                                \
		size_t got_ = pull(s, 1500, out_);                                                 \
		expect_octets(out_, got_, hex);                                                    \
	} while (0)

#define TERM_HDR "41 47 00000000 00000002 00000001 00000000 "

/* The stream ended with exactly this Terminate (its header's octets), and sends no more. */
#define expect_term(s, hex)                                                                        \
	do {                                                                                       \
		uint8_t rest_[1600];                                                               \
		expect_pull(s, TERM_HDR hex);                                                      \
		cr_expect_eq(pull(s, 1500, rest_), 0);                                             \
		cr_expect_eq((s)->terms, 1);                                                       \
		cr_expect_not((s)->by_peer);                                                       \
	} while (0)

#define expect_wc(wc, id, o, st)                                                                   \
	do {                                                                                       \
		cr_expect_eq((wc).wr_id, (uint64_t)(id));                                          \
		cr_expect_eq((wc).op, o);                                                          \
		cr_expect_eq((wc).status, st);                                                     \
	} while (0)

#endif
