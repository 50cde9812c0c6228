/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 9260 sections 3.2, 6.8, 8.4 and 8.5: tags, what is out of the blue, what is not known. */
#include "conform/sctp/raw.h"
#include <errno.h>
#include <string.h>

#define PAD 0x84u

static bool is_known_chunk(unsigned type)
{
	return type <= CF_C_COOKIE_ACK || type == CF_C_SHUTDOWN_COMPLETE || type == PAD;
}

/* ---- tags ---- */

/* Under a tag that is one bit off nothing is read: not even a DATA chunk is. */
static void check_wrong_tag(struct cf *cf)
{
	uint8_t v[20] = { 0 };
	struct cf_raw r;

	cf_raw_up(cf, &r);
	cf_put32(v, r.l->cum);
	r.nsack = 0;
	for (unsigned type = 0; type <= CF_C_SHUTDOWN_COMPLETE; type++) {
		if (type == CF_C_INIT)
			continue;
		r.wrong = type != CF_C_SHUTDOWN; /* what is in it is not looked at */
		cf_raw_say_tag(&r, r.l->peer_tag ^ 0x80, (uint8_t)type, 0, v,
			       type == CF_C_SHUTDOWN ? 4 : sizeof v);
	}
	cf_raw_say_tag(&r, 0, CF_C_ABORT, 0, NULL, 0);
	r.wrong = true;
	cf_raw_say_tag(&r, 0, CF_C_HEARTBEAT, 0, v, sizeof v);
	cf_raw_quiet(&r);
	CF_CHECK(cf, !r.nsack || r.sack_cum == r.own_tsn - 1, "DATA under a wrong tag is taken");
	cf_raw_alive(&r);
}

static void abort_tags(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_up(cf, &r);
	cf_raw_say_tag(&r, r.l->peer_tag, CF_C_ABORT, RAW_T, NULL, 0); /* its own tag with T */
	cf_raw_say_tag(&r, r.l->tag, CF_C_ABORT, 0, NULL, 0);	       /* ours without */
	cf_raw_say_tag(&r, r.l->tag, CF_C_HEARTBEAT, 0, "\0\1\0\4", 4);
	cf_raw_quiet(&r);
	cf_raw_say_tag(&r, r.l->tag, CF_C_ABORT, RAW_T, NULL, 0);
	cf_raw_dead(&r);
}

/* What stands in front of an ABORT with the T bit has not the right tag. */
static void abort_t_behind(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_up(cf, &r);
	cf_raw_begin_tag(&r, r.l->tag);
	cf_raw_put(&r, CF_C_HEARTBEAT, 0, "\0\1\0\4", 4);
	cf_raw_put(&r, CF_C_ABORT, RAW_T, NULL, 0);
	cf_raw_send(&r);
	cf_raw_dead(&r);
}

static void checksum(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_up(cf, &r);
	cf_raw_begin(&r);
	cf_raw_put(&r, CF_C_ABORT, 0, NULL, 0);
	cf_raw_send_bad_sum(&r);
	cf_raw_begin(&r);
	cf_raw_put_question_at(&r, r.l->tsn, 2, RAW_WHOLE | RAW_U);
	cf_raw_send_bad_sum(&r);
	r.nsack = 0;
	cf_raw_quiet(&r);
	CF_CHECK(cf, !r.nsack || r.sack_cum == r.own_tsn - 1, "DATA of a bad packet is taken");
	cf_raw_alive(&r);
}

/* ---- out of the blue ---- */

static void strange(struct cf_raw *r, uint32_t tag, uint8_t type, const void *v, size_t len)
{
	r->wrong = true; /* what is in it is not looked at */
	cf_raw_say_tag(r, tag, type, 0, v, len);
}

static void check_out_of_the_blue(struct cf *cf)
{
	static const uint8_t stale[] = { 0, RAW_STALE_COOKIE, 0, 8, 0, 0, 0, 1 };
	static const uint8_t v[16] = { 0, 9, 0, 16 };
	struct cf_raw_chunk c;
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	strange(&r, 77, CF_C_ABORT, NULL, 0);
	strange(&r, 77, CF_C_SHUTDOWN_COMPLETE, NULL, 0);
	strange(&r, 77, CF_C_COOKIE_ACK, NULL, 0);
	strange(&r, 77, CF_C_ERROR, stale, sizeof stale);
	cf_raw_begin_tag(&r, 77);
	cf_raw_put_data(&r, 1, 0, 0, RAW_WHOLE, 0, v, 4);
	cf_raw_put(&r, CF_C_ABORT, 0, NULL, 0);
	cf_raw_send(&r);
	cf_raw_quiet_oob(&r);
	strange(&r, 0x01020304, CF_C_SHUTDOWN_ACK, NULL, 0);
	c = cf_raw_want(&r, CF_C_SHUTDOWN_COMPLETE);
	CF_CHECK(cf, c.flags == RAW_T && c.tag == 0x01020304, "SHUTDOWN COMPLETE under %08x",
		 c.tag);
	for (unsigned type = 0; type < 256; type++) {
		if (type == CF_C_INIT || type == CF_C_COOKIE_ECHO || type == CF_C_ABORT ||
		    type == CF_C_SHUTDOWN_ACK || type == CF_C_COOKIE_ACK ||
		    type == CF_C_SHUTDOWN_COMPLETE)
			continue;
		strange(&r, 0x01020300 + type, (uint8_t)type, v, sizeof v);
		c = cf_raw_want(&r, CF_C_ABORT);
		CF_CHECK(cf, c.flags == RAW_T && c.tag == 0x01020300 + type && c.last,
			 "chunk %u: ABORT under tag %08x, flags %u", type, c.tag, c.flags);
		CF_CHECK(cf, r.in_len <= r.out.len, "an answer longer than its question");
	}
}

/* The association is there, but not at this port: out of the blue, and it does not notice. */
static void other_port(struct cf *cf)
{
	struct cf_raw_chunk c;
	uint16_t port;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	port = r.l->port;
	r.l->port ^= 0x1111;
	cf_raw_say(&r, CF_C_HEARTBEAT, 0, "\0\1\0\4", 4);
	c = cf_raw_want(&r, CF_C_ABORT);
	CF_CHECK(cf, c.flags == RAW_T && c.tag == r.l->peer_tag, "ABORT under tag %08x", c.tag);
	r.l->port = port;
	cf_raw_quiet(&r);
}

static void port_0(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	cf_raw_begin_tag(&r, 0);
	cf_raw_put_own_init(&r, CF_C_INIT, cf_raw_ddp, sizeof cf_raw_ddp);
	cf_put16(r.out.b, 0);
	r.wrong = true;
	cf_raw_send(&r);
	cf_raw_begin_tag(&r, 0);
	cf_raw_put_own_init(&r, CF_C_INIT, cf_raw_ddp, sizeof cf_raw_ddp);
	cf_put16(r.out.b + 2, 0);
	r.wrong = true;
	cf_raw_send(&r);
	cf_raw_quiet_oob(&r);
}

/* Nobody has that port: refused under the INIT's tag. */
static void check_nobody_listens(struct cf *cf)
{
	struct cf_raw_chunk c;
	struct cf_raw r;

	cf_raw_bare(cf, &r);
	r.l->peer_port ^= 0x2222;
	cf_raw_begin_tag(&r, 0);
	cf_raw_put_own_init(&r, CF_C_INIT, cf_raw_ddp, sizeof cf_raw_ddp);
	cf_raw_send(&r);
	c = cf_raw_want(&r, CF_C_ABORT);
	CF_CHECK(cf, !c.flags && c.tag == r.l->tag, "ABORT under tag %08x, flags %u", c.tag,
		 c.flags);
}

/* ---- what is not known, and what is not whole ---- */

static void unknown_chunks(struct cf *cf)
{
	struct cf_raw_chunk c;
	unsigned told = 0;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	for (unsigned type = 0; type < 256; type++) {
		uint32_t tsn = r.l->tsn;

		if (is_known_chunk(type))
			continue;
		r.wrong = true; /* others know some of these types */
		cf_raw_begin(&r);
		cf_raw_put(&r, (uint8_t)type, 0, "abc", 3);
		cf_raw_put_question_at(&r, r.l->tsn++, 2, RAW_WHOLE | RAW_U | RAW_I);
		cf_raw_send(&r);
		if (type & 0x40) {
			c = cf_raw_want(&r, CF_C_ERROR);
			told = cf_raw_cause(&c) == RAW_UNKNOWN_CHUNK && c.len >= 8 ? c.v[4] : 0;
			CF_CHECK(cf, told == type, "chunk %u: ERROR of cause %u: %s", type,
				 cf_raw_cause(&c), cf_hex(c.v, c.len));
		}
		cf_raw_quiet(&r);
		if (type & 0x80) /* what is behind it counts */
			cf_raw_want_sack(&r, tsn);
		else
			r.l->tsn = tsn;
		CF_CHECK(cf, cf_tsn_before(r.sack_cum, r.l->tsn),
			 "chunk %u: DATA behind it is taken", type);
	}
	cf_raw_alive(&r);
}

static void errors_are_not_answered(struct cf *cf)
{
	static const uint8_t cause[] = { 0, RAW_UNKNOWN_CHUNK, 0, 8, 0xfe, 0, 0, 4 };
	struct cf_raw r;

	cf_raw_up(cf, &r);
	cf_raw_say(&r, CF_C_ERROR, 0, cause, sizeof cause);
	cf_raw_say(&r, CF_C_ERROR, 0, "\300\6\0\10\0\0\0\2", 8); /* an adaptation indication */
	cf_raw_alive(&r);
	cf_raw_quiet(&r);
}

/* Several things to report: one packet, one ERROR. */
static void one_answer(struct cf *cf)
{
	struct cf_raw_chunk c;
	unsigned before;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	cf_raw_begin(&r);
	for (unsigned i = 0; i < 5; i++)
		cf_raw_put(&r, (uint8_t)(0xe0 + i), 0, "abc", 3);
	cf_raw_send(&r);
	c = cf_raw_want(&r, CF_C_ERROR);
	CF_CHECK(cf, cf_raw_cause(&c) == RAW_UNKNOWN_CHUNK, "cause %u", cf_raw_cause(&c));
	while (!c.last) /* in one ERROR or several, but one packet */
		c = cf_raw_want(&r, CF_C_ERROR);
	before = r.npackets;
	cf_raw_quiet(&r);
	cf_raw_begin(&r);
	for (unsigned i = 0; i < 5; i++)
		cf_raw_put(&r, CF_C_HEARTBEAT, 0, "\0\1\0\10abcd", 8);
	cf_raw_send(&r);
	cf_raw_want(&r, CF_C_HEARTBEAT_ACK);
	before = r.npackets - before;
	CF_CHECK(cf, before <= 3, "%u packets", before);
}

/* Lengths of 0 to 3, past the end, padding that is not zero, flags that nobody has. */
static void lengths(struct cf *cf)
{
	struct cf_raw r;
	uint32_t tsn;

	cf_raw_up(cf, &r);
	for (unsigned len = 0; len < 4; len++) {
		cf_raw_begin(&r);
		cf_raw_put(&r, 0x80, 0, NULL, 0);
		cf_raw_put_question_at(&r, r.l->tsn, 2, RAW_WHOLE | RAW_U);
		cf_put16(r.out.b + RAW_HEADER + 2, (uint16_t)len);
		r.wrong = true;
		cf_raw_send(&r);
	}
	cf_raw_begin(&r);
	cf_raw_put_question_at(&r, r.l->tsn, 2, RAW_WHOLE | RAW_U);
	cf_put16(r.out.b + RAW_HEADER + 2, 200);
	r.wrong = true;
	cf_raw_send(&r);
	cf_raw_begin(&r); /* a whole one in front of one that is cut off */
	tsn = r.l->tsn;
	cf_raw_put_question(&r, 2);
	cf_raw_put(&r, CF_C_ABORT, 0, "abcd", 4);
	cf_put16(r.out.b + r.out.len - 6, 100);
	r.wrong = true;
	cf_raw_send(&r);
	cf_raw_want_sack(&r, tsn);
	cf_raw_alive(&r);
}

static void padding(struct cf *cf)
{
	struct cf_raw_chunk c;
	uint32_t tsn;
	struct cf_raw r;

	cf_raw_up(cf, &r);
	cf_raw_begin(&r);
	cf_raw_put(&r, CF_C_HEARTBEAT, 0xff, "\0\1\0\11hello", 9);
	memset(r.out.b + r.out.len - 3, 0xee, 3);
	tsn = r.l->tsn;
	cf_raw_put_question(&r, 2);
	r.out.b[r.out.len - 1] = 0xee;
	cf_raw_send(&r);
	c = cf_raw_want(&r, CF_C_HEARTBEAT_ACK);
	CF_CHECK(cf, c.len == 9 && !memcmp(c.v, "\0\1\0\11hello", 9), "HEARTBEAT ACK with %s",
		 cf_hex(c.v, c.len));
	cf_raw_want_sack(&r, tsn);
	cf_raw_begin(&r); /* the last chunk without its padding */
	tsn = r.l->tsn;
	cf_raw_put_question(&r, 2);
	r.out.len--;
	r.wrong = true;
	cf_raw_send(&r);
	cf_raw_want_sack(&r, tsn);
	cf_raw_alive(&r);
}

/* ---- UDP ---- */

/* A socket with another UDP port, to where the link's packets go: the carrier's spare one, which it closes. */
static void other_socket(struct cf_raw *r)
{
	struct cf_below *b = r->l->net->below;
	const struct sockaddr_storage *to = &r->l->to;

	if (b->raw)
		cf_skip(r->cf, "UDP ports, and this is not encapsulated");
	b->spare_fd = socket(to->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	b->spare_own = b->spare_fd >= 0;
	if (!b->spare_own || connect(b->spare_fd, (const struct sockaddr *)to, r->l->to_len))
		cf_fail(r->cf, "socket: %s", strerror(errno));
}

/* The link has the spare socket, and the other way round. */
static void swap_sockets(struct cf_raw *r)
{
	struct cf_below *b = r->l->net->below;
	int fd = r->l->fd;
	bool own = r->l->own_fd;

	r->l->fd = b->spare_fd;
	r->l->own_fd = b->spare_own;
	b->spare_fd = fd;
	b->spare_own = own;
}

/* A packet from another UDP port moves the association there, if it has the tag. */
static void check_port_moved(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_up(cf, &r);
	other_socket(&r);
	swap_sockets(&r);
	cf_raw_quiet(&r);
	cf_raw_ask(&r, 1);
	cf_raw_want_answer(&r, 1);
	swap_sockets(&r); /* and back */
	cf_raw_quiet(&r);
	cf_raw_alive(&r);
}

/* Under a wrong tag it does not move: the old port is still the one. */
static void not_moved(struct cf *cf)
{
	struct cf_raw r;

	cf_raw_up(cf, &r);
	other_socket(&r);
	r.mute = true; /* so that it has something to send of its own accord */
	cf_raw_ask(&r, 1);
	cf_raw_want_answer(&r, 1);
	swap_sockets(&r);
	cf_raw_say_tag(&r, r.l->peer_tag ^ 1, CF_C_HEARTBEAT, 0, "\0\1\0\4", 4);
	cf_raw_say_tag(&r, 0, CF_C_HEARTBEAT, 0, "\0\1\0\4", 4);
	cf_raw_say_tag(&r, r.l->tag, CF_C_HEARTBEAT, 0, "\0\1\0\4", 4);
	swap_sockets(&r);
	cf_raw_want_data(&r); /* once more, to where it was */
	r.mute = false;
	cf_raw_sack(&r, r.l->cum, CF_RWND);
	cf_raw_alive(&r);
}

const struct cf_case cf_cases_assoc_tags[] = {
	BOTH("tag", check_wrong_tag,
	     "9260-8.5-1 9260-8.5-2 9260-8.5-3 9260-8.5.1-2 9260-3.3.7-4 9260-3.3.2-7 9260-3.3.3-4",
	     "under a wrong tag nothing is read"),
	BOTH("abort-tag", abort_tags,
	     "9260-8.5.1-4 9260-3.3.7-4 9260-9.1-3 9260-9.1-4 etsi-imh-3-7 pkdr-vtag",
	     "an ABORT has the target's tag, or ours and the T bit"),
	BOTH("abort-behind", abort_t_behind, "9260-8.5.1-4 9260-8.5-3 9260-9.1-3",
	     "an ABORT with the T bit ends it; what stands before it is not read"),
	BOTH("checksum", checksum, "9260-6.8-1 9260-6.8-2 9260-6.8-d1 6951-5.3-3 etsi-imh-3-4",
	     "a packet with a wrong checksum vanishes"),
	R("strange", check_out_of_the_blue,
	  "9260-8.4-2 9260-8.4-6 9260-8.4-7 9260-8.4-8 9260-8.4-9 9260-8.4-10 9260-8.4-11 "
	  "9260-8.5.1-6 9260-8.5.1-7 9260-3.1-5 9260-3.1-6 9260-3.3.7-5 9260-3.3.7-6 9260-3.3.13-2 "
	  "etsi-dm-4-6-2 etsi-fh-5-3-1 etsi-fh-5-3-2 etsi-fh-5-3-3 etsi-fh-5-3-4",
	  "each chunk out of the blue has its answer, or none"),
	R("strange-port", other_port, "9260-8.4-10 9260-1.3-2",
	  "from another port a packet is out of the blue"),
	R("port-0", port_0, "9260-3.1-1 9260-3.1-2", "port 0 is nobody's"),
	R("nobody", check_nobody_listens, "9260-8.4-4",
	  "an INIT to a port that nobody has is refused"),
	BOTH("unknown-chunks", unknown_chunks,
	     "9260-3.2-d1 9260-3.2-d2 9260-3.2-d3 9260-3.2-d4 etsi-m-10-1 etsi-m-10-2 etsi-m-10-3 "
	     "etsi-m-10-4 pkdr-forward-tsn pkdr-i-data pkdr-nr-sack pkdr-reconfig",
	     "unknown chunks go by their upper bits"),
	BOTH("error", errors_are_not_answered, "9260-3.3.10-d1 5061-4.2.6-5",
	     "an ERROR ends nothing, and is not answered"),
	BOTH("one-answer", one_answer, "9260-12.4-2",
	     "one packet is answered by one packet of control"),
	BOTH("lengths", lengths, "9260-6.10-5 9260-6.10-6",
	     "chunks whose lengths lie are not used, those before them are"),
	BOTH("padding", padding, "9260-3.2-3 9260-3.2-d5 9260-3.2-d6 9260-3.2-1 9260-3.2-2",
	     "padding and spare flags are ignored"),
	CLEAR("moved", check_port_moved, "6951-5.4-1 6951-5.1-1 6951-5.3-1",
	      "the association follows a UDP port that has the tag"),
	CLEAR("not-moved", not_moved, "6951-5.4-1",
	      "without the tag the UDP port stays what it was"),
	{ 0 },
};
