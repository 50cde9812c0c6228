/* SPDX-License-Identifier: BSD-2-Clause */
/* Rings of octets in shared memory. */
#include "mpa_tcp/shm/shm_ring.h"
#include <string.h>

#define MASK	(DDPS_SHM_OCTETS - 1)
#define QUARTER (DDPS_SHM_OCTETS / 4)

_Static_assert((DDPS_SHM_OCTETS & MASK) == 0, "an index wraps where the ring does");

static const struct ddps_shm_words nobody;

static void open_ring(struct ddps_shm_ring *r, struct ddps_shm_memory *own)
{
	*r = (struct ddps_shm_ring){ .own = &own->words, .peer = &nobody };
}

void ddps_shm_open_writer(struct ddps_shm_ring *r, struct ddps_shm_memory *own)
{
	open_ring(r, own);
	r->to = own->octets;
}

void ddps_shm_open_reader(struct ddps_shm_ring *r, struct ddps_shm_memory *own)
{
	open_ring(r, own);
}

void ddps_shm_meet(struct ddps_shm_ring *r, const struct ddps_shm_memory *peer)
{
	r->peer = &peer->words;
	r->from = peer->octets;
}

/*
 * Who sleeps has said so before he looks once more, and who moves has moved before he looks for a sleeper.  Both are
 * sequentially consistent, so that there is one order of all four for both sides: not both can see nothing.
 */

/* Take the other side's sleep, if there is one: it is woken once, and can see for which number. */
static bool take_sleeper(struct ddps_shm_ring *r, const uint32_t *sleeps, uint32_t *woken)
{
	uint32_t number = __atomic_load_n(sleeps, __ATOMIC_SEQ_CST);

	if (number == r->woken)
		return false;
	r->woken = number;
	__atomic_store_n(woken, number, __ATOMIC_RELEASE);
	return true;
}

/* false: it was said before, and nobody was woken since. */
static bool say_asleep(struct ddps_shm_ring *r, uint32_t *sleeps, const uint32_t *woken)
{
	if (__atomic_load_n(sleeps, __ATOMIC_RELAXED) != __atomic_load_n(woken, __ATOMIC_RELAXED))
		return false;
	r->said++;
	__atomic_store_n(sleeps, ++r->sleeps, __ATOMIC_SEQ_CST);
	return true;
}

/* Take that back. */
static void say_awake(uint32_t *sleeps, const uint32_t *woken)
{
	__atomic_store_n(sleeps, __atomic_load_n(woken, __ATOMIC_RELAXED), __ATOMIC_SEQ_CST);
}

/* Copy between the ring from index @at on and @iov, @n octets in all. */
static void copy_ring_octets(const struct ddps_shm_ring *r, const struct iovec *iov, size_t n,
			     bool out)
{
	uint64_t at = r->at;

	for (; n; iov++) {
		uint8_t *user = iov->iov_base;
		size_t left = iov->iov_len < n ? iov->iov_len : n;

		n -= left;
		while (left) {
			size_t most = DDPS_SHM_OCTETS - (at & MASK);
			size_t now = left < most ? left : most;

			if (out)
				memcpy(user, r->from + (at & MASK), now);
			else
				memcpy(r->to + (at & MASK), user, now);
			user += now;
			at += now;
			left -= now;
		}
	}
}

static size_t count_octets(const struct iovec *iov, int n)
{
	size_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += iov[i].iov_len;
	return sum;
}

/* ---- the writer ---- */

static size_t get_ring_room(const struct ddps_shm_ring *r)
{
	return DDPS_SHM_OCTETS - (size_t)(r->at - r->seen);
}

size_t ddps_shm_room(struct ddps_shm_ring *r)
{
	uint64_t tail = __atomic_load_n(&r->peer->tail, __ATOMIC_SEQ_CST);

	/* It read what was not written, or has unread something. */
	if (r->at - tail > r->at - r->seen)
		r->bad = true;
	if (r->bad)
		return 0;
	r->seen = tail;
	return get_ring_room(r);
}

bool ddps_shm_wakes(struct ddps_shm_ring *r)
{
	return take_sleeper(r, &r->peer->reader_sleeps, &r->own->reader_woken);
}

size_t ddps_shm_write(struct ddps_shm_ring *r, const struct iovec *iov, int n, bool *wake)
{
	size_t len = count_octets(iov, n), room = get_ring_room(r);

	*wake = false;
	if (room < len || r->bad)
		room = ddps_shm_room(r);
	if (len > room)
		len = room;
	if (!len)
		return 0;
	copy_ring_octets(r, iov, len, false);
	r->at += len;
	__atomic_store_n(&r->own->head, r->at, __ATOMIC_SEQ_CST);
	*wake = ddps_shm_wakes(r);
	return len;
}

void ddps_shm_finish(struct ddps_shm_ring *r, enum ddps_shm_end end, bool *wake)
{
	__atomic_store_n(&r->own->end, (uint32_t)end, __ATOMIC_SEQ_CST);
	*wake = ddps_shm_wakes(r);
}

static bool has_room(struct ddps_shm_ring *r, size_t least)
{
	return ddps_shm_room(r) >= least || r->bad;
}

bool ddps_shm_await_room(struct ddps_shm_ring *r, size_t least)
{
	return has_room(r, least) ||
	       (say_asleep(r, &r->own->writer_sleeps, &r->peer->writer_woken) &&
		has_room(r, least));
}

/* ---- the reader ---- */

size_t ddps_shm_filled(struct ddps_shm_ring *r)
{
	uint64_t head = __atomic_load_n(&r->peer->head, __ATOMIC_SEQ_CST);

	/* It wrote more than there is room for, or has unwritten something. */
	if (head - r->at > DDPS_SHM_OCTETS || head - r->at < r->seen - r->at)
		r->bad = true;
	if (r->bad)
		return 0;
	r->seen = head;
	return (size_t)(head - r->at);
}

enum ddps_shm_end ddps_shm_ended(const struct ddps_shm_ring *r)
{
	uint32_t end = __atomic_load_n(&r->peer->end, __ATOMIC_SEQ_CST);

	return end > DDPS_SHM_RESET ? DDPS_SHM_RESET : (enum ddps_shm_end)end;
}

size_t ddps_shm_read(struct ddps_shm_ring *r, const struct iovec *iov, int n, bool *wake)
{
	size_t len = count_octets(iov, n), filled = ddps_shm_filled(r);
	uint64_t before = r->at;

	*wake = false;
	if (len > filled)
		len = filled;
	if (!len)
		return 0;
	copy_ring_octets(r, iov, len, true);
	r->at += len;
	/* A writer that sleeps needs a quarter at most, and whoever empties the ring passes one often enough. */
	if (before / QUARTER == r->at / QUARTER) {
		__atomic_store_n(&r->own->tail, r->at, __ATOMIC_RELEASE);
		return len;
	}
	__atomic_store_n(&r->own->tail, r->at, __ATOMIC_SEQ_CST);
	*wake = take_sleeper(r, &r->peer->writer_sleeps, &r->own->writer_woken);
	return len;
}

static bool has_news(struct ddps_shm_ring *r)
{
	return ddps_shm_filled(r) || ddps_shm_ended(r) || r->bad;
}

bool ddps_shm_await_octets(struct ddps_shm_ring *r)
{
	return has_news(r) ||
	       (say_asleep(r, &r->own->reader_sleeps, &r->peer->reader_woken) && has_news(r));
}

void ddps_shm_awake_reader(struct ddps_shm_ring *r)
{
	say_awake(&r->own->reader_sleeps, &r->peer->reader_woken);
}

void ddps_shm_awake_writer(struct ddps_shm_ring *r)
{
	say_awake(&r->own->writer_sleeps, &r->peer->writer_woken);
}
