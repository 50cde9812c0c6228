/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages in words: segments of DDP and RDMAP, messages and packets of SCTP, packets of InfiniBand. */
#include "report/decode.h"
#include <ddpsess/ib_cm_mad.h>
#include <ddpsess/ddpsess.h>

#define PART(array, i) ((i) < sizeof(array) / sizeof *(array) ? (array)[i] : NULL)

/* ---- RFC 5040, 5041 ---- */

static const char *const opcodes[] = {
	"RDMA Write",
	"RDMA Read Request",
	"RDMA Read Response",
	"Send",
	"Send with Invalidate",
	"Send with Solicited Event",
	"Send with Solicited Event and Invalidate",
	"Terminate",
	"Immediate Data",
	"Immediate Data with Solicited Event",
	"Atomic Request",
	"Atomic Response",
};

static void put_terminate(FILE *f, const uint8_t *b, size_t len)
{
	const struct ddps_triple t = { .layer = b[0] >> 4, .etype = b[0] & 15, .code = b[1] };
	const char *name;

	if (len < 4) {
		fprintf(f, ", cut short");
		return;
	}
	name = ddps_triple_name(&t);
	fprintf(f, " %u/%u/%02x: %s", t.layer, t.etype, t.code, name ? name : "no known error");
}

static void put_offset(FILE *f, const char *name, const uint8_t *b)
{
	fprintf(f, "%s 0x%08x%08x", name, decode_be(b, 4), decode_be(b + 4, 4));
}

void decode_segment(FILE *f, const uint8_t *b, size_t len)
{
	size_t header = len && b[0] & 0x80 ? 14 : 18;
	unsigned op = len > 1 ? b[1] & 15 : 0;
	const char *name = PART(opcodes, op);

	if (len < header) {
		fprintf(f, "no DDP segment: %zu octet%s, its header has %zu", len,
			len == 1 ? "" : "s", header);
		return;
	}
	if (name)
		fputs(name, f);
	else
		fprintf(f, "unknown opcode %u", op);
	if (op == 7 && header == 18 && len >= header + 2)
		put_terminate(f, b + header, len - header);
	if (header == 14) {
		fprintf(f, ", tagged, STag 0x%08x", decode_be(b + 2, 4));
		put_offset(f, ", offset", b + 6);
	} else {
		fprintf(f, ", queue %u, MSN %u, offset %u", decode_be(b + 6, 4),
			decode_be(b + 10, 4), decode_be(b + 14, 4));
		if (op == 4 || op == 6)
			fprintf(f, ", invalidates STag 0x%08x", decode_be(b + 2, 4));
	}
	if (op == 1 && header == 18 && len >= header + 28) {
		b += header;
		fprintf(f, ", %u octets from STag 0x%08x", decode_be(b + 12, 4),
			decode_be(b + 16, 4));
		put_offset(f, " offset", b + 20);
		fprintf(f, " to STag 0x%08x", decode_be(b, 4));
		put_offset(f, " offset", b + 4);
		b -= header;
	} else {
		fprintf(f, ", %zu octets of payload", len - header);
	}
	fprintf(f, "%s", b[0] & 0x40 ? "" : ", not the last segment");
	if ((b[0] & 3) != 1)
		fprintf(f, ", DDP version %u", b[0] & 3U);
	if (b[1] >> 6 != 1)
		fprintf(f, ", RDMAP version %u", (unsigned)b[1] >> 6);
}

/* ---- RFC 5043, 9260 ---- */

static void put_control(FILE *f, const uint8_t *b, size_t len)
{
	static const char *const names[] = {
		NULL,	     "Initiate",	  "Accept",	     "Reject",
		"Terminate", "Enhanced Initiate", "Enhanced Accept", "Enhanced Reject"
	};
	unsigned code = len >= 4 ? decode_be(b + 2, 2) : 0;
	const char *name = PART(names, code);

	if (len < 4) {
		fprintf(f, "session control chunk, cut short to %zu octets", len);
		return;
	}
	fprintf(f, "session control chunk, ");
	if (name)
		fprintf(f, "%s, number %u", name, decode_be(b, 2));
	else
		fprintf(f, "unknown function %u", code);
	if (code >= 5 && len >= 8)
		decode_word(f, b + 4);
	decode_private(f, code >= 5 && len >= 8 ? len - 8 : len - 4);
}

void decode_sctp_message(FILE *f, const struct ddps_conform_item *i)
{
	fprintf(f, "SCTP message on stream %u: ", i->stream);
	if (i->ppid == 17) {
		put_control(f, i->octets, i->len);
	} else if (i->ppid == 16 && i->len >= 2) {
		fprintf(f, "DDP segment number %u: ", decode_be(i->octets, 2));
		decode_segment(f, i->octets + 2, i->len - 2);
	} else {
		fprintf(f, "%zu octets of payload protocol %u", i->len, i->ppid);
	}
}

static void put_chunk(FILE *f, const uint8_t *b, size_t len)
{
	static const char *const names[] = { "DATA",  "INIT",	     "INIT ACK",
					     "SACK",  "HEARTBEAT",   "HEARTBEAT ACK",
					     "ABORT", "SHUTDOWN",    "SHUTDOWN ACK",
					     "ERROR", "COOKIE ECHO", "COOKIE ACK",
					     "ECNE",  "CWR",	     "SHUTDOWN COMPLETE" };
	const char *name = PART(names, b[0]);

	if (name)
		fputs(name, f);
	else
		fprintf(f, "chunk of type %u", b[0]);
	if (b[0] == 0 && len >= 16)
		fprintf(f, " (TSN %u, stream %u, %zu octets)", decode_be(b + 4, 4),
			decode_be(b + 8, 2), len - 16);
	else if (b[0] == 3 && len >= 16)
		fprintf(f, " (up to TSN %u)", decode_be(b + 4, 4));
	else if ((b[0] == 6 || b[0] == 9) && len >= 8)
		fprintf(f, " (cause %u)", decode_be(b + 4, 2));
	else if ((b[0] == 1 || b[0] == 2) && len >= 20)
		fprintf(f, " (tag %08x, window %u, streams %u out %u in)", decode_be(b + 4, 4),
			decode_be(b + 8, 4), decode_be(b + 12, 2), decode_be(b + 14, 2));
}

void decode_sctp_packet(FILE *f, const uint8_t *b, size_t len)
{
	if (len < 12) {
		fprintf(f, "SCTP packet, cut short to %zu octets", len);
		return;
	}
	fprintf(f, "SCTP packet with tag %08x:", decode_be(b + 4, 4));
	for (size_t at = 12; at < len;) {
		size_t n = at + 4 <= len ? decode_be(b + at + 2, 2) : 0;

		fputs(at == 12 ? " " : ", ", f);
		if (n < 4 || n > len - at) {
			fprintf(f, "a chunk whose length is wrong");
			return;
		}
		put_chunk(f, b + at, n);
		at += n + (-n & 3);
	}
	if (len == 12)
		fputs(" no chunk", f);
}

/* ---- InfiniBand in UDP: IBA volume 1 ---- */

enum { CM_REQ = 0x10, CM_REJ = 0x12, CM_REP = 0x13, CM_DREQ = 0x15, CM_DREP = 0x16 };
#define CM_DATA 24u /* of a MAD */

/* Whose connection it is, and what is wrong: @b is what the message has behind the header of a MAD. */
static void put_cm(FILE *f, unsigned attr, const uint8_t *b, size_t len)
{
	if (attr > CM_DREP || len < 36)
		return;
	fprintf(f, " of connection 0x%x", decode_be(b, 4));
	if (attr != CM_REQ)
		fprintf(f, " to the peer's 0x%x", decode_be(b + 4, 4));
	if (attr == CM_REQ)
		fprintf(f, ", service ID 0x%08x%08x", decode_be(b + 8, 4), decode_be(b + 12, 4));
	if (attr == CM_REQ || attr == CM_REP)
		fprintf(f, ", its queue pair is 0x%x",
			decode_be(b + (attr == CM_REQ ? 32 : 12), 3));
	if (attr == CM_DREQ)
		fprintf(f, ", the peer's queue pair is 0x%x", decode_be(b + 8, 3));
	if (attr == CM_REJ)
		fprintf(f, ", reason %u: %s", decode_be(b + 10, 2),
			ddps_cm_reason_name((uint16_t)decode_be(b + 10, 2)));
}

static void put_mad(FILE *f, const uint8_t *b, size_t len)
{
	static const char *const cm[] = { "REQ",  "MRA",      "REJ",	  "REP", "RTU", "DREQ",
					  "DREP", "SIDR REQ", "SIDR REP", "LAP", "APR" };
	unsigned cls = len >= CM_DATA ? b[1] : 0;
	unsigned attr = len >= CM_DATA ? decode_be(b + 16, 2) : 0;
	const char *name = cls == 7 && attr >= CM_REQ ? PART(cm, attr - CM_REQ) : NULL;

	if (len < CM_DATA) {
		fprintf(f, "management datagram, cut short to %zu octets", len);
	} else if (name) {
		fprintf(f, "connection management, %s", name);
		put_cm(f, attr, b + CM_DATA, len - CM_DATA);
	} else {
		fprintf(f, "%s, method %u, attribute 0x%04x",
			cls == 3 ? "subnet administration" : "management datagram", b[3], attr);
	}
}

/* Addresses of 20 octets stand before those of IPv4. */
static void put_arp(FILE *f, const uint8_t *b, size_t len)
{
	fprintf(f, "ARP %s", b[7] == 1 ? "request" : b[7] == 2 ? "reply" : "of an unknown kind");
	if (len >= 56)
		fprintf(f, " of %u.%u.%u.%u for %u.%u.%u.%u", b[28], b[29], b[30], b[31], b[52],
			b[53], b[54], b[55]);
}

/* What is behind the four octets of RFC 4391. */
static void put_ipoib(FILE *f, const uint8_t *b, size_t len)
{
	unsigned type = len >= 4 ? decode_be(b, 2) : 0;

	if (len < 4)
		fprintf(f, "%zu octets", len);
	else if (type == 0x806 && len >= 12)
		put_arp(f, b + 4, len - 4);
	else
		fprintf(f, "%s packet of %zu octets",
			type == 0x800	 ? "an IPv4"
			: type == 0x86dd ? "an IPv6"
					 : "an unknown",
			len - 4);
}

static void put_bth(FILE *f, const uint8_t *b, size_t len)
{
	unsigned op = b[0], qp = decode_be(b + 5, 3);
	size_t pad = b[1] >> 4 & 3, tail = 4 + pad;

	fprintf(f, "InfiniBand to queue pair 0x%x, PSN %u: ", qp, decode_be(b + 9, 3));
	if (op == 0x64 && len >= 20 + tail && qp == 1)
		put_mad(f, b + 20, len - 20 - tail);
	else if (op == 0x64 && len >= 20 + tail)
		put_ipoib(f, b + 20, len - 20 - tail);
	else if (op == 0x11 && len >= 16)
		fprintf(f, "%s, syndrome 0x%02x, MSN %u",
			b[12] >> 5 == 0	  ? "ACK"
			: b[12] >> 5 == 1 ? "RNR NAK"
					  : "NAK",
			b[12], decode_be(b + 13, 3));
	else if (op <= 5 && len >= 12 + tail)
		fprintf(f, "Send%s of %zu octets",
			op == 0	  ? ", first part"
			: op == 1 ? ", middle part"
			: op == 2 ? ", last part"
				  : "",
			len - 12 - tail);
	else
		fprintf(f, "opcode 0x%02x, %zu octets", op, len);
}

void decode_ib(FILE *f, const uint8_t *b, size_t len)
{
	size_t ip = len ? (b[0] & 15u) * 4u : 0;

	if (len < 40 || b[0] >> 4 != 4 || ip < 20 || len < ip + 8 + 12) {
		fprintf(f, "a packet of %zu octets that is no InfiniBand in UDP over IPv4", len);
		return;
	}
	put_bth(f, b + ip + 8, len - ip - 8);
}
