/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of DTLS 1.2.  The input seals records at one end and brings them to the other in an order of its own,
 * several times, changed, cut, or several in a datagram; a model says which have to be taken: each once, unless
 * it is more than a window behind.
 */
#include "fuzz.h"
#include "secure/dtls/dtls.h"
#include "support/aead_stub.h"
#include <errno.h>
#include <string.h>

#define RECORDS 256u
#define LEN_MAX 120u

enum { OP_SEAL, OP_SKIP, OP_GIVE, OP_CHANGE, OP_RAW, OP_TWO, OPS };

struct sealed {
	uint8_t wire[LEN_MAX + DDPS_DTLS_OVERHEAD];
	size_t len, content;
	uint64_t seq;
	bool taken;
};

struct run {
	struct ddps_dtls *from, *to;
	struct sealed r[RECORDS];
	unsigned n;
	uint64_t high;
	unsigned taken, replayed;
};

static uint64_t number_of(const uint8_t *wire)
{
	uint64_t n = 0;

	for (int i = 5; i < 11; i++)
		n = n << 8 | wire[i];
	return n;
}

static void seal_record(struct run *r, uint8_t len)
{
	struct sealed *s = &r->r[r->n];
	uint8_t content[LEN_MAX];
	struct iovec iov[2] = { { content, len % LEN_MAX / 3 }, { NULL, 0 } };
	ssize_t n;

	if (r->n == RECORDS)
		return;
	s->content = len % LEN_MAX;
	memset(content, (int)r->n, sizeof content);
	iov[1] = (struct iovec){ content + iov[0].iov_len, s->content - iov[0].iov_len };
	n = ddps_dtls_seal(r->from, DDPS_DTLS_DATA, iov, 2, s->wire, sizeof s->wire);
	FUZZ_CHECK(n == (ssize_t)(s->content + ddps_dtls_overhead(r->from)));
	s->len = (size_t)n;
	s->seq = number_of(s->wire);
	FUZZ_CHECK(!r->n || s->seq > r->r[r->n - 1].seq);
	r->n++;
}

/* As a network without order does it: numbers that nobody sees. */
static void skip_numbers(struct run *r, unsigned n)
{
	uint8_t wire[DDPS_DTLS_OVERHEAD];

	for (unsigned i = 0; i < n; i++)
		FUZZ_CHECK(ddps_dtls_seal(r->from, DDPS_DTLS_DATA, NULL, 0, wire, sizeof wire) > 0);
}

/* What begins at @p is the record @s. */
static void give_record(struct run *r, struct sealed *s, uint8_t *p, size_t n)
{
	const bool fresh = !s->taken && (s->seq >= r->high || r->high - s->seq <= DDPS_DTLS_WINDOW);
	uint8_t *to = p + ddps_dtls_content(r->to);
	struct ddps_dtls_head h;
	ssize_t len;

	FUZZ_CHECK(ddps_dtls_head(&h, p, n) && h.len == s->len && h.type == DDPS_DTLS_DATA);
	len = ddps_dtls_open(r->to, &h, p, to);
	if (!fresh) {
		FUZZ_CHECK(len == -EALREADY);
		r->replayed++;
		return;
	}
	FUZZ_CHECK(len == (ssize_t)s->content);
	for (size_t i = 0; i < s->content; i++)
		FUZZ_CHECK(to[i] == (uint8_t)(s - r->r));
	s->taken = true;
	r->taken++;
	if (s->seq >= r->high)
		r->high = s->seq + 1;
}

static void give_two(struct run *r, struct sealed *a, struct sealed *b)
{
	uint8_t both[2 * sizeof a->wire], *copy;

	memcpy(both, a->wire, a->len);
	memcpy(both + a->len, b->wire, b->len);
	copy = fuzz_exact(both, a->len + b->len);
	give_record(r, a, copy, a->len + b->len);
	give_record(r, b, copy + a->len, b->len);
	free(copy);
}

/* Nothing of it is taken, unless it is not changed at all. */
static void give_changed(struct run *r, const uint8_t *p, size_t n)
{
	uint8_t *copy = fuzz_exact(p, n);
	struct ddps_dtls_head h;

	if (ddps_dtls_head(&h, copy, n)) {
		FUZZ_CHECK(h.len >= DDPS_DTLS_HEADER && h.len <= n);
		FUZZ_CHECK(ddps_dtls_open(r->to, &h, copy,
					  copy + (h.len > ddps_dtls_overhead(r->to)
							  ? ddps_dtls_content(r->to)
							  : 0)) < 0);
	}
	free(copy);
}

static void do_op(struct run *r, struct ddps_rbuf *in)
{
	uint8_t op = ddps_rbuf_u8(in) % OPS, a = ddps_rbuf_u8(in);
	struct sealed *s = &r->r[r->n ? a % r->n : 0];
	const uint8_t *p;
	uint8_t *copy;
	size_t n;

	if (op == OP_SEAL)
		seal_record(r, a);
	else if (op == OP_SKIP)
		skip_numbers(r, a % 8 ? a : 1500);
	if (op == OP_RAW) {
		p = fuzz_some(in, a, &n);
		give_changed(r, p, n);
	}
	if (!r->n || op < OP_GIVE || op == OP_RAW)
		return;
	copy = fuzz_exact(s->wire, s->len);
	if (op == OP_GIVE) {
		give_record(r, s, copy, s->len);
	} else if (op == OP_TWO) {
		give_two(r, s, &r->r[r->n - 1]);
	} else {
		n = ddps_rbuf_u8(in);
		copy[n % s->len] ^= (uint8_t)(1u << a % 8);
		give_changed(r, copy, a & 64 ? s->len - n % s->len : s->len);
	}
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum ddps_suite suites[] = { DDPS_SUITE_AES_128_GCM,
						  DDPS_SUITE_CHACHA20_POLY1305 };
	struct ddps_rbuf in = ddps_rbuf_init(data, size);
	struct ddps_dtls_config c = { .aead = aead_stub(), .epoch = 1 };
	const struct ddps_dtls_stats *st;
	struct run *r = calloc(1, sizeof *r);
	void *mem[2];

	FUZZ_CHECK(r);
	c.suite = suites[ddps_rbuf_u8(&in) & 1];
	c.tx.seq = ddps_rbuf_u8(&in);
	memset(c.tx.key, 5, sizeof c.tx.key);
	c.rx = c.tx;
	for (int i = 0; i < 2; i++) {
		mem[i] = aligned_alloc(DDPS_AEAD_ALIGN, ddps_dtls_size(&c));
		FUZZ_CHECK(mem[i] && !ddps_dtls_init(mem[i], &c, i ? &r->to : &r->from));
	}
	while (fuzz_more(&in))
		do_op(r, &in);
	st = ddps_dtls_stats(r->to);
	FUZZ_CHECK(st->opened == r->taken && st->replayed >= r->replayed);
	ddps_dtls_wipe(r->from);
	ddps_dtls_wipe(r->to);
	FUZZ_CHECK(!aead_stub_alive);
	free(mem[0]);
	free(mem[1]);
	free(r);
	return 0;
}
