/* SPDX-License-Identifier: BSD-2-Clause */
/* What cases do that have the target's application work. */
#include "conform/cases/work.h"
#include <string.h>

const char cf_text[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345";

void cf_begin(struct cf *cf, const struct cf_opts *o)
{
	cf_session(cf, o);
	cf_ping(cf);
}

void cf_expect_wc(struct cf *cf, enum ddps_op op, enum ddps_wc_status status)
{
	struct ddps_wc wc = cf_app_wc(cf);

	CF_CHECK(cf, wc.op == op && wc.status == status,
		 "completion: %s of a %s, wanted %s of a %s", ddps_wc_status_name(wc.status),
		 ddps_op_name(wc.op), ddps_wc_status_name(status), ddps_op_name(op));
}

struct cf_read_req cf_take_read(struct cf *cf, uint32_t msn, uint32_t stag, uint64_t to,
				uint32_t size)
{
	struct cf_read_req q;
	const uint8_t *p;
	size_t len;

	cf_recv(cf);
	p = cf_in_payload(cf, &len);
	CF_CHECK(cf, !cf_in_tagged(cf) && cf_in_op(cf) == CF_READ_REQ && cf_in_last(cf),
		 "no Read Request: %s", cf_hex(cf->in.b, cf->in.len));
	CF_CHECK(cf, !cf_in_stag(cf) && cf_in_qn(cf) == 1 && cf_in_msn(cf) == msn && !cf_in_mo(cf),
		 "header of a Read Request: %s", cf_hex(cf->in.b, 18));
	CF_CHECK(cf, len == 28, "Read Request of %zu octets", len);
	CF_CHECK(cf, cf_get32(p + 12) == size && cf_get32(p + 16) == stag && cf_get64(p + 20) == to,
		 "size and source: %s", cf_hex(p, 28));
	q = (struct cf_read_req){ cf_get32(p), size, cf_get64(p + 4) };
	return q;
}

void cf_respond(struct cf *cf, const struct cf_read_req *q)
{
	cf_tagged(cf, CF_TAGGED_L, CF_READ_RESP, q->stag, q->to, cf_text, q->size);
	cf_send(cf);
}

void cf_take_message(struct cf *cf, uint8_t op, uint32_t word, uint32_t msn, uint64_t to,
		     const struct cf_mr *m, uint32_t size)
{
	struct ddps_conn_info info;
	uint32_t got = 0;
	bool last = false;

	CF_CHECK(cf, !ddps_ep_info(cf->app.ep, &info), "application: no information");
	while (!last) {
		const uint8_t *p;
		size_t len;

		cf_recv(cf);
		p = cf_in_payload(cf, &len);
		last = cf_in_last(cf);
		CF_CHECK(cf, cf->in.len <= info.mulpdu, "%zu octets, MULPDU %u", cf->in.len,
			 info.mulpdu);
		CF_CHECK(cf, cf_in_op(cf) == op && cf_in_stag(cf) == word, "octets 1 to 5: %s",
			 cf_hex(cf->in.b, 6));
		if (cf_in_tagged(cf))
			CF_CHECK(cf, op == CF_WRITE && cf_in_to(cf) == to + got, "TO: %s",
				 cf_hex(cf->in.b, 14));
		else
			CF_CHECK(cf, !cf_in_qn(cf) && cf_in_msn(cf) == msn && cf_in_mo(cf) == got,
				 "QN, MSN, MO: %s", cf_hex(cf->in.b, 18));
		CF_CHECK(cf, cf_in_tagged(cf) == (op == CF_WRITE), "T of opcode %02x", op);
		CF_CHECK(cf, got + len <= size && (!len || !memcmp(p, m->mem + got, len)),
			 "other octets than those posted");
		got += (uint32_t)len;
		CF_CHECK(cf, last == (got == size), "L at octet %u of %u", got, size);
	}
}
