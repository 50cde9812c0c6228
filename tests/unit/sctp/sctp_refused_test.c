/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets that are not what they should be, and INITs in each state: what comes back, what is
 * counted, and what stays as it was. */
#include "sctp_paths_fixture.h"
#include "unit/mem_fixture.h"

#define N(a) (sizeof(a) / sizeof *(a))

TestSuite(sctp_refused, .fini = fini);

static int get_sctp_refused_cause(const struct ddps_sc_chunk *c)
{
	return c->vlen >= 4 ? c->val[0] << 8 | c->val[1] : 0;
}

static void put_sctp_refused_init(uint8_t type, uint32_t tag, const void *params, size_t len)
{
	size_t at = (size_t)(r.w.p - r.buf);

	raw_put_init(&r, tag, 100000, 5, 5, RAW_TSN, params, len);
	r.buf[at] = type;
}

static const uint8_t cookie[] = { 0, SC_P_COOKIE, 0, 8, 'c', 'o', 'o', 'k' };

/* Our INIT is out: its tag is known, and nothing has come back. */
static void open_checked_sctp_refused(void)
{
	struct ddps_sc_chunk c;
	struct ddps_sc_init i;

	raw_init(&r);
	raw_connect(&r);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_INIT);
	cr_assert_eq(ddps_sc_decode_init(&i, &c), 0);
	r.tag = i.tag;
	r.tsn = i.tsn;
	r.own = RAW_TAG;
}

/* ---- chunks that must be alone ---- */

/* Less than four octets behind it are no chunk. */
Test(sctp_refused, what_is_behind_a_chunk_that_is_alone,
     .description = "9260-3-1 9260-8.5.1-1 9260-12.3-1")
{
	static const uint8_t rest[8] = { SC_COOKIE_ACK, 0, 0, 4 };

	for (size_t n = 0; n < 6; n++) {
		open_checked_sctp_refused();
		raw_begin(&r, r.tag);
		put_sctp_refused_init(SC_INIT_ACK, RAW_TAG, cookie, sizeof cookie);
		ddps_wbuf_bytes(&r.w, rest, n);
		raw_send(&r);
		cr_expect_str_eq(raw_state(&r), n < 4 ? "COOKIE-ECHOED" : "COOKIE-WAIT", "%zu", n);
		fini();

		raw_init(&r);
		raw_begin(&r, 0);
		put_sctp_refused_init(SC_INIT, RAW_TAG, NULL, 0);
		ddps_wbuf_bytes(&r.w, rest, n);
		raw_send(&r);
		cr_expect_eq(raw_got(&r, 0, 0, NULL), n < 4 ? SC_INIT_ACK : -1, "%zu", n);
		cr_expect_eq(r.e->st.malformed, n < 4 ? 0 : 1, "%zu", n);
		fini();

		raw_up(&r);
		raw_chunk(&r, r.tag, SC_SHUTDOWN, 0, &(uint32_t){ htobe32(r.tsn - 1) }, 4);
		cr_assert_str_eq(raw_state(&r), "SHUTDOWN-ACK-SENT");
		raw_begin(&r, r.tag);
		ddps_sc_put_chunk(&r.w, SC_SHUTDOWN_COMPLETE, 0, NULL, 0);
		ddps_wbuf_bytes(&r.w, rest, n);
		raw_send(&r);
		cr_expect_eq(r.gone, n < 4, "%zu", n);
		fini();
	}
	raw_init(&r);
}

/* ---- reports ---- */

Test(sctp_refused, a_chunk_that_is_not_known_is_shown_in_part, .description = "9260-12.4-2")
{
	static const uint8_t value[200];

	raw_up(&r);
	for (size_t len = 126; len < 132; len++) {
		struct ddps_sc_chunk c;
		struct ddps_rbuf b;
		struct ddps_sc_tlv t;

		raw_chunk(&r, r.tag, 0xfe, 0, value, len - 4);
		cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ERROR);
		b = ddps_rbuf_init(c.val, c.vlen);
		cr_assert_eq(ddps_sc_tlv_next(&b, &t), 1);
		cr_expect(t.type == SC_CAUSE_CHUNK && t.vlen == (len < 128 ? len : 128), "%zu",
			  len);
	}
}

Test(sctp_refused, a_stream_that_there_is_not, .description = "9260-6.5-2")
{
	static const uint8_t want[8] = { 0, SC_CAUSE_STREAM, 0, 8, 0, 77, 0, 0 };
	struct ddps_sc_chunk c;

	raw_up(&r);
	raw_data(&r, RAW_TSN, 77, 0, 3, "x");
	cr_assert(raw_any(&r, SC_ERROR, &c));
	cr_expect(c.vlen == 8 && !memcmp(c.val, want, 8));
}

Test(sctp_refused, chunks_behind_a_cookie_are_as_many_as_elsewhere)
{
	raw_init(&r);
	r.e->c.max_chunks = 2;
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	for (unsigned more = 0; more < 2; more++) {
		raw_begin(&r, r.tag);
		ddps_sc_put_chunk(&r.w, SC_COOKIE_ECHO, 0, r.cookie, r.cookie_len);
		for (unsigned k = 0; k < 2 + more; k++)
			ddps_sc_put_chunk(&r.w, 0xbf, 0, NULL, 0);
		raw_send(&r);
		cr_expect_eq(r.e->st.unknown_chunks, 2 * (more + 1));
		cr_expect_eq(r.e->st.malformed, more);
	}
}

/* ---- tags ---- */

static void with_tag(uint32_t tag, uint8_t type, uint8_t flags)
{
	uint64_t before = r.e->st.bad_tag;

	raw_chunk(&r, tag, type, flags, NULL, 0);
	cr_expect_eq(r.e->st.bad_tag, before + 1, "%u", type);
	cr_expect_eq(r.n, 0, "%u", type);
	cr_expect_eq(r.gone, 0, "%u", type);
}

Test(sctp_refused, tags_that_are_not_those_of_a_chunk, .description = "9260-8.5.1-4 9260-9.2-16")
{
	for (unsigned ending = 0; ending < 2; ending++) {
		raw_up(&r);
		if (ending)
			raw_chunk(&r, r.tag, SC_SHUTDOWN, 0, &(uint32_t){ htobe32(r.tsn - 1) }, 4);
		with_tag(RAW_TAG, SC_HEARTBEAT, SC_FLAG_T);
		with_tag(RAW_TAG, SC_HEARTBEAT, 0);
		with_tag(RAW_TAG, SC_ABORT, 0);
		with_tag(r.tag, SC_ABORT, SC_FLAG_T);
		with_tag(0x7777, SC_ABORT, SC_FLAG_T);
		with_tag(0x7777, SC_HEARTBEAT, 0);
		if (ending) {
			with_tag(RAW_TAG, SC_SHUTDOWN_COMPLETE, 0);
			with_tag(r.tag, SC_SHUTDOWN_COMPLETE, SC_FLAG_T);
		} else {
			with_tag(RAW_TAG, SC_SHUTDOWN_COMPLETE, SC_FLAG_T);
		}
		fini();
	}
	raw_init(&r);
}

/* The peer has an association from before, whose tag we do not know. */
Test(sctp_refused, an_old_shutdown_while_we_set_up, .description = "9260-9.2-19")
{
	struct ddps_sc_chunk c;

	open_checked_sctp_refused();
	for (unsigned k = 0; k < 2; k++) {
		raw_chunk(&r, 0x5555, SC_SHUTDOWN_ACK, 0, NULL, 0);
		cr_assert_eq(raw_got(&r, 0, 0, &c), SC_SHUTDOWN_COMPLETE, "%u", k);
		cr_expect_eq(c.flags, SC_FLAG_T);
		cr_expect_eq(raw_got_tag(&r, 0), 0x5555);
		if (!k) {
			raw_begin(&r, r.tag);
			put_sctp_refused_init(SC_INIT_ACK, RAW_TAG, cookie, sizeof cookie);
			raw_send(&r);
			cr_assert_str_eq(raw_state(&r), "COOKIE-ECHOED");
		}
	}
}

/* ---- ABORT ---- */

Test(sctp_refused, what_the_user_gets_of_an_abort)
{
	static const struct {
		uint16_t cause;
		const char *text;
	} row[] = {
		{ 0, "no cause given" },
		{ SC_CAUSE_STREAM, "invalid stream identifier" },
		{ SC_CAUSE_MISSING, "missing mandatory parameter" },
		{ SC_CAUSE_RESOURCE, "out of resource" },
		{ SC_CAUSE_USER, "its user's wish" },
		{ SC_CAUSE_VIOLATION, "protocol violation" },
		{ SC_CAUSE_ENCAP, "another program of the host has this SCTP port" },
		{ 15, "no cause given" },
		{ 100, "no cause given" },
		{ 65535, "no cause given" },
	};

	for (size_t i = 0; i < N(row); i++) {
		uint8_t cause[4] = { (uint8_t)(row[i].cause >> 8), (uint8_t)row[i].cause, 0, 4 };

		raw_up(&r);
		raw_chunk(&r, r.tag, SC_ABORT, 0, cause, row[i].cause ? 4 : 0);
		cr_assert_eq(r.gone, 1);
		cr_expect_not_null(strstr(r.why.text, row[i].text), "%u: %s", row[i].cause,
				   r.why.text);
		fini();
	}
	raw_init(&r);
}

/* Whose tag we do not know cannot be informed. */
Test(sctp_refused, nobody_is_informed_of_an_end_before_it_answers)
{
	open_checked_sctp_refused();
	r.n = 0;
	ddps_sctp_abort(r.a, NULL, r.net.now);
	sn_flush(&r.net);
	cr_expect_eq(r.n, 0);
	cr_expect_eq(r.e->st.aborts_out, 0);
}

/* ---- INIT to nobody ---- */

Test(sctp_refused, inits_that_nobody_takes, .description = "9260-3.3.2-8 9260-5.1-15 9260-8.5.1-3")
{
	struct ddps_sc_chunk c;

	raw_init(&r);
	raw_begin(&r, 0);
	ddps_sc_put_chunk(&r.w, SC_INIT, 0, "0123456789", 10);
	raw_send(&r);
	cr_expect_eq(r.n, 0);
	cr_expect_eq(r.e->st.malformed, 1);
	raw_begin(&r, 0);
	put_sctp_refused_init(SC_INIT, 0, NULL, 0);
	raw_send(&r);
	cr_expect_eq(r.n, 0);
	cr_expect_eq(r.e->st.malformed, 2);
	r.e->c.max_assocs = 0;
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ABORT);
	cr_expect(!c.flags && get_sctp_refused_cause(&c) == SC_CAUSE_RESOURCE);
	cr_expect_eq(raw_got_tag(&r, 0), RAW_TAG);
	cr_expect_eq(r.e->st.refused_full, 1);
}

/* One address of ours is the packet's, and not told [6951-3.2-1]. */
Test(sctp_refused, one_address_is_not_listed, .description = "6951-3.2-1")
{
	struct ddps_sc_chunk c;
	struct ddps_sc_init i;

	raw_init(&r);
	memcpy(r.port->param.local, r.net.node[0].addr, sizeof r.net.node[0].addr);
	for (unsigned n = 1; n <= 2; n++) {
		r.port->param.nlocal = n;
		raw_init_chunk(&r, RAW_TAG, RAW_TSN);
		cr_assert_eq(raw_got(&r, 0, 0, &c), SC_INIT_ACK);
		cr_assert_eq(ddps_sc_decode_init(&i, &c), 0);
		cr_expect_eq(i.naddr, n == 1 ? 0 : 2);
	}
}

/* By another socket of ours than the first. */
Test(sctp_refused, a_cookie_knows_its_socket)
{
	struct ddps_sctp_param p = { .port = RAW_PORT, .via = 3, .streams = 10 };
	struct ddps_sctp_in in = { .data = r.buf };
	struct ddps_sctp_port *port;

	raw_init(&r);
	cr_assert_eq(ddps_sctp_listen(r.e, &p, r.port->accept, &r, &port), 0);
	in.from.peer = *get_first_address();
	in.from.local = r.net.node[0].addr[0];
	in.from.encap = r.net.node[1].udp;
	in.from.via = 3;
	for (unsigned k = 0; k < 2; k++) {
		raw_begin(&r, k ? r.tag : 0);
		if (k)
			ddps_sc_put_chunk(&r.w, SC_COOKIE_ECHO, 0, r.cookie, r.cookie_len);
		else
			put_sctp_refused_init(SC_INIT, RAW_TAG, NULL, 0);
		in.len = (size_t)(r.w.p - r.buf);
		ddps_sc_crc_put(r.buf, in.len);
		ddps_sctp_input(r.e, &in, 1, r.net.now);
		sn_flush(&r.net);
		if (!k)
			cr_assert(raw_take_init_ack(&r));
	}
	cr_expect_eq(r.accepted, 1);
	cr_expect_eq(r.e->st.cookies_bad, 0);
	cr_assert_not_null(r.a);
	cr_expect_eq(r.a->via, 3);
}

/* ---- INIT to an association ---- */

static struct ddps_sc_cookie opened_cookie(void)
{
	struct ddps_sc_cookie ck = { .own_tag = 0 };

	cr_assert_eq(ddps_sc_cookie_open(&r.e->keys, &ck, r.cookie, r.cookie_len), 0);
	return ck;
}

Test(sctp_refused, an_init_where_ours_is_out, .description = "9260-5.2.1-1")
{
	struct ddps_sc_cookie ck;
	uint32_t tag;

	open_checked_sctp_refused();
	tag = r.tag;
	r.a->tie_own = r.a->tie_peer = 5; /* as a set-up that has failed leaves them */
	raw_begin(&r, 0);
	put_sctp_refused_init(SC_INIT, RAW_TAG, NULL, 0);
	raw_send(&r);
	cr_assert(raw_take_init_ack(&r));
	ck = opened_cookie();
	cr_expect(ck.own_tag == tag && !ck.tie_own && !ck.tie_peer);
}

Test(sctp_refused, inits_where_a_cookie_of_ours_is_out,
     .description = "9260-5.2.1-4 9260-5.2.2-2 9260-3.3.2-8")
{
	struct ddps_sctp_addr other = sn_v4(10, 9, 9, 9);
	uint8_t params[64];
	struct ddps_wbuf w = ddps_wbuf_init(params, sizeof params);
	struct ddps_sc_cookie ck;
	struct ddps_sc_chunk c;

	open_checked_sctp_refused();
	raw_begin(&r, r.tag);
	put_sctp_refused_init(SC_INIT_ACK, RAW_TAG, cookie, sizeof cookie);
	raw_send(&r);
	cr_assert_str_eq(raw_state(&r), "COOKIE-ECHOED");
	raw_begin(&r, 0);
	put_sctp_refused_init(SC_INIT, 0, NULL, 0);
	raw_send(&r);
	cr_expect_eq(r.n, 0);
	ddps_sc_put_addr(&w, &other);
	raw_begin(&r, 0);
	put_sctp_refused_init(SC_INIT, RAW_TAG, params, (size_t)(w.p - params));
	raw_send(&r);
	cr_expect_eq(r.n, 1);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ABORT);
	cr_expect(!c.flags && get_sctp_refused_cause(&c) == SC_CAUSE_RESTART);
	cr_expect_eq(r.a->tie_own, 0);
	raw_begin(&r, 0);
	put_sctp_refused_init(SC_INIT, RAW_TAG, NULL, 0);
	raw_send(&r);
	cr_assert(raw_take_init_ack(&r));
	ck = opened_cookie();
	cr_expect(r.a->tie_own && r.a->tie_peer);
	cr_expect(ck.tie_own == r.a->tie_own && ck.tie_peer == r.a->tie_peer);
}

Test(sctp_refused, inits_of_a_peer_that_is_there, .description = "9260-5.2.2-2 9260-5.2.2-6")
{
	struct ddps_sctp_addr other = sn_v4(10, 9, 9, 9);
	uint32_t tsn;
	uint8_t params[64];
	struct ddps_wbuf w = ddps_wbuf_init(params, sizeof params);
	struct ddps_sc_chunk c;

	raw_up(&r);
	tsn = r.tsn;
	ddps_sc_put_addr(&w, &other);
	raw_begin(&r, 0);
	put_sctp_refused_init(SC_INIT, RAW_TAG + 1, params, (size_t)(w.p - params));
	raw_send(&r);
	cr_expect_eq(r.n, 1);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ABORT);
	cr_expect(!c.flags && get_sctp_refused_cause(&c) == SC_CAUSE_RESTART);
	cr_expect_eq(raw_got_tag(&r, 0), RAW_TAG + 1);
	cr_expect_eq(r.e->st.restarts_refused, 1);
	raw_begin(&r, 0);
	put_sctp_refused_init(SC_INIT, RAW_TAG + 1, NULL, 0);
	raw_send(&r);
	cr_assert(raw_take_init_ack(&r));
	cr_expect_neq(r.tsn, tsn);
	cr_expect(r.a->tie_own && r.a->tie_peer);
}

/* It comes from an address that nobody knows, and lists one that is known behind another one. */
Test(sctp_refused, an_init_is_known_by_any_address_in_it, .description = "9260-5.1.2-4")
{
	struct ddps_sctp_addr other = sn_v4(10, 9, 9, 9);
	uint8_t params[64];
	struct ddps_wbuf w = ddps_wbuf_init(params, sizeof params);
	struct ddps_sc_chunk c;

	raw_up(&r);
	ddps_sc_put_addr(&w, &other);
	ddps_sc_put_addr(&w, get_first_address());
	raw_begin(&r, 0);
	put_sctp_refused_init(SC_INIT, RAW_TAG + 1, params, (size_t)(w.p - params));
	send_second();
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ABORT);
	cr_expect_eq(get_sctp_refused_cause(&c), SC_CAUSE_RESTART);
	cr_expect_eq(c.vlen, 4 + 2 * 8, "the two that are new");
}

/* As many new ones as it may list, of the longer kind: the one that is known is beyond them. */
Test(sctp_refused, all_addresses_that_are_new_are_named, .description = "9260-5.2.2-2")
{
	struct ddps_sctp_in in = { .data = r.buf };
	struct ddps_sctp_addr six = { .family = 6, .ip = { 0x20, 1, 0xd, 0xb8 } };
	uint8_t params[200];
	struct ddps_wbuf w = ddps_wbuf_init(params, sizeof params);
	struct ddps_sc_chunk c;

	raw_up(&r);
	for (uint8_t k = 1; k < DDPS_SCTP_ADDRS_MAX; k++) {
		six.ip[15] = k;
		ddps_sc_put_addr(&w, &six);
	}
	ddps_sc_put_addr(&w, get_first_address());
	raw_begin(&r, 0);
	put_sctp_refused_init(SC_INIT, RAW_TAG + 1, params, (size_t)(w.p - params));
	six.ip[15] = 99;
	in.from.peer = six;
	in.from.encap = r.net.node[1].udp;
	in.len = (size_t)(r.w.p - r.buf);
	ddps_sc_crc_put(r.buf, in.len);
	r.n = 0;
	ddps_sctp_input(r.e, &in, 1, r.net.now);
	sn_flush(&r.net);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ABORT);
	cr_expect_eq(get_sctp_refused_cause(&c), SC_CAUSE_RESTART);
	cr_expect_eq(c.vlen, 4 + DDPS_SCTP_ADDRS_MAX * 20, "%zu", c.vlen);
}

/* ---- INIT ACK ---- */

Test(sctp_refused, an_init_ack_that_ends_in_the_middle)
{
	static const uint8_t broken[] = { 0, 5, 0, 9, 1, 2, 3, 4 };
	struct ddps_sc_chunk c;

	open_checked_sctp_refused();
	raw_begin(&r, r.tag);
	put_sctp_refused_init(SC_INIT_ACK, RAW_TAG, broken, sizeof broken);
	raw_send(&r);
	cr_expect_eq(r.gone, 1);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ABORT);
	cr_expect(get_sctp_refused_cause(&c) == SC_CAUSE_VIOLATION && c.vlen == 4);
	cr_expect_eq(r.e->st.violations, 1);
}

Test(sctp_refused, an_init_ack_without_memory_for_its_cookie)
{
	open_checked_sctp_refused();
	raw_begin(&r, r.tag);
	put_sctp_refused_init(SC_INIT_ACK, RAW_TAG, cookie, sizeof cookie);
	mem_fail(1);
	raw_hand(&r);
	cr_assert(mem_failed());
	cr_expect_str_eq(raw_state(&r), "COOKIE-WAIT");
	cr_expect_eq(r.e->st.no_memory, 1);
	raw_hand(&r);
	cr_expect_str_eq(raw_state(&r), "COOKIE-ECHOED");
	cr_expect_eq(r.e->st.no_memory, 1);
}

/* The first INIT ACK has a parameter that is reported, the one after a stale cookie has none. */
Test(sctp_refused, a_report_is_of_the_last_init_ack, .description = "9260-3.2.2-2 9260-5.2.6-1")
{
	static const uint8_t stale[8] = { 0, SC_CAUSE_STALE, 0, 8, 0, 0, 0, 9 };
	static const uint8_t more[] = { 0, SC_P_COOKIE, 0, 8, 'c', 'o', 'o', 'k', 0xc0, 1, 0, 4 };

	open_checked_sctp_refused();
	raw_begin(&r, r.tag);
	put_sctp_refused_init(SC_INIT_ACK, RAW_TAG, more, sizeof more);
	raw_send(&r);
	cr_assert(raw_any(&r, SC_COOKIE_ECHO, NULL));
	cr_expect(raw_any(&r, SC_ERROR, NULL));
	raw_chunk(&r, r.tag, SC_ERROR, 0, stale, sizeof stale);
	cr_assert_str_eq(raw_state(&r), "COOKIE-WAIT");
	raw_begin(&r, r.tag);
	put_sctp_refused_init(SC_INIT_ACK, RAW_TAG, cookie, sizeof cookie);
	raw_send(&r);
	cr_assert(raw_any(&r, SC_COOKIE_ECHO, NULL));
	cr_expect_not(raw_any(&r, SC_ERROR, NULL));
}

/* Two addresses were given: whichever answers, all that follows comes from where it went to. */
Test(sctp_refused, the_address_of_ours_that_the_peer_has_answered)
{
	struct ddps_sctp_param p = { .port = RAW_PORT, .streams = 10, .fixed_mtu = 1500 };

	for (unsigned from_second = 0; from_second < 2; from_second++) {
		struct ddps_sc_chunk c;
		struct ddps_sc_init i;

		raw_init(&r);
		cr_assert_eq(ddps_sctp_connect(r.e, &p, r.net.node[1].addr, 2, RAW_PEER, 9899,
					       &raw_upcalls, &r, r.net.now, &r.a),
			     0);
		sn_flush(&r.net);
		cr_assert_eq(raw_got(&r, 0, 0, &c), SC_INIT);
		cr_assert_eq(ddps_sc_decode_init(&i, &c), 0);
		raw_begin(&r, i.tag);
		put_sctp_refused_init(SC_INIT_ACK, RAW_TAG, cookie, sizeof cookie);
		if (from_second)
			send_second();
		else
			raw_send(&r);
		cr_expect_eq(r.a->npaths, 2);
		for (unsigned k = 0; k < 2; k++)
			cr_expect(is_same_paths_address(&r.a->path[k]->local,
							&r.net.node[0].addr[0]),
				  "%u", k);
		cr_expect_eq(sent_to(from_second ? get_second_address() : get_first_address(),
				     SC_COOKIE_ECHO, NULL),
			     1);
		fini();
	}
	raw_init(&r);
}

/* It comes from an address that it does not list, with one that is known. */
Test(sctp_refused, the_source_of_an_init_ack_is_one_of_its_addresses, .description = "9260-5.1.2-4")
{
	uint8_t params[64];
	struct ddps_wbuf w = ddps_wbuf_init(params, sizeof params);

	open_checked_sctp_refused();
	ddps_wbuf_bytes(&w, cookie, sizeof cookie);
	ddps_sc_put_addr(&w, get_first_address());
	raw_begin(&r, r.tag);
	put_sctp_refused_init(SC_INIT_ACK, RAW_TAG, params, (size_t)(w.p - params));
	send_second();
	cr_assert_eq(r.a->npaths, 2);
	cr_expect(is_same_paths_address(&r.a->path[1]->peer, get_second_address()));
}

/* Which of ours it was sent to the system did not tell. */
Test(sctp_refused, the_paths_of_an_init_ack_are_its_addresses,
     .description = "9260-5.1.2-1 etsi-as-1-11-2")
{
	struct ddps_sctp_in in = { .data = r.buf };

	open_checked_sctp_refused();
	raw_begin(&r, r.tag);
	put_sctp_refused_init(SC_INIT_ACK, RAW_TAG, cookie, sizeof cookie);
	in.from.peer = *get_first_address();
	in.from.encap = r.net.node[1].udp;
	in.len = (size_t)(r.w.p - r.buf);
	ddps_sc_crc_put(r.buf, in.len);
	ddps_sctp_input(r.e, &in, 1, r.net.now);
	cr_assert_str_eq(raw_state(&r), "COOKIE-ECHOED");
	cr_expect_eq(r.a->npaths, 1);
}
