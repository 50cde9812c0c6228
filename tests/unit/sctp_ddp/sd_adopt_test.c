/* SPDX-License-Identifier: BSD-2-Clause */
/* Associations that outlive their listener, and the listener that gets their requests next. */
#include "support/sd_world.h"
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdio.h>

#define OTHER_PORT (SD_PORT + 1)

static struct sd_world w;
static struct ddps_llp_listener *l[3];

static void init(void)
{
	sd_world_init(&w);
}

static void fini(void)
{
	for (unsigned i = 0; i < 3; i++)
		if (l[i])
			ddps_sctp_provider.listener_free(l[i]);
	sd_world_fini(&w);
}

TestSuite(sd_adopt, .init = init, .fini = fini, .timeout = 30);

static struct ddps_llp_listener *listen_sd_adopt_at(uint16_t port)
{
	static const struct ddps_llp_listen_up up = { 0 };
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct ddps_llp_listener *made;

	cr_assert_eq(ddps_sctp_provider.listen(&w.env, &w.uri, (struct sockaddr *)&sa, sizeof sa,
					       &w.lparam, &up, NULL, &made),
		     0);
	return made;
}

static void free_adopt_listener(unsigned i)
{
	ddps_sctp_provider.listener_free(l[i]);
	l[i] = NULL;
}

/* An association of a peer with the listener at @port, whose own port is @local; 0: it is not known. */
static struct ddps_sd_carrier *reach_adopt_listener(uint16_t port, uint16_t local)
{
	struct ddps_sd_assoc *raw = fake_sctp_raw_connect(&w.env, port);
	struct ddps_sd_provider *prov = w.env.sctp;
	struct ddps_sd_carrier *c;

	raw->peer->info.local_addr.port = local;
	sd_run(&w);
	c = TAILQ_LAST(&prov->carriers, ddps_sd_carrier_list);
	cr_assert_eq(c->assoc, raw->peer);
	return c;
}

static const struct ddps_sd_listener *get_adopt_listener(unsigned i)
{
	return (const struct ddps_sd_listener *)l[i];
}

Test(sd_adopt, the_port_says_whose_it_is)
{
	struct ddps_sd_carrier *here, *there, *nowhere;

	l[0] = listen_sd_adopt_at(SD_PORT);
	l[1] = listen_sd_adopt_at(OTHER_PORT);
	here = reach_adopt_listener(SD_PORT, 7174);
	there = reach_adopt_listener(OTHER_PORT, 7175);
	nowhere = reach_adopt_listener(OTHER_PORT, 0);
	cr_expect_eq(here->listener, get_adopt_listener(0));
	cr_expect_eq(there->listener, get_adopt_listener(1));
	free_adopt_listener(0);
	free_adopt_listener(1);
	cr_assert_null(here->listener);
	cr_assert_null(there->listener);
	l[1] = listen_sd_adopt_at(OTHER_PORT);
	cr_expect_null(here->listener);
	cr_expect_eq(there->listener, get_adopt_listener(1));
	cr_expect_null(nowhere->listener, "its port is not known");
	l[0] = listen_sd_adopt_at(SD_PORT);
	cr_expect_eq(here->listener, get_adopt_listener(0));
	cr_expect_eq(there->listener, get_adopt_listener(1));
	cr_expect_eq(get_adopt_listener(0)->idle.places, 1, "they carry nothing");
	cr_expect_eq(get_adopt_listener(1)->idle.places, 1);
}

Test(sd_adopt, one_that_has_a_listener_keeps_it)
{
	struct ddps_sd_carrier *c;

	l[0] = listen_sd_adopt_at(SD_PORT);
	c = reach_adopt_listener(SD_PORT, 7174);
	l[2] = listen_sd_adopt_at(SD_PORT);
	cr_expect_eq(c->listener, get_adopt_listener(0));
}

Test(sd_adopt, what_goes_or_is_of_another_backend_is_not_adopted)
{
	struct ddps_sd_backend other = fake_sctp;
	struct ddps_sd_carrier *goes, *stays;

	l[0] = listen_sd_adopt_at(SD_PORT);
	goes = reach_adopt_listener(SD_PORT, 7174);
	stays = reach_adopt_listener(SD_PORT, 7174);
	ddps_sd_carrier_up.peer_shutdown(goes);
	free_adopt_listener(0);
	cr_assert_eq(ddps_sd_use_backend(&w.env, &other, true, true), 0);
	l[1] = listen_sd_adopt_at(SD_PORT);
	cr_expect_null(goes->listener);
	cr_expect_null(stays->listener);
	free_adopt_listener(1);
	cr_assert_eq(ddps_sd_use_backend(&w.env, &fake_sctp, true, true), 0);
	l[0] = listen_sd_adopt_at(SD_PORT);
	cr_expect_null(goes->listener);
	cr_expect(ddps_timer_runs(&goes->linger));
	cr_expect_eq(stays->listener, get_adopt_listener(0));
}

/* An association of ours goes to the peer's port: that says nothing of requests. */
Test(sd_adopt, one_of_ours_is_not_adopted)
{
	struct sd_ulp u = { 0 };

	sd_raw_initiated(&w, &u, false);
	l[0] = listen_sd_adopt_at(1); /* as its local address says */
	cr_assert_eq(sd_carrier_of(&w, 0)->local_addr.port, 1);
	cr_expect_null(sd_carrier_of(&w, 0)->listener);
	sd_free(&u);
}

/* Requests of a session that is there are no concern of the next listener's bound. */
Test(sd_adopt, sessions_live_on)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct ddps_sd_carrier *c = sd_carrier_of(&w, 0);

	ddps_sctp_provider.listener_free(w.listener);
	w.listener = NULL;
	cr_expect_not(ddps_timer_runs(&c->linger));
	cr_expect_not(c->share.counted);
	sd_send_segment(&w, raw, 0, 1, 0);
	cr_expect_eq(w.req[0].segments, 1);
	sd_send(&w, raw, 2, "0000 0001");
	sd_expect(raw, 2, "0000 0004"); /* nobody listens */
	l[0] = listen_sd_adopt_at(1);
	cr_expect_eq(c->listener, get_adopt_listener(0));
	cr_expect_eq(get_adopt_listener(0)->half_open, 0);
	cr_expect_eq(get_adopt_listener(0)->idle.places, 0);
}

/* The refusal of a request that went with its listener leaves nevertheless. */
Test(sd_adopt, a_refusal_leaves_after_its_listener)
{
	struct ddps_sd_assoc *raw;

	w.accept = false;
	raw = sd_raw_to_listener(&w);
	sd_send(&w, raw, 0, "0000 0001");
	sd_free(&w.req[0]);
	ddps_sctp_provider.listener_free(w.listener);
	w.listener = NULL;
	sd_run(&w);
	sd_expect(raw, 0, "0000 0004");
}

/* A request that the program answers when another listener is there: it has a half-open place of that one. */
Test(sd_adopt, a_request_under_way_has_its_place)
{
	struct ddps_sd_assoc *raw;

	w.accept = false;
	raw = sd_raw_to_listener(&w);
	sd_send(&w, raw, 0, "0000 0001");
	cr_assert_eq(((const struct ddps_sd_listener *)w.listener)->half_open, 1);
	ddps_sctp_provider.listener_free(w.listener);
	w.listener = NULL;
	l[0] = listen_sd_adopt_at(1);
	cr_expect_eq(get_adopt_listener(0)->half_open, 1);
	sd_free(&w.req[0]);
	sd_run(&w);
	sd_expect(raw, 0, "0000 0004");
	cr_expect_eq(get_adopt_listener(0)->half_open, 0);
}
