/* SPDX-License-Identifier: BSD-2-Clause */
/* The 20-octet link-layer address of an IPoIB interface (RFC 4755 3.1): flags, QPN, GID. */
#include <arpa/inet.h>
#include <ddpsess/ipoib_cm.h>
#include "common/bytes.h"
#include "common/text.h"
#include "ipoib_cm/wire/wire.h"

#define FLAGS_KNOWN (DDPS_IPOIB_RC | DDPS_IPOIB_UC)

int ddps_ipoib_lladdr_encode(uint8_t out[DDPS_IPOIB_LLADDR_LEN], const struct ddps_ipoib_lladdr *a)
{
	struct ddps_wbuf w = ddps_wbuf_init(out, DDPS_IPOIB_LLADDR_LEN);

	/* [4755-3.1-2] */
	if (a->flags & ~FLAGS_KNOWN || a->qpn > DDPS_IPOIB_QPN_MAX)
		return DDPS_E_INVAL;
	ddps_wbuf_u8(&w, a->flags);
	ddps_wbuf_be(&w, a->qpn, 3);
	ddps_wbuf_bytes(&w, a->gid, sizeof(a->gid));
	return 0;
}

int ddps_ipoib_lladdr_decode(struct ddps_ipoib_lladdr *a, const void *buf, size_t len)
{
	struct ddps_rbuf r = ddps_rbuf_init(buf, len);
	uint8_t flags = ddps_rbuf_u8(&r);
	uint32_t qpn = (uint32_t)ddps_rbuf_be(&r, 3);
	const uint8_t *gid = ddps_rbuf_take(&r, DDPS_IPOIB_GID_LEN);

	if (r.failed)
		return DDPS_E_TRUNCATED;
	a->flags = flags & FLAGS_KNOWN; /* [4755-3.1-3] */
	a->qpn = qpn;
	memcpy(a->gid, gid, sizeof(a->gid));
	return 0;
}

int ddps_ipoib_lladdr_cmp(const struct ddps_ipoib_lladdr *a, const struct ddps_ipoib_lladdr *b)
{
	/* [4755-3.3-7] [4755-3.3-8] With octet 0 cleared, the QPN holds the highest octets. */
	if (a->qpn != b->qpn)
		return a->qpn < b->qpn ? -1 : 1;
	return memcmp(a->gid, b->gid, sizeof(a->gid));
}

void ddps_ipoib_lladdr_print(char text[DDPS_IPOIB_LLADDR_TEXT], const struct ddps_ipoib_lladdr *a)
{
	const uint8_t head[4] = { a->flags, (uint8_t)(a->qpn >> 16), (uint8_t)(a->qpn >> 8),
				  (uint8_t)a->qpn };

	for (size_t i = 0; i < DDPS_IPOIB_LLADDR_LEN; i++) {
		ddps_text_hex(&text[3 * i], i < 4 ? &head[i] : &a->gid[i - 4], 1);
		text[3 * i + 2] = ':';
	}
	text[DDPS_IPOIB_LLADDR_TEXT - 1] = '\0';
}

int ddps_ipoib_lladdr_parse(struct ddps_ipoib_lladdr *a, const char *text)
{
	uint8_t octets[DDPS_IPOIB_LLADDR_LEN];

	for (size_t i = 0; i < sizeof(octets); i++) {
		if (i && *text++ != ':')
			return DDPS_E_INVAL;
		text = ddps_text_unhex(&octets[i], 1, text);
		if (!text)
			return DDPS_E_INVAL;
	}
	if (*text)
		return DDPS_E_INVAL;
	return ddps_ipoib_lladdr_decode(a, octets, sizeof(octets));
}

void ddps_ipoib_flags_print(char text[DDPS_IPOIB_FLAGS_TEXT], uint8_t flags)
{
	static const char name[][DDPS_IPOIB_FLAGS_TEXT] = { "ud", "uc", "rc", "rc,uc" };

	memcpy(text, name[(flags & FLAGS_KNOWN) >> 6], DDPS_IPOIB_FLAGS_TEXT);
}

int ddps_ipoib_flags_parse(uint8_t *flags, const char *text)
{
	uint8_t got = 0;

	if (!strcmp(text, "ud")) {
		*flags = 0;
		return 0;
	}
	for (;; text++) {
		if (!strncmp(text, "rc", 2))
			got |= DDPS_IPOIB_RC;
		else if (!strncmp(text, "uc", 2))
			got |= DDPS_IPOIB_UC;
		else
			return DDPS_E_INVAL;
		text += 2;
		if (*text != ',')
			break;
	}
	if (*text)
		return DDPS_E_INVAL;
	*flags = got;
	return 0;
}

void ddps_ipoib_gid_print(char text[DDPS_IPOIB_GID_TEXT], const uint8_t gid[DDPS_IPOIB_GID_LEN])
{
	inet_ntop(AF_INET6, gid, text, DDPS_IPOIB_GID_TEXT);
}

int ddps_ipoib_gid_parse(uint8_t gid[DDPS_IPOIB_GID_LEN], const char *text)
{
	return inet_pton(AF_INET6, text, gid) == 1 ? 0 : DDPS_E_INVAL;
}
