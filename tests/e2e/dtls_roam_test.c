/* SPDX-License-Identifier: BSD-2-Clause */
/* SCTP inside DTLS whose peer's UDP port changes, and those who would like it to seem so. */
#include "sctp_ddp/backend/native/sd_dtls.h"
#include "sctp_ddp/sd_assoc.h"
#include "session/session.h"
#include "support/e2e.h"
#include "support/rough.h"
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SCTPS "sctps://127.0.0.1:0"
#define N     (256 * 1024)

static struct ddps_sn_env *native_of(struct e2e *e)
{
	struct ddps_sd_provider *prov = e->ctx->env.sctp;

	return prov->slot[0].ctx;
}

static uint64_t count_roamed(struct e2e *e)
{
	struct ddps_sctp_stats st;

	ddps_sctp_stats(native_of(e)->e, &st);
	return st.roamed;
}

/* A message each way, intact. */
static void carry_both_ways(struct e2e *e, unsigned seed)
{
	static uint8_t out[N], in[N];
	struct ddps_mr *mo, *mi;
	struct ddps_sge sge;

	cr_assert_eq(ddps_mr_reg(e->pd, out, N, 0, NULL, &mo), 0);
	cr_assert_eq(ddps_mr_reg(e->pd, in, N, DDPS_LOCAL_WRITE, NULL, &mi), 0);
	sge = e2e_sge(in, N, mi);
	for (unsigned i = 0; i < 2; i++) {
		struct e2e_end *from = i ? &e->b : &e->a, *to = i ? &e->a : &e->b;

		e2e_fill(out, N, seed + i);
		cr_assert_eq(ddps_post_recv(to->ep, 0, &sge, 1), 0);
		cr_assert_eq(e2e_post(from, DDPS_OP_SEND, out, N, mo, 0, 0), 0);
		for (int k = 0; k < 2; k++)
			cr_assert_eq(e2e_wc(e).status, DDPS_WC_SUCCESS);
		cr_assert_arr_eq(in, out, N);
	}
	ddps_mr_dereg(mo);
	ddps_mr_dereg(mi);
}

Test(dtls_roam, a_port_that_changes_in_the_midst_of_a_transfer_stops_nothing, .timeout = 120,
     .description = "8261-6.1-8")
{
	struct rough r;
	struct e2e e;

	e2e_open(&e, SCTPS);
	rough_begin_nat(&r, &e, 40, 3);
	e2e_connect(&e);
	cr_assert_eq(e.a.seen, E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
	for (unsigned i = 0; i < 60 && r.moved < 3; i++)
		carry_both_ways(&e, i);
	carry_both_ways(&e, 77); /* by the last of them */
	cr_expect_eq(r.moved, 3);
	cr_expect_eq(native_of(&e)->env->secured.rebound, count_roamed(&e));
	/* one that had no time to answer is not counted */
	cr_expect(count_roamed(&e) >= 1 && count_roamed(&e) <= 3, "%llu",
		  (unsigned long long)count_roamed(&e));
	e2e_close(&e);
	rough_end(&r);
}

/* Records that nobody's key opens cost tries, and only so many of those a second; who is known goes on meanwhile. */
Test(dtls_roam, a_flood_of_foreign_records_costs_a_bounded_number_of_tries, .timeout = 120)
{
	enum { FLOOD = 20000, A_SECOND = 250 };
	uint8_t record[300] = {
		23, 254, 253, 0, 1, 0, 0, 0, 0, 9, 9, (300 - 13) >> 8, (300 - 13) & 255
	};
	struct ddps_sn_env *ne;
	uint64_t begun, seconds;
	uint16_t port;
	struct e2e e;
	int fd = rough_udp(&port);

	e2e_up(&e, SCTPS);
	ne = native_of(&e);
	rough_aim(fd, e.uri);
	begun = ddps_now();
	for (unsigned i = 0; i < FLOOD; i++) {
		cr_assert_eq(send(fd, record, sizeof record, 0), (ssize_t)sizeof record);
		if (i % 64 == 0)
			ddps_progress(e.ctx, 0);
	}
	carry_both_ways(&e, 1);
	seconds = (ddps_now() - begun) / NSEC_PER_SEC + 2;
	cr_expect(ne->env->secured.tried >= A_SECOND &&
			  ne->env->secured.tried <= seconds * A_SECOND,
		  "%llu in %llu s", (unsigned long long)ne->env->secured.tried,
		  (unsigned long long)seconds);
	cr_expect(ne->env->secured.untried > 0);
	cr_expect_eq(count_roamed(&e), 0);
	close(fd);
	e2e_close(&e);
}

/* What is on its way comes from another port first: it is asked there, and nothing else goes there. */
Test(dtls_roam, what_is_repeated_from_elsewhere_takes_no_data_away, .timeout = 120)
{
	unsigned asked = 0, most;
	uint8_t b[65536];
	uint64_t begun;
	struct rough r;
	struct e2e e;

	e2e_open(&e, SCTPS);
	rough_begin_thief(&r, &e);
	begun = ddps_now();
	e2e_connect(&e);
	cr_assert_eq(e.a.seen, E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
	for (unsigned i = 0; i < 10; i++)
		carry_both_ways(&e, i);
	most = (unsigned)((ddps_now() - begun) / NSEC_PER_SEC) + 1;
	for (ssize_t n; (n = recv(r.thief, b, sizeof b, MSG_DONTWAIT)) > 0; asked++)
		cr_expect(n < 120, "%zd octets", n);
	cr_expect(asked >= 1 && asked <= most, "%u", asked);
	cr_expect_eq(count_roamed(&e), 0);
	e2e_close(&e);
	rough_end(&r);
}
