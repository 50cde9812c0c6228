/* SPDX-License-Identifier: BSD-2-Clause */
/* Records from a port that nobody has: whose keys are tried, how often, and what that costs them. */
#include "sd_dtls_fixture.h"
#include <unistd.h>

TestSuite(sd_dtls_trials, .timeout = 60);

static uint64_t count_forged_by(unsigned i)
{
	return ddps_dtls_stats(dtls_at(&sn, i)->cur.rec)->forged;
}

#define MANY 10u

static struct side dials[MANY];

static void start_many(unsigned n)
{
	start_dtls_nodes();
	for (unsigned i = 0; i < n; i++) {
		dial_dtls_side(&dials[i], &fx_up);
		DTLS_UNTIL(dials[i].up && srv.accepted == i + 1);
	}
}

static void make_junk(uint8_t r[DDPS_SN_DTLS_MTU], size_t n)
{
	memset(r, 7, n);
	r[0] = DDPS_DTLS_DATA;
	r[1] = 254;
	r[2] = 253;
	r[3] = 0;
	r[4] = 1;
	r[11] = (uint8_t)((n - DDPS_DTLS_HEADER) >> 8);
	r[12] = (uint8_t)(n - DDPS_DTLS_HEADER);
}

Test(sd_dtls_trials, a_record_of_nobody_is_tried_by_eight_who_take_turns)
{
	static uint8_t long_one[20000];
	uint8_t junk[DDPS_SN_DTLS_MTU];
	uint64_t least = 100, most = 0, all = 0;

	start_many(MANY);
	make_junk(junk, 100);
	give_datagram(dtls_port(), 0, ELSEWHERE, junk, 100);
	cr_expect_eq(sn.env.secured.tried, 8);
	give_datagram(dtls_port(), 0, ELSEWHERE, junk, 100);
	cr_expect_eq(sn.env.secured.tried, 16);
	for (unsigned i = 0; i < MANY; i++) {
		const uint64_t n = count_forged_by(i);

		least = n < least ? n : least;
		most = n > most ? n : most;
		all += n;
	}
	cr_expect_eq(all, 16);
	cr_expect_leq(most - least, 1, "%u to %u", (unsigned)least, (unsigned)most);
	give_datagram(dtls_port(), 0x0a000001, ELSEWHERE, junk, 100);
	cr_expect_eq(sn.env.secured.tried, 16, "nobody has that address");
	make_junk(long_one, DDPS_DTLS_OVERHEAD + DDPS_DTLS_CONTENT + 1);
	give_datagram(dtls_port(), 0, ELSEWHERE, long_one,
		      DDPS_DTLS_OVERHEAD + DDPS_DTLS_CONTENT + 1);
	cr_expect_eq(sn.env.secured.tried, 16, "it is no record of anybody's");
	stop_dtls_nodes();
}

/* Whoever had tried in vain has not been lied to. */
Test(sd_dtls_trials, the_one_whose_it_is_clears_the_others)
{
	enum { FEW = 3 };
	uint8_t r[DDPS_SN_DTLS_MTU];
	size_t n;

	start_many(FEW);
	for (unsigned i = FEW; i--;) {
		n = seal_by_hand(dtls_at(&cn, i), DDPS_DTLS_DATA, "some octets", 11, r);
		give_datagram(dtls_port(), 0, (uint16_t)(ELSEWHERE + i), r, n);
		cr_expect_eq(sn.env.secured.forged, 0);
		give_datagram(dtls_port(), 0, dtls_at(&cn, i)->udp->port, r, n);
		cr_expect_eq(sn.env.secured.replayed, FEW - i, "it was opened");
	}
	cr_expect_gt(sn.env.secured.tried, FEW);
	for (unsigned i = 0; i < FEW; i++)
		cr_expect_eq(count_forged_by(i), 0, "%u", i);
	stop_dtls_nodes();
}

/* Whatever is added. */
Test(sd_dtls_trials, what_waits_stays_in_its_memory)
{
	static const uint8_t octets[3000];

	for (size_t less = 0; less < 5; less++) {
		struct ddps_sn_framed f = { .p = NULL };

		cr_assert(ddps_sn_framed_add(&f, octets, 10));
		cr_assert_lt(f.size - f.len, sizeof octets);
		cr_assert(ddps_sn_framed_add(&f, octets, f.size - f.len - less));
		cr_expect_leq(f.len, f.size, "%u", (unsigned)less);
		cr_expect_eq(f.n, 2);
		ddps_sn_framed_drop(&f);
	}
}

Test(sd_dtls_trials, trials_have_a_rate_of_an_address_and_of_a_port)
{
	struct ddps_sn_dtls_chain *near;
	struct ddps_sn_dtls_table *t;
	uint8_t junk[DDPS_SN_DTLS_MTU];

	start_dtls_pair();
	t = dtls_port()->table;
	near = ddps_sn_dtls_near(dtls_port(), &dtls_listener()->peer);
	make_junk(junk, 100);
	for (unsigned i = 0; i < 2; i++) {
		const struct ddps_secured_stats was = sn.env.secured;
		struct ddps_sn_tries *of = i ? &t->tries : &near->tries,
				     *other = i ? &near->tries : &t->tries;
		const unsigned most = i ? 1000 : 250;
		uint64_t second;

		do { /* one second is enough for it */
			second = ddps_now() / SECOND;
			*of = (struct ddps_sn_tries){ second, most - 1 };
			*other = (struct ddps_sn_tries){ second, 0 };
			sn.env.secured = was;
			for (unsigned k = 0; k < 5; k++)
				give_datagram(dtls_port(), 0, ELSEWHERE, junk, 100);
		} while (ddps_now() / SECOND != second);
		cr_expect_eq(sn.env.secured.tried, was.tried + 1);
		cr_expect_eq(sn.env.secured.untried, was.untried + 4);
		cr_expect_eq(of->n, most);
		of->second--;
		give_datagram(dtls_port(), 0, ELSEWHERE, junk, 100);
		cr_expect_eq(sn.env.secured.tried, was.tried + 2, "the next second");
		cr_expect_eq(of->n, 1);
	}
	stop_dtls_nodes();
}

/* Those that are under way are no use, and looks at them have a bound, too. */
Test(sd_dtls_trials, looks_have_a_bound)
{
	struct ddps_sn_dtls_chain *near;
	struct ddps_sn_dtls *c;
	uint8_t junk[DDPS_SN_DTLS_MTU];

	start_dtls_pair();
	c = dtls_listener();
	near = ddps_sn_dtls_near(c->udp, &c->peer);
	for (uint16_t i = 0; i < 70; i++)
		cr_assert(ddps_sn_dtls_new(c->udp, &c->peer, (uint16_t)(100 + i), &c->local));
	TAILQ_REMOVE(&near->near, c, of_near);
	TAILQ_INSERT_TAIL(&near->near, c, of_near);
	make_junk(junk, 100);
	give_datagram(dtls_port(), 0, ELSEWHERE, junk, 100);
	cr_expect_eq(sn.env.secured.tried, 0);
	give_datagram(dtls_port(), 0, ELSEWHERE, junk, 100);
	cr_expect_eq(sn.env.secured.tried, 1);
	stop_dtls_nodes();
}

Test(sd_dtls_trials, one_without_memory_leaves_nothing)
{
	struct ddps_sn_dtls *c;
	unsigned fails = 0;
	long live;

	start_dtls_pair();
	c = dtls_listener();
	do {
		live = mem_live();
		mem_fail(++fails);
	} while (!ddps_sn_dtls_new(c->udp, &c->peer, 100, &c->local) && mem_live() == live);
	cr_expect_not(mem_failed());
	cr_expect_gt(fails, 2);
	mem_fail(0);
	stop_dtls_nodes();
}

/* ---- what is opened ---- */

/* The last datagram of a run is shorter than the others. */
Test(sd_dtls_trials, what_is_behind_a_run_is_not_looked_at)
{
	static const uint8_t junk[100];
	uint8_t all[3 * DDPS_SN_DTLS_MTU];
	uint16_t port;
	size_t a, ab, abc;

	start_dtls_pair();
	port = dtls_dialler()->udp->port;
	a = seal_by_hand(dtls_dialler(), DDPS_DTLS_DATA, junk, sizeof junk, all);
	ab = a + seal_by_hand(dtls_dialler(), DDPS_DTLS_DATA, junk, 1, all + a);
	abc = ab + seal_by_hand(dtls_dialler(), DDPS_DTLS_DATA, junk, 2, all + ab);
	cr_assert_lt(abc - a, a);
	give_datagram(dtls_port(), 0, 0, all, abc); /* which is ignored, and lies there */
	dtls_run = a;
	give_datagram(dtls_port(), 0, port, all, ab);
	dtls_run = 0;
	give_datagram(dtls_port(), 0, port, all + ab, abc - ab);
	cr_expect_eq(sn.env.secured.replayed, 0);
	give_datagram(dtls_port(), 0, port, all, abc);
	cr_expect_eq(sn.env.secured.replayed, 3);
	stop_dtls_nodes();
}

/* A NAT on the way forgets: the dialler's datagrams come from another port. */
static void move_dialler(void)
{
	struct ddps_sn_sock *udp = dtls_of(&cn)->udp;
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof at;

	ddps_io_del(cn.env.loop, &udp->io);
	close(udp->io.fd);
	udp->io.fd = ddps_sd_sock_open(AF_INET, false, &udp->gso);
	cr_assert_geq(udp->io.fd, 0);
	cr_assert_eq(bind(udp->io.fd, (struct sockaddr *)&at, len), 0);
	cr_assert_eq(getsockname(udp->io.fd, (struct sockaddr *)&at, &len), 0);
	cr_assert_eq(ddps_io_set(cn.env.loop, &udp->io, POLLIN), 0);
	udp->port = ntohs(at.sin_port);
}

Test(sd_dtls_trials, a_peer_is_found_at_its_new_port)
{
	uint16_t home;

	start_dtls_pair();
	carry_dtls(&cli, &srv.peers[0], 2, 100);
	home = dtls_listener()->at.port;
	for (unsigned i = 1; i <= 2; i++) {
		move_dialler();
		cr_assert_neq(dtls_of(&cn)->udp->port, home);
		send_dtls_message(&cli, 300);
		DTLS_UNTIL(sn.env.secured.rebound == i && cli.acked == cli.handed);
		cr_expect_eq(dtls_listener()->at.port, dtls_of(&cn)->udp->port);
		cr_expect_null(dtls_listener()->roam.c);
		cr_expect_null(
			ddps_sn_dtls_find(dtls_listener()->udp, &dtls_listener()->peer, home));
		carry_dtls(&cli, &srv.peers[0], 5, 2000);
		home = dtls_listener()->at.port;
	}
	cr_expect_eq(sn.env.secured.forged, 0);
	stop_dtls_nodes();
}
