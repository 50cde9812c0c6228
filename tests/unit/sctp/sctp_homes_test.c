/* SPDX-License-Identifier: BSD-2-Clause */
/* Which address of ours a packet comes from, when the peer has several. */
#include "sctp_raw_fixture.h"

static struct raw r;
static unsigned asked; /* times that the config's source was */

static const struct ddps_sctp_addr second = { .family = 4, .ip = { 10, 9, 9, 9 } };
static const struct ddps_sctp_addr other_ip = { .family = 6,
						.ip = { 0x20, 1, 0xd, 0xb8, [15] = 9 } };

static void fini(void)
{
	raw_fini(&r);
}

/* An INIT that lists both, and the set-up behind it. */
static void bring_sctp_homes_up(void)
{
	uint8_t params[64];
	struct ddps_wbuf w = ddps_wbuf_init(params, sizeof params);

	ddps_sc_put_addr(&w, &second);
	ddps_sc_put_addr(&w, &other_ip);
	raw_begin(&r, 0);
	raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, params, (size_t)(w.p - params));
	raw_send(&r);
	cr_assert(raw_take_init_ack(&r));
	raw_echo(&r);
	cr_assert_eq(r.accepted, 1);
}

static const struct raw_packet *find_packet_to(const struct ddps_sctp_addr *peer)
{
	for (unsigned i = 0; i < r.n; i++)
		if (!memcmp(r.log[i].to.peer.ip, peer->ip, sizeof peer->ip))
			return &r.log[i];
	return NULL;
}

/* The peer knows one address: what came from another one it would answer by an ABORT. */
Test(sctp_homes, with_one_address_all_comes_from_that, .fini = fini, .description = "9260-5.1.2-3")
{
	struct ddps_sctp_addr own;

	raw_init(&r);
	own = r.net.node[0].addr[0];
	bring_sctp_homes_up();
	raw_wait(&r, 5000);
	cr_assert_not_null(find_packet_to(&second), "a heartbeat");
	cr_expect_eq(memcmp(&find_packet_to(&second)->to.local, &own, sizeof own), 0);
	cr_expect_null(find_packet_to(&other_ip), "it cannot come from there");
}

static unsigned last_one(void *user, const struct ddps_sctp_addr *peer,
			 const struct ddps_sctp_addr *local, unsigned n)
{
	(void)user;
	(void)local;
	asked++;
	cr_expect_eq(peer->family, 4);
	return n - 1;
}

Test(sctp_homes, with_several_the_user_says_which, .fini = fini)
{
	const struct ddps_sctp_addr mine = { .family = 4, .ip = { 10, 7, 7, 7 } };

	raw_init(&r);
	r.e->c.source = last_one;
	r.port->param.nlocal = 2;
	r.port->param.local[0] = r.net.node[0].addr[0];
	r.port->param.local[1] = mine;
	bring_sctp_homes_up();
	raw_wait(&r, 5000);
	cr_expect_eq(asked, 1);
	cr_assert_not_null(find_packet_to(&second));
	cr_expect_eq(memcmp(&find_packet_to(&second)->to.local, &mine, sizeof mine), 0);
	cr_expect_null(find_packet_to(&other_ip), "there is no address of ours for it");
}

Test(sctp_homes, an_address_without_one_of_its_family_is_refused)
{
	struct ddps_sctp_param p = { .nlocal = 1,
				     .local = { { .family = 4, .ip = { 10, 7, 7, 7 } } } };
	struct ddps_sctp_assoc *a;

	raw_init(&r);
	cr_expect_eq(ddps_sctp_connect(r.e, &p, &other_ip, 1, 7, 0, &raw_upcalls, &r, 0, &a),
		     DDPS_E_INVAL);
	cr_expect_eq(ddps_sctp_connect(r.e, &p, &second, 1, 7, 0, &raw_upcalls, &r, 0, &a), 0);
	ddps_sctp_assoc_free(a, 0);
	raw_fini(&r);
}

/* What sending needed is given back when nothing was sent for long. */
Test(sctp_homes, an_idle_association_is_small, .fini = fini)
{
	raw_up(&r);
	for (unsigned i = 0; i < 100; i++)
		cr_assert_eq(raw_user_send(&r, 1, DDPS_SCTP_UNORDERED, "octets"), 0);
	raw_wait(&r, 10);
	cr_assert_not_null(r.a->tx.ring);
	raw_sack(&r, r.tsn + 99, 100000);
	cr_expect_not_null(r.a->tx.ring, "it may be sent more");
	raw_wait(&r, 60000);
	cr_expect_null(r.a->tx.ring);
	cr_assert_eq(raw_user_send(&r, 1, DDPS_SCTP_UNORDERED, "more"), 0);
	cr_expect(raw_any(&r, SC_DATA, NULL));
}

/* A few that are outstanding need little, and that is kept. */
Test(sctp_homes, a_small_ring_is_kept, .fini = fini)
{
	const void *ring = NULL;

	raw_up(&r);
	for (uint32_t i = 0; i < 3; i++) {
		cr_assert_eq(raw_user_send(&r, 1, DDPS_SCTP_UNORDERED, "octets"), 0);
		raw_wait(&r, 10);
		cr_assert_not_null(r.a->tx.ring);
		cr_expect(!i || r.a->tx.ring == ring);
		ring = r.a->tx.ring;
		raw_sack(&r, r.tsn + i, 100000);
		cr_expect_eq(r.a->tx.ring, ring);
		cr_expect_eq(r.e->spares.n, 0);
		cr_expect_eq(r.acked, i + 1);
	}
	raw_wait(&r, 60000);
	cr_expect_null(r.a->tx.ring, "not for ever");
	cr_expect_eq(r.e->spares.n, 1);
	cr_assert_eq(raw_user_send(&r, 1, DDPS_SCTP_UNORDERED, "octets"), 0);
	raw_wait(&r, 10);
	cr_expect_eq(r.a->tx.ring, ring);
}

/* A chunk of 1300 octets over IPv6, which has to be sent again when the path takes 1280, and the link
 * @link: its packet. */
static const struct raw_packet *narrowed(uint16_t link)
{
	const struct ddps_sctp_addr v6[2] = {
		{ .family = 6, .ip = { 0x20, 1, 0xd, 0xb8, [15] = 1 } },
		{ .family = 6, .ip = { 0x20, 1, 0xd, 0xb8, [15] = 2 } }
	};
	struct ddps_sc_chunk c;
	char text[1301];
	unsigned k = 0;

	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = 0;
	raw_init(&r);
	for (unsigned i = 0; i < 2; i++)
		r.net.node[i].addr[0] = v6[i];
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	raw_echo(&r);
	cr_assert_eq(raw_user_send(&r, 1, DDPS_SCTP_UNORDERED, text), 0);
	cr_assert_eq(raw_got(&r, r.n - 1, 0, NULL), SC_DATA);
	cr_expect_lt(r.log[r.n - 1].len, 1500 - 48, "as it is");
	r.a->path[0]->tx.pmtu.size = 1280;
	r.a->path[0]->tx.pmtu.lim.max = link;
	ddps_sent_mtu_changed(&r.a->tx, &r.a->path[0]->tx, DDPS_PMTU_SIZE);
	raw_wait(&r, 3000);
	while (k < r.n && !ddps_sc_contains(r.log[k].data, r.log[k].len, SC_DATA, &c))
		k++;
	cr_assert_lt(k, r.n, "sent again");
	cr_expect(ddps_sc_crc_ok(r.log[k].data, r.log[k].len));
	return &r.log[k];
}

/* The path of an IPv6 peer takes less than it did: the chunk is cut already, and no router will
 * fragment the packet.  Beyond what the link takes our own system does. */
Test(sctp_homes, what_is_too_large_for_ipv6_is_made_too_large_for_the_link, .fini = fini,
     .description = "9260-6.9-5")
{
	const struct raw_packet *p = narrowed(1500);
	unsigned k = (unsigned)(p - r.log);

	cr_assert_eq(raw_got(&r, k, 0, NULL), SC_PAD,
		     "Linux acknowledges no DATA that PAD follows");
	cr_expect_eq(raw_got(&r, k, 1, NULL), SC_DATA);
	cr_expect_eq(raw_got(&r, k, 2, NULL), -1);
	cr_expect_gt(p->len, 1500 - 48);
	cr_expect_lt(p->len, 1500 - 48 + 16);
}

/* Where it is larger than the link takes anyway, or no packet could be. */
Test(sctp_homes, what_needs_no_pad_has_none, .fini = fini, .description = "9260-6.9-5")
{
	const struct raw_packet *p = narrowed(1340);

	cr_expect_eq(raw_got(&r, (unsigned)(p - r.log), 0, NULL), SC_DATA);
	cr_expect_eq(p->len, 12 + 16 + 1300);
	raw_fini(&r);
	p = narrowed(61000);
	cr_expect_eq(raw_got(&r, (unsigned)(p - r.log), 0, NULL), SC_DATA);
	cr_expect_eq(p->len, 12 + 16 + 1300);
}
