/* SPDX-License-Identifier: BSD-2-Clause */
/* CM messages: the worked hex dumps, every field, every truncation, random octets. */
#include "ipoib_cm/wire/wire.h"
#include <criterion/criterion.h>
#include <ddpsess/ipoib_cm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows of a dump: offset, then 16 octets.  What is left out is zero. */
struct row {
	unsigned at;
	const char *hex;
};

static void fill_ipoib_mad(uint8_t mad[256], const struct row *rows, size_t n)
{
	memset(mad, 0, 256);
	for (size_t i = 0; i < n; i++)
		for (unsigned j = 0; j < 16; j++) {
			unsigned octet;

			cr_assert_eq(sscanf(rows[i].hex + 3 * j, "%2x", &octet), 1);
			mad[rows[i].at + j] = (uint8_t)octet;
		}
}

#define FILL(mad, rows) fill_ipoib_mad(mad, rows, sizeof(rows) / sizeof((rows)[0]))

static const struct row req_dump[] = {
	{ 0, "01 07 02 03 00 00 00 00 00 00 00 05 11 22 33 44" },
	{ 16, "00 10 00 00 00 00 00 00 11 22 33 44 00 00 00 00" },
	{ 32, "01 00 00 00 00 00 00 49 00 02 c9 03 00 00 10 00" },
	{ 48, "00 00 00 00 00 00 00 00 00 04 51 04 00 00 00 00" },
	{ 64, "00 00 00 a0 00 ab cd a0 ff ff 40 f8 00 03 00 07" },
	{ 80, "fe 80 00 00 00 00 00 00 00 02 c9 03 00 00 10 01" },
	{ 96, "fe 80 00 00 00 00 00 00 00 02 c9 03 00 00 20 02" },
	{ 112, "00 00 00 07 00 00 08 98 00 00 00 00 00 00 00 00" },
	{ 160, "00 00 00 00 00 00 00 4a 00 00 ff f4 00 00 00 00" },
};
static const struct row rep_dump[] = {
	{ 0, "01 07 02 03 00 00 00 00 00 00 00 05 11 22 33 44" },
	{ 16, "00 13 00 00 00 00 00 00 55 66 77 88 11 22 33 44" },
	{ 32, "00 00 00 00 00 04 52 00 00 00 00 00 00 12 34 00" },
	{ 48, "00 00 78 10 00 02 c9 03 00 00 20 00 00 00 00 49" },
	{ 64, "00 00 80 04 00 00 00 00 00 00 00 00 00 00 00 00" },
};
static const struct row rtu_dump[] = {
	{ 0, "01 07 02 03 00 00 00 00 00 00 00 05 11 22 33 44" },
	{ 16, "00 14 00 00 00 00 00 00 11 22 33 44 55 66 77 88" },
	{ 32, "00 00 00 4a 00 00 ff f4 00 00 00 00 00 00 00 00" },
};
static const struct row rej_dump[] = {
	{ 0, "01 07 02 03 00 00 00 00 00 00 00 05 11 22 33 44" },
	{ 16, "00 12 00 00 00 00 00 00 00 00 00 00 11 22 33 44" },
	{ 32, "00 00 00 1c 00 00 00 00 00 00 00 00 00 00 00 00" },
	{ 96, "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 49" },
	{ 112, "00 00 80 04 00 00 00 00 00 00 00 00 00 00 00 00" },
};
static const struct row dreq_dump[] = {
	{ 0, "01 07 02 03 00 00 00 00 00 00 00 05 11 22 33 44" },
	{ 16, "00 15 00 00 00 00 00 00 11 22 33 44 55 66 77 88" },
	{ 32, "00 04 52 00 00 00 00 00 00 00 00 00 00 00 00 00" },
};

#define TID 0x0000000511223344

static void put_ipoib_mad_priv(uint8_t *at, uint32_t qpn, uint32_t rx_mtu)
{
	const struct ddps_ipoib_priv p = { .qpn = qpn, .rx_mtu = rx_mtu };

	cr_assert_eq(ddps_ipoib_priv_encode(at, &p), 0);
}

static void expect_encodes_to(const struct ddps_cm_mad *m, const uint8_t want[256])
{
	uint8_t out[256];
	struct ddps_cm_mad back;

	cr_assert_eq(ddps_cm_mad_encode(out, m), 0);
	for (unsigned i = 0; i < 256; i++)
		cr_expect_eq(out[i], want[i], "octet %u: %02x, want %02x", i, out[i], want[i]);
	memset(&back, 0xee, sizeof(back));
	cr_assert_eq(ddps_cm_mad_decode(&back, out, 256), 0);
	cr_expect_arr_eq(&back, m, sizeof(back));
}

Test(ipoib_mad, req_matches_the_worked_message,
     .description = "4755-2.3-2 4755-2.3-3 4755-3.2-2 4755-3.2-10 4755-5.1-1")
{
	struct ddps_cm_mad m;
	struct ddps_cm_req *q = &m.u.req;
	uint8_t want[256];

	FILL(want, req_dump);
	ddps_cm_mad_init(&m, DDPS_CM_REQ, TID);
	q->local_id = 0x11223344;
	q->service_id = 0x0100000000000049;
	q->ca_guid = 0x0002c90300001000;
	q->qpn = 0x451;
	q->resp_resources = 4;
	q->remote_cm_timeout = q->local_cm_timeout = 20;
	q->transport = DDPS_CM_RC;
	q->starting_psn = 0xabcd;
	q->pkey = 0xffff;
	q->path_mtu = 4;
	q->max_cm_retries = 15;
	q->srq = 1;
	q->primary.local_lid = 3;
	q->primary.remote_lid = 7;
	ddps_ipoib_gid_parse(q->primary.local_gid, "fe80::2:c903:0:1001");
	ddps_ipoib_gid_parse(q->primary.remote_gid, "fe80::2:c903:0:2002");
	q->primary.rate = 7;
	q->primary.subnet_local = 1;
	q->primary.ack_timeout = 19;
	put_ipoib_mad_priv(q->private_data, 0x4a, 65524);
	expect_encodes_to(&m, want);
}

Test(ipoib_mad, rep_matches_the_worked_message,
     .description = "4755-2.3-4 4755-3.2-3 4755-3.2-10 4755-6-1")
{
	struct ddps_cm_mad m;
	uint8_t want[256];

	FILL(want, rep_dump);
	ddps_cm_mad_init(&m, DDPS_CM_REP, TID);
	m.u.rep.local_id = 0x55667788;
	m.u.rep.remote_id = 0x11223344;
	m.u.rep.qpn = 0x452;
	m.u.rep.starting_psn = 0x1234;
	m.u.rep.target_ack_delay = 15;
	m.u.rep.srq = 1;
	m.u.rep.ca_guid = 0x0002c90300002000;
	put_ipoib_mad_priv(m.u.rep.private_data, 0x49, 32772);
	expect_encodes_to(&m, want);
}

Test(ipoib_mad, rtu_rej_and_dreq_match_the_worked_messages,
     .description = "4755-3.2-4 4755-3.2-10 4755-3.2-11 4755-3.3-6")
{
	struct ddps_cm_mad m;
	uint8_t want[256];

	FILL(want, rtu_dump);
	ddps_cm_mad_init(&m, DDPS_CM_RTU, TID);
	m.u.rtu.local_id = 0x11223344;
	m.u.rtu.remote_id = 0x55667788;
	put_ipoib_mad_priv(m.u.rtu.private_data, 0x4a, 65524);
	expect_encodes_to(&m, want);

	FILL(want, rej_dump);
	ddps_cm_mad_init(&m, DDPS_CM_REJ, TID);
	m.u.rej.remote_id = 0x11223344;
	m.u.rej.reason = DDPS_CM_REJ_CONSUMER;
	put_ipoib_mad_priv(m.u.rej.private_data, 0x49, 32772);
	expect_encodes_to(&m, want);

	FILL(want, dreq_dump);
	ddps_cm_mad_init(&m, DDPS_CM_DREQ, TID);
	m.u.dreq.local_id = 0x11223344;
	m.u.dreq.remote_id = 0x55667788;
	m.u.dreq.remote_qpn = 0x452;
	expect_encodes_to(&m, want);
}

/* The layouts once more, by octet and highest bit as the tables of the format print them. */
static const struct {
	uint16_t attr;
	const char *name;
	unsigned octet, top, width;
} layout[] = {
	{ DDPS_CM_REQ, "local_id", 0, 7, 32 },
	{ DDPS_CM_REQ, "vendor_id", 5, 7, 24 },
	{ DDPS_CM_REQ, "service_id", 8, 7, 64 },
	{ DDPS_CM_REQ, "ca_guid", 16, 7, 64 },
	{ DDPS_CM_REQ, "qkey", 28, 7, 32 },
	{ DDPS_CM_REQ, "qpn", 32, 7, 24 },
	{ DDPS_CM_REQ, "resp_resources", 35, 7, 8 },
	{ DDPS_CM_REQ, "local_eecn", 36, 7, 24 },
	{ DDPS_CM_REQ, "init_depth", 39, 7, 8 },
	{ DDPS_CM_REQ, "remote_eecn", 40, 7, 24 },
	{ DDPS_CM_REQ, "remote_cm_timeout", 43, 7, 5 },
	{ DDPS_CM_REQ, "transport", 43, 2, 2 },
	{ DDPS_CM_REQ, "flow_control", 43, 0, 1 },
	{ DDPS_CM_REQ, "starting_psn", 44, 7, 24 },
	{ DDPS_CM_REQ, "local_cm_timeout", 47, 7, 5 },
	{ DDPS_CM_REQ, "retry_count", 47, 2, 3 },
	{ DDPS_CM_REQ, "pkey", 48, 7, 16 },
	{ DDPS_CM_REQ, "path_mtu", 50, 7, 4 },
	{ DDPS_CM_REQ, "rdc_exists", 50, 3, 1 },
	{ DDPS_CM_REQ, "rnr_retry", 50, 2, 3 },
	{ DDPS_CM_REQ, "max_cm_retries", 51, 7, 4 },
	{ DDPS_CM_REQ, "srq", 51, 3, 1 },
	{ DDPS_CM_REQ, "ext_transport", 51, 2, 3 },
	{ DDPS_CM_REQ, "primary.local_lid", 52, 7, 16 },
	{ DDPS_CM_REQ, "primary.remote_lid", 54, 7, 16 },
	{ DDPS_CM_REQ, "primary.local_gid", 56, 7, 128 },
	{ DDPS_CM_REQ, "primary.remote_gid", 72, 7, 128 },
	{ DDPS_CM_REQ, "primary.flow_label", 88, 7, 20 },
	{ DDPS_CM_REQ, "primary.rate", 91, 5, 6 },
	{ DDPS_CM_REQ, "primary.traffic_class", 92, 7, 8 },
	{ DDPS_CM_REQ, "primary.hop_limit", 93, 7, 8 },
	{ DDPS_CM_REQ, "primary.sl", 94, 7, 4 },
	{ DDPS_CM_REQ, "primary.subnet_local", 94, 3, 1 },
	{ DDPS_CM_REQ, "primary.ack_timeout", 95, 7, 5 },
	{ DDPS_CM_REQ, "alternate.local_lid", 96, 7, 16 },
	{ DDPS_CM_REQ, "alternate.remote_lid", 98, 7, 16 },
	{ DDPS_CM_REQ, "alternate.local_gid", 100, 7, 128 },
	{ DDPS_CM_REQ, "alternate.remote_gid", 116, 7, 128 },
	{ DDPS_CM_REQ, "alternate.flow_label", 132, 7, 20 },
	{ DDPS_CM_REQ, "alternate.rate", 135, 5, 6 },
	{ DDPS_CM_REQ, "alternate.traffic_class", 136, 7, 8 },
	{ DDPS_CM_REQ, "alternate.hop_limit", 137, 7, 8 },
	{ DDPS_CM_REQ, "alternate.sl", 138, 7, 4 },
	{ DDPS_CM_REQ, "alternate.subnet_local", 138, 3, 1 },
	{ DDPS_CM_REQ, "alternate.ack_timeout", 139, 7, 5 },
	{ DDPS_CM_REQ, "sap_supported", 139, 2, 1 },
	{ DDPS_CM_REQ, "private_data", 140, 7, 92 * 8 },
	{ DDPS_CM_MRA, "local_id", 0, 7, 32 },
	{ DDPS_CM_MRA, "remote_id", 4, 7, 32 },
	{ DDPS_CM_MRA, "msg", 8, 7, 2 },
	{ DDPS_CM_MRA, "service_timeout", 9, 7, 5 },
	{ DDPS_CM_MRA, "private_data", 10, 7, 222 * 8 },
	{ DDPS_CM_REJ, "local_id", 0, 7, 32 },
	{ DDPS_CM_REJ, "remote_id", 4, 7, 32 },
	{ DDPS_CM_REJ, "msg", 8, 7, 2 },
	{ DDPS_CM_REJ, "info_len", 9, 7, 7 },
	{ DDPS_CM_REJ, "reason", 10, 7, 16 },
	{ DDPS_CM_REJ, "ari", 12, 7, 72 * 8 },
	{ DDPS_CM_REJ, "private_data", 84, 7, 148 * 8 },
	{ DDPS_CM_REP, "local_id", 0, 7, 32 },
	{ DDPS_CM_REP, "remote_id", 4, 7, 32 },
	{ DDPS_CM_REP, "qkey", 8, 7, 32 },
	{ DDPS_CM_REP, "qpn", 12, 7, 24 },
	{ DDPS_CM_REP, "vendor_id", 15, 7, 8 },
	{ DDPS_CM_REP, "", 19, 7, 8 },
	{ DDPS_CM_REP, "", 23, 7, 8 },
	{ DDPS_CM_REP, "local_eecn", 16, 7, 24 },
	{ DDPS_CM_REP, "starting_psn", 20, 7, 24 },
	{ DDPS_CM_REP, "resp_resources", 24, 7, 8 },
	{ DDPS_CM_REP, "init_depth", 25, 7, 8 },
	{ DDPS_CM_REP, "target_ack_delay", 26, 7, 5 },
	{ DDPS_CM_REP, "failover", 26, 2, 2 },
	{ DDPS_CM_REP, "flow_control", 26, 0, 1 },
	{ DDPS_CM_REP, "rnr_retry", 27, 7, 3 },
	{ DDPS_CM_REP, "srq", 27, 4, 1 },
	{ DDPS_CM_REP, "ca_guid", 28, 7, 64 },
	{ DDPS_CM_REP, "private_data", 36, 7, 196 * 8 },
	{ DDPS_CM_RTU, "local_id", 0, 7, 32 },
	{ DDPS_CM_RTU, "remote_id", 4, 7, 32 },
	{ DDPS_CM_RTU, "private_data", 8, 7, 224 * 8 },
	{ DDPS_CM_DREQ, "local_id", 0, 7, 32 },
	{ DDPS_CM_DREQ, "remote_id", 4, 7, 32 },
	{ DDPS_CM_DREQ, "remote_qpn", 8, 7, 24 },
	{ DDPS_CM_DREQ, "private_data", 12, 7, 220 * 8 },
	{ DDPS_CM_DREP, "local_id", 0, 7, 32 },
	{ DDPS_CM_DREP, "remote_id", 4, 7, 32 },
	{ DDPS_CM_DREP, "private_data", 8, 7, 224 * 8 },
	{ DDPS_CM_SIDR_REQ, "request_id", 0, 7, 32 },
	{ DDPS_CM_SIDR_REQ, "pkey", 4, 7, 16 },
	{ DDPS_CM_SIDR_REQ, "service_id", 8, 7, 64 },
	{ DDPS_CM_SIDR_REQ, "private_data", 16, 7, 216 * 8 },
	{ DDPS_CM_SIDR_REP, "request_id", 0, 7, 32 },
	{ DDPS_CM_SIDR_REP, "status", 4, 7, 8 },
	{ DDPS_CM_SIDR_REP, "info_len", 5, 7, 8 },
	{ DDPS_CM_SIDR_REP, "vendor_id", 6, 7, 16 },
	{ DDPS_CM_SIDR_REP, "", 11, 7, 8 },
	{ DDPS_CM_SIDR_REP, "qpn", 8, 7, 24 },
	{ DDPS_CM_SIDR_REP, "service_id", 12, 7, 64 },
	{ DDPS_CM_SIDR_REP, "qkey", 20, 7, 32 },
	{ DDPS_CM_SIDR_REP, "info", 24, 7, 72 * 8 },
	{ DDPS_CM_SIDR_REP, "private_data", 96, 7, 136 * 8 },
	{ DDPS_CM_LAP, "local_id", 0, 7, 32 },
	{ DDPS_CM_LAP, "remote_id", 4, 7, 32 },
	{ DDPS_CM_LAP, "remote_qpn", 12, 7, 24 },
	{ DDPS_CM_LAP, "remote_cm_timeout", 15, 7, 5 },
	{ DDPS_CM_LAP, "alternate.local_lid", 20, 7, 16 },
	{ DDPS_CM_LAP, "alternate.remote_lid", 22, 7, 16 },
	{ DDPS_CM_LAP, "alternate.local_gid", 24, 7, 128 },
	{ DDPS_CM_LAP, "alternate.remote_gid", 40, 7, 128 },
	{ DDPS_CM_LAP, "alternate.flow_label", 56, 7, 20 },
	{ DDPS_CM_LAP, "alternate.traffic_class", 59, 7, 8 },
	{ DDPS_CM_LAP, "alternate.hop_limit", 60, 7, 8 },
	{ DDPS_CM_LAP, "alternate.rate", 61, 5, 6 },
	{ DDPS_CM_LAP, "alternate.sl", 62, 7, 4 },
	{ DDPS_CM_LAP, "alternate.subnet_local", 62, 3, 1 },
	{ DDPS_CM_LAP, "alternate.ack_timeout", 63, 7, 5 },
	{ DDPS_CM_LAP, "private_data", 64, 7, 168 * 8 },
	{ DDPS_CM_APR, "local_id", 0, 7, 32 },
	{ DDPS_CM_APR, "remote_id", 4, 7, 32 },
	{ DDPS_CM_APR, "info_len", 8, 7, 8 },
	{ DDPS_CM_APR, "status", 9, 7, 8 },
	{ DDPS_CM_APR, "info", 12, 7, 72 * 8 },
	{ DDPS_CM_APR, "private_data", 84, 7, 148 * 8 },
};

#define NLAYOUT (sizeof(layout) / sizeof(layout[0]))

Test(ipoib_mad, every_field_lies_where_the_format_says)
{
	size_t row = 0;

	for (uint16_t attr = DDPS_CM_REQ; attr <= DDPS_CM_APR; attr++)
		for (const struct ddps_cm_field *f = ddps_cm_fields(attr); f->name; f++, row++) {
			cr_assert_lt(row, NLAYOUT);
			cr_expect_eq(layout[row].attr, attr, "%s", f->name);
			cr_expect_str_eq(f->name, layout[row].name);
			cr_expect_eq(f->bit, (24 + layout[row].octet) * 8 + 7 - layout[row].top,
				     "%s", f->name);
			cr_expect_eq(f->width, layout[row].width, "%s", f->name);
		}
	cr_expect_eq(row, NLAYOUT);
}

/* Sets one bit in the octets, by the layout's way of counting. */
static void set_bit(uint8_t mad[256], const struct ddps_cm_field *f, unsigned i)
{
	unsigned bit = f->bit + i;

	mad[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
}

static void expect_ones_go_through(uint16_t attr, const struct ddps_cm_field *f)
{
	struct ddps_cm_mad m;
	uint8_t want[256], out[256];
	uint64_t ones = f->width == 64 ? UINT64_MAX : ((uint64_t)1 << f->width) - 1;

	ddps_cm_mad_init(&m, attr, 0);
	cr_assert_eq(ddps_cm_mad_encode(want, &m), 0);
	for (unsigned i = 0; i < f->width; i++)
		set_bit(want, f, i);
	cr_expect_eq(ddps_cm_field_set(&m, f, ones), 0, "%s", f->name);
	if (f->width < 64)
		cr_expect_eq(ddps_cm_field_set(&m, f, ones + 1), DDPS_E_INVAL, "%s", f->name);
	if (!strcmp(f->name, "info_len")) {
		cr_expect_eq(ddps_cm_mad_encode(out, &m), DDPS_E_INVAL);
		cr_expect_eq(ddps_cm_mad_decode(&m, want, 256), DDPS_E_PROTOCOL);
		return;
	}
	cr_assert_eq(ddps_cm_mad_encode(out, &m), 0);
	cr_expect_arr_eq(out, want, 256, "%s of %s", f->name, ddps_cm_attr_name(attr));
	cr_assert_eq(ddps_cm_mad_decode(&m, want, 256), 0);
	cr_expect_eq(ddps_cm_field_get(&m, f), ones, "%s", f->name);
}

Test(ipoib_mad, every_number_uses_its_bits_and_no_other)
{
	for (uint16_t attr = DDPS_CM_REQ; attr <= DDPS_CM_APR; attr++)
		for (const struct ddps_cm_field *f = ddps_cm_fields(attr); f->name; f++)
			if (f->size && *f->name && !f->shift && f[1].name && *f[1].name)
				expect_ones_go_through(attr, f);
}

Test(ipoib_mad, scattered_vendor_ids_are_one_number)
{
	struct ddps_cm_mad m;
	uint8_t out[256];

	ddps_cm_mad_init(&m, DDPS_CM_REP, 0);
	m.u.rep.vendor_id = 0xa1b2c3;
	cr_assert_eq(ddps_cm_mad_encode(out, &m), 0);
	cr_expect(out[24 + 15] == 0xa1 && out[24 + 19] == 0xb2 && out[24 + 23] == 0xc3);
	m.u.rep.vendor_id = 0;
	cr_assert_eq(ddps_cm_mad_decode(&m, out, 256), 0);
	cr_expect_eq(m.u.rep.vendor_id, 0xa1b2c3);
	m.u.rep.vendor_id = 0x1000000;
	cr_expect_eq(ddps_cm_mad_encode(out, &m), DDPS_E_INVAL);

	ddps_cm_mad_init(&m, DDPS_CM_SIDR_REP, 0);
	m.u.sidr_rep.vendor_id = 0xa1b2c3;
	cr_assert_eq(ddps_cm_mad_encode(out, &m), 0);
	cr_expect(out[24 + 6] == 0xa1 && out[24 + 7] == 0xb2 && out[24 + 11] == 0xc3);
	cr_assert_eq(ddps_cm_mad_decode(&m, out, 256), 0);
	cr_expect_eq(m.u.sidr_rep.vendor_id, 0xa1b2c3);
}

Test(ipoib_mad, reserved_bits_are_ignored_and_not_sent_back, .description = "4391-14-2")
{
	for (uint16_t attr = DDPS_CM_REQ; attr <= DDPS_CM_APR; attr++) {
		struct ddps_cm_mad zero, m;
		uint8_t in[256], clean[256], out[256], used[256] = { 0 };

		ddps_cm_mad_init(&zero, attr, 7);
		cr_assert_eq(ddps_cm_mad_encode(clean, &zero), 0);
		for (const struct ddps_cm_field *f = ddps_cm_fields(attr); f->name; f++)
			for (unsigned i = 0; i < f->width; i++)
				set_bit(used, f, i);
		for (unsigned i = 0; i < 256; i++)
			in[i] = (uint8_t)(i < 24 ? clean[i] : ~used[i]);
		in[18] = in[19] = 0xff;
		cr_assert_eq(ddps_cm_mad_decode(&m, in, 256), 0);
		cr_expect_arr_eq(&m, &zero, sizeof(m), "%s", ddps_cm_attr_name(attr));
		cr_assert_eq(ddps_cm_mad_encode(out, &m), 0);
		cr_expect_arr_eq(out, clean, 256);
	}
}

Test(ipoib_mad, value_that_does_not_fit_is_not_cut)
{
	struct ddps_cm_mad m;
	uint8_t out[256];

	ddps_cm_mad_init(&m, DDPS_CM_REQ, 0);
	m.u.req.qpn = 0x1000000;
	cr_expect_eq(ddps_cm_mad_encode(out, &m), DDPS_E_INVAL);
	m.u.req.qpn = 0xffffff;
	cr_expect_eq(ddps_cm_mad_encode(out, &m), 0);
	m.u.req.max_cm_retries = 16;
	cr_expect_eq(ddps_cm_mad_encode(out, &m), DDPS_E_INVAL);
}

Test(ipoib_mad, information_length_is_72_at_most)
{
	struct ddps_cm_mad m;
	uint8_t out[256];

	ddps_cm_mad_init(&m, DDPS_CM_REJ, 0);
	m.u.rej.info_len = 72;
	cr_assert_eq(ddps_cm_mad_encode(out, &m), 0);
	cr_expect_eq(out[24 + 9], 72 << 1); /* it sits in the high bits */
	cr_expect_eq(ddps_cm_mad_decode(&m, out, 256), 0);
	out[24 + 9] = 73 << 1;
	cr_expect_eq(ddps_cm_mad_decode(&m, out, 256), DDPS_E_PROTOCOL);
	m.u.rej.info_len = 73;
	cr_expect_eq(ddps_cm_mad_encode(out, &m), DDPS_E_INVAL);
}

Test(ipoib_mad, refuses_every_truncation_and_one_octet_more)
{
	struct ddps_cm_mad m, was;
	uint8_t whole[257];

	memset(&m, 0x5a, sizeof(m));
	was = m;
	FILL(whole, req_dump);
	for (size_t n = 0; n < 256; n++) {
		uint8_t *cut = malloc(n ? n : 1);

		memcpy(cut, whole, n);
		cr_expect_eq(ddps_cm_mad_decode(&m, cut, n), DDPS_E_TRUNCATED, "n=%zu", n);
		free(cut);
	}
	whole[256] = 0;
	cr_expect_eq(ddps_cm_mad_decode(&m, whole, 257), DDPS_E_TOO_LONG);
	cr_expect_arr_eq(&m, &was, sizeof(m));
}

Test(ipoib_mad, header_of_another_kind)
{
	static const struct {
		unsigned octet;
		uint8_t value;
		int err;
	} row[] = {
		{ 0, 2, DDPS_E_REVISION },	  { 1, 3, DDPS_E_UNSUPPORTED },
		{ 2, 1, DDPS_E_REVISION },	  { 3, 0x83, DDPS_E_UNSUPPORTED },
		{ 3, 1, DDPS_E_UNSUPPORTED },	  { 17, 0x0f, DDPS_E_UNSUPPORTED },
		{ 17, 0x1b, DDPS_E_UNSUPPORTED }, { 16, 1, DDPS_E_UNSUPPORTED },
	};
	struct ddps_cm_mad m;
	uint8_t in[256];

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		FILL(in, rtu_dump);
		in[row[i].octet] = row[i].value;
		memset(&m, 0, sizeof(m));
		cr_expect_eq(ddps_cm_mad_decode(&m, in, 256), row[i].err, "row %zu", i);
		cr_expect_eq(m.hdr.tid, TID); /* the header says what it was */
	}
	ddps_cm_mad_init(&m, 0x1b, 0);
	cr_expect_eq(ddps_cm_mad_encode(in, &m), DDPS_E_UNSUPPORTED);
}

Test(ipoib_mad, header_goes_out_as_given)
{
	struct ddps_cm_mad m;
	uint8_t out[256];

	ddps_cm_mad_init(&m, DDPS_CM_RTU, 0x0102030405060708);
	m.hdr.method = 0x83;
	m.hdr.status = 0x1234;
	m.hdr.class_specific = 0x5678;
	m.hdr.attr_mod = 0x9abcdef0;
	cr_assert_eq(ddps_cm_mad_encode(out, &m), 0);
	cr_expect_eq(out[3], 0x83);
	cr_expect_arr_eq(out + 4, "\x12\x34\x56\x78\x01\x02\x03\x04\x05\x06\x07\x08\x00\x14", 14);
	cr_expect_arr_eq(out + 18, "\0\0\x9a\xbc\xde\xf0", 6);
}

static uint32_t draw_ipoib_mad_random(uint32_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 17;
	*x ^= *x << 5;
	return *x;
}

Test(ipoib_mad, random_octets_decode_to_what_encodes_again)
{
	uint32_t x = 0x1badb002;

	for (unsigned round = 0; round < 20000; round++) {
		struct ddps_cm_mad a, b;
		uint8_t in[256], out[256];
		int err;

		for (unsigned i = 0; i < 256; i += 4) {
			uint32_t v = draw_ipoib_mad_random(&x);

			memcpy(in + i, &v, 4);
		}
		memcpy(in, "\1\7\2\3", 4);
		in[16] = 0;
		in[17] = (uint8_t)(0x10 + round % 11);
		err = ddps_cm_mad_decode(&a, in, 256);
		if (err) {
			cr_assert_eq(err, DDPS_E_PROTOCOL);
			continue;
		}
		cr_assert_eq(ddps_cm_mad_encode(out, &a), 0);
		cr_assert_eq(ddps_cm_mad_decode(&b, out, 256), 0);
		cr_assert_arr_eq(&a, &b, sizeof(a), "round %u", round);
	}
}

Test(ipoib_mad, random_flips_never_crash)
{
	static const struct {
		const struct row *rows;
		size_t n;
	} dump[] = {
		{ req_dump, 9 }, { rep_dump, 5 }, { rtu_dump, 3 }, { rej_dump, 5 }, { dreq_dump, 3 }
	};
	uint32_t x = 0x2545f491;
	unsigned good = 0, bad = 0;

	for (unsigned round = 0; round < 20000; round++) {
		struct ddps_cm_mad m;
		uint8_t *in = malloc(256);

		fill_ipoib_mad(in, dump[round % 5].rows, dump[round % 5].n);
		for (unsigned flips = draw_ipoib_mad_random(&x) % 8 + 1; flips; flips--)
			in[draw_ipoib_mad_random(&x) % (round & 1 ? 256 : 40)] ^=
				(uint8_t)(1 << draw_ipoib_mad_random(&x) % 8);
		if (ddps_cm_mad_decode(&m, in, 256))
			bad++;
		else
			good++;
		free(in);
	}
	cr_expect(good && bad, "%u good, %u bad", good, bad);
}

Test(ipoib_mad, names)
{
	cr_expect_str_eq(ddps_cm_attr_name(DDPS_CM_REQ), "REQ");
	cr_expect_str_eq(ddps_cm_attr_name(DDPS_CM_APR), "APR");
	cr_expect_str_eq(ddps_cm_attr_name(0x0f), "unknown");
	for (uint16_t attr = DDPS_CM_REQ; attr <= DDPS_CM_APR; attr++)
		cr_expect_eq(ddps_cm_attr_parse(ddps_cm_attr_name(attr)), attr);
	cr_expect_eq(ddps_cm_attr_parse("XYZ"), DDPS_E_INVAL);
	cr_expect_null(ddps_cm_fields(0x0f));
	cr_expect_null(ddps_cm_fields(0x1b));
	cr_expect_str_eq(ddps_cm_reason_name(28), "consumer reject");
	cr_expect_str_eq(ddps_cm_reason_name(34), "unknown reason");
}

Test(ipoib_mad, private_data_has_the_room_of_its_message)
{
	static const size_t room[] = { 92, 222, 148, 196, 224, 220, 224, 216, 136, 168, 148 };
	struct ddps_cm_mad m;
	size_t len = 0;

	for (uint16_t attr = DDPS_CM_REQ; attr <= DDPS_CM_APR; attr++) {
		ddps_cm_mad_init(&m, attr, 0);
		cr_expect_not_null(ddps_cm_private_data(&m, &len));
		cr_expect_eq(len, room[attr - DDPS_CM_REQ], "%s", ddps_cm_attr_name(attr));
	}
	ddps_cm_mad_init(&m, 1, 0);
	cr_expect_null(ddps_cm_private_data(&m, &len));
}

Test(ipoib_mad, octet_strings_are_reached_by_row)
{
	struct ddps_cm_mad m;
	const struct ddps_cm_field *f = ddps_cm_fields(DDPS_CM_REQ);

	ddps_cm_mad_init(&m, DDPS_CM_REQ, 0);
	cr_expect_null(ddps_cm_field_octets(&m, f));
	while (f->size)
		f++;
	cr_expect_str_eq(f->name, "primary.local_gid");
	cr_expect_eq(ddps_cm_field_octets(&m, f), m.u.req.primary.local_gid);
	cr_expect_eq(ddps_cm_field_set(&m, f, 1), DDPS_E_INVAL);
	cr_expect_eq(ddps_cm_field_get(&m, f), 0);
}
