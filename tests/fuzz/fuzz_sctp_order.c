/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive order of a stream pair next to a plain model of it, and messages that SCTP hands out
 * in parts.
 */
#include "fuzz.h"
#include "sctp_ddp/sd_order.h"
#include "sctp_ddp/backend/sd_part.h"
#include "sctp_ddp/sd_wire.h"
#include <ddpsess/err.h>

#define STEPS_MAX 600

/* Message lengths by DDP-SSN, 0: not here. */
struct model {
	uint16_t len[65536];
	uint16_t next;
	unsigned count;
	size_t octets;
};

static size_t get_ssn_length(uint16_t ssn)
{
	return 2u + ssn % 61;
}

static void arrive_in_order(struct ddps_sd_order *o, struct model *m, uint16_t ssn)
{
	uint16_t ahead = (uint16_t)(ssn - m->next);
	enum ddps_sd_place place = ddps_sd_order_check(o, ssn), want = DDPS_SD_AHEAD;
	uint8_t *data;

	if (ahead >= DDPS_SD_WINDOW)
		want = DDPS_SD_OLD;
	else if (m->len[ssn])
		want = DDPS_SD_DUPLICATE;
	else if (!ahead)
		want = DDPS_SD_NEXT;
	FUZZ_CHECK(place == want);
	if (place != DDPS_SD_NEXT && place != DDPS_SD_AHEAD)
		return;
	data = malloc(get_ssn_length(ssn));
	FUZZ_CHECK(data);
	memset(data, ssn & 0xff, get_ssn_length(ssn));
	FUZZ_CHECK(!ddps_sd_order_hold(o, ssn, DDPS_SD_PPID_SEGMENT, data, get_ssn_length(ssn)));
	free(data);
	m->len[ssn] = (uint16_t)get_ssn_length(ssn);
	m->count++;
	m->octets += ddps_sd_order_cost(get_ssn_length(ssn));
}

static void take_order_turn(struct ddps_sd_order *o, struct model *m, bool back)
{
	struct ddps_sd_held *h = ddps_sd_order_take(o);

	FUZZ_CHECK(!h == !m->len[m->next]);
	if (!h)
		return;
	FUZZ_CHECK(h->ssn == m->next && h->len == m->len[m->next]);
	for (size_t i = 0; i < h->len; i++)
		FUZZ_CHECK(h->data[i] == (m->next & 0xff));
	if (back) {
		ddps_sd_order_untake(o, h);
		return;
	}
	m->octets -= ddps_sd_order_cost(h->len);
	m->len[m->next++] = 0;
	m->count--;
	free(h);
}

static void strip(struct ddps_sd_order *o, struct model *m)
{
	ddps_sd_order_strip(o);
	for (size_t i = 0; i < 65536; i++) {
		if (!m->len[i])
			continue;
		m->octets -= m->len[i] - 2u;
		m->len[i] = 2;
	}
}

static void order(struct ddps_rbuf *in)
{
	static struct model m;
	struct ddps_sd_order o = { 0 };

	memset(&m, 0, sizeof m);
	o.next = m.next = ddps_rbuf_u16(in);
	for (int i = 0; i < STEPS_MAX && fuzz_more(in); i++) {
		unsigned b = ddps_rbuf_u8(in);

		if (b < 0x80)
			arrive_in_order(&o, &m, (uint16_t)(m.next + b));
		else if (b < 0xa0)
			arrive_in_order(&o, &m, (uint16_t)(m.next + ddps_rbuf_u16(in)));
		else if (b < 0xf0)
			take_order_turn(&o, &m, b & 1);
		else if (b < 0xf8)
			ddps_sd_order_trim(&o);
		else
			strip(&o, &m);
		FUZZ_CHECK(o.next == m.next && o.count == m.count && o.octets == m.octets);
	}
	ddps_sd_order_reset(&o);
	FUZZ_CHECK(!o.count && !o.octets && !o.next);
}

/* What several reads bring is one message, or too long. */
static void parts(struct ddps_rbuf *in)
{
	uint8_t *shared = malloc(DDPS_SD_MSG_MAX);
	struct ddps_sd_part p = { 0 };
	size_t room, sum = 0;

	FUZZ_CHECK(shared);
	while (fuzz_more(in)) {
		uint8_t *at = ddps_sd_part_room(&p, shared, &room);
		size_t n = 1u + ddps_rbuf_u16(in);

		FUZZ_CHECK(room + sum == DDPS_SD_MSG_MAX);
		n = n < room ? n : room;
		memset(at, (int)(sum % 251), n);
		if (ddps_sd_part_hold(&p, at, n)) {
			FUZZ_CHECK(sum + n >= DDPS_SD_MSG_MAX);
			break;
		}
		FUZZ_CHECK(p.own && p.own[sum] == sum % 251 && p.own[sum + n - 1] == sum % 251);
		sum += n;
		FUZZ_CHECK(p.len == sum);
	}
	ddps_sd_part_drop(&p);
	free(shared);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ddps_rbuf in = ddps_rbuf_init(data, size);

	if (ddps_rbuf_u8(&in) & 1)
		parts(&in);
	else
		order(&in);
	return 0;
}
