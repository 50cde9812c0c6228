/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of outstanding TSNs: its memory, and what a search in it costs. */
#include "sctp_sent_fixture.h"
#include <malloc.h>
#include <string.h>

#define N(a) (sizeof(a) / sizeof *(a))

static struct world w;

static void end_sctp_ring(void)
{
	sent_end(&w);
}

TestSuite(sctp_ring, .fini = end_sctp_ring);

/* Packets of one chunk of 4 octets, up to this TSN; the first one is 1. */
static void send_to_sctp_ring(uint32_t tsn)
{
	while (w.s.next <= tsn) {
		ddps_sent_begin(&w.s, &w.p[0], w.now);
		cr_assert_eq(ddps_sent_add_new(&w.s, 20, 4, (void *)((uintptr_t)w.s.next + 7)), 0);
		ddps_sent_end(&w.s, 60, true);
		cr_assert_null(w.s.on, "no packet is in hand");
	}
}

/* The bitmaps lie behind the slots, in the same piece of memory. */
Test(sctp_ring, a_ring_has_room_for_its_bitmaps)
{
#ifdef M_MMAP_THRESHOLD /* not in every C library: there may be a page behind, or most of it */
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
#endif
	sent_begin(&w, 1, 1, UINT32_MAX);
	for (uint32_t size = 8; size <= 65536; size *= 2) {
		const char *end, *past;

		send_to_sctp_ring(size - 1);
		cr_assert_eq(w.s.mask, size - 1);
		cr_assert_eq((void *)w.s.lost, w.s.ring + size);
		past = (const char *)(w.s.lost_top + (size + 4095) / 4096);
		end = (const char *)w.s.ring + malloc_usable_size(w.s.ring);
		cr_expect_geq(w.s.lost_top - w.s.lost, (size + 63) / 64);
		cr_expect_leq(past, end, "%u", size);
		if (size < 65536)
			send_to_sctp_ring(size);
	}
}

/* It ends with the last word of the ring, and goes on at the first one. */
Test(sctp_ring, what_a_search_costs)
{
	static const struct {
		uint32_t held, from;
		unsigned steps;
	} is[] = { { 40, 30, 2 }, { 100, 70, 2 }, { 2100, 1000, 3 }, { 4000, 3999, 3 } };

	for (unsigned i = 0; i < N(is); i++) {
		uint32_t tsn = 0;
		uint64_t was;

		if (i)
			end_sctp_ring();
		sent_begin(&w, 1, 1, UINT32_MAX);
		send_to_sctp_ring(is[i].held);
		ddps_sent_mark(&w.s, 2);
		was = w.s.steps;
		cr_expect_not(ddps_sent_lowest(&w.s, is[i].from, &tsn), "it is before that");
		cr_expect_leq(w.s.steps - was, is[i].steps, "%u: %u", i,
			      (unsigned)(w.s.steps - was));
		cr_expect(ddps_sent_lowest(&w.s, 1, &tsn) && tsn == 2);
	}
}

/* All slots but one are taken: the last of them is behind the first, as the ring goes round. */
Test(sctp_ring, the_last_of_a_full_ring)
{
	struct ddps_sent_chunk c = { .tsn = 0 };

	sent_begin(&w, 1, 1, 1000);
	send_to_sctp_ring(7);
	cr_assert_eq(w.s.mask, 7);
	for (unsigned i = 0; i < 2; i++) {
		ddps_sent_mark(&w.s, 7);
		ddps_sent_slot(&w.s, 7)->flags |= SLOT_T3;
		ddps_sent_begin(&w.s, &w.p[0], w.now);
		cr_expect(ddps_sent_next_old(&w.s, &c));
		cr_expect_eq(c.tsn, 7);
		ddps_sent_end(&w.s, 40, true);
		ddps_sent_false_t3(&w.s, &w.p[0], w.now);
		cr_expect_eq(ddps_sent_slot(&w.s, 7)->state, SLOT_FLIGHT);
		cr_expect_eq(w.s.nlost, 0);
	}
}

/* A path is the same whatever was where it is put. */
Test(sctp_ring, a_path_in_memory_of_any_content)
{
	struct ddps_pmtu_limits lim = ddps_pmtu_limits(false, 1500);
	struct ddps_sent_path path;

	sent_begin(&w, 1, 1, 1000);
	memset(&path, 0xa5, sizeof path);
	ddps_sent_path_init(&w.s, &path, 2, &lim, 40);
	cr_expect(!path.flight && !path.nflight && !path.nlost && !path.nsacked);
	cr_expect(!path.packets && !path.resent && !path.lost && !path.spurious);
	cr_expect(!path.t3s && !path.probes && !path.undone && !path.episode);
	cr_expect(!path.within_host && !path.late && !path.t3_at && !path.lost_octets);
	cr_expect(!path.sacked_packets && !path.sacked_pn && !path.cc_round && !path.epi_pn);
	cr_expect(path.id == 2 && path.overhead == 40 && path.next_pn == 1);
	cr_expect_eq(ddps_sent_deadline(&w.s, &path), DDPS_SENT_NEVER);
	w.s.path[2] = NULL;
}

/* Without a ring nothing points to where it was. */
Test(sctp_ring, nothing_is_left_of_a_ring)
{
	static const struct ddps_sent_sack k = { .cum = 3, .a_rwnd = 1000 };
	struct ddps_sent_news news;

	sent_begin(&w, 1, 1, 1000);
	send_to_sctp_ring(3);
	cr_assert_eq(ddps_sent_sack(&w.s, &k, w.now, &news), DDPS_SENT_TAKEN);
	ddps_sent_rest(&w.s);
	cr_expect(!w.s.ring && !w.s.lost && !w.s.lost_top && !w.s.mask);
	cr_expect_null(w.s.conf->spares->last);
}

/* @s sends one chunk, which is acknowledged; its ring while that was outstanding. */
static const void *send_and_rest(struct ddps_sent *s, struct ddps_sent_path *p)
{
	const struct ddps_sent_sack k = { .cum = s->next, .a_rwnd = 1000 };
	struct ddps_sent_news news;
	const void *ring;

	ddps_sent_begin(s, p, w.now);
	cr_assert_eq(ddps_sent_add_new(s, 20, 4, &w), 0);
	ddps_sent_end(s, 60, false);
	ring = s->ring;
	cr_assert_eq(ddps_sent_sack(s, &k, w.now, &news), DDPS_SENT_TAKEN);
	return ring;
}

static void ignore_ring_acked(void *user, uint32_t tsn, void *chunk)
{
	(void)user, (void)tsn, (void)chunk;
}

/* Of all that rest one has a ring. */
Test(sctp_ring, whoever_rests_keeps_its_ring_until_another_one_does)
{
	const struct ddps_pmtu_limits lim = ddps_pmtu_limits(false, 1500);
	struct ddps_sent s[3];
	struct ddps_sent_path p[3];
	const void *ring[2];

	sent_begin(&w, 1, 1, 1000);
	for (unsigned i = 0; i < 3; i++) {
		ddps_sent_init(&s[i], w.s.conf, 1, 1000, ignore_ring_acked, NULL);
		ddps_sent_path_init(&s[i], &p[i], 0, &lim, 40);
	}
	ring[0] = send_and_rest(&s[0], &p[0]);
	cr_expect_eq(s[0].ring, ring[0]);
	cr_expect_eq(send_and_rest(&s[0], &p[0]), ring[0]);
	ring[1] = send_and_rest(&s[1], &p[1]);
	cr_expect_null(s[0].ring);
	cr_expect_eq(s[1].ring, ring[1]);
	cr_expect_eq(send_and_rest(&s[2], &p[2]), ring[0], "which is free");
	cr_expect_null(s[1].ring);
	cr_expect_eq(w.s.conf->spares->n, 1);
	ddps_sent_begin(&s[2], &p[2], w.now);
	cr_assert_eq(ddps_sent_add_new(&s[2], 20, 4, &w), 0);
	ddps_sent_end(&s[2], 60, false);
	send_and_rest(&s[1], &p[1]);
	cr_expect_eq(s[2].ring, ring[0], "in use");
	for (unsigned i = 0; i < 3; i++)
		ddps_sent_fini(&s[i]);
	cr_expect_null(w.s.conf->spares->last);
}

/* A packet into which nothing was put is none. */
Test(sctp_ring, a_packet_without_chunks)
{
	uint64_t pn;

	sent_begin(&w, 1, 1, 1000);
	pn = ddps_sent_begin(&w.s, &w.p[0], w.now);
	cr_expect_not(ddps_sent_end(&w.s, 40, true));
	cr_expect_null(w.s.on);
	cr_expect_eq(w.p[0].packets, 0);
	cr_expect_eq(ddps_sent_begin(&w.s, &w.p[0], w.now), pn);
	cr_expect_not(ddps_sent_end(&w.s, 40, true));
}
