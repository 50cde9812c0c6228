/* SPDX-License-Identifier: BSD-2-Clause */
/* What went over the wire, for people and as a capture file for Wireshark. */
#include "conform/peer/inside.h"
#include <ddpsess/conform.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_OCTETS 64 /* shown of one item */

void ddps_conform_print(FILE *f, const struct ddps_conform_result *r, size_t max,
			const char *indent)
{
	size_t n = 0;

	for (const struct ddps_conform_item *i = r->first; i; i = i->next)
		n++;
	if (n > max)
		fprintf(f, "%s(%zu earlier items left out)\n", indent, n - max);
	for (const struct ddps_conform_item *i = r->first; i; i = i->next) {
		if (n-- > max)
			continue;
		fprintf(f, "%s%s %9.3f ms", indent, i->by_target ? "<-" : "->",
			(double)i->ns / 1e6);
		if (i->wire == DDPS_CONFORM_SCTP)
			fprintf(f, " stream %u ppid %u", i->stream, i->ppid);
		fprintf(f, " %zu octets", i->len);
		for (size_t k = 0; k < i->len && k < LINE_OCTETS; k++)
			fprintf(f, "%s%s%02x", k % 16 ? " " : "\n", k % 16 ? "" : indent,
				i->octets[k]);
		fprintf(f, "%s\n", i->len > LINE_OCTETS ? " ..." : "");
	}
}

/* ---- pcap ---- */

#define LINKTYPE_RAW 101
#define SNAPLEN	     65535u
#define IP_LEN	     20u
#define TCP_LEN	     20u
#define SCTP_LEN     28u /* common header and DATA chunk header */
#define PIECE	     60000u
#define WRONG_ID     0x0badu
#define DF	     0x4000u

static void put_le(uint8_t *p, uint32_t v)
{
	for (unsigned i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

int ddps_conform_pcap_begin(FILE *f)
{
	uint8_t h[24] = { 0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0 };

	put_le(h + 16, SNAPLEN);
	put_le(h + 20, LINKTYPE_RAW);
	return fwrite(h, sizeof h, 1, f) == 1 ? 0 : DDPS_E_SYSTEM;
}

static void ip_header(uint8_t *h, size_t len, uint8_t protocol, bool by_target, bool real,
		      bool wrong)
{
	uint32_t sum = 0;

	memset(h, 0, IP_LEN);
	h[0] = 0x45;
	cf_put16(h + 2, (uint16_t)len);
	cf_put16(h + 4, wrong ? WRONG_ID : 0);
	cf_put16(h + 6, real ? DF : 0);
	h[8] = 64;
	h[9] = protocol;
	/* 192.0.2.1 is the peer, 192.0.2.2 the target (RFC 5737). */
	cf_put32(h + 12, by_target ? 0xc0000202 : 0xc0000201);
	cf_put32(h + 16, by_target ? 0xc0000201 : 0xc0000202);
	for (unsigned i = 0; i < IP_LEN; i += 2)
		sum += cf_get16(h + i);
	sum = (sum & 0xffff) + (sum >> 16);
	cf_put16(h + 10, (uint16_t) ~(sum + (sum >> 16)));
}

static bool write_pcapng_packet(FILE *f, uint64_t ns, const uint8_t *h, size_t h_len,
				const uint8_t *p, size_t len, size_t pad)
{
	static const uint8_t zero[4];
	uint8_t r[16];
	uint32_t all = (uint32_t)(h_len + len + pad);

	put_le(r, (uint32_t)(ns / 1000000000u));
	put_le(r + 4, (uint32_t)(ns % 1000000000u / 1000));
	put_le(r + 8, all);
	put_le(r + 12, all);
	return fwrite(r, sizeof r, 1, f) == 1 && (!h_len || fwrite(h, h_len, 1, f) == 1) &&
	       (!len || fwrite(p, len, 1, f) == 1) && (!pad || fwrite(zero, pad, 1, f) == 1);
}

#define FLOWS 64u /* connections of a case that can be distinguished */

/* The two directions' state of a made-up connection. */
struct flow {
	uint32_t seq[2];
	uint16_t port;
};

static bool tcp_packet(FILE *f, struct flow *fl, const struct ddps_conform_item *i,
		       const uint8_t *p, size_t len)
{
	uint8_t h[IP_LEN + TCP_LEN] = { 0 };
	uint8_t *t = h + IP_LEN;

	ip_header(h, sizeof h + len, 6, i->by_target, false, false);
	cf_put16(t, i->by_target ? 7174 : fl->port);
	cf_put16(t + 2, i->by_target ? fl->port : 7174);
	cf_put32(t + 4, fl->seq[i->by_target]);
	cf_put32(t + 8, fl->seq[!i->by_target]);
	t[12] = 0x50;
	t[13] = 0x18; /* PSH, ACK */
	cf_put16(t + 14, 65535);
	fl->seq[i->by_target] += (uint32_t)len;
	return write_pcapng_packet(f, i->ns, h, sizeof h, p, len, 0);
}

static bool has_same_stream(const struct ddps_conform_item *a, const struct ddps_conform_item *b)
{
	return b && b->wire == a->wire && b->connection == a->connection &&
	       b->by_target == a->by_target;
}

/* What came by piecemeal reads in one direction of a stream is one run of octets: analysers that
 * look for the start of a message in each packet would lose their way.  @next: what follows it. */
static bool tcp_run(FILE *f, struct flow *fl, const struct ddps_conform_item *first,
		    const struct ddps_conform_item **next)
{
	const struct ddps_conform_item *i = first;
	uint8_t *buf = malloc(PIECE);
	bool ok = buf != NULL;
	size_t n = 0;

	do {
		for (size_t off = 0, take; ok && off < i->len; off += take) {
			take = i->len - off < PIECE - n ? i->len - off : PIECE - n;
			memcpy(buf + n, i->octets + off, take);
			n += take;
			if (n == PIECE) {
				ok = tcp_packet(f, fl, first, buf, n);
				n = 0;
			}
		}
		i = i->next;
	} while (has_same_stream(first, i));
	ok = ok && (!n || tcp_packet(f, fl, first, buf, n));
	free(buf);
	*next = i;
	return ok;
}

static bool sctp_packet(FILE *f, struct flow *fl, const struct ddps_conform_item *i)
{
	uint8_t h[IP_LEN + SCTP_LEN] = { 0 };
	uint8_t *s = h + IP_LEN, *d = s + 12;
	size_t pad = -i->len & 3;

	ip_header(h, sizeof h + i->len + pad, 132, i->by_target, false, false);
	cf_put16(s, i->by_target ? 7174 : fl->port);
	cf_put16(s + 2, i->by_target ? fl->port : 7174);
	d[1] = 7; /* DATA: U, B and E */
	cf_put16(d + 2, (uint16_t)(16 + i->len));
	cf_put32(d + 4, fl->seq[i->by_target]++);
	cf_put16(d + 8, (uint16_t)i->stream);
	cf_put32(d + 12, i->ppid);
	return write_pcapng_packet(f, i->ns, h, sizeof h, i->octets, i->len, pad);
}

/* As it was, with the ports that it had. */
static bool whole_packet(FILE *f, const struct ddps_conform_item *i)
{
	uint8_t h[IP_LEN];

	ip_header(h, sizeof h + i->len, 132, i->by_target, true, i->wrong);
	return write_pcapng_packet(f, i->ns, h, sizeof h, i->octets, i->len, 0);
}

int ddps_conform_pcap_add(FILE *f, const struct ddps_conform_result *r)
{
	uint16_t port = (uint16_t)(20000 + FLOWS * (r->number % 700));
	struct flow fl[FLOWS];
	bool ok = true;

	for (unsigned n = 0; n < FLOWS; n++)
		fl[n] = (struct flow){ .seq = { 1, 1 }, .port = (uint16_t)(port + n) };
	for (const struct ddps_conform_item *i = r->first, *next; i && ok; i = next) {
		struct flow *w = &fl[i->connection % FLOWS];

		next = i->next;
		if (i->wire == DDPS_CONFORM_IB)
			ok = write_pcapng_packet(f, i->ns, NULL, 0, i->octets, i->len, 0);
		else if (i->wire == DDPS_CONFORM_SCTP)
			ok = sctp_packet(f, w, i);
		else if (i->wire == DDPS_CONFORM_PACKET)
			ok = whole_packet(f, i);
		else
			ok = tcp_run(f, w, i, &next);
	}
	return ok ? 0 : DDPS_E_SYSTEM;
}
