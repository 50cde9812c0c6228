/* SPDX-License-Identifier: BSD-2-Clause */
/* The SCTP provider: connect, listen, URIs, reuse of associations. */
#include "support/sd_world.h"
#include "unit/sys_fixture.h"
#include <criterion/criterion.h>
#include <ddpsess/version.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

static struct sd_world w;

static void init(void)
{
	sd_world_init(&w);
}

static void fini(void)
{
	sd_world_fini(&w);
}

TestSuite(sd_provider, .init = init, .fini = fini, .timeout = 30);

Test(sd_provider, bound_uri)
{
	char buf[100];
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(9) };
	static const struct ddps_llp_listen_up up = { 0 };
	struct ddps_llp_listener *l;
	const char *want = "sctp://127.0.0.1:7174?backend=fake&encap=9899";

	sd_listen(&w);
	cr_expect_eq(ddps_sctp_provider.listener_uri(w.listener, buf, sizeof(buf)),
		     (int)strlen(want));
	cr_expect_str_eq(buf, want);
	cr_expect_eq(ddps_sctp_provider.listener_uri(w.listener, buf, 10), (int)strlen(want));
	cr_expect_eq(w.listener->provider, &ddps_sctp_provider);
	cr_assert_eq(ddps_sctp_provider.listen(&w.env, &w.uri, (struct sockaddr *)&sa, sizeof(sa),
					       &w.lparam, &up, NULL, &l),
		     0);
	ddps_sctp_provider.listener_uri(l, buf, sizeof(buf));
	cr_expect_str_eq(buf, "sctp://127.0.0.1:9?backend=fake&encap=off");
	ddps_sctp_provider.listener_free(l);
}

Test(sd_provider, backends)
{
	cr_expect_eq(ddps_has_backend("nosuch"), DDPS_E_INVAL);
	cr_expect_eq(ddps_has_backend(NULL), DDPS_E_INVAL);
	cr_expect_eq(ddps_has_backend("native"), ddps_sd_native.available());
	cr_expect_eq(ddps_has_backend("kernel"), ddps_sd_kernel.available());
}

Test(sd_provider, unknown_backend)
{
	struct ddps_env env = { .loop = w.env.loop };
	struct ddps_uri uri = { .scheme = "sctp", .backend = "other" };
	struct sockaddr_in sa = { .sin_family = AF_INET };
	struct ddps_setup setup = { 0 };
	struct ddps_llp_listener *l;
	struct ddps_llp *llp;

	cr_expect_eq(ddps_sctp_provider.connect(&env, &uri, (struct sockaddr *)&sa, sizeof(sa),
						&setup, &w.param, NULL, NULL, &llp),
		     DDPS_E_UNSUPPORTED);
	cr_expect_eq(ddps_sctp_provider.listen(&env, &uri, (struct sockaddr *)&sa, sizeof(sa),
					       &w.lparam, NULL, NULL, &l),
		     DDPS_E_UNSUPPORTED);
	if (!ddps_sd_kernel.available()) {
		strcpy(uri.backend, "kernel");
		cr_expect_eq(ddps_sctp_provider.connect(&env, &uri, (struct sockaddr *)&sa,
							sizeof(sa), &setup, &w.param, NULL, NULL,
							&llp),
			     DDPS_E_UNSUPPORTED);
	}
	ddps_sctp_provider.fini(&env);
	cr_expect_null(env.sctp);
	ddps_sctp_provider.fini(&env); /* nothing there: nothing to do */
}

/* A place is made where more than half of them say nothing. */
Test(sd_provider, half_of_the_places_may_be_silent)
{
	for (unsigned silent = 0; silent <= 4; silent++) {
		struct ddps_sd_assoc *raw[5];

		if (silent) {
			sd_world_fini(&w);
			sd_world_init(&w);
		}
		w.accept = false;
		w.lparam.max_half_open = 4;
		for (unsigned i = 0; i < 4; i++) {
			raw[i] = sd_raw_to_listener(&w);
			if (i >= silent)
				sd_send(&w, raw[i], 0, "0000 0001");
		}
		raw[4] = sd_raw_to_listener(&w);
		cr_expect_eq(raw[4]->peer != NULL, silent > 2, "%u", silent);
		cr_expect_eq(w.env.half_open_given_up, silent > 2, "%u", silent);
		cr_expect_eq(w.env.half_open_full, 1);
	}
}

/* Whoever reads the log learns why it was refused. */
Test(sd_provider, refusals_are_explained)
{
	static const struct {
		bool listens, per_address, hosts, from;
		const char *says;
	} row[] = {
		{ false, true, false, false, "per-address= is for listening" },
		{ true, true, false, false, "has no per-address=" },
		{ true, false, true, false, "takes no list of addresses" },
		{ false, false, true, false, "takes no list of addresses" },
		{ false, false, false, true, "takes no list of addresses" },
		{ true, false, false, true, "local= is for connecting" },
	};
	struct sockaddr_in sa = { .sin_family = AF_INET };
	struct ddps_sd_backend plain = ddps_sd_native;
	struct ddps_setup setup = { 0 };
	struct ddps_llp_listener *l;
	struct ddps_llp *llp;

	plain.homes = plain.shares = false;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct ddps_uri uri = { .scheme = "sctp", .backend = "native" };
		int err;

		uri.per_address = row[i].per_address;
		uri.hosts.n = row[i].hosts ? 2 : 0;
		uri.from.n = row[i].from ? 2 : 0;
		cr_assert_eq(ddps_sd_use_backend(&w.env, &plain, false, false), 0);
		((struct ddps_sd_provider *)w.env.sctp)->slot[0].b = &plain;
		w.log[0] = '\0';
		if (row[i].listens)
			err = ddps_sctp_provider.listen(&w.env, &uri, (struct sockaddr *)&sa,
							sizeof(sa), &w.lparam, NULL, NULL, &l);
		else
			err = ddps_sctp_provider.connect(&w.env, &uri, (struct sockaddr *)&sa,
							 sizeof(sa), &setup, &w.param, NULL, NULL,
							 &llp);
		cr_expect_lt(err, 0, "%zu", i);
		cr_expect(strstr(w.log, row[i].says), "%zu: %s", i, w.log);
	}
}

/* The kernel's is chosen only where it is. */
Test(sd_provider, without_a_name_one_that_is_there_is_chosen)
{
	static const char *const names[] = { "", "auto", "native" };
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct ddps_llp_listener *l = NULL;

	cr_assert_eq(ddps_sd_use_backend(&w.env, &ddps_sd_native, false, false), 0);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct ddps_uri uri = { .scheme = "sctp", .encap = DDPS_URI_ENCAP_OFF };

		strcpy(uri.backend, names[i]);
		if (!ddps_sctp_provider.listen(&w.env, &uri, (struct sockaddr *)&sa, sizeof(sa),
					       &w.lparam, NULL, NULL, &l))
			ddps_sctp_provider.listener_free(l);
		cr_expect_null(strstr(w.log, "is not available here"), "%s", w.log);
		uri.encap = 0;
		cr_assert_eq(ddps_sctp_provider.listen(&w.env, &uri, (struct sockaddr *)&sa,
						       sizeof(sa), &w.lparam, NULL, NULL, &l),
			     0, "%s", names[i]);
		ddps_sctp_provider.listener_free(l);
	}
}

static bool kernel_has_sctp;

static int open_socket(int domain, int type, int protocol)
{
	if (protocol == IPPROTO_SCTP && !kernel_has_sctp) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	return sys_socket(domain, type, protocol == IPPROTO_SCTP ? 0 : protocol);
}

/* The kernel's needs no privilege directly on IP; in UDP ours knows more. */
Test(sd_provider, which_backend_a_listener_has)
{
	static const struct {
		const char *name;
		int encap;
		bool there, kernel;
	} row[] = {
		{ "", DDPS_URI_ENCAP_OFF, true, true },
		{ "auto", DDPS_URI_ENCAP_OFF, true, true },
		{ "", DDPS_URI_ENCAP_OFF, false, false },
		{ "", DDPS_URI_ENCAP_DEFAULT, true, false },
		{ "auto", 9900, true, false },
		{ "native", DDPS_URI_ENCAP_OFF, true, false },
		{ "kernel", DDPS_URI_ENCAP_OFF, true, true },
		{ "kernel", DDPS_URI_ENCAP_DEFAULT, true, true },
	};
	struct ddps_sd_backend native = fake_sctp, kernel = fake_sctp;
	struct sockaddr_in sa = { .sin_family = AF_INET };
	struct ddps_llp_listener *l;
	struct ddps_sd_provider *prov;

	cr_assert_eq(ddps_sd_use_backend(&w.env, &fake_sctp, false, false), 0);
	prov = w.env.sctp;
	prov->slot[0].b = &native;
	prov->slot[1].b = &kernel;
	sys_instead.socket = open_socket;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct ddps_uri uri = { .scheme = "sctp", .encap = row[i].encap };

		kernel_has_sctp = row[i].there;
		strcpy(uri.backend, row[i].name);
		cr_assert_eq(ddps_sctp_provider.listen(&w.env, &uri, (struct sockaddr *)&sa,
						       sizeof(sa), &w.lparam, NULL, NULL, &l),
			     0);
		cr_expect_eq(((struct ddps_sd_listener *)l)->b, row[i].kernel ? &kernel : &native,
			     "row %zu", i);
		ddps_sctp_provider.listener_free(l);
	}
	prov->slot[0].ctx = prov->slot[1].ctx = NULL;
}

/* ... and so it is for one who connects; the first backend is as good as the others. */
Test(sd_provider, the_first_backend_connects)
{
	struct ddps_sd_provider *prov;
	struct sd_ulp u = { 0 };

	cr_assert_eq(ddps_sd_use_backend(&w.env, &fake_sctp, false, false), 0);
	prov = w.env.sctp;
	prov->slot[0].b = &fake_sctp;
	strcpy(w.uri.backend, "native");
	fake_sctp_raw_listen(&w.env, SD_RAW_PORT);
	cr_assert_eq(sd_connect(&w, &u, SD_RAW_PORT, false, NULL, 0), 0);
	cr_assert(u.llp);
	cr_expect_eq(fake_sctp_net.connects, 1);
	sd_free(&u);
}

static void count_fini(struct ddps_env *env, void *ctx)
{
	(void)env;
	++*(unsigned *)ctx;
}

Test(sd_provider, each_backend_that_was_used_goes_with_its_context)
{
	struct ddps_sd_provider *prov = w.env.sctp;
	struct ddps_sd_backend b = fake_sctp;
	unsigned n[3] = { 0 };

	b.fini = count_fini;
	for (int i = 0; i < 3; i++) {
		prov->slot[i].b = &b;
		prov->slot[i].ctx = i == 1 ? NULL : &n[i];
	}
	ddps_sctp_provider.fini(&w.env);
	cr_expect_eq(n[0], 1);
	cr_expect_eq(n[1], 0, "was not used");
	cr_expect_eq(n[2], 1);
}

static int stats_of(struct ddps_sd_assoc *a, struct ddps_assoc_stats *st)
{
	cr_expect(a);
	st->paths = 3;
	return 0;
}

/* The association's are the backend's, and how many share it is known here. */
Test(sd_provider, stats_of_an_association)
{
	struct ddps_assoc_stats st = { 0 };
	struct ddps_sd_backend b;
	struct ddps_sd_carrier *c;

	for (unsigned n = 1; n < 4; n++) {
		sd_raw_open(&w, 0);
		c = sd_carrier_of(&w, n - 1);
		cr_expect_eq(w.req[n - 1].llp->ops->assoc_stats(w.req[n - 1].llp, &st),
			     DDPS_E_UNSUPPORTED);
		b = *c->b;
		b.assoc_stats = stats_of;
		c->b = &b;
		c->nsessions += n;
		cr_expect_eq(w.req[n - 1].llp->ops->assoc_stats(w.req[n - 1].llp, &st), 0);
		cr_expect_eq(st.sessions, n + 1);
		cr_expect_eq(st.paths, 3);
		c->nsessions -= n;
		c->b = w.req[n - 1].llp ? &fake_sctp : c->b;
	}
}

Test(sd_provider, private_data_limits, .description = "5043-5.2.3-3 6581-7-4")
{
	static const uint8_t pd[513];
	struct sd_ulp u = { 0 };

	cr_expect_eq(sd_connect(&w, &u, SD_RAW_PORT, false, pd, 513), DDPS_E_TOO_LONG);
	cr_expect_eq(sd_connect(&w, &u, SD_RAW_PORT, true, pd, 513), DDPS_E_TOO_LONG);
	cr_expect_eq(sd_connect(&w, &u, SD_RAW_PORT, true, pd, 3), DDPS_E_INVAL);
	cr_expect_null(u.llp);
	cr_expect_null(sd_carrier_of(&w, 0));
	cr_assert_eq(sd_connect(&w, &u, SD_RAW_PORT, false, pd, 512), 0);
	sd_free(&u);
	cr_assert_eq(sd_connect(&w, &u, SD_RAW_PORT, true, pd, 4 + 508), 0);
	sd_free(&u);
}

Test(sd_provider, nobody_there)
{
	struct sd_ulp u[2] = { 0 };

	for (int i = 0; i < 2; i++) {
		cr_assert_eq(sd_connect(&w, &u[i], SD_RAW_PORT, false, NULL, 0), 0);
		cr_expect_eq(u[i].closes, 0);
	}
	cr_expect_eq(fake_sctp_net.connects, 1);
	sd_run(&w);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(u[i].closes, 1);
		cr_expect_eq(u[i].error.code, DDPS_E_REFUSED);
		cr_expect_neq(u[i].error.sys_errno, 0);
		cr_expect_neq(u[i].error.peer[0], 0);
		sd_free(&u[i]);
	}
	cr_expect_null(sd_carrier_of(&w, 0));
	/* the next one tries again */
	cr_assert_eq(sd_connect(&w, &u[0], SD_RAW_PORT, false, NULL, 0), 0);
	cr_expect_eq(fake_sctp_net.connects, 2);
	sd_free(&u[0]);
}

Test(sd_provider, one_association_for_one_address)
{
	struct sd_ulp u[5] = { 0 };

	fake_sctp_raw_listen(&w.env, SD_RAW_PORT);
	fake_sctp_raw_listen(&w.env, SD_RAW_PORT + 1);
	cr_assert_eq(sd_connect(&w, &u[0], SD_RAW_PORT, false, NULL, 0), 0);
	cr_assert_eq(sd_connect(&w, &u[1], SD_RAW_PORT, false, NULL, 0), 0); /* coming up */
	sd_run(&w);
	cr_assert_eq(sd_connect(&w, &u[2], SD_RAW_PORT, false, NULL, 0), 0); /* up */
	cr_expect_eq(fake_sctp_net.connects, 1);
	cr_assert_eq(sd_connect(&w, &u[3], SD_RAW_PORT + 1, false, NULL, 0), 0);
	cr_expect_eq(fake_sctp_net.connects, 2);
	w.uri.encap = 9900;
	cr_assert_eq(sd_connect(&w, &u[4], SD_RAW_PORT, false, NULL, 0), 0);
	cr_expect_eq(fake_sctp_net.connects, 3);
	sd_run(&w);
	for (int i = 0; i < 5; i++)
		sd_free(&u[i]);
}

Test(sd_provider, ipv6_addresses_are_distinguished)
{
	struct ddps_setup setup = { 0 };
	struct sockaddr_in6 sa = { .sin6_family = AF_INET6, .sin6_port = htons(SD_RAW_PORT) };
	struct ddps_llp *llp[4];

	sa.sin6_addr.s6_addr[15] = 1;
	for (int i = 0; i < 4; i++) {
		if (i == 2)
			sa.sin6_addr.s6_addr[0] = 0xfe;
		if (i == 3)
			sa.sin6_scope_id = 2;
		cr_assert_eq(ddps_sctp_provider.connect(&w.env, &w.uri, (struct sockaddr *)&sa,
							sizeof(sa), &setup, &w.param, NULL, NULL,
							&llp[i]),
			     0);
	}
	cr_expect_eq(fake_sctp_net.connects, 3);
	for (int i = 0; i < 4; i++)
		llp[i]->ops->free(llp[i]);
}

Test(sd_provider, backend_that_cannot_start)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	static const struct ddps_llp_listen_up up = { 0 };
	struct ddps_llp_listener *l = NULL;
	struct sd_ulp u = { 0 };

	fake_sctp_net.fail = DDPS_E_SYSTEM;
	cr_expect_eq(sd_connect(&w, &u, SD_RAW_PORT, false, "x", 1), DDPS_E_SYSTEM);
	cr_expect_null(u.llp);
	cr_expect_null(sd_carrier_of(&w, 0));
	cr_expect_eq(ddps_sctp_provider.listen(&w.env, &w.uri, (struct sockaddr *)&sa, sizeof(sa),
					       &w.lparam, &up, NULL, &l),
		     DDPS_E_SYSTEM);
	cr_expect_null(l);
}

Test(sd_provider, listener_failure_is_reported)
{
	sd_listen(&w);
	fake_sctp_fail(SD_PORT, DDPS_E_NOMEM);
	cr_expect_eq(w.listener_error, DDPS_E_NOMEM);
}

Test(sd_provider, association_of_the_peer_is_not_reused)
{
	struct sd_ulp u = { 0 };

	sd_raw_open(&w, 0);
	cr_assert_eq(sd_connect(&w, &u, 2, false, NULL, 0), 0); /* where it seems to come from */
	cr_expect_eq(fake_sctp_net.connects, 2);
	sd_free(&u);
}

Test(sd_provider, an_association_that_goes_is_not_reused)
{
	struct ddps_sd_assoc *raw;
	struct sd_ulp u = { 0 };

	raw = sd_raw_initiated(&w, &u, false);
	sd_carrier_of(&w, 0)->state = DDPS_SD_GOING;
	sd_free(&u);
	cr_assert_eq(sd_connect(&w, &u, SD_RAW_PORT, false, NULL, 0), 0);
	cr_expect_eq(fake_sctp_net.connects, 2);
	sd_free(&u);
	(void)raw;
}

Test(sd_provider, no_more_initiates_together_than_the_peer_takes, .description = "5043-6.4-3")
{
	struct sd_ulp u[DDPS_SD_PENDING_MAX + 2] = { 0 };
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u[0], false);

	for (unsigned i = 1; i < DDPS_SD_PENDING_MAX + 2; i++)
		cr_assert_eq(sd_connect(&w, &u[i], SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&w);
	for (uint16_t i = 1; i < DDPS_SD_PENDING_MAX; i++)
		sd_expect(raw, 2 * i, "0000 0001");
	sd_expect_silence(raw);
	sd_send(&w, raw, 4, "0000 0002");
	sd_expect(raw, 2 * DDPS_SD_PENDING_MAX, "0000 0001");
	sd_expect_silence(raw);
	sd_free(&u[0]); /* given up: makes room as well */
	sd_run(&w);
	sd_expect(raw, 2 * DDPS_SD_PENDING_MAX + 2, "0000 0001");
	for (unsigned i = 0; i < DDPS_SD_PENDING_MAX + 2; i++)
		sd_free(&u[i]);
}

Test(sd_provider, waiting_too_long)
{
	struct sd_ulp u[DDPS_SD_PENDING_MAX + 1] = { 0 };
	struct sd_ulp *last = &u[DDPS_SD_PENDING_MAX];

	sd_raw_initiated(&w, &u[0], false);
	for (unsigned i = 1; i < DDPS_SD_PENDING_MAX; i++)
		cr_assert_eq(sd_connect(&w, &u[i], SD_RAW_PORT, false, NULL, 0), 0);
	w.param.connect_ms = 10;
	cr_assert_eq(sd_connect(&w, last, SD_RAW_PORT, false, NULL, 0), 0);
	sd_run_until(&w, &last->closes);
	cr_expect_eq(last->error.code, DDPS_E_TIMEDOUT);
	for (unsigned i = 0; i <= DDPS_SD_PENDING_MAX; i++)
		sd_free(&u[i]);
}

Test(sd_provider, aborted_while_waiting)
{
	struct sd_ulp u = { 0 };

	fake_sctp_raw_listen(&w.env, SD_RAW_PORT);
	cr_assert_eq(sd_connect(&w, &u, SD_RAW_PORT, false, NULL, 0), 0);
	u.llp->ops->abort(u.llp);
	u.llp->ops->abort(u.llp);
	cr_expect_eq(u.closes, 0);
	sd_run(&w);
	cr_expect_eq(u.closes, 1);
	cr_expect_eq(u.error.code, DDPS_E_CLOSED);
	sd_expect_silence(fake_sctp_raw_accepted(SD_RAW_PORT));
	sd_free(&u);
}

Test(sd_provider, shutdown_before_the_answer_is_an_abort)
{
	struct sd_ulp u = { 0 };

	sd_raw_initiated(&w, &u, false);
	u.llp->ops->shutdown(u.llp);
	sd_run(&w);
	cr_expect_eq(u.closes, 1);
	cr_expect_eq(u.error.code, DDPS_E_CLOSED);
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_A1C);
	sd_free(&u);
}

Test(sd_provider, context_goes_with_everything_open)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct sd_ulp u = { 0 };

	sd_connect(&w, &u, SD_PORT, false, NULL, 0);
	sd_run(&w);
	cr_expect_eq(u.answers, 1);
	sd_send_segment(&w, raw, 0, 9, 0); /* held */
	w.req[1].to_send = 1;
	w.req[1].llp->ops->kick(w.req[1].llp);
	sd_free(&u); /* as the layer above does first */
		     /* the rest is fini()'s, and the leak checker's */
}

/* What each side gets to know of its association; of the second session of two, which has another stream. */
Test(sd_provider, info_of_both_sides)
{
	struct ddps_conn_info ours = { 0 }, theirs = { .initiator = true };
	struct sd_ulp u[2] = { { 0 } };
	struct ddps_sd_carrier *c;

	sd_listen(&w);
	w.accept = true;
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(sd_connect(&w, &u[i], SD_PORT, false, NULL, 0), 0);
		sd_run(&w);
		cr_assert_eq(u[i].answers, 1);
	}
	cr_assert_eq(w.nreq, 2);
	c = sd_pair_of(&u[1])->carrier;
	c->encap = 9899;
	u[1].llp->ops->info(u[1].llp, &ours);
	w.req[1].llp->ops->info(w.req[1].llp, &theirs);
	ddps_info_text(&ours);
	cr_expect(ours.initiator && !theirs.initiator);
	cr_expect_eq(ours.transport, DDPS_TRANSPORT_SCTP);
	cr_expect_neq(ours.sctp.stream, 0);
	cr_expect_eq(ours.sctp.stream, sd_pair_of(&u[1])->stream);
	cr_expect_eq(theirs.sctp.stream, ours.sctp.stream);
	cr_expect_eq(ours.sctp.encap, 9899);
	cr_expect_str_eq(ours.peer, ddps_sd_carrier_peer(c).text);
	cr_expect_eq(ours.local_addr.port, c->local_addr.port);
	cr_expect_str_eq(ours.sctp.backend, c->b->name);
	cr_expect_gt(ours.mulpdu, 0);
	cr_expect_eq(ours.mulpdu, u[1].llp->ops->mulpdu(u[1].llp));
	sd_free(&u[0]);
	sd_free(&u[1]);
}
