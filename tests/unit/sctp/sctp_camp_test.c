/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses that a peer lists and that are another host's (RFC 5062), and those that a restart leaves out. */
#include "sctp_paths_fixture.h"

TestSuite(sctp_camp, .fini = fini);

#define OTHER_TAG 0x66666666u
#define OTHER_TSN 7000u
#define OTHER_UDP 5555

/* What is in r.w arrives from @addr and UDP port @udp. */
static void from(const struct ddps_sctp_addr *addr, uint16_t udp)
{
	struct ddps_sctp_in in = {
		.from = { .peer = *addr, .local = r.net.node[0].addr[0], .encap = udp },
		.data = r.buf,
		.len = (size_t)(r.w.p - r.buf)
	};

	ddps_sc_crc_put(r.buf, in.len);
	r.n = 0;
	ddps_sctp_input(r.e, &in, 1, r.net.now);
	sn_flush(&r.net);
}

/* An INIT that lists @n addresses. */
static void init_with(uint32_t tag, const struct ddps_sctp_addr *addr, uint16_t udp,
		      const struct ddps_sctp_addr *listed, unsigned n)
{
	uint8_t params[400];
	struct ddps_wbuf w = ddps_wbuf_init(params, sizeof params);

	while (n--)
		ddps_sc_put_addr(&w, &listed[n]);
	cr_assert(!w.failed);
	raw_begin(&r, 0);
	raw_put_init(&r, tag, 100000, 5, 5, OTHER_TSN, params, (size_t)(w.p - params));
	from(addr, udp);
}

static void init_from(const struct ddps_sctp_addr *addr, uint16_t udp,
		      const struct ddps_sctp_addr *listed, unsigned n)
{
	init_with(OTHER_TAG, addr, udp, listed, n);
}

static void echo_from_sctp_camp(const struct ddps_sctp_addr *addr, uint16_t udp)
{
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_COOKIE_ECHO, 0, r.cookie, r.cookie_len);
	from(addr, udp);
}

/* The first address has an association and has listed the second, which has not answered. */
static struct ddps_sctp_assoc *camp(void)
{
	invite();
	raw_echo(&r);
	cr_assert_eq(r.accepted, 1);
	cr_assert_eq(r.a->npaths, 2);
	cr_assert_not(r.a->path[1]->confirmed);
	return r.a;
}

static struct ddps_sc_path *path_at(const struct ddps_sctp_addr *addr)
{
	return ddps_sc_find(r.e, 0, RAW_PORT, RAW_PEER, addr);
}

/* As it must be, whatever was dropped. */
static void check_sctp_camp(const struct ddps_sctp_assoc *a)
{
	for (unsigned i = 0; i < a->npaths; i++) {
		cr_expect_eq(a->path[i]->id, i);
		cr_expect_eq(path_at(&a->path[i]->peer), a->path[i]);
		if (i < DDPS_SENT_PATHS)
			cr_expect_eq(a->tx.path[a->path[i]->tx.id], &a->path[i]->tx);
	}
	cr_expect_eq(ddps_sc_path_of(a, &a->data_path->peer), a->data_path);
	cr_expect_eq(ddps_sc_path_of(a, &a->primary->peer), a->primary);
	cr_expect(ddps_sc_has_tag(r.e, 0, RAW_PORT, RAW_PEER, a->own_tag));
}

Test(sctp_camp, contact_11_who_shakes_hands_has_the_address)
{
	struct ddps_sctp_assoc *camper = camp();
	uint32_t tag = r.tag;

	init_from(get_second_address(), OTHER_UDP, NULL, 0);
	cr_assert(raw_take_init_ack(&r), "it is not refused");
	cr_expect_eq(raw_got_tag(&r, 0), OTHER_TAG);
	cr_expect_eq(camper->npaths, 2, "nothing changes before the cookie is back");
	echo_from_sctp_camp(get_second_address(), OTHER_UDP);
	cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ACK);
	cr_assert_eq(r.accepted, 2);
	cr_assert_neq(r.a, camper);
	cr_expect_eq(path_at(get_second_address())->a, r.a);
	cr_expect_eq(path_at(get_first_address())->a, camper);
	cr_expect_eq(camper->npaths, 1);
	cr_expect_eq(r.e->st.addrs_taken, 1);
	check_sctp_camp(camper);
	check_sctp_camp(r.a);
	raw_begin(&r, r.tag);
	raw_put_data(&r, OTHER_TSN, 0, 0, 7, "mine");
	from(get_second_address(), OTHER_UDP);
	cr_expect_eq(r.messages, 1);
	r.tag = tag;
	raw_data(&r, RAW_TSN, 0, 0, 3, "the camper's");
	cr_expect_eq(r.messages, 2, "who listed it goes on");
	cr_expect_eq(r.gone, 0);
	cr_expect_eq(r.restarted, 0);
}

/* The same UDP port, or none: it looks like a restart, and is none. */
Test(sctp_camp, contact_11_it_restarts_nothing_of_the_other)
{
	struct ddps_sctp_assoc *camper = camp();

	init_from(get_second_address(), r.net.node[1].udp, NULL, 0);
	cr_assert(raw_take_init_ack(&r));
	echo_from_sctp_camp(get_second_address(), r.net.node[1].udp);
	cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ACK);
	cr_expect_eq(r.accepted, 2);
	cr_expect_eq(r.restarted, 0);
	cr_expect_eq(camper->npaths, 1);
}

/* It comes from an address that nobody has listed, and the other one that it has is camped on. */
Test(sctp_camp, contact_11_nor_by_an_address_that_it_lists)
{
	struct ddps_sctp_addr third = sn_v4(10, 9, 0, 1);
	struct ddps_sctp_assoc *camper = camp();

	init_from(&third, OTHER_UDP, get_second_address(), 1);
	cr_assert(raw_take_init_ack(&r));
	echo_from_sctp_camp(&third, OTHER_UDP);
	cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ACK);
	cr_assert_eq(r.accepted, 2);
	cr_expect_eq(path_at(&third)->a, r.a);
	cr_expect_eq(path_at(get_second_address())->a, camper,
		     "neither has shown that it is its own");
	check_sctp_camp(r.a);
}

Test(sctp_camp, contact_11_an_address_that_has_answered_stays)
{
	open_both_paths();
	init_from(get_second_address(), OTHER_UDP, NULL, 0);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_ABORT);
	cr_expect_eq(r.e->st.restarts_refused, 1);
	cr_expect_eq(r.a->npaths, 2);
}

/* Who lists an address that has answered is the peer itself. */
Test(sctp_camp, contact_11_a_restart_from_the_address_that_has_not_answered)
{
	struct ddps_sctp_assoc *a = camp();

	init_from(get_second_address(), r.net.node[1].udp, get_first_address(), 1);
	cr_assert(raw_take_init_ack(&r));
	echo_from_sctp_camp(get_second_address(), r.net.node[1].udp);
	cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ACK);
	cr_expect_eq(r.accepted, 1);
	cr_expect_eq(r.restarted, 1);
	cr_expect_eq(a->npaths, 2);
	check_sctp_camp(a);
}

/* From the port that is listened at, too: the user says whose the address is. */
Test(sctp_camp, contact_11_it_can_be_called)
{
	struct ddps_sctp_param param = { .port = RAW_PORT, .streams = 10 };
	struct ddps_sctp_assoc *camper = camp(), *ours;

	r.n = 0;
	cr_expect_eq(ddps_sctp_connect(r.e, &param, get_first_address(), 1, RAW_PEER, OTHER_UDP,
				       &sn_deaf, &r, r.net.now, &ours),
		     DDPS_E_BUSY);
	cr_assert_eq(ddps_sctp_connect(r.e, &param, get_second_address(), 1, RAW_PEER, OTHER_UDP,
				       &sn_deaf, &r, r.net.now, &ours),
		     0);
	sn_flush(&r.net);
	cr_expect_eq(sent_to(get_second_address(), SC_INIT, NULL), 1);
	cr_expect_eq(camper->npaths, 1);
	check_sctp_camp(camper);
	check_sctp_camp(ours);
	ddps_sctp_assoc_free(ours, r.net.now);
}

/* Data is under way on a path that takes another place in the list, and beyond eight there are more. */
Test(sctp_camp, contact_11_what_is_under_way_stays)
{
	struct ddps_sctp_addr listed[12];
	struct ddps_sctp_assoc *camper;
	struct ddps_sc_path *p;

	raw_init(&r);
	for (unsigned i = 0; i < 12; i++)
		listed[i] = sn_v4(10, 9, 0, (uint8_t)(i + 1));
	init_from(get_first_address(), r.net.node[1].udp, listed, 12);
	cr_assert(raw_take_init_ack(&r));
	raw_echo(&r);
	camper = r.a;
	cr_assert_eq(camper->npaths, 13);
	cr_assert_eq(r.e->more, 5);
	p = camper->path[7];
	p->confirmed = true;
	p->state = DDPS_SCTP_ACTIVE;
	cr_assert_eq(ddps_sctp_set_primary(camper, &p->peer, r.net.now), 0);
	cr_assert_eq(camper->data_path, p);
	cr_assert_eq(raw_user_send(&r, 0, 0, "under way"), 0);
	cr_assert_eq(p->tx.nflight, 1);
	for (unsigned n = 13; n > 2; n--) {
		struct ddps_sctp_addr v =
			camper->path[1]->confirmed ? camper->path[2]->peer : camper->path[1]->peer;

		init_from(&v, OTHER_UDP, NULL, 0);
		cr_assert(raw_take_init_ack(&r));
		echo_from_sctp_camp(&v, OTHER_UDP);
		cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ACK);
		cr_assert_eq(camper->npaths, n - 1);
		cr_assert_eq(r.e->more, n - 1 > 8 ? n - 1 - 8 : 0);
		check_sctp_camp(camper);
	}
	cr_assert_eq(p->tx.nflight, 1);
	p->errors = 1;
	raw_begin(&r, camper->own_tag);
	{
		uint32_t val[3] = { htobe32(camper->own_tsn), htobe32(100000), 0 };

		ddps_sc_put_chunk(&r.w, SC_SACK, 0, val, sizeof val);
	}
	raw_send(&r);
	cr_expect_eq(p->tx.nflight, 0);
	cr_expect_eq(p->errors, 0, "it is that path that has answered");
	cr_expect_eq(camper->path[0]->id, 0);
}

/* Answers that wait to be sent: those of a path go with it, the others stay as they were, in their order. */
Test(sctp_camp, what_waits_to_be_sent_goes_with_its_path)
{
	static const size_t len[] = { 8,  DDPS_SC_BLOB_BIG,    12, DDPS_SC_BLOB_BIG + 4,
				      16, DDPS_SC_BLOB_BIG + 8 };
	struct ddps_sctp_assoc *camper = camp();
	const size_t stays[] = { 8, 12, 16 };
	const struct ddps_sc_blob *b;
	unsigned n = 0;

	for (unsigned i = 0; i < sizeof len / sizeof *len; i++)
		cr_assert(ddps_sc_blob(camper, camper->path[i & 1], len[i]));
	cr_assert(camper->nblobs == 6 && camper->nbig == 2);
	ddps_sc_path_drop(camper->path[1]);
	cr_expect(camper->nblobs == 3 && camper->nbig == 0, "%u, %u", camper->nblobs, camper->nbig);
	STAILQ_FOREACH(b, &camper->blobs, link) {
		cr_assert_lt(n, 3);
		cr_expect_eq(b->path, camper->path[0]);
		cr_expect_eq(b->len, stays[n++]);
	}
	cr_expect_eq(n, 3);
	cr_expect(ddps_sc_blob(camper, camper->path[0], 4));
	cr_expect_eq(camper->nblobs, 4);
	check_sctp_camp(camper);
	ddps_sc_blobs_free(&camper->blobs);
	camper->nblobs = 0;
}

/* ---- restarts ---- */

static void restart_from(const struct ddps_sctp_addr *addr)
{
	init_from(addr, r.net.node[1].udp, NULL, 0);
	cr_assert(raw_take_init_ack(&r));
	echo_from_sctp_camp(addr, r.net.node[1].udp);
	cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ACK);
	cr_assert_eq(r.restarted, 1);
	r.own = OTHER_TAG;
}

static void has_only(const struct ddps_sctp_addr *is, const struct ddps_sctp_addr *was)
{
	cr_assert_eq(r.a->npaths, 1);
	cr_expect(is_same_paths_address(&r.a->path[0]->peer, is));
	cr_expect_null(path_at(was));
	check_sctp_camp(r.a);
	for (unsigned i = 0; i < 60; i++) {
		raw_wait(&r, 1000);
		for (unsigned k = 0; k < r.n; k++)
			cr_assert_not(is_same_paths_address(&r.log[k].to.peer, was),
				      "it is no address of the peer");
		r.a->errors = r.a->path[0]->errors = 0; /* the test answers nothing */
	}
}

Test(sctp_camp, contact_10_a_restart_drops_what_it_does_not_list)
{
	open_both_paths();
	restart_from(get_first_address());
	has_only(get_first_address(), get_second_address());
}

Test(sctp_camp, contact_10_also_the_first_address)
{
	open_both_paths();
	restart_from(get_second_address());
	has_only(get_second_address(), get_first_address());
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	ddps_sctp_assoc_free(r.a, r.net.now);
	sn_flush(&r.net);
	cr_expect_null(r.e->peers, "what was counted is given back");
	cr_expect_eq(r.e->npaths, 0);
	cr_expect_eq(r.e->st.assocs, 0);
}

Test(sctp_camp, contact_10_it_keeps_what_it_lists)
{
	open_both_paths();
	init_from(get_first_address(), r.net.node[1].udp, get_second_address(), 1);
	cr_assert(raw_take_init_ack(&r));
	raw_echo(&r);
	cr_expect_eq(r.restarted, 1);
	cr_expect_eq(r.a->npaths, 2);
	check_sctp_camp(r.a);
}

/* Of more addresses than there was room for, the last restarts, and lists @n of the others. */
static void restart_of_one_left_out(unsigned n)
{
	struct ddps_sctp_addr listed[12], last;

	raw_init(&r);
	r.e->c.max_more_addrs = 2;
	for (unsigned i = 0; i < 12; i++)
		listed[i] = sn_v4(10, 9, 0, (uint8_t)(i + 1));
	last = listed[11];
	listed[11] = listed[0];
	listed[0] = last; /* they are put from the end */
	init_with(RAW_TAG, get_first_address(), r.net.node[1].udp, listed, 12);
	cr_assert(raw_take_init_ack(&r));
	raw_echo(&r);
	cr_assert_eq(r.a->npaths, 10);
	cr_assert_null(path_at(&last));
	listed[0] = *get_first_address();
	init_from(&last, r.net.node[1].udp, listed, n);
	cr_assert(raw_take_init_ack(&r));
	echo_from_sctp_camp(&last, r.net.node[1].udp);
}

Test(sctp_camp, contact_10_a_restart_from_an_address_that_was_left_out)
{
	restart_of_one_left_out(1);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ACK);
	cr_expect_eq(r.restarted, 1);
	cr_expect_eq(r.a->npaths, 2);
	cr_expect_eq(r.e->more, 0);
	check_sctp_camp(r.a);
}

Test(sctp_camp, contact_10_there_is_no_room_for_it_yet)
{
	restart_of_one_left_out(12);
	cr_expect_eq(r.restarted, 0);
	cr_expect_eq(r.gone, 1);
	cr_expect_eq(r.why.code, DDPS_E_NOMEM);
	cr_expect_eq(r.e->more, 0);
	cr_expect_null(r.e->peers);
}

/* Paths that go and come in any order: no two of them are one to what is sent. */
Test(sctp_camp, contact_10_each_path_has_a_number_of_its_own)
{
	unsigned made = 0;

	raw_up(&r);
	for (unsigned i = 0; i < 400; i++) {
		struct ddps_sctp_addr addr = sn_v4(10, 9, made >> 8, made & 255);

		if (r.a->npaths > 1 && sn_chance(&r.net, i < 200 ? 0.3 : 0.6)) {
			ddps_sc_path_drop(r.a->path[sn_below(&r.net, r.a->npaths)]);
		} else if (r.a->npaths < DDPS_SENT_PATHS + 4) {
			made++;
			cr_assert(ddps_sc_path_add(r.a, &addr, NULL, 9899));
		}
		check_sctp_camp(r.a);
	}
	cr_expect_gt(made, DDPS_SENT_PATHS + 4);
}
