/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups that the host listens to, read from what its stack says. */
#include "ipoib_cm/wire/wire.h"
#include <criterion/criterion.h>
#include <string.h>
#include <ddpsess/ipoib_if.h>

#define MOST 64

/* A port that remembers what is joined. */
struct fake {
	struct ddps_ipoib_port port;
	unsigned n;
	uint8_t member[MOST][DDPS_IPOIB_GID_LEN];
};

static int fake_ipoib_group_ud_send(struct ddps_ipoib_port *p, const struct ddps_ipoib_lladdr *to,
				    const struct ddps_ipoib_path *path, const void *frame,
				    size_t len)
{
	(void)p, (void)to, (void)path, (void)frame, (void)len;
	return 0;
}

static int find_fake_group(const struct fake *f, const uint8_t *mgid)
{
	for (unsigned i = 0; i < f->n; i++)
		if (!memcmp(f->member[i], mgid, DDPS_IPOIB_GID_LEN))
			return (int)i;
	return -1;
}

static int join_ipoib_group(struct ddps_ipoib_port *p, const uint8_t mgid[DDPS_IPOIB_GID_LEN])
{
	struct fake *f = (struct fake *)p;

	cr_assert_eq(find_fake_group(f, mgid), -1, "joined once");
	cr_assert_lt(f->n, MOST);
	memcpy(f->member[f->n++], mgid, DDPS_IPOIB_GID_LEN);
	return 0;
}

static void leave_ipoib_group(struct ddps_ipoib_port *p, const uint8_t mgid[DDPS_IPOIB_GID_LEN])
{
	struct fake *f = (struct fake *)p;
	int i = find_fake_group(f, mgid);

	cr_assert_neq(i, -1, "left what was joined");
	memcpy(f->member[i], f->member[--f->n], DDPS_IPOIB_GID_LEN);
}

static void deliver_to_ipoib_group(void *user, const void *packet, size_t len)
{
	(void)user, (void)packet, (void)len;
}

static struct fake fake;
static struct ddps_ipoib_if *f;

static void rise(void)
{
	uint8_t broadcast[DDPS_IPOIB_GID_LEN];

	cr_assert_eq(ddps_ipoib_mgid_broadcast(broadcast, 0xffff, 2), 0);
	cr_assert_eq(ddps_ipoib_if_start(f, 1), 0);
	ddps_ipoib_if_up()->joined(f, broadcast, 0, 2048, 1);
	cr_assert_eq(ddps_ipoib_if_state(f), DDPS_IPOIB_IF_UP);
}

static void init(void)
{
	static const struct ddps_ipoib_port_ops ops = { .struct_size = sizeof(ops),
							.ud_send = fake_ipoib_group_ud_send,
							.join = join_ipoib_group,
							.leave = leave_ipoib_group };
	const struct ddps_ipoib_if_calls calls = { .struct_size = sizeof(calls),
						   .deliver = deliver_to_ipoib_group };
	struct ddps_ipoib_if_config c;

	fake = (struct fake){ .port.ops = &ops };
	ddps_ipoib_if_config_init(&c);
	c.me.addr.qpn = 0x48;
	memcpy(c.me.addr.gid, (uint8_t[16]){ 0xfe, 0x80, [15] = 1 }, 16);
	c.me.pkey = 0xffff;
	c.me.rx_mtu = 2048;
	c.has_ip4 = true;
	memcpy(c.ip4, (uint8_t[4]){ 10, 0, 0, 1 }, 4);
	c.n_ip6 = 1;
	memcpy(c.ip6[0], (uint8_t[16]){ 0xfd, [15] = 1 }, 16);
	cr_assert_eq(ddps_ipoib_if_new(&f, &c, &fake.port, &calls), 0);
}

static void fini(void)
{
	ddps_ipoib_if_free(f);
}

#define GroupTest(name, ids) Test(ipoib_group, name, .init = init, .fini = fini, .description = ids)

static void igmp(const uint8_t *body, size_t len)
{
	uint8_t p[600] = { 0x46, 0,  0, 0, 0, 0,   0, 0, 1,  2,	   0,
			   0,	 10, 0, 0, 1, 224, 0, 0, 22, 0x94, 4 };

	p[2] = (uint8_t)((24 + len) >> 8);
	p[3] = (uint8_t)(24 + len);
	memcpy(p + 24, body, len);
	cr_assert_eq(ddps_ipoib_if_send(f, p, 24 + len, 2), 0);
}

static void mld(const uint8_t *body, size_t len)
{
	uint8_t p[600] = { 0x60, [6] = 0,     1,	 0xfe, 0x80, [24] = 0xff,
			   2,	 [39] = 0x16, [40] = 58, 0,    5,    2 };

	p[4] = (uint8_t)((8 + len) >> 8);
	p[5] = (uint8_t)(8 + len);
	memcpy(p + 48, body, len);
	cr_assert_eq(ddps_ipoib_if_send(f, p, 48 + len, 2), 0);
}

static bool in4(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	uint8_t mgid[DDPS_IPOIB_GID_LEN];

	cr_assert_eq(ddps_ipoib_mgid_ipv4(mgid, (uint8_t[4]){ a, b, c, d }, 0xffff, 2), 0);
	return find_fake_group(&fake, mgid) >= 0;
}

static bool in6(uint8_t scope, uint8_t last)
{
	uint8_t mgid[DDPS_IPOIB_GID_LEN];

	cr_assert_eq(ddps_ipoib_mgid_ipv6(mgid, (uint8_t[16]){ 0xff, scope, [15] = last }, 0xffff,
					  2),
		     0);
	return find_fake_group(&fake, mgid) >= 0;
}

GroupTest(older_reports_and_leaves, "4391-10-7 4391-10-10 4392-4.2.2-1")
{
	rise();
	igmp((uint8_t[]){ 0x12, 0, 0, 0, 239, 1, 1, 1 }, 8);
	igmp((uint8_t[]){ 0x16, 0, 0, 0, 239, 1, 1, 2 }, 8);
	igmp((uint8_t[]){ 0x16, 0, 0, 0, 239, 1, 1, 2 }, 8); /* said again */
	cr_expect(in4(239, 1, 1, 1) && in4(239, 1, 1, 2));
	igmp((uint8_t[]){ 0x17, 0, 0, 0, 239, 1, 1, 2 }, 8);
	cr_expect_not(in4(239, 1, 1, 2));
	mld((uint8_t[24]){ 131, [8] = 0xff, 5, [23] = 9 }, 24);
	cr_expect(in6(5, 9));
	mld((uint8_t[24]){ 132, [8] = 0xff, 5, [23] = 9 }, 24);
	cr_expect_not(in6(5, 9));
}

GroupTest(records_of_newer_reports, "4391-10-7")
{
	static const uint8_t report[] = {
		0x22, 0, 0, 0, 0,   0, 0, 5,			     /* five records */
		4,    0, 0, 0, 239, 2, 0, 1,			     /* to "exclude nothing" */
		2,    0, 0, 0, 239, 2, 0, 2,			     /* it is that */
		3,    1, 0, 1, 239, 2, 0, 3, 1, 2, 3, 4, 9, 9, 9, 9, /* a source */
		3,    0, 0, 0, 239, 2, 0, 4, /* to "include nothing": left */
		6,    0, 0, 1, 239, 2, 0, 5, 1, 2, 3, 4
	}; /* one source less */

	rise();
	igmp((uint8_t[]){ 0x16, 0, 0, 0, 239, 2, 0, 4 }, 8);
	igmp(report, sizeof(report));
	cr_expect(in4(239, 2, 0, 1) && in4(239, 2, 0, 2) && in4(239, 2, 0, 3));
	cr_expect_not(in4(239, 2, 0, 4));
	cr_expect_not(in4(239, 2, 0, 5));
	for (uint8_t n = 1; n < 6; n++) { /* more records than there are, or cut ones */
		uint8_t cut[8 + 8] = { 0x22, [7] = n, [8] = 4, [12] = 239, 3, 0, n };

		igmp(cut, 8 + n);
		cr_expect_not(in4(239, 3, 0, n));
	}
	mld((uint8_t[48]){ 143, [7] = 2, [8] = 4, [12] = 0xff, 2, [27] = 7, [28] = 4, [32] = 0xff,
			   5, [47] = 8 },
	    48);
	cr_expect(in6(2, 7) && in6(5, 8));
}

/* IPv6 groups of several scopes share one on the link; it is left with the last of them. */
GroupTest(scopes_share_a_group, "4392-4.2.2-1")
{
	rise();
	mld((uint8_t[24]){ 131, [8] = 0xff, 2, [23] = 9 }, 24);
	mld((uint8_t[24]){ 131, [8] = 0xff, 5, [23] = 9 }, 24);
	mld((uint8_t[24]){ 132, [8] = 0xff, 2, [23] = 9 }, 24);
	cr_expect(in6(5, 9));
	mld((uint8_t[24]){ 132, [8] = 0xff, 5, [23] = 9 }, 24);
	cr_expect_not(in6(5, 9));
}

/* The groups of every host are nobody's to leave, nor is the broadcast group. */
GroupTest(groups_of_every_host_stay, "4392-4.2.5-1")
{
	unsigned n;

	rise();
	n = fake.n;
	igmp((uint8_t[]){ 0x16, 0, 0, 0, 224, 0, 0, 1 }, 8);
	igmp((uint8_t[]){ 0x17, 0, 0, 0, 224, 0, 0, 1 }, 8);
	igmp((uint8_t[]){ 0x16, 0, 0, 0, 255, 255, 255, 255 }, 8);
	igmp((uint8_t[]){ 0x17, 0, 0, 0, 255, 255, 255, 255 }, 8);
	igmp((uint8_t[]){ 0x16, 0, 0, 0, 10, 1, 1, 1 }, 8); /* no group */
	cr_expect_eq(fake.n, n);
	cr_expect(in4(224, 0, 0, 1) && in4(255, 255, 255, 255));
}

/* What was said while it was down counts when it comes up; there is a bound. */
GroupTest(groups_outlive_the_link_and_are_bounded, "4391-10-7")
{
	for (uint8_t i = 0; i < 40; i++)
		igmp((uint8_t[]){ 0x16, 0, 0, 0, 239, 4, 4, i }, 8);
	cr_expect_eq(fake.n, 0);
	rise();
	cr_expect(in4(239, 4, 4, 0) && in4(239, 4, 4, 31));
	cr_expect_not(in4(239, 4, 4, 32));
	cr_expect_eq(ddps_ipoib_if_stats(f)->group_full, 8);
	ddps_ipoib_if_stop(f, 3);
	cr_expect_eq(fake.n, 0, "all are left");
	rise();
	cr_expect(in4(239, 4, 4, 0));
}

/* What is cut, of another type, or no report changes nothing. */
GroupTest(what_is_no_report, "4391-10-7")
{
	unsigned n;

	igmp((uint8_t[]){ 0x16, 0, 0, 0, 239, 5, 0, 9 }, 8);
	igmp((uint8_t[]){ 0x17, 0, 0, 0, 239, 5, 0, 9 }, 8); /* left before the link was there */
	rise();
	n = fake.n;
	cr_expect_not(in4(239, 5, 0, 9));
	igmp((uint8_t[]){ 0x17, 0, 0, 0, 239, 5, 0, 1 }, 8); /* that was not joined */
	igmp((uint8_t[]){ 0x11, 0, 0, 0, 239, 5, 0, 2 }, 8); /* a query */
	igmp((uint8_t[]){ 0x16, 0, 0, 0, 239, 5, 0 }, 7);
	igmp((uint8_t[]){ 0x22, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 9, 239, 5, 0, 3 }, 16);
	igmp((uint8_t[]){ 0x22, 0, 0, 0, 0, 0, 0, 1, 4, 1, 0, 0, 239, 5, 0, 4, 1, 2, 3 }, 19);
	mld((uint8_t[24]){ 130, [8] = 0xff, 2, [23] = 9 }, 24); /* a query */
	mld((uint8_t[24]){ 131, [8] = 0xff, 2, [23] = 9 }, 23);
	cr_expect_eq(fake.n, n);
	igmp((uint8_t[]){ 0x22, 0, 0, 0, 0, 0, 0, 1, 4, 1, 0, 0, 239, 5, 0, 4, 1, 2, 3, 4 }, 20);
	cr_expect(in4(239, 5, 0, 4), "and with all of its octets it is one");
	igmp((uint8_t[]){ 0x22, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 239, 5, 0, 4 }, 16);
	cr_expect_not(in4(239, 5, 0, 4), "it is in the state of no sources");
}

/* MLD comes behind one hop-by-hop header, whose length is believed as far as there are octets. */
GroupTest(what_is_behind_a_header_of_hops, "4391-10-7")
{
	uint8_t p[72] = { 0x60, [5] = 32, [6] = 0,  1,		[24] = 0xff, 2, [39] = 0x16,
			  58,	[42] = 5, [43] = 2, [48] = 131, [56] = 0xff, 2, [71] = 9 };

	rise();
	p[40] = 17;
	cr_assert_eq(ddps_ipoib_if_send(f, p, sizeof(p), 2), 0);
	p[40] = 58;
	p[41] = 4; /* to the end of the packet, and beyond */
	cr_assert_eq(ddps_ipoib_if_send(f, p, sizeof(p), 2), 0);
	cr_expect_not(in6(2, 9));
	p[41] = 0;
	cr_assert_eq(ddps_ipoib_if_send(f, p, sizeof(p), 2), 0);
	cr_expect(in6(2, 9));
}
