/* SPDX-License-Identifier: BSD-2-Clause */
/* Of mutate.h: chance, lists, scripts. */
#include "mutate.h"

unsigned fuzz_roll(struct fuzz_dice *d, unsigned n)
{
	d->state = d->state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(d->state >> 33) % n;
}

bool fuzz_mutate_begin(struct fuzz_dice *d, unsigned seed)
{
	static int plain = -1;

	if (plain < 0)
		plain = getenv("FUZZ_PLAIN") != NULL;
	d->state = seed;
	return fuzz_roll(d, 2) && !plain;
}

uint64_t fuzz_odd_number(struct fuzz_dice *d, unsigned bits)
{
	const uint64_t all = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;

	switch (fuzz_roll(d, 5)) {
	case 0:
		return fuzz_roll(d, 3) & all;
	case 1:
		return all - (fuzz_roll(d, 3) & all);
	case 2:
		return (UINT64_C(1) << fuzz_roll(d, bits)) & all;
	default:
		return ((uint64_t)fuzz_roll(d, 1u << 30) << 32 ^ fuzz_roll(d, 1u << 30)) & all;
	}
}

/* ---- lists ---- */

void fuzz_pieces_insert(struct fuzz_pieces *s, unsigned at, const uint8_t *p, size_t len)
{
	FUZZ_CHECK(at <= s->n);
	if (s->n == FUZZ_PIECES)
		return;
	memmove(s->p + at + 1, s->p + at, (s->n - at) * sizeof *s->p);
	memmove(s->len + at + 1, s->len + at, (s->n - at) * sizeof *s->len);
	s->p[at] = p;
	s->len[at] = len;
	s->n++;
}

void fuzz_pieces_add(struct fuzz_pieces *s, const uint8_t *p, size_t len)
{
	fuzz_pieces_insert(s, s->n, p, len);
}

static void leave_out(struct fuzz_pieces *s, unsigned at)
{
	s->n--;
	memmove(s->p + at, s->p + at + 1, (s->n - at) * sizeof *s->p);
	memmove(s->len + at, s->len + at + 1, (s->n - at) * sizeof *s->len);
}

void fuzz_pieces_reorder(struct fuzz_pieces *s, struct fuzz_dice *d)
{
	unsigned at = s->n ? fuzz_roll(d, s->n) : 0;
	const uint8_t *p = s->n ? s->p[at] : NULL;
	size_t len = s->n ? s->len[at] : 0;
	unsigned how = fuzz_roll(d, 3);

	if (!s->n)
		return;
	if (how < 2)
		leave_out(s, at);
	if (how)
		fuzz_pieces_insert(s, fuzz_roll(d, s->n + 1), p, len);
}

size_t fuzz_pieces_join(const struct fuzz_pieces *s, uint8_t *out, size_t max)
{
	size_t n = 0;

	for (unsigned i = 0; i < s->n && s->len[i] <= max - n; n += s->len[i++])
		if (s->len[i])
			memcpy(out + n, s->p[i], s->len[i]);
	return n;
}

/* ---- scripts ---- */

static void cut_into_steps(const struct fuzz_script *s, struct fuzz_pieces *steps, const uint8_t *p,
			   size_t n)
{
	while (n) {
		size_t len = steps->n + 1 < FUZZ_PIECES ? s->step(p, n) : n;

		FUZZ_CHECK(len && len <= n);
		fuzz_pieces_add(steps, p, len);
		p += len;
		n -= len;
	}
}

static size_t change_script(const struct fuzz_script *s, uint8_t *data, size_t size, size_t max,
			    struct fuzz_dice *d)
{
	struct fuzz_pieces steps = { .n = 0 };
	uint8_t step[FUZZ_STEP_MAX], *was;
	size_t len = 0, n;
	unsigned at;

	was = fuzz_exact(data, size);
	cut_into_steps(s, &steps, was + s->head, size - s->head);
	at = fuzz_roll(d, steps.n + 1);
	if (at < steps.n && steps.len[at] <= sizeof step && fuzz_roll(d, 3)) {
		len = steps.len[at];
		memcpy(step, steps.p[at], len);
	}
	if (steps.n && !fuzz_roll(d, 3)) {
		fuzz_pieces_reorder(&steps, d);
	} else {
		if (len && fuzz_roll(d, 2))
			leave_out(&steps, at);
		len = s->change(step, len, d);
		FUZZ_CHECK(len <= sizeof step);
		fuzz_pieces_insert(&steps, at, step, len);
	}
	n = fuzz_pieces_join(&steps, data + s->head, max - s->head);
	free(was);
	return s->head + n;
}

size_t fuzz_mutate_script(const struct fuzz_script *s, uint8_t *data, size_t size, size_t max,
			  unsigned seed)
{
	struct fuzz_dice d;

	if (!fuzz_mutate_begin(&d, seed) || size < s->head || max < size)
		return LLVMFuzzerMutate(data, size, max);
	return change_script(s, data, size, max, &d);
}
