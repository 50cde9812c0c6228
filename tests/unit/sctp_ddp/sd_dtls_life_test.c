/* SPDX-License-Identifier: BSD-2-Clause */
/* DTLS connections of the native SCTP: they come up, end in every state, and nothing is left of them. */
#include "sd_dtls_fixture.h"
#include <dirent.h>
#include <errno.h>

TestSuite(sd_dtls_life, .timeout = 60);

static unsigned count_dtls_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static long live;
static unsigned fds;

static void note_what_is_there(void)
{
	count_dtls_descriptors(); /* which allocates, the first time */
	live = mem_live();
	fds = count_dtls_descriptors();
}

static void no_dtls_is_left(void)
{
	stop_dtls_nodes();
	cr_expect_eq(mem_live(), live, "%ld allocations are left", mem_live() - live);
	cr_expect_eq(count_dtls_descriptors(), fds);
}

/* ---- coming up ---- */

Test(sd_dtls_life, one_comes_up_carries_messages_and_leaves_nothing)
{
	const struct ddps_who *who;
	struct ddps_sn_dtls *c;

	note_what_is_there();
	start_dtls_pair();
	carry_dtls(&cli, &srv.peers[0], 20, 1000);
	who = (B)->peer_id(cli.a);
	cr_assert(who);
	cr_expect_str_eq(ddps_who_text(who, DDPS_WHO_NAME), "psk:stub");
	cr_expect_eq((B)->peer_id(srv.peers[0].a)->how, DDPS_PEER_PSK);
	cr_expect_eq(sn.env.secured.cookies, 1);
	cr_expect_eq(cn.env.secured.cookies, 0);
	cr_expect_eq(sn.env.secured.forged + sn.env.secured.strange + sn.env.secured.replayed, 0);
	c = dtls_of(&sn);
	cr_expect(c->server && c->took && c->state == DDPS_SN_OPEN);
	cr_expect_null(c->shake, "data has shown that its last flight came");
	cr_expect_null(c->todo.p);
	cr_expect_eq(c->deadline, 0, "that was the handshake's");
	cr_expect_eq(srv.ep->sock->table->shaking.places, 0);
	cr_expect_eq(dtls_env(&sn)->ndtls, 1);
	c = dtls_of(&cn);
	cr_expect(!c->server && c->took && !c->shake && !ddps_timer_runs(&c->timer));
	cr_expect_str_eq(c->host, "127.0.0.1");
	cr_expect_null(c->todo.p);
	cr_expect_eq(dtls_script.hs, 0);
	cr_expect_eq(dtls_script.witnesses, 2);
	cr_expect_eq(aead_stub_alive, 4);
	no_dtls_is_left();
}

/* What a record and the peer's limit take away of the path.  @mtu: of the engine's packets with IP and UDP. */
static void check_fits(uint16_t most, uint32_t mtu, size_t len)
{
	dtls_script.most = most;
	start_dtls_pair();
	cr_expect_eq(dtls_of(&cn)->param.mtu, mtu, "%u: %u", most, dtls_of(&cn)->param.mtu);
	cr_expect_eq(dtls_of(&sn)->param.mtu, mtu, "%u", most);
	cr_expect(dtls_of(&cn)->param.sealed && dtls_of(&sn)->param.sealed);
	carry_dtls(&cli, &srv.peers[0], 3, len);
	stop_dtls_nodes();
}

Test(sd_dtls_life, packets_fit_the_records_of_the_peer)
{
	check_fits(0, DDPS_SN_DTLS_MTU, 200);
	check_fits(1000, 1028, 200);
	check_fits(1003, 1028, 200);
	check_fits(100, 576, 200);
	check_fits(16347, 16368, 200);
}

Test(sd_dtls_life, messages_of_several_packets_fit_them_too)
{
	check_fits(0, DDPS_SN_DTLS_MTU, 5000);
	check_fits(1000, 1028, 5000);
	check_fits(100, 576, 5000);
}

/* The listener has many addresses: whoever was called answers. */
Test(sd_dtls_life, answers_come_from_the_address_that_was_called)
{
	dtls_bound = INADDR_ANY;
	start_dtls_nodes();
	((struct sockaddr_in *)&srv.sa)->sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
	dial_dtls_side(&cli, &fx_up);
	DTLS_UNTIL(cli.up && srv.accepted);
	carry_dtls(&cli, &srv.peers[0], 2, 1000);
	stop_dtls_nodes();
}

/* More of them than the cipher takes. */
Test(sd_dtls_life, packets_of_many_parts_are_whole)
{
	start_dtls_pair();
	carry_dtls(&cli, &srv.peers[0], 100, 10);
	carry_dtls(&cli, &srv.peers[0], 10, 3000);
	cr_expect_eq(cn.env.secured.forged + sn.env.secured.forged, 0);
	stop_dtls_nodes();
}

/* A run of packets that the kernel does not cut leaves packet by packet. */
Test(sd_dtls_life, runs_leave_cut_where_the_kernel_cuts_nothing)
{
	start_dtls_pair();
	dtls_of(&cn)->udp->gso = dtls_of(&sn)->udp->gso = true;
	sys_fail("sendmsg", 0, 2, EIO);
	carry_dtls(&cli, &srv.peers[0], 60, 3000);
	cr_expect_eq(sys_failed(), 2);
	cr_expect(!dtls_of(&cn)->udp->gso || !dtls_of(&sn)->udp->gso);
	dtls_of(&cn)->udp->gso = dtls_of(&sn)->udp->gso = false;
	carry_dtls(&cli, &srv.peers[0], 60, 3000);
	carry_dtls(&cli, &srv.peers[0], 100, 10); /* many parts in a packet */
	carry_dtls(&cli, &srv.peers[0], 100, 500);
	cr_expect_eq(cn.env.secured.forged + sn.env.secured.forged, 0);
	stop_dtls_nodes();
}

static ssize_t refuse_runs(int fd, const struct msghdr *m, int flags)
{
	struct msghdr copy = *m;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(&copy); c; c = CMSG_NXTHDR(&copy, c)) {
		if (c->cmsg_level == IPPROTO_UDP) {
			errno = EIO;
			return -1;
		}
	}
	return sys_sendmsg(fd, m, flags);
}

/* Nor does any of them ask for it after that. */
Test(sd_dtls_life, nothing_asks_for_a_cut_that_was_refused)
{
	start_dtls_pair();
	dtls_of(&cn)->udp->gso = dtls_of(&sn)->udp->gso = true;
	sys_instead.sendmsg = refuse_runs;
	carry_dtls(&cli, &srv.peers[0], 60, 3000);
	cr_expect(!dtls_of(&cn)->udp->gso && !dtls_of(&sn)->udp->gso);
	stop_dtls_nodes();
}

/* While the last step was under way a record came, of which nothing comes. */
static const uint8_t *have_one_wait(const struct ddps_hs *h, size_t *n)
{
	static const uint8_t r[DDPS_DTLS_HEADER + 1] = { DDPS_DTLS_HANDSHAKE, 254, 253, [12] = 1 };
	struct ddps_sn_dtls *c = dtls_of(h == dtls_script.listener ? &sn : &cn);

	if (c->state == DDPS_SN_SHAKING && ddps_shake_state(c->shake) == DDPS_HS_DONE)
		cr_assert(ddps_sn_framed_add(&c->todo, r, sizeof r));
	return dtls_stub.output(h, n);
}

/* The peer may have lost a listener's last flight, and says so again.  A dialler has nothing more to say: what is left
 * is not of its next handshake. */
Test(sd_dtls_life, what_came_during_the_last_step)
{
	struct ddps_sn_dtls *c;

	start_dtls_nodes();
	dtls_used.dtls.output = have_one_wait;
	dial_dtls_side(&cli, &fx_up);
	while (!(c = dtls_of(&sn)) || c->state == DDPS_SN_SHAKING) {
		turn_dtls(&cn, 2);
		turn_dtls(&sn, 2);
	}
	cr_expect(c->shake && !c->todo.n, "it is looked at");
	DTLS_UNTIL(cli.up && srv.accepted);
	c = dtls_of(&cn);
	cr_expect(!c->shake && !c->todo.n);
	carry_dtls(&cli, &srv.peers[0], 3, 300);
	stop_dtls_nodes();
}

static char flight_seen[32];

static const uint8_t *say_two_records(const struct ddps_hs *h, size_t *n)
{
	static const uint8_t flight[] = { 0, 1, 'x', 0, 2, 'y', 'z', 0, 1, '!' };

	(void)h;
	*n = 7; /* what is behind it is not of it */
	return flight;
}

static ssize_t note_flight(int fd, const struct msghdr *m, int flags)
{
	(void)fd;
	(void)flags;
	strncat(flight_seen, m->msg_iov->iov_base, m->msg_iov->iov_len);
	strcat(flight_seen, ",");
	return (ssize_t)m->msg_iov->iov_len;
}

Test(sd_dtls_life, a_flight_leaves_record_by_record)
{
	start_dtls_nodes();
	dtls_used.dtls.output = say_two_records;
	sys_instead.sendmsg = note_flight;
	dial_dtls_side(&cli, &fx_up);
	while (ddps_shake_busy(dtls_of(&cn)->shake))
		turn_dtls(&cn, 5);
	cr_expect_str_eq(flight_seen, "x,yz,");
	stop_dtls_nodes();
}

/* ---- ends ---- */

Test(sd_dtls_life, a_dial_may_end_at_any_step)
{
	note_what_is_there();
	for (int step = 0; step < 12; step++) {
		start_dtls_nodes();
		dial_dtls_side(&cli, &fx_up);
		for (int i = 0; i < step; i++)
			turn_dtls(i % 2 ? &sn : &cn, i < 8 ? 2 : 0);
		(B)->free(cli.a);
		turn_dtls(&cn, 0);
		cr_expect_eq(dtls_env(&cn)->ndtls, dtls_of(&cn) ? 1 : 0);
		cr_expect(!dtls_of(&cn) || dtls_of(&cn)->state == DDPS_SN_OPEN, "it lingers");
		no_dtls_is_left();
	}
}

Test(sd_dtls_life, a_listener_that_goes_takes_what_is_half_open_with_it)
{
	note_what_is_there();
	start_dtls_nodes();
	dial_dtls_side(&cli, &fx_up);
	DTLS_UNTIL(dtls_of(&sn));
	cr_assert_eq(dtls_of(&sn)->state, DDPS_SN_SHAKING);
	cr_expect_eq(srv.ep->sock->table->shaking.places, 1);
	(B)->endpoint_free(srv.ep);
	turn_dtls(&sn, 0);
	cr_expect_null(dtls_of(&sn));
	cr_expect_eq(dtls_env(&sn)->ndtls, 0);
	no_dtls_is_left();
}

Test(sd_dtls_life, what_stands_outlives_its_listener)
{
	note_what_is_there();
	start_dtls_pair();
	(B)->endpoint_free(srv.ep);
	turn_dtls(&sn, 0);
	cr_assert(dtls_of(&sn));
	cr_expect_null(dtls_of(&sn)->ep);
	cr_expect_null(dtls_of(&sn)->l);
	cr_expect_null(dtls_of(&sn)->udp->table->ep);
	carry_dtls(&cli, &srv.peers[0], 5, 500);
	no_dtls_is_left();
}

static unsigned seconds_left(const struct ddps_timer *t)
{
	const uint64_t now = ddps_now();

	return ddps_timer_runs(t) && t->due > now ? (unsigned)((t->due - now + SECOND / 2) / SECOND)
						  : 0;
}

/* Repeats of the end are answered for a while, and then it goes. */
Test(sd_dtls_life, one_without_associations_lingers)
{
	struct ddps_sn_dtls *c;

	note_what_is_there();
	start_dtls_pair();
	(B)->free(srv.peers[0].a);
	DTLS_UNTIL(cli.gone);
	cr_expect_eq(cli.end.code, DDPS_E_RESET);
	c = dtls_of(&sn);
	cr_assert(c);
	cr_expect_eq(c->state, DDPS_SN_OPEN);
	cr_expect_eq(seconds_left(&c->timer), 2);
	c->as->refs++; /* an association again */
	ddps_sn_dtls_timer(c);
	cr_expect_eq(c->state, DDPS_SN_OPEN);
	c->as->refs--;
	ddps_sn_dtls_timer(c);
	turn_dtls(&sn, 0);
	cr_expect_null(dtls_of(&sn));
	no_dtls_is_left();
}

Test(sd_dtls_life, who_opens_nothing_has_ten_seconds)
{
	struct ddps_sn_dtls *c;

	start_dtls_nodes();
	dial_dtls_side(&cli, &fx_up);
	while (!(c = dtls_of(&sn)) || c->state != DDPS_SN_OPEN) {
		turn_dtls(&sn, 2);
		if (!c || c->state != DDPS_SN_OPEN)
			turn_dtls(&cn, 2);
	}
	cr_expect_not(c->took);
	cr_expect_eq(seconds_left(&c->timer), 10);
	stop_dtls_nodes();
}

/* ---- alerts ---- */

static void give_alert(uint8_t level, uint8_t what, size_t n)
{
	const uint8_t alert[] = { level, what, 0 };
	uint8_t out[DDPS_SN_DTLS_MTU];
	const size_t len = seal_by_hand(dtls_of(&sn), DDPS_DTLS_ALERT, alert, n, out);

	give_datagram(dtls_of(&cn)->udp, 0, srv.encap, out, len);
	turn_dtls(&cn, 0);
}

Test(sd_dtls_life, an_alert_ends_it_and_says_why)
{
	static const struct {
		uint8_t level, what;
		int code;
		const char *text;
	} t[] = {
		{ 1, DDPS_ALERT_CLOSE_NOTIFY, DDPS_E_RESET,
		  "the peer ended DTLS before the association: data may be missing" },
		{ 2, DDPS_ALERT_BAD_CERTIFICATE, DDPS_E_CERT_REFUSED,
		  "the peer refused this side" },
		{ 2, DDPS_ALERT_ACCESS_DENIED, DDPS_E_CERT_REFUSED, "the peer refused this side" },
		{ 2, DDPS_ALERT_UNKNOWN_PSK_IDENTITY, DDPS_E_CERT_REFUSED, "its log says why" },
		{ 2, DDPS_ALERT_CERTIFICATE_REQUIRED, DDPS_E_CERT_REFUSED, "its log says why" },
		{ 2, DDPS_ALERT_BAD_CERTIFICATE - 1, DDPS_E_ALERT, "the peer ended DTLS: " },
		{ 2, DDPS_ALERT_ACCESS_DENIED + 1, DDPS_E_ALERT, "the peer ended DTLS: " },
	};

	for (unsigned i = 0; i < sizeof t / sizeof *t; i++) {
		start_dtls_pair();
		give_alert(1, 90, 2); /* a warning; and what is no alert */
		give_alert(2, DDPS_ALERT_BAD_CERTIFICATE, 3);
		give_alert(2, DDPS_ALERT_BAD_CERTIFICATE, 1);
		carry_dtls(&cli, &srv.peers[0], 1, 100);
		give_alert(t[i].level, t[i].what, 2);
		DTLS_UNTIL(cli.gone);
		cr_expect_eq(cli.end.code, t[i].code, "row %u: %d", i, cli.end.code);
		cr_expect(strstr(cli.end.text, t[i].text), "row %u: %s", i, cli.end.text);
		cr_expect_eq(cli.end.sys_errno, 0, "row %u", i);
		cr_expect(!dtls_of(&cn) || dtls_of(&cn)->state == DDPS_SN_OVER);
		stop_dtls_nodes();
	}
}

/* An end in order is no alert's: what the association has said comes first. */
Test(sd_dtls_life, the_end_of_a_context_is_not_taken_for_a_lost_one)
{
	start_dtls_pair();
	(B)->fini(&cn.env, cn.ctx);
	cn.ctx = NULL;
	DTLS_UNTIL(srv.peers[0].gone);
	cr_expect_eq(srv.peers[0].end.code, DDPS_E_RESET);
	cr_expect_null(strstr(srv.peers[0].end.text, "DTLS"), "%s", srv.peers[0].end.text);
	(B)->free(srv.peers[0].a);
	turn_dtls(&sn, 0);
	cr_expect_null(dtls_of(&sn));
	stop_dtls_nodes();
}

/* ---- memory, and keys that fail ---- */

Test(sd_dtls_life, a_key_that_fails_ends_it)
{
	note_what_is_there();
	start_dtls_pair();
	aead_stub_fails = 1;
	send_dtls_message(&cli, 100);
	DTLS_UNTIL(cli.gone);
	cr_expect_eq(cli.end.code, DDPS_E_NOMEM);
	cr_expect_str_eq(cli.end.text, "nothing can be sealed any more");
	no_dtls_is_left();
}

/* Each allocation of a dial, at both ends, fails once: it comes up in spite of that, or ends with a reason. */
Test(sd_dtls_life, one_without_memory_comes_up_or_says_so)
{
	unsigned n = 1;
	bool failed;

	dtls_connect_ms = 300; /* for whom the other end does not tell */
	do {
		note_what_is_there();
		start_dtls_nodes();
		dial_dtls_side(&cli, &fx_up);
		mem_fail(n++);
		while (!cli.up && !cli.gone) {
			struct ddps_sn_dtls *c = dtls_of(&cn);

			turn_dtls(NULL, 5);
			if (!cli.up && !cli.gone && c && c == dtls_of(&cn) &&
			    ddps_timer_runs(&c->timer) && c->state == DDPS_SN_SHAKING)
				ddps_sn_dtls_timer(c); /* it need not be waited for */
		}
		failed = mem_failed();
		mem_fail(0);
		cr_expect(cli.up || (cli.end.code && cli.end.text[0]), "%u", n);
		no_dtls_is_left();
	} while (failed);
	cr_expect_gt(n, 15);
}

/* ---- judged again ---- */

static unsigned judgements;
static struct ddps_error judgement;

static void take_judgement(void *user, const struct ddps_error *why)
{
	cr_assert_eq(user, &cli);
	judgements++;
	judgement = *why;
}

Test(sd_dtls_life, a_peer_is_judged_again_once_a_second)
{
	struct ddps_sd_assoc_up up = fx_up;
	struct ddps_error why = { .code = 77 };
	struct ddps_sn_dtls *c;
	int err;

	up.judged = take_judgement;
	note_what_is_there();
	start_dtls_nodes();
	dial_dtls_side(&cli, &up);
	DTLS_UNTIL(cli.up && srv.accepted);
	c = dtls_of(&cn);
	c->judged_at--; /* it is a second later */
	dtls_script.verdict = DDPS_E_CERT_EXPIRED;
	cr_expect_eq((B)->judge(cli.a, &why), DDPS_E_AGAIN);
	cr_expect_eq((B)->judge(cli.a, &why), DDPS_E_AGAIN, "under way");
	cr_expect_null(c->witness, "it is judged");
	DTLS_UNTIL(judgements);
	cr_expect_eq(judgement.code, DDPS_E_CERT_EXPIRED);
	cr_expect_str_eq(judgement.text, "as it was judged");
	cr_expect(c->witness && !c->judging);
	cr_expect_eq(c->judgements, 1);
	do
		c->judged_at = (uint64_t)time(NULL);
	while ((err = (B)->judge(cli.a, &why)) == DDPS_E_AGAIN); /* it is the next second now */
	cr_expect_eq(err, DDPS_E_CERT_EXPIRED, "as it was a moment ago");
	cr_expect_str_eq(why.text, "as it was judged");
	dtls_script.verdict = 0;
	c->judged_at -= 2;
	mem_fail(1);
	cr_expect_eq((B)->judge(cli.a, &why), DDPS_E_NOMEM);
	mem_fail(0);
	cr_expect(c->witness && !c->judging, "it is kept for another time");
	cr_expect_eq((B)->judge(cli.a, &why), DDPS_E_AGAIN);
	DTLS_UNTIL(judgements == 2);
	cr_expect_eq(judgement.code, 0);
	c->judged_at--;
	cr_expect_eq((B)->judge(cli.a, &why), DDPS_E_AGAIN);
	(B)->free(cli.a); /* before it is known */
	no_dtls_is_left();
	cr_expect_eq(judgements, 2);
}
