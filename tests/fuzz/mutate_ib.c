/* SPDX-License-Identifier: BSD-2-Clause */
/* Of mutate.h: CM messages, and packets that carry them. */
#include "ipoib_cm/ib/pkt.h"
#include "ipoib_cm/ib/node.h"
#include "mutate.h"
#include "support/icrc.h"
#include <ddpsess/ib_cm_mad.h>
#include <ddpsess/ipoib_cm.h>

static void odd_field(struct ddps_cm_mad *m, struct fuzz_dice *d)
{
	const struct ddps_cm_field *f =
		fuzz_roll(d, 6) ? ddps_cm_fields(m->hdr.attr_id) : ddps_cm_hdr_fields();
	unsigned n = 0, at;
	uint8_t *octets;

	while (f && f[n].name)
		n++;
	if (!n)
		return;
	at = fuzz_roll(d, n);
	octets = ddps_cm_field_octets(m, &f[at]);
	if (octets)
		octets[fuzz_roll(d, (unsigned)f[at].width / 8)] = (uint8_t)fuzz_odd_number(d, 8);
	else if (*f[at].name)
		(void)ddps_cm_field_set(m, &f[at], fuzz_odd_number(d, f[at].width));
}

void fuzz_mutate_cm(uint8_t mad[256], struct fuzz_dice *d)
{
	uint8_t was[DDPS_CM_MAD_LEN];
	struct ddps_cm_mad m;

	memcpy(was, mad, sizeof was);
	if (!fuzz_roll(d, 8) || ddps_cm_mad_decode(&m, was, sizeof was) ||
	    !ddps_cm_fields(m.hdr.attr_id))
		ddps_cm_mad_init(&m, (uint16_t)(DDPS_CM_REQ + fuzz_roll(d, 15)), fuzz_roll(d, 256));
	for (unsigned i = 1 + fuzz_roll(d, 3); i; i--)
		odd_field(&m, d);
	if (ddps_cm_mad_encode(mad, &m))
		memcpy(mad, was, sizeof was);
	if (!fuzz_roll(d, 8))
		mad[fuzz_roll(d, sizeof was)] ^= (uint8_t)(1u << fuzz_roll(d, 8));
}

size_t fuzz_new_ib_packet(uint8_t *p, const struct ddps_ib_udp_hdr *h, uint32_t qpn, uint32_t qkey,
			  struct fuzz_dice *d)
{
	static const uint8_t opcodes[] = { DDPS_IB_UD | DDPS_IB_SEND_ONLY,
					   DDPS_IB_UC | DDPS_IB_SEND_ONLY,
					   DDPS_IB_SEND_FIRST,
					   DDPS_IB_SEND_MIDDLE,
					   DDPS_IB_SEND_LAST,
					   DDPS_IB_SEND_ONLY,
					   DDPS_IB_ACK };
	uint8_t mad[DDPS_CM_MAD_LEN] = { 0 };
	bool cm = fuzz_roll(d, 2);
	struct ddps_ib_pkt k = { .opcode = opcodes[cm ? 0 : fuzz_roll(d, sizeof opcodes)],
				 .pkey = fuzz_roll(d, 8) ? 0xffff : 0x7fff,
				 .qpn = cm ? DDPS_IB_GSI_QPN : qpn,
				 .psn = (0xfffff0 + fuzz_roll(d, 8)) & DDPS_IB_PSN_MASK,
				 .ack_req = fuzz_roll(d, 2),
				 .qkey = cm ? DDPS_CM_QKEY : qkey,
				 .src_qpn = 1,
				 .data = mad,
				 .len = cm ? sizeof mad : 4 * fuzz_roll(d, 64) };
	size_t n;

	fuzz_mutate_cm(mad, d);
	if (k.opcode == DDPS_IB_ACK)
		k.len = 0;
	n = ddps_ib_pkt_encode(p, &k);
	memcpy(p + n, mad, k.len);
	n += k.len;
	icrc_put(h, p, n);
	return n + DDPS_IB_ICRC_LEN;
}
