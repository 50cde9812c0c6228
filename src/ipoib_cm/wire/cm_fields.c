/* SPDX-License-Identifier: BSD-2-Clause */
/* Where each field of each CM message lies (IBA volume 1, tables 106 to 120), and names. */
#include "ipoib_cm/wire/wire.h"
#include <ddpsess/ipoib_cm.h>
#include <string.h>

#define MEMBER_SIZE(member) sizeof(((struct ddps_cm_mad *)0)->member)

/* A number: octet counted from the MAD's first, its highest bit there (7 = most significant). */
#define AT(text, member, octet, top, bits, up)                                                     \
	{                                                                                          \
		.name = (text), .bit = (octet)*8 + 7 - (top), .width = (bits),                     \
		.offset = offsetof(struct ddps_cm_mad, member), .size = MEMBER_SIZE(member),       \
		.shift = (up),                                                                     \
	}
#define HDR(field, octet, bits) AT(#field, hdr.field, octet, 7, bits, 0)

/* The same in the data of message m, whose octets are counted from behind the header. */
#define PIECE(text, m, field, octet, top, bits, up)                                                \
	AT(text, u.m.field, (octet) + DDPS_CM_HDR_LEN, top, bits, up)
#define BITS(m, field, octet, top, bits) PIECE(#field, m, field, octet, top, bits, 0)
#define NUM(m, field, octet, bits)	 BITS(m, field, octet, 7, bits)

/* A string of octets, as long as its member. */
#define STR(m, field, octet)                                                                       \
	{                                                                                          \
		.name = #field, .bit = ((octet) + DDPS_CM_HDR_LEN) * 8,                            \
		.width = MEMBER_SIZE(u.m.field) * 8,                                               \
		.offset = offsetof(struct ddps_cm_mad, u.m.field),                                 \
	}
#define END                                                                                        \
	{                                                                                          \
		.name = NULL                                                                       \
	}

static const struct ddps_cm_field hdr_rows[] = {
	HDR(base_version, 0, 8),  HDR(mgmt_class, 1, 8),
	HDR(class_version, 2, 8), HDR(method, 3, 8),
	HDR(status, 4, 16),	  HDR(class_specific, 6, 16),
	HDR(tid, 8, 64),	  HDR(attr_id, 16, 16),
	HDR(attr_mod, 20, 32),	  END,
};

/* NOLINTBEGIN(bugprone-macro-parentheses): members of structs cannot have them */
/* A path of a REQ; @octet is that of its first field. */
#define REQ_PATH(path, octet)                                                                      \
	NUM(req, path.local_lid, octet, 16), NUM(req, path.remote_lid, (octet) + 2, 16),           \
		STR(req, path.local_gid, (octet) + 4), STR(req, path.remote_gid, (octet) + 20),    \
		NUM(req, path.flow_label, (octet) + 36, 20),                                       \
		BITS(req, path.rate, (octet) + 39, 5, 6),                                          \
		NUM(req, path.traffic_class, (octet) + 40, 8),                                     \
		NUM(req, path.hop_limit, (octet) + 41, 8), NUM(req, path.sl, (octet) + 42, 4),     \
		BITS(req, path.subnet_local, (octet) + 42, 3, 1),                                  \
		NUM(req, path.ack_timeout, (octet) + 43, 5)
/* NOLINTEND(bugprone-macro-parentheses) */

static const struct ddps_cm_field req_rows[] = {
	NUM(req, local_id, 0, 32),
	NUM(req, vendor_id, 5, 24),
	NUM(req, service_id, 8, 64),
	NUM(req, ca_guid, 16, 64),
	NUM(req, qkey, 28, 32),
	NUM(req, qpn, 32, 24),
	NUM(req, resp_resources, 35, 8),
	NUM(req, local_eecn, 36, 24),
	NUM(req, init_depth, 39, 8),
	NUM(req, remote_eecn, 40, 24),
	NUM(req, remote_cm_timeout, 43, 5),
	BITS(req, transport, 43, 2, 2),
	BITS(req, flow_control, 43, 0, 1),
	NUM(req, starting_psn, 44, 24),
	NUM(req, local_cm_timeout, 47, 5),
	BITS(req, retry_count, 47, 2, 3),
	NUM(req, pkey, 48, 16),
	NUM(req, path_mtu, 50, 4),
	BITS(req, rdc_exists, 50, 3, 1),
	BITS(req, rnr_retry, 50, 2, 3),
	NUM(req, max_cm_retries, 51, 4),
	BITS(req, srq, 51, 3, 1),
	BITS(req, ext_transport, 51, 2, 3),
	REQ_PATH(primary, 52),
	REQ_PATH(alternate, 96),
	BITS(req, sap_supported, 139, 2, 1),
	STR(req, private_data, 140),
	END,
};

static const struct ddps_cm_field mra_rows[] = {
	NUM(mra, local_id, 0, 32),	 NUM(mra, remote_id, 4, 32), NUM(mra, msg, 8, 2),
	NUM(mra, service_timeout, 9, 5), STR(mra, private_data, 10), END,
};

static const struct ddps_cm_field rej_rows[] = {
	NUM(rej, local_id, 0, 32),  NUM(rej, remote_id, 4, 32),
	NUM(rej, msg, 8, 2),	    NUM(rej, info_len, 9, 7),
	NUM(rej, reason, 10, 16),   STR(rej, ari, 12),
	STR(rej, private_data, 84), END,
};

static const struct ddps_cm_field rep_rows[] = {
	NUM(rep, local_id, 0, 32),
	NUM(rep, remote_id, 4, 32),
	NUM(rep, qkey, 8, 32),
	NUM(rep, qpn, 12, 24),
	PIECE("vendor_id", rep, vendor_id, 15, 7, 8, 16),
	PIECE("", rep, vendor_id, 19, 7, 8, 8),
	PIECE("", rep, vendor_id, 23, 7, 8, 0),
	NUM(rep, local_eecn, 16, 24),
	NUM(rep, starting_psn, 20, 24),
	NUM(rep, resp_resources, 24, 8),
	NUM(rep, init_depth, 25, 8),
	NUM(rep, target_ack_delay, 26, 5),
	BITS(rep, failover, 26, 2, 2),
	BITS(rep, flow_control, 26, 0, 1),
	NUM(rep, rnr_retry, 27, 3),
	BITS(rep, srq, 27, 4, 1),
	NUM(rep, ca_guid, 28, 64),
	STR(rep, private_data, 36),
	END,
};

static const struct ddps_cm_field rtu_rows[] = {
	NUM(rtu, local_id, 0, 32),
	NUM(rtu, remote_id, 4, 32),
	STR(rtu, private_data, 8),
	END,
};

static const struct ddps_cm_field dreq_rows[] = {
	NUM(dreq, local_id, 0, 32),
	NUM(dreq, remote_id, 4, 32),
	NUM(dreq, remote_qpn, 8, 24),
	STR(dreq, private_data, 12),
	END,
};

static const struct ddps_cm_field drep_rows[] = {
	NUM(drep, local_id, 0, 32),
	NUM(drep, remote_id, 4, 32),
	STR(drep, private_data, 8),
	END,
};

static const struct ddps_cm_field sidr_req_rows[] = {
	NUM(sidr_req, request_id, 0, 32),
	NUM(sidr_req, pkey, 4, 16),
	NUM(sidr_req, service_id, 8, 64),
	STR(sidr_req, private_data, 16),
	END,
};

static const struct ddps_cm_field sidr_rep_rows[] = {
	NUM(sidr_rep, request_id, 0, 32),
	NUM(sidr_rep, status, 4, 8),
	NUM(sidr_rep, info_len, 5, 8),
	PIECE("vendor_id", sidr_rep, vendor_id, 6, 7, 16, 8),
	PIECE("", sidr_rep, vendor_id, 11, 7, 8, 0),
	NUM(sidr_rep, qpn, 8, 24),
	NUM(sidr_rep, service_id, 12, 64),
	NUM(sidr_rep, qkey, 20, 32),
	STR(sidr_rep, info, 24),
	STR(sidr_rep, private_data, 96),
	END,
};

/* Traffic class, hop limit and rate are in another order than in a REQ. */
static const struct ddps_cm_field lap_rows[] = {
	NUM(lap, local_id, 0, 32),
	NUM(lap, remote_id, 4, 32),
	NUM(lap, remote_qpn, 12, 24),
	NUM(lap, remote_cm_timeout, 15, 5),
	NUM(lap, alternate.local_lid, 20, 16),
	NUM(lap, alternate.remote_lid, 22, 16),
	STR(lap, alternate.local_gid, 24),
	STR(lap, alternate.remote_gid, 40),
	NUM(lap, alternate.flow_label, 56, 20),
	NUM(lap, alternate.traffic_class, 59, 8),
	NUM(lap, alternate.hop_limit, 60, 8),
	BITS(lap, alternate.rate, 61, 5, 6),
	NUM(lap, alternate.sl, 62, 4),
	BITS(lap, alternate.subnet_local, 62, 3, 1),
	NUM(lap, alternate.ack_timeout, 63, 5),
	STR(lap, private_data, 64),
	END,
};

static const struct ddps_cm_field apr_rows[] = {
	NUM(apr, local_id, 0, 32),
	NUM(apr, remote_id, 4, 32),
	NUM(apr, info_len, 8, 8),
	NUM(apr, status, 9, 8),
	STR(apr, info, 12),
	STR(apr, private_data, 84),
	END,
};

/* In the order of the attribute IDs, which have no gap. */
static const struct {
	const char *name;
	const struct ddps_cm_field *rows;
} attrs[] = {
	{ "REQ", req_rows },   { "MRA", mra_rows },	      { "REJ", rej_rows },
	{ "REP", rep_rows },   { "RTU", rtu_rows },	      { "DREQ", dreq_rows },
	{ "DREP", drep_rows }, { "SIDR_REQ", sidr_req_rows }, { "SIDR_REP", sidr_rep_rows },
	{ "LAP", lap_rows },   { "APR", apr_rows },
};

const struct ddps_cm_field *ddps_cm_hdr_fields(void)
{
	return hdr_rows;
}

const struct ddps_cm_field *ddps_cm_fields(uint16_t attr)
{
	if (attr < DDPS_CM_REQ || attr > DDPS_CM_APR)
		return NULL;
	return attrs[attr - DDPS_CM_REQ].rows;
}

const char *ddps_cm_attr_name(uint16_t attr)
{
	if (attr < DDPS_CM_REQ || attr > DDPS_CM_APR)
		return "unknown";
	return attrs[attr - DDPS_CM_REQ].name;
}

int ddps_cm_attr_parse(const char *name)
{
	for (int attr = DDPS_CM_REQ; attr <= DDPS_CM_APR; attr++)
		if (!strcmp(attrs[attr - DDPS_CM_REQ].name, name))
			return attr;
	return DDPS_E_INVAL;
}

const char *ddps_cm_reason_name(uint16_t reason)
{
	switch (reason) {
#define DDPS_X(name, value, text)                                                                  \
	case value:                                                                                \
		return text;
		DDPS_CM_REASONS(DDPS_X)
#undef DDPS_X
	default:
		return "unknown reason";
	}
}

/* ---- times in the 5-bit form of CM messages ---- */

#define UNIT_NS 4096

uint64_t ddps_cm_time_ns(unsigned t)
{
	return (uint64_t)UNIT_NS << (t > DDPS_CM_TIME_MAX ? DDPS_CM_TIME_MAX : t);
}

uint8_t ddps_cm_time_code(uint64_t ns)
{
	uint8_t t = 0;

	while (t < DDPS_CM_TIME_MAX && ddps_cm_time_ns(t) < ns)
		t++;
	return t;
}

uint8_t ddps_cm_ack_timeout(unsigned life, unsigned delay)
{
	unsigned trip = life + 1; /* there and back: twice the lifetime */
	unsigned sum;

	/* The exponent of 2^trip + 2^delay, rounded from the larger of the two. */
	if (trip >= delay)
		sum = trip + (delay >= life);
	else
		sum = delay + (trip + 1 >= delay);
	return (uint8_t)(sum > DDPS_CM_TIME_MAX ? DDPS_CM_TIME_MAX : sum);
}
