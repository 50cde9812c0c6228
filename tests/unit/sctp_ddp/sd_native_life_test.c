/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of an association of the native SCTP: coming up, being taken or left, and its end; what is reported
 * of it, and what is left. */
#include "sd_native_addr_fixture.h"
#include "sctp/sctp_in.h"
#include "unit/mem_fixture.h"

TestSuite(sd_native_life, .timeout = 60);

static unsigned associations(const struct node *n)
{
	struct ddps_sctp_stats st;

	ddps_sctp_stats(((const struct ddps_sn_env *)n->ctx)->e, &st);
	return st.assocs;
}

/* ---- coming up ---- */

static unsigned answers;

static void note_sd_native_life_answered(void *user)
{
	struct side *s = user;

	answers++;
	cr_expect_eq(s->up, 0, "first");
	B->info(s->a, &s->info);
	cr_expect_eq(s->info.in_streams, DDPS_SCTP_STREAMS);
}

Test(sd_native_life, the_peers_answer_is_reported_before_it_is_up)
{
	struct ddps_sd_assoc_up up = fx_up;
	struct ddps_uri uri = { 0 };

	up.answered = note_sd_native_life_answered;
	start_sd_pair(AF_INET);
	uri.encap = srv.encap;
	cli.b = B;
	cr_assert_eq(B->connect(&cn.env, &cn.ctx, &uri, (struct sockaddr *)&srv.sa, srv.sa_len,
				&(struct ddps_llp_param){ .connect_ms = 5000 }, &up, &cli, &cli.a),
		     0);
	WAIT_FOR(cli.up && srv.accepted, &cn, &sn);
	cr_expect_eq(answers, 1);
	cr_expect_not(ddps_timer_runs(&cli.a->deadline), "it came up in time");
	B->abort(cli.a);
	ddps_sn_up.answered(cli.a);
	cr_expect_eq(answers, 1, "it is over");
	stop_sd_pair();
}

/* Whoever was informed of a size, or has asked at a turn of its life, is informed of it no more. */
Test(sd_native_life, a_size_is_reported_once, .description = "5043-9-1")
{
	set_sd_pair_up(AF_INET);
	WAIT_FOR(widened(), &cn, &sn);
	ddps_sn_up.acked(cli.a, 0);
	ddps_sn_up.acked(srv.peers[0].a, 0);
	cr_expect(cli.paths && srv.peers[0].paths, "the loopback interface's has been answered");
	cli.paths = srv.peers[0].paths = 0;
	ddps_sn_up.acked(cli.a, 0);
	ddps_sn_up.acked(srv.peers[0].a, 0);
	cr_expect_eq(cli.paths, 0);
	cr_expect_eq(srv.peers[0].paths, 0);
	for (unsigned i = 0; i < 2; i++) {
		cli.a->told = 1000; /* another one than now */
		for (int k = 0; k < 3; k++) {
			if (i)
				ddps_sn_up.acked(cli.a, 0);
			else
				ddps_sn_up.writable(cli.a);
		}
		cr_expect_eq(cli.paths, 1 + i);
	}
	cr_expect_eq(cli.writable, 3);
	cli.paths = 0;
	cli.a->told = 1000;
	ddps_sn_up.answered(cli.a);
	ddps_sn_up.acked(cli.a, 0);
	cli.a->told = 1000;
	ddps_sn_up.up(cli.a);
	ddps_sn_up.acked(cli.a, 0);
	cr_expect_eq(cli.paths, 0);
	stop_sd_pair();
}

/* ---- accepting ---- */

static void (*taking)(struct ddps_sd_assoc *a);

static void accepted(void *user, struct ddps_sd_assoc *a)
{
	(void)user;
	srv.accepted++;
	taking(a);
}

static const struct ddps_sd_listen_up taker = { accepted, fx_failed };

static void take_with(void (*how)(struct ddps_sd_assoc *a))
{
	taking = how;
	srv.ep->up = &taker;
}

static void free_sd_native_life(struct ddps_sd_assoc *a)
{
	B->free(a);
	cr_expect_null(srv.ep->ne->accepting);
}

Test(sd_native_life, one_may_be_freed_when_it_is_shown)
{
	start_sd_pair(AF_INET);
	take_with(free_sd_native_life);
	cr_assert_eq(try_connect(&cli, &cn, B, &srv.sa, srv.sa_len, srv.encap, 5000), 0);
	WAIT_FOR(cli.gone, &cn, &sn);
	cr_expect_eq(cli.end.code, DDPS_E_REFUSED);
	cr_expect_eq(srv.accepted, 1);
	cr_expect_eq(associations(&sn), 0);
	cr_expect(TAILQ_EMPTY(&srv.ep->ne->assocs));
	stop_sd_pair();
}

static void free_another(struct ddps_sd_assoc *a)
{
	(void)a;
	B->free(srv.peers[0].a);
}

/* Whatever its owner did meanwhile. */
Test(sd_native_life, one_that_nobody_takes_is_freed)
{
	struct side other = { 0 };

	set_sd_pair_up(AF_INET);
	take_with(free_another);
	cr_assert_eq(try_connect(&other, &cn, B, &srv.sa, srv.sa_len, srv.encap, 5000), 0);
	WAIT_FOR(other.gone && cli.gone, &cn, &sn);
	cr_expect_eq(other.end.code, DDPS_E_REFUSED);
	cr_expect_eq(associations(&sn), 0);
	cr_expect(TAILQ_EMPTY(&srv.ep->ne->assocs));
	stop_sd_pair();
}

/* One more association, with the @n-th allocation failing that the server makes of the peer's cookie;
 * whether there was one. */
static bool does_poor_sd_native_life_fail(unsigned n)
{
	const unsigned had = srv.accepted;
	bool failed;

	cli = (struct side){ 0 };
	cr_assert_eq(try_connect(&cli, &cn, B, &srv.sa, srv.sa_len, srv.encap, 5000), 0);
	spin((struct node *[]){ &sn }, 1);
	spin((struct node *[]){ &cn }, 1);
	mem_fail(n);
	spin((struct node *[]){ &sn }, 1);
	failed = mem_failed();
	mem_fail(0);
	cr_expect_eq(associations(&sn), srv.accepted - had, "allocation %u", n);
	if (srv.accepted > had)
		B->free(srv.peers[had % MAX_PEERS].a);
	else
		cr_expect(failed, "allocation %u", n);
	B->free(cli.a);
	spin((struct node *[]){ &sn }, 1);
	cr_expect_eq(associations(&sn), 0, "allocation %u", n);
	return failed;
}

Test(sd_native_life, one_that_is_not_shown_for_lack_of_memory_is_not_kept)
{
	unsigned n = 1;

	start_sd_pair(AF_INET);
	while (does_poor_sd_native_life_fail(n))
		n++;
	cr_expect_gt(n, 3, "%u", n);
	stop_sd_pair();
}

/* ---- from outside of the loop ---- */

/* Nobody turns the loop of who did it. */
Test(sd_native_life, what_is_freed_says_so_immediately)
{
	set_sd_pair_up(AF_INET);
	B->free(cli.a);
	WAIT_FOR(srv.peers[0].gone, &sn);
	cr_expect_eq(srv.peers[0].end.code, DDPS_E_RESET);
	stop_sd_pair();
}

static bool is_sd_native_life_shut(struct side *s)
{
	s->b->info(s->a, &s->info);
	return s->info.shut;
}

Test(sd_native_life, a_window_that_opens_is_reported_immediately)
{
	struct side *s = &srv.peers[0];

	set_sd_pair_up(AF_INET);
	cr_assert_eq(send_one_sd_pair(&cli, 0, SEGMENT, 100), 0);
	WAIT_FOR(s->messages == 1 && is_sd_pair_acknowledged(&cli), &cn, &sn);
	cr_expect(B->keep(s->a, 64u << 20));
	cr_assert_eq(send_one_sd_pair(&cli, 0, SEGMENT, 100), 0);
	WAIT_FOR(is_sd_native_life_shut(&cli), &cn, &sn);
	cr_expect_not(B->keep(s->a, 0));
	WAIT_FOR(!is_sd_native_life_shut(&cli), &cn);
	stop_sd_pair();
}

static void leave_sd_native_life(void *user)
{
	B->fini(&cn.env, cn.ctx);
	cn.ctx = NULL;
	(void)user;
}

/* From inside of the loop, where what is to be sent waits for the end of the turn otherwise. */
Test(sd_native_life, who_leaves_says_so_before)
{
	struct ddps_task t = { .fn = leave_sd_native_life };

	set_sd_pair_up(AF_INET);
	ddps_task_post(cn.env.loop, &t);
	cr_assert_geq(ddps_loop_run(cn.env.loop), 0);
	cr_expect_null(cn.ctx);
	WAIT_FOR(srv.peers[0].gone, &sn);
	cr_expect_eq(srv.peers[0].end.code, DDPS_E_RESET);
	stop_sd_pair();
}

/* ---- ends ---- */

Test(sd_native_life, what_is_freed_gets_nothing_of_its_end)
{
	set_sd_pair_up(AF_INET);
	B->abort(cli.a);
	B->free(cli.a);
	cr_expect_null(cn.env.loop->tasks);
	WAIT_FOR(srv.peers[0].gone, &cn, &sn);
	cr_expect_eq(cli.gone, 0);
	stop_sd_pair();
}

Test(sd_native_life, the_first_reason_is_that_of_the_end)
{
	set_sd_pair_up(AF_INET);
	B->abort(cli.a);
	ddps_sn_up.restarted(cli.a);
	WAIT_FOR(cli.gone, &cn, &sn);
	cr_expect_eq(cli.end.code, DDPS_E_CLOSED);
	cr_expect_str_eq(cli.end.text, "aborted by this side");
	stop_sd_pair();
}

Test(sd_native_life, nothing_is_left_of_an_end_that_was_reported)
{
	const long live = mem_live();

	set_sd_pair_up(AF_INET);
	B->abort(cli.a);
	WAIT_FOR(cli.gone && srv.peers[0].gone, &cn, &sn);
	cr_expect_eq(cli.end.code, DDPS_E_CLOSED);
	B->free(cli.a);
	stop_sd_pair();
	cr_expect_eq(mem_live(), live);
}

Test(sd_native_life, a_message_without_memory_ends_it)
{
	uint8_t m[100] = { 0 };
	struct iovec iov = { m, sizeof m };

	set_sd_pair_up(AF_INET);
	mem_fail(1);
	cr_expect_eq(B->send(cli.a, 0, SEGMENT, &iov, 1), DDPS_E_NOMEM);
	WAIT_FOR(cli.gone, &cn, &sn);
	cr_expect_eq(cli.end.code, DDPS_E_NOMEM);
	cr_expect_eq(cli.end.sys_errno, 0, "no call of the system has failed");
	cr_expect_str_eq(cli.end.text, "no memory for a message of 100 octets");
	stop_sd_pair();
}
