/* SPDX-License-Identifier: BSD-2-Clause */
/* The librdmacm port, as far as it goes without a device. */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>
#include "ipoib_cm/ports/port_rdmacm.h"

Test(ipoib_rdmacm, address_octets)
{
	/* flow information zero; the service ID of Linux, and a mask of ones */
	static const uint8_t pkey[] = { 0x80, 0x01 };
	static const uint8_t rest[] = { 0xfe, 0x80, 0,	  0,	0,    0,    0,	  0,
					0,    2,    0xc9, 3,	0,    1,    0,	  2,
					0x10, 0,    0,	  0,	0,    0,    0,	  0x48,
					0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	struct ddps_cm_req req = { .pkey = 0x8001 };
	struct sockaddr_ib a;

	cr_assert_eq(ddps_ipoib_service_id(&req.service_id, DDPS_IPOIB_SID_LINUX, 0x48), 0);
	cr_assert_eq(ddps_ipoib_gid_parse(req.primary.remote_gid, "fe80::2:c903:1:2"), 0);
	ddps_rdmacm_address(&a, &req);
	cr_expect_eq(a.sib_family, AF_IB);
	cr_expect_arr_eq(&a.sib_pkey, pkey, sizeof(pkey));
	cr_expect_eq(a.sib_flowinfo, 0);
	cr_expect_arr_eq(&a.sib_addr, rest, sizeof(rest));
	cr_expect_eq(a.sib_scope_id, 0);
}

Test(ipoib_rdmacm, settable_fields_exist)
{
	const struct ddps_cm_field *f = ddps_cm_fields(DDPS_CM_REQ);
	unsigned n = 0;

	for (; f->name; f++)
		n += ddps_rdmacm_takes(f->name);
	cr_expect_eq(n, 11);
	cr_expect_not(ddps_rdmacm_takes("starting_psn"));
	cr_expect_not(ddps_rdmacm_takes(""));
}

static void tell_ipoib_rdmacm(void *user, const char *event, int status)
{
	(void)user;
	cr_expect_fail("event %s %d without a device", event, status);
}

Test(ipoib_rdmacm, refused_without_device)
{
	struct ddps_rdmacm *r = NULL;
	char why[300] = "";

	if (!access("/dev/infiniband/rdma_cm", F_OK))
		cr_skip_test("this machine has a device");
	cr_assert_eq(ddps_rdmacm_open(&r, tell_ipoib_rdmacm, NULL, why, sizeof(why)),
		     DDPS_E_UNSUPPORTED);
	cr_expect_null(r);
	cr_expect(strlen(why) > 20, "%s", why);
}
