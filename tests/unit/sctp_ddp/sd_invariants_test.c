/* SPDX-License-Identifier: BSD-2-Clause */
/* What an association checks of itself in builds with assertions: each of these faults stops the
 * program. */
#include "unit/spoil.h"
#include "support/sd_world.h"

#ifdef DDPS_ASSERTS

static struct sd_world w;

static struct ddps_sd_pair *first(void *on)
{
	return ddps_sd_pair_find(on, 0);
}

static void check_carrier(void *on)
{
	ddps_sd_check(on);
}

static void hold_uncounted(void *on)
{
	((struct ddps_sd_carrier *)on)->held++;
}

static void count_a_session_twice(void *on)
{
	((struct ddps_sd_carrier *)on)->nsessions++;
}

static void forget_a_pair(void *on)
{
	((struct ddps_sd_carrier *)on)->npairs--;
}

static void count_a_request_on(void *on)
{
	((struct ddps_sd_carrier *)on)->outgoing++;
}

static void wait_uncounted(void *on)
{
	first(on)->waits = true;
}

static void line_up_in_no_list(void *on)
{
	first(on)->in_seg = true;
}

static void hold_more_than_there_is(void *on)
{
	first(on)->rx.count++;
}

static void belong_to_another_stream(void *on)
{
	first(on)->stream++;
}

Test(sd_invariants, of_an_association)
{
	void (*const spoils[])(void *) = { hold_uncounted,	    count_a_session_twice,
					   forget_a_pair,	    count_a_request_on,
					   wait_uncounted,	    line_up_in_no_list,
					   hold_more_than_there_is, belong_to_another_stream };

	sd_world_init(&w);
	sd_send_segment(&w, sd_raw_open(&w, 0), 0, 2, 0);
	EXPECT_EACH_STOPS(spoils, check_carrier, sd_carrier_of(&w, 0));
	sd_world_fini(&w);
}

#endif
