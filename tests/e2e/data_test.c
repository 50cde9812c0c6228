/* SPDX-License-Identifier: BSD-2-Clause */
/* Work requests over real sockets on every wire: Send, RDMA Write, RDMA Read, errors. */
#include "support/e2e.h"
#include <stdlib.h>
#include <string.h>

#define BUF_LEN (1u << 20)

struct bufs {
	uint8_t *src, *dst;
	struct ddps_mr *src_mr, *dst_mr;
};

static void bufs_make(struct e2e *e, struct bufs *b, size_t len)
{
	b->src = malloc(len);
	b->dst = calloc(1, len);
	cr_assert(b->src && b->dst);
	e2e_fill(b->src, len, 42);
	b->src_mr = e2e_reg(e, b->src, len, DDPS_REMOTE_READ);
	b->dst_mr = e2e_reg(e, b->dst, len, DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE);
}

static void bufs_free(struct bufs *b)
{
	cr_expect_eq(ddps_mr_dereg(b->src_mr), 0);
	cr_expect_eq(ddps_mr_dereg(b->dst_mr), 0);
	free(b->src);
	free(b->dst);
}

/* One Send of @len from the initiator, one back from the responder. */
static void echo_octets(struct e2e *e, struct bufs *b, size_t len)
{
	struct e2e_end *ends[2] = { &e->a, &e->b };

	for (int dir = 0; dir < 2; dir++) {
		struct ddps_sge sge = e2e_sge(b->dst, len, b->dst_mr);
		unsigned got = 0;

		memset(b->dst, 0, len);
		cr_assert_eq(ddps_post_recv(ends[!dir]->ep, 1, &sge, len ? 1 : 0), 0);
		cr_assert_eq(e2e_post(ends[dir], DDPS_OP_SEND, b->src, len, b->src_mr, 0, 0), 0);
		while (got != 3) {
			struct ddps_wc wc = e2e_wc(e);

			cr_assert_eq(wc.status, DDPS_WC_SUCCESS, "%s",
				     ddps_wc_status_name(wc.status));
			got |= wc.op == DDPS_OP_SEND ? 1 : 2;
			if (wc.op == DDPS_OP_RECV)
				cr_expect_eq(wc.len, len);
		}
		cr_expect_eq(memcmp(b->src, b->dst, len), 0, "len %zu", len);
	}
}

/* Every pairing of CRC and markers preferences: the wire differs, the data does not. */
E2E_WIRES(data, sends_of_every_size,
	  .description = "5040-5.3-7 5041-5.2-1 5041-5.4-3 5044-7.1.1-5 5044-7.1.1-6 5044-7.1.1-10")
{
	bool tcp = !strncmp(wire, "tcp", 3);

	for (unsigned mode = 0; mode < (tcp ? 16 : 1); mode++) {
		size_t sizes[] = { 0, 1, 2, 3, 4, 64, 1000, 0, 0, 0, 0, 0, BUF_LEN };
		struct bufs b;
		struct e2e e;
		size_t seg;

		e2e_open(&e, wire);
		e.connect.crc = mode & 1;
		e.accept.crc = mode & 2;
		e.connect.markers = mode & 4;
		e.accept.markers = mode & 8;
		e2e_connect(&e);
		cr_assert(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
		if (tcp) {
			const struct ddps_conn_info *i = &e.a.established.info;

			cr_expect_eq(i->mpa.crc, i->transport == DDPS_TRANSPORT_TCP && (mode & 3));
			cr_expect_eq(i->mpa.markers_rx, (mode & 4) != 0);
			cr_expect_eq(i->mpa.markers_tx, (mode & 8) != 0);
		}
		bufs_make(&e, &b, BUF_LEN);
		seg = e.a.established.info.mulpdu - 18;
		sizes[7] = seg - 1;
		sizes[8] = seg;
		sizes[9] = seg + 1;
		sizes[10] = 2 * seg;
		sizes[11] = 2 * seg + 1;
		for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
			echo_octets(&e, &b, sizes[i]);
		e2e_disconnect(&e, &e.a);
		bufs_free(&b);
		e2e_close(&e);
	}
}

E2E_WIRES(data, writes_and_reads_move_memory,
	  .description = "5040-5.1-7 5040-5.2-1 5040-5.2.1-14 5040-5.2.1-18 5041-5.2-8")
{
	static const size_t sizes[] = { 0, 1, 7, 1500, 65536, BUF_LEN };
	struct bufs b;
	struct e2e e;

	e2e_up(&e, wire);
	bufs_make(&e, &b, BUF_LEN);
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		size_t len = sizes[i];

		/* A Read after a Write says that the Write was placed (RFC 5040 5.5). */
		memset(b.dst, 0, BUF_LEN);
		cr_assert_eq(e2e_post(&e.a, DDPS_OP_WRITE, b.src, len, b.src_mr,
				      ddps_mr_stag(b.dst_mr), ddps_mr_to(b.dst_mr)),
			     0);
		cr_assert_eq(e2e_post(&e.a, DDPS_OP_READ, NULL, 0, NULL, 0, 0), 0);
		e2e_expect_wc(&e, &e.a, DDPS_OP_WRITE, DDPS_WC_SUCCESS, 0);
		e2e_expect_wc(&e, &e.a, DDPS_OP_READ, DDPS_WC_SUCCESS, 0);
		cr_expect_eq(memcmp(b.src, b.dst, len), 0, "write of %zu", len);

		/* From the responder too: it reads what the initiator's side holds. */
		memset(b.dst, 0, BUF_LEN);
		cr_assert_eq(e2e_post(&e.b, DDPS_OP_READ, b.dst, len, b.dst_mr,
				      ddps_mr_stag(b.src_mr), ddps_mr_to(b.src_mr)),
			     0);
		e2e_expect_wc(&e, &e.b, DDPS_OP_READ, DDPS_WC_SUCCESS, (uint32_t)len);
		cr_expect_eq(memcmp(b.src, b.dst, len), 0, "read of %zu", len);
	}
	e2e_disconnect(&e, &e.b);
	bufs_free(&b);
	e2e_close(&e);
}

E2E_WIRES(data, more_reads_than_ord_wait_their_turn,
	  .description = "5040-6.1-7 5040-6.1-8 6581-3-d1")
{
	enum { NREADS = 40, PIECE = 3000 };
	struct bufs b;
	struct e2e e;

	e2e_open(&e, wire);
	e.connect.ord = 3;
	e.accept.ird = 3;
	e.accept.ird_hard = true;
	e2e_connect(&e);
	cr_assert_eq(e.a.established.info.ord, 3, "%s", e.a.error.text);
	bufs_make(&e, &b, BUF_LEN);
	for (size_t i = 0; i < NREADS; i++) {
		struct ddps_sge sge = e2e_sge(b.dst + i * PIECE, PIECE, b.dst_mr);
		struct ddps_send_wr wr = { .wr_id = i,
					   .op = DDPS_OP_READ,
					   .sge = &sge,
					   .nsge = 1,
					   .stag = ddps_mr_stag(b.src_mr),
					   .to = ddps_mr_to(b.src_mr) + i * PIECE };

		cr_assert_eq(ddps_post_send(e.a.ep, &wr), 0);
	}
	for (uint64_t i = 0; i < NREADS; i++) {
		struct ddps_wc wc = e2e_wc(&e);

		cr_expect_eq(wc.wr_id, i); /* in order of posting [5040-5.5-16] */
		cr_expect_eq(wc.status, DDPS_WC_SUCCESS);
	}
	cr_expect_eq(memcmp(b.src, b.dst, NREADS * PIECE), 0);
	e2e_disconnect(&e, &e.a);
	bufs_free(&b);
	e2e_close(&e);
}

E2E_WIRES(data, disconnect_carries_out_what_was_posted, .description = "5041-6.2.1-2 5041-6.2.1-3")
{
	enum { NWRITES = 30 };
	struct bufs b;
	struct e2e e;

	e2e_up(&e, wire);
	bufs_make(&e, &b, BUF_LEN);
	for (int i = 0; i < NWRITES; i++)
		cr_assert_eq(e2e_post(&e.a, DDPS_OP_WRITE, b.src, BUF_LEN, b.src_mr,
				      ddps_mr_stag(b.dst_mr), ddps_mr_to(b.dst_mr)),
			     0);
	cr_assert_eq(ddps_disconnect(e.a.ep), 0);
	cr_expect_eq(e2e_post(&e.a, DDPS_OP_SEND, NULL, 0, NULL, 0, 0), DDPS_E_STATE);
	e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_PEER_CLOSED));
	cr_expect_eq(ddps_disconnect(e.b.ep), 0);
	e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_CLOSED));
	cr_expect_eq(e.a.error.code, 0, "%s", e.a.error.text);
	for (int i = 0; i < NWRITES; i++)
		e2e_expect_wc(&e, &e.a, DDPS_OP_WRITE, DDPS_WC_SUCCESS, 0);
	cr_expect_eq(memcmp(b.src, b.dst, BUF_LEN), 0);
	bufs_free(&b);
	e2e_close(&e);
}

static void expect_terminate(struct e2e *e, struct e2e_end *by, struct ddps_triple t)
{
	struct e2e_end *other = by == &e->a ? &e->b : &e->a;
	struct e2e_end *ends[2] = { by, other };

	for (int i = 0; i < 2; i++) {
		e2e_wait(e, ends[i], E2E_SEEN(DDPS_EV_TERMINATED) | E2E_SEEN(DDPS_EV_CLOSED));
		cr_expect_eq(ends[i]->error.code, DDPS_E_TERMINATED);
		cr_expect(ends[i]->error.has_triple);
		cr_expect_eq(ends[i]->error.by_peer, i == 1);
		cr_expect_eq(ends[i]->error.triple.layer, t.layer);
		cr_expect_eq(ends[i]->error.triple.etype, t.etype);
		cr_expect_eq(ends[i]->error.triple.code, t.code, "%s", ends[i]->error.text);
		cr_expect_str_not_empty(ends[i]->error.peer);
	}
}

E2E_WIRES(data, a_write_beyond_the_region_ends_the_session, .description = "5041-7.1-15 5040-7.1-3")
{
	static const uint8_t zero[64];
	struct bufs b;
	struct e2e e;

	e2e_up(&e, wire);
	bufs_make(&e, &b, 4096);
	cr_assert_eq(e2e_post(&e.a, DDPS_OP_WRITE, b.src, 64, b.src_mr, ddps_mr_stag(b.dst_mr),
			      ddps_mr_to(b.dst_mr) + 4096 - 63),
		     0);
	expect_terminate(&e, &e.b, (struct ddps_triple){ 1, 1, 0x01 });
	cr_expect_arr_eq(b.dst + 4096 - 63, zero, 63);
	bufs_free(&b);
	e2e_close(&e);
}

E2E_WIRES(data, a_read_without_the_right_ends_the_session, .description = "5040-7.1-4 5040-7.2-9")
{
	struct bufs b;
	struct e2e e;

	e2e_up(&e, wire);
	bufs_make(&e, &b, 4096);
	cr_assert_eq(e2e_post(&e.a, DDPS_OP_READ, b.dst, 64, b.dst_mr, ddps_mr_stag(b.dst_mr),
			      ddps_mr_to(b.dst_mr)),
		     0);
	expect_terminate(&e, &e.b, (struct ddps_triple){ 0, 1, 0x02 });
	bufs_free(&b);
	e2e_close(&e);
}

E2E_WIRES(data, a_send_without_a_receive_ends_the_session, .description = "5041-7.1-3")
{
	struct bufs b;
	struct e2e e;

	e2e_up(&e, wire);
	bufs_make(&e, &b, 4096);
	cr_assert_eq(e2e_post(&e.a, DDPS_OP_SEND, b.src, 64, b.src_mr, 0, 0), 0);
	expect_terminate(&e, &e.b, (struct ddps_triple){ 1, 2, 0x02 });
	bufs_free(&b);
	e2e_close(&e);
}

E2E_WIRES(data, a_revoked_region_is_out_of_reach, .description = "5041-8.3.1-7 5042-6.2.2-2")
{
	struct bufs b;
	struct e2e e;
	uint32_t stag;
	uint64_t to;

	e2e_up(&e, wire);
	bufs_make(&e, &b, 4096);
	stag = ddps_mr_stag(b.dst_mr);
	to = ddps_mr_to(b.dst_mr);
	cr_assert_eq(ddps_mr_dereg(b.dst_mr), 0);
	b.dst_mr = NULL;
	cr_assert_eq(e2e_post(&e.a, DDPS_OP_WRITE, b.src, 64, b.src_mr, stag, to), 0);
	expect_terminate(&e, &e.b, (struct ddps_triple){ 1, 1, 0x00 });
	cr_expect_eq(b.dst[0], 0);
	bufs_free(&b);
	e2e_close(&e);
}

E2E_WIRES(data, local_mistakes_are_errors_of_the_call)
{
	struct ddps_sge sge[5];
	struct ddps_send_wr wr = { .op = DDPS_OP_SEND, .sge = sge, .nsge = 1 };
	struct bufs b;
	struct e2e e;

	e2e_up(&e, wire);
	bufs_make(&e, &b, 4096);
	sge[0] = e2e_sge(b.src, 4097, b.src_mr);
	cr_expect_eq(ddps_post_send(e.a.ep, &wr), DDPS_E_ACCESS);
	sge[0] = e2e_sge(b.src, 16, b.src_mr);
	sge[0].lkey ^= 1;
	cr_expect_eq(ddps_post_send(e.a.ep, &wr), DDPS_E_ACCESS);
	for (int i = 0; i < 5; i++)
		sge[i] = e2e_sge(b.src, 16, b.src_mr);
	wr.nsge = 5; /* the endpoint takes 4 */
	cr_expect_eq(ddps_post_send(e.a.ep, &wr), DDPS_E_INVAL);
	wr.nsge = 1;
	wr.op = DDPS_OP_RECV;
	cr_expect_eq(ddps_post_send(e.a.ep, &wr), DDPS_E_INVAL);
	cr_expect_eq(ddps_post_recv(e.a.ep, 0, sge, 1), DDPS_E_ACCESS); /* no LOCAL_WRITE */
	/* None of it hurt the session. */
	echo_octets(&e, &b, 4096);
	e2e_disconnect(&e, &e.a);
	bufs_free(&b);
	e2e_close(&e);
}

E2E_WIRES(data, receives_are_flushed_at_the_end, .description = "5041-6.2.2-5 5040-6.2.1-2")
{
	struct bufs b;
	struct e2e e;
	struct ddps_sge sge;

	e2e_up(&e, wire);
	bufs_make(&e, &b, 4096);
	sge = e2e_sge(b.dst, 4096, b.dst_mr);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(ddps_post_recv(e.b.ep, (uint64_t)i, &sge, 1), 0);
	e2e_disconnect(&e, &e.a);
	for (int i = 0; i < 3; i++)
		e2e_expect_wc(&e, &e.b, DDPS_OP_RECV, DDPS_WC_FLUSHED, 0);
	bufs_free(&b);
	e2e_close(&e);
}

/* The receiving side is not driven, so most of a large Write is stuck on this side. */
E2E_WIRES(data, a_region_can_go_while_its_octets_wait_to_leave, .description = "5041-8.3.1-7")
{
	enum { LEN = 64 << 20 };
	uint8_t *src = malloc(LEN), *dst = calloc(1, LEN);
	struct ddps_mr *src_mr, *dst_mr;
	struct e2e e;

	cr_assert(src && dst);
	e2e_up(&e, wire);
	src_mr = e2e_reg(&e, src, LEN, 0);
	dst_mr = e2e_reg(&e, dst, LEN, DDPS_REMOTE_WRITE);
	memset(src, 'x', LEN);
	cr_assert_eq(e2e_post(&e.a, DDPS_OP_WRITE, src, LEN, src_mr, ddps_mr_stag(dst_mr),
			      ddps_mr_to(dst_mr)),
		     0);
	cr_assert_eq(ddps_mr_dereg(src_mr), 0);
	free(src); /* ASan would report any further access */
	e2e_expect_wc(&e, &e.a, DDPS_OP_WRITE, DDPS_WC_LOCAL_ACCESS, 0);
	e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_TERMINATED) | E2E_SEEN(DDPS_EV_CLOSED));
	e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_TERMINATED) | E2E_SEEN(DDPS_EV_CLOSED));
	cr_expect_eq(e.a.error.triple.layer, 0);
	cr_expect_eq(e.a.error.triple.etype, 0);
	/* What arrived is what was there. */
	for (size_t i = 0; i < LEN && dst[i]; i++)
		cr_assert_eq(dst[i], 'x');
	cr_assert_eq(dst[0], 'x');
	cr_assert_eq(dst[LEN - 1], 0);
	cr_expect_eq(ddps_mr_dereg(dst_mr), 0);
	e2e_close(&e);
	free(dst);
}

static int post_more(struct e2e *e, struct bufs *b, unsigned flags, uint32_t nsge)
{
	struct ddps_sge sge = e2e_sge(b->src, 8, b->src_mr);
	struct ddps_send_wr wr = { .op = DDPS_OP_SEND, .flags = flags, .sge = &sge, .nsge = nsge };

	return ddps_post_send(e->a.ep, &wr);
}

static void await_receives(struct e2e *e, unsigned sends, unsigned recvs)
{
	while (sends || recvs) {
		struct ddps_wc wc = e2e_wc(e);

		cr_assert_eq(wc.status, DDPS_WC_SUCCESS);
		if (wc.op == DDPS_OP_RECV)
			cr_assert_geq(recvs--, 1u);
		else
			cr_assert_geq(sends--, 1u);
	}
}

/* Held until the next post, also until one that fails, and let go by an orderly end. */
E2E_WIRES(data, more_lets_requests_wait)
{
	struct bufs b;
	struct ddps_ep_stats st = { .struct_size = sizeof st };
	struct ddps_sge sge;
	struct e2e e;

	e2e_up(&e, wire);
	bufs_make(&e, &b, 4096);
	sge = e2e_sge(b.dst, 4096, b.dst_mr);
	for (int i = 0; i < 5; i++)
		cr_assert_eq(ddps_post_recv(e.b.ep, 1, &sge, 1), 0);
	cr_assert_eq(post_more(&e, &b, DDPS_WR_MORE, 1), 0);
	cr_assert_eq(ddps_ep_stats(e.a.ep, &st), 0);
	cr_expect_eq(st.sent[DDPS_STAT_SEND].messages, 0, "it has not been sent");
	cr_assert_eq(post_more(&e, &b, DDPS_WR_MORE, 1), 0);
	cr_assert_eq(post_more(&e, &b, 0, 1), 0);
	await_receives(&e, 3, 3);
	cr_assert_eq(post_more(&e, &b, DDPS_WR_MORE, 1), 0);
	cr_expect_eq(post_more(&e, &b, DDPS_WR_MORE, 1000), DDPS_E_INVAL);
	await_receives(&e, 1, 1);
	cr_assert_eq(post_more(&e, &b, DDPS_WR_MORE, 1), 0);
	e2e_disconnect(&e, &e.a);
	await_receives(&e, 1, 1);
	bufs_free(&b);
	e2e_close(&e);
}
