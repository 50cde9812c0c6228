/* SPDX-License-Identifier: BSD-2-Clause */
/* IPoIB: link-layer addresses, what is in front of packets, ARP, ND, and the messages of CM. */
#include "ipoib_cm/wire/cm_fields.c"
#include "ipoib_cm/wire/cm_mad.c"
#include "ipoib_cm/wire/encap_wire.c"
#include "ipoib_cm/wire/lladdr.c"
#include "ipoib_cm/wire/wire.h"
#include "proof.h"

static void use_ipoib_address(size_t len)
{
	uint8_t *p = make_unknown_octets(len), out[DDPS_IPOIB_LLADDR_LEN];
	struct ddps_ipoib_lladdr a;
	int err = ddps_ipoib_lladdr_decode(&a, p, len);

	/*@ assert (err == 0) == (len >= DDPS_IPOIB_LLADDR_LEN); */
	if (!err) {
		err = ddps_ipoib_lladdr_encode(out, &a);
		/*@ assert err == 0; */
	}
}

static void in_front(size_t len)
{
	uint8_t *p = make_unknown_octets(len);
	const uint8_t *packet;
	struct ddps_ipoib_arp arp;
	size_t packet_len;
	uint16_t type;

	if (!ddps_ipoib_encap_decode(&type, &packet, &packet_len, p, len))
		read_octets_of(packet, packet_len);
	ddps_ipoib_arp_decode(&arp, p, len);
}

void ipoib_addresses(void)
{
	for (size_t len = 0; len <= 64; len++) {
		/*@ slevel merge; */
		use_ipoib_address(len);
		in_front(len);
	}
	in_front(MOST);
}

/* One option of any length; behind it there is nothing, or another one. */
static void an_option(size_t len, unsigned units)
{
	uint8_t *p = make_unknown_octets(len);
	struct ddps_ipoib_lladdr a;

	if (len > 1)
		p[1] = (uint8_t)units;
	if (units && len > 8 * units + 1)
		p[8 * units + 1] = (uint8_t)((len - 8 * units) / 8);
	ddps_ipoib_nd_find(&a, DDPS_IPOIB_ND_SOURCE, p, len);
}

void ipoib_options(void)
{
	for (size_t len = 0; len <= 48; len++) {
		/*@ slevel merge; */
		for (unsigned units = 0; units <= 7; units++) {
			/*@ slevel merge; */
			an_option(len, units);
		}
		an_option(len, 255);
	}
}

/* @attr: which message it says that it is. */
static void a_mad(size_t len, unsigned attr)
{
	static struct ddps_cm_mad mad;
	uint8_t *p = make_unknown_octets(len), out[DDPS_CM_MAD_LEN];

	if (len >= 18) {
		p[16] = (uint8_t)(attr >> 8);
		p[17] = (uint8_t)attr;
	}
	if (!ddps_cm_mad_decode(&mad, p, len)) {
		/*@ assert len == DDPS_CM_MAD_LEN; */
		ddps_cm_mad_encode(out, &mad);
	}
}

void cm_messages(void)
{
	for (unsigned attr = 0x0f; attr <= 0x1b; attr++) {
		/*@ slevel merge; */
		a_mad(DDPS_CM_MAD_LEN, attr);
	}
	a_mad(DDPS_CM_MAD_LEN, 0xffff);
	for (size_t len = 0; len <= 260; len += len < 24 || len > 250 ? 1 : 25)
		if (len != DDPS_CM_MAD_LEN)
			a_mad(len, 0x10);
}
