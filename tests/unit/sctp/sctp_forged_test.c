/* SPDX-License-Identifier: BSD-2-Clause */
/* Cookies that have the right MAC and contents that no INIT ACK had: whoever learned the keys. */
#include "sctp_raw_fixture.h"
#include "unit/mem_fixture.h"
#include <nettle/hmac.h>

static struct raw r;
static struct ddps_sc_cookie ck;

static void fini(void)
{
	raw_fini(&r);
}

TestSuite(sctp_forged, .fini = fini);

/* ---- octets ---- */

static struct ddps_sc_keys keys;

static int open_in_sctp_forged(const uint8_t *body, size_t len)
{
	uint8_t buf[600];
	struct ddps_sc_cookie c;
	struct hmac_sha256_ctx h;

	memcpy(buf, body, len);
	hmac_sha256_set_key(&h, sizeof keys.secret[0], keys.secret[keys.id & 1]);
	hmac_sha256_update(&h, len, buf);
	hmac_sha256_digest(&h, 16, buf + len);
	return ddps_sc_cookie_open(&keys, &c, buf, len + 16);
}

static size_t eight_addresses(uint8_t *buf)
{
	static const uint8_t secret[2][32] = { { 1 }, { 2 } };
	struct ddps_sc_cookie c = { .own_tag = 7, .naddr = DDPS_SCTP_ADDRS_MAX };

	ddps_sc_keys_init(&keys, secret, 1);
	c.source = sn_v4(10, 0, 0, 1);
	c.local.family = 6;
	for (unsigned i = 0; i < c.naddr; i++)
		c.addr[i] = sn_v4(10, 0, 1, i);
	return ddps_sc_cookie_seal(&keys, &c, buf) - 16;
}

Test(sctp_cookie, what_is_too_short_or_too_long, .description = "9260-5.1.5-1 9260-5.1.5-2")
{
	uint8_t body[600] = { 0 };
	size_t len = eight_addresses(body);

	for (size_t n = 0; n <= sizeof body - 16; n++)
		cr_expect_eq(open_in_sctp_forged(body, n), n == len ? 0 : DDPS_E_KEY, "%zu of %zu",
			     n, len);
}

Test(sctp_cookie, more_addresses_than_there_can_be)
{
	uint8_t body[600] = { 0 };
	size_t len = eight_addresses(body), at = len - 8 * 5 - 1;

	cr_assert_eq(body[at], 8);
	body[at] = 9; /* eight are there: all that is read */
	cr_expect_eq(open_in_sctp_forged(body, len), DDPS_E_KEY);
	body[at] = 255;
	cr_expect_eq(open_in_sctp_forged(body, len), DDPS_E_KEY);
	body[at] = 8;
	cr_expect_eq(open_in_sctp_forged(body, len), 0);
}

Test(sctp_cookie, keys_and_versions_of_before_the_last)
{
	uint8_t body[600] = { 0 };
	static const uint8_t secret[32] = { 3 };
	size_t len = eight_addresses(body);

	cr_expect_eq(open_in_sctp_forged(body, len), 0);
	body[0]++;
	cr_expect_eq(open_in_sctp_forged(body, len), DDPS_E_KEY, "version");
	body[0]--;
	body[1]++;
	cr_expect_eq(open_in_sctp_forged(body, len), DDPS_E_KEY, "a key that is not there yet");
	body[1]--;
	ddps_sc_keys_rotate(&keys, secret, 2);
	body[1] = keys.id;
	cr_expect_eq(open_in_sctp_forged(body, len), 0);
	body[1] = (uint8_t)(keys.id - 2);
	cr_expect_eq(open_in_sctp_forged(body, len), DDPS_E_KEY, "a key that is gone");
}

/* ---- contents ---- */

static void open_sctp_forged(void)
{
	cr_assert_eq(ddps_sc_cookie_open(&r.e->keys, &ck, r.cookie, r.cookie_len), 0);
}

/* COOKIE ECHO of @ck from the address @link, to the one that the INIT went to.  True: the @fail-th
 * allocation of it has failed. */
static bool echo_from_sctp_forged(unsigned link, unsigned fail)
{
	struct ddps_sctp_in in = { .from = { .peer = r.net.node[1].addr[link],
					     .local = r.net.node[0].addr[0],
					     .encap = r.net.node[1].udp },
				   .data = r.buf };
	bool failed;

	r.cookie_len = ddps_sc_cookie_seal(&r.e->keys, &ck, r.cookie);
	raw_begin(&r, ck.own_tag);
	ddps_sc_put_chunk(&r.w, SC_COOKIE_ECHO, 0, r.cookie, r.cookie_len);
	in.len = (size_t)(r.w.p - r.buf);
	ddps_sc_crc_put(r.buf, in.len);
	r.n = 0;
	mem_fail(fail);
	ddps_sctp_input(r.e, &in, 1, r.net.now);
	failed = mem_failed();
	mem_fail(0);
	sn_flush(&r.net);
	return failed;
}

static const struct ddps_sctp_addr *get_second_sctp_forged(void)
{
	return &r.net.node[1].addr[1];
}

/* A peer that restarts has its INIT ACK. */
static void restarts(void)
{
	raw_up(&r);
	raw_init_chunk(&r, RAW_TAG + 1, 2000);
	cr_assert(raw_take_init_ack(&r));
	open_sctp_forged();
}

Test(sctp_forged, a_restart_adds_no_address, .description = "9260-5.2.2-2")
{
	struct ddps_sc_cookie good;

	restarts();
	good = ck;
	ck.addr[ck.naddr++] = *get_second_sctp_forged();
	echo_from_sctp_forged(0, 0);
	cr_expect_eq(r.restarted, 0);
	cr_expect_eq(r.e->st.restarts_refused, 1);
	ck = good;
	ck.addr[0] = good.source;
	ck.naddr = 1;
	ck.source = *get_second_sctp_forged();
	echo_from_sctp_forged(0, 0);
	cr_expect_eq(r.restarted, 0);
	cr_expect_eq(r.e->st.restarts_refused, 2);
	cr_expect_eq(r.n, 0);
	cr_expect_eq(r.a->npaths, 1);
	ck = good;
	echo_from_sctp_forged(0, 0);
	cr_expect_eq(r.restarted, 1);
	cr_expect(raw_any(&r, SC_COOKIE_ACK, NULL));
}

Test(sctp_forged, a_restart_has_both_tie_tags, .description = "9260-5.2.4-3")
{
	restarts();
	ck.tie_peer ^= 1;
	echo_from_sctp_forged(0, 0);
	ck.tie_peer ^= 1;
	ck.tie_own ^= 1;
	echo_from_sctp_forged(0, 0);
	ck.tie_own ^= 1;
	cr_expect_eq(r.restarted, 0);
	cr_expect_eq(r.n, 0);
	cr_expect_eq(r.e->st.restarts_refused, 0);
	echo_from_sctp_forged(0, 0);
	cr_expect_eq(r.restarted, 1);
}

Test(sctp_forged, a_duplicate_is_one_in_all, .description = "9260-5.2.4-3")
{
	raw_up(&r);
	open_sctp_forged();
	ck.own_tsn ^= 1;
	echo_from_sctp_forged(0, 0);
	ck.own_tsn ^= 1;
	ck.peer_tsn ^= 1;
	echo_from_sctp_forged(0, 0);
	ck.peer_tsn ^= 1;
	ck.addr[0] = *get_second_sctp_forged();
	ck.naddr = 1;
	echo_from_sctp_forged(1, 0); /* there is no path there */
	cr_expect_eq(r.n, 0);
	ck.naddr = 0;
	echo_from_sctp_forged(0, 0);
	cr_expect_eq(r.n, 1);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ACK);
	cr_expect_eq(r.accepted, 1);
	cr_expect_eq(r.restarted, 0);
}

/* ---- not forged, but seldom ---- */

Test(sctp_forged, both_opened_and_the_peer_took_its_time, .description = "9260-5.2.4-d1")
{
	struct ddps_sc_chunk c;

	raw_init(&r);
	raw_connect(&r);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	cr_expect_eq(r.tag, r.a->own_tag);
	raw_wait(&r, 61000);
	raw_echo(&r); /* our tag, but not the peer's: it is not known yet */
	cr_assert(raw_any(&r, SC_ERROR, &c));
	cr_expect_eq(c.val[1], SC_CAUSE_STALE);
	cr_expect_str_eq(raw_state(&r), "COOKIE-WAIT");
	cr_expect_eq(r.e->st.cookies_stale, 1);
}

Test(sctp_forged, how_stale_it_can_be_said_to_be, .description = "9260-5.1.5-5")
{
	static const struct {
		uint64_t us;
		uint32_t told;
	} row[] = { { 1, 1 },
		    { UINT32_MAX - 1ull, UINT32_MAX - 1 },
		    { UINT32_MAX, UINT32_MAX },
		    { UINT32_MAX + 1ull, UINT32_MAX },
		    { UINT32_MAX + 5ull, UINT32_MAX } };
	struct ddps_sc_chunk c;
	struct ddps_rbuf b;

	raw_init(&r);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	open_sctp_forged();
	for (unsigned i = 0; i < sizeof row / sizeof *row; i++) {
		r.net.now = ck.created + ck.life_ms * MS + row[i].us * 1000;
		raw_echo(&r);
		cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ERROR);
		b = ddps_rbuf_init(c.val, c.vlen);
		cr_expect_eq(ddps_rbuf_u32(&b), SC_CAUSE_STALE << 16 | 8);
		cr_expect_eq(ddps_rbuf_u32(&b), row[i].told, "%u", i);
	}
}

Test(sctp_forged, nobody_listens_any_more)
{
	raw_init(&r);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	ddps_sctp_unlisten(r.port);
	open_sctp_forged();
	ck.local = r.net.node[0].addr[1]; /* and the cookie comes elsewhere */
	echo_from_sctp_forged(0, 0);
	cr_expect_eq(r.e->st.cookies_bad, 1);
	cr_expect_eq(r.n, 0);
	ck.local = r.net.node[0].addr[0];
	echo_from_sctp_forged(0, 0);
	cr_expect_eq(r.e->st.cookies_bad, 1);
	cr_expect_eq(r.e->st.refused_full, 1);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_ABORT);
	cr_expect_eq(r.e->st.assocs, 0);
}

Test(sctp_forged, no_memory_to_tell_a_peer_that_it_ends, .description = "9260-5.2.4-6")
{
	uint32_t old, cum;

	raw_up(&r);
	old = r.tag;
	raw_init_chunk(&r, RAW_TAG + 1, 2000);
	cr_assert(raw_take_init_ack(&r));
	open_sctp_forged();
	cum = htobe32(r.a->own_tsn - 1);
	raw_chunk(&r, old, SC_SHUTDOWN, 0, &cum, sizeof cum);
	cr_assert_str_eq(raw_state(&r), "SHUTDOWN-ACK-SENT");
	cr_expect(echo_from_sctp_forged(0, 1));
	cr_expect(raw_any(&r, SC_SHUTDOWN_ACK, NULL));
	cr_expect_not(raw_any(&r, SC_ERROR, NULL));
	cr_expect_eq(r.e->st.no_memory, 1);
	echo_from_sctp_forged(0, 0);
	cr_expect(raw_any(&r, SC_SHUTDOWN_ACK, NULL));
	cr_expect(raw_any(&r, SC_ERROR, NULL));
}

static void asked_with_second(void)
{
	uint8_t params[32];
	struct ddps_wbuf w = ddps_wbuf_init(params, sizeof params);

	ddps_sc_put_addr(&w, get_second_sctp_forged());
	raw_begin(&r, 0);
	raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, params, (size_t)(w.p - params));
	raw_send(&r);
	r.own = RAW_TAG;
	cr_assert(raw_take_init_ack(&r));
	open_sctp_forged();
}

/* The cookie comes from the address that the INIT listed. */
Test(sctp_forged, no_memory_for_the_address_that_it_comes_from)
{
	unsigned refused = 0, n = 1;

	for (bool failed = true; failed; n++) {
		if (n > 1)
			fini();
		raw_init(&r);
		asked_with_second();
		failed = echo_from_sctp_forged(1, n);
		cr_expect(failed || r.accepted);
		cr_expect_eq(r.e->st.assocs, r.accepted, "allocation %u", n);
		cr_expect_eq(r.e->peers != NULL, r.accepted, "allocation %u: it counts", n);
		cr_expect_eq(raw_got(&r, 0, 0, NULL), r.accepted ? SC_COOKIE_ACK : SC_ABORT);
		if (r.accepted)
			cr_expect(ddps_sc_path_of(r.a, get_second_sctp_forged()), "allocation %u",
				  n);
		refused += !r.accepted;
	}
	cr_expect_geq(refused, 5); /* peer, association, heap, two paths */
}

Test(sctp_forged, no_memory_for_the_address_where_both_opened)
{
	raw_init(&r);
	raw_connect(&r);
	asked_with_second();
	cr_expect(echo_from_sctp_forged(1, 1));
	cr_expect_eq(r.ups, 0);
	cr_expect_eq(r.n, 0);
	cr_expect_str_eq(raw_state(&r), "COOKIE-WAIT");
	echo_from_sctp_forged(1, 0);
	cr_expect_eq(r.ups, 1);
	cr_expect_str_eq(raw_state(&r), "ESTABLISHED");
	cr_expect_eq(r.a->npaths, 2);
}

/* Both addresses are known, the user gave them. */
Test(sctp_forged, both_opened_and_know_all_addresses)
{
	struct ddps_sctp_param p = { .port = RAW_PORT, .streams = 10, .fixed_mtu = 1500 };

	raw_init(&r);
	cr_assert_eq(ddps_sctp_connect(r.e, &p, r.net.node[1].addr, 2, RAW_PEER, 9899, &raw_upcalls,
				       &r, r.net.now, &r.a),
		     0);
	sn_flush(&r.net);
	asked_with_second();
	echo_from_sctp_forged(1, 0);
	cr_expect_eq(r.ups, 1);
	cr_expect_eq(r.a->npaths, 2);
	cr_expect(r.a->path[0]->confirmed && r.a->path[1]->confirmed);
}
