/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parsers of SCTP packets.  A packet is walked chunk by chunk, a chunk parameter by parameter; what
 * a walk knows is where it is and where the end is.  So one step from any place, with any length left,
 * stands for all of them.
 */
#include "sctp/sctp_cookie.c"
#include "sctp/sctp_wire.c"
#include "proof.h"

#define STEP 20u /* octets left in a walk: each number of them up to this */

/* A length as the wire has it, so that Eva knows it. */
static void put_length(uint8_t *p, size_t n)
{
	p[2] = (uint8_t)(n >> 8);
	p[3] = (uint8_t)n;
}

/* Eva cannot tell that two counts whose sum it knows lead to no more than that: the lists of a SACK have
 * a proof of their own, which tries the counts one by one. */
static void data_and_sack(const struct ddps_sc_chunk *c)
{
	struct ddps_sc_data d;
	struct ddps_sc_sack s;

	if (!ddps_sc_decode_data(&d, c))
		read_octets_of(d.p, d.len);
	if (!ddps_sc_decode_sack(&s, c)) {
		/*@ assert c->vlen >= 12; */
	}
}

static void a_chunk(size_t left, size_t len)
{
	uint8_t *p = make_unknown_octets(left);
	struct ddps_rbuf r = ddps_rbuf_init(p, left);
	struct ddps_sc_chunk c;

	if (left >= 4)
		put_length(p, len);
	if (ddps_sc_chunk_next(&r, &c) > 0) {
		/*@ assert r.p - p >= 4 && r.p <= r.end; */
		/*@ assert c.all == p && c.len == len && c.val == p + 4 && c.vlen == len - 4; */
		read_octets_of(c.all, c.len);
		data_and_sack(&c);
	} else {
		/*@ assert left < 4 || len < 4 || len > left; */
	}
}

void sctp_chunks(void)
{
	for (size_t left = 0; left <= STEP; left++) {
		/*@ slevel merge; */
		for (size_t len = 0; len <= left + 1; len++) {
			/*@ slevel merge; */
			a_chunk(left, len);
		}
		a_chunk(left, left);
		a_chunk(left, 65535);
	}
}

static void a_param(size_t left, size_t len)
{
	uint8_t *p = make_unknown_octets(left);
	struct ddps_rbuf r = ddps_rbuf_init(p, left);
	static struct ddps_sc_init i;
	struct ddps_sc_tlv t;

	if (left >= 4)
		put_length(p, len);
	if (ddps_sc_tlv_next(&r, &t) <= 0)
		return;
	/*@ assert r.p - p >= 4 && r.p <= r.end; */
	read_octets_of(t.all, t.len);
	read_octets_of(t.val, t.vlen);
	i.naddr = (unsigned)Frama_C_interval(0, DDPS_SC_LISTED_MAX);
	i.report_len = (size_t)Frama_C_interval(0, sizeof i.report);
	take_param(&i, &t);
	/*@ assert i.naddr <= DDPS_SC_LISTED_MAX && i.report_len <= DDPS_SC_REPORT_MAX; */
	if (i.cookie)
		read_octets_of(i.cookie, t.vlen);
	i.cookie = NULL;
}

void sctp_params(void)
{
	for (size_t left = 0; left <= STEP; left++) {
		/*@ slevel merge; */
		for (size_t len = 0; len <= left + 1; len++) {
			/*@ slevel merge; */
			a_param(left, len);
		}
		a_param(left, left);
		a_param(left, 65535);
	}
}

static void a_head(size_t len)
{
	uint8_t *p = make_unknown_octets(len);
	struct ddps_sc_header h;
	struct ddps_rbuf r;

	if (ddps_sc_header(&h, p, len))
		return;
	/*@ assert len >= DDPS_SC_HDR + 4 && h.src != 0 && h.dst != 0; */
	r = ddps_sc_chunks(p, len);
	/*@ assert r.end - r.p == len - DDPS_SC_HDR; */
	ddps_sc_crc_ok(p, len);
	ddps_sc_crc_put(p, len);
}

void sctp_heads(void)
{
	for (size_t len = 0; len <= MOST; len = longer(len)) {
		/*@ slevel merge; */
		a_head(len);
	}
}

/* What is encoded is as long as it says, or says that it did not fit. */
static void encode_sctp(size_t room, size_t n)
{
	uint8_t out[64], val[64], *at;
	struct ddps_wbuf w = ddps_wbuf_init(out, room);

	Frama_C_make_unknown((char *)val, sizeof val);
	at = ddps_sc_begin_chunk(&w, SC_HEARTBEAT, 0);
	ddps_sc_end_chunk(&w, at, ddps_sc_put_tlv(&w, SC_P_HB_INFO, val, n));
	/*@ assert w.failed || w.p - out == 8 + ((n + 3) & ~3); */
	/*@ assert w.failed || (out[2] << 8 | out[3]) == 8 + n; */
	/*@ assert w.failed == (8 + ((n + 3) & ~3) > room); */
}

void sctp_encoders(void)
{
	for (size_t room = 0; room <= 32; room++) {
		/*@ slevel merge; */
		for (size_t n = 0; n <= 28; n++) {
			/*@ slevel merge; */
			encode_sctp(room, n);
		}
	}
}

static void a_sack(size_t len, unsigned ngaps, unsigned ndups)
{
	struct ddps_sc_chunk c = { .type = SC_SACK, .val = make_unknown_octets(len), .vlen = len };
	uint16_t *p = (uint16_t *)(void *)(input + MOST - len);
	struct ddps_sc_sack s;

	if (len >= 12) { /* as one word each, which is how Eva remembers them */
		p[4] = htobe16((uint16_t)ngaps);
		p[5] = htobe16((uint16_t)ndups);
	}
	if (ddps_sc_decode_sack(&s, &c)) {
		/*@ assert len != 12 + 4 * (ngaps + ndups); */
		return;
	}
	/*@ assert len == 12 + 4 * (ngaps + ndups); */
	/*@ assert s.ngaps == ngaps && s.ndups == ndups; */
	read_octets_of(s.gaps, 4u * s.ngaps);
	read_octets_of(s.dups, 4u * s.ndups);
}

/* Every pair of counts that fits, those next to it, and the largest. */
void sctp_sacks(void)
{
	for (size_t len = 0; len <= 48; len++) {
		const unsigned fit = len < 12 ? 0 : (unsigned)(len - 12) / 4;

		/*@ slevel merge; */
		for (unsigned ngaps = 0; ngaps <= fit + 1; ngaps++) {
			/*@ slevel merge; */
			a_sack(len, ngaps, fit < ngaps ? 0 : fit - ngaps);
			a_sack(len, ngaps, fit < ngaps ? 1 : fit - ngaps + 1);
		}
		a_sack(len, 65535, 65535);
		a_sack(len, 0, 65535);
	}
	for (unsigned ngaps = 0; ngaps <= 372; ngaps += ngaps < 4 || ngaps > 368 ? 1 : 52) {
		/*@ slevel merge; */
		a_sack(MOST, ngaps, 372 - ngaps);
	}
}

#define COOKIE_FIXED 59

/* The MAC of any octets may be right: what is behind it must not depend on that.  Up to the end of the
 * part that is always there; the addresses behind it are a walk. */
static void a_cookie(const uint8_t *p, size_t len)
{
	struct ddps_sc_keys k;
	struct ddps_sc_cookie c;

	Frama_C_make_unknown((char *)&k, sizeof k);
	if (ddps_sc_cookie_open(&k, &c, p, len))
		return;
	/*@ assert len <= DDPS_SC_COOKIE_MAX && c.naddr <= DDPS_SC_LISTED_MAX; */
}

static void use_sctp_address(size_t left, uint8_t family, bool listed)
{
	uint8_t *p = make_unknown_octets(left);
	struct ddps_rbuf r = ddps_rbuf_init(p, left);

	if (left)
		*p = family;
	(void)get_addr(&r, listed);
	/*@ assert r.p >= p && r.p <= r.end; */
}

void sctp_cookies(void)
{
	static uint8_t too_long[DDPS_SC_COOKIE_MAX + 1]; /* than any packet of the proofs */

	for (size_t len = 0; len <= COOKIE_FIXED; len++) {
		/*@ slevel merge; */
		a_cookie(make_unknown_octets(len), len);
	}
	Frama_C_make_unknown((char *)too_long, sizeof too_long);
	a_cookie(too_long, sizeof too_long);
	for (size_t left = 0; left <= 24; left++) {
		/*@ slevel merge; */
		for (unsigned family = 0; family < 8; family++) {
			/*@ slevel merge; */
			use_sctp_address(left, (uint8_t)family, false);
			use_sctp_address(left, (uint8_t)family, true);
		}
		use_sctp_address(left, (uint8_t)Frama_C_interval(7, 255), false);
		use_sctp_address(left, (uint8_t)Frama_C_interval(7, 255), true);
	}
}
