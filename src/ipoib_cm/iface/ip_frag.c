/* SPDX-License-Identifier: BSD-2-Clause */
/* Fragmentation of IPv4 packets that exceed the MTU of their way (RFC 791 3.2). */
#include <string.h>
#include "common/bytes.h"
#include "ipoib_cm/iface/iface_in.h"

#define HDR	  20
#define AT_LEN	  2
#define AT_OFFSET 6
#define AT_CKSUM  10
#define MORE	  0x2000u
#define OFFSET	  0x1fffu
#define UNIT	  8
#define OPT_END	  0
#define OPT_NOP	  1
#define OPT_COPY  0x80

static void put_ip_u16(uint8_t *at, size_t v)
{
	struct ddps_wbuf w = ddps_wbuf_init(at, 2);

	ddps_wbuf_u16(&w, (uint16_t)v);
}

static uint16_t get_ip_u16(const uint8_t *at)
{
	struct ddps_rbuf r = ddps_rbuf_init(at, 2);

	return ddps_rbuf_u16(&r);
}

/* Options that are only for the first fragment give way to "no operation". */
static void blank_options(uint8_t *hdr, size_t ihl)
{
	size_t at = HDR;

	while (at < ihl && hdr[at] != OPT_END) {
		size_t len = hdr[at] == OPT_NOP ? 1 : at + 1 < ihl ? hdr[at + 1] : 0;

		if (!len || len > ihl - at || (len == 1 && hdr[at] != OPT_NOP))
			return; /* not ours to judge; the receiver will */
		if (!(hdr[at] & OPT_COPY))
			memset(hdr + at, OPT_NOP, len);
		at += len;
	}
}

int ddps_ipoib_frag4(const uint8_t *packet, size_t len, uint32_t mtu, ddps_ipoib_frag_fn *emit,
		     void *arg)
{
	size_t ihl = (size_t)(packet[0] & 15) * 4, payload = len - ihl, room, done = 0;
	uint16_t field = get_ip_u16(packet + AT_OFFSET);
	uint8_t frag[UINT16_MAX];
	int n = 0;

	if (mtu < ihl + UNIT)
		return DDPS_E_INVAL;
	room = (mtu < sizeof(frag) ? mtu : sizeof(frag)) - ihl;
	room -= room % UNIT;
	memcpy(frag, packet, ihl);
	while (done < payload) {
		size_t size = payload - done < room ? payload - done : room;
		bool last = done + size == payload;

		put_ip_u16(frag + AT_LEN, ihl + size);
		put_ip_u16(frag + AT_OFFSET, (field & ~OFFSET) | (last ? 0 : MORE) |
						     ((field & OFFSET) + done / UNIT));
		put_ip_u16(frag + AT_CKSUM, 0);
		put_ip_u16(frag + AT_CKSUM, ddps_ipoib_cksum(frag, ihl, 0));
		memcpy(frag + ihl, packet + ihl + done, size);
		emit(arg, frag, ihl + size);
		blank_options(frag, ihl);
		done += size;
		n++;
	}
	return n;
}
