/* SPDX-License-Identifier: BSD-2-Clause */
/* What anybody can send to a port of DTLS: greetings without end, records of nobody, and a peer whose port changes. */
#include "sd_dtls_fixture.h"
#include "secure/shaker_in.h"

TestSuite(sd_dtls_strangers, .timeout = 60);

#define HELLO_LEN (DDPS_DTLS_HEADER + 200u)

/* ---- where packets go ---- */

static unsigned sent_to[65536];

static ssize_t note_destination(int fd, const struct msghdr *m, int flags)
{
	sent_to[ntohs(((const struct sockaddr_in *)m->msg_name)->sin_port)]++;
	return sys_sendmsg(fd, m, flags);
}

static void watch_destinations(void)
{
	memset(sent_to, 0, sizeof sent_to);
	sys_instead.sendmsg = note_destination;
}

/* ---- greetings ---- */

/* The first message of the stub, with the cookie of this address; @nr makes two of them differ. */
static void make_hello(uint32_t address, uint16_t port, uint8_t nr, uint8_t out[HELLO_LEN])
{
	uint8_t who[22] = { 0 }, answer[DDPS_DHS_ANSWER];
	struct ddps_hs_began began;
	uint32_t ip = htonl(address);
	size_t n;

	memset(out, 0, HELLO_LEN);
	out[0] = DDPS_DTLS_HANDSHAKE;
	out[1] = 254;
	out[2] = 253;
	out[12] = 200;
	out[DDPS_DTLS_HEADER] = 1;
	out[22] = out[32] = nr;
	if (!address)
		return;
	memcpy(who, &ip, sizeof ip);
	memcpy(who + 20, &port, sizeof port);
	cr_assert_eq(dtls_stub_greet(NULL, who, sizeof who, out, HELLO_LEN, answer, &n, &began),
		     DDPS_DHS_ANSWER_IT);
	memcpy(out + DDPS_DTLS_HEADER + 1, answer + DDPS_DTLS_HEADER + 1, 8);
}

Test(sd_dtls_strangers, a_greeting_without_a_cookie_leaves_nothing)
{
	uint8_t hello[HELLO_LEN];
	long live;

	start_dtls_nodes();
	watch_destinations();
	make_hello(0, 0, 1, hello);
	live = mem_live();
	for (unsigned i = 0; i < 100; i++)
		give_datagram(dtls_port(), 0, (uint16_t)(1000 + i), hello, sizeof hello);
	cr_expect_eq(mem_live(), live);
	cr_expect_eq(sn.env.secured.cookies, 100);
	cr_expect_eq(dtls_env(&sn)->ndtls, 0);
	cr_expect_eq(sent_to[1000], 1);
	give_datagram(dtls_port(), 0, 0, hello, sizeof hello);
	give_datagram(dtls_port(), 0, 2000, hello, sizeof hello - 1);
	cr_expect_eq(sn.env.secured.cookies, 100, "port 0; and one that is cut off");
	make_hello(INADDR_LOOPBACK, 2000, 1, hello);
	give_datagram(dtls_port(), 0, 2001, hello, sizeof hello);
	cr_expect_null(dtls_listener(), "another port's cookie");
	give_datagram(dtls_port(), 0, 2000, hello, sizeof hello);
	cr_assert(dtls_listener());
	cr_expect_eq(dtls_listener()->state, DDPS_SN_SHAKING);
	cr_expect_eq(dtls_port()->table->shaking.places, 1);
	stop_dtls_nodes();
}

/* A cookie is good for one or two minutes. */
Test(sd_dtls_strangers, the_secret_of_cookies_is_renewed)
{
	uint8_t hello[HELLO_LEN], was[2][DDPS_DHS_SECRET];
	struct ddps_sn_dtls_table *t;

	start_dtls_nodes();
	t = dtls_port()->table;
	make_hello(0, 0, 1, hello);
	memcpy(was, t->secret, sizeof was);
	t->secret_at = ddps_now() - 59 * SECOND;
	give_datagram(dtls_port(), 0, 1000, hello, sizeof hello);
	cr_expect_arr_eq(t->secret, was, sizeof was);
	t->secret_at = ddps_now() - 60 * SECOND;
	give_datagram(dtls_port(), 0, 1000, hello, sizeof hello);
	cr_expect_arr_eq(t->secret[1], was[0], DDPS_DHS_SECRET);
	cr_expect_neq(memcmp(t->secret[0], was[0], DDPS_DHS_SECRET), 0);
	cr_expect_lt(ddps_now() - t->secret_at, SECOND * 50);
	stop_dtls_nodes();
}

/* What comes behind it in the same call is its own. */
Test(sd_dtls_strangers, a_run_of_greetings_begins_one)
{
	uint8_t twice[2 * HELLO_LEN];

	start_dtls_nodes();
	make_hello(INADDR_LOOPBACK, 2000, 1, twice);
	memcpy(twice + HELLO_LEN, twice, HELLO_LEN);
	dtls_run = HELLO_LEN;
	give_datagram(dtls_port(), 0, 2000, twice, sizeof twice);
	cr_expect(dtls_listener());
	cr_expect_null(dtls_at(&sn, 1));
	stop_dtls_nodes();
}

/* One could be taken for the other; and two listeners would take from each other. */
Test(sd_dtls_strangers, a_port_that_is_secured_is_shared_with_nobody)
{
	static const char *const schemes[] = { "sctps", "sctp" };

	start_dtls_nodes();
	for (unsigned i = 0; i < 2; i++) {
		struct ddps_uri uri = { .encap = srv.encap };
		struct ddps_sd_endpoint *other;

		snprintf(uri.scheme, sizeof uri.scheme, "%s", schemes[i]);
		cr_expect_eq((B)->listen(&sn.env, &sn.ctx, &uri, (struct sockaddr *)&srv.sa,
					 srv.sa_len, FX_BACKLOG, &fx_listen_up, &srv, &other),
			     DDPS_E_SYSTEM, "%s", schemes[i]);
	}
	stop_dtls_nodes();
}

/* Its handshake has failed at the other end, which begins another one: only that goes on. */
Test(sd_dtls_strangers, another_greeting_takes_the_place_of_one_under_way)
{
	uint8_t hello[HELLO_LEN];
	struct ddps_sn_dtls *first;

	start_dtls_nodes();
	make_hello(INADDR_LOOPBACK, 2000, 1, hello);
	give_datagram(dtls_port(), 0, 2000, hello, sizeof hello);
	first = dtls_listener();
	cr_expect_arr_eq(first->random, hello + 27, sizeof first->random);
	give_datagram(dtls_port(), 0, 2000, hello, sizeof hello);
	cr_expect_eq(first->state, DDPS_SN_SHAKING, "the same once more");
	cr_expect_null(dtls_at(&sn, 1));
	make_hello(0, 0, 2, hello);
	give_datagram(dtls_port(), 0, 2000, hello, sizeof hello);
	cr_expect_eq(first->state, DDPS_SN_SHAKING, "it has no cookie");
	make_hello(INADDR_LOOPBACK, 2000, 2, hello);
	give_datagram(dtls_port(), 0, 2000, hello, sizeof hello);
	turn_dtls(&sn, 0);
	cr_assert(dtls_listener());
	cr_expect_null(dtls_at(&sn, 1));
	cr_expect_eq(dtls_listener()->state, DDPS_SN_SHAKING);
	cr_expect_arr_eq(dtls_listener()->random, hello + 27, sizeof first->random);
	cr_expect_eq(dtls_port()->table->shaking.places, 1);
	stop_dtls_nodes();
}

/* As short as one can be that has a random: it goes no further. */
Test(sd_dtls_strangers, a_greeting_that_is_cut_short_disturbs_none_under_way)
{
	enum { LEAST = 27 + 32 };
	uint8_t hello[HELLO_LEN];
	struct ddps_sn_dtls *c;

	start_dtls_nodes();
	make_hello(INADDR_LOOPBACK, 2000, 1, hello);
	give_datagram(dtls_port(), 0, 2000, hello, sizeof hello);
	c = dtls_listener();
	while (ddps_shake_busy(c->shake))
		turn_dtls(&sn, 5);
	c->heard_at = 0;
	make_hello(INADDR_LOOPBACK, 2000, 2, hello);
	hello[12] = LEAST - DDPS_DTLS_HEADER;
	give_datagram(dtls_port(), 0, 2000, hello, LEAST);
	cr_expect_eq(c->state, DDPS_SN_SHAKING);
	cr_expect_eq(c->heard_at, 0, "it is not of this one");
	stop_dtls_nodes();
}

/* By its network it takes turns with others. */
Test(sd_dtls_strangers, a_handshake_is_of_the_network_of_its_peer)
{
	static const struct ddps_sctp_addr peers[] = {
		{ .family = 6, .ip = { 0x20, 1, 0xd, 0xb8, [7] = 5, [15] = 9 } },
		{ .family = 4, .ip = { 192, 0, 2, 7 } },
	};
	static const struct ddps_error none;
	const struct ddps_creds_want want = { .server = true };
	struct sockaddr_storage ss[2] = { 0 };
	struct ddps_error why;

	memcpy(&ss[0],
	       &(struct sockaddr_in6){ .sin6_family = AF_INET6,
				       .sin6_addr.s6_addr = { 0x20, 1, 0xd, 0xb8, [7] = 5 } },
	       sizeof(struct sockaddr_in6));
	memcpy(&ss[1],
	       &(struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000207) },
	       sizeof(struct sockaddr_in));
	start_dtls_nodes();
	for (unsigned i = 0; i < 2; i++) {
		struct ddps_sn_dtls *c =
			ddps_sn_dtls_new(dtls_port(), &peers[i], 2000, &dtls_given.to);

		c->server = true;
		cr_assert_eq(ddps_sn_dtls_shake(c, &want, NULL, NULL, 0, &why), 0);
		cr_expect_eq(c->shake->net, ddps_share_net_sa((struct sockaddr *)&ss[i]), "%u", i);
		ddps_sn_dtls_end(c, &none);
	}
	stop_dtls_nodes();
}

Test(sd_dtls_strangers, half_open_ones_have_a_bound)
{
	uint8_t hello[HELLO_LEN];
	const uint32_t flood = 0x0a000001;
	struct ddps_sn_dtls_table *t;

	start_dtls_nodes();
	t = dtls_port()->table;
	make_hello(INADDR_LOOPBACK, 2000, 1, hello);
	give_datagram(dtls_port(), 0, 2000, hello, sizeof hello);
	for (uint16_t i = 1; i <= 1100; i++) {
		make_hello(flood, i, 1, hello);
		give_datagram(dtls_port(), flood, i, hello, sizeof hello);
		cr_assert_eq(t->shaking.places, i < 1024 ? i + 1u : 1024);
	}
	cr_expect_eq(dtls_listener()->at.port, 2000, "whoever is alone keeps its place");
	cr_expect_eq(dtls_listener()->state, DDPS_SN_SHAKING);
	(B)->endpoint_free(srv.ep);
	turn_dtls(&sn, 0);
	cr_expect_eq(dtls_env(&sn)->ndtls, 0);
	stop_dtls_nodes();
}

/* ---- peers that are named ---- */

static char logged[400];
static unsigned lines;

static void take_dtls_line(void *user, enum ddps_log_level level, const char *facility,
			   const char *text)
{
	(void)user;
	(void)facility;
	if (level > DDPS_LOG_WARN)
		return;
	lines++;
	snprintf(logged, sizeof logged, "%s", text);
}

static void check_told(unsigned n, const char *text)
{
	cr_expect_eq(lines, n, "%u lines, the last is %s", lines, logged);
	cr_expect(strstr(logged, text), "%s", logged);
}

/* What is repeated within a minute is said once, of each peer and reason. */
Test(sd_dtls_strangers, who_speaks_something_else_is_named_once)
{
	uint8_t init[32] = { [12] = 1 }, hello[5000];

	start_dtls_nodes();
	sn.env.log.fn = take_dtls_line;
	for (unsigned i = 0; i < 3; i++)
		give_datagram(dtls_port(), 0, 2000, init, sizeof init);
	check_told(1, "it speaks plain SCTP");
	give_datagram(dtls_port(), 0, 2000, init, sizeof init - 1);
	init[13] = 1;
	give_datagram(dtls_port(), 0, 2001, init, sizeof init);
	init[13] = 0;
	init[5] = 1;
	give_datagram(dtls_port(), 0, 2002, init, sizeof init);
	check_told(1, "it speaks plain SCTP");
	make_hello(0, 0, 1, hello);
	memset(hello + HELLO_LEN, 0, sizeof hello - HELLO_LEN);
	for (unsigned n = 4096; n <= 4097; n++) {
		hello[11] = (uint8_t)((n - DDPS_DTLS_HEADER) >> 8);
		hello[12] = (uint8_t)(n - DDPS_DTLS_HEADER);
		for (unsigned i = 0; i < 2; i++)
			give_datagram(dtls_port(), 0, 2000, hello, n);
		check_told(n > 4096 ? 2 : 1,
			   n > 4096 ? "4097 octets, and 4096 are taken" : "plain");
	}
	give_datagram(dtls_port(), 0, 2003, hello, 4097);
	check_told(3, "127.0.0.1:2003");
	hello[DDPS_DTLS_HEADER] = 2; /* no ClientHello */
	give_datagram(dtls_port(), 0, 2004, hello, 4097);
	check_told(3, "127.0.0.1:2003");
	for (unsigned i = 0; i < DDPS_SN_REFUSED; i++)
		dtls_env(&sn)->refused[i].at -= 64 * SECOND;
	init[5] = 0;
	give_datagram(dtls_port(), 0, 2000, init, sizeof init);
	check_told(4, "it speaks plain SCTP");
	cr_expect_eq(sn.env.refused[DDPS_REFUSED_PROTOCOL], 2);
	cr_expect_eq(sn.env.refused[DDPS_REFUSED_GONE], 2);
	stop_dtls_nodes();
}

/* Anybody can greet and say no more, again and again. */
Test(sd_dtls_strangers, who_is_late_is_named_once)
{
	uint8_t hello[HELLO_LEN];
	struct ddps_sn_dtls *c;

	start_dtls_nodes();
	sn.env.log.fn = take_dtls_line;
	make_hello(INADDR_LOOPBACK, 2000, 1, hello);
	for (unsigned i = 0; i < 3; i++) {
		give_datagram(dtls_port(), 0, 2000, hello, sizeof hello);
		c = dtls_listener();
		cr_assert(c);
		while (ddps_shake_busy(c->shake))
			turn_dtls(&sn, 5);
		c->deadline = ddps_now();
		ddps_sn_dtls_timer(c);
		turn_dtls(&sn, 0);
		cr_expect_null(dtls_listener());
		check_told(1, "no DTLS handshake in time");
	}
	stop_dtls_nodes();
}

Test(sd_dtls_strangers, a_greeting_is_one_by_its_octets)
{
	uint8_t hello[HELLO_LEN];
	static const unsigned at[] = { 0, 1, 3, 4, DDPS_DTLS_HEADER };

	make_hello(0, 0, 1, hello);
	cr_expect(ddps_sn_dtls_is_hello(hello, DDPS_DTLS_HEADER + 1));
	cr_expect_not(ddps_sn_dtls_is_hello(hello, DDPS_DTLS_HEADER));
	for (unsigned i = 0; i < sizeof at / sizeof *at; i++) {
		hello[at[i]]++;
		cr_expect_not(ddps_sn_dtls_is_hello(hello, sizeof hello), "octet %u", at[i]);
		hello[at[i]]--;
	}
}

/* ---- before the keys ---- */

/* Records of data that come too early are kept, up to a bound, and looked at when there are keys. */
Test(sd_dtls_strangers, what_comes_before_the_keys_has_a_bound)
{
	static const struct {
		unsigned n;
		size_t len;
		unsigned kept;
	} t[] = { { 20, 100, 16 }, { 3, 8000, 2 },  { 3, 8191, 2 },
		  { 3, 8192, 1 },  { 1, 16384, 1 }, { 1, 16385, 0 } };
	static uint8_t junk[20000];

	for (unsigned k = 0; k < sizeof t / sizeof *t; k++) {
		const size_t body = t[k].len - DDPS_DTLS_HEADER;
		const uint8_t head[DDPS_DTLS_HEADER] = {
			DDPS_DTLS_DATA,	     254, 253, 0, 1, [11] = (uint8_t)(body >> 8),
			[12] = (uint8_t)body
		};

		memcpy(junk, head, sizeof head);
		start_dtls_nodes();
		dial_dtls_side(&cli, &fx_up);
		DTLS_UNTIL(dtls_listener());
		for (unsigned i = 0; i < t[k].n; i++)
			give_datagram(dtls_port(), 0, dtls_of(&cn)->udp->port, junk, t[k].len);
		cr_expect_eq(dtls_listener()->early.n, t[k].kept, "row %u: %u", k,
			     dtls_listener()->early.n);
		DTLS_UNTIL(cli.up && srv.accepted);
		cr_expect_eq(sn.env.secured.forged, t[k].kept, "row %u", k);
		cr_expect_null(dtls_listener()->early.p);
		carry_dtls(&cli, &srv.peers[0], 1, 100);
		stop_dtls_nodes();
	}
}

/* Of the handshake, while a step is under way. */
Test(sd_dtls_strangers, what_waits_for_a_step_has_a_bound)
{
	static uint8_t r[3000] = { DDPS_DTLS_HANDSHAKE, 254, 253 };
	struct ddps_sn_dtls *c;

	start_dtls_nodes();
	dial_dtls_side(&cli, &fx_up);
	c = dtls_of(&cn);
	cr_assert(ddps_shake_busy(c->shake));
	for (unsigned i = 0; i < 70; i++)
		ddps_sn_dtls_shake_in(c, r, 500);
	cr_expect_eq(c->todo.n, 64);
	c->todo.len = c->todo.n = 0;
	for (unsigned i = 0; i < 70; i++)
		ddps_sn_dtls_shake_in(c, r, sizeof r);
	cr_expect_eq(c->todo.n, 65536 / 3002);
	DTLS_UNTIL(cli.up);
	stop_dtls_nodes();
}

/* ---- a port that changes ---- */

/* What has no content, by the next number of the dialler's. */
static void give_empty(uint16_t port, uint8_t keep[DDPS_SN_DTLS_MTU], size_t *n)
{
	*n = seal_by_hand(dtls_of(&cn), DDPS_DTLS_DATA, "", 0, keep);
	give_datagram(dtls_port(), 0, port, keep, *n);
	turn_dtls(&sn, 0);
}

Test(sd_dtls_strangers, the_newest_record_of_another_port_has_it_asked)
{
	uint8_t r[DDPS_SN_DTLS_MTU], older[DDPS_SN_DTLS_MTU];
	struct ddps_sn_dtls *c;
	uint16_t home;
	size_t n, m;

	start_dtls_pair();
	carry_dtls(&cli, &srv.peers[0], 2, 100);
	c = dtls_listener();
	home = c->at.port;
	watch_destinations();
	m = seal_by_hand(dtls_of(&cn), DDPS_DTLS_DATA, "", 0, older);
	give_empty(ELSEWHERE, r, &n);
	cr_expect_eq(sn.env.secured.tried, 1);
	cr_expect_eq(c->roam.port, ELSEWHERE);
	cr_expect_eq(c->roam.c, c);
	cr_expect_eq(c->at.port, home);
	cr_expect_eq(sent_to[ELSEWHERE], 1, "a HEARTBEAT");
	cr_expect_eq(ddps_sn_dtls_find(c->udp, &c->peer, ELSEWHERE), c);
	/* one that was caught on its way and sent from elsewhere says nothing */
	give_datagram(dtls_port(), 0, ELSEWHERE + 1, older, m);
	give_datagram(dtls_port(), 0, ELSEWHERE + 2, r, n);
	turn_dtls(&sn, 0);
	cr_expect_eq(sn.env.secured.tried, 3);
	cr_expect_eq(c->roam.port, ELSEWHERE);
	cr_expect_eq(sent_to[ELSEWHERE + 1] + sent_to[ELSEWHERE + 2], 0);
	/* another place to ask */
	give_empty(ELSEWHERE + 3, r, &n);
	cr_expect_eq(c->roam.port, ELSEWHERE + 3);
	cr_expect_null(ddps_sn_dtls_find(c->udp, &c->peer, ELSEWHERE));
	/* it is where it was */
	give_empty(home, r, &n);
	cr_expect_null(c->roam.c);
	cr_expect_null(ddps_sn_dtls_find(c->udp, &c->peer, ELSEWHERE + 3));
	cr_expect_eq(sn.env.secured.rebound, 0);
	carry_dtls(&cli, &srv.peers[0], 2, 100);
	stop_dtls_nodes();
}

/* Whoever begins a handshake at a port that is only being asked has it. */
Test(sd_dtls_strangers, a_port_that_is_asked_is_free_for_others)
{
	uint8_t r[DDPS_SN_DTLS_MTU], hello[HELLO_LEN];
	struct ddps_sn_dtls *c;
	size_t n;

	start_dtls_pair();
	c = dtls_listener();
	give_empty(ELSEWHERE, r, &n);
	cr_expect_eq(c->roam.port, ELSEWHERE);
	make_hello(INADDR_LOOPBACK, ELSEWHERE, 1, hello);
	give_datagram(dtls_port(), 0, ELSEWHERE, hello, sizeof hello);
	cr_assert(dtls_at(&sn, 1));
	cr_expect_null(c->roam.c);
	cr_expect_eq(ddps_sn_dtls_find(c->udp, &c->peer, ELSEWHERE), dtls_at(&sn, 1));
	cr_expect_not(ddps_sn_dtls_roamed(c, ELSEWHERE), "it is another one's now");
	cr_expect(ddps_sn_dtls_roamed(c, c->at.port), "it is there already");
	cr_expect_eq(sn.env.secured.rebound, 0);
	stop_dtls_nodes();
}

/* It has answered there, and is not asked any more; where else it is asked stays as it is. */
Test(sd_dtls_strangers, a_port_that_has_answered_is_its_own)
{
	uint8_t r[DDPS_SN_DTLS_MTU];
	struct ddps_sn_dtls *c;
	size_t n;

	start_dtls_pair();
	c = dtls_listener();
	give_empty(ELSEWHERE, r, &n);
	cr_expect(ddps_sn_dtls_roamed(c, ELSEWHERE));
	cr_expect_null(c->roam.c);
	cr_expect_eq(c->at.port, ELSEWHERE);
	cr_expect_eq(ddps_sn_dtls_find(c->udp, &c->peer, ELSEWHERE), c);
	give_empty(ELSEWHERE + 1, r, &n);
	cr_expect(ddps_sn_dtls_roamed(c, ELSEWHERE + 2));
	cr_expect_eq(c->roam.c, c);
	cr_expect_eq(ddps_sn_dtls_find(c->udp, &c->peer, ELSEWHERE + 1), c);
	cr_expect_eq(sn.env.secured.rebound, 2);
	stop_dtls_nodes();
}
