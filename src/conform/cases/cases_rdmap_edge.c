/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 5040: limits reached while messages are under way, the fence, full completion queues. */
#include "conform/cases/work.h"
#include <string.h>

#define HUGE_READ (16u << 20) /* more than sockets on either side hold */

/* Two Reads may be outstanding, and two are, since nothing of their responses is taken. */
static void one_read_too_many(struct cf *cf)
{
	const struct cf_opts o = { .ird_w = 16, .ord_w = 2 };
	struct cf_mr m = cf_app_mr(cf, HUGE_READ, DDPS_REMOTE_READ);

	cf->app.param.ird = 2;
	cf->app.param.ird_hard = true;
	cf_session(cf, &o);
	for (unsigned i = 0; i < 3; i++) {
		cf_read_req(cf, cf_msn(cf, 1), i, i, HUGE_READ - i, m.stag, m.to + i);
		cf_send(cf);
	}
	cf_expect_term_in(cf, CF_READ_RESP, 0x1202, CF_DDP);
}

/* The header that comes back says how far the response came. */
static void source_revoked(struct cf *cf)
{
	struct cf_mr m = cf_app_mr(cf, HUGE_READ, DDPS_REMOTE_READ);
	uint32_t got = 0;
	size_t len;

	cf_session(cf, NULL);
	cf_read_req(cf, cf_msn(cf, 1), 0xa501, 0x1000, HUGE_READ, m.stag, m.to);
	cf_send(cf);
	cf_recv(cf);
	ddps_mr_dereg(m.mr);
	while (cf_in_op(cf) == CF_READ_RESP) {
		CF_CHECK(cf, cf_in_to(cf) == 0x1000u + got && !cf_in_last(cf), "response: %s",
			 cf_hex(cf->in.b, 14));
		cf_in_payload(cf, &len);
		got += (uint32_t)len;
		cf_recv(cf);
	}
	/* What must come back: TOs moved on, the octets left. */
	cf_put64(cf->out.b + 18 + 4, 0x1000u + got);
	cf_put32(cf->out.b + 18 + 12, HUGE_READ - got);
	cf_put64(cf->out.b + 18 + 20, m.to + got);
	cf_check_term(cf, 0x0100, CF_RDMAP);
}

/* A Terminate waits for a segment boundary, not for the end of a Send. */
static void cuts_a_send(struct cf *cf)
{
	struct cf_mr m = cf_app_mr(cf, HUGE_READ, 0);

	cf_begin(cf, NULL);
	cf_app_post(cf, DDPS_OP_SEND, 0, &m, HUGE_READ, 0, 0);
	cf_recv(cf);
	CF_CHECK(cf, cf_in_op(cf) == CF_SEND && !cf_in_last(cf), "no Send: %s",
		 cf_hex(cf->in.b, 18));
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, 1, 1, cf_text, 8);
	cf_send(cf);
	cf_expect_term_in(cf, CF_SEND, 0x1100, CF_DDP);
	CF_CHECK(cf, cf_app_wc(cf).status == DDPS_WC_FLUSHED, "a Send that was cut succeeded");
}

/* Nothing behind a fence starts before the Reads ahead of it have their responses. */
static void fence(struct cf *cf)
{
	struct cf_mr m = cf_app_mr(cf, 64, DDPS_LOCAL_WRITE);
	struct cf_read_req q[2];

	cf_begin(cf, NULL);
	cf_app_post(cf, DDPS_OP_READ, 0, &m, 8, 1, 2);
	cf_app_post(cf, DDPS_OP_READ, 0, &m, 8, 3, 4);
	cf_app_post(cf, DDPS_OP_SEND, DDPS_WR_FENCE, &m, 8, 0, 0);
	q[0] = cf_take_read(cf, 1, 1, 2, 8);
	q[1] = cf_take_read(cf, 2, 3, 4, 8);
	cf_ping(cf); /* no Send */
	cf_respond(cf, &q[0]);
	cf_expect_wc(cf, DDPS_OP_READ, DDPS_WC_SUCCESS);
	cf_ping(cf); /* still none */
	cf_respond(cf, &q[1]);
	cf_recv(cf);
	CF_CHECK(cf, cf_in_op(cf) == CF_SEND, "no Send after the responses: %s",
		 cf_hex(cf->in.b, 18));
	cf_expect_wc(cf, DDPS_OP_READ, DDPS_WC_SUCCESS);
	cf_expect_wc(cf, DDPS_OP_SEND, DDPS_WC_SUCCESS);
}

static void queue_overflow(struct cf *cf)
{
	struct ddps_cq *small;

	CF_CHECK(cf, !ddps_cq_new(cf->app.ctx, 2, &small), "application: no completion queue");
	cf->app.attr.recv_cq = small;
	cf_app_recv(cf, 3, 64);
	cf_session(cf, NULL);
	for (unsigned i = 0; i < 3; i++) {
		cf_untagged(cf, CF_UNTAGGED_L, CF_SEND, 0, 0, cf_msn(cf, 0), 0, cf_text, 8);
		cf_send(cf);
	}
	cf_expect_term(cf, 0x0000, CF_BARE);
}

const struct cf_case cf_cases_rdmap_edge[] = {
	CF_ROLES("rdmap-", "read-over-ird", true, one_read_too_many,
		 "5040-6.1-4 5040-5.2.1-9 5041-7.1-3",
		 "with as many Reads outstanding as IRD allows one more is 1/2/02"),
	CF_ROLES("rdmap-", "source-revoked", true, source_revoked,
		 "5040-4.8-16 5040-8.1.1-6 5041-7.1-20",
		 "a source revoked in mid-response is 0/1/00; the header says how far it came"),
	CF_ROLES("rdmap-", "terminate-cuts-send", true, cuts_a_send, "5040-6.2.1-4 5041-7.1-20",
		 "a Terminate goes out at the next segment, inside a Send"),
	CF_ROLES("rdmap-", "source-fence", true, fence, "5040-5.5-13",
		 "a fenced Send waits for the responses to all Reads before it"),
	CF_ROLES("rdmap-", "cq-overflow", true, queue_overflow, "5040-7.1-2 5040-4.8-11",
		 "a completion queue that overflows is 0/0/00"),
	{ 0 },
};
