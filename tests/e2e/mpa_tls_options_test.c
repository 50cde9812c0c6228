/* SPDX-License-Identifier: BSD-2-Clause */
/* What the URI of tls:// asks of MPA. */
#include "support/e2e.h"
#include <stdio.h>
#include <string.h>

enum { N = 100000 };

static uint8_t out[N], in[N];

/* Both ways, in many FPDUs. */
static void carry_inside_tls(struct e2e *e)
{
	struct ddps_mr *mo = e2e_reg(e, out, N, 0), *mi = e2e_reg(e, in, N, DDPS_LOCAL_WRITE);
	struct ddps_sge sge = e2e_sge(in, N, mi);

	for (int i = 0; i < 2; i++) {
		e2e_fill(out, N, (uint32_t)i);
		cr_assert_eq(ddps_post_recv((i ? &e->a : &e->b)->ep, 0, &sge, 1), 0);
		cr_assert_eq(e2e_post(i ? &e->b : &e->a, DDPS_OP_SEND, out, N, mo, 0, 0), 0);
		for (int k = 0; k < 2; k++)
			cr_assert_eq(e2e_wc(e).status, DDPS_WC_SUCCESS);
		cr_assert_arr_eq(in, out, N);
	}
	ddps_mr_dereg(mo);
	ddps_mr_dereg(mi);
}

static void ask_by_uri(const char *listens, const char *dials, bool crc, bool to_a, bool to_b)
{
	struct ddps_conn_info a, b;
	char uri[128];
	struct e2e e;

	snprintf(uri, sizeof uri, "tls://127.0.0.1:0%s", listens);
	e2e_open(&e, uri);
	strncat(e.uri, dials, sizeof e.uri - strlen(e.uri) - 1);
	e2e_connect(&e);
	cr_assert_eq(e.a.seen, E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
	a = e.a.established.info;
	b = e.b.established.info;
	cr_expect(a.mpa.crc == crc && b.mpa.crc == crc, "%s, %s", listens, dials);
	cr_expect(a.mpa.markers_rx == to_a && b.mpa.markers_tx == to_a, "%s, %s", listens, dials);
	cr_expect(b.mpa.markers_rx == to_b && a.mpa.markers_tx == to_b, "%s, %s", listens, dials);
	carry_inside_tls(&e);
	e2e_close(&e);
}

Test(mpa_tls_options, crc_and_markers_have_to_be_asked_for, .timeout = 60)
{
	ask_by_uri("", "", false, false, false);
	ask_by_uri("?crc=1", "", true, false, false);
	ask_by_uri("", "?crc=1", true, false, false);
	ask_by_uri("?crc=0&markers=1", "", false, false, true);
	ask_by_uri("", "?markers=1", false, true, false);
	ask_by_uri("?crc=1&markers=1", "?crc=1&markers=1", true, true, true);
}
