/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every pairing of set-up choices, through real sockets: revision, markers and CRC of either
 * side, model, RTR types of either side, IRD and ORD edges.  Each session carries data both ways.
 */
#include "support/e2e.h"
#include <string.h>
#include <stdio.h>

static const uint16_t edges[][2] = {
	/* initiator's ird, ord */
	{ 0, 0 },
	{ 1, 1 },
	{ 16, DDPS_RD_MAX },
	{ DDPS_RD_ULP, DDPS_RD_ULP },
};
#define NEDGES (sizeof edges / sizeof edges[0])

struct shared {
	uint8_t out[64], in[64];
	struct ddps_mr *mo, *mi;
};

/* The initiator speaks first: without an RTR the responder must wait for it. */
static void talk_both_ways(struct e2e *e, struct shared *s)
{
	struct ddps_sge in = e2e_sge(s->in, sizeof s->in, s->mi);
	struct e2e_end *from[2] = { &e->a, &e->b }, *to[2] = { &e->b, &e->a };

	for (int i = 0; i < 2; i++) {
		memset(s->in, 0, sizeof s->in);
		cr_assert_eq(ddps_post_recv(to[i]->ep, 0, &in, 1), 0);
		cr_assert_eq(e2e_post(from[i], DDPS_OP_SEND, s->out, sizeof s->out, s->mo, 0, 0),
			     0);
		for (int k = 0; k < 2; k++)
			cr_assert_eq(e2e_wc(e).status, DDPS_WC_SUCCESS);
		cr_assert_arr_eq(s->in, s->out, sizeof s->out);
	}
}

static void check_pairing_numbers(const struct e2e *e)
{
	const struct ddps_conn_info *a = &e->a.established.info, *b = &e->b.established.info;

	cr_assert_eq(a->enhanced, !e->connect.plain);
	cr_assert_eq(b->enhanced, a->enhanced);
	cr_assert_eq(b->p2p, e->connect.p2p);
	cr_assert_eq(a->rtr, b->rtr);
	if (a->p2p)
		cr_assert_eq(a->rtr & e->connect.rtr & e->accept.rtr, a->rtr);
	if (!a->enhanced)
		return;
	cr_assert_eq(b->peer_ird, e->connect.ird);
	if (e->connect.ird != DDPS_RD_ULP)
		cr_assert_leq(b->ord, a->ird);
	if (e->connect.ord != DDPS_RD_ULP)
		cr_assert_leq(a->ord, b->ird);
}

static void check_mpa(const struct e2e *e)
{
	const struct ddps_conn_info *a = &e->a.established.info, *b = &e->b.established.info;

	cr_assert_eq(a->mpa.rev, e->connect.plain ? 1 : 2);
	cr_assert_eq(a->mpa.crc, e->connect.crc || e->accept.crc);
	cr_assert_eq(b->mpa.crc, a->mpa.crc);
	cr_assert_eq(a->mpa.markers_rx, e->connect.markers);
	cr_assert_eq(a->mpa.markers_tx, e->accept.markers);
	cr_assert_eq(b->mpa.markers_rx, e->accept.markers);
	cr_assert_eq(b->mpa.markers_tx, e->connect.markers);
}

static void run_pairing(struct e2e *e, struct shared *s, bool tcp)
{
	memset(&e->a, 0, sizeof e->a);
	memset(&e->b, 0, sizeof e->b);
	e->accept_result = 1;
	e2e_connect(e);
	cr_assert(e->a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e->a.error.text);
	cr_assert(e->b.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e->b.error.text);
	check_pairing_numbers(e);
	if (tcp)
		check_mpa(e);
	talk_both_ways(e, s);
	e2e_disconnect(e, &e->a);
	ddps_ep_free(e->a.ep);
	ddps_ep_free(e->b.ep);
	e->a.ep = e->b.ep = NULL;
}

static void models(struct e2e *e, struct shared *s, bool tcp)
{
	for (size_t i = 0; i < NEDGES; i++) {
		e->connect.ird = edges[i][0];
		e->connect.ord = edges[i][1];
		e->connect.p2p = false;
		e->connect.plain = true;
		run_pairing(e, s, tcp);
		e->connect.plain = false;
		run_pairing(e, s, tcp);
		e->connect.p2p = true;
		for (unsigned rtr = 1; rtr <= DDPS_RTR_ALL; rtr++) {
			e->connect.rtr = rtr;
			e->accept.rtr = rtr & 1 ? DDPS_RTR_ALL : rtr;
			run_pairing(e, s, tcp);
		}
	}
}

static void run_all_pairings(const char *wire, bool tcp)
{
	struct shared s = { .out = "each way" };
	struct e2e e;

	e2e_open(&e, wire);
	s.mo = e2e_reg(&e, s.out, sizeof s.out, 0);
	s.mi = e2e_reg(&e, s.in, sizeof s.in, DDPS_LOCAL_WRITE);
	for (unsigned mode = 0; mode < (tcp ? 16 : 1); mode++) {
		e.connect.crc = mode & 1;
		e.accept.crc = mode & 2;
		e.connect.markers = mode & 4;
		e.accept.markers = mode & 8;
		models(&e, &s, tcp);
	}
	e2e_close(&e);
}

Test(pairing, every_choice_over_tcp, .timeout = 120,
     .description = "5044-7.1.1-5 5044-7.1.1-6 5044-7.1.1-10 5044u-10-2 5044u-10-3 6581-9.1-d2")
{
	run_all_pairings(e2e_wires[0], true);
}

Test(pairing, every_choice_over_sctp, .timeout = 120, .description = "6581-7-d2 6581-9.1-d2")
{
	run_all_pairings(e2e_wires[2], false);
}

/* ---- what the URI of tls:// asks of MPA ---- */

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
