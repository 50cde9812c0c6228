/* SPDX-License-Identifier: BSD-2-Clause */
/* What an association says of itself and learns, one by one: sizes, names, timers, ends. */
#include "support/sd_world.h"
#include "unit/mem_fixture.h"
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

static struct sd_world w;
static struct sd_ulp u, v;

static void init(void)
{
	sd_world_init(&w);
	u = v = (struct sd_ulp){ 0 };
}

static void fini(void)
{
	sd_free(&u);
	sd_free(&v);
	sd_world_fini(&w);
}

TestSuite(sd_told, .init = init, .fini = fini, .timeout = 30);

static size_t mulpdu(void)
{
	return u.llp->ops->mulpdu(u.llp);
}

static size_t mulpdu_of(size_t max_user_data)
{
	return ddps_sd_mulpdu(max_user_data, 0);
}

static struct ddps_sd_backend tells;

Test(sd_told, the_message_size_is_asked_for_again, .description = "5043-9-1")
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);
	struct ddps_sd_carrier *c = sd_carrier_of(&w, 0);

	cr_expect_eq(mulpdu(), mulpdu_of(1452));
	raw->peer->info.max_user_data = 1000;
	sd_send(&w, raw, 0, "0000 0002");
	cr_expect_eq(mulpdu(), mulpdu_of(1000), "with the answer");
	raw->peer->info.max_user_data = 1100;
	ddps_sd_carrier_up.path(c);
	cr_expect_eq(mulpdu(), mulpdu_of(1100));
	raw->peer->info.max_user_data = 1200;
	ddps_sd_carrier_up.dry(c);
	cr_expect_eq(mulpdu(), mulpdu_of(1200));
	raw->peer->info.max_user_data = 1300;
	ddps_sd_carrier_up.writable(c);
	cr_expect_eq(mulpdu(), mulpdu_of(1300));
	tells = *c->b;
	tells.acks = true; /* it reports each change */
	c->b = &tells;
	raw->peer->info.max_user_data = 1400;
	ddps_sd_carrier_up.writable(c);
	cr_expect_eq(mulpdu(), mulpdu_of(1300));
	c->b = &fake_sctp;
	c->state = DDPS_SD_GOING;
	ddps_sd_carrier_up.writable(c);
	ddps_sd_carrier_up.path(c);
	ddps_sd_carrier_up.dry(c);
	cr_expect_eq(mulpdu(), mulpdu_of(1300), "it is over");
	c->state = DDPS_SD_UP;
}

/* The last packet of the set-up takes the Initiate along. */
Test(sd_told, an_answered_association_sends_what_waits)
{
	struct ddps_sd_assoc *raw;
	struct ddps_sd_carrier *c;
	struct ddps_conn_info info = { 0 };

	fake_sctp_raw_listen(&w.env, SD_RAW_PORT);
	cr_assert_eq(sd_connect(&w, &u, SD_RAW_PORT, false, NULL, 0), 0);
	c = sd_carrier_of(&w, 0);
	raw = fake_sctp_raw_accepted(SD_RAW_PORT);
	raw->peer->info.encap = 1234;
	raw->peer->info.max_user_data = 1000;
	ddps_sd_carrier_up.answered(c);
	cr_expect_eq(c->state, DDPS_SD_UP);
	cr_expect_eq(raw->nin, 1);
	u.llp->ops->info(u.llp, &info);
	ddps_info_text(&info);
	cr_expect_eq(info.sctp.encap, 1234);
	cr_expect_eq(info.mulpdu, mulpdu_of(1000));
	cr_expect_str_eq(info.local, "127.0.0.1:1");
	cr_expect_str_eq(info.peer, "127.0.0.1:2");
	ddps_sd_carrier_up.answered(c);
	sd_run(&w);
	sd_expect(raw, 0, "0000 0001");
	sd_expect_silence(raw);
}

/* ---- the log ---- */

static char lines[2000];

static void note_sd_told(void *user, enum ddps_log_level level, const char *facility,
			 const char *message)
{
	size_t n = strlen(lines);

	(void)user;
	if (level <= DDPS_LOG_INFO)
		snprintf(lines + n, sizeof lines - n, "%s %s\n", facility, message);
}

Test(sd_told, a_log_says_who_comes_and_goes)
{
	lines[0] = 0;
	w.env.log = (struct ddps_log){ note_sd_told, NULL };
	sd_listen(&w);
	cr_expect_str_eq(lines, "sctp listening, backend fake\n");
	lines[0] = 0;
	sd_raw_initiated(&w, &u, false);
	cr_expect_str_eq(lines,
			 "sctp 127.0.0.1:7200: connecting, backend fake\n"
			 "sctp 127.0.0.1:2: association up, fake, 256 streams, user messages "
			 "up to 1452 octets\n");
	lines[0] = 0;
	sd_raw_to_listener(&w);
	cr_expect_str_eq(lines,
			 "sctp 127.0.0.1:2: association up, fake, 256 streams, user messages "
			 "up to 1452 octets\n");
	cr_assert_eq(sd_connect(&w, &v, SD_RAW_PORT + 1, false, NULL, 0), 0);
	sd_run(&w);
	cr_expect(strstr(lines, "association gone: "), "%s", lines);
}

/* Between the answer and the end of the set-up it is not sure yet. */
Test(sd_told, a_log_says_once_that_it_is_up)
{
	struct ddps_sd_carrier *c;

	fake_sctp_raw_listen(&w.env, SD_RAW_PORT);
	cr_assert_eq(sd_connect(&w, &u, SD_RAW_PORT, false, NULL, 0), 0);
	c = sd_carrier_of(&w, 0);
	lines[0] = 0;
	w.env.log = (struct ddps_log){ note_sd_told, NULL };
	ddps_sd_carrier_up.answered(c);
	cr_expect_str_eq(lines, "");
	ddps_sd_carrier_up.comm_up(c);
	cr_expect_str_eq(lines, "sctp 127.0.0.1:2: association up, fake, 256 streams, user "
				"messages up to 1452 octets\n");
}

/* ---- who shares an association ---- */

static int join_sd_told(struct sd_ulp *s, struct sockaddr_in *sa)
{
	static const struct ddps_llp_up none;
	struct ddps_setup setup = { 0 };

	return ddps_sctp_provider.connect(&w.env, &w.uri, (struct sockaddr *)sa, sizeof *sa, &setup,
					  &w.param, &none, s, &s->llp);
}

Test(sd_told, what_is_behind_an_address_does_not_part)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons(SD_RAW_PORT),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	fake_sctp_raw_listen(&w.env, SD_RAW_PORT);
	cr_assert_eq(join_sd_told(&u, &sa), 0);
	for (int i = 0; i < 8; i++)
		sa.sin_zero[i] = (unsigned char)(i * 29 + 1);
	cr_assert_eq(join_sd_told(&v, &sa), 0);
	cr_expect_eq(fake_sctp_net.connects, 1);
}

static void host(unsigned i, uint32_t addr)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons(SD_RAW_PORT),
				  .sin_addr.s_addr = htonl(addr) };

	memcpy(&w.uri.hosts.at[i], &sa, sizeof sa);
}

Test(sd_told, each_address_of_a_list_counts)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons(SD_RAW_PORT),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	static struct sd_ulp s[4];

	fake_sctp_raw_listen(&w.env, SD_RAW_PORT);
	w.uri.hosts.n = 2;
	host(0, 0x7f000001);
	host(1, 0x7f000002);
	cr_assert_eq(join_sd_told(&s[0], &sa), 0);
	cr_assert_eq(join_sd_told(&s[1], &sa), 0);
	cr_expect_eq(fake_sctp_net.connects, 1);
	host(0, 0x7f000003);
	cr_assert_eq(join_sd_told(&s[2], &sa), 0);
	cr_expect_eq(fake_sctp_net.connects, 2, "another first one");
	host(1, 0x7f000004);
	cr_assert_eq(join_sd_told(&s[3], &sa), 0);
	cr_expect_eq(fake_sctp_net.connects, 3, "another second one");
	for (int i = 0; i < 4; i++)
		sd_free(&s[i]);
}

Test(sd_told, one_whose_peer_takes_nothing_is_not_shared)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);

	raw->peer->info.shut = true;
	cr_assert_eq(sd_connect(&w, &v, SD_RAW_PORT, false, NULL, 0), 0);
	cr_expect_eq(fake_sctp_net.connects, 2);
	cr_expect_neq(sd_carrier_of(&w, 1), NULL);
}

/* ---- which backend ---- */

static struct ddps_sd_backend plain;

static bool return_never(void)
{
	return false;
}

static int try_plain(unsigned hosts, unsigned from, bool per_address)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	struct ddps_setup setup = { 0 };
	struct ddps_llp_listener *l;

	w.log[0] = 0;
	strcpy(w.uri.backend, "native");
	for (unsigned i = 0; i < hosts; i++)
		host(i, 0x7f000001 + i);
	w.uri.hosts.n = hosts;
	w.uri.from.n = from;
	w.uri.per_address = per_address;
	if (from)
		return ddps_sctp_provider.connect(&w.env, &w.uri, (struct sockaddr *)&sa, sizeof sa,
						  &setup, &w.param, NULL, NULL, &u.llp);
	return ddps_sctp_provider.listen(&w.env, &w.uri, (struct sockaddr *)&sa, sizeof sa,
					 &w.lparam, NULL, NULL, &l);
}

/* What a backend cannot do is said first, then that it is not there. */
Test(sd_told, one_address_each_is_no_list)
{
	static const struct {
		unsigned hosts, from;
		bool per_address, shares;
		const char *why;
	} cases[] = {
		{ 2, 0, false, false, "backend fake takes no list of addresses\n" },
		{ 0, 2, false, false, "backend fake takes no list of addresses\n" },
		{ 0, 0, true, false, "backend fake has no per-address=\n" },
		{ 0, 0, true, true, "backend fake is not available here\n" },
		{ 0, 0, false, false, "backend fake is not available here\n" },
		{ 1, 0, false, false, "backend fake is not available here\n" },
		{ 0, 1, false, false, "backend fake is not available here\n" },
		{ 1, 1, false, false, "backend fake is not available here\n" },
	};

	cr_assert_eq(ddps_sd_use_backend(&w.env, &fake_sctp, false, false), 0);
	plain = fake_sctp;
	plain.available = return_never;
	((struct ddps_sd_provider *)w.env.sctp)->slot[0].b = &plain;
	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		plain.shares = cases[i].shares;
		cr_expect_eq(try_plain(cases[i].hosts, cases[i].from, cases[i].per_address),
			     DDPS_E_UNSUPPORTED);
		cr_expect_str_eq(w.log, cases[i].why);
	}
}

/* ---- timers ---- */

static bool is_sd_told_due_in(const struct ddps_timer *t, uint64_t ms)
{
	uint64_t left = t->due - ddps_now();

	return ddps_timer_runs(t) && left <= ms * NSEC_PER_MSEC &&
	       left > (ms - ms / 10) * NSEC_PER_MSEC;
}

Test(sd_told, an_answer_is_waited_for_until_it_is_here)
{
	struct ddps_sd_assoc *raw;
	struct ddps_sd_pair *p;

	w.param.setup_ms = 60000;
	w.param.connect_ms = 50000;
	raw = sd_raw_initiated(&w, &u, false);
	p = sd_pair_of(&u);
	cr_expect(is_sd_told_due_in(&p->timer, 60000));
	cr_expect_not(ddps_timer_runs(&((struct ddps_sd_session *)u.llp)->timer));
	ddps_sd_pair_step(p, DDPS_SD_EV_DRAINED, NULL, NULL);
	cr_expect(is_sd_told_due_in(&p->timer, 60000), "it goes on");
	sd_send(&w, raw, 0, "0000 0002");
	cr_expect_not(ddps_timer_runs(&p->timer));
	sd_send_segment(&w, raw, 0, 1, 0);
	cr_expect_not(ddps_timer_runs(&p->timer));
}

/* RFC 5043 2: a second period in A1c, of ten seconds where the layer above gave none. */
Test(sd_told, a_request_that_was_given_up_waits_for_its_answer)
{
	struct ddps_sd_pair *p;

	sd_raw_initiated(&w, &u, false);
	p = sd_pair_of(&u);
	cr_expect_not(ddps_timer_runs(&p->timer));
	sd_free(&u);
	cr_expect_eq(p->sm.state, DDPS_SD_A1C);
	cr_expect(is_sd_told_due_in(&p->timer, 10000));
}

Test(sd_told, each_deadline_has_its_words)
{
	static struct sd_ulp many[DDPS_SD_PENDING_MAX];
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);

	sd_send(&w, raw, 0, "0000 0002");
	for (unsigned i = 0; i < DDPS_SD_PENDING_MAX; i++)
		cr_assert_eq(sd_connect(&w, &many[i], SD_RAW_PORT, false, NULL, 0), 0);
	w.param.connect_ms = 1;
	cr_assert_eq(sd_connect(&w, &v, SD_RAW_PORT, false, NULL, 0), 0);
	sd_run_until(&w, &v.closes);
	cr_expect_eq(v.error.code, DDPS_E_TIMEDOUT);
	cr_expect_str_eq(v.error.text, "no SCTP association in 1 ms");
	((struct ddps_sd_session *)u.llp)->param.close_ms = 1;
	u.llp->ops->shutdown(u.llp);
	sd_run_until(&w, &u.closes);
	cr_expect_eq(u.error.code, DDPS_E_TIMEDOUT);
	cr_expect_str_eq(u.error.text, "the peer did not close in 1 ms");
	for (unsigned i = 0; i < DDPS_SD_PENDING_MAX; i++)
		sd_free(&many[i]);
}

/* ---- ends ---- */

Test(sd_told, an_association_that_ends_in_order_is_closed)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);

	fake_sctp_lose(raw->peer, 0);
	sd_run(&w);
	cr_expect_eq(u.closes, 1);
	cr_expect_eq(u.error.code, DDPS_E_CLOSED);
	cr_expect_eq(u.error.sys_errno, 0);
	cr_expect_str_eq(u.error.text, "association closed");
}

Test(sd_told, a_session_ends_in_order_or_not_at_all)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);
	struct ddps_sd_session *s = (struct ddps_sd_session *)u.llp;

	u.llp->ops->shutdown(u.llp);
	cr_expect(s->ended, "nothing is open that could be closed");
	sd_run(&w);
	cr_expect_eq(u.closes, 1);
	cr_expect_str_eq(u.error.text, "aborted by this side");
	sd_expect_silence(raw);
}

Test(sd_told, an_accepted_session_that_is_not_opened_is_aborted)
{
	struct ddps_sd_assoc *raw;

	u.no_open = true;
	raw = sd_raw_initiated(&w, &u, false);
	sd_send(&w, raw, 0, "0000 0002");
	u.llp->ops->shutdown(u.llp);
	sd_run(&w);
	cr_expect_eq(u.closes, 1);
	cr_expect_str_eq(u.error.text, "aborted by this side");
	sd_expect(raw, 0, "0001 0004");
}

Test(sd_told, a_shut_session_sends_what_there_is_and_then_its_end)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);

	sd_send(&w, raw, 0, "0000 0002");
	u.to_send = 1; /* and no kick */
	u.llp->ops->shutdown(u.llp);
	sd_run(&w);
	cr_expect_eq(u.done, 1);
	free(fake_sctp_raw_take(raw));
	sd_expect(raw, 0, "0002 0004");
}

/* What has to wait for the Accept is not forgotten. */
Test(sd_told, a_session_is_shut_before_its_accept_has_left)
{
	struct ddps_sd_assoc *raw;

	w.accept = false;
	raw = sd_raw_to_listener(&w);
	sd_send(&w, raw, 0, "0000 0001");
	sd_carrier_of(&w, 0)->blocked = true;
	cr_assert_eq(sd_answer(&w.req[0], false, NULL, 0), 0);
	w.req[0].llp->ops->shutdown(w.req[0].llp);
	sd_run(&w);
	sd_expect_silence(raw);
	ddps_sd_carrier_up.writable(sd_carrier_of(&w, 0));
	sd_run(&w);
	sd_expect(raw, 0, "0000 0002");
	sd_expect(raw, 0, "0001 0004");
}

Test(sd_told, a_plain_reject_is_a_reject)
{
	struct ddps_sd_assoc *raw;

	w.accept = false;
	raw = sd_raw_to_listener(&w);
	sd_send(&w, raw, 0, "0000 0001");
	cr_assert_eq(sd_answer(&w.req[0], true, "no", 2), 0);
	sd_run(&w);
	sd_expect(raw, 0, "0000 0003 6e6f");
}

Test(sd_told, ordered_messages_are_counted)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct ddps_sd_carrier *c = sd_carrier_of(&w, 0);

	sd_send_segment(&w, raw, 0, 1, 0);
	cr_expect_eq(c->stats.ordered, 0);
	fake_sctp_ordered(raw, 0, DDPS_SD_PPID_SEGMENT, "\0\2\0\0\0\1", 6);
	sd_run(&w);
	cr_expect_eq(c->stats.ordered, 1);
	cr_expect_eq(w.req[0].segments, 2);
}

Test(sd_told, a_restart_ends_them_all)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);

	cr_assert_eq(sd_connect(&w, &v, SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&w);
	ddps_sd_carrier_up.restarted(sd_carrier_of(&w, 0));
	cr_expect_eq(sd_carrier_of(&w, 0)->npairs, 0);
	cr_expect_eq(sd_carrier_of(&w, 0)->acked, sd_carrier_of(&w, 0)->sent);
	sd_run(&w);
	cr_expect_eq(u.error.code, DDPS_E_RESET);
	cr_expect_eq(v.error.code, DDPS_E_RESET);
	(void)raw;
}

/* ---- no memory ---- */

Test(sd_told, a_request_without_memory_is_refused)
{
	struct ddps_sd_assoc *raw = sd_raw_to_listener(&w);

	fake_sctp_raw_send(raw, 0, DDPS_SD_PPID_CONTROL, "\0\0\0\1", 4);
	mem_fail(3); /* behind the table and the pair */
	sd_run(&w);
	cr_expect(mem_failed());
	cr_expect_eq(w.nreq, 0);
	sd_expect(raw, 0, "0000 0004");
}

Test(sd_told, a_second_session_without_memory_for_its_pair)
{
	sd_raw_initiated(&w, &u, false);
	mem_fail(3); /* behind the goal and the session: the table */
	cr_assert_eq(sd_connect(&w, &v, SD_RAW_PORT, false, NULL, 0), 0);
	cr_expect(mem_failed());
	sd_run(&w);
	cr_expect_eq(v.closes, 1);
	cr_expect_eq(v.error.code, DDPS_E_NOMEM);
	cr_expect_eq(v.error.sys_errno, 0);
	cr_expect_str_eq(v.error.text, "no memory for a stream pair");
}

Test(sd_told, a_segment_without_memory_ends_its_session)
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);
	struct ddps_sd_provider *prov = w.env.sctp;

	sd_send(&w, raw, 0, "0000 0002");
	free(prov->seg);
	prov->seg = NULL;
	u.to_send = 1;
	mem_fail(1);
	u.llp->ops->kick(u.llp);
	cr_expect(mem_failed());
	sd_run(&w);
	cr_expect_eq(u.closes, 1);
	cr_expect_eq(u.error.code, DDPS_E_NOMEM);
	cr_expect_eq(u.error.sys_errno, 0);
	cr_expect_str_eq(u.error.text, "no memory for a segment");
}

/* ---- segments at their limit ---- */

Test(sd_told, the_longest_segment, .description = "5043-9-4")
{
	struct ddps_sd_assoc *raw = sd_raw_initiated(&w, &u, false);
	char text[80];

	sd_send(&w, raw, 0, "0000 0002");
	u.to_send = 1;
	u.pay_len = mulpdu() - SD_SEG_HDR;
	u.llp->ops->kick(u.llp);
	sd_run(&w);
	cr_expect_eq(u.done, 1);
	cr_expect_eq(u.closes, 0);
	u.to_send = 2;
	u.pay_len = mulpdu() + 1;
	snprintf(text, sizeof text, "segment of %zu octets, MULPDU is %zu", u.pay_len + SD_SEG_HDR,
		 mulpdu());
	u.llp->ops->kick(u.llp);
	sd_run(&w);
	cr_expect_eq(u.closes, 1);
	cr_expect_eq(u.error.code, DDPS_E_TOO_LONG);
	cr_expect_str_eq(u.error.text, text);
}

/* ---- ids ---- */

static uint16_t get_sd_told_stream(struct sd_ulp *s)
{
	cr_assert_eq(sd_connect(&w, s, SD_RAW_PORT, false, NULL, 0), 0);
	sd_run(&w);
	return sd_pair_of(s)->stream;
}

static void lose_sd_told(struct sd_ulp *s)
{
	struct ddps_error e = ddps_error_make(DDPS_E_RESET, 0, "test");

	ddps_sd_pair_step(sd_pair_of(s), DDPS_SD_EV_LOST, NULL, &e);
	sd_free(s);
}

/* The search for a free one goes round, from behind the one that was taken last. */
static void ids_go_round(bool by_us, uint16_t usable)
{
	const uint16_t odd = by_us ? 0 : 1;
	static struct sd_ulp s[3];
	struct ddps_sd_carrier *a;

	fake_sctp_net.in_streams = usable;
	sd_raw_initiated(&w, &u, false);
	a = sd_carrier_of(&w, 0);
	a->by_us = by_us;
	a->next_id = 0;
	lose_sd_told(&u);
	for (uint16_t i = 0; i < 3; i++)
		cr_expect_eq(get_sd_told_stream(&s[i]), 2 * i + odd);
	cr_expect(ddps_sd_carrier_full(a));
	lose_sd_told(&s[0]);
	cr_expect_not(ddps_sd_carrier_full(a));
	cr_expect_eq(get_sd_told_stream(&s[0]), odd);
	cr_expect(ddps_sd_carrier_full(a));
	a->next_id = 3;
	lose_sd_told(&s[1]);
	lose_sd_told(&s[2]);
	cr_expect_eq(get_sd_told_stream(&s[1]), 2 + odd, "the next one that is free");
	cr_expect_eq(get_sd_told_stream(&s[2]), 4 + odd);
	for (int i = 0; i < 3; i++)
		sd_free(&s[i]);
}

Test(sd_told, even_ids_go_round)
{
	ids_go_round(true, 6);
}

Test(sd_told, odd_ids_go_round)
{
	ids_go_round(false, 7);
}

/* One stream is the even one: nothing is left for the side that takes odd ones. */
Test(sd_told, no_id_for_one_side)
{
	struct ddps_sd_carrier *a;

	fake_sctp_net.in_streams = 1;
	sd_raw_initiated(&w, &u, false);
	a = sd_carrier_of(&w, 0);
	a->by_us = false;
	cr_expect(ddps_sd_carrier_full(a));
	lose_sd_told(&u);
	cr_expect(ddps_sd_carrier_full(a));
	a->by_us = true;
	cr_expect_not(ddps_sd_carrier_full(a));
}
