/* SPDX-License-Identifier: BSD-2-Clause */
/* What IPoIB puts into CM messages: the service ID and the private data (RFC 4755 3.5, 6). */
#include <ddpsess/ipoib_cm.h>
#include "common/bytes.h"
#include "common/text.h"

#define QPN_BITS 24

/* Octets 0 to 4: prefix, type 0 and reserved 0 [4755-3.5-1] [4755-3.5-2] [4755-3.5-3]. */
static const uint64_t form_base[] = {
	[DDPS_IPOIB_SID_RFC] = 0x0100000000000000,
	[DDPS_IPOIB_SID_LINUX] = 0x1000000000000000,
};

#define FORMS (sizeof(form_base) / sizeof(form_base[0]))

int ddps_ipoib_service_id(uint64_t *sid, enum ddps_ipoib_sid_form form, uint32_t qpn)
{
	if ((size_t)form >= FORMS || qpn > DDPS_IPOIB_QPN_MAX)
		return DDPS_E_INVAL;
	*sid = form_base[form] | qpn; /* [4755-3.5-4] */
	return 0;
}

int ddps_ipoib_service_id_split(uint64_t sid, enum ddps_ipoib_sid_form *form, uint32_t *qpn)
{
	for (size_t i = 0; i < FORMS; i++) {
		if (sid >> QPN_BITS != form_base[i] >> QPN_BITS)
			continue;
		*form = (enum ddps_ipoib_sid_form)i;
		*qpn = (uint32_t)sid & DDPS_IPOIB_QPN_MAX;
		return 0;
	}
	return DDPS_E_PROTOCOL;
}

void ddps_ipoib_service_id_print(char text[DDPS_IPOIB_SERVICE_ID_TEXT], uint64_t sid)
{
	uint8_t octets[8];
	struct ddps_wbuf w = ddps_wbuf_init(octets, sizeof(octets));

	ddps_wbuf_u64(&w, sid);
	memcpy(text, "0x", 2);
	ddps_text_hex(text + 2, octets, sizeof(octets));
	text[DDPS_IPOIB_SERVICE_ID_TEXT - 1] = '\0';
}

int ddps_ipoib_service_id_parse(uint64_t *sid, const char *text)
{
	uint64_t v = 0;
	size_t n;

	if (!strncmp(text, "0x", 2))
		text += 2;
	for (n = 0; text[n]; n++) {
		int digit = ddps_text_digit(text[n]);

		if (digit < 0 || n == 16)
			return DDPS_E_INVAL;
		v = v << 4 | (uint64_t)digit;
	}
	if (!n)
		return DDPS_E_INVAL;
	*sid = v;
	return 0;
}

int ddps_ipoib_priv_encode(uint8_t out[DDPS_IPOIB_PRIV_LEN], const struct ddps_ipoib_priv *p)
{
	struct ddps_wbuf w = ddps_wbuf_init(out, DDPS_IPOIB_PRIV_LEN);

	if (p->qpn > DDPS_IPOIB_QPN_MAX)
		return DDPS_E_INVAL;
	ddps_wbuf_u32(&w, p->qpn); /* its highest octet is the reserved one [4755-6-3] */
	ddps_wbuf_u32(&w, p->rx_mtu);
	return 0;
}

int ddps_ipoib_priv_decode(struct ddps_ipoib_priv *p, const void *buf, size_t len)
{
	struct ddps_rbuf r = ddps_rbuf_init(buf, len);
	uint32_t qpn = ddps_rbuf_u32(&r) & DDPS_IPOIB_QPN_MAX; /* [4755-6-4] */
	uint32_t rx_mtu = ddps_rbuf_u32(&r);

	if (r.failed)
		return DDPS_E_TRUNCATED;
	p->qpn = qpn;
	p->rx_mtu = rx_mtu;
	return 0;
}

void ddps_ipoib_priv_print(char text[DDPS_IPOIB_PRIV_TEXT], const struct ddps_ipoib_priv *p)
{
	uint8_t octets[DDPS_IPOIB_PRIV_LEN];
	struct ddps_wbuf w = ddps_wbuf_init(octets, sizeof(octets));

	ddps_wbuf_u32(&w, p->qpn & DDPS_IPOIB_QPN_MAX);
	ddps_wbuf_u32(&w, p->rx_mtu);
	ddps_text_hex(text, octets, sizeof(octets));
	text[DDPS_IPOIB_PRIV_TEXT - 1] = '\0';
}

int ddps_ipoib_priv_parse(struct ddps_ipoib_priv *p, const char *text)
{
	uint8_t octets[DDPS_IPOIB_PRIV_LEN];

	text = ddps_text_unhex(octets, sizeof(octets), text);
	if (!text || *text)
		return DDPS_E_INVAL;
	return ddps_ipoib_priv_decode(p, octets, sizeof(octets));
}
