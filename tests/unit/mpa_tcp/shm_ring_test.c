/* SPDX-License-Identifier: BSD-2-Clause */
/* Rings of octets in shared memory: nothing is lost or shown twice, nobody oversleeps, and what the other side writes
 * into them harms nobody. */
#include "mpa_tcp/shm/shm_ring.h"
#include "support/mpa_support.h"
#include <pthread.h>

static struct ddps_shm_memory *wm, *rm; /* of the writer, of the reader */
static struct ddps_shm_ring w, r;	/* one ring, from both sides */

static struct ddps_shm_memory *make_ring_side(void)
{
	struct ddps_shm_memory *m = aligned_alloc(4096, sizeof *m);

	cr_assert(m);
	memset(m, 0, sizeof *m);
	return m;
}

static void open_view_of_writer(void)
{
	ddps_shm_open_writer(&w, wm);
	ddps_shm_meet(&w, rm);
}

static void open_view_of_reader(void)
{
	ddps_shm_open_reader(&r, rm);
	ddps_shm_meet(&r, wm);
}

static void init(void)
{
	wm = make_ring_side();
	rm = make_ring_side();
	open_view_of_writer();
	open_view_of_reader();
}

static void fini(void)
{
	free(wm);
	free(rm);
}

TestSuite(shm_ring, .init = init, .fini = fini, .timeout = 60);

static uint8_t octet_of(uint64_t i)
{
	return (uint8_t)(i * 167 + (i >> 8));
}

/* Up to @max octets of @buf in a few pieces. */
static int cut_ring_pieces(uint8_t *buf, size_t max, uint32_t *seed, struct iovec *iov, size_t *sum)
{
	int n = 1 + (int)(mpa_random(seed) % 4);

	*sum = 0;
	for (int i = 0; i < n; i++) {
		size_t len = mpa_random(seed) % (max / 4);

		if (mpa_random(seed) % 8 == 0)
			len = 0;
		iov[i] = (struct iovec){ buf + *sum, len };
		*sum += len;
	}
	return n;
}

Test(shm_ring, brings_all_octets_in_order)
{
	const size_t most = DDPS_SHM_OCTETS + 4096;
	uint8_t *buf = malloc(most);
	uint64_t written = 0, read = 0;
	struct iovec iov[4];
	uint32_t seed = 1;
	bool wake;
	size_t n, sum;
	int k;

	cr_assert(buf);
	while (read < 64u * DDPS_SHM_OCTETS) {
		size_t max = mpa_random(&seed) % 2 ? most : 512;

		k = cut_ring_pieces(buf, max, &seed, iov, &sum);
		if (mpa_random(&seed) % 2) {
			for (size_t i = 0; i < sum; i++)
				buf[i] = octet_of(written + i);
			n = ddps_shm_write(&w, iov, k, &wake);
			cr_assert_eq(n, sum < DDPS_SHM_OCTETS - (written - read)
						? sum
						: DDPS_SHM_OCTETS - (written - read));
			written += n;
		} else {
			n = ddps_shm_read(&r, iov, k, &wake);
			cr_assert_eq(n, sum < written - read ? sum : written - read);
			for (size_t i = 0; i < n; i++)
				cr_assert_eq(buf[i], octet_of(read + i));
			read += n;
		}
		cr_assert_not(wake, "nobody sleeps");
		cr_assert_eq(ddps_shm_filled(&r), written - read);
		cr_assert_eq(ddps_shm_room(&w), DDPS_SHM_OCTETS - (written - read));
	}
	cr_expect_not(w.bad || r.bad);
	free(buf);
}

static struct iovec one_piece(size_t n)
{
	static uint8_t octets[DDPS_SHM_OCTETS];

	return (struct iovec){ octets, n };
}

Test(shm_ring, a_reader_that_sleeps_is_woken_once)
{
	struct iovec iov = one_piece(10);
	bool wake;

	cr_expect_not(ddps_shm_await_octets(&r));
	cr_expect_not(ddps_shm_await_octets(&r), "said already");
	cr_expect_eq(ddps_shm_write(&w, &iov, 1, &wake), 10);
	cr_expect(wake);
	cr_expect_eq(ddps_shm_write(&w, &iov, 1, &wake), 10);
	cr_expect_not(wake, "it was woken");
	cr_expect(ddps_shm_await_octets(&r), "there is something");
	cr_expect_eq(ddps_shm_write(&w, &iov, 1, &wake), 10);
	cr_expect_not(wake, "it did not go to sleep");
}

Test(shm_ring, a_reader_that_polls_is_not_woken)
{
	struct iovec iov = one_piece(10);
	bool wake;

	cr_expect_not(ddps_shm_await_octets(&r));
	ddps_shm_awake_reader(&r);
	cr_expect_eq(ddps_shm_write(&w, &iov, 1, &wake), 10);
	cr_expect_not(wake);
}

/* Who is woken while he takes it back is woken at most once more. */
Test(shm_ring, a_reader_that_takes_its_sleep_back_late)
{
	struct iovec iov = one_piece(10);
	unsigned woken = 0;
	bool wake;

	cr_expect_not(ddps_shm_await_octets(&r));
	cr_expect_eq(rm->words.reader_sleeps, 1);
	cr_expect(ddps_shm_wakes(&w));
	rm->words.reader_sleeps = 0; /* it has not seen that when it stores this */
	for (int i = 0; i < 5; i++) {
		cr_expect_eq(ddps_shm_write(&w, &iov, 1, &wake), 10);
		woken += wake;
	}
	cr_expect_eq(woken, 1);
	cr_expect_eq(ddps_shm_read(&r, &(struct iovec){ iov.iov_base, 50 }, 1, &wake), 50);
	cr_expect_not(ddps_shm_await_octets(&r));
	cr_expect(ddps_shm_wakes(&w), "it sleeps again");
}

/* The writer writes before it has met the reader, who goes to sleep meanwhile. */
Test(shm_ring, what_was_written_before_they_met)
{
	struct iovec iov = one_piece(10);
	bool wake;

	ddps_shm_open_writer(&w, wm);
	cr_expect_not(ddps_shm_await_octets(&r));
	cr_expect_eq(ddps_shm_write(&w, &iov, 1, &wake), 10);
	cr_expect_not(wake);
	cr_expect_eq(ddps_shm_room(&w), DDPS_SHM_OCTETS - 10);
	ddps_shm_meet(&w, rm);
	cr_expect(ddps_shm_wakes(&w));
	cr_expect_eq(ddps_shm_read(&r, &iov, 1, &wake), 10);
}

Test(shm_ring, a_writer_that_sleeps_is_woken_before_the_ring_is_empty)
{
	struct iovec iov = one_piece(DDPS_SHM_OCTETS);
	unsigned woken = 0;
	bool wake;

	cr_expect_eq(ddps_shm_write(&w, &iov, 1, &wake), DDPS_SHM_OCTETS);
	cr_expect_not(ddps_shm_await_room(&w, 1));
	iov.iov_len = 1000;
	for (size_t n = 0; n < DDPS_SHM_OCTETS;) {
		n += ddps_shm_read(&r, &iov, 1, &wake);
		woken += wake;
		if (wake) {
			cr_expect_geq(n, DDPS_SHM_OCTETS / 4, "not for little room");
			cr_expect_leq(n, DDPS_SHM_OCTETS / 4 + 1000);
			cr_expect(ddps_shm_await_room(&w, 1));
		}
	}
	cr_expect_eq(woken, 1);
	ddps_shm_awake_writer(&w);
}

/* Nobody else asks how much room there is; and whoever sleeps is woken for something only. */
Test(shm_ring, a_full_ring_has_room_again_when_octets_are_read)
{
	struct iovec iov = one_piece(DDPS_SHM_OCTETS);
	bool wake = true;

	cr_expect_eq(ddps_shm_read(&r, &iov, 1, &wake), 0);
	cr_expect_not(wake);
	cr_expect_eq(ddps_shm_write(&w, &iov, 1, &wake), DDPS_SHM_OCTETS);
	iov.iov_len = 50;
	wake = true;
	cr_expect_eq(ddps_shm_write(&w, &iov, 1, &wake), 0);
	cr_expect_not(wake);
	iov.iov_len = 100;
	cr_expect_eq(ddps_shm_read(&r, &iov, 1, &wake), 100);
	iov.iov_len = 60;
	cr_expect_eq(ddps_shm_write(&w, &iov, 1, &wake), 60);
	cr_expect_eq(ddps_shm_write(&w, &iov, 1, &wake), 40);
	cr_expect_eq(ddps_shm_write(&w, &iov, 1, &wake), 0);
	cr_expect_not(ddps_shm_await_room(&w, 1));
	iov.iov_len = 8;
	cr_expect_eq(ddps_shm_read(&r, &iov, 1, &wake), 8);
	cr_expect(ddps_shm_await_room(&w, 8));
	ddps_shm_awake_writer(&w);
	cr_expect_not(ddps_shm_await_room(&w, 9));
	cr_expect_eq(w.said, 2);
}

Test(shm_ring, an_end_wakes_and_stands_behind_the_octets)
{
	struct iovec iov = one_piece(10);
	bool wake;

	cr_expect_not(ddps_shm_await_octets(&r));
	cr_expect_eq(ddps_shm_write(&w, &iov, 1, &wake), 10);
	cr_expect_eq(ddps_shm_read(&r, &iov, 1, &wake), 10);
	cr_expect_not(ddps_shm_await_octets(&r));
	cr_expect_eq(ddps_shm_ended(&r), DDPS_SHM_OPEN);
	ddps_shm_finish(&w, DDPS_SHM_FIN, &wake);
	cr_expect(wake);
	cr_expect(ddps_shm_await_octets(&r));
	cr_expect_eq(ddps_shm_ended(&r), DDPS_SHM_FIN);
	ddps_shm_finish(&w, DDPS_SHM_RESET, &wake);
	cr_expect_eq(ddps_shm_ended(&r), DDPS_SHM_RESET);
}

/* ---- two threads ---- */

#define RUN (64u * DDPS_SHM_OCTETS)

struct ring_bell {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	unsigned rung;
};

static struct ring_bell to_reader = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 },
			to_writer = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 };

static void ring_it(struct ring_bell *b, bool wake)
{
	if (!wake)
		return;
	pthread_mutex_lock(&b->lock);
	b->rung++;
	pthread_cond_signal(&b->cond);
	pthread_mutex_unlock(&b->lock);
}

static void sleep_for_bell(struct ring_bell *b)
{
	pthread_mutex_lock(&b->lock);
	while (!b->rung)
		pthread_cond_wait(&b->cond, &b->lock);
	b->rung = 0;
	pthread_mutex_unlock(&b->lock);
}

static void *write_all(void *none)
{
	static uint8_t octets[3 * 4096];
	uint32_t seed = 7;
	bool wake;

	for (uint64_t at = 0; at < RUN;) {
		size_t n = 1 + mpa_random(&seed) % sizeof octets;
		struct iovec iov = { octets, n < RUN - at ? n : (size_t)(RUN - at) };

		for (size_t i = 0; i < iov.iov_len; i++)
			octets[i] = octet_of(at + i);
		at += ddps_shm_write(&w, &iov, 1, &wake);
		ring_it(&to_reader, wake);
		if (at < RUN && ddps_shm_room(&w) < 1000 && !ddps_shm_await_room(&w, 1000))
			sleep_for_bell(&to_writer);
	}
	return none;
}

/* It ends only if no wake-up is lost. */
Test(shm_ring, two_threads_that_sleep_lose_nothing)
{
	static uint8_t octets[5 * 4096];
	uint32_t seed = 8;
	uint64_t at = 0;
	pthread_t writer;
	bool wake;

	cr_assert_eq(pthread_create(&writer, NULL, write_all, NULL), 0);
	while (at < RUN) {
		struct iovec iov = { octets, 1 + mpa_random(&seed) % sizeof octets };
		size_t n = ddps_shm_read(&r, &iov, 1, &wake);

		ring_it(&to_writer, wake);
		for (size_t i = 0; i < n; i++)
			cr_assert_eq(octets[i], octet_of(at + i));
		at += n;
		if (!n && !ddps_shm_await_octets(&r))
			sleep_for_bell(&to_reader);
	}
	pthread_join(writer, NULL);
}

/* ---- a hostile side ---- */

static void set_head(uint64_t to)
{
	__atomic_store_n(&wm->words.head, to, __ATOMIC_RELEASE);
}

static void set_tail(uint64_t to)
{
	__atomic_store_n(&rm->words.tail, to, __ATOMIC_RELEASE);
}

static void check_bad_reader(uint64_t head)
{
	struct iovec iov = one_piece(DDPS_SHM_OCTETS);
	bool wake;

	set_head(head);
	cr_expect_eq(ddps_shm_filled(&r), 0, "%#llx", (unsigned long long)head);
	cr_expect(r.bad);
	cr_expect_eq(ddps_shm_read(&r, &iov, 1, &wake), 0);
	cr_expect(ddps_shm_await_octets(&r), "whoever waits learns it");
	set_head(r.at + 1);
	cr_expect_eq(ddps_shm_filled(&r), 0, "it stays bad");
}

Test(shm_ring, attack_more_octets_than_the_ring_has)
{
	static const uint64_t heads[] = { DDPS_SHM_OCTETS + 1, UINT64_MAX, UINT64_C(1) << 63,
					  UINT64_C(1) << 32, DDPS_SHM_OCTETS * 2 };

	for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
		open_view_of_reader();
		check_bad_reader(heads[i]);
	}
}

Test(shm_ring, attack_octets_that_are_taken_back)
{
	struct iovec iov = one_piece(10);
	bool wake;

	set_head(100);
	cr_expect_eq(ddps_shm_read(&r, &iov, 1, &wake), 10);
	check_bad_reader(99);
	open_view_of_reader();
	set_head(100);
	cr_expect_eq(ddps_shm_read(&r, &iov, 1, &wake), 10);
	check_bad_reader(9);
}

static void check_bad_writer(uint64_t tail)
{
	struct iovec iov = one_piece(DDPS_SHM_OCTETS);
	bool wake;

	set_tail(tail);
	cr_expect_eq(ddps_shm_room(&w), 0, "%#llx", (unsigned long long)tail);
	cr_expect(w.bad);
	cr_expect_eq(ddps_shm_write(&w, &iov, 1, &wake), 0);
	cr_expect(ddps_shm_await_room(&w, 1), "whoever waits learns it");
}

Test(shm_ring, attack_octets_read_that_were_not_written)
{
	struct iovec iov = one_piece(100);
	bool wake;

	cr_expect_eq(ddps_shm_write(&w, &iov, 1, &wake), 100);
	set_tail(100);
	cr_expect_eq(ddps_shm_room(&w), DDPS_SHM_OCTETS);
	check_bad_writer(101);
	open_view_of_writer();
	check_bad_writer(UINT64_MAX);
}

Test(shm_ring, attack_octets_that_are_unread)
{
	struct iovec iov = one_piece(100);
	bool wake;

	cr_expect_eq(ddps_shm_write(&w, &iov, 1, &wake), 100);
	set_tail(50);
	cr_expect_eq(ddps_shm_room(&w), DDPS_SHM_OCTETS - 50);
	check_bad_writer(49);
}

Test(shm_ring, attack_flags_and_ends_of_any_value)
{
	struct iovec iov = one_piece(10);
	bool wake;

	__atomic_store_n(&rm->words.reader_sleeps, UINT32_MAX, __ATOMIC_RELAXED);
	__atomic_store_n(&wm->words.end, UINT32_MAX, __ATOMIC_RELAXED);
	cr_expect_eq(ddps_shm_write(&w, &iov, 1, &wake), 10);
	cr_expect(wake);
	cr_expect_eq(ddps_shm_ended(&r), DDPS_SHM_RESET);
	cr_expect_eq(ddps_shm_write(&w, &iov, 1, &wake), 10);
	cr_expect_not(wake);
}

/* Anything at all in the words, at any time: no octet outside is touched, and what is moved has a bound. */
Test(shm_ring, attack_words_that_change_all_the_time)
{
	uint8_t *guarded = malloc(3000);
	uint32_t seed = 99;
	bool wake;

	cr_assert(guarded);
	for (unsigned i = 0; i < 200000; i++) {
		struct iovec iov = { guarded, mpa_random(&seed) % 3001 };
		uint64_t jump = mpa_random(&seed) % 4 ? mpa_random(&seed) % 4096
						      : (uint64_t)mpa_random(&seed) << 32;

		if (mpa_random(&seed) % 64 == 0) {
			open_view_of_reader();
			open_view_of_writer();
			set_head(0);
			set_tail(0);
		}
		if (mpa_random(&seed) % 2)
			set_head(r.seen + jump);
		else
			set_tail(w.seen + jump);
		cr_assert_leq(ddps_shm_read(&r, &iov, 1, &wake), iov.iov_len);
		cr_assert_leq(ddps_shm_write(&w, &iov, 1, &wake), iov.iov_len);
		cr_assert_leq(ddps_shm_filled(&r), DDPS_SHM_OCTETS);
		cr_assert_leq(ddps_shm_room(&w), DDPS_SHM_OCTETS);
	}
	free(guarded);
}
