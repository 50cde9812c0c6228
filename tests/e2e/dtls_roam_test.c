/* SPDX-License-Identifier: BSD-2-Clause */
/* SCTP inside DTLS whose peer's UDP port changes, and those who would like it to seem so. */
#include "sctp_ddp/backend/native/sd_dtls.h"
#include "sctp_ddp/sd_assoc.h"
#include "secure/secure.h"
#include "session/session.h"
#include "support/clock.h"
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

/* By the clock: a turn does not wait where there is something to do. */
#define TURN_UNTIL(e, cond)                                                                        \
	for (const uint64_t begun_ = read_clock_ms();                                              \
	     !(cond) && read_clock_ms() - begun_ < E2E_MS;)                                        \
	ddps_progress((e)->ctx, 1)

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

/* A stranger's handshake and one for new keys look the same, and the first one needs no proof of who it is. */
Test(dtls_roam, a_port_that_changes_as_new_keys_begin_ends_nothing, .timeout = 120)
{
	const uint64_t begun = read_clock_ms();
	struct rough r;
	struct e2e e;

	e2e_open(&e, SCTPS);
	native_of(&e)->renew_at = 40;
	rough_begin_nat(&r, &e, 0, 1);
	e2e_connect(&e);
	cr_assert_eq(e.a.seen, E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
	/* the first flight is lost, and leaves again after 0.4 s; the data does not wait */
	for (unsigned i = 0;
	     read_clock_ms() - begun < 20000 && native_of(&e)->env->secured.renewed < 2; i++)
		carry_both_ways(&e, i);
	cr_expect_eq(r.moved, 1);
	cr_expect_geq(native_of(&e)->env->secured.renewed, 2, "at both ends");
	cr_expect_eq(count_roamed(&e), 1);
	e2e_close(&e);
	rough_end(&r);
}

/* ---- two associations on one connection, as other diallers may have ---- */

static void note_second_up(void *user)
{
	*(bool *)user = true;
}

static void drop_message(void *user, const struct ddps_sctp_msg *m)
{
	(void)user;
	(void)m;
}

static void look_away(void *user)
{
	(void)user;
}

static void drop_acked(void *user, uint64_t n)
{
	(void)user;
	(void)n;
}

static void note_gone(void *user, const struct ddps_error *e)
{
	(void)e;
	*(bool *)user = false;
}

static struct ddps_sn_dtls *find_end_of(struct ddps_sn_env *ne, bool server)
{
	for (unsigned i = 0; i < ne->nsocks; i++)
		if (ne->socks[i] && ne->socks[i]->dtls && ne->socks[i]->dtls->server == server)
			return ne->socks[i]->dtls;
	cr_assert(false);
	return NULL;
}

/* What the listener's end of the second one sends goes there. */
static uint16_t get_second_port(struct ddps_sn_env *ne, uint16_t dialled_from)
{
	struct ddps_sctp_path_info p = { .encap = 0 };
	struct ddps_sctp_info i;
	struct ddps_sd_assoc *a;

	TAILQ_FOREACH(a, &ne->assocs, of_env) {
		ddps_sctp_info(a->sa, &i);
		if (a->sock->dtls->server && i.peer_port == dialled_from)
			ddps_sctp_path_info(a->sa, 0, &p);
	}
	return p.encap;
}

/* Whether it is up is written to @is_up. */
static struct ddps_sctp_assoc *dial_second(struct e2e *e, bool *is_up)
{
	static const struct ddps_sctp_up up = { .up = note_second_up,
						.message = drop_message,
						.writable = look_away,
						.acked = drop_acked,
						.peer_shutdown = look_away,
						.restarted = look_away,
						.gone = note_gone };
	struct ddps_sn_env *ne = native_of(e);
	struct ddps_sn_dtls *c = find_end_of(ne, false);
	struct ddps_sctp_param p = c->param;
	struct ddps_sctp_assoc *second;

	p.port = 0;
	*is_up = false;
	cr_assert_eq(ne->env->enter(ne->env->ctx), 0);
	cr_assert_eq(ddps_sctp_connect(ne->e, &p, &c->peer, 1, c->peer_port, c->at.port, &up, is_up,
				       ddps_sn_now(ne), &second),
		     0);
	ddps_sn_poke(ne);
	ne->env->leave(ne->env->ctx);
	TURN_UNTIL(e, *is_up);
	cr_assert(*is_up);
	return second;
}

static void end_second(struct e2e *e, struct ddps_sctp_assoc *second)
{
	struct ddps_sn_env *ne = native_of(e);

	cr_assert_eq(ne->env->enter(ne->env->ctx), 0);
	ddps_sctp_assoc_free(second, ddps_sn_now(ne));
	ne->env->leave(ne->env->ctx);
}

Test(dtls_roam, each_association_of_a_connection_follows, .timeout = 60,
     .description = "8261-6.1-2")
{
	struct ddps_sctp_assoc *second;
	struct ddps_sctp_info info;
	struct ddps_sn_dtls *c;
	struct ddps_sn_env *ne;
	struct rough r;
	uint16_t old;
	struct e2e e;
	bool is_up;

	e2e_open(&e, SCTPS);
	rough_begin_nat(&r, &e, 60, 1);
	e2e_connect(&e);
	cr_assert_eq(e.a.seen, E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
	ne = native_of(&e);
	second = dial_second(&e, &is_up);
	ddps_sctp_info(second, &info);
	c = find_end_of(ne, true);
	old = c->at.port;
	cr_assert_eq(get_second_port(ne, info.port), old);
	for (unsigned i = 0; i < 60 && !count_roamed(&e); i++)
		carry_both_ways(&e, i);
	cr_assert_eq(r.moved, 1);
	cr_assert_neq(c->at.port, old);
	cr_assert_eq(ne->env->enter(ne->env->ctx), 0);
	ddps_sctp_doubt(second, ddps_sn_now(ne)); /* it says something */
	ddps_sn_poke(ne);
	ne->env->leave(ne->env->ctx);
	TURN_UNTIL(&e, get_second_port(ne, info.port) != old);
	cr_expect_eq(get_second_port(ne, info.port), c->at.port);
	cr_expect_eq(count_roamed(&e), 2);
	cr_expect_eq(ne->env->secured.rebound, 1, "one peer");
	carry_both_ways(&e, 78);
	cr_expect(is_up);
	end_second(&e, second);
	e2e_close(&e);
	rough_end(&r);
}

/* ---- two connections of one address ---- */

/* Another one of the listener's, with that peer's address. */
static struct ddps_sn_dtls *add_another(struct ddps_sn_dtls *c, uint16_t port)
{
	const struct ddps_dtls_config conf = { .aead = c->ne->env->secure->plugin->aead(),
					       .suite = DDPS_SUITE_AES_128_GCM,
					       .epoch = 1 };
	struct ddps_sn_dtls *other = ddps_sn_dtls_new(c->udp, &c->peer, port, &c->local);

	cr_assert(other);
	cr_assert_eq(ddps_vault_new(&other->cur.vault, ddps_dtls_size(&conf)), 0);
	cr_assert_eq(ddps_dtls_init(other->cur.vault.p, &conf, &other->cur.rec), 0);
	other->state = DDPS_SN_OPEN;
	return other;
}

/* What the dialler seals now; whose the listener finds it to be, coming from another port. */
static struct ddps_sn_dtls *find_whose(struct ddps_sn_dtls *dialler, struct ddps_sn_dtls *listener)
{
	uint8_t p[DDPS_DTLS_OVERHEAD], *content;
	struct ddps_dtls_head h;
	ssize_t n = ddps_dtls_seal(dialler->cur.rec, DDPS_DTLS_DATA, NULL, 0, p, sizeof p);

	cr_assert(n > 0 && ddps_dtls_head(&h, p, (size_t)n));
	return ddps_sn_dtls_whose(listener->udp, &listener->peer, &h, p, &content, &n);
}

Test(dtls_roam, whom_a_record_was_not_of_counts_no_forgery, .timeout = 60)
{
	static const struct ddps_error none;
	struct ddps_sn_dtls *c, *other, *dialler;
	struct e2e e;

	e2e_up(&e, SCTPS);
	c = find_end_of(native_of(&e), true);
	dialler = find_end_of(native_of(&e), false);
	cr_assert_eq(c->ne->env->enter(c->ne->env->ctx), 0);
	other = add_another(c, 9);
	cr_expect_eq(find_whose(dialler, c), c);
	cr_expect_eq(find_whose(dialler, c), c, "behind the other one");
	cr_expect_eq(c->ne->env->secured.tried, 3);
	cr_expect_eq(ddps_dtls_stats(other->cur.rec)->forged, 0);
	ddps_sn_dtls_end(other, &none);
	c->ne->env->leave(c->ne->env->ctx);
	e2e_close(&e);
}

/* It has begun there since the question was asked. */
Test(dtls_roam, nobody_moves_to_a_port_that_another_one_has, .timeout = 60)
{
	static const struct ddps_error none;
	struct ddps_sn_dtls *c, *other;
	struct e2e e;
	uint16_t old;

	e2e_up(&e, SCTPS);
	c = find_end_of(native_of(&e), true);
	cr_assert_eq(c->ne->env->enter(c->ne->env->ctx), 0);
	old = c->at.port;
	other = add_another(c, 9);
	cr_expect(!ddps_sn_dtls_roamed(c, 9));
	cr_expect_eq(c->at.port, old);
	cr_expect_eq(ddps_sn_dtls_find(c->udp, &c->peer, 9), other);
	ddps_sn_dtls_end(other, &none);
	cr_expect(ddps_sn_dtls_roamed(c, 9));
	cr_expect(ddps_sn_dtls_roamed(c, old));
	c->ne->env->leave(c->ne->env->ctx);
	carry_both_ways(&e, 1);
	e2e_close(&e);
}

/* New keys that the peer does not use are given up in time, whatever it begins meanwhile. */
Test(dtls_roam, a_second_association_puts_no_deadline_of_new_keys_off, .timeout = 60)
{
	struct ddps_sctp_assoc *second;
	struct ddps_sn_dtls *c;
	struct e2e e;
	bool is_up;

	e2e_up(&e, SCTPS);
	c = find_end_of(native_of(&e), true);
	cr_assert_eq(c->ne->env->enter(c->ne->env->ctx), 0);
	c->renewing = true;
	c->deadline = ddps_now() + NSEC_PER_SEC;
	ddps_timer_start(c->ne->env->loop, &c->timer, c->deadline);
	c->ne->env->leave(c->ne->env->ctx);
	second = dial_second(&e, &is_up);
	TURN_UNTIL(&e, !c->renewing);
	cr_expect(!c->renewing);
	carry_both_ways(&e, 1);
	end_second(&e, second);
	e2e_close(&e);
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
