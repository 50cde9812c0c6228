/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles: what the language takes, and what it says of what it does not. */
#include "edge/profile/vp.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t most[VP_LIMITS] = { [VP_MAX_SGE] = 16 };

static struct vp_profile *parse_profile_text(const char *text)
{
	struct vp_profile *p = calloc(1, sizeof *p);
	struct vf_error e = { 0 };

	cr_assert_eq(vp_parse(p, most, text, strlen(text), &e), 0, "%u:%u: %s", e.line, e.column,
		     e.why);
	return p;
}

Test(vp, a_file_of_everything_is_read)
{
	struct vp_profile *p =
		parse_profile_text("# two\n"
				   "device mlx5_0\n"
				   "face roce\natomics off\n"
				   "guid 0c42:a103:0065:1a2b # hexadecimal\n"
				   "vendor 0x0002c9\npart 1017\nfirmware 16.35.2000\n"
				   "limit max_qp 128\nlimit max_mr_size 1099511627776\n"
				   "port 1\ninterface eth0\nmtu 4096\nwidth 4\nspeed 25\n"
				   "port 2\nstate down\n"
				   "limit max_sge 16\n"
				   "device rnic1\n");
	const struct vp_device *d = p->device;

	cr_assert_eq(p->n, 2);
	cr_expect_str_eq(d->name, "mlx5_0");
	cr_expect(d->roce && !d->atomics);
	cr_expect_eq(d->guid, UINT64_C(0x0c42a10300651a2b));
	cr_expect_eq(d->vendor, 0x2c9);
	cr_expect_eq(d->part, 0x1017);
	cr_expect_str_eq(d->firmware, "16.35.2000");
	cr_expect_eq(d->limit[VP_MAX_QP], 128);
	cr_expect_eq(d->limit[VP_MAX_MR_SIZE], UINT64_C(1) << 40);
	cr_expect_eq(d->limit[VP_MAX_SGE], 16);
	cr_expect_eq(d->limit[VP_MAX_CQ], 0);
	cr_assert_eq(d->ports, 2);
	cr_expect_str_eq(d->port[0].interface, "eth0");
	cr_expect_eq(d->port[0].mtu, 4096);
	cr_expect_eq(d->port[0].width, 2);
	cr_expect_eq(d->port[0].speed, 32);
	cr_expect(!d->port[0].down && d->port[1].down);
	cr_expect_eq(d[1].ports, 1, "one that nobody spoke of");
	cr_expect(!d[1].roce && d[1].atomics);
	free(p);
}

Test(vp, contact_25_a_limit_of_0_is_one)
{
	struct vp_profile *p = parse_profile_text("device a\nlimit max_srq 0\nlimit max_inline 3\n"
						  "limit max_inline 0\nlimit max_sge_rd 0\n"
						  "limit max_sge_rd 7\n");
	const struct vp_device *d = p->device;

	cr_expect_eq(vp_limit(d, VP_MAX_SRQ, 9), 0);
	cr_expect_eq(vp_limit(d, VP_MAX_INLINE, 9), 0, "the last line counts");
	cr_expect_eq(vp_limit(d, VP_MAX_SGE_RD, 9), 7);
	cr_expect_eq(vp_limit(d, VP_MAX_SRQ_WR, 9), 9);
	cr_expect_eq(vp_limit(d, VP_MAX_QP, 9), 9);
	free(p);
}

Test(vp, complaints_name_line_column_and_what_is_expected)
{
	static const struct {
		const char *text;
		unsigned line, column;
		const char *why;
	} row[] = {
		{ "", 1, 1, "expected a device, there is none" },
		{ "# nothing\n", 1, 1, "expected a device" },
		{ "port 1", 1, 1, "expected device, not 'port'" },
		{ "device", 1, 7, "expected a name" },
		{ "device a/b", 1, 8, "expected a name" },
		{ "device \x1b[m", 1, 8, "expected a name" },
		{ "device a\ndevice a", 2, 8, "a name that no other device has" },
		{ "device a\nface opa", 2, 6, "expected iwarp, roce or ib, not 'opa'" },
		{ "device a\nguid 0", 2, 6, "expected a GUID" },
		{ "device a\nguid /", 2, 6, "expected a GUID" },
		{ "device a\nguid 1g", 2, 6, "expected a GUID" },
		{ "device a\nguid 1G", 2, 6, "expected a GUID" },
		{ "device a\nguid 1@", 2, 6, "expected a GUID" },
		{ "device a\nlimit max_qp", 2, 13, "expected a number from 1" },
		{ "device \x7f", 1, 8, "expected a name" },
		{ "device a\nguid 12345678901234567", 2, 6, "expected a GUID" },
		{ "device a\nvendor 0x1234567", 2, 8, "expected a number" },
		{ "device a\nlimit max_fun 3", 2, 7, "expected a limit" },
		{ "device a\nlimit max_qp 0", 2, 14, "expected a number from 1" },
		{ "device a\nlimit max_sge 0", 2, 15, "expected a number from 1" },
		{ "device a\nlimit max_srq x", 2, 15, "expected a number from 0" },
		{ "device a\nlimit max_qp 9999999999", 2, 14, "expected a number from 1" },
		{ "device a\nlimit max_sge 17", 2, 15, "expected 16 at most" },
		{ "device a\nport 2", 2, 6, "expected the next number" },
		{ "device a\nmtu 1024", 2, 1, "expected device, face" },
		{ "device a\nport 1\nmtu 1500", 3, 5, "expected 256, 512" },
		{ "device a\nport 1\nspeed 40", 3, 7, "expected 2.5, 5" },
		{ "device a\nport 1\ninterface abcdefghijklmnop", 3, 11, "expected an interface" },
		{ "device a\nport 1\nwidth 4 x", 3, 9, "expected the end of the line" },
	};
	struct vp_profile *p = calloc(1, sizeof *p);

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct vf_error e = { 0 };

		cr_expect_eq(vp_parse(p, most, row[i].text, strlen(row[i].text), &e), -1, "%s",
			     row[i].text);
		cr_expect_eq(e.line, row[i].line, "%s: line %u", row[i].text, e.line);
		cr_expect_eq(e.column, row[i].column, "%s: column %u", row[i].text, e.column);
		cr_expect(strstr(e.why, row[i].why), "%s: %s", row[i].text, e.why);
	}
	free(p);
}

Test(vp, hexadecimal_of_either_case)
{
	struct vp_profile *p = parse_profile_text("device a\nguid 0FaF:A103:0065:1A2f\n");

	cr_expect_eq(p->device[0].guid, UINT64_C(0x0fafa10300651a2f));
	free(p);
}

Test(vp, one_device_and_one_port_too_many_are_errors)
{
	struct vp_profile *p = calloc(1, sizeof *p);
	struct vf_error e = { 0 };
	char text[400] = "";

	for (int i = 0; i <= VP_DEVICES; i++) {
		size_t n = strlen(text);

		snprintf(text + n, sizeof text - n, "device d%d\n", i);
	}
	cr_expect_eq(vp_parse(p, most, text, strlen(text), &e), -1);
	cr_expect_eq(e.line, VP_DEVICES + 1);
	strcpy(text, "device a\nport 1\nport 2\nport 3\nport 4\nport 5\n");
	cr_expect_eq(vp_parse(p, most, text, strlen(text), &e), -1);
	cr_expect_eq(e.line, 6);
	free(p);
}
