/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory revoked under a transfer, work flushed, one direction closed: how sessions end. */
#include "support/e2e.h"
#include <string.h>
#include <sys/mman.h>

#define LEN   (4u << 20)
#define COUNT 8

/* The wires, and TCP without CRC: direct placement. */
#define NWAYS (E2E_NWIRES + 1)

static void open_teardown_pair(struct e2e *e, int way)
{
	e2e_open(e, e2e_wires[way % E2E_NWIRES]);
	if (way >= E2E_NWIRES)
		e->connect.crc = e->accept.crc = false;
	e2e_connect(e);
	cr_assert(e->b.seen & E2E_SEEN(DDPS_EV_ESTABLISHED));
}

/* Memory whose every use after take_memory_away() is a fault. */
static uint8_t *map_revoked_memory(void)
{
	uint8_t *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	return p;
}

static void take_memory_away(uint8_t *p, struct ddps_mr *mr)
{
	cr_assert_eq(ddps_mr_dereg(mr), 0);
	cr_assert_eq(munmap(p, LEN), 0);
}

/* The first octets have arrived, the last have not. */
static void midway(struct e2e *e, const volatile uint8_t *dst)
{
	while (!dst[0])
		cr_assert_geq(ddps_progress(e->ctx, 1000), 0);
}

static void expect_teardown_end(struct e2e *e, struct e2e_end *finder, struct ddps_triple t)
{
	struct e2e_end *other = finder == &e->a ? &e->b : &e->a;

	e2e_wait(e, finder, E2E_SEEN(DDPS_EV_TERMINATED) | E2E_SEEN(DDPS_EV_CLOSED));
	e2e_wait(e, other, E2E_SEEN(DDPS_EV_TERMINATED) | E2E_SEEN(DDPS_EV_CLOSED));
	cr_expect_not(finder->error.by_peer);
	cr_expect(other->error.by_peer);
	cr_expect_eq(memcmp(&finder->error.triple, &t, sizeof t), 0, "%s", finder->error.text);
	cr_expect_eq(memcmp(&other->error.triple, &t, sizeof t), 0, "%s", other->error.text);
}

/* @n completions of @end, in the order of posting from @id on: some that succeeded, then one or
 * none with @last, then flushed ones.  Returns how many succeeded. */
static unsigned count_good_in_order(struct e2e *e, const struct e2e_end *end, uint64_t id,
				    unsigned n, enum ddps_wc_status last)
{
	unsigned good = 0, i;

	for (i = 0; i < n; i++) {
		struct ddps_wc wc = e2e_wc(e);

		cr_expect_eq(wc.ep, end->ep);
		cr_expect_eq(wc.wr_id, id + i);
		if (wc.status == DDPS_WC_SUCCESS && good == i)
			good++;
		else
			cr_expect_eq(wc.status, i == good ? last : DDPS_WC_FLUSHED, "%u: %s", i,
				     ddps_wc_status_name(wc.status));
	}
	return good;
}

static int post_teardown_wr(struct e2e_end *end, enum ddps_op op, uint64_t id, void *buf,
			    struct ddps_mr *mr, uint32_t stag, uint64_t to)
{
	struct ddps_sge sge = e2e_sge(buf, LEN, mr);
	struct ddps_send_wr wr = {
		.wr_id = id, .op = op, .sge = &sge, .nsge = 1, .stag = stag, .to = to
	};

	return ddps_post_send(end->ep, &wr);
}

/* Requests of one kind between two regions of their own, begun and not ended. */
struct transfer {
	uint8_t *src, *dst;
	struct ddps_mr *ms, *md;
};

static struct transfer under_way(struct e2e *e, int way, enum ddps_op op, unsigned n)
{
	bool reads = op == DDPS_OP_READ;
	struct transfer t = { .src = map_revoked_memory(), .dst = map_revoked_memory() };
	struct ddps_mr *far;

	open_teardown_pair(e, way);
	memset(t.src, 'x', LEN);
	t.ms = e2e_reg(e, t.src, LEN, reads ? DDPS_REMOTE_READ : 0);
	t.md = e2e_reg(e, t.dst, LEN, reads ? DDPS_LOCAL_WRITE : DDPS_REMOTE_WRITE);
	far = reads ? t.ms : t.md;
	for (uint64_t k = 0; k < n; k++)
		cr_assert_eq(post_teardown_wr(&e->a, op, k, reads ? t.dst : t.src,
					      reads ? t.md : t.ms, ddps_mr_stag(far),
					      ddps_mr_to(far)),
			     0);
	midway(e, t.dst);
	return t;
}

Test(teardown, a_region_is_revoked_while_the_peer_writes, .timeout = 120,
     .description = "5040-8.1.1-6 5042-6.2.2-2 5040-8.1.1-4 5040-7-1")
{
	for (int way = 0; way < NWAYS; way++) {
		struct e2e e;
		struct transfer t = under_way(&e, way, DDPS_OP_WRITE, COUNT);

		take_memory_away(t.dst, t.md);
		expect_teardown_end(&e, &e.b, (struct ddps_triple){ 1, 1, 0x00 });
		cr_expect_lt(count_good_in_order(&e, &e.a, 0, COUNT, DDPS_WC_FLUSHED), COUNT);
		take_memory_away(t.src, t.ms);
		e2e_close(&e);
	}
}

Test(teardown, a_posted_receive_is_revoked_while_it_is_filled, .timeout = 120,
     .description = "5040-8.1.1-6 5042-6.2.2-2 5041-6.2.2-5")
{
	for (int way = 0; way < NWAYS; way++) {
		uint8_t *src = map_revoked_memory(), *dst = map_revoked_memory(), other[8];
		struct ddps_mr *ms, *md, *mo;
		struct ddps_sge sge;
		struct ddps_wc wc;
		struct e2e e;

		open_teardown_pair(&e, way);
		memset(src, 'x', LEN);
		ms = e2e_reg(&e, src, LEN, 0);
		md = e2e_reg(&e, dst, LEN, DDPS_LOCAL_WRITE);
		mo = e2e_reg(&e, other, sizeof other, DDPS_LOCAL_WRITE);
		sge = e2e_sge(dst, LEN, md);
		cr_assert_eq(ddps_post_recv(e.b.ep, 10, &sge, 1), 0);
		sge = e2e_sge(other, sizeof other, mo);
		cr_assert_eq(ddps_post_recv(e.b.ep, 11, &sge, 1), 0);
		cr_assert_eq(post_teardown_wr(&e.a, DDPS_OP_SEND, 1, src, ms, 0, 0), 0);
		midway(&e, dst);
		take_memory_away(dst, md);
		e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_TERMINATED));
		for (unsigned recvs = 0, n = 0; n < 3; n++) {
			wc = e2e_wc(&e);
			if (wc.op == DDPS_OP_SEND)
				continue; /* it may have left entirely */
			cr_expect_eq(wc.wr_id, 10 + recvs);
			cr_expect_eq(wc.status, recvs ? DDPS_WC_FLUSHED : DDPS_WC_LOCAL_ACCESS);
			recvs++;
		}
		expect_teardown_end(&e, &e.b, (struct ddps_triple){ 1, 0, 0x00 });
		take_memory_away(src, ms);
		e2e_close(&e);
	}
}

Test(teardown, the_sink_of_a_read_is_revoked_under_way, .timeout = 120,
     .description = "5040-8.1.1-6 5042-6.2.2-2")
{
	for (int way = 0; way < NWAYS; way++) {
		struct e2e e;
		struct transfer t = under_way(&e, way, DDPS_OP_READ, 3);

		take_memory_away(t.dst, t.md);
		expect_teardown_end(&e, &e.a, (struct ddps_triple){ 1, 1, 0x00 });
		cr_expect_lt(count_good_in_order(&e, &e.a, 0, 3, DDPS_WC_LOCAL_ACCESS), 3);
		take_memory_away(t.src, t.ms);
		e2e_close(&e);
	}
}

Test(teardown, the_source_of_a_read_is_revoked_under_way, .timeout = 120,
     .description = "5040-4.8-16 5040-8.1.1-5")
{
	for (int way = 0; way < NWAYS; way++) {
		struct e2e e;
		struct transfer t = under_way(&e, way, DDPS_OP_READ, 8);

		take_memory_away(t.src, t.ms);
		expect_teardown_end(&e, &e.b, (struct ddps_triple){ 0, 1, 0x00 });
		cr_expect_lt(count_good_in_order(&e, &e.a, 0, 8, DDPS_WC_REMOTE), 8);
		take_memory_away(t.dst, t.md);
		e2e_close(&e);
	}
}

Test(teardown, an_abort_flushes_in_the_order_of_posting, .timeout = 120,
     .description = "5041-6.2.2-5 5040-5.5-15 5041-6.2.2-1")
{
	static const enum ddps_op ops[COUNT] = { DDPS_OP_SEND,	DDPS_OP_READ, DDPS_OP_WRITE,
						 DDPS_OP_WRITE, DDPS_OP_READ, DDPS_OP_SEND,
						 DDPS_OP_SEND,	DDPS_OP_WRITE };

	for (int way = 0; way < 2 * NWAYS; way++) {
		uint8_t *buf = map_revoked_memory();
		struct ddps_wc wc;
		struct ddps_mr *mr;
		struct e2e e;

		e2e_open(&e, e2e_wires[way / 2 % E2E_NWIRES]);
		e.attr.no_recv = DDPS_NO_RECV_STALL;
		e2e_connect(&e);
		mr = e2e_reg(&e, buf, LEN, DDPS_LOCAL_WRITE | DDPS_REMOTE_READ | DDPS_REMOTE_WRITE);
		for (uint64_t i = 0; i < COUNT; i++)
			cr_assert_eq(post_teardown_wr(&e.a, ops[i], i, buf, mr, ddps_mr_stag(mr),
						      ddps_mr_to(mr)),
				     0);
		for (uint64_t i = 0; i < 3; i++)
			cr_assert_eq(ddps_post_recv(e.a.ep, 100 + i, NULL, 0), 0);
		if (way & 1) /* as far as it goes: the peer takes no Send */
			while (ddps_progress(e.ctx, 0) > 0)
				;
		cr_assert_eq(ddps_abort(e.a.ep), 0);
		for (unsigned n[2] = { 0 }; n[0] < COUNT || n[1] < 3;) {
			bool recv;

			wc = e2e_wc(&e);
			recv = wc.op == DDPS_OP_RECV;
			cr_expect_eq(wc.wr_id, n[recv] + (recv ? 100 : 0));
			/* The Read behind the first Send is never answered. */
			if (n[recv]++ || recv)
				cr_expect_eq(wc.status, DDPS_WC_FLUSHED);
		}
		cr_expect_eq(ddps_cq_poll(e.cq, &wc, 1), 0, "each exactly once");
		cr_expect_eq(post_teardown_wr(&e.a, DDPS_OP_SEND, 9, buf, mr, 0, 0), DDPS_E_STATE);
		cr_expect_eq(ddps_post_recv(e.a.ep, 9, NULL, 0), DDPS_E_STATE);
		e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_CLOSED));
		take_memory_away(buf, mr);
		e2e_close(&e);
	}
}

Test(teardown, one_direction_closed_the_other_works_on, .timeout = 60,
     .description = "5041-6.2.1-5 5041-6.2.1-6 5041-6.2.1-7 5041-6.2.1-8 5040-6.2-1")
{
	for (int way = 0; way < 2; way++) { /* SCTP's sessions have no half-close */
		uint8_t src[64] = "after the close", dst[64] = "";
		struct ddps_mr *mr, *md;
		struct ddps_sge sge;
		struct e2e e;

		open_teardown_pair(&e, way);
		mr = e2e_reg(&e, src, sizeof src, DDPS_REMOTE_READ);
		md = e2e_reg(&e, dst, sizeof dst, DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE);
		sge = e2e_sge(dst + 32, 32, md);
		cr_assert_eq(ddps_post_recv(e.a.ep, 1, &sge, 1), 0);
		/* MPA's responder is mute before the initiator's first message. */
		cr_assert_eq(e2e_post(&e.a, DDPS_OP_WRITE, NULL, 0, NULL, 0, 0), 0);
		e2e_expect_wc(&e, &e.a, DDPS_OP_WRITE, DDPS_WC_SUCCESS, 0);
		cr_assert_eq(ddps_disconnect(e.a.ep), 0);
		e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_PEER_CLOSED));
		cr_expect_eq(e2e_post(&e.b, DDPS_OP_READ, dst, 8, md, ddps_mr_stag(mr),
				      ddps_mr_to(mr)),
			     DDPS_E_STATE, "its response could not come");
		cr_assert_eq(e2e_post(&e.b, DDPS_OP_WRITE, src, 16, mr, ddps_mr_stag(md),
				      ddps_mr_to(md)),
			     0);
		cr_assert_eq(e2e_post(&e.b, DDPS_OP_SEND, src, 16, mr, 0, 0), 0);
		for (int i = 0; i < 3; i++)
			cr_expect_eq(e2e_wc(&e).status, DDPS_WC_SUCCESS);
		cr_expect_arr_eq(dst, src, 16);
		cr_expect_arr_eq(dst + 32, src, 16);
		cr_assert_eq(ddps_disconnect(e.b.ep), 0);
		e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_CLOSED));
		e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_CLOSED));
		cr_expect_eq(e.a.error.code, 0, "%s", e.a.error.text);
		cr_expect_eq(e.b.error.code, 0, "%s", e.b.error.text);
		e2e_close(&e);
	}
}

/* A second pair on the same context, over SCTP on the same association. */
Test(teardown, an_erroneous_session_leaves_its_neighbour_alone, .timeout = 60,
     .description = "5040-7-2 5041-3-10 5040-7-3 5041-3-11 5040-5.5-1")
{
	for (int way = 0; way < E2E_NWIRES; way++) {
		struct e2e_end first[2];
		struct ddps_mr *mr;
		uint8_t buf[64];
		struct e2e e;

		open_teardown_pair(&e, way);
		first[0] = e.a;
		first[1] = e.b;
		e.a = e.b = (struct e2e_end){ 0 };
		e2e_connect(&e);
		cr_assert(e.b.seen & E2E_SEEN(DDPS_EV_ESTABLISHED));
		mr = e2e_reg(&e, buf, sizeof buf, DDPS_REMOTE_READ); /* not to be written */
		cr_assert_eq(e2e_post(&first[0], DDPS_OP_WRITE, buf, 8, mr, ddps_mr_stag(mr),
				      ddps_mr_to(mr)),
			     0);
		for (unsigned seen[2] = { 0 }; !seen[0] || !seen[1];) {
			struct ddps_event ev;

			cr_assert_eq(ddps_event_wait(e.ctx, &ev, E2E_MS), 0);
			cr_assert(ev.ep == first[0].ep || ev.ep == first[1].ep);
			seen[ev.ep == first[1].ep] |= ev.type == DDPS_EV_CLOSED;
		}
		e2e_expect_wc(&e, &first[0], DDPS_OP_WRITE, DDPS_WC_SUCCESS, 0);
		cr_expect_eq(e2e_post(&first[0], DDPS_OP_SEND, NULL, 0, NULL, 0, 0), DDPS_E_STATE);
		cr_assert_eq(ddps_post_recv(e.b.ep, 1, NULL, 0), 0);
		cr_assert_eq(e2e_post(&e.a, DDPS_OP_SEND, NULL, 0, NULL, 0, 0), 0);
		for (int i = 0; i < 2; i++)
			cr_expect_eq(e2e_wc(&e).status, DDPS_WC_SUCCESS);
		e2e_disconnect(&e, &e.a);
		ddps_ep_free(first[0].ep);
		ddps_ep_free(first[1].ep);
		e2e_close(&e);
	}
}

/* Receives of a shared queue may be revoked too: it costs the session that took one. */
Test(teardown, a_shared_receive_is_revoked, .timeout = 60, .description = "5040-8.1.1-6")
{
	for (int way = 0; way < NWAYS; way++) {
		uint8_t *bad = map_revoked_memory(), *src = map_revoked_memory();
		struct ddps_mr *mb, *ms;
		struct ddps_srq *srq;
		struct ddps_sge sge;
		struct ddps_wc wc;
		struct e2e e;

		e2e_open(&e, e2e_wires[way % E2E_NWIRES]);
		cr_assert_eq(ddps_srq_new(e.pd, 4, 1, NULL, &srq), 0);
		e.attr.srq = srq;
		e.connect.crc = e.accept.crc = way < E2E_NWIRES;
		e2e_connect(&e);
		ms = e2e_reg(&e, src, LEN, 0);
		mb = e2e_reg(&e, bad, LEN, DDPS_LOCAL_WRITE);
		sge = e2e_sge(bad, LEN, mb);
		cr_assert_eq(ddps_post_srq_recv(srq, 7, &sge, 1), 0);
		cr_assert_eq(ddps_post_srq_recv(srq, 8, NULL, 0), 0);
		take_memory_away(bad, mb);
		cr_assert_eq(post_teardown_wr(&e.a, DDPS_OP_SEND, 1, src, ms, 0, 0), 0);
		expect_teardown_end(&e, &e.b, (struct ddps_triple){ 1, 0, 0x00 });
		do
			wc = e2e_wc(&e);
		while (wc.op == DDPS_OP_SEND);
		cr_expect_eq(wc.ep, e.b.ep);
		cr_expect_eq(wc.wr_id, 7);
		cr_expect_eq(wc.status, DDPS_WC_LOCAL_ACCESS);
		while (ddps_cq_poll(e.cq, &wc, 1) == 1)
			cr_expect_eq(wc.op, DDPS_OP_SEND, "the other one was not taken");
		take_memory_away(src, ms);
		e2e_close(&e);
	}
}

/* ---- work posted too late: attr.flush_late ---- */

static void late_is_flushed(const char *uri)
{
	static uint8_t buf[64];
	struct ddps_mr *mr;
	struct ddps_sge sge;
	struct e2e e;

	e2e_open(&e, uri);
	e.attr.flush_late = true;
	e2e_connect(&e);
	mr = e2e_reg(&e, buf, sizeof buf, DDPS_LOCAL_WRITE);
	sge = e2e_sge(buf, sizeof buf, mr);
	cr_assert_eq(ddps_post_recv(e.b.ep, 1, &sge, 1), 0);
	e2e_disconnect(&e, &e.a);
	e2e_expect_wc(&e, &e.b, DDPS_OP_RECV, DDPS_WC_FLUSHED, 0);
	cr_assert_eq(ddps_cq_arm(e.cq, true), 0);
	cr_assert_eq(ddps_post_recv(e.b.ep, 2, &sge, 1), 0);
	cr_assert_eq(e2e_post(&e.a, DDPS_OP_WRITE, buf, 8, mr, 1, 0), 0);
	cr_assert_eq(e2e_post(&e.a, DDPS_OP_RECV, buf, 8, mr, 1, 0), DDPS_E_INVAL);
	e2e_expect_wc(&e, &e.b, DDPS_OP_RECV, DDPS_WC_FLUSHED, 0);
	e2e_expect_wc(&e, &e.a, DDPS_OP_WRITE, DDPS_WC_FLUSHED, 0);
	ddps_mr_dereg(mr);
	e2e_close(&e);
}

Test(teardown, late_work_is_flushed, .timeout = 60)
{
	for (int i = 0; i < E2E_NWIRES; i++)
		late_is_flushed(e2e_wires[i]);
}

Test(teardown, an_abort_without_a_connection_flushes, .timeout = 60)
{
	static uint8_t buf[64];
	struct ddps_ep *ep;
	struct ddps_sge sge;
	struct ddps_mr *mr;
	struct ddps_wc wc;
	struct e2e e;

	e2e_open(&e, e2e_wires[0]);
	mr = e2e_reg(&e, buf, sizeof buf, DDPS_LOCAL_WRITE);
	sge = e2e_sge(buf, sizeof buf, mr);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &ep), 0);
	cr_assert_eq(ddps_abort(ep), DDPS_E_STATE);
	ddps_ep_free(ep);
	e.attr.flush_late = true;
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &ep), 0);
	for (uint64_t i = 0; i < 2; i++) {
		cr_assert_eq(ddps_post_recv(ep, i, &sge, 1), 0);
		cr_assert_eq(ddps_abort(ep), 0);
		cr_assert_eq(ddps_cq_poll(e.cq, &wc, 1), 1);
		cr_assert_eq(wc.wr_id, i);
		cr_assert_eq(wc.status, DDPS_WC_FLUSHED);
	}
	ddps_ep_free(ep);
	ddps_mr_dereg(mr);
	e2e_close(&e);
}
