/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Captures of CM messages, read: pcap and pcapng files of InfiniBand packets in ERF records or as they
 * are, and of InfiniBand packets in UDP behind IP, with the usual link layers before that.
 */
#include "ipoib/show/capture.h"
#include "ipoib/show/capture_in.h"

#define PCAP_MICROS 0xa1b2c3d4u
#define PCAP_NANOS  0xa1b23c4du

#define NG_SECTION   0x0a0d0d0au /* types of blocks; this one reads the same in both orders */
#define NG_ORDER     0x1a2b3c4du
#define NG_INTERFACE 1
#define NG_SIMPLE    3
#define NG_PACKET    6
#define NG_TSRESOL   9 /* an option of an interface */

#define LINK_NULL     0
#define LINK_ETHERNET 1
#define LINK_RAW      101
#define LINK_LOOP     108
#define LINK_SLL      113
#define LINK_ERF      197
#define LINK_IB	      247
#define LINK_SLL2     276

#define ERF_TYPE_IB 21
#define ERF_MORE    0x80 /* in the type: 8 octets more follow, whose first has this bit too */

#define ETH_IP4	  0x0800
#define ETH_IP6	  0x86dd
#define ETH_ROCE1 0x8915
#define PROTO_UDP 17
#define UDP_LEN	  8

#define NS_PER_S 1000000000ull

/* One packet of the file. */
struct packet {
	unsigned link;
	uint64_t time_ns;
	const uint8_t *at;
	size_t len;
};

/* A number whose byte order is that of the machine that wrote it. */
static uint32_t file_u32(struct octets_in *r, bool little)
{
	uint32_t v = (uint32_t)octets_get(r, 4);

	return little ? __builtin_bswap32(v) : v;
}

static uint16_t file_u16(struct octets_in *r, bool little)
{
	uint16_t v = (uint16_t)octets_get(r, 2);

	return little ? __builtin_bswap16(v) : v;
}

static bool is_magic(uint32_t v)
{
	return v == PCAP_MICROS || v == PCAP_NANOS;
}

static bool knows_link(unsigned link)
{
	switch (link) {
	case LINK_NULL:
	case LINK_ETHERNET:
	case LINK_RAW:
	case LINK_LOOP:
	case LINK_SLL:
	case LINK_ERF:
	case LINK_IB:
	case LINK_SLL2:
		return true;
	default:
		return false;
	}
}

bool capture_is(const void *buf, size_t len)
{
	struct octets_in r = octets_from(buf, len);
	uint32_t v = file_u32(&r, false);

	return !r.failed && (is_magic(v) || is_magic(__builtin_bswap32(v)) || v == NG_SECTION);
}

int capture_open(struct capture_reader *r, const void *buf, size_t len, char *why, size_t why_len)
{
	struct octets_in b = octets_from(buf, len);
	uint32_t magic = file_u32(&b, false), link;
	bool little = is_magic(__builtin_bswap32(magic));

	*r = (struct capture_reader){ .p = buf, .end = b.end };
	if (magic == NG_SECTION && !b.failed) {
		r->blocks = true;
		return 0;
	}
	if (little)
		magic = __builtin_bswap32(magic);
	octets_take(&b, 16);
	link = file_u32(&b, little) & 0xffff; /* above it: length of a frame check sequence */
	if (!is_magic(magic) || b.failed) {
		snprintf(why, why_len, "neither a pcap nor a pcapng file");
		return -1;
	}
	if (!knows_link(link)) {
		snprintf(
			why, why_len,
			"a capture of link type %u, which is neither InfiniBand's (%d, %d) nor one "
			"with IP (%d, %d, %d)",
			(unsigned)link, LINK_ERF, LINK_IB, LINK_ETHERNET, LINK_RAW, LINK_SLL);
		return -1;
	}
	r->p = b.p;
	r->little = little;
	r->links = 1;
	r->link[0] = (uint16_t)link;
	r->per_s[0] = magic == PCAP_NANOS ? NS_PER_S : 1000000;
	return 0;
}

/* ---- from a packet to its CM message ---- */

/* From the base transport header on. */
static bool get_bth(struct octets_in *b, struct capture_mad *m)
{
	uint8_t opcode = (uint8_t)octets_get(b, 1);
	uint32_t qpn;

	octets_take(b, 1);
	m->pkey = (uint16_t)octets_get(b, 2);
	qpn = (uint32_t)octets_get(b, 4) & 0xffffff;
	octets_take(b, 4 + DETH_LEN);
	m->mad = octets_take(b, DDPS_CM_MAD_LEN);
	return !b->failed && opcode == UD_SEND && qpn == 1 && m->mad[1] == DDPS_CM_CLASS;
}

/* An InfiniBand packet, from its local route header on. */
static bool get_ib(struct octets_in *b, struct capture_mad *m)
{
	uint16_t first = (uint16_t)octets_get(b, 2);
	uint8_t next = first & 3;

	m->sl = first >> 4 & 15;
	m->dlid = (uint16_t)octets_get(b, 2);
	octets_take(b, 2);
	m->slid = (uint16_t)octets_get(b, 2);
	if (next == LNH_GRH)
		octets_take(b, GRH_LEN);
	else if (next != LNH_BTH)
		return false;
	return get_bth(b, m);
}

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

static bool get_udp(struct octets_in *b, struct capture_mad *m)
{
	octets_take(b, UDP_LEN);
	return get_bth(b, m);
}

/* Of a subnet in UDP the last octet of an address is the LID (<ddpsess/ib_udp.h>). */
static bool get_ip4(struct octets_in *b, struct capture_mad *m)
{
	unsigned head = (unsigned)octets_get(b, 1);
	uint16_t fragment;
	uint8_t proto;

	octets_take(b, 5);
	fragment = (uint16_t)octets_get(b, 2) & 0x3fff;
	octets_take(b, 1);
	proto = (uint8_t)octets_get(b, 1);
	octets_take(b, 5);
	m->slid = (uint16_t)octets_get(b, 1);
	octets_take(b, 3);
	m->dlid = (uint16_t)octets_get(b, 1);
	head = (head & 15) * 4;
	if (head < 20 || fragment || proto != PROTO_UDP)
		return false;
	octets_take(b, head - 20);
	return get_udp(b, m);
}

static bool get_ip6(struct octets_in *b, struct capture_mad *m)
{
	uint8_t next;

	octets_take(b, 6);
	next = (uint8_t)octets_get(b, 1);
	octets_take(b, 33);
	return next == PROTO_UDP && get_udp(b, m);
}

static bool get_ip(struct octets_in *b, struct capture_mad *m)
{
	if (b->p == b->end)
		return false;
	return *b->p >> 4 == 4 ? get_ip4(b, m) : *b->p >> 4 == 6 && get_ip6(b, m);
}

static bool get_typed(struct octets_in *b, uint16_t type, struct capture_mad *m)
{
	while ((type == 0x8100 || type == 0x88a8) && !b->failed) { /* VLANs */
		octets_take(b, 2);
		type = (uint16_t)octets_get(b, 2);
	}
	if (type == ETH_IP4 || type == ETH_IP6)
		return get_ip(b, m);
	if (type != ETH_ROCE1)
		return false;
	octets_take(b, GRH_LEN);
	return get_bth(b, m);
}

static bool get_mad(const struct packet *p, struct capture_mad *m)
{
	struct octets_in b = octets_from(p->at, p->len);
	uint16_t type;

	*m = (struct capture_mad){ .time_ns = p->time_ns };
	switch (p->link) {
	case LINK_ERF:
		return get_erf(&b, m);
	case LINK_IB:
		return get_ib(&b, m);
	case LINK_RAW:
		return get_ip(&b, m);
	case LINK_NULL:
	case LINK_LOOP:
		octets_take(&b, 4);
		return get_ip(&b, m);
	case LINK_SLL2:
		type = (uint16_t)octets_get(&b, 2);
		octets_take(&b, 18);
		return get_typed(&b, type, m);
	case LINK_ETHERNET:
	case LINK_SLL:
		octets_take(&b, p->link == LINK_SLL ? 14 : 12);
		type = (uint16_t)octets_get(&b, 2);
		return get_typed(&b, type, m);
	default:
		return false;
	}
}

/* ---- from a file to its packets ---- */

static uint64_t to_ns(uint64_t t, uint64_t per_s)
{
	uint64_t part = t % per_s, scale = per_s > NS_PER_S ? per_s / NS_PER_S : 1;

	return t / per_s * NS_PER_S + part / scale * NS_PER_S / (per_s / scale);
}

/* Units of time in a second, as an option says it: powers of ten or two. */
static uint64_t units_of(uint8_t resolution)
{
	uint64_t n = 1;
	unsigned k = resolution & 0x7f;

	if (resolution & 0x80)
		return k < 64 ? 1ull << k : 1;
	for (; k && k <= 19; k--)
		n *= 10;
	return n;
}

static void add_interface(struct capture_reader *r, struct octets_in *b)
{
	uint64_t per_s = 1000000;
	uint16_t link = file_u16(b, r->little), code, len;

	octets_take(b, 6);
	while (b->p != b->end && !b->failed) {
		const uint8_t *value;

		code = file_u16(b, r->little);
		len = file_u16(b, r->little);
		value = octets_take(b, (len + 3u) & ~3u);
		if (!code || !value)
			break;
		if (code == NG_TSRESOL && len == 1)
			per_s = units_of(*value);
	}
	if (r->links < CAPTURE_LINKS) {
		r->link[r->links] = link;
		r->per_s[r->links] = per_s;
	}
	r->links++;
}

/* Return: whether the block has a packet. */
static bool get_packet(struct capture_reader *r, uint32_t type, struct octets_in *b,
		       struct packet *p)
{
	uint32_t i = type == NG_PACKET ? file_u32(b, r->little) : 0, len;
	uint64_t t = 0;

	if (type == NG_PACKET) {
		t = (uint64_t)file_u32(b, r->little) << 32;
		t |= file_u32(b, r->little);
	}
	len = file_u32(b, r->little);
	if (type == NG_PACKET)
		octets_take(b, 4);
	if (b->failed)
		return false;
	if (len > (size_t)(b->end - b->p)) /* a simple one has the length on the wire */
		len = (uint32_t)(b->end - b->p);
	*p = (struct packet){ .at = b->p, .len = len };
	if (i >= r->links || i >= CAPTURE_LINKS)
		p->link = UINT16_MAX; /* none that is known */
	else
		p->link = r->link[i];
	if (p->link != UINT16_MAX)
		p->time_ns = to_ns(t, r->per_s[i]);
	return true;
}

/* Return: 1 and the packet, 0: a block without one, -1: it is cut. */
static int next_block(struct capture_reader *r, struct packet *p)
{
	struct octets_in b = octets_from(r->p, (size_t)(r->end - r->p)), body;
	uint32_t type = file_u32(&b, r->little), len;
	const uint8_t *at;

	if (type == NG_SECTION) { /* its third number says the order of all */
		struct octets_in order = b;

		octets_take(&order, 4);
		r->little = octets_get(&order, 4) != NG_ORDER;
		r->links = 0;
	}
	len = file_u32(&b, r->little);
	at = len >= 12 && !(len & 3) ? octets_take(&b, len - 8) : NULL;
	if (!at)
		return -1;
	r->p = b.p;
	body = octets_from(at, len - 12);
	if (type == NG_INTERFACE)
		add_interface(r, &body);
	return (type == NG_PACKET || type == NG_SIMPLE) && get_packet(r, type, &body, p);
}

static int next_record(struct capture_reader *r, struct packet *p)
{
	struct octets_in b = octets_from(r->p, (size_t)(r->end - r->p));
	uint64_t seconds = file_u32(&b, r->little);
	uint64_t part = file_u32(&b, r->little);
	uint32_t len = file_u32(&b, r->little);

	octets_take(&b, 4);
	p->at = octets_take(&b, len);
	if (!p->at)
		return -1;
	r->p = b.p;
	p->len = len;
	p->link = r->link[0];
	p->time_ns = seconds * NS_PER_S + part * (NS_PER_S / r->per_s[0]);
	return 1;
}

int capture_next(struct capture_reader *r, struct capture_mad *m)
{
	while (r->p != r->end) {
		struct packet p;
		int res = r->blocks ? next_block(r, &p) : next_record(r, &p);

		if (res < 0)
			return -1;
		if (res && get_mad(&p, m))
			return 1;
		r->skipped += res != 0;
	}
	return 0;
}
