/* SPDX-License-Identifier: BSD-2-Clause */
/* An association of the native SCTP that is over: nothing comes up from it, and nothing goes down. */
#include "sctp_ddp/backend/native/sd_native.h"
#include "sd_pair_fixture.h"

TestSuite(sd_native_over, .fini = stop_sd_pair, .timeout = 60);

/* All that the engine could tell. */
static void engine_tells(struct ddps_sd_assoc *a)
{
	const struct ddps_sctp_msg m = { .ppid = SEGMENT, .data = (const uint8_t *)"x", .len = 1 };

	ddps_sn_up.answered(a);
	ddps_sn_up.up(a);
	ddps_sn_up.message(a, &m);
	ddps_sn_up.writable(a);
	ddps_sn_up.acked(a, 1000);
	ddps_sn_up.peer_shutdown(a);
	ddps_sn_up.restarted(a);
}

static void nothing_goes_down(struct ddps_sd_assoc *a)
{
	struct iovec iov = { (void *)(uintptr_t) "x", 1 };

	cr_expect_eq(CB->send(a, 0, SEGMENT, &iov, 1), DDPS_E_CLOSED);
	cr_expect_not(CB->keep(a, 1u << 30));
	CB->pause(a, true);
	CB->shutdown(a);
	CB->abort(a);
	CB->flush(a);
	cr_expect_eq(cli.gone, a->gone);
}

Test(sd_native_over, nothing_follows_an_abort)
{
	struct ddps_assoc_stats st = { 0 };
	struct ddps_path_stats path = { 0 };
	struct side before;

	set_sd_pair_up(AF_INET);
	cr_expect_eq(CB->assoc_stats(cli.a, &st), 0);
	cr_expect_eq(st.paths, 1);
	cr_expect_eq(CB->path_stats(cli.a, 0, &path), 0);
	cr_expect(path.primary);
	cr_expect_lt(CB->path_stats(cli.a, 1, &path), 0, "there is one path");
	cr_expect_lt(CB->set_primary(cli.a, 1), 0);
	cr_expect_eq(CB->set_primary(cli.a, 0), 0);

	before = cli;
	CB->abort(cli.a);
	engine_tells(cli.a); /* its end is to be reported */
	nothing_goes_down(cli.a);
	cr_expect_arr_eq(&cli, &before, sizeof cli);
	WAIT_FOR(cli.gone, &cn, &sn);
	cr_expect_eq(cli.end.code, DDPS_E_CLOSED);
	cr_expect_str_eq(cli.end.text, "aborted by this side");

	before = cli;
	engine_tells(cli.a); /* it was reported */
	ddps_sn_up.gone(cli.a, &cli.end);
	nothing_goes_down(cli.a);
	cr_expect_arr_eq(&cli, &before, sizeof cli, "once");
	cr_expect_eq(CB->assoc_stats(cli.a, &st), DDPS_E_STATE);
	cr_expect_eq(CB->path_stats(cli.a, 0, &path), DDPS_E_STATE);
	cr_expect_eq(CB->set_primary(cli.a, 0), DDPS_E_STATE);
	WAIT_FOR(srv.peers[0].gone, &cn, &sn);
	cr_expect_eq(srv.peers[0].end.code, DDPS_E_RESET);
	CB->free(cli.a);
}
