/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers with more addresses than data is sent to: each of them is the peer's. */
#include "sctp_paths_fixture.h"
#include "unit/mem_fixture.h"

TestSuite(sctp_many_addrs, .fini = fini);

#define MOST 180u /* of IPv4, in 1500 octets */

/* The peer's @k-th address besides the source. */
static struct ddps_sctp_addr nth(unsigned k, bool six)
{
	struct ddps_sctp_addr a = { .family = 6, .ip = { 0x20, 1, 0xd, 0xb8 } };

	if (!six)
		return sn_v4(10, 7, (uint8_t)(k >> 8), (uint8_t)k);
	a.ip[14] = (uint8_t)(k >> 8);
	a.ip[15] = (uint8_t)k;
	return a;
}

static size_t make_sctp_many_addrs_list(uint8_t *params, size_t room, unsigned n, bool six)
{
	struct ddps_wbuf w = ddps_wbuf_init(params, room);

	for (unsigned k = 0; k < n; k++) {
		const struct ddps_sctp_addr a = nth(k, six);

		ddps_sc_put_addr(&w, &a);
	}
	cr_assert(!w.failed);
	return (size_t)(w.p - params);
}

/* The peer opens from port @from and lists @n; whether it was taken. */
static bool open_sctp_many_addrs_with(uint16_t from, unsigned n, bool six)
{
	uint8_t params[4000];
	size_t len = make_sctp_many_addrs_list(params, sizeof params, n, six);

	r.from = from;
	r.own = RAW_TAG;
	raw_begin(&r, 0);
	raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, params, len);
	raw_send(&r);
	if (!raw_take_init_ack(&r))
		return false;
	r.a = NULL;
	raw_echo(&r);
	return r.a;
}

/* What is in r.w arrives from the peer's @k-th address. */
static void from_nth(unsigned k)
{
	struct ddps_sctp_in in = { .data = r.buf, .len = (size_t)(r.w.p - r.buf) };

	ddps_sc_crc_put(r.buf, in.len);
	in.from.peer = nth(k, false);
	in.from.local = r.net.node[0].addr[0];
	in.from.encap = r.net.node[1].udp;
	r.n = 0;
	ddps_sctp_input(r.e, &in, 1, r.net.now);
	sn_flush(&r.net);
}

static void send_sctp_many_addrs_heartbeat(uint32_t tag)
{
	raw_begin(&r, tag);
	ddps_sc_put_chunk(&r.w, SC_HEARTBEAT, 0, "\0\1\0\10abcd", 8);
}

static unsigned sent_beyond_eight(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r.n; i++) {
		const struct ddps_sc_path *p = ddps_sc_path_of(r.a, &r.log[i].to.peer);

		n += p && p->id >= DDPS_SENT_PATHS;
	}
	return n;
}

Test(sctp_many_addrs, contact_09_all_that_an_init_lists_are_the_peers,
     .description = "9260-5.1.2-2 9260-5.4-1")
{
	struct ddps_sctp_addr a;

	raw_init(&r);
	cr_assert(open_sctp_many_addrs_with(0, MOST, false));
	cr_expect_eq(r.a->npaths, MOST + 1);
	cr_expect_eq(r.e->st.addrs_left, 0);
	for (unsigned k = 7; k < MOST; k += 43) {
		a = nth(k, false);
		send_sctp_many_addrs_heartbeat(r.tag);
		from_nth(k);
		cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_HEARTBEAT_ACK, "%u", k);
		cr_expect_eq(sent_to(&a, SC_HEARTBEAT_ACK, NULL), 1, "it goes back there");
	}
	raw_begin(&r, r.tag);
	raw_put_data(&r, RAW_TSN, 0, 0, 7, "from the ninth");
	from_nth(8);
	cr_expect_eq(r.messages, 1);
	for (unsigned i = 0; i < 20; i++) {
		raw_wait(&r, 1000);
		cr_assert_eq(sent_beyond_eight(), 0,
			     "whoever lists others' addresses has nothing sent there");
	}
}

Test(sctp_many_addrs, contact_09_all_that_an_init_ack_lists)
{
	uint8_t params[2000];
	struct ddps_wbuf w = ddps_wbuf_init(params, sizeof params);

	raw_init(&r);
	raw_connect(&r);
	r.tag = r.a->own_tag;
	r.own = RAW_TAG;
	ddps_sc_put_tlv(&w, SC_P_COOKIE, "cook", 4);
	w.p += make_sctp_many_addrs_list(w.p, (size_t)(w.end - w.p), 20, false);
	raw_begin(&r, r.tag);
	raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, params, (size_t)(w.p - params));
	r.buf[12] = SC_INIT_ACK;
	raw_send(&r);
	cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ECHO);
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_COOKIE_ACK, 0, NULL, 0);
	from_nth(19);
	cr_expect_eq(r.ups, 1);
	cr_expect_eq(r.a->npaths, 21);
}

/* A correct peer believes an ABORT with the tag that it sent. */
Test(sctp_many_addrs, contact_09_no_answer_has_a_tag_of_ours,
     .description = "9260-5.1.2-2 9260-8.4-7")
{
	raw_up(&r);
	send_sctp_many_addrs_heartbeat(r.tag);
	from_nth(3);
	cr_expect_eq(r.n, 0, "nobody listed it");
	cr_expect_eq(r.e->st.strange_addrs, 1);
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_SHUTDOWN_ACK, 0, NULL, 0);
	from_nth(3);
	cr_expect_eq(r.n, 0);
	cr_expect_eq(r.e->st.strange_addrs, 2);
	send_sctp_many_addrs_heartbeat(r.tag + 1);
	from_nth(3);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_ABORT, "this one is nobody's");
	r.from = RAW_PEER + 1;
	send_sctp_many_addrs_heartbeat(r.tag);
	from_nth(3);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_ABORT, "the tag is another association's");
	r.from = 0;
	cr_expect_str_eq(raw_state(&r), "ESTABLISHED");
	raw_chunk(&r, r.tag, SC_ABORT, 0, NULL, 0);
	send_sctp_many_addrs_heartbeat(r.tag);
	from_nth(3);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_ABORT, "when it has ended");
}

Test(sctp_many_addrs, contact_09_tags_are_found_among_many)
{
	uint32_t tag[100];

	raw_init(&r);
	for (uint16_t i = 0; i < 100; i++) {
		cr_assert(open_sctp_many_addrs_with((uint16_t)(1 + i), 0, false));
		tag[i] = r.tag;
	}
	for (uint16_t i = 0; i < 100; i++) {
		cr_assert(ddps_sc_has_tag(r.e, 0, RAW_PORT, (uint16_t)(1 + i), tag[i]), "%u", i);
		cr_assert_not(ddps_sc_has_tag(r.e, 0, RAW_PORT, (uint16_t)(2 + i), tag[i]));
		cr_assert_not(ddps_sc_has_tag(r.e, 1, RAW_PORT, (uint16_t)(1 + i), tag[i]));
		cr_assert_not(ddps_sc_has_tag(r.e, 0, RAW_PORT + 1, (uint16_t)(1 + i), tag[i]));
	}
}

/* One peer has its share of them, over all of its associations, and gives it back. */
Test(sctp_many_addrs, contact_09_addresses_of_a_peer_are_bounded)
{
	struct ddps_sctp_assoc *a;

	raw_init(&r);
	cr_expect_eq(r.e->c.max_more_addrs_per_addr, 1024);
	cr_expect_eq(r.e->c.max_more_addrs, 16384);
	r.e->c.max_more_addrs_per_addr = 30;
	cr_assert(open_sctp_many_addrs_with(1, 27, false));
	a = r.a;
	cr_expect_eq(a->npaths, 28);
	cr_assert(open_sctp_many_addrs_with(2, 27, false));
	cr_expect_eq(r.a->npaths, 8 + 10);
	cr_expect_eq(r.e->st.addrs_left, 10);
	cr_expect_eq(r.e->more, 30);
	send_sctp_many_addrs_heartbeat(r.tag);
	from_nth(26);
	cr_expect_eq(r.n, 0, "of one that was left out: silence");
	cr_expect_eq(r.e->st.strange_addrs, 1);
	r.e->c.max_more_addrs_per_addr = 1000;
	r.e->c.max_more_addrs = 31;
	cr_assert(open_sctp_many_addrs_with(3, 27, false));
	cr_expect_eq(r.a->npaths, 8 + 1);
	ddps_sctp_assoc_free(a, r.net.now);
	sn_flush(&r.net);
	cr_expect_eq(r.e->more, 11);
}

Test(sctp_many_addrs, contact_09_more_than_can_be_kept)
{
	raw_init(&r);
	cr_assert(open_sctp_many_addrs_with(0, 170, true)); /* of IPv6: what a cookie takes */
	cr_expect_eq(r.e->st.addrs_left, 170 - 2400 / 17);
	cr_assert(open_sctp_many_addrs_with(9, 400, false));
	cr_expect_eq(r.a->npaths, DDPS_SC_ADDRS_MAX);
	cr_expect_eq(r.e->st.addrs_left, 170 - 2400 / 17 + 400 - DDPS_SC_LISTED_MAX);
}

/* The same addresses, and all of them. */
Test(sctp_many_addrs, contact_09_a_restart_from_the_twelfth)
{
	uint8_t params[1000];
	struct ddps_wbuf w;
	size_t len;

	raw_init(&r);
	cr_assert(open_sctp_many_addrs_with(0, 20, false));
	len = make_sctp_many_addrs_list(params, sizeof params, 20, false);
	w = ddps_wbuf_init(params + len, sizeof params - len);
	ddps_sc_put_addr(&w, get_first_address());
	raw_begin(&r, 0);
	raw_put_init(&r, RAW_TAG + 1, 100000, 5, 5, RAW_TSN, params, (size_t)(w.p - params));
	from_nth(11);
	cr_assert(raw_take_init_ack(&r));
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_COOKIE_ECHO, 0, r.cookie, r.cookie_len);
	from_nth(11);
	cr_assert_eq(r.restarted, 1);
	cr_expect_lt(r.a->data_path->id, DDPS_SENT_PATHS);
	cr_expect(r.a->data_path->confirmed);
	cr_expect_eq(r.a->path[r.a->data_path->id], r.a->data_path);
	cr_expect_eq(r.a->data_path->peer.ip[3], 11);
	for (unsigned i = 0; i < r.a->npaths; i++)
		cr_expect_eq(r.a->path[i]->id, i);
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
}

Test(sctp_many_addrs, contact_09_a_restart_of_one_that_was_left_out)
{
	uint8_t params[1000];
	size_t len;

	raw_init(&r);
	r.e->c.max_more_addrs = 5;
	cr_assert(open_sctp_many_addrs_with(0, 20, false));
	cr_assert_eq(r.a->npaths, 13);
	len = make_sctp_many_addrs_list(params, sizeof params, 20, false);
	raw_begin(&r, 0);
	raw_put_init(&r, RAW_TAG + 1, 100000, 5, 5, RAW_TSN, params, len);
	raw_send(&r);
	cr_assert(raw_take_init_ack(&r), "none of them is new");
	raw_echo(&r);
	cr_expect_eq(r.restarted, 1);
}

Test(sctp_many_addrs, contact_09_without_memory_for_them)
{
	uint8_t params[1000];
	size_t len = make_sctp_many_addrs_list(params, sizeof params, 12, false);

	for (unsigned n = 1;; n++) {
		raw_init(&r);
		r.own = RAW_TAG;
		raw_begin(&r, 0);
		raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, params, len);
		raw_send(&r);
		cr_assert(raw_take_init_ack(&r));
		raw_begin(&r, r.tag);
		ddps_sc_put_chunk(&r.w, SC_COOKIE_ECHO, 0, r.cookie, r.cookie_len);
		mem_fail(n);
		raw_hand(&r);
		if (!mem_failed())
			break;
		mem_fail(0);
		if (r.a)
			ddps_sctp_assoc_free(r.a, r.net.now);
		sn_flush(&r.net);
		cr_expect_eq(r.e->more, 0, "%u", n);
		cr_expect_null(r.e->peers, "%u", n);
		raw_fini(&r);
	}
	mem_fail(0);
	cr_expect_eq(r.a->npaths, 13);
}

/* Of those that carry what is sent the last one gives its place up, and what went there goes to the other. */
Test(sctp_many_addrs, a_path_comes_to_the_front)
{
	for (unsigned by_last = 0; by_last < 2; by_last++) {
		const unsigned end = DDPS_SENT_PATHS - 1;
		struct ddps_sc_path *last, *p, *first;

		raw_init(&r);
		cr_assert(open_sctp_many_addrs_with(0, 20, false));
		first = r.a->path[0];
		last = r.a->path[end];
		p = r.a->path[DDPS_SENT_PATHS];
		r.a->data_path = r.a->primary = by_last ? last : first;
		last->confirmed = true;
		last->state = DDPS_SCTP_ACTIVE;
		last->hb_at = r.net.now;
		ddps_sc_path_front(last);
		cr_expect_eq(r.a->path[end], last, "it is one of them");
		ddps_sc_path_front(p);
		cr_expect(r.a->path[end] == p && p->id == end);
		cr_expect(r.a->path[DDPS_SENT_PATHS] == last && last->id == DDPS_SENT_PATHS);
		cr_expect_eq(r.a->data_path, by_last ? p : first);
		cr_expect_eq(r.a->primary, by_last ? p : first);
		cr_expect_not(last->confirmed);
		cr_expect_eq(last->state, DDPS_SCTP_UNCONFIRMED);
		cr_expect_eq(last->hb_at, DDPS_SC_NEVER);
		if (!by_last)
			raw_fini(&r);
	}
}
