/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys of DTLS connections: made anew while all goes on, the old ones for a while, and records that no key opens. */
#include "sd_dtls_fixture.h"

TestSuite(sd_dtls_keys, .timeout = 60);

static uint64_t renewed(void)
{
	return cn.env.secured.renewed + sn.env.secured.renewed;
}

static unsigned seconds_to(uint64_t at)
{
	const uint64_t now = ddps_now();

	return at > now ? (unsigned)((at - now + SECOND / 2) / SECOND) : 0;
}

/* Records are sent until a handshake for new keys is under way. */
static void begin_renewal(void)
{
	dtls_env(&cn)->renew_at = 0;
	dtls_dialler()->renew_at = 0;
	ddps_sn_dtls_renew(dtls_dialler());
	cr_assert(dtls_dialler()->renewing);
}

static void renew_keys(void)
{
	const uint64_t before = renewed();

	begin_renewal();
	DTLS_UNTIL(renewed() == before + 2);
}

/* ---- new keys ---- */

Test(sd_dtls_keys, new_keys_are_made_when_so_much_was_sealed)
{
	start_dtls_nodes();
	dial_dtls_side(&cli, &fx_up);
	dtls_env(&cn)->renew_at = 30;
	DTLS_UNTIL(cli.up && srv.accepted);
	for (unsigned i = 0; i < 200 && renewed() < 4; i++)
		carry_dtls(&cli, &srv.peers[0], 5, 300);
	cr_expect_geq(cn.env.secured.renewed, 2);
	cr_expect_geq(sn.env.secured.renewed, 2);
	cr_expect_eq(cn.env.secured.forged + sn.env.secured.forged, 0);
	cr_expect_eq(cn.env.secured.replayed + sn.env.secured.replayed, 0);
	stop_dtls_nodes();
}

Test(sd_dtls_keys, the_old_ones_stay_for_two_minutes)
{
	start_dtls_pair();
	cr_expect_eq(aead_stub_alive, 4);
	renew_keys();
	for (unsigned i = 0; i < 2; i++) {
		struct ddps_sn_dtls *c = i ? dtls_listener() : dtls_dialler();

		cr_expect(c->cur.rec && c->old.rec && !c->coming.rec && !c->renewing);
		cr_expect_null(c->shake);
		cr_expect_null(c->todo.p);
		cr_expect_eq(c->deadline, 0);
		cr_expect_not(ddps_timer_runs(&c->timer));
		cr_expect_eq(seconds_to(c->old_until), 120);
	}
	cr_expect_eq(aead_stub_alive, 8);
	cr_expect_eq(dtls_script.hs, 0);
	cr_expect_eq(dtls_script.witnesses, 2, "the newer ones");
	carry_dtls(&cli, &srv.peers[0], 3, 300);
	cr_expect_eq(aead_stub_alive, 8);
	renew_keys(); /* the oldest go */
	cr_expect_eq(aead_stub_alive, 8);
	dtls_dialler()->old_until = dtls_listener()->old_until = ddps_now();
	carry_dtls(&cli, &srv.peers[0], 3, 300);
	cr_expect_eq(aead_stub_alive, 4);
	cr_expect(!dtls_dialler()->old.rec && !dtls_listener()->old.rec);
	cr_expect_eq(cn.env.secured.forged + sn.env.secured.forged, 0);
	stop_dtls_nodes();
}

/* Nothing says of which key a record is.  What was sealed before is taken after; once, too. */
Test(sd_dtls_keys, what_was_under_way_is_taken_by_the_old_key)
{
	static const uint8_t junk[40];
	uint8_t old[DDPS_SN_DTLS_MTU], late[DDPS_SN_DTLS_MTU];
	struct ddps_secured_stats *st = &sn.env.secured;
	size_t n, m;

	start_dtls_pair();
	n = seal_by_hand(dtls_dialler(), DDPS_DTLS_DATA, junk, sizeof junk, old);
	m = seal_by_hand(dtls_dialler(), DDPS_DTLS_DATA, junk, sizeof junk, late);
	renew_keys();
	give_datagram(dtls_listener()->udp, 0, dtls_dialler()->udp->port, old, n);
	cr_expect_eq(ddps_dtls_stats(dtls_listener()->old.rec)->forged, 0);
	cr_expect_eq(ddps_dtls_stats(dtls_listener()->cur.rec)->forged, 0, "it is pardoned");
	cr_expect_eq(st->forged + st->replayed + st->strange, 0);
	give_datagram(dtls_listener()->udp, 0, dtls_dialler()->udp->port, old, n);
	cr_expect_eq(st->replayed, 1);
	cr_expect_eq(st->forged, 0);
	dtls_listener()->old_until = ddps_now();
	give_datagram(dtls_listener()->udp, 0, dtls_dialler()->udp->port, late, m);
	cr_expect_null(dtls_listener()->old.rec);
	cr_expect_eq(st->forged, 1);
	stop_dtls_nodes();
}

/* One by one.  With two keys a number may be a replay to the one and a forgery to the other. */
static void check_unopened(uint64_t forged, uint64_t replayed, uint64_t strange, bool one_key)
{
	const struct ddps_secured_stats *st = &sn.env.secured;

	cr_expect_eq(st->forged + st->replayed + st->strange, forged + replayed + strange);
	cr_expect(!one_key || (st->forged == forged && st->replayed == replayed));
}

Test(sd_dtls_keys, records_that_no_key_opens_are_counted_and_end_nothing)
{
	static const uint8_t junk[40];
	uint8_t r[DDPS_SN_DTLS_MTU];

	for (unsigned anew = 0; anew < 2; anew++) {
		struct ddps_sn_sock *udp;
		uint16_t port;
		size_t n;

		start_dtls_pair();
		port = dtls_dialler()->udp->port;
		udp = dtls_listener()->udp;
		if (anew)
			renew_keys();
		n = seal_by_hand(dtls_dialler(), DDPS_DTLS_DATA, junk, sizeof junk, r);
		r[n - 1] ^= 1;
		give_datagram(udp, 0, port, r, n);
		check_unopened(1, 0, 0, !anew);
		r[n - 1] ^= 1;
		give_datagram(udp, 0, port, r, n - 1); /* it is cut off, and is none */
		check_unopened(1, 0, 0, !anew);
		give_datagram(udp, 0, port, r, n);
		check_unopened(1, 0, 0, !anew);
		give_datagram(udp, 0, port, r, n);
		check_unopened(1, 1, 0, !anew);
		r[11] = 0; /* shorter than any can be */
		r[12] = (uint8_t)(ddps_dtls_overhead(dtls_listener()->cur.rec) - DDPS_DTLS_HEADER -
				  1);
		give_datagram(udp, 0, port, r, DDPS_DTLS_HEADER + r[12]);
		check_unopened(1, 1, 1, !anew);
		/* two in a datagram: the one behind what is wrong is taken */
		n = seal_by_hand(dtls_dialler(), DDPS_DTLS_DATA, junk, sizeof junk, r);
		r[n - 1] ^= 1;
		n += seal_by_hand(dtls_dialler(), DDPS_DTLS_DATA, junk, sizeof junk, r + n);
		give_datagram(udp, 0, port, r, n);
		check_unopened(2, 1, 1, !anew);
		carry_dtls(&cli, &srv.peers[0], 2, 200);
		stop_dtls_nodes();
	}
}

Test(sd_dtls_keys, too_much_that_is_forged_ends_it)
{
	start_dtls_pair();
	ddps_sn_dtls_forged(dtls_dialler());
	DTLS_UNTIL(cli.gone);
	cr_expect_eq(cli.end.code, DDPS_E_FORGED);
	cr_expect_eq(cli.end.sys_errno, 0);
	stop_dtls_nodes();
}

/* ---- handshakes that fail ---- */

Test(sd_dtls_keys, another_identity_gets_none)
{
	start_dtls_pair();
	dtls_script.name = "psk:another";
	begin_renewal();
	DTLS_UNTIL(!dtls_dialler()->renewing && !dtls_listener()->renewing);
	cr_expect_eq(renewed(), 0);
	for (unsigned i = 0; i < 2; i++) {
		struct ddps_sn_dtls *c = i ? dtls_listener() : dtls_dialler();

		cr_expect_str_eq(ddps_who_text(c->who, DDPS_WHO_NAME), "psk:stub");
		cr_expect(!c->coming.rec && !c->old.rec && !c->shake);
	}
	cr_expect_eq(seconds_to(dtls_dialler()->renew_at), 30);
	ddps_sn_dtls_renew(dtls_dialler());
	cr_expect_not(dtls_dialler()->renewing, "not so soon");
	cr_expect_eq(aead_stub_alive, 4);
	cr_expect_eq(dtls_script.witnesses, 2);
	carry_dtls(&cli, &srv.peers[0], 3, 300);
	dtls_script.name = NULL;
	renew_keys();
	carry_dtls(&cli, &srv.peers[0], 3, 300);
	stop_dtls_nodes();
}

Test(sd_dtls_keys, a_handshake_that_fails_ends_nothing)
{
	start_dtls_pair();
	dtls_script.fails = DDPS_E_CERT_EXPIRED;
	begin_renewal();
	DTLS_UNTIL(!dtls_dialler()->renewing);
	dtls_script.fails = 0;
	dtls_failure.code = 0;
	cr_expect_eq(renewed(), 0);
	cr_expect_null(dtls_dialler()->shake);
	carry_dtls(&cli, &srv.peers[0], 3, 300);
	cr_expect_eq(aead_stub_alive, 4);
	stop_dtls_nodes();
}

static char told[300];

static void take_keys_line(void *user, enum ddps_log_level level, const char *facility,
			   const char *text)
{
	(void)user;
	(void)facility;
	if (level <= DDPS_LOG_WARN)
		snprintf(told, sizeof told, "%s", text);
}

static const uint8_t *say_last_word(const struct ddps_hs *h, size_t *n)
{
	static const uint8_t word[] = { 0, 1, 'x' };

	if (h != dtls_script.listener || !dtls_failure.code)
		return dtls_stub.output(h, n);
	*n = sizeof word;
	return word;
}

static unsigned last_words;

static ssize_t count_last_words(int fd, const struct msghdr *m, int flags)
{
	last_words += m->msg_iovlen == 1 && m->msg_iov->iov_len == 1;
	return sys_sendmsg(fd, m, flags);
}

/* Whom the listener does not let in any more goes on with what there is. */
Test(sd_dtls_keys, a_listener_that_refuses_ends_nothing)
{
	start_dtls_pair();
	sn.env.log.fn = take_keys_line;
	dtls_used.dtls.output = say_last_word;
	sys_instead.sendmsg = count_last_words;
	dtls_script.fails = DDPS_E_NOT_LISTED;
	dtls_script.listeners = true;
	begin_renewal();
	DTLS_UNTIL(dtls_failure.code);
	DTLS_UNTIL(!dtls_listener()->renewing);
	cr_expect(!dtls_listener()->shake && !dtls_listener()->coming.rec &&
		  !dtls_listener()->deadline);
	cr_expect(strstr(told, "no new keys (as the test wants it)"), "%s", told);
	cr_expect_eq(last_words, 0, "the dialler would begin with them");
	cr_expect_eq(renewed(), 0);
	carry_dtls(&cli, &srv.peers[0], 3, 300);
	cr_expect_eq(aead_stub_alive, 4);
	stop_dtls_nodes();
}

Test(sd_dtls_keys, without_memory_for_new_ones_the_old_ones_go_on)
{
	start_dtls_pair();
	dtls_dialler()->renew_at = 0;
	mem_fail(1);
	ddps_sn_dtls_renew(dtls_dialler());
	cr_expect(mem_failed());
	mem_fail(0);
	cr_expect(!dtls_dialler()->renewing && !dtls_dialler()->shake);
	cr_expect_eq(seconds_to(dtls_dialler()->renew_at), 30);
	carry_dtls(&cli, &srv.peers[0], 3, 300);
	stop_dtls_nodes();
}

/* Nobody answers; and at the listener, the dialler has them and never uses them. */
Test(sd_dtls_keys, a_peer_that_goes_no_further_has_its_time)
{
	start_dtls_pair();
	begin_renewal();
	cr_expect_eq(seconds_to(dtls_dialler()->deadline), 10);
	ddps_sn_dtls_timer(dtls_dialler());
	cr_expect(dtls_dialler()->renewing, "it is not over yet");
	dtls_dialler()->deadline = ddps_now();
	ddps_sn_dtls_timer(dtls_dialler());
	cr_expect(!dtls_dialler()->renewing && !dtls_dialler()->shake && !dtls_dialler()->deadline);
	carry_dtls(&cli, &srv.peers[0], 3, 300);
	DTLS_UNTIL(!dtls_listener()->renewing || dtls_listener()->shake);
	/* the listener has the keys, and the last word is lost */
	dtls_dialler()->renew_at = 0;
	begin_renewal();
	while (!dtls_listener()->coming.rec) {
		turn_dtls(&sn, 2);
		if (!dtls_listener()->coming.rec)
			turn_dtls(&cn, 2);
	}
	cr_expect_eq(seconds_to(dtls_listener()->deadline), 120);
	cr_expect_eq(aead_stub_alive, 6);
	dtls_listener()->deadline = ddps_now();
	ddps_sn_dtls_timer(dtls_listener());
	cr_expect(!dtls_listener()->renewing && !dtls_listener()->coming.rec);
	cr_expect_eq(aead_stub_alive, 4);
	cr_expect_eq(sn.env.secured.renewed, 0);
	stop_dtls_nodes();
}

/* The end of the last association is the end of what is under way. */
Test(sd_dtls_keys, an_end_amid_new_keys_leaves_nothing)
{
	for (unsigned i = 0; i < 6; i++) {
		const long live = mem_live();

		start_dtls_pair();
		begin_renewal();
		for (unsigned k = 0; k < i; k++)
			turn_dtls(k % 2 ? &cn : &sn, 2);
		(B)->free(i % 2 ? cli.a : srv.peers[0].a);
		cr_expect_not((i % 2 ? dtls_dialler() : dtls_listener())->renewing);
		stop_dtls_nodes();
		cr_expect_eq(mem_live(), live, "%u", i);
	}
}

static unsigned flights;

static const uint8_t *spoil_first_flight(const struct ddps_hs *h, size_t *n)
{
	if (h != dtls_script.listener && !flights++) {
		free(dtls_env(&cn)->sealed);
		dtls_env(&cn)->sealed = NULL;
		mem_fail(1);
	}
	return dtls_stub.output(h, n);
}

/* In front of it is a record of the keys that there are. */
Test(sd_dtls_keys, a_flight_that_cannot_be_sealed_is_as_if_it_were_lost)
{
	start_dtls_pair();
	dtls_used.dtls.output = spoil_first_flight;
	begin_renewal();
	while (!flights)
		turn_dtls(&cn, 5);
	cr_expect(mem_failed());
	mem_fail(0);
	cr_assert(dtls_dialler()->renewing);
	ddps_sn_dtls_timer(dtls_dialler()); /* it leaves again */
	DTLS_UNTIL(renewed() == 2);
	carry_dtls(&cli, &srv.peers[0], 3, 300);
	stop_dtls_nodes();
}

/* ---- a dial that gets no further ---- */

Test(sd_dtls_keys, a_dial_begins_anew_in_silence_twice)
{
	struct ddps_sn_dtls *c;

	start_dtls_nodes();
	dial_dtls_side(&cli, &fx_up);
	c = dtls_dialler();
	while (ddps_shake_busy(c->shake))
		turn_dtls(&cn, 5);
	for (unsigned i = 0; i < 3; i++) {
		cr_expect_eq(c->anew, i);
		c->heard_at = ddps_now() - 2 * SECOND;
		ddps_sn_dtls_timer(c);
		cr_expect_eq(c->anew, i, "not yet");
		while (ddps_shake_busy(c->shake))
			turn_dtls(&cn, 5);
		if (i == 1) /* something comes, and nothing comes of it */
			c->begun_at -= 6 * SECOND;
		else
			c->heard_at = ddps_now() - 3 * SECOND - 1;
		ddps_sn_dtls_timer(c);
		cr_expect_eq(c->anew, i < 2 ? i + 1 : 2);
		if (i < 2) /* it has begun */
			cr_expect(ddps_now() - c->begun_at < SECOND &&
				  ddps_now() - c->heard_at < SECOND);
		while (ddps_shake_busy(c->shake))
			turn_dtls(&cn, 5);
	}
	DTLS_UNTIL(cli.up);
	carry_dtls(&cli, &srv.peers[0], 3, 300);
	stop_dtls_nodes();
}

/* One datagram of anybody's can end a handshake, so a dial tries again for a while. */
Test(sd_dtls_keys, a_dial_goes_on_trying_after_what_is_anybodys)
{
	struct ddps_sn_dtls *c;

	for (unsigned i = 0; i < 3; i++) {
		dtls_script.fails = DDPS_E_TLS;
		dtls_script.anybodys = i;
		start_dtls_nodes();
		dial_dtls_side(&cli, &fx_up);
		c = dtls_dialler();
		DTLS_UNTIL(cli.gone || c->failing_since);
		cr_expect_eq(cli.gone, !i, "what only the peer can say ends it");
		if (i) {
			cr_expect_null(c->shake);
			cr_expect_eq(ddps_sn_dtls_late(c).code, DDPS_E_TLS);
			cr_expect_str_eq(ddps_sn_dtls_late(c).text, "as the test wants it");
		}
		if (i == 1) {
			dtls_script.fails = 0;
			dtls_failure.code = 0;
			DTLS_UNTIL(cli.up);
			carry_dtls(&cli, &srv.peers[0], 3, 300);
		} else if (i == 2) {
			c->failing_since -= 3 * SECOND;
			DTLS_UNTIL(cli.gone);
			cr_expect_eq(cli.end.code, DDPS_E_TLS);
		}
		stop_dtls_nodes();
	}
}

Test(sd_dtls_keys, who_is_late_learns_why)
{
	struct sockaddr_storage to;

	start_dtls_nodes();
	dial_dtls_side(&cli, &fx_up);
	cr_expect_eq(ddps_sn_dtls_late(dtls_dialler()).code, DDPS_E_TIMEDOUT);
	cr_expect_eq(ddps_sn_dtls_late(dtls_dialler()).sys_errno, 0);
	while (ddps_shake_busy(dtls_dialler()->shake))
		turn_dtls(&cn, 5);
	cr_expect_str_eq(ddps_sn_dtls_late(dtls_dialler()).text, "no DTLS handshake in time");
	get_sd_backend_loopback(&to, AF_INET, (uint16_t)(srv.encap ^ 1));
	ddps_sn_dtls_hint(dtls_dialler()->udp, &to);
	cr_expect_not(dtls_dialler()->unreachable, "another's");
	ddps_sn_dtls_hint(dtls_dialler()->udp, &srv.sa);
	cr_expect_str_eq(ddps_sn_dtls_late(dtls_dialler()).text,
			 "no DTLS handshake in time (its host says that nothing has this port)");
	stop_dtls_nodes();
}

/* The same person, if all three are the same. */
Test(sd_dtls_keys, who_is_the_same)
{
	static const struct {
		unsigned how;
		const char *name, *issuer;
		bool same;
	} t[] = {
		{ DDPS_PEER_PSK, "a", "b", true },
		{ DDPS_PEER_PSK + 1, "a", "b", false },
		{ DDPS_PEER_PSK, "A", "b", false },
		{ DDPS_PEER_PSK, "a", "B", false },
	};
	struct ddps_peer_id id = { .struct_size = sizeof id, .how = DDPS_PEER_PSK };
	struct ddps_who *a, *b;

	strcpy(id.name, "a");
	strcpy(id.issuer, "b");
	a = ddps_who_keep(&id);
	for (unsigned i = 0; i < sizeof t / sizeof *t; i++) {
		id.how = t[i].how;
		strcpy(id.name, t[i].name);
		strcpy(id.issuer, t[i].issuer);
		b = ddps_who_keep(&id);
		cr_expect_eq(ddps_sn_dtls_same_peer(a, b), t[i].same, "row %u", i);
		free(b);
	}
	free(a);
}
