/* SPDX-License-Identifier: BSD-2-Clause */
/* Management datagrams: what all have in common. */
#include "conform/ipoib/mad.h"
#include <stdio.h>
#include <string.h>

void ci_mad(uint8_t m[CI_MAD], uint8_t cls, uint8_t method, uint16_t attr, uint64_t tid)
{
	memset(m, 0, CI_MAD);
	m[M_BASE] = 1;
	m[M_CLASS] = cls;
	m[M_VERSION] = 2;
	m[M_METHOD] = method;
	cf_put64(m + M_TID, tid);
	cf_put16(m + M_ATTR, attr);
}

static const struct {
	const char *name;
	size_t priv;
	/* octets and the bits of them that are reserved; ends with mask 0 */
	struct {
		uint8_t at, last, mask;
	} reserved[10];
} kind[] = {
	[CI_REQ] = { "REQ",
		     REQ_PRIV,
		     { { 28, 28, 0xff },
		       { 48, 51, 0xff },
		       { 52, 55, 0xff }, /* Q_Key of RD */
		       { 60, 62, 0xff }, /* EECNs of RD */
		       { 64, 66, 0xff },
		       { 75, 75, 0x07 }, /* extended type */
		       { 114, 114, 0x0f },
		       { 115, 115, 0xc0 },
		       { 118, 118, 0x07 },
		       { 119, 119, 0x07 } } },
	[CI_MRA] = { "MRA", MRA_PRIV, { { 32, 32, 0x3f }, { 33, 33, 0x07 } } },
	[CI_REJ] = { "REJ", REJ_PRIV, { { 32, 32, 0x3f }, { 33, 33, 0x01 } } },
	[CI_REP] = { "REP", REP_PRIV, { { 40, 42, 0xff }, { 51, 51, 0x0f } } },
	[CI_RTU] = { "RTU", RTU_PRIV, { { 0 } } },
	[CI_DREQ] = { "DREQ", DREQ_PRIV, { { 35, 35, 0xff } } },
	[CI_DREP] = { "DREP", RTU_PRIV, { { 0 } } },
};

#define KINDS (sizeof kind / sizeof *kind)

const char *ci_mad_name(const uint8_t *m)
{
	unsigned i = ci_attr(m);

	return i < KINDS && kind[i].name ? kind[i].name : "CM message of another kind";
}

size_t ci_priv_at(const uint8_t *m)
{
	unsigned i = ci_attr(m);

	return i < KINDS ? kind[i].priv : 0;
}

const char *ci_mad_reserved(const uint8_t *m)
{
	static _Thread_local char text[100];
	static const uint8_t fixed[8] = { 1, 7, 2, 3, 0, 0, 0, 0 };
	unsigned i = ci_attr(m);

	if (memcmp(m, fixed, sizeof fixed) != 0 || cf_get16(m + 18) || cf_get32(m + M_MOD)) {
		snprintf(text, sizeof text, "its header is %s", cf_hex(m, 24));
		return text;
	}
	if (i >= KINDS || !kind[i].name)
		return ci_attr(m) >= CI_REQ && ci_attr(m) <= CI_LAST_KIND ? NULL
									  : "of no known kind";
	for (unsigned k = 0; k < 10 && kind[i].reserved[k].mask; k++)
		for (unsigned at = kind[i].reserved[k].at; at <= kind[i].reserved[k].last; at++)
			if (m[at] & kind[i].reserved[k].mask) {
				snprintf(text, sizeof text, "reserved octet %u of a %s is %02x", at,
					 kind[i].name, m[at]);
				return text;
			}
	return NULL;
}
