/* SPDX-License-Identifier: BSD-2-Clause */
/* Fragments of IPv4 packets put together again. */
#include <criterion/criterion.h>
#include <string.h>
#include "ipoib_cm/iface/iface_in.h"
#include "ipoib_net_fixture.h"

struct whole {
	uint8_t data[65536];
	size_t len, ihl, mtu;
	unsigned n;
	bool last;
};

static void emit(void *arg, const void *packet, size_t len)
{
	struct whole *w = arg;
	const uint8_t *p = packet;
	size_t ihl = (size_t)(p[0] & 15) * 4;
	size_t off = (size_t)((p[6] & 0x1f) << 8 | p[7]) * 8;

	cr_assert_leq(len, w->mtu);
	cr_assert_eq((size_t)(p[2] << 8 | p[3]), len);
	cr_assert_eq(net_cksum(p, ihl, 0), 0);
	cr_assert_eq(off, w->len);
	cr_assert_not(w->last);
	w->last = !(p[6] & 0x20);
	cr_assert(w->last || (len - ihl) % 8 == 0);
	memcpy(w->data + off, p + ihl, len - ihl);
	w->len += len - ihl;
	if (w->n++)
		cr_expect(ihl == 20 || (p[20] == 1 && p[21] == 1 && p[22] == 1 && p[23] == 0x94));
}

static void check_ip_frag(size_t ihl, size_t len, uint32_t mtu)
{
	static struct whole w;
	static uint8_t p[65536];

	memset(&w, 0, sizeof(w));
	w.mtu = mtu;
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 11);
	memset(p, 0, 20);
	p[0] = (uint8_t)(0x40 | ihl / 4);
	p[2] = (uint8_t)(len >> 8);
	p[3] = (uint8_t)len;
	if (ihl == 28) /* record route (not copied), router alert (copied), end */
		memcpy(p + 20, (uint8_t[]){ 7, 3, 4, 0x94, 4, 0, 0, 0 }, 8);
	cr_assert_eq(ddps_ipoib_frag4(p, len, mtu, emit, &w), (int)w.n);
	cr_expect_eq(w.len, len - ihl);
	cr_expect(w.last);
	cr_expect_eq(memcmp(w.data, p + ihl, len - ihl), 0);
}

Test(ip_frag, comes_together_again, .description = "4755-7.2-1")
{
	for (size_t len = 2045; len < 2080; len++)
		check_ip_frag(20, len, 2044);
	check_ip_frag(20, 65535, 2044);
	check_ip_frag(20, 65535, 68);
	check_ip_frag(28, 3000, 1000);
	check_ip_frag(20, 100, 28);
}

Test(ip_frag, needs_room, .description = "4755-5-1")
{
	uint8_t p[100] = { 0x45, 0, 0, 100 };
	static struct whole w;

	cr_expect_eq(ddps_ipoib_frag4(p, 100, 27, emit, &w), DDPS_E_INVAL);
	cr_expect_eq(w.n, 0);
}

/* The first fragment's options, and what the others have of them. */
static uint8_t rest[8];

static void note_options(void *arg, const void *packet, size_t len)
{
	(void)len;
	if (++*(unsigned *)arg > 1)
		memcpy(rest, (const uint8_t *)packet + 20, sizeof(rest));
}

/* Options that cannot be are not ours to judge: from there on all stays as it was. */
Test(ip_frag, options_that_cannot_be_stay, .description = "4755-7.2-1")
{
	static const struct {
		uint8_t is[8], becomes[8];
	} row[] = {
		{ { 7, 0, 9, 9, 9, 9, 9, 9 }, { 7, 0, 9, 9, 9, 9, 9, 9 } }, /* no length */
		{ { 7, 1, 9, 9, 9, 9, 9, 9 }, { 7, 1, 9, 9, 9, 9, 9, 9 } }, /* less than its head */
		{ { 7, 9, 9, 9, 9, 9, 9, 9 }, { 7, 9, 9, 9, 9, 9, 9, 9 } }, /* beyond the header */
		{ { 7, 8, 9, 9, 9, 9, 9, 9 }, { 1, 1, 1, 1, 1, 1, 1, 1 } }, /* up to its end */
		{ { 7, 7, 9, 9, 9, 9, 9, 7 },
		  { 1, 1, 1, 1, 1, 1, 1, 7 } }, /* the last has no length */
		{ { 1, 1, 0, 7, 3, 9, 9, 9 },
		  { 1, 1, 0, 7, 3, 9, 9, 9 } }, /* the end comes before */
		{ { 0x94, 4, 5, 6, 7, 4, 9, 9 }, { 0x94, 4, 5, 6, 1, 1, 1, 1 } },
	};
	uint8_t p[128] = { 0x47, 0, 0, 128 };

	for (unsigned i = 0; i < sizeof(row) / sizeof(*row); i++) {
		unsigned n = 0;

		memcpy(p + 20, row[i].is, 8);
		cr_assert_eq(ddps_ipoib_frag4(p, 128, 88, note_options, &n), 2);
		cr_expect_arr_eq(rest, row[i].becomes, 8, "row %u", i);
	}
}

Test(ip_frag, an_mtu_beyond_any_packet_cuts_nothing, .description = "4755-7.2-1")
{
	static uint8_t p[65535] = { 0x45, 0, 0xff, 0xff };
	static struct whole w;

	w.mtu = 70000;
	cr_expect_eq(ddps_ipoib_frag4(p, 65528, 70000, emit, &w), 1);
	cr_expect_eq(w.len, 65508);
}
