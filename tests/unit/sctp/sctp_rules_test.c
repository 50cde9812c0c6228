/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of SCTP that each need few packets: fragments sent, set-up's small print. */
#include "sctp_raw_fixture.h"

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

static int get_sctp_rules_cause(const struct ddps_sc_chunk *c)
{
	return c->vlen >= 4 ? c->val[0] << 8 | c->val[1] : 0;
}

/* ---- fragments that we send ---- */

static unsigned fragments(unsigned flags, struct ddps_sc_data *d, unsigned max)
{
	static uint8_t text[4000];
	struct iovec iov = { text, sizeof text };
	struct ddps_sc_chunk c;
	unsigned n = 0;

	for (unsigned i = 0; i < sizeof text; i++)
		text[i] = (uint8_t)(i * 3 >> 2);
	cr_assert_eq(ddps_sctp_send(r.a, 3, 0x01020304, flags, &iov, 1, r.net.now), 0);
	r.n = 0;
	sn_flush(&r.net);
	for (unsigned k = 0; k < r.n; k++) {
		cr_expect_leq(r.log[k].len + 28, 1500); /* IP and UDP */
		for (unsigned i = 0; raw_got(&r, k, i, &c) >= 0; i++) {
			if (c.type != SC_DATA || n == max)
				continue;
			ddps_sc_decode_data(&d[n++], &c);
		}
	}
	return n;
}

static void check_fragments(unsigned flags, uint32_t tsn, uint16_t ssn)
{
	struct ddps_sc_data d[8];
	unsigned n = fragments(flags, d, 8);
	size_t len = 0;

	cr_assert_eq(n, 3);
	for (unsigned i = 0; i < n; i++) {
		cr_expect(d[i].tsn == tsn + i && d[i].sid == 3 && d[i].ppid == 0x01020304);
		cr_expect_eq(d[i].flags & SC_DATA_B, i == 0 ? SC_DATA_B : 0);
		cr_expect_eq(d[i].flags & SC_DATA_E, i == 2 ? SC_DATA_E : 0);
		cr_expect_eq(d[i].flags & SC_DATA_U, flags ? SC_DATA_U : 0);
		if (!flags)
			cr_expect_eq(d[i].ssn, ssn);
		for (size_t k = 0; k < d[i].len; k += 97)
			cr_assert_eq(d[i].p[k], (uint8_t)((len + k) * 3 >> 2));
		len += d[i].len;
	}
	cr_expect_eq(len, 4000);
}

Test(sctp_rules, long_messages_are_cut, .fini = fini,
     .description = "9260-3.3.1-4 9260-3.3.1-6 9260-3.3.1-7 9260-6-7 9260-6.9-2 9260-6.9-6 "
		    "9260-6.9-7 9260-6.9-10 9260-6.10-1 6951-5.6-1 etsi-d-8-2")
{
	raw_up(&r);
	check_fragments(0, r.tsn, 0);
	raw_sack(&r, r.tsn + 2, 100000);
	check_fragments(0, r.tsn + 3, 1);
	raw_sack(&r, r.tsn + 5, 100000);
	check_fragments(DDPS_SCTP_UNORDERED, r.tsn + 6, 0);
	raw_sack(&r, r.tsn + 8, 100000);
	cr_expect_eq(ddps_sctp_max_chunk(r.a), (1500 - 20 - 8 - 12) / 4 * 4 - 16);
}

/* What was cut for a larger path goes alone, and IP cuts it; then the new size holds. */
Test(sctp_rules, what_no_longer_fits_is_fragmented_by_ip, .fini = fini, .description = "9260-6.9-5")
{
	static uint8_t head[DDPS_SCTP_HEAD_MIN];
	struct iovec iov[DDPS_SCTP_IOV_MIN];
	struct ddps_sctp_out o = { .iov = iov,
				   .iov_max = DDPS_SCTP_IOV_MIN,
				   .head = head,
				   .head_max = sizeof head,
				   .max_segs = 8,
				   .max_len = 65000 };
	struct ddps_sc_data d[8];
	bool cut = false;

	raw_up(&r);
	cr_assert_eq(fragments(0, d, 8), 3);
	ddps_pmtu_fix(&r.a->path[0]->tx.pmtu, 1000);
	ddps_sent_mtu_changed(&r.a->tx, &r.a->path[0]->tx, DDPS_PMTU_SIZE);
	for (unsigned i = 0; i < 300 && !cut; i++) {
		r.net.now += 10 * MS;
		ddps_sctp_tick(r.e, r.net.now);
		while (ddps_sctp_output(r.e, &o, r.net.now)) {
			cr_expect_eq(o.fragment, o.seg_size + 28 > 1000);
			cut |= o.fragment && o.nsegs == 1;
		}
	}
	cr_expect(cut);
}

/* A packet that resends has room for what is new. */
Test(sctp_rules, old_and_new_share_a_packet, .fini = fini, .description = "9260-6.1-15")
{
	struct iovec iov = { (void *)(uintptr_t) "new", 3 };
	struct ddps_sc_chunk c;
	struct ddps_sc_data d;
	bool shared = false;
	uint8_t v[16] = { 0 };

	raw_up(&r);
	for (unsigned i = 0; i < 5; i++)
		cr_assert_eq(raw_user_send(&r, 0, 0, "old"), 0);
	raw_wait(&r, 20);
	cr_assert_eq(ddps_sctp_send(r.a, 0, 1, 0, &iov, 1, r.net.now), 0);
	v[0] = (uint8_t)((r.tsn - 1) >> 24);
	v[1] = (uint8_t)((r.tsn - 1) >> 16);
	v[2] = (uint8_t)((r.tsn - 1) >> 8);
	v[3] = (uint8_t)(r.tsn - 1);
	v[6] = 0x80; /* window */
	v[9] = 1;
	v[13] = 2;
	v[15] = 5;
	raw_chunk(&r, r.tag, SC_SACK, 0, v, sizeof v);
	for (unsigned k = 0; k < r.n; k++) {
		if (raw_got(&r, k, 0, &c) != SC_DATA || ddps_sc_decode_data(&d, &c) < 0 ||
		    d.tsn != r.tsn || raw_got(&r, k, 1, &c) != SC_DATA)
			continue;
		ddps_sc_decode_data(&d, &c);
		shared = d.tsn == r.tsn + 5;
	}
	cr_expect(shared);
}

/* ---- set-up ---- */

Test(sctp_rules, tags_and_tsns_are_drawn_each_time, .fini = fini,
     .description =
	     "9260-3.3.2-14 9260-3.3.3-11 9260-3.3.11-3 9260-5.1.3-7 9260-5.2.2-10 etsi-as-1-5-1")
{
	uint32_t tag[20], tsn[20];

	raw_init(&r);
	for (unsigned i = 0; i < 20; i++) {
		raw_init_chunk(&r, RAW_TAG, RAW_TSN);
		cr_assert(raw_take_init_ack(&r));
		cr_expect_leq(r.cookie_len, 128);
		tag[i] = r.tag;
		tsn[i] = r.tsn;
		for (unsigned k = 0; k < i; k++)
			cr_expect(tag[k] != tag[i] && tsn[k] != tsn[i]);
	}
}

Test(sctp_rules, first_tsn_of_an_init_is_drawn, .description = "9260-3.3.2-14")
{
	struct ddps_sc_init i;
	struct ddps_sc_chunk c;
	uint32_t first = 0;

	for (unsigned k = 0; k < 2; k++) {
		raw_init(&r);
		for (unsigned n = 0; n < k; n++) /* the fixture's numbers begin again */
			ddps_sc_random32(r.e);
		raw_connect(&r);
		cr_assert_eq(raw_got(&r, 0, 0, &c), SC_INIT);
		cr_assert_eq(ddps_sc_decode_init(&i, &c), 0);
		cr_expect(!k || i.tsn != first);
		first = i.tsn;
		raw_fini(&r);
	}
}

/* The type 5 and 6 that an address has; never one in the clothes of the other. */
Test(sctp_rules, addresses_are_listed_by_family, .fini = fini,
     .description = "9260-3.3.2.1-2 9260-3.3.2.1-3")
{
	const struct ddps_sctp_addr six = { .family = 6, .ip = { 0x20, 1, 0xd, 0xb8, [15] = 1 } };
	struct ddps_sc_chunk c;
	struct ddps_sc_init i;
	unsigned four = 0, n6 = 0;

	raw_init(&r);
	r.port->param.nlocal = 2;
	r.port->param.local[0] = r.net.node[0].addr[0];
	r.port->param.local[1] = six;
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_INIT_ACK);
	cr_assert_eq(ddps_sc_decode_init(&i, &c), 0);
	for (unsigned k = 0; k < i.naddr; k++) {
		four += i.addr[k].family == 4 && !memcmp(i.addr[k].ip, r.net.node[0].addr[0].ip, 4);
		n6 += i.addr[k].family == 6 && !memcmp(i.addr[k].ip, six.ip, 16);
	}
	cr_expect(i.naddr == 2 && four == 1 && n6 == 1);
}

/* The ABORT shows the host name that it is for; one that is too long is left out. */
Test(sctp_rules, host_names_are_shown_in_the_abort, .fini = fini,
     .description = "9260-3.3.2-3 9260-5.1.2-9")
{
	static uint8_t host[400] = { 0, 11 };
	struct ddps_sc_chunk c;

	raw_init(&r);
	for (unsigned k = 0; k < 2; k++) {
		size_t n = k ? sizeof host : 9;

		host[2] = (uint8_t)(n >> 8);
		host[3] = (uint8_t)n;
		raw_begin(&r, 0);
		raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, host, n);
		raw_send(&r);
		cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ABORT);
		cr_expect_eq(get_sctp_rules_cause(&c), k ? 0 : SC_CAUSE_ADDRESS);
		cr_expect(k ? c.vlen == 0 : c.vlen >= 13 && !memcmp(c.val + 4, host, n));
	}
}

/* A longer life is granted, up to twice the usual one. */
Test(sctp_rules, a_cookie_may_live_longer, .fini = fini, .description = "9260-3.3.2.1-5")
{
	static const uint8_t wish[] = { 0, 9, 0, 8, 0xff, 0xff, 0xff, 0xff };

	for (unsigned k = 0; k < 2; k++) {
		raw_init(&r);
		raw_begin(&r, 0);
		raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, wish, sizeof wish);
		raw_send(&r);
		cr_assert(raw_take_init_ack(&r));
		raw_wait(&r, k ? 121000 : 119000);
		raw_echo(&r);
		cr_expect_eq(raw_any(&r, SC_COOKIE_ACK, NULL), !k);
		cr_expect_eq(raw_any(&r, SC_ERROR, NULL), k);
		if (!k)
			raw_fini(&r);
	}
}

/* A restart's cookie that is too old: Stale Cookie, and the association lives. */
Test(sctp_rules, a_stale_restart_is_named, .fini = fini, .description = "9260-5.2.4-1 9260-5.2.4-2")
{
	struct ddps_sc_chunk c;

	raw_up(&r);
	raw_init_chunk(&r, 0x99999999, 77777);
	cr_assert(raw_take_init_ack(&r));
	for (unsigned i = 0; i < 70; i++)
		raw_wait(&r, 1000);
	raw_echo(&r);
	cr_assert(raw_any(&r, SC_ERROR, &c));
	cr_expect_eq(get_sctp_rules_cause(&c), SC_CAUSE_STALE);
	cr_expect_eq(r.restarted, 0);
	cr_expect_str_eq(raw_state(&r), "ESTABLISHED");
}

/* Whoever is not one host cannot be answered. */
Test(sctp_rules, packets_of_groups_are_dropped, .fini = fini,
     .description = "9260-8.4-1 etsi-fh-5-3-5")
{
	static const struct ddps_sctp_addr from[] = {
		{ .family = 4, .ip = { 224, 0, 0, 1 } },
		{ .family = 4, .ip = { 255, 255, 255, 255 } },
		{ .family = 4 },
		{ .family = 6, .ip = { 0xff, 2, [15] = 1 } },
		{ .family = 6 },
	};

	raw_init(&r);
	for (unsigned i = 0; i < sizeof from / sizeof *from; i++) {
		uint8_t copy[256];
		struct ddps_sctp_in in = { .from = { .peer = from[i], .encap = 9899 },
					   .data = copy };

		raw_begin(&r, i & 1 ? 0 : 7);
		if (i & 1)
			raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, NULL, 0);
		else
			ddps_sc_put_chunk(&r.w, SC_SHUTDOWN_ACK, 0, NULL, 0);
		in.len = (size_t)(r.w.p - r.buf);
		ddps_sc_crc_put(r.buf, in.len);
		memcpy(copy, r.buf, in.len);
		ddps_sctp_input(r.e, &in, 1, r.net.now);
		r.n = 0;
		sn_flush(&r.net);
		cr_expect_eq(r.n, 0, "%u", i);
	}
	cr_expect_eq(r.e->st.malformed, 5);
}

Test(sctp_rules, an_endpoint_is_there_once, .fini = fini, .description = "9260-1.3-1 9260-1.3-3")
{
	struct ddps_sctp_param p = { .port = RAW_PORT, .streams = 10 };
	struct ddps_sctp_port *l;
	struct ddps_sctp_assoc *a;

	raw_up(&r);
	cr_expect_eq(ddps_sctp_listen(r.e, &p, r.port->accept, &r, &l), DDPS_E_BUSY);
	cr_expect_eq(ddps_sctp_connect(r.e, &p, &r.net.node[1].addr[0], 1, RAW_PEER, 9899,
				       &raw_upcalls, &r, r.net.now, &a),
		     DDPS_E_BUSY);
}

Test(sctp_rules, defaults_are_those_recommended, .description = "9260-16-1 9260-6.2-12 9260-8.3-7")
{
	struct ddps_sctp_config c;
	struct ddps_sctp *e;

	ddps_sctp_defaults(&c);
	cr_expect_eq(c.rto_initial_ms, 1000);
	cr_expect_eq(c.rto_max_ms, 60000);
	cr_expect_eq(c.cookie_life_ms, 60000);
	cr_expect_eq(c.assoc_max_retrans, 10);
	cr_expect_eq(c.path_max_retrans, 5);
	cr_expect_eq(c.init_max_retrans, 8);
	cr_expect_eq(c.hb_interval_ms, 30000);
	cr_expect_leq(c.sack_delay_ms, 200);
	c.random = sn_random;
	c.sack_delay_ms = 501;
	cr_expect_eq(ddps_sctp_new(&c, 0, &e), DDPS_E_INVAL);
}
