/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets to the target and chunks from it. */
#include "conform/sctp/raw.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define PPID	 17u
#define P_HBINFO 1u

/* ---- sending ---- */

void cf_raw_begin_tag(struct cf_raw *r, uint32_t tag)
{
	cf_pkt_begin(&r->out, r->l, tag);
}

void cf_raw_begin(struct cf_raw *r)
{
	cf_raw_begin_tag(r, r->l->peer_tag);
}

void cf_raw_put(struct cf_raw *r, uint8_t type, uint8_t flags, const void *v, size_t len)
{
	uint8_t *at = cf_pkt_chunk(&r->out, type, flags, len);

	if (len)
		memcpy(at, v, len);
}

static unsigned get_raw_number(const struct cf_raw *r)
{
	return r->l->as ? r->l->as->number : 0;
}

static void trace_raw_packet(struct cf_raw *r)
{
	cf_trace_packet(r->cf->trace, false, get_raw_number(r), r->wrong, r->out.b, r->out.len);
	r->wrong = false;
}

void cf_raw_send(struct cf_raw *r)
{
	cf_pkt_send(&r->out, r->l);
	trace_raw_packet(r);
}

void cf_raw_send_bad_sum(struct cf_raw *r)
{
	cf_put32(r->out.b + 8, cf_pkt_sum(r->out.b, r->out.len) ^ 1);
	cf_pkt_send_as_is(&r->out, r->l);
	r->wrong = true;
	trace_raw_packet(r);
}

void cf_raw_say_tag(struct cf_raw *r, uint32_t tag, uint8_t type, uint8_t flags, const void *v,
		    size_t len)
{
	cf_raw_begin_tag(r, tag);
	cf_raw_put(r, type, flags, v, len);
	cf_raw_send(r);
}

void cf_raw_say(struct cf_raw *r, uint8_t type, uint8_t flags, const void *v, size_t len)
{
	cf_raw_say_tag(r, r->l->peer_tag, type, flags, v, len);
}

void cf_raw_put_data(struct cf_raw *r, uint32_t tsn, uint16_t sid, uint16_t ssn, uint8_t flags,
		     uint32_t ppid, const void *p, size_t len)
{
	uint8_t *c = cf_pkt_chunk(&r->out, CF_C_DATA, flags, 12 + len);

	cf_put32(c, tsn);
	cf_put16(c + 4, sid);
	cf_put16(c + 6, ssn);
	cf_put32(c + 8, ppid);
	if (len)
		memcpy(c + 12, p, len);
}

/* An enhanced Initiate without its word: RFC 6581 section 6.  A Terminate answers it. */
void cf_raw_put_question_at(struct cf_raw *r, uint32_t tsn, uint16_t sid, uint8_t flags)
{
	static const uint8_t m[7] = { 0, 0, 0, CF_ENH_INITIATE, 0, 16, 0 };

	cf_raw_put_data(r, tsn, sid, 0, flags, PPID, m, sizeof m);
}

void cf_raw_put_question(struct cf_raw *r, uint16_t sid)
{
	cf_raw_put_question_at(r, r->l->tsn++, sid, RAW_WHOLE | RAW_U);
}

void cf_raw_ask_at(struct cf_raw *r, uint32_t tsn, uint16_t sid, uint8_t flags)
{
	cf_raw_begin(r);
	cf_raw_put_question_at(r, tsn, sid, flags);
	cf_raw_send(r);
}

void cf_raw_ask(struct cf_raw *r, uint16_t sid)
{
	cf_raw_ask_at(r, r->l->tsn++, sid, RAW_WHOLE | RAW_U);
}

void cf_raw_sack_gaps(struct cf_raw *r, uint32_t cum, uint32_t rwnd, const uint16_t (*gap)[2],
		      unsigned ngaps)
{
	uint8_t *c;

	cf_raw_begin(r);
	c = cf_pkt_chunk(&r->out, CF_C_SACK, 0, 12 + 4 * ngaps);
	cf_put32(c, cum);
	cf_put32(c + 4, rwnd);
	cf_put16(c + 8, (uint16_t)ngaps);
	cf_put16(c + 10, 0);
	for (unsigned i = 0; i < ngaps; i++) {
		cf_put16(c + 12 + 4 * i, gap[i][0]);
		cf_put16(c + 14 + 4 * i, gap[i][1]);
	}
	cf_raw_send(r);
}

void cf_raw_sack(struct cf_raw *r, uint32_t cum, uint32_t rwnd)
{
	cf_raw_sack_gaps(r, cum, rwnd, NULL, 0);
}

void cf_raw_shutdown(struct cf_raw *r)
{
	uint8_t v[4];

	cf_put32(v, r->l->cum);
	cf_raw_say(r, CF_C_SHUTDOWN, 0, v, sizeof v);
}

void cf_raw_put_init(struct cf_raw *r, uint8_t type, uint32_t tag, uint32_t rwnd, uint16_t os,
		     uint16_t mis, uint32_t tsn, const void *params, size_t len)
{
	uint8_t *c = cf_pkt_chunk(&r->out, type, 0, 16 + len);

	cf_put32(c, tag);
	cf_put32(c + 4, rwnd);
	cf_put16(c + 8, os);
	cf_put16(c + 10, mis);
	cf_put32(c + 12, tsn);
	if (len)
		memcpy(c + 16, params, len);
}

/* ---- receiving ---- */

/*
 * Whether a packet is the target's and this association's.  An initiator's is not known before its INIT:
 * until then what earlier associations have under way is nobody's.
 */
static bool is_target_packet(struct cf_raw *r, const struct sockaddr_storage *from, socklen_t len)
{
	struct cf_link *l = r->l;
	bool first = !l->peer_port, whole = r->in_len >= RAW_HEADER + 4;

	if (first && (!whole || r->in[RAW_HEADER] != CF_C_INIT))
		return false;
	CF_CHECK(r->cf, whole, "a packet of %zu octets", r->in_len);
	if (cf_get16(r->in + 2) != l->port)
		return false;
	if (first) {
		l->peer_port = cf_get16(r->in);
		l->to = *from;
		l->to_len = len;
	}
	return cf_get16(r->in) == l->peer_port;
}

static bool read_packet(struct cf_raw *r)
{
	struct cf_below *b = r->l->net->below;
	struct sockaddr_storage from = { 0 };
	socklen_t from_len = sizeof from;
	ssize_t got = recvfrom(r->l->fd, r->in, sizeof r->in, MSG_DONTWAIT,
			       (struct sockaddr *)&from, &from_len);
	size_t ip = 0;

	if (got < 0 &&
	    errno == ECONNREFUSED) { /* no answer will come: it is as if dialled in vain */
		r->cf->dialling = true;
		cf_fail(r->cf, "the target is gone: %s", strerror(errno));
	}
	if (got < 0)
		return false;
	if (b->raw && from.ss_family == AF_INET && got)
		ip = (size_t)(r->in[0] & 15) * 4;
	CF_CHECK(r->cf, (size_t)got >= ip, "an IP packet of %zd octets", got);
	r->in_len = (size_t)got - ip;
	memmove(r->in, r->in + ip, r->in_len);
	if (!is_target_packet(r, &from, from_len))
		return false;
	cf_trace_packet(r->cf->trace, true, get_raw_number(r), false, r->in, r->in_len);
	cf_raw_lint(r);
	r->in_off = RAW_HEADER;
	r->in_index = 0;
	r->in_at = cf_now();
	r->npackets++;
	return true;
}

static bool wait_packet(struct cf_raw *r, uint64_t until)
{
	struct pollfd p = { r->l->fd, POLLIN, 0 };
	uint64_t now;
	int ms;

	while (!read_packet(r)) {
		now = cf_now();
		if (now >= until)
			return false;
		ms = cf_provoked_left(r->cf, (int)((until - now) / 1000000) + 1);
		poll(&p, 1, cf_nap(r->cf, until, ms));
		cf_woke(r->cf);
	}
	return true;
}

static void note_data(struct cf_raw *r, const struct cf_raw_chunk *c)
{
	CF_CHECK(r->cf, c->len > 12, "DATA of %zu octets", c->len);
	r->ndata++;
	r->tsn = cf_get32(c->v);
	r->sid = cf_get16(c->v + 4);
	r->nwatched += r->sid == r->watched;
	if (r->tsn == r->l->cum + 1)
		r->l->cum++;
	if (!r->mute)
		cf_raw_sack(r, r->l->cum, CF_RWND);
}

static void note_sack(struct cf_raw *r, const struct cf_raw_chunk *c)
{
	size_t gaps, dups;

	CF_CHECK(r->cf, c->len >= 12, "SACK of %zu octets", c->len);
	gaps = cf_get16(c->v + 8);
	dups = cf_get16(c->v + 10);
	CF_CHECK(r->cf, c->len == 12 + 4 * (gaps + dups), "SACK of %zu octets", c->len);
	r->nsack++;
	r->sack_cum = cf_get32(c->v);
	r->sack_rwnd = cf_get32(c->v + 4);
	r->ngaps = (unsigned)gaps;
	r->ndups = (unsigned)dups;
	for (size_t i = 0; i < gaps && i < 16; i++) {
		r->gap[i][0] = cf_get16(c->v + 12 + 4 * i);
		r->gap[i][1] = cf_get16(c->v + 14 + 4 * i);
	}
	for (size_t i = 0; i < dups && i < 16; i++)
		r->dup[i] = cf_get32(c->v + 12 + 4 * (gaps + i));
}

bool cf_raw_next(struct cf_raw *r, unsigned ms, struct cf_raw_chunk *c)
{
	uint64_t until = cf_now() + ms * 1000000ull;
	const uint8_t *at;
	size_t n;

	if (r->in_off >= r->in_len && !wait_packet(r, until))
		return false;
	at = r->in + r->in_off;
	n = cf_get16(at + 2); /* cf_raw_lint() has seen to lengths */
	*c = (struct cf_raw_chunk){ .type = at[0],
				    .flags = at[1],
				    .v = at + 4,
				    .len = n - 4,
				    .index = r->in_index++,
				    .tag = cf_get32(r->in + 4) };
	r->in_off += n + (-n & 3);
	c->last = r->in_off >= r->in_len;
	if (c->type == CF_C_DATA)
		note_data(r, c);
	else if (c->type == CF_C_SACK)
		note_sack(r, c);
	else if (c->type == CF_C_HEARTBEAT && !r->deaf)
		cf_raw_say(r, CF_C_HEARTBEAT_ACK, 0, c->v, c->len);
	return true;
}

static bool passed_over(int type)
{
	return type == CF_C_DATA || type == CF_C_SACK || type == CF_C_HEARTBEAT || type == 0x84;
}

bool cf_raw_came(struct cf_raw *r, int type, unsigned ms, struct cf_raw_chunk *c)
{
	uint64_t until = cf_now() + ms * 1000000ull, now;
	struct cf_raw_chunk none = { 0 };

	c = c ? c : &none;
	while ((now = cf_now()) < until &&
	       cf_raw_next(r, (unsigned)((until - now) / 1000000) + 1, c)) {
		if (c->type == type)
			return true;
		CF_CHECK(r->cf, passed_over(c->type), "a chunk of type %u (cause %u), not %d",
			 c->type,
			 c->type == CF_C_ABORT || c->type == CF_C_ERROR ? cf_raw_cause(c) : 0,
			 type);
	}
	return false;
}

/* RFC 5043 6: what else comes is of another application. */
static bool is_session_data(const struct cf_raw_chunk *c)
{
	uint32_t ppid = cf_get32(c->v + 8);

	return ppid == PPID_SEGMENT || ppid == PPID_CONTROL;
}

struct cf_raw_chunk cf_raw_want(struct cf_raw *r, int type)
{
	/* An answer to data is the application's, the others are SCTP's own. */
	enum cf_part part = type == CF_C_DATA ? CF_PART_SESSION : CF_PART_SETUP;
	unsigned limit = cf_limit(r->cf, part);
	uint64_t since = cf_now();
	struct cf_raw_chunk c;

	if (cf_raw_came(r, type, limit, &c)) {
		if (type != CF_C_DATA || is_session_data(&c))
			cf_heard(r->cf, part, since);
		return c;
	}
	cf_silent(r->cf, part);
	cf_fail(r->cf, "waited %u ms for a chunk of type %d", limit, type);
}

struct cf_raw_chunk cf_raw_want_data(struct cf_raw *r)
{
	return cf_raw_want(r, CF_C_DATA);
}

void cf_raw_want_answer(struct cf_raw *r, uint16_t sid)
{
	uint32_t cum = r->l->cum;

	do
		cf_raw_want_data(r);
	while (!cf_tsn_before(cum, r->tsn) || r->sid != sid);
}

void cf_raw_watch(struct cf_raw *r, uint16_t sid)
{
	r->watched = sid;
	r->nwatched = 0;
}

void cf_raw_want_sack(struct cf_raw *r, uint32_t cum)
{
	while (r->sack_cum != cum)
		cf_raw_want(r, CF_C_SACK);
}

static void put_raw_heartbeat(struct cf_raw *r, uint32_t tag, uint8_t *info, size_t len)
{
	cf_put16(info, P_HBINFO);
	cf_put16(info + 2, (uint16_t)len);
	CF_CHECK(r->cf, getrandom(info + 4, len - 4, 0) == (ssize_t)len - 4, "no random numbers");
	cf_raw_say_tag(r, tag, CF_C_HEARTBEAT, 0, info, len);
}

void cf_raw_quiet(struct cf_raw *r)
{
	struct cf_raw_chunk c;
	uint8_t info[20];

	put_raw_heartbeat(r, r->l->peer_tag, info, sizeof info);
	c = cf_raw_want(r, CF_C_HEARTBEAT_ACK);
	CF_CHECK(r->cf, c.len == sizeof info && !memcmp(c.v, info, c.len),
		 "HEARTBEAT ACK with %s, the HEARTBEAT had %s", cf_hex(c.v, c.len),
		 cf_hex(info, sizeof info));
	while (!c.last && cf_raw_next(r, 0, &c))
		CF_CHECK(r->cf, passed_over(c.type), "a chunk of type %u", c.type);
}

void cf_raw_quiet_oob(struct cf_raw *r)
{
	uint8_t info[20];
	struct cf_raw_chunk c;
	uint32_t tag;

	CF_CHECK(r->cf, getrandom(&tag, sizeof tag, 0) == sizeof tag, "no random numbers");
	put_raw_heartbeat(r, tag, info, sizeof info);
	c = cf_raw_want(r, CF_C_ABORT);
	CF_CHECK(r->cf, c.tag == tag && c.flags == RAW_T, "ABORT with tag %08x, flags %u", c.tag,
		 c.flags);
}

uint16_t cf_raw_last_stream(const struct cf_raw *r)
{
	uint16_t n = r->peer.mis < CF_SCTP_STREAMS ? r->peer.mis : CF_SCTP_STREAMS;

	return (uint16_t)((r->peer.os < n ? r->peer.os : n) - 1);
}

void cf_raw_alive(struct cf_raw *r)
{
	/* each time another: a stream that was refused rests for a while */
	uint16_t sid = (uint16_t)(cf_raw_last_stream(r) - r->nalive++ % 16);

	cf_raw_ask(r, sid);
	cf_raw_want_answer(r, sid);
}

/*
 * An initiator may close its socket, and say nothing.  A responder is asked again: while it forgets the
 * association it may lose a packet, as one is lost on the way.
 */
void cf_raw_dead(struct cf_raw *r)
{
	bool must = r->cf->c->target == CF_RESPONDER;
	unsigned tries = must ? 3 : 1;
	uint8_t info[20];
	struct cf_raw_chunk c;

	for (unsigned i = 0; i < tries; i++) {
		put_raw_heartbeat(r, r->l->peer_tag, info, sizeof info);
		if (!cf_raw_came(r, CF_C_ABORT, must ? r->cf->run->limit_ms / 3 : 200, &c))
			continue;
		CF_CHECK(r->cf, c.flags == RAW_T && c.tag == r->l->peer_tag,
			 "ABORT with tag %08x, flags %u", c.tag, c.flags);
		return;
	}
	CF_CHECK(r->cf, !must, "no ABORT answers what is out of the blue");
}

unsigned cf_raw_cause(const struct cf_raw_chunk *c)
{
	return c->len >= 4 ? cf_get16(c->v) : 0;
}

const uint8_t *cf_raw_param(const uint8_t *p, size_t len, uint16_t type, size_t *vlen)
{
	for (size_t off = 0; off + 4 <= len;) {
		size_t n = cf_get16(p + off + 2);

		if (n < 4 || off + n > len)
			break;
		if (cf_get16(p + off) == type) {
			*vlen = n - 4;
			return p + off + 4;
		}
		off += n + (-n & 3);
	}
	return NULL;
}
