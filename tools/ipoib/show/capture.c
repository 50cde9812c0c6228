/* SPDX-License-Identifier: BSD-2-Clause */
/* Captures of MADs: pcap files with ERF records of InfiniBand packets. */
#include "cli/safe.h"
#include "ipoib/show/capture.h"
#include "ipoib/show/capture_in.h"
#include <errno.h>

#define PCAP_MICROS 0xa1b2c3d4u
#define PCAP_NANOS  0xa1b23c4du
#define PCAPNG	    0x0a0d0d0au
#define LINK_ERF    197

#define ERF_TYPE_IB 21
#define ERF_MORE    0x80 /* in the type: 8 octets more follow, whose first has this bit too */

#define IB_LEN (LRH_LEN + BTH_LEN + DETH_LEN + DDPS_CM_MAD_LEN + ICRC_LEN + VCRC_LEN)

#define NS_PER_S 1000000000ull

_Static_assert(CAPTURE_RECORD == 16 + ERF_LEN + IB_LEN, "the record's parts");

/* ---- writing ---- */

void capture_encode_header(uint8_t out[CAPTURE_HEADER])
{
	struct octets w = octets_at(out, CAPTURE_HEADER);

	octets_be(&w, PCAP_NANOS, 4);
	octets_be(&w, 2, 2); /* version 2.4 */
	octets_be(&w, 4, 2);
	octets_be(&w, 0, 8); /* UTC */
	octets_be(&w, 65535, 4);
	octets_be(&w, LINK_ERF, 4);
}

/* ERF times are the one little endian number here: seconds and their fraction, 32 bits each. */
static void put_erf_time(struct octets *w, uint64_t ns)
{
	uint64_t t = ns / NS_PER_S << 32 | (ns % NS_PER_S << 32) / NS_PER_S;

	for (unsigned i = 0; i < 8; i++)
		octets_be(w, t >> 8 * i & 0xff, 1);
}

static void put_ib(struct octets *w, const struct capture_mad *m)
{
	octets_be(w, 0, 1); /* LRH: virtual lane 0 */
	octets_be(w, (uint64_t)(m->sl << 4 | LNH_BTH), 1);
	octets_be(w, m->dlid, 2);
	octets_be(w, (IB_LEN - VCRC_LEN) / 4, 2);
	octets_be(w, m->slid, 2);
	octets_be(w, UD_SEND, 1); /* BTH */
	octets_be(w, 0, 1);
	octets_be(w, m->pkey, 2);
	octets_be(w, 1, 4); /* to QP 1 */
	octets_be(w, 0, 4);
	octets_be(w, DDPS_CM_QKEY, 4); /* DETH */
	octets_be(w, 1, 4);	       /* from QP 1 */
	octets_put(w, m->mad, DDPS_CM_MAD_LEN);
	octets_be(w, 0, ICRC_LEN);
	octets_be(w, 0, VCRC_LEN);
}

void capture_put_record(struct octets *w, uint64_t time_ns, unsigned len)
{
	octets_be(w, time_ns / NS_PER_S, 4);
	octets_be(w, time_ns % NS_PER_S, 4);
	octets_be(w, ERF_LEN + len, 4);
	octets_be(w, ERF_LEN + len, 4);
	put_erf_time(w, time_ns);
	octets_be(w, ERF_TYPE_IB, 1);
	octets_be(w, 4, 1); /* records have various lengths */
	octets_be(w, ERF_LEN + len, 2);
	octets_be(w, 0, 2); /* none lost */
	octets_be(w, len, 2);
}

void capture_encode(uint8_t out[CAPTURE_RECORD], const struct capture_mad *m)
{
	struct octets w = octets_at(out, CAPTURE_RECORD);

	capture_put_record(&w, m->time_ns, IB_LEN);
	put_ib(&w, m);
}

FILE *capture_create(const char *path)
{
	uint8_t header[CAPTURE_HEADER];
	FILE *f = safe_create(path);

	capture_encode_header(header);
	if (f && (fwrite(header, sizeof header, 1, f) != 1 || fflush(f))) {
		int err = errno;

		fclose(f);
		errno = err;
		return NULL;
	}
	return f;
}

int capture_write(FILE *f, const struct capture_mad *m)
{
	uint8_t record[CAPTURE_RECORD];

	capture_encode(record, m);
	return fwrite(record, sizeof record, 1, f) == 1 && !fflush(f) ? 0 : -1;
}

/* ---- reading ---- */

/* A number of the pcap format, whose byte order is that of the machine that wrote it. */
static uint32_t pcap_u32(struct octets_in *r, bool little)
{
	uint32_t v = (uint32_t)octets_get(r, 4);

	return little ? __builtin_bswap32(v) : v;
}

static bool is_magic(uint32_t v)
{
	return v == PCAP_MICROS || v == PCAP_NANOS;
}

bool capture_is(const void *buf, size_t len)
{
	struct octets_in r = octets_from(buf, len);
	uint32_t v = pcap_u32(&r, false);

	return !r.failed && (is_magic(v) || is_magic(__builtin_bswap32(v)) || v == PCAPNG);
}

int capture_open(struct capture_reader *r, const void *buf, size_t len, char *why, size_t why_len)
{
	struct octets_in b = octets_from(buf, len);
	uint32_t magic = pcap_u32(&b, false), link;
	bool little = is_magic(__builtin_bswap32(magic));

	if (little)
		magic = __builtin_bswap32(magic);
	octets_take(&b, 16);
	link = pcap_u32(&b, little) & 0xffff; /* above it: length of a frame check sequence */
	if (!is_magic(magic) || b.failed)
		snprintf(why, why_len, "not a pcap file%s",
			 magic == PCAPNG ? " but pcapng: convert it with editcap -F pcap" : "");
	else if (link != LINK_ERF)
		snprintf(why, why_len, "a capture of link type %u, not %d (ERF)", (unsigned)link,
			 LINK_ERF);
	else {
		*r = (struct capture_reader){
			.p = b.p, .end = b.end, .little = little, .nanos = magic == PCAP_NANOS
		};
		return 0;
	}
	return -1;
}

/* An InfiniBand packet, from its local route header on.  Return: whether it is a CM message. */
static bool get_ib(struct octets_in *b, struct capture_mad *m)
{
	uint16_t first = (uint16_t)octets_get(b, 2);
	uint8_t next = first & 3, opcode;
	uint32_t qpn;

	m->sl = first >> 4 & 15;
	m->dlid = (uint16_t)octets_get(b, 2);
	octets_take(b, 2);
	m->slid = (uint16_t)octets_get(b, 2);
	if (next == LNH_GRH)
		octets_take(b, GRH_LEN);
	else if (next != LNH_BTH)
		return false;
	opcode = (uint8_t)octets_get(b, 1);
	octets_take(b, 1);
	m->pkey = (uint16_t)octets_get(b, 2);
	qpn = (uint32_t)octets_get(b, 4) & 0xffffff;
	octets_take(b, 4 + DETH_LEN);
	m->mad = octets_take(b, DDPS_CM_MAD_LEN);
	return !b->failed && opcode == UD_SEND && qpn == 1 && m->mad[1] == DDPS_CM_CLASS;
}

/* An ERF record. */
static bool get_erf(struct octets_in *b, struct capture_mad *m)
{
	uint8_t type, more;

	octets_take(b, 8);
	more = type = (uint8_t)octets_get(b, 1);
	octets_take(b, ERF_LEN - 9);
	while (more & ERF_MORE && !b->failed) {
		more = (uint8_t)octets_get(b, 1);
		octets_take(b, 7);
	}
	return (type & ~ERF_MORE) == ERF_TYPE_IB && get_ib(b, m);
}

int capture_next(struct capture_reader *r, struct capture_mad *m)
{
	while (r->p != r->end) {
		struct octets_in b = octets_from(r->p, (size_t)(r->end - r->p)), record;
		uint64_t seconds = pcap_u32(&b, r->little);
		uint64_t part = pcap_u32(&b, r->little);
		uint32_t len = pcap_u32(&b, r->little);
		const uint8_t *at;

		octets_take(&b, 4);
		at = octets_take(&b, len);
		if (!at)
			return -1;
		r->p = b.p;
		record = octets_from(at, len);
		*m = (struct capture_mad){ .time_ns = seconds * NS_PER_S +
						      part * (r->nanos ? 1 : 1000) };
		if (get_erf(&record, m))
			return 1;
		r->skipped++;
	}
	return 0;
}
