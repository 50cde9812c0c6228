/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CM messages: octets <-> struct.  Both directions walk the rows of cm_fields.c, so what is
 * encoded is what is decoded, and octets without a row are the reserved ones: zero on send,
 * not looked at on receive.
 */
#include <ddpsess/ipoib_cm.h>
#include "common/bytes.h"
#include "ipoib_cm/wire/wire.h"

void ddps_cm_mad_init(struct ddps_cm_mad *mad, uint16_t attr, uint64_t tid)
{
	memset(mad, 0, sizeof(*mad));
	mad->hdr.base_version = DDPS_CM_BASE_VERSION;
	mad->hdr.mgmt_class = DDPS_CM_CLASS;
	mad->hdr.class_version = DDPS_CM_VERSION;
	mad->hdr.method = DDPS_CM_METHOD;
	mad->hdr.tid = tid;
	mad->hdr.attr_id = attr;
}

static uint64_t load_member(const struct ddps_cm_mad *mad, const struct ddps_cm_field *f)
{
	const uint8_t *at = (const uint8_t *)mad + f->offset;
	uint16_t v16;
	uint32_t v32;
	uint64_t v64;

	switch (f->size) {
	case 1:
		return *at;
	case 2:
		memcpy(&v16, at, sizeof(v16));
		return v16;
	case 4:
		memcpy(&v32, at, sizeof(v32));
		return v32;
	default:
		memcpy(&v64, at, sizeof(v64));
		return v64;
	}
}

static void store_member(struct ddps_cm_mad *mad, const struct ddps_cm_field *f, uint64_t v)
{
	uint8_t *at = (uint8_t *)mad + f->offset;
	uint16_t v16 = (uint16_t)v;
	uint32_t v32 = (uint32_t)v;

	switch (f->size) {
	case 1:
		*at = (uint8_t)v;
		break;
	case 2:
		memcpy(at, &v16, sizeof(v16));
		break;
	case 4:
		memcpy(at, &v32, sizeof(v32));
		break;
	default:
		memcpy(at, &v, sizeof(v));
	}
}

/* The octets that hold a number, and how far its lowest bit is from their lowest. */
struct span {
	size_t first, n;
	unsigned right;
};

static struct span field_span(const struct ddps_cm_field *f)
{
	unsigned from = f->bit % 8, to = from + f->width;
	size_t n = (to + 7) / 8;

	return (struct span){ .first = f->bit / 8, .n = n, .right = (unsigned)(8 * n - to) };
}

static uint64_t field_mask(const struct ddps_cm_field *f)
{
	return f->width == 64 ? UINT64_MAX : ((uint64_t)1 << f->width) - 1;
}

static void put_row(uint8_t out[DDPS_CM_MAD_LEN], const struct ddps_cm_mad *mad,
		    const struct ddps_cm_field *f)
{
	struct span s = field_span(f);
	struct ddps_rbuf r = ddps_rbuf_init(out + s.first, s.n);
	struct ddps_wbuf w = ddps_wbuf_init(out + s.first, s.n);
	uint64_t v;

	if (!f->size) {
		memcpy(out + s.first, (const uint8_t *)mad + f->offset, s.n);
		return;
	}
	v = load_member(mad, f) >> f->shift & field_mask(f);
	ddps_wbuf_be(&w, ddps_rbuf_be(&r, s.n) | v << s.right, s.n);
}

static void get_row(struct ddps_cm_mad *mad, const struct ddps_cm_field *f,
		    const uint8_t buf[DDPS_CM_MAD_LEN])
{
	struct span s = field_span(f);
	struct ddps_rbuf r = ddps_rbuf_init(buf + s.first, s.n);
	uint64_t v;

	if (!f->size) {
		memcpy((uint8_t *)mad + f->offset, buf + s.first, s.n);
		return;
	}
	v = ddps_rbuf_be(&r, s.n) >> s.right & field_mask(f);
	store_member(mad, f, load_member(mad, f) | v << f->shift);
}

/* Bits of a field with all its pieces. */
static unsigned field_bits(const struct ddps_cm_field *f)
{
	unsigned bits = f->width;

	for (f++; f->name && !*f->name; f++)
		bits += f->width;
	return bits;
}

uint64_t ddps_cm_field_get(const struct ddps_cm_mad *mad, const struct ddps_cm_field *f)
{
	return f->size ? load_member(mad, f) : 0;
}

static bool value_fits_field(const struct ddps_cm_field *f, uint64_t v)
{
	unsigned bits = field_bits(f);

	return bits >= 64 || !(v >> bits);
}

int ddps_cm_field_set(struct ddps_cm_mad *mad, const struct ddps_cm_field *f, uint64_t value)
{
	if (!f->size || !value_fits_field(f, value))
		return DDPS_E_INVAL;
	store_member(mad, f, value);
	return 0;
}

uint8_t *ddps_cm_field_octets(struct ddps_cm_mad *mad, const struct ddps_cm_field *f)
{
	return f->size ? NULL : (uint8_t *)mad + f->offset;
}

uint8_t *ddps_cm_private_data(struct ddps_cm_mad *mad, size_t *len)
{
	const struct ddps_cm_field *f = ddps_cm_fields(mad->hdr.attr_id);

	for (; f && f->name; f++)
		if (!strcmp(f->name, "private_data")) {
			*len = f->width / 8;
			return (uint8_t *)mad + f->offset;
		}
	return NULL;
}

static bool info_len_ok(const struct ddps_cm_mad *mad)
{
	switch (mad->hdr.attr_id) {
	case DDPS_CM_REJ:
		return mad->u.rej.info_len <= DDPS_CM_ARI_LEN;
	case DDPS_CM_SIDR_REP:
		return mad->u.sidr_rep.info_len <= DDPS_CM_ARI_LEN;
	case DDPS_CM_APR:
		return mad->u.apr.info_len <= DDPS_CM_ARI_LEN;
	default:
		return true;
	}
}

int ddps_cm_mad_encode(uint8_t out[DDPS_CM_MAD_LEN], const struct ddps_cm_mad *mad)
{
	const struct ddps_cm_field *hdr = ddps_cm_hdr_fields(), *f;
	const struct ddps_cm_field *body = ddps_cm_fields(mad->hdr.attr_id);

	if (!body)
		return DDPS_E_UNSUPPORTED;
	for (f = body; f->name; f++)
		if (f->size && *f->name && !value_fits_field(f, load_member(mad, f)))
			return DDPS_E_INVAL;
	if (!info_len_ok(mad))
		return DDPS_E_INVAL;
	memset(out, 0, DDPS_CM_MAD_LEN);
	for (f = hdr; f->name; f++)
		put_row(out, mad, f);
	for (f = body; f->name; f++)
		put_row(out, mad, f);
	return 0;
}

static int check_hdr(const struct ddps_cm_hdr *hdr)
{
	if (hdr->base_version != DDPS_CM_BASE_VERSION)
		return DDPS_E_REVISION;
	if (hdr->mgmt_class != DDPS_CM_CLASS)
		return DDPS_E_UNSUPPORTED;
	if (hdr->class_version != DDPS_CM_VERSION)
		return DDPS_E_REVISION;
	return hdr->method == DDPS_CM_METHOD ? 0 : DDPS_E_UNSUPPORTED;
}

int ddps_cm_mad_decode(struct ddps_cm_mad *mad, const void *buf, size_t len)
{
	const struct ddps_cm_field *f;
	struct ddps_cm_mad got = { 0 };
	int err;

	if (len < DDPS_CM_MAD_LEN)
		return DDPS_E_TRUNCATED;
	if (len > DDPS_CM_MAD_LEN)
		return DDPS_E_TOO_LONG;
	for (f = ddps_cm_hdr_fields(); f->name; f++)
		get_row(&got, f, buf);
	err = check_hdr(&got.hdr);
	f = ddps_cm_fields(got.hdr.attr_id);
	if (!err && !f)
		err = DDPS_E_UNSUPPORTED;
	if (err) {
		mad->hdr = got.hdr;
		return err;
	}
	for (; f->name; f++)
		get_row(&got, f, buf);
	if (!info_len_ok(&got))
		return DDPS_E_PROTOCOL;
	*mad = got;
	return 0;
}
