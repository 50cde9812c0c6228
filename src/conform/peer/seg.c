/* SPDX-License-Identifier: BSD-2-Clause */
/* DDP segments (RFC 5041 4), built and taken apart; how they travel on either wire. */
#include "conform/peer/inside.h"
#include <string.h>

#define TAGGED_LEN   14u
#define UNTAGGED_LEN 18u
#define READ_LEN     28u

static void put_segment_payload(struct cf *cf, size_t header, const void *p, size_t len)
{
	CF_CHECK(cf, header + len <= 65535, "case: a segment of %zu octets", header + len);
	if (len)
		memcpy(cf->out.b + header, p, len);
	cf->out.len = header + len;
}

void cf_tagged(struct cf *cf, uint8_t ctl, uint8_t op, uint32_t stag, uint64_t to, const void *p,
	       size_t len)
{
	uint8_t *b = cf->out.b;

	b[0] = ctl;
	b[1] = op;
	cf_put32(b + 2, stag);
	cf_put64(b + 6, to);
	put_segment_payload(cf, TAGGED_LEN, p, len);
}

void cf_untagged(struct cf *cf, uint8_t ctl, uint8_t op, uint32_t inv_stag, uint32_t qn,
		 uint32_t msn, uint32_t mo, const void *p, size_t len)
{
	uint8_t *b = cf->out.b;

	b[0] = ctl;
	b[1] = op;
	cf_put32(b + 2, inv_stag);
	cf_put32(b + 6, qn);
	cf_put32(b + 10, msn);
	cf_put32(b + 14, mo);
	put_segment_payload(cf, UNTAGGED_LEN, p, len);
}

void cf_read_req(struct cf *cf, uint32_t msn, uint32_t sink_stag, uint64_t sink_to, uint32_t size,
		 uint32_t src_stag, uint64_t src_to)
{
	uint8_t h[READ_LEN];

	cf_put32(h, sink_stag);
	cf_put64(h + 4, sink_to);
	cf_put32(h + 12, size);
	cf_put32(h + 16, src_stag);
	cf_put64(h + 20, src_to);
	cf_untagged(cf, CF_UNTAGGED_L, CF_READ_REQ, 0, 1, msn, 0, h, sizeof h);
}

uint32_t cf_msn(struct cf *cf, unsigned qn)
{
	CF_CHECK(cf, qn < CF_NQN, "case: queue %u", qn);
	return cf->conn->msn[qn]++;
}

void cf_send(struct cf *cf)
{
	uint8_t b[2 + CF_MAX];

	if (cf->wire == CF_TCP) {
		cf_fpdu_send(cf);
		return;
	}
	cf_put16(b, cf->conn->tx_ssn++);
	memcpy(b + 2, cf->out.b, cf->out.len);
	cf_sctp_write(cf, cf->conn->stream, PPID_SEGMENT, b, 2 + cf->out.len);
}

static void recv_message(struct cf *cf)
{
	const struct cf_msg *m = cf_sctp_in_order(cf);

	CF_CHECK(cf, m->ppid == PPID_SEGMENT, "expected a DDP segment, got PPID %u: %s", m->ppid,
		 cf_hex(m->b, m->len));
	cf->in.len = m->len - 2;
	memcpy(cf->in.b, m->b + 2, cf->in.len);
}

/* What every segment that is sent must be like (RFC 5041 4.1, RFC 5040 4.1). */
static void check_header(struct cf *cf)
{
	const uint8_t *b = cf->in.b;

	CF_CHECK(cf, cf->in.len >= TAGGED_LEN, "segment of %zu octets", cf->in.len);
	CF_CHECK(cf, (b[0] & 0x3f) == 1, "DDP control octet %02x", b[0]);
	CF_CHECK(cf, (b[1] & 0xf0) == 0x40, "RDMAP control octet %02x", b[1]);
	CF_CHECK(cf, b[0] & 0x80 || cf->in.len >= UNTAGGED_LEN, "untagged segment of %zu octets",
		 cf->in.len);
}

void cf_recv(struct cf *cf)
{
	bool mine = cf_want(cf, "a DDP segment");
	uint64_t since = cf_now();

	if (cf->wire == CF_TCP)
		cf_fpdu_recv(cf);
	else
		recv_message(cf);
	check_header(cf);
	cf_heard(cf, cf_part_of(cf), since);
	cf_wanted(cf, mine);
}

void cf_recv_op(struct cf *cf, uint8_t op)
{
	bool mine = cf_want(cf,
			    op == CF_TERM	 ? "a Terminate"
			    : op == CF_READ_RESP ? "an RDMA Read Response"
			    : op == CF_READ_REQ	 ? "an RDMA Read Request"
						 : "an RDMA message of opcode %u",
			    op & 15u);

	do
		cf_recv(cf);
	while (!cf->self && cf_in_op(cf) != op && cf_in_op(cf) != CF_TERM);
	cf_wanted(cf, mine);
}

/* ---- cf->in ---- */

bool cf_in_tagged(struct cf *cf)
{
	return cf->in.b[0] & 0x80;
}

bool cf_in_last(struct cf *cf)
{
	return cf->in.b[0] & 0x40;
}

uint8_t cf_in_op(struct cf *cf)
{
	return cf->in.b[1];
}

uint32_t cf_in_stag(struct cf *cf)
{
	return cf_get32(cf->in.b + 2);
}

uint64_t cf_in_to(struct cf *cf)
{
	CF_CHECK(cf, cf_in_tagged(cf), "expected a tagged segment: %s",
		 cf_hex(cf->in.b, cf->in.len));
	return cf_get64(cf->in.b + 6);
}

static uint32_t untagged_field(struct cf *cf, size_t at)
{
	CF_CHECK(cf, !cf_in_tagged(cf), "expected an untagged segment: %s",
		 cf_hex(cf->in.b, cf->in.len));
	return cf_get32(cf->in.b + at);
}

uint32_t cf_in_qn(struct cf *cf)
{
	return untagged_field(cf, 6);
}

uint32_t cf_in_msn(struct cf *cf)
{
	return untagged_field(cf, 10);
}

uint32_t cf_in_mo(struct cf *cf)
{
	return untagged_field(cf, 14);
}

const uint8_t *cf_in_payload(struct cf *cf, size_t *len)
{
	size_t h = cf_in_tagged(cf) ? TAGGED_LEN : UNTAGGED_LEN;

	*len = cf->in.len - h;
	return cf->in.b + h;
}

/* ---- the same in short ---- */

#define SINK 0x70696e67u

uint32_t cf_question(struct cf *cf)
{
	uint32_t msn = cf_msn(cf, 1);

	cf_read_req(cf, msn, SINK, msn, 0, 0xffffffff, UINT64_MAX);
	return msn;
}

void cf_answer(struct cf *cf)
{
	bool mine = cf_want(cf, "the answer to an RDMA Read of 0 octets, which shows that the "
				"session goes on");
	size_t len;

	cf_recv_op(cf, CF_READ_RESP);
	CF_CHECK(cf, cf_in_tagged(cf) && cf_in_op(cf) == CF_READ_RESP,
		 "expected a Read Response to a zero-length Read, got %s",
		 cf_hex(cf->in.b, cf->in.len));
	cf_in_payload(cf, &len);
	CF_CHECK(cf, !len && cf_in_last(cf) && cf_in_stag(cf) == SINK,
		 "wrong answer to a zero-length Read: %s", cf_hex(cf->in.b, cf->in.len));
	cf_wanted(cf, mine);
}

void cf_ping(struct cf *cf)
{
	uint32_t msn = cf_question(cf);

	cf_send(cf);
	cf_answer(cf);
	CF_CHECK(cf, cf_in_to(cf) == msn, "the answer to another Read: %s",
		 cf_hex(cf->in.b, cf->in.len));
}
