/* SPDX-License-Identifier: BSD-2-Clause */
/* A case's octets in words: streams of TCP into frames and FPDUs (RFC 5044), and what is printed. */
#include "report/decode.h"
#include <stdlib.h>
#include <string.h>

#define LINE_OCTETS 64u /* shown of a piece */
#define LINE_TEXT   40u /* of it, where it is text */
#define LINE_MIN    4u	/* less is text by chance */
#define STREAMS	    64u /* connections of a case that can be distinguished */
#define FRAME	    20u
#define KEY	    16u
#define MARKED	    512u
#define MARKER	    4u
#define PD_MAX	    516u
#define ECHOED	    FRAME /* octets of a stream that are the same by no chance */

/* One direction of a connection. */
struct stream {
	uint8_t *b; /* of a message that is not whole yet */
	size_t len;
	bool framed;   /* its Request or Reply has gone by */
	bool lost;     /* it cannot be read any further */
	bool asks_for; /* markers, by its frame */
	bool crc;      /* it says that it uses the CRC */
	unsigned rev;
	uint64_t off; /* of the next octet behind the frame */
};

struct talk {
	struct stream of[STREAMS][2]; /* [1]: the target's */
	uint32_t role;		      /* enum ddps_conform_role: the target's */
	struct decode_found *found;
};

void decode_private(FILE *f, size_t len)
{
	if (len)
		fprintf(f, ", %zu octet%s of private data", len, len == 1 ? "" : "s");
}

static void put_depth(FILE *f, const char *name, uint32_t v)
{
	if (v == 0x3fff)
		fprintf(f, ", %s left to the applications", name);
	else
		fprintf(f, ", %s %u", name, v);
}

void decode_word(FILE *f, const uint8_t *b)
{
	uint32_t ird = decode_be(b, 2), ord = decode_be(b + 2, 2);

	put_depth(f, "IRD", ird & 0x3fff);
	put_depth(f, "ORD", ord & 0x3fff);
	if (ird & 0x8000)
		fprintf(f, ", peer to peer by%s%s%s%s", ird & 0x4000 ? " Send" : "",
			ord & 0x8000 ? " Write" : "", ord & 0x4000 ? " Read" : "",
			ird & 0x4000 || ord & 0xc000 ? "" : " nothing");
}

/* ---- frames and FPDUs ---- */

/* 0x10 is the enhanced set-up's, and was reserved before RFC 6581. */
static uint8_t get_enhanced_bit(const uint8_t *b)
{
	return b[17] >= 2 ? 0x10 : 0;
}

static uint8_t get_reserved_bits(const uint8_t *b)
{
	return b[16] & 0x1f & ~get_enhanced_bit(b);
}

static void put_frame(FILE *f, const uint8_t *b, size_t pd)
{
	bool reply = !memcmp(b, "MPA ID Rep Frame", KEY);
	uint8_t s = get_enhanced_bit(b);
	bool enhanced = b[16] & s && pd >= 4;

	fprintf(f, "MPA %s, Rev %u", reply ? "Reply" : "Request", b[17]);
	fprintf(f, ", %s%s%s", b[16] & 0x40 ? "CRC" : "no CRC", b[16] & 0x80 ? ", markers" : "",
		b[16] & 0x20 ? (reply ? ", REJECTED" : ", R set") : "");
	if (get_reserved_bits(b))
		fprintf(f, ", reserved bits %02x", get_reserved_bits(b));
	if (b[16] & s)
		fputs(", enhanced", f);
	if (enhanced)
		decode_word(f, b + FRAME);
	decode_private(f, enhanced ? pd - 4 : pd);
}

/* The target has one part in a connection, and revisions are 1 and 2, whatever it is asked for. */
static bool is_wrong_setup(const struct talk *t, const uint8_t *b, const struct stream *asked)
{
	bool reply = !memcmp(b, "MPA ID Rep Frame", KEY);

	return reply != (t->role == DDPS_CONFORM_RESPONDER) ||
	       ((b[17] < 1 || b[17] > 2) && !(asked->framed && asked->rev == b[17]));
}

/* An alert or a handshake, of TLS 1.0 to 1.3. */
static bool is_tls_record(const uint8_t *b, size_t len)
{
	return len >= 3 && (b[0] == 21 || b[0] == 22) && b[1] == 3 && b[2] <= 4;
}

/* The first line, if it is one: it says what a peer speaks to whoever has not learnt to read octets. */
static void put_beginning(FILE *f, const uint8_t *b, size_t len)
{
	size_t n = 0;

	while (n < len && n < LINE_TEXT && b[n] >= ' ' && b[n] <= '~')
		n++;
	if (n < LINE_MIN && n < len)
		fputs("other octets", f);
	else
		fprintf(f, "\"%.*s\"", (int)n, (const char *)b);
}

/* Return: octets used; 0: it is not whole. */
static size_t take_frame(FILE *f, struct talk *t, struct stream pair[2], bool by_target)
{
	struct stream *s = &pair[by_target];
	bool key = s->len >= KEY && (!memcmp(s->b, "MPA ID Req Frame", KEY) ||
				     !memcmp(s->b, "MPA ID Rep Frame", KEY));
	size_t pd;

	if (s->len >= KEY ? !key : memcmp(s->b, "MPA ID Re", s->len < 9 ? s->len : 9) != 0) {
		s->lost = true;
		t->found->stranger |= by_target;
		t->found->tls |= by_target && is_tls_record(s->b, s->len);
		fputs("not an MPA frame: it begins with ", f);
		put_beginning(f, s->b, s->len);
		fputs(", not with \"MPA ID Req Frame\" or \"MPA ID Rep Frame\"", f);
		return s->len;
	}
	if (s->len < FRAME)
		return 0;
	pd = decode_be(s->b + 18, 2);
	t->found->wrong_setup |= by_target && (pd > PD_MAX || is_wrong_setup(t, s->b, &pair[0]));
	if (pd > PD_MAX) {
		s->lost = true;
		fprintf(f,
			"MPA frame that announces %zu octets of private data: at most 512 are "
			"allowed",
			pd);
		return s->len;
	}
	if (s->len < FRAME + pd)
		return 0;
	put_frame(f, s->b, pd);
	t->found->reserved |= by_target && get_reserved_bits(s->b);
	s->framed = true;
	s->rev = s->b[17];
	s->asks_for = s->b[16] & 0x80;
	s->crc = s->b[16] & 0x40;
	t->found->rejects |= by_target && s->b[7] == 'R' && s->b[9] == 'p' && s->b[16] & 0x20;
	return FRAME + pd;
}

static uint32_t fold_crc(uint32_t polynomial, const uint8_t *b, size_t len)
{
	uint32_t c = UINT32_MAX;

	while (len--) {
		c ^= *b++;
		for (unsigned i = 0; i < 8; i++)
			c = c >> 1 ^ (polynomial & -(c & 1));
	}
	return c;
}

/* What a wrong CRC is instead, if that can be found out. */
static const char *guess_crc(uint32_t got, const uint8_t *b, size_t len)
{
	uint32_t open = fold_crc(0x82f63b78u, b, len), want = ~open;
	uint32_t swapped = want >> 24 | (want >> 8 & 0xff00) | (want << 8 & 0xff0000) | want << 24;

	return !got		? "it is 0: none was computed"
	       : got == swapped ? "its octets are in the wrong order"
	       : got == open	? "it lacks the final inversion"
	       : got == ~fold_crc(0xedb88320u, b, len)
		       ? "it is the CRC-32 of Ethernet: MPA uses CRC32c (RFC 3385)"
		       : NULL;
}

static void put_crc(FILE *f, struct talk *t, bool used, const uint8_t *b, size_t len,
		    bool by_target)
{
	uint32_t want = ~fold_crc(0x82f63b78u, b, len), got = 0;
	const char *guess;

	for (unsigned i = 0; i < 4; i++)
		got |= (uint32_t)b[len + i] << (8 * i);
	if (got == want || !used) {
		fprintf(f, ", CRC %s", used ? "right" : "not used");
		return;
	}
	fprintf(f, ", CRC WRONG: %08x where %08x is right", got, want);
	guess = by_target ? guess_crc(got, b, len) : NULL;
	if (guess)
		fprintf(f, " (%s)", guess);
	else if (!by_target)
		fputs(" (on purpose)", f);
	t->found->crc_wrong |= by_target;
	t->found->spoilt |= !by_target;
}

/* The FPDU at the head of @s without its markers, in @out.  Return: octets of the stream, 0: not whole. */
static size_t pull_fpdu(const struct stream *s, bool markers, uint8_t *out, size_t *len)
{
	size_t want = 2, n = 0, at = 0, ulpdu = 0;

	while (n < want) {
		if (markers && (s->off + at) % MARKED == 0) {
			at += MARKER;
			if (at > s->len)
				return 0;
			continue;
		}
		if (at >= s->len)
			return 0;
		out[n++] = s->b[at++];
		if (n == 2) {
			ulpdu = decode_be(out, 2);
			want = 2 + ulpdu + (-(ulpdu + 2) & 3) + 4;
		}
		if (markers && n == want - 4 && (s->off + at) % MARKED == 0)
			at += MARKER;
	}
	*len = ulpdu;
	return at;
}

static bool is_crc_terminate(const uint8_t *b, size_t len)
{
	return len >= 22 && !(b[0] & 0x80) && (b[1] & 15) == 7 && b[18] == 0x20 && b[19] == 2;
}

/* The two control octets behind the length: versions, opcode, and bits that are 0. */
static bool is_fpdu_start(const uint8_t *b)
{
	return (b[2] & 0x3f) == 1 && (b[3] & 0xf0) == 0x40 && (b[3] & 15) < 12;
}

static bool is_crc_right(const uint8_t *b, size_t len)
{
	uint32_t want = ~fold_crc(0x82f63b78u, b, len);

	for (unsigned i = 0; i < 4; i++)
		if (b[len + i] != (uint8_t)(want >> (8 * i)))
			return false;
	return true;
}

/* Whether the target says what nobody sends who speaks MPA: no header of a segment, nor a CRC for it. */
static bool is_rubbish(const struct stream *s, const struct stream *other)
{
	size_t len = s->len < 4 ? 0 : decode_be(s->b, 2), sum = 2 + len + (-(len + 2) & 3);

	if (s->len < 4 || other->asks_for || is_fpdu_start(s->b))
		return false;
	return s->len < sum + 4 || !is_crc_right(s->b, sum);
}

static size_t take_fpdu(FILE *f, struct talk *t, struct stream pair[2], bool by_target)
{
	struct stream *s = &pair[by_target], *other = &pair[!by_target];
	uint8_t *plain = calloc(1, s->len + 8);
	size_t len = 0, used = plain ? pull_fpdu(s, other->asks_for, plain, &len) : 0, pad;

	if (by_target && is_rubbish(s, other)) {
		t->found->not_fpdu = s->lost = true;
		fputs("not an FPDU: behind its length there is no header of DDP and RDMAP", f);
		used = s->len;
	} else if (used) {
		pad = -(len + 2) & 3;
		fprintf(f, "FPDU of %zu octets: ", len);
		decode_segment(f, plain + 2, len);
		if (other->asks_for)
			fputs(", with markers",
			      f); /* which the CRC covers, in places of their own */
		else
			put_crc(f, t, s->crc || other->crc, plain, 2 + len + pad, by_target);
		t->found->crc_refused |= by_target && is_crc_terminate(plain + 2, len);
		s->off += used;
	}
	free(plain);
	return used;
}

/* What can be read of a stream so far, a line each. */
static void take_stream(FILE *f, struct talk *t, struct stream pair[2], bool by_target,
			const char *indent)
{
	struct stream *s = &pair[by_target];
	bool any = false;

	while (s->len && !s->lost) {
		char *phrase = NULL;
		size_t n, size;
		FILE *mem = open_memstream(&phrase, &size);

		if (!mem)
			return;
		n = s->framed ? take_fpdu(mem, t, pair, by_target)
			      : take_frame(mem, t, pair, by_target);
		if (!n)
			fprintf(mem, "%zu octet%s of %s that is not whole", s->len,
				s->len == 1 ? "" : "s",
				s->framed	 ? "an FPDU"
				: s->len < KEY	 ? "an MPA frame"
				: s->b[9] == 'p' ? "an MPA Reply"
						 : "an MPA Request");
		fclose(mem);
		if (n || !any)
			fprintf(f, "%s   %s\n", indent, phrase);
		free(phrase);
		any = true;
		if (!n)
			return;
		s->len -= n;
		memmove(s->b, s->b + n, s->len);
	}
	if (s->lost)
		s->len = 0;
}

/* ---- the pieces ---- */

static bool is_same_run(const struct ddps_conform_item *a, const struct ddps_conform_item *b)
{
	return b && a->wire == DDPS_CONFORM_TCP && b->wire == a->wire &&
	       b->connection == a->connection && b->by_target == a->by_target;
}

static const struct ddps_conform_item *skip_run(const struct ddps_conform_item *i)
{
	const struct ddps_conform_item *next = i->next;

	while (is_same_run(i, next))
		next = next->next;
	return next;
}

static bool grow_stream(struct stream *s, const uint8_t *b, size_t len)
{
	uint8_t *more;

	if (!len)
		return true;
	more = realloc(s->b, s->len + len);
	if (!more)
		return false;
	s->b = more;
	memcpy(s->b + s->len, b, len);
	s->len += len;
	return true;
}

/* The octets of a run, the first ones of many. */
static void print_octets(FILE *f, const struct ddps_conform_item *i,
			 const struct ddps_conform_item *end, const char *indent)
{
	size_t shown = 0, all = 0;

	for (; i != end; i = i->next) {
		for (size_t k = 0; k < i->len && shown < LINE_OCTETS; k++, shown++)
			fprintf(f, "%s%s%s%02x", shown && shown % 16 == 0 ? "\n" : "",
				shown % 16 ? " " : indent, shown % 16 ? "" : "   ", i->octets[k]);
		all += i->len;
	}
	fprintf(f, "%s%s", all > LINE_OCTETS ? " ..." : "", all ? "\n" : "");
}

static void decode_run(FILE *f, struct talk *t, const struct ddps_conform_item *i,
		       const struct ddps_conform_item *end, const char *indent)
{
	struct stream *pair = t->of[i->connection % STREAMS];
	bool by_target = i->by_target;

	if (i->wire == DDPS_CONFORM_TCP) {
		for (const struct ddps_conform_item *k = i; k != end; k = k->next)
			if (!grow_stream(&pair[by_target], k->octets, k->len))
				return;
		take_stream(f, t, pair, by_target, indent);
		return;
	}
	fprintf(f, "%s   ", indent);
	if (i->wire == DDPS_CONFORM_SCTP)
		decode_sctp_message(f, i);
	else if (i->wire == DDPS_CONFORM_PACKET)
		decode_sctp_packet(f, i->octets, i->len);
	else
		decode_ib(f, i->octets, i->len);
	fprintf(f, "%s\n", i->wrong ? " (malformed on purpose)" : "");
	t->found->rejects |= by_target && i->wire == DDPS_CONFORM_SCTP && i->ppid == 17 &&
			     i->len >= 4 && (i->octets[3] == 3 || i->octets[3] == 7);
}

/* The first octets of a direction of a connection, however they were cut. */
static size_t gather_beginning(const struct ddps_conform_item *i, unsigned connection,
			       bool by_target, uint8_t to[ECHOED])
{
	size_t len = 0, n;

	for (; i && len < ECHOED; i = i->next) {
		if (i->wire != DDPS_CONFORM_TCP || i->connection != connection ||
		    i->by_target != by_target)
			continue;
		n = i->len < ECHOED - len ? i->len : ECHOED - len;
		memcpy(to + len, i->octets, n);
		len += n;
	}
	return len;
}

/* Whether the first octets of the target, or its first message, are those that it was sent first. */
static bool is_echo(const struct ddps_conform_result *r)
{
	const struct ddps_conform_item *out = r->first, *in = r->first;
	uint8_t sent[ECHOED], came[ECHOED];

	while (in && !in->by_target)
		in = in->next;
	while (in && out && (out->by_target || out->connection != in->connection))
		out = out->next;
	if (!in || !out || in->wire != out->wire)
		return false;
	if (in->wire == DDPS_CONFORM_SCTP)
		return in->len >= 4 && in->len == out->len && in->ppid == out->ppid &&
		       !memcmp(in->octets, out->octets, in->len);
	return in->wire == DDPS_CONFORM_TCP &&
	       gather_beginning(r->first, in->connection, false, sent) == ECHOED &&
	       gather_beginning(r->first, in->connection, true, came) == ECHOED &&
	       !memcmp(sent, came, ECHOED) &&
	       memcmp(sent, "MPA ID Rep Frame", KEY) != 0; /* which anybody answers so */
}

void decode_talk(FILE *f, const struct ddps_conform_result *r, size_t max, const char *indent,
		 struct decode_found *found)
{
	struct talk *t = calloc(1, sizeof *t);
	const struct ddps_conform_item *i, *next;
	FILE *none = fopen("/dev/null", "w");
	size_t n = 0;

	*found = (struct decode_found){ .echo = is_echo(r) };
	for (i = r->first; i; i = skip_run(i)) {
		found->came |= i->by_target;
		n++;
	}
	if (!t) {
		fprintf(f, "%s(no memory for what came and went)\n", indent);
		goto out;
	}
	t->found = found;
	t->role = r->c.target;
	if (n > max)
		fprintf(f, "%s(%zu earlier messages left out)\n", indent, n - max);
	for (i = r->first; i; i = next) {
		FILE *to = n-- > max && none ? none : f;

		next = skip_run(i);
		fprintf(to, "%s%s after %.3f ms\n", indent, i->by_target ? "<- came" : "-> sent",
			(double)i->ns / 1e6);
		decode_run(to, t, i, next, indent);
		print_octets(to, i, next, indent);
	}
	for (size_t k = 0; k < STREAMS; k++) {
		const struct stream *s = &t->of[k][1];

		*(s->framed ? &found->part_fpdu : &found->part_setup) |= s->len > 0;
		free(t->of[k][0].b);
		free(t->of[k][1].b);
	}
	free(t);
	found->crc_refused &= !found->spoilt;
out:
	if (none)
		fclose(none);
}
