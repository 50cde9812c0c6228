/* SPDX-License-Identifier: BSD-2-Clause */
/* Codec of MPA Request and Reply frames.  No I/O, no heap. */
#include "mpa_tcp/mpa_wire.h"
#include "common/bytes.h"
#include <ddpsess/err.h>

#define FLAG_M 0x80u
#define FLAG_C 0x40u
#define FLAG_R 0x20u
#define FLAG_S 0x10u

static const uint8_t keys[2][DDPS_MPA_KEY_LEN] = {
	[DDPS_MPA_REQUEST] = { 'M', 'P', 'A', ' ', 'I', 'D', ' ', 'R', 'e', 'q', ' ', 'F', 'r', 'a',
			       'm', 'e' },
	[DDPS_MPA_REPLY] = { 'M', 'P', 'A', ' ', 'I', 'D', ' ', 'R', 'e', 'p', ' ', 'F', 'r', 'a',
			     'm', 'e' },
};

size_t ddps_mpa_frame_encode(uint8_t *buf, enum ddps_mpa_kind kind, const struct ddps_mpa_frame *f)
{
	struct ddps_wbuf w = ddps_wbuf_init(buf, DDPS_MPA_FRAME_MAX);
	unsigned flags = 0; /* [5044-7.1.1-12] the other bits stay zero */

	if (f->pd_len > DDPS_MPA_PD_MAX)
		return 0;
	if (f->enhanced && (f->rev < DDPS_MPA_REV_ENH || f->pd_len < DDPS_MPA_WORD_LEN))
		return 0;
	flags |= f->markers ? FLAG_M : 0;
	flags |= f->crc ? FLAG_C : 0;
	flags |= f->reject && kind == DDPS_MPA_REPLY ? FLAG_R : 0;
	flags |= f->enhanced ? FLAG_S : 0;
	ddps_wbuf_bytes(&w, keys[kind], DDPS_MPA_KEY_LEN);
	ddps_wbuf_u8(&w, (uint8_t)flags);
	ddps_wbuf_u8(&w, f->rev);
	ddps_wbuf_u16(&w, (uint16_t)f->pd_len);
	ddps_wbuf_bytes(&w, f->pd, f->pd_len);
	return (size_t)(w.p - buf);
}

/* First octets of what speaks TLS (RFC 8446 5.1). */
#define TLS_ALERT     21
#define TLS_HANDSHAKE 22

/* The first wrong octet decides, so that a foreign protocol is not waited for. */
static int check_key(enum ddps_mpa_kind kind, const uint8_t *buf, size_t len, const char **why)
{
	const uint8_t *key = keys[kind], *other = keys[kind == DDPS_MPA_REQUEST];

	for (size_t i = 0; i < len && i < DDPS_MPA_KEY_LEN; i++) {
		if (buf[i] == key[i])
			continue;
		if (buf[0] == TLS_ALERT || buf[0] == TLS_HANDSHAKE)
			*why = kind == DDPS_MPA_REPLY ? "the peer speaks TLS: use tls:// for it"
						      : "the peer speaks TLS: this side has to "
							"listen on tls://";
		else if (buf[i] != other[i])
			*why = "wrong key";
		else if (kind == DDPS_MPA_REPLY) /* [5044-7.1.2-19] */
			*why = "the peer sent an MPA Request: it is an initiator, too, or "
			       "sends back what it gets";
		else
			*why = "the peer sent an MPA Reply: both sides are responders";
		return DDPS_E_KEY;
	}
	return 0;
}

int ddps_mpa_frame_decode(struct ddps_mpa_frame *f, enum ddps_mpa_kind kind, const uint8_t *buf,
			  size_t len, size_t *need, const char **why)
{
	struct ddps_rbuf r = ddps_rbuf_init(buf, len);
	unsigned flags;

	*need = DDPS_MPA_HDR_LEN;
	if (check_key(kind, buf, len, why)) /* [5044-7.1.1-2] [5044-7.1.1-4] */
		return DDPS_E_KEY;
	ddps_rbuf_take(&r, DDPS_MPA_KEY_LEN);
	flags = ddps_rbuf_u8(&r);
	f->rev = ddps_rbuf_u8(&r);
	f->pd_len = ddps_rbuf_u16(&r);
	if (r.failed)
		return 0;
	if (f->pd_len > DDPS_MPA_PD_MAX) { /* [5044-7.1.1-18] */
		*why = "more than 512 octets of private data";
		return DDPS_E_PROTOCOL;
	}
	if (f->rev < DDPS_MPA_REV_PLAIN || f->rev > DDPS_MPA_REV_ENH) { /* [5044-7.1.1-16] */
		*why = "revision is neither 1 nor 2";
		return DDPS_E_REVISION;
	}
	/* [5044-7.1.1-13] Res is not checked, in Rev 1 this is one of its bits; nor is R in a
	 * Request. */
	f->enhanced = f->rev >= DDPS_MPA_REV_ENH && (flags & FLAG_S);
	f->reject = kind == DDPS_MPA_REPLY && (flags & FLAG_R);
	f->markers = flags & FLAG_M;
	f->crc = flags & FLAG_C;
	if (f->enhanced && f->pd_len < DDPS_MPA_WORD_LEN) {
		if (!f->reject) { /* [6581-6-6] */
			*why = "enhanced, but without room for the IRD/ORD word";
			return DDPS_E_PROTOCOL;
		}
		f->enhanced = false; /* a rejection that lacks the word */
	}
	*need += f->pd_len;
	f->pd = ddps_rbuf_take(&r, f->pd_len);
	return !r.failed;
}

int ddps_mpa_reply_fits(const struct ddps_mpa_frame *reply, bool sent_enhanced, const char **why)
{
	if (reply->reject || reply->enhanced == sent_enhanced)
		return 0;
	*why = sent_enhanced ? "not enhanced, though the Request was" : /* [6581-10-5] */
		       "enhanced, though the Request was not";		/* [6581-10-6] */
	return DDPS_E_PROTOCOL;
}
