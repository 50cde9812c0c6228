/* SPDX-License-Identifier: BSD-2-Clause */
/* What a stream checks of itself in builds with assertions: each of these faults stops the program. */
#include "rdmap_fixture.h"
#include "unit/spoil.h"

#ifdef DDPS_ASSERTS

static void check_stream(void *on)
{
	ddps_rdmap_check(((struct side *)on)->r);
}

static void ask_uncounted(void *on)
{
	((struct side *)on)->r->reads_out++;
}

static void pass_the_tail(void *on)
{
	struct ddps_rdmap *s = ((struct side *)on)->r;

	s->sq.next = s->sq.tail + 1;
}

static void post_too_many(void *on)
{
	struct ddps_rdmap *s = ((struct side *)on)->r;

	s->rq.tail += s->rq.depth + 1;
}

static void ack_what_did_not_leave(void *on)
{
	((struct side *)on)->r->tx_acked++;
}

Test(rdmap_invariants, of_a_stream)
{
	static struct side s;
	void (*const spoils[])(void *) = { ask_uncounted, pass_the_tail, post_too_many,
					   ack_what_did_not_leave };

	open_rdmap_side(&s);
	EXPECT_EACH_STOPS(spoils, check_stream, &s);
	close_rdmap_side(&s);
}

#endif
