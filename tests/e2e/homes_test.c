/* SPDX-License-Identifier: BSD-2-Clause */
/* SCTP associations with several addresses, and what there is to see of an association. */
#include "support/e2e.h"
#include <stdio.h>
#include <string.h>

#define LISTEN "sctp://127.0.0.1,127.0.0.2,127.0.0.3:0?encap=0"

static struct ddps_assoc_stats assoc_of(const struct e2e_end *end)
{
	struct ddps_assoc_stats st = { .struct_size = sizeof st };

	cr_assert_eq(ddps_ep_assoc_stats(end->ep, &st), 0);
	return st;
}

static struct ddps_path_stats path_of(const struct e2e_end *end, uint32_t i)
{
	struct ddps_path_stats st = { .struct_size = sizeof st };

	cr_assert_eq(ddps_ep_path_stats(end->ep, i, &st), 0);
	return st;
}

/* Turn the context until every path of @end is in state @s. */
static void await_paths(struct e2e *e, const struct e2e_end *end, uint32_t n,
			enum ddps_path_state s)
{
	for (uint32_t i = 0; i < n;) {
		if (path_of(end, i).state == s)
			i++;
		else
			cr_assert_geq(ddps_progress(e->ctx, E2E_MS), 0);
	}
}

static uint32_t in_use(const struct e2e_end *end)
{
	uint32_t i = 0;

	while (!path_of(end, i).in_use)
		i++;
	return i;
}

static void write_some(struct e2e *e, struct e2e_end *end)
{
	static uint8_t out[20000], in[20000];
	struct ddps_mr *mo = e2e_reg(e, out, sizeof out, 0);
	struct ddps_mr *mi = e2e_reg(e, in, sizeof in, DDPS_REMOTE_WRITE | DDPS_REMOTE_READ);

	e2e_fill(out, sizeof out, 7);
	cr_assert_eq(e2e_post(end, DDPS_OP_WRITE, out, sizeof out, mo, ddps_mr_stag(mi),
			      ddps_mr_to(mi)),
		     0);
	e2e_expect_wc(e, end, DDPS_OP_WRITE, DDPS_WC_SUCCESS, sizeof out);
	/* a Read behind it: it has been placed */
	cr_assert_eq(e2e_post(end, DDPS_OP_READ, NULL, 0, mo, 0, 0), 0);
	e2e_expect_wc(e, end, DDPS_OP_READ, DDPS_WC_SUCCESS, 0);
	cr_expect_eq(memcmp(in, out, sizeof in), 0);
	cr_assert_eq(ddps_mr_dereg(mo), 0);
	cr_assert_eq(ddps_mr_dereg(mi), 0);
}

Test(homes, the_first_address_is_primary_and_another_one_can_be_made_so, .timeout = 60)
{
	struct ddps_path_stats p;
	char port[64];
	struct e2e e;

	e2e_open(&e, LISTEN);
	cr_expect_not_null(strstr(e.uri, "//127.0.0.1,127.0.0.2,127.0.0.3:"), "%s", e.uri);
	/* the responder is reached at its second address, and has told the others */
	snprintf(port, sizeof port, "%s", strrchr(e.uri, ':'));
	snprintf(e.uri, sizeof e.uri, "sctp://127.0.0.2,127.0.0.1%s", port);
	e.connect.local = "127.0.0.4,127.0.0.5:0";
	e2e_connect(&e);
	cr_assert(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED));
	cr_expect_eq(strncmp(e.a.established.info.peer, "127.0.0.2:", 10), 0);
	cr_expect_eq(assoc_of(&e.a).paths, 3);
	cr_expect_eq(assoc_of(&e.b).paths, 2);
	await_paths(&e, &e.a, 3, DDPS_PATH_ACTIVE);
	await_paths(&e, &e.b, 2, DDPS_PATH_ACTIVE);
	p = path_of(&e.a, 0);
	cr_expect(p.primary && p.in_use && !strncmp(p.peer, "127.0.0.2:", 10), "%s", p.peer);
	cr_expect(!strncmp(p.local, "127.0.0.4:", 10) || !strncmp(p.local, "127.0.0.5:", 10), "%s",
		  p.local);
	write_some(&e, &e.a);
	cr_expect_eq(path_of(&e.a, 2).flight, 0);
	cr_assert_eq(ddps_ep_set_primary(e.a.ep, 2), 0);
	cr_expect_eq(in_use(&e.a), 2);
	cr_expect(path_of(&e.a, 2).primary && !path_of(&e.a, 0).primary);
	write_some(&e, &e.a);
	write_some(&e, &e.b);
	cr_expect_eq(ddps_ep_set_primary(e.a.ep, 3), DDPS_E_INVAL);
	cr_expect_eq(in_use(&e.a), 2);
	e2e_disconnect(&e, &e.a);
	e2e_close(&e);
}

Test(homes, ipv4_and_ipv6_in_one_association, .timeout = 60)
{
	struct e2e e;

	e2e_open(&e, "sctp://[::1],127.0.0.1:0?encap=0");
	e2e_connect(&e);
	cr_assert(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED));
	await_paths(&e, &e.a, 2, DDPS_PATH_ACTIVE);
	cr_expect_eq(strncmp(path_of(&e.a, 0).peer, "[::1]:", 6), 0);
	cr_expect_eq(strncmp(path_of(&e.a, 1).peer, "127.0.0.1:", 10), 0);
	write_some(&e, &e.a);
	cr_assert_eq(ddps_ep_set_primary(e.a.ep, 1), 0);
	write_some(&e, &e.a);
	e2e_disconnect(&e, &e.a);
	e2e_close(&e);
}

/* An endpoint of two addresses does not answer at a third. */
Test(homes, other_addresses_are_not_served, .timeout = 60)
{
	struct e2e e;
	char *at;

	e2e_open(&e, "sctp://127.0.0.1,127.0.0.2:0?encap=0");
	at = strstr(e.uri, "127.0.0.1,127.0.0.2");
	memmove(at, at + strlen("127.0.0.1,"), strlen(at + strlen("127.0.0.1,")) + 1);
	memcpy(at, "127.0.0.9", 9);
	e.connect.connect_ms = 300;
	e2e_connect(&e);
	cr_expect(e.a.seen & E2E_SEEN(DDPS_EV_FAILED));
	cr_expect_eq(e.a.error.code, DDPS_E_TIMEDOUT);
	e2e_close(&e);
}

/* Nobody is at the first address, and its host says so. */
static void is_second_address_tried(const char *options)
{
	char rest[64];
	struct e2e e;

	snprintf(rest, sizeof rest, "sctp://127.0.0.6:0?%s", options);
	e2e_open(&e, rest);
	snprintf(rest, sizeof rest, "%s", strrchr(e.uri, ':'));
	snprintf(e.uri, sizeof e.uri, "sctp://127.0.0.7,127.0.0.6%s", rest);
	e2e_connect(&e);
	cr_assert(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
	cr_expect_eq(strncmp(e.a.established.info.peer, "127.0.0.6:", 10), 0, "%s",
		     e.a.established.info.peer);
	write_some(&e, &e.a);
	e2e_disconnect(&e, &e.a);
	snprintf(e.uri, sizeof e.uri, "sctp://127.0.0.7,127.0.0.8%s", rest);
	ddps_ep_free(e.a.ep);
	memset(&e.a, 0, sizeof e.a);
	e2e_connect(&e);
	cr_expect(e.a.seen & E2E_SEEN(DDPS_EV_FAILED));
	cr_expect_eq(e.a.error.code, DDPS_E_REFUSED, "%s", e.a.error.text);
	e2e_close(&e);
}

Test(homes, contact_08_the_second_address_is_tried_when_the_first_refuses, .timeout = 60)
{
	is_second_address_tried("backend=native&encap=0");
}

Test(homes, what_takes_no_list_says_so, .timeout = 60)
{
	struct ddps_conn_param p;
	struct ddps_listener *l;
	char why[200];
	struct e2e e;

	e2e_open(&e, "tcp://127.0.0.1:0");
	cr_expect_eq(ddps_uri_check("tcp://127.0.0.1,127.0.0.2:1", why, sizeof why),
		     DDPS_E_ADDRESS);
	cr_expect_eq(ddps_listen(e.ctx, "sctp://127.0.0.1:0?encap=0&local=127.0.0.1", NULL, &l),
		     DDPS_E_ADDRESS);
	ddps_conn_param_init(&p);
	p.local = "127.0.0.1:0";
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.a.ep), 0);
	cr_expect_eq(ddps_connect(e.a.ep, "sctp://127.0.0.1:9?local=127.0.0.1", &p), DDPS_E_INVAL);
	e2e_close(&e);
}

/* ---- the kernel's SCTP; in the guest of tests/interop ---- */

static void need_kernel(void)
{
	if (ddps_has_backend("kernel") != 1)
		cr_skip_test("the kernel has no SCTP");
}

Test(homes_kernel, the_first_address_is_primary_and_another_one_can_be_made_so, .timeout = 60)
{
	struct ddps_path_stats p;
	char port[64];
	struct e2e e;

	need_kernel();
	e2e_open(&e, "sctp://127.0.0.1,127.0.0.2,[::1]:0?backend=kernel&encap=off");
	cr_expect_not_null(strstr(e.uri, "127.0.0.1"), "%s", e.uri);
	cr_expect_not_null(strstr(e.uri, "127.0.0.2"), "%s", e.uri);
	cr_expect_not_null(strstr(e.uri, "[::1]"), "%s", e.uri);
	snprintf(port, sizeof port, "%s", strrchr(e.uri, ':'));
	snprintf(e.uri, sizeof e.uri, "sctp://127.0.0.2,127.0.0.1%s", port);
	e.connect.local = "127.0.0.4,[::1]:0";
	e2e_connect(&e);
	cr_assert(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
	cr_expect_eq(strncmp(e.a.established.info.peer, "127.0.0.2:", 10), 0);
	cr_expect_eq(assoc_of(&e.a).paths, 3);
	cr_expect_eq(assoc_of(&e.b).paths, 2);
	await_paths(&e, &e.a, 3, DDPS_PATH_ACTIVE);
	await_paths(&e, &e.b, 2, DDPS_PATH_ACTIVE);
	p = path_of(&e.a, 0);
	cr_expect(p.primary && p.in_use && !strncmp(p.peer, "127.0.0.2:", 10), "%s", p.peer);
	cr_expect_gt(p.rto_ns, 0);
	cr_expect_gt(p.cwnd, 0);
	cr_expect_geq(p.mtu, 1200);
	cr_expect_eq(p.encap, 0);
	/* what the kernel does not tell */
	cr_expect_eq(p.srtt_ns + p.ssthresh + p.flight + p.retransmitted + p.timeouts + p.errors,
		     0);
	cr_expect_str_eq(p.local, "");
	write_some(&e, &e.a);
	cr_assert_eq(ddps_ep_set_primary(e.a.ep, 2), 0);
	cr_expect_eq(in_use(&e.a), 2);
	cr_expect(path_of(&e.a, 2).primary && !path_of(&e.a, 0).primary);
	write_some(&e, &e.a);
	write_some(&e, &e.b);
	cr_expect_eq(ddps_ep_set_primary(e.a.ep, 3), DDPS_E_INVAL);
	cr_expect_str_eq(assoc_of(&e.a).state, "ESTABLISHED");
	cr_expect_geq(assoc_of(&e.a).chunks_sent, 3);
	cr_expect_geq(assoc_of(&e.b).chunks_received, 3);
	cr_expect_gt(assoc_of(&e.b).peer_rwnd, 0);
	cr_expect_eq(assoc_of(&e.a).timeouts + assoc_of(&e.a).unsent + assoc_of(&e.a).unacked, 0);
	cr_expect_eq(assoc_of(&e.a).out_of_order + assoc_of(&e.a).rwnd, 0);
	e2e_disconnect(&e, &e.a);
	e2e_close(&e);
}

/* Who listens at two addresses does not answer at a third; and one address has no list to show. */
Test(homes_kernel, contact_08_the_second_address_is_tried_when_the_first_refuses, .timeout = 60)
{
	need_kernel();
	is_second_address_tried("backend=kernel&encap=off");
}

Test(homes_kernel, other_addresses_are_not_served, .timeout = 60)
{
	struct e2e e;
	char *at;

	need_kernel();
	e2e_open(&e, "sctp://127.0.0.1,127.0.0.2:0?backend=kernel&encap=off");
	at = strstr(e.uri, "127.0.0.1,127.0.0.2");
	cr_assert(at, "%s", e.uri);
	memmove(at, at + strlen("127.0.0.1,"), strlen(at + strlen("127.0.0.1,")) + 1);
	memcpy(at, "127.0.0.9", 9);
	e2e_connect(&e);
	cr_expect(e.a.seen & E2E_SEEN(DDPS_EV_FAILED));
	cr_expect_eq(e.a.error.code, DDPS_E_REFUSED, "%s", e.a.error.text);
	e2e_close(&e);
}

/* ---- what there is to see ---- */

Test(homes, an_association_can_be_looked_at, .timeout = 60)
{
	struct ddps_assoc_stats a, b;
	struct ddps_path_stats p;
	struct e2e e;

	e2e_up(&e, "sctp://127.0.0.1:0?encap=0");
	write_some(&e, &e.a);
	a = assoc_of(&e.a);
	b = assoc_of(&e.b);
	cr_expect_str_eq(a.state, "ESTABLISHED");
	cr_expect_eq(a.sessions, 1);
	cr_expect_eq(a.paths, 1);
	cr_expect_geq(a.chunks_sent, 3, "Initiate, Write, Read Request");
	cr_expect_geq(a.packets_sent, 4);
	cr_expect_geq(b.chunks_received, 3);
	cr_expect_eq(a.unsent, 0);
	cr_expect_gt(a.rwnd, 0);
	cr_expect_gt(a.peer_rwnd, 0);
	p = path_of(&e.a, 0);
	cr_expect_eq(p.state, DDPS_PATH_ACTIVE);
	cr_expect_str_eq(ddps_path_state_name(p.state), "active");
	cr_expect_gt(p.srtt_ns, 0);
	cr_expect_gt(p.rto_ns, p.srtt_ns);
	cr_expect_gt(p.cwnd, 0);
	cr_expect_geq(p.mtu, 1200);
	cr_expect_gt(p.encap, 0);
	cr_expect_str_eq(p.peer, e.a.established.info.peer);
	cr_expect_eq(strncmp(p.local, "127.0.0.1:", 10), 0);
	e2e_disconnect(&e, &e.a);
	cr_expect_eq(ddps_ep_assoc_stats(e.a.ep, &a), DDPS_E_STATE);
	cr_expect_eq(ddps_ep_path_stats(e.a.ep, 0, &p), DDPS_E_STATE);
	cr_expect_eq(ddps_ep_set_primary(e.a.ep, 0), DDPS_E_STATE);
	e2e_close(&e);
}

Test(homes, what_has_no_association_to_look_at_says_so, .timeout = 60)
{
	const char *const uris[] = { e2e_wires[0], e2e_wires[4] }; /* another SCTP connects */
	struct ddps_assoc_stats a = { .struct_size = sizeof a };
	struct ddps_path_stats p = { .struct_size = sizeof p };
	struct e2e e;

	for (unsigned i = 0; i < 2; i++) {
		e2e_up(&e, uris[i]);
		cr_expect_eq(ddps_ep_assoc_stats(e.a.ep, &a), DDPS_E_UNSUPPORTED);
		cr_expect_eq(ddps_ep_path_stats(e.a.ep, 0, &p), DDPS_E_UNSUPPORTED);
		cr_expect_eq(ddps_ep_set_primary(e.a.ep, 0), DDPS_E_UNSUPPORTED);
		a.struct_size--;
		p.struct_size--;
		cr_expect_eq(ddps_ep_assoc_stats(e.a.ep, &a), DDPS_E_INVAL);
		cr_expect_eq(ddps_ep_path_stats(e.a.ep, 0, &p), DDPS_E_INVAL);
		a.struct_size++;
		p.struct_size++;
		e2e_close(&e);
	}
}
