/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of fields of CM messages as text, and messages for people. */
#include "ipoib/show/madtext.h"
#include "cli/text.h"
#include <string.h>

/* GIDs are the only octet strings of that width. */
static bool is_gid(const struct ddps_cm_field *f)
{
	return !f->size && f->width == 8 * DDPS_IPOIB_GID_LEN;
}

static bool ends_with(const char *s, const char *tail)
{
	size_t n = strlen(s), m = strlen(tail);

	return n >= m && !strcmp(s + n - m, tail);
}

/* Bits of a number with all its pieces. */
static unsigned bits_of(const struct ddps_cm_field *f)
{
	unsigned bits = f->width;

	for (f++; f->name && !*f->name; f++)
		bits += f->width;
	return bits;
}

/* ddps_cm_field_octets() wants a message that may be changed. */
static const uint8_t *octets_of(const struct ddps_cm_mad *mad, const struct ddps_cm_field *f)
{
	return ddps_cm_field_octets((struct ddps_cm_mad *)(uintptr_t)mad, f);
}

void madtext_value(char dst[MADTEXT_VALUE], const struct ddps_cm_mad *mad,
		   const struct ddps_cm_field *f)
{
	unsigned bits = bits_of(f);
	unsigned long long v = ddps_cm_field_get(mad, f);

	if (is_gid(f))
		ddps_ipoib_gid_print(dst, octets_of(mad, f));
	else if (!f->size)
		text_hex(dst, octets_of(mad, f), f->width / 8);
	else if (bits <= 8 || ends_with(f->name, "_lid"))
		snprintf(dst, MADTEXT_VALUE, "%llu", v);
	else
		snprintf(dst, MADTEXT_VALUE, "0x%0*llx", (int)(bits + 3) / 4, v);
}

static int set_octets(struct ddps_cm_mad *mad, const struct ddps_cm_field *f, const char *value,
		      char *why, size_t why_len)
{
	uint8_t *at = ddps_cm_field_octets(mad, f), buf[DDPS_CM_MAD_LEN] = { 0 };

	if (is_gid(f) && strchr(value, ':')) {
		if (!ddps_ipoib_gid_parse(at, value))
			return 0;
	} else if (text_unhex(buf, f->width / 8, value) >= 0) {
		memcpy(at, buf, f->width / 8);
		return 0;
	}
	snprintf(why, why_len, "field %s takes %sat most %u octets, two hexadecimal digits each",
		 f->name, is_gid(f) ? "a GID or " : "", f->width / 8u);
	return -1;
}

int madtext_set(struct ddps_cm_mad *mad, const struct ddps_cm_field *rows, const char *name,
		const char *value, char *why, size_t why_len)
{
	const struct ddps_cm_field *f = rows;
	uint64_t v;

	while (f->name && (!*f->name || strcmp(f->name, name) != 0))
		f++;
	if (!f->name) {
		snprintf(why, why_len, "%s has no field '%s'", ddps_cm_attr_name(mad->hdr.attr_id),
			 name);
		return -1;
	}
	if (!f->size)
		return set_octets(mad, f, value, why, why_len);
	if (!text_number(value, &v) && !ddps_cm_field_set(mad, f, v))
		return 0;
	snprintf(why, why_len, "field %s takes a number of %u bits, not '%s'", name, bits_of(f),
		 value);
	return -1;
}

/* ---- for people ---- */

static void about_service_id(FILE *f, const struct ddps_cm_mad *mad,
			     const struct ddps_cm_field *row)
{
	enum ddps_ipoib_sid_form form;
	uint32_t qpn;

	if (!ddps_ipoib_service_id_split(ddps_cm_field_get(mad, row), &form, &qpn))
		fprintf(f, " (IPoIB, %s form, UD QPN 0x%06x)",
			form == DDPS_IPOIB_SID_RFC ? "RFC" : "Linux", (unsigned)qpn);
}

static void about_time(FILE *f, const struct ddps_cm_mad *mad, const struct ddps_cm_field *row)
{
	fprintf(f, " (%.4g ms)",
		(double)ddps_cm_time_ns((unsigned)ddps_cm_field_get(mad, row)) / 1e6);
}

/* IPoIB fills the first 8 octets; what follows must be zero for that reading. */
static void about_private_data(FILE *f, const uint8_t *data, size_t len)
{
	struct ddps_ipoib_priv p;

	for (size_t i = DDPS_IPOIB_PRIV_LEN; i < len; i++)
		if (data[i])
			return;
	if (!ddps_ipoib_priv_decode(&p, data, len) && p.rx_mtu)
		fprintf(f, " (IPoIB: UD QPN 0x%06x, Receive MTU %u)", (unsigned)p.qpn,
			(unsigned)p.rx_mtu);
}

/* What the number alone does not say. */
static void about(FILE *f, const struct ddps_cm_mad *mad, const struct ddps_cm_field *row)
{
	if (!strcmp(row->name, "service_id"))
		about_service_id(f, mad, row);
	else if (!strcmp(row->name, "reason"))
		fprintf(f, " (%s)", ddps_cm_reason_name(mad->u.rej.reason));
	else if (ends_with(row->name, "_timeout"))
		about_time(f, mad, row);
	else if (!strcmp(row->name, "private_data"))
		about_private_data(f, octets_of(mad, row), row->width / 8);
}

/* A long octet string without the zeros at its end. */
static void print_value(FILE *f, const struct ddps_cm_mad *mad, const struct ddps_cm_field *row)
{
	char value[MADTEXT_VALUE];
	size_t n = row->width / 8, all = n;

	madtext_value(value, mad, row);
	if (row->size || is_gid(row)) {
		fputs(value, f);
		return;
	}
	while (n && !octets_of(mad, row)[n - 1])
		n--;
	fprintf(f, "%.*s", (int)(2 * n), value);
	if (n < all)
		fprintf(f, "%s%zu zero octets", n ? " and " : "", all - n);
}

static void print_rows(FILE *f, const char *prefix, const struct ddps_cm_mad *mad,
		       const struct ddps_cm_field *row)
{
	for (; row->name; row++) {
		char label[60];

		if (!*row->name)
			continue;
		snprintf(label, sizeof label, "%s%s", prefix, row->name);
		fprintf(f, "  %-24s ", label);
		print_value(f, mad, row);
		about(f, mad, row);
		fputc('\n', f);
	}
}

void madtext_print(FILE *f, const struct ddps_cm_mad *mad)
{
	fprintf(f, "%s\n", ddps_cm_attr_name(mad->hdr.attr_id));
	print_rows(f, "header.", mad, ddps_cm_hdr_fields());
	print_rows(f, "", mad, ddps_cm_fields(mad->hdr.attr_id));
}

void madtext_brief(char *dst, size_t size, const struct ddps_cm_mad *mad)
{
	static const char *const shown[] = {
		"local_id",   "remote_id", "request_id", "qpn",
		"service_id", "msg",	   "reason",	 "remote_qpn"
	};
	const struct ddps_cm_field *row = ddps_cm_fields(mad->hdr.attr_id);
	size_t n = (size_t)snprintf(dst, size, "%s", ddps_cm_attr_name(mad->hdr.attr_id));

	for (; row->name; row++)
		for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
			char value[MADTEXT_VALUE];

			if (strcmp(row->name, shown[i]) != 0 || n >= size)
				continue;
			madtext_value(value, mad, row);
			n += (size_t)snprintf(dst + n, size - n, " %s %s", row->name, value);
		}
	if (mad->hdr.attr_id == DDPS_CM_REJ && n < size)
		snprintf(dst + n, size - n, " (%s)", ddps_cm_reason_name(mad->u.rej.reason));
}
