/* SPDX-License-Identifier: BSD-2-Clause */
/* Which paths the view of the device's folders takes, and which it leaves alone. */
#include "view/view_path.h"
#include <criterion/criterion.h>
#include <string.h>

static const struct {
	const char *path, *to; /* NULL: left alone */
} rows[] = {
	{ "/sys/class/infiniband", "/v/sys/class/infiniband" },
	{ "/sys/class/infiniband/", "/v/sys/class/infiniband" },
	{ "//sys///class/./infiniband/ddp0/.", "/v/sys/class/infiniband/ddp0" },
	{ "/sys/class/infiniband_verbs/uverbs0/ibdev",
	  "/v/sys/class/infiniband_verbs/uverbs0/ibdev" },
	{ "/dev/infiniband/uverbs0", "/v/dev/infiniband/uverbs0" },
	{ "/sys/class/infiniband/ddp0/../ddp1", "/v/sys/class/infiniband/ddp1" },
	{ "/sys/class/net/../infiniband", "/v/sys/class/infiniband" },
	{ "/sys/class/infiniband/../net/lo", "/sys/class/net/lo" },
	{ "/dev/infiniband/../../../etc/infiniband", "/etc/infiniband" },
	{ "/sys/class/.x/../infiniband/.y", "/v/sys/class/infiniband/.y" },
	{ "/sys/class/infiniband2", NULL },
	{ "/sys/class/infiniband_mad", NULL },
	{ "/opt/infiniband/../x", NULL }, /* it may be a link */
	{ "sys/class/infiniband", NULL },
	{ "/etc/passwd", NULL },
	{ "", NULL },
};

Test(view_path, leads_into_the_view_and_nowhere_else)
{
	char buf[64];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const char *got = view_into("/v", rows[i].path, buf, sizeof buf);

		cr_expect_str_eq(got, rows[i].to ? rows[i].to : rows[i].path);
		cr_expect(rows[i].to || got == rows[i].path, "%s", rows[i].path);
	}
	cr_expect_null(view_into("/v", NULL, buf, sizeof buf));
}

/* What does not fit is left alone, whatever it is too long for. */
Test(view_path, long_paths)
{
	static const char path[] = "/sys/class/infiniband/ddp0";
	char buf[64];

	for (size_t len = 0; len < sizeof buf; len++) {
		const char *got;

		memset(buf, 'x', sizeof buf);
		got = view_into("/v", path, buf, len);
		cr_expect_str_eq(got, len < sizeof path + 2 ? path : "/v/sys/class/infiniband/ddp0",
				 "%zu", len);
		for (size_t i = len; i < sizeof buf; i++)
			cr_expect_eq(buf[i], 'x', "%zu of %zu", i, len);
	}
}

Test(view_path, and_out_of_it)
{
	char in[] = "/v/sys/class/infiniband", at[] = "/v", like[] = "/v2/x", other[] = "/dev/null";

	view_out_of("/v", in);
	view_out_of("/v", at);
	view_out_of("/v", like);
	view_out_of("/v", other);
	view_out_of("", other);
	cr_expect_str_eq(in, "/sys/class/infiniband");
	cr_expect_str_eq(at, "/v");
	cr_expect_str_eq(like, "/v2/x");
	cr_expect_str_eq(other, "/dev/null");
}
