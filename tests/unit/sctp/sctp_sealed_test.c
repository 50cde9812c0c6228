/* SPDX-License-Identifier: BSD-2-Clause */
/* SCTP inside DTLS (RFC 8261): zero checksums (RFC 9653), and addresses that say nothing. */
#include "sctp_net_fixture.h"
#include <criterion/criterion.h>

#define SEALED_PORT 5000

struct sealed {
	struct sn_net net;
	struct ddps_sctp_port *l;
	struct ddps_sctp_assoc *a[2]; /* dialler, listener */
	struct ddps_sctp_config c;
	unsigned up, messages, gone;
	/* of what was sent, by the type of its first chunk: packets, and those whose checksum was zero */
	unsigned packets[256], zero[256];
	unsigned pads;		/* packets with a PAD chunk */
	unsigned wrong;		/* checksums that are neither */
	unsigned by_port[66];	/* the listener's packets, by the UDP port that they went to */
	uint16_t roamed[2];	/* as the upcall has it: how often, where to */
	unsigned before_roamed; /* packets that went there before */
	bool taken;		/* the new port is another one's */
	bool told[2];		/* INIT, INIT ACK: has the parameter */
	uint8_t echo[4096];	/* the last COOKIE ECHO, and an INIT */
	size_t echo_len;
	uint8_t init[4096];
	size_t init_len;
};

static void sealed_up(void *user)
{
	((struct sealed *)user)->up++;
}

static void sealed_message(void *user, const struct ddps_sctp_msg *m)
{
	(void)m;
	((struct sealed *)user)->messages++;
}

static void sealed_none(void *user)
{
	(void)user;
}

static void sealed_acked(void *user, uint64_t n)
{
	(void)user;
	(void)n;
}

static void sealed_gone(void *user, const struct ddps_error *e)
{
	(void)e;
	((struct sealed *)user)->gone++;
}

static bool sealed_roamed(void *user, uint16_t encap)
{
	struct sealed *s = user;

	if (s->taken)
		return false;
	s->roamed[0]++;
	s->roamed[1] = encap;
	s->before_roamed = s->by_port[encap / 1000];
	s->net.node[0].link[0].known = encap;
	return true;
}

static const struct ddps_sctp_up sealed_upcalls = { .up = sealed_up,
						    .message = sealed_message,
						    .writable = sealed_none,
						    .acked = sealed_acked,
						    .peer_shutdown = sealed_none,
						    .restarted = sealed_none,
						    .roamed = sealed_roamed,
						    .gone = sealed_gone };

static void sealed_accept(void *user, struct ddps_sctp_assoc *a)
{
	struct sealed *s = user;

	s->a[1] = a;
	ddps_sctp_assoc_set_up(a, &sealed_upcalls, s);
}

/* Octets of a chunk, 4 at least. */
static size_t chunk_octets(uint8_t high, uint8_t low)
{
	size_t n = (size_t)high << 8 | low;

	return n < 4 ? 4 : n;
}

/* The parameter of RFC 9653, as it is on the wire. */
static bool has_zero_parameter(const uint8_t *p, size_t len)
{
	static const uint8_t param[] = { 0x80, 1, 0, 8, 0, 0, 0, 1 };

	for (size_t i = 12; i + sizeof param <= len; i += 4)
		if (!memcmp(p + i, param, sizeof param))
			return true;
	return false;
}

static void see_sealed(void *user, unsigned from, const struct ddps_sctp_route *to,
		       const uint8_t *p, size_t len)
{
	struct sealed *s = user;
	uint8_t first = p[12];
	const bool zero = !p[8] && !p[9] && !p[10] && !p[11];

	if (from)
		s->by_port[to->encap / 1000]++;
	s->packets[first]++;
	s->zero[first] += zero;
	for (size_t at = 12; at + 4 <= len; at += ddps_sc_pad(chunk_octets(p[at + 2], p[at + 3])))
		s->pads += p[at] == SC_PAD;
	s->wrong += !zero && !ddps_sc_crc_ok(p, len);
	if (first == SC_INIT || first == SC_INIT_ACK)
		s->told[first == SC_INIT_ACK] = has_zero_parameter(p, len);
	if (first == SC_COOKIE_ECHO && len <= sizeof s->echo)
		memcpy(s->echo, p, s->echo_len = len);
	if (first == SC_INIT && len <= sizeof s->init)
		memcpy(s->init, p, s->init_len = len);
}

static void begin_sealed(struct sealed *s, bool dials, bool listens)
{
	struct ddps_sctp_param p = { .port = SEALED_PORT, .streams = 8, .sealed = listens };

	memset(s, 0, sizeof *s);
	sn_init(&s->net, 7);
	s->net.sealed = dials || listens;
	s->net.sent = see_sealed;
	s->net.user = s;
	sn_config(&s->net, &s->c);
	sn_boot(&s->net, 0, &s->c);
	sn_boot(&s->net, 1, &s->c);
	cr_assert_eq(ddps_sctp_listen(s->net.node[1].e, &p, sealed_accept, s, &s->l), 0);
	p.port = 0;
	p.sealed = dials;
	cr_assert_eq(ddps_sctp_connect(s->net.node[0].e, &p, &s->net.node[1].addr[0], 1,
				       SEALED_PORT, s->net.node[1].udp, &sealed_upcalls, s,
				       s->net.now, &s->a[0]),
		     0);
	sn_run(&s->net, 200000000);
}

static void talk_sealed(struct sealed *s)
{
	static uint8_t text[30000];
	struct iovec iov = { text, sizeof text };

	for (int i = 0; i < 2; i++)
		cr_assert_eq(ddps_sctp_send(s->a[i], 1, 1, 0, &iov, 1, s->net.now), 0);
	sn_run(&s->net, 2000000000);
}

Test(sctp_sealed, both_ends_say_that_zero_is_accepted_and_send_it,
     .description = "9653-3-1 9653-4-1 9653-5.1-1 9653-5.2-1 9653-5.2-2 9653-5.2-3 9653-5.2-8 "
		    "9653-5.3-1 9653-6-1 8261-3-1 8261-3-2")
{
	struct sealed s;

	begin_sealed(&s, true, true);
	talk_sealed(&s);
	cr_expect(s.told[0] && s.told[1]);
	cr_expect_eq(s.messages, 2);
	cr_expect_eq(s.wrong, 0);
	cr_expect_eq(s.zero[SC_INIT], 0);
	cr_expect_eq(s.zero[SC_INIT_ACK], 0);
	cr_expect_eq(s.zero[SC_COOKIE_ECHO], 0);
	cr_expect(s.packets[SC_DATA] > 20);
	cr_expect_eq(s.zero[SC_DATA], s.packets[SC_DATA]);
	cr_expect_eq(s.zero[SC_SACK], s.packets[SC_SACK]);
	cr_expect_eq(s.zero[SC_COOKIE_ACK], s.packets[SC_COOKIE_ACK]);
	for (int i = 0; i < 2; i++) {
		struct ddps_sctp_info info;
		struct ddps_sctp_stats st;

		ddps_sctp_info(s.a[i], &info);
		cr_expect(info.zero_checksum);
		ddps_sctp_stats(s.net.node[i].e, &st);
		cr_expect(st.zero_crc > 10 && !st.bad_crc);
	}
	sn_fini(&s.net);
}

/* A dialler that knows nothing of it: it skips the parameter, and gets checksums. */
Test(sctp_sealed, whom_nobody_has_told_gets_checksums, .description = "9653-5.2-1 9653-4-3")
{
	struct sealed s;

	begin_sealed(&s, false, true);
	talk_sealed(&s);
	cr_expect_eq(s.messages, 2);
	cr_expect_eq(s.wrong, 0);
	cr_expect(!s.told[0]);
	/* INIT ACK says it whether or not INIT did: it came inside DTLS */
	cr_expect(s.told[1]);
	for (unsigned i = 0; i < 256; i++)
		cr_expect_eq(s.zero[i], 0);
	sn_fini(&s.net);
}

/* Outside DTLS none is offered, and a packet without a checksum is dropped. */
Test(sctp_sealed, plain_sctp_neither_offers_nor_takes_it, .description = "9653-5.3-2")
{
	struct ddps_sctp_stats st;
	struct sealed s;

	begin_sealed(&s, false, false);
	talk_sealed(&s);
	cr_expect(!s.told[0] && !s.told[1]);
	for (unsigned i = 0; i < 256; i++)
		cr_expect_eq(s.zero[i], 0);
	memset(s.init + 8, 0, 4);
	sn_inject(&s.net, 1, 0, s.init, s.init_len);
	ddps_sctp_stats(s.net.node[1].e, &st);
	cr_expect_eq(st.bad_crc, 1);
	cr_expect_eq(st.zero_crc, 0);
	sn_fini(&s.net);
}

/* Other values than zero and the right one are dropped, inside DTLS too. */
Test(sctp_sealed, another_checksum_is_dropped, .description = "9653-5.3-1")
{
	struct ddps_sctp_stats st;
	struct sealed s;

	begin_sealed(&s, true, true);
	s.init[8] ^= 0x55;
	sn_inject(&s.net, 1, 0, s.init, s.init_len);
	ddps_sctp_stats(s.net.node[1].e, &st);
	cr_expect_eq(st.bad_crc, 1);
	sn_fini(&s.net);
}

/* What no association takes is answered with a checksum, since nobody knows what its sender accepts. */
Test(sctp_sealed, answers_out_of_the_blue_have_a_checksum, .description = "9653-5.2-4 9653-5.3-3")
{
	struct sealed s;
	uint8_t data[32] = { 0x17, 0x70, 0x13, 0x88, 1, 2, 3, 4 }; /* from port 6000 */

	begin_sealed(&s, true, true);
	data[12] = SC_DATA;
	data[13] = 3;
	data[15] = 20;
	data[31] = 1;
	memset(s.packets, 0, sizeof s.packets);
	sn_inject(&s.net, 1, 0, data, sizeof data);
	sn_run(&s.net, 100000000);
	cr_expect_eq(s.packets[SC_ABORT], 1);
	cr_expect_eq(s.zero[SC_ABORT], 0);
	cr_expect_eq(s.wrong, 0);
	sn_fini(&s.net);
}

static struct ddps_sc_init decode_with(const uint8_t *params, size_t n)
{
	uint8_t chunk[128] = { SC_INIT, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1 };
	struct ddps_sc_chunk c = { .type = SC_INIT, .all = chunk, .val = chunk + 4 };
	struct ddps_sc_init i;

	memcpy(chunk + 20, params, n);
	c.len = 20 + n;
	c.vlen = 16 + n;
	cr_assert(ddps_sc_decode_init(&i, &c) >= 0);
	return i;
}

Test(sctp_sealed, the_parameter_has_one_length_one_method_and_counts_once,
     .description = "9653-4-2 9653-4-4 9653-5.2-1")
{
	static const uint8_t dtls[] = { 0x80, 1, 0, 8, 0, 0, 0, 1 };
	static const uint8_t other[] = { 0x80, 1, 0, 8, 0, 0, 0, 2, 0x80, 1, 0, 8, 0, 0, 0, 1 };
	static const uint8_t twice[] = { 0x80, 1, 0, 8, 0, 0, 0, 1, 0x80, 1, 0, 8, 0, 0, 0, 9 };
	static const uint8_t longer[] = { 0x80, 1, 0, 12, 0, 0, 0, 1, 0, 0, 0, 0 };
	static const uint8_t empty[] = { 0x80, 1, 0, 4 };

	cr_expect(decode_with(dtls, sizeof dtls).zero_checksum);
	cr_expect(!decode_with(other, sizeof other).zero_checksum);
	cr_expect(decode_with(twice, sizeof twice).zero_checksum);
	cr_expect(!decode_with(longer, sizeof longer).zero_checksum);
	cr_expect(!decode_with(empty, sizeof empty).zero_checksum);
	cr_expect_eq(decode_with(longer, sizeof longer).report_len, 0, "skipped silently");
}

/* A peer inside DTLS that lists addresses gets no path there. */
Test(sctp_sealed, addresses_listed_inside_dtls_are_nothing,
     .description = "8261-6.1-3 8261-6.1-5 8261-6.1-6 8261-8-1")
{
	struct ddps_sctp_stats st;
	struct ddps_sctp_info info;
	struct sealed s;
	struct ddps_sctp_param p = { .streams = 8, .sealed = true, .nlocal = 2 };

	begin_sealed(&s, true, true);
	ddps_sctp_info(s.a[1], &info);
	cr_expect_eq(info.npaths, 1);
	p.local[0] = s.net.node[0].addr[0];
	p.local[1] = s.net.node[0].addr[1];
	cr_assert_eq(ddps_sctp_connect(s.net.node[0].e, &p, &s.net.node[1].addr[0], 1, SEALED_PORT,
				       s.net.node[1].udp, &sealed_upcalls, &s, s.net.now, &s.a[0]),
		     0);
	sn_run(&s.net, 300000000);
	cr_expect_eq(s.up, 2);
	ddps_sctp_info(s.a[1], &info);
	cr_expect_eq(info.npaths, 1);
	ddps_sctp_stats(s.net.node[1].e, &st);
	cr_expect_eq(st.addrs_sealed, 2);
	sn_fini(&s.net);
}

/* The ports tell them apart; each has its own end. */
Test(sctp_sealed, two_associations_use_one_connection, .description = "8261-6.1-2")
{
	struct ddps_sctp_param p = { .port = 6000, .streams = 8, .sealed = true };
	struct ddps_sctp_assoc *first[2];
	struct sealed s;

	begin_sealed(&s, true, true);
	memcpy(first, s.a, sizeof first);
	cr_assert_eq(ddps_sctp_connect(s.net.node[0].e, &p, &s.net.node[1].addr[0], 1, SEALED_PORT,
				       s.net.node[1].udp, &sealed_upcalls, &s, s.net.now, &s.a[0]),
		     0);
	sn_run(&s.net, 200000000);
	cr_expect_eq(s.up, 2);
	talk_sealed(&s);
	cr_expect_eq(s.messages, 2);
	ddps_sctp_abort(s.a[0], NULL, s.net.now);
	sn_run(&s.net, 200000000);
	memcpy(s.a, first, sizeof first);
	talk_sealed(&s);
	cr_expect_eq(s.messages, 4);
	sn_fini(&s.net);
}

/* A link takes less than the interface, and says nothing: probes find what passes. */
Test(sctp_sealed, what_the_path_takes_is_found_without_icmp,
     .description = "8261-4-1 8261-4-2 8261-4-3 8261-6.2-1")
{
	struct ddps_sctp_path_info p;
	struct sealed s;

	begin_sealed(&s, true, true);
	for (int i = 0; i < 2; i++)
		s.net.node[i].link[0].mtu = 1300;
	for (int i = 0; i < 8; i++) {
		talk_sealed(&s);
		sn_run(&s.net, 60000000000);
	}
	cr_expect_eq(s.messages, 16);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(ddps_sctp_path_info(s.a[i], 0, &p), 0);
		cr_expect(p.mtu <= 1300 && p.mtu >= 1200, "%u", p.mtu);
	}
	cr_expect(s.pads > 0);
	sn_fini(&s.net);
}

/* There is no other path: it is given up with the association, not before. */
Test(sctp_sealed, the_path_lasts_as_long_as_the_association, .description = "8261-6.1-4")
{
	struct ddps_sctp_path_info p;
	struct sealed s;
	struct iovec iov = { (void *)"text", 4 };

	begin_sealed(&s, true, true);
	s.net.node[0].link[0].dead = true;
	cr_assert_eq(ddps_sctp_send(s.a[0], 1, 1, 0, &iov, 1, s.net.now), 0);
	while (!s.gone) {
		cr_assert_eq(ddps_sctp_path_info(s.a[0], 0, &p), 0);
		cr_assert_neq(p.state, DDPS_SCTP_INACTIVE, "after %u errors", p.errors);
		cr_assert(sn_step(&s.net, s.net.now + 600000000000ull));
	}
	sn_fini(&s.net);
}

/* ---- a NAT on the way that finds another port for the dialler ---- */

#define NEW_PORT 40000

Test(sctp_sealed, a_new_port_is_asked_first_and_then_has_all, .description = "8261-6.1-8")
{
	struct ddps_sctp_path_info before, after;
	struct ddps_sctp_stats st;
	struct sealed s;

	begin_sealed(&s, true, true);
	for (int i = 0; i < 4; i++)
		talk_sealed(&s);
	ddps_sctp_path_info(s.a[1], 0, &before);
	s.net.node[0].link[0].nat = NEW_PORT;
	memset(s.packets, 0, sizeof s.packets);
	memset(s.by_port, 0, sizeof s.by_port);
	cr_assert_eq(ddps_sctp_send(s.a[0], 1, 1, 0, &(struct iovec){ (void *)"text", 4 }, 1,
				    s.net.now),
		     0);
	while (!s.by_port[NEW_PORT / 1000])
		cr_assert(sn_step(&s.net, s.net.now + 1000000000));
	cr_expect_eq(s.packets[SC_HEARTBEAT], 1);
	cr_expect_eq(s.roamed[0], 0);
	while (!s.roamed[0])
		cr_assert(sn_step(&s.net, s.net.now + 1000000000));
	cr_expect_eq(s.roamed[1], NEW_PORT);
	cr_expect_eq(s.before_roamed, 1, "nothing but the question");
	ddps_sctp_path_info(s.a[1], 0, &after);
	cr_expect_eq(after.encap, NEW_PORT);
	cr_expect_lt(after.cwnd, before.cwnd);
	cr_expect_leq(after.mtu, before.mtu);
	memset(s.by_port, 0, sizeof s.by_port);
	talk_sealed(&s);
	cr_expect_eq(s.messages, 11);
	cr_expect_eq(s.by_port[s.net.node[0].udp / 1000], 0);
	ddps_sctp_stats(s.net.node[1].e, &st);
	cr_expect(st.roamed == 1 && st.ports_learned == 0);
	ddps_sctp_stats(s.net.node[0].e, &st);
	cr_expect(st.roamed == 0 && st.ports_learned == 0);
	sn_fini(&s.net);
}

/* Whoever sees a record may send it from elsewhere, before it arrives; it gets a question a second, and no data. */
Test(sctp_sealed, what_was_repeated_from_elsewhere_moves_nothing)
{
	struct iovec iov[16], text = { (void *)"text", 4 };
	struct sealed s;
	uint8_t head[4096];

	begin_sealed(&s, true, true);
	for (int i = 0; i < 50; i++) {
		struct ddps_sctp_out out = { .iov = iov,
					     .iov_max = 16,
					     .head = head,
					     .head_max = sizeof head,
					     .max_segs = 1,
					     .max_len = 65535 };
		struct ddps_sctp_in in = { .data = head };

		cr_assert_eq(ddps_sctp_send(s.a[0], 1, 1, 0, &text, 1, s.net.now), 0);
		cr_assert_eq(ddps_sctp_output(s.net.node[0].e, &out, s.net.now), 1);
		in.len = out.len;
		for (unsigned k = 1; k < out.niov; k++)
			memcpy(head + iov[0].iov_len, iov[k].iov_base, iov[k].iov_len);
		in.from = (struct ddps_sctp_route){ .peer = s.net.node[0].addr[0],
						    .local = s.net.node[1].addr[0],
						    .encap = s.net.node[0].udp,
						    .seen = NEW_PORT,
						    .via = out.to.via,
						    .sealed = true };
		ddps_sctp_input(s.net.node[1].e, &in, 1, s.net.now);
		/* what goes there gets lost */
		if (!i) {
			cr_assert_eq(ddps_sctp_output(s.net.node[1].e, &out, s.net.now), 1);
			cr_expect_eq(out.to.encap, NEW_PORT);
			cr_expect_eq(head[12], SC_HEARTBEAT);
		}
		sn_run(&s.net, 1000000);
	}
	cr_expect_eq(s.messages, 50);
	cr_expect_eq(s.by_port[NEW_PORT / 1000], 0);
	cr_expect_eq(s.roamed[0], 0);
	sn_fini(&s.net);
}

/* One text of the dialler's, which comes from @seen; what the listener says then is lost, but for *@said. */
static void carry_text_from(struct sealed *s, uint16_t seen, struct ddps_sctp_in *said)
{
	static uint8_t head[4096], text[] = "text";
	struct iovec iov[16], t = { text, 4 };
	struct ddps_sctp_out out = { .iov = iov,
				     .iov_max = 16,
				     .head = head,
				     .head_max = sizeof head,
				     .max_segs = 1,
				     .max_len = 65535 };
	struct ddps_sctp_in in = { .data = head };

	cr_assert_eq(ddps_sctp_send(s->a[0], 1, 1, 0, &t, 1, s->net.now), 0);
	cr_assert_eq(ddps_sctp_output(s->net.node[0].e, &out, s->net.now), 1);
	in.len = out.len;
	for (unsigned k = 1, at = (unsigned)iov[0].iov_len; k < out.niov;
	     at += (unsigned)iov[k++].iov_len)
		memcpy(head + at, iov[k].iov_base, iov[k].iov_len);
	in.from = (struct ddps_sctp_route){ .peer = s->net.node[0].addr[0],
					    .local = s->net.node[1].addr[0],
					    .encap = s->net.node[0].udp,
					    .seen = seen,
					    .via = out.to.via,
					    .sealed = true };
	ddps_sctp_input(s->net.node[1].e, &in, 1, s->net.now);
	if (!said)
		return;
	cr_assert_eq(ddps_sctp_output(s->net.node[1].e, &out, s->net.now), 1);
	cr_assert_eq(out.to.encap, seen);
	cr_assert_eq(head[12], SC_HEARTBEAT);
	memcpy(s->echo, head, out.len);
	*said = (struct ddps_sctp_in){ .from = { .peer = s->net.node[1].addr[0],
						 .local = s->net.node[0].addr[0],
						 .encap = s->net.node[1].udp,
						 .sealed = true },
				       .data = s->echo,
				       .len = out.len };
}

/* It is asked elsewhere, is seen where it was, and then it answers; or the port is another one's meanwhile. */
Test(sctp_sealed, an_answer_that_comes_too_late_moves_nothing)
{
	for (int i = 0; i < 3; i++) {
		struct ddps_sctp_path_info p;
		struct ddps_sctp_stats st;
		struct ddps_sctp_in asked;
		struct sealed s;

		begin_sealed(&s, true, true);
		carry_text_from(&s, NEW_PORT, &asked);
		if (i == 1)
			carry_text_from(&s, s.net.node[0].udp, NULL);
		else
			s.net.node[0].link[0].nat = NEW_PORT;
		s.taken = i == 2;
		ddps_sctp_input(s.net.node[0].e, &asked, 1, s.net.now);
		sn_run(&s.net, 100000000);
		ddps_sctp_path_info(s.a[1], 0, &p);
		ddps_sctp_stats(s.net.node[1].e, &st);
		cr_expect_eq(p.encap, i ? s.net.node[0].udp : NEW_PORT, "%d: %u", i, p.encap);
		cr_expect_eq(st.roamed, !i);
		talk_sealed(&s);
		sn_fini(&s.net);
	}
}

/* The dialler has nothing more to say, and the listener's data goes where nobody is. */
Test(sctp_sealed, a_question_that_was_lost_is_asked_again)
{
	struct iovec text = { (void *)"text", 4 };
	struct sealed s;

	begin_sealed(&s, true, true);
	cr_assert_eq(ddps_sctp_send(s.a[1], 1, 1, 0, &text, 1, s.net.now), 0);
	sn_flush_node(&s.net, 1);
	s.net.node[0].link[0].nat = NEW_PORT; /* its SACK is the last that comes */
	s.net.node[1].link[0].dead = true;
	sn_run(&s.net, 100000000);
	cr_expect_eq(s.by_port[NEW_PORT / 1000], 1);
	s.net.node[1].link[0].dead = false;
	cr_assert_eq(ddps_sctp_send(s.a[1], 1, 1, 0, &text, 1, s.net.now), 0);
	sn_run(&s.net, 5000000000);
	cr_expect_eq(s.roamed[0], 1);
	cr_expect_eq(s.messages, 2);
	sn_fini(&s.net);
}

/* ---- ICMP says that nobody is there, each time that something is sent ---- */

static void doubt_for(struct sealed *s, uint64_t ns)
{
	const uint64_t until = s->net.now + ns;
	uint64_t sent = s->net.node[0].sent;

	while (!s->gone && sn_step(&s->net, until)) {
		if (s->net.node[0].sent != sent)
			ddps_sctp_doubt(s->a[0], s->net.now);
		sent = s->net.node[0].sent;
	}
}

Test(sctp_sealed, a_peer_that_is_said_to_be_gone_is_asked_and_missed_in_seconds)
{
	struct iovec iov = { (void *)"text", 4 };
	struct sealed s;

	begin_sealed(&s, true, true);
	s.net.node[0].link[0].dead = true;
	cr_assert_eq(ddps_sctp_send(s.a[0], 1, 1, 0, &iov, 1, s.net.now), 0);
	doubt_for(&s, 7000000000);
	cr_expect_eq(s.gone, 1);
	sn_fini(&s.net);
}

/* Anybody can send that: whoever answers is not gone, however slow the way is. */
Test(sctp_sealed, a_peer_that_answers_is_not_gone_whatever_icmp_says, .description = "8261-6.1-7")
{
	static const unsigned delay_ms[] = { 0, 300, 2000 };

	for (unsigned i = 0; i < 3; i++) {
		struct sealed s;

		begin_sealed(&s, true, true);
		for (int k = 0; k < 2; k++)
			s.net.node[k].link[0].delay += delay_ms[i] * 1000000ull / 2;
		talk_sealed(&s);
		memset(s.packets, 0, sizeof s.packets);
		ddps_sctp_doubt(s.a[0], s.net.now);
		doubt_for(&s, 60000000000);
		cr_expect_eq(s.gone, 0, "%u ms", delay_ms[i]);
		cr_expect(s.packets[SC_HEARTBEAT] <= 310, "%u", s.packets[SC_HEARTBEAT]);
		sn_fini(&s.net);
	}
}
