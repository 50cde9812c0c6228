/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The SCTP of the conformance suite's peer, which hears whatever a target sends: packets with the
 * right checksum and mostly the right tag, messages of its own, time.  No socket is behind it:
 * what it sends is lost.
 */
#include "conform/peer/sctp_packet.h"
#include "fuzz.h"
#include "mutate.h"
#include <netinet/in.h>
#include <string.h>

#define STEPS_MAX 300
#define NOW	  (1ull << 62)
#define PORT	  7174u
#define KEPT_MAX  (5u << 20)

struct world {
	struct cf cf;
	struct cf_net net;
	struct cf_below below;
	struct cf_assoc as;
	struct cf_pkt pkt;
	uint32_t tag; /* the target's */
};

/* ---- the target ---- */

static void begin_conform_sctp_fuzz(struct world *w, const struct cf_link *l, uint32_t tag)
{
	w->pkt.len = 12;
	cf_put16(w->pkt.b, PORT);
	cf_put16(w->pkt.b + 2, l ? l->port : (uint16_t)PORT);
	cf_put32(w->pkt.b + 4, tag);
}

static void deliver_to_tester(struct world *w)
{
	static const struct sockaddr_storage from = { .ss_family = AF_INET };
	uint8_t *exact;
	uint32_t sum;

	memset(w->pkt.b + 8, 0, 4);
	sum = cf_crc32c(w->pkt.b, w->pkt.len);
	for (unsigned i = 0; i < 4; i++)
		w->pkt.b[8 + i] = (uint8_t)(sum >> 8 * i);
	exact = fuzz_exact(w->pkt.b, w->pkt.len);
	cf_pkt_in(&w->net, -1, &from, sizeof(struct sockaddr_in), exact, w->pkt.len);
	free(exact);
}

static void init(struct world *w, const struct cf_link *l, uint8_t type, uint32_t tag)
{
	uint8_t *c;

	begin_conform_sctp_fuzz(w, l, tag);
	c = cf_pkt_chunk(&w->pkt, type, 0, 24);
	cf_put32(c, w->tag);
	cf_put32(c + 4, 60000);
	cf_put32(c + 8, 100u << 16 | 100);
	cf_put32(c + 12, 0xfffffff0u); /* TSNs wrap soon */
	cf_put32(c + 16, 7u << 16 | 8);
	cf_put32(c + 20, 0x01020304);
	deliver_to_tester(w);
}

static void cookie(struct world *w, const struct cf_link *l, uint8_t type)
{
	begin_conform_sctp_fuzz(w, l, l->tag);
	if (type == CF_C_COOKIE_ECHO)
		memcpy(cf_pkt_chunk(&w->pkt, type, 0, l->cookie_len), l->cookie, l->cookie_len);
	else
		cf_pkt_chunk(&w->pkt, type, 0, 0);
	deliver_to_tester(w);
}

static void send_raw_chunks(struct world *w, const struct cf_link *l, struct ddps_rbuf *in)
{
	const uint32_t tag[] = { l ? l->tag : 0, w->tag, 0, 1 };
	unsigned how = ddps_rbuf_u8(in);
	size_t got;
	const uint8_t *p = fuzz_some(in, how >> 2, &got);

	begin_conform_sctp_fuzz(w, l, tag[how & 3]);
	if (got)
		memcpy(w->pkt.b + w->pkt.len, p, got);
	w->pkt.len += got;
	deliver_to_tester(w);
}

static void send_data_chunk_to_tester(struct world *w, const struct cf_link *l,
				      struct ddps_rbuf *in)
{
	uint32_t tsn = l->cum + ddps_rbuf_u8(in) - 100u;
	uint8_t flags = ddps_rbuf_u8(in) & 7;
	size_t len = 16u * ddps_rbuf_u8(in);
	uint8_t *c;

	begin_conform_sctp_fuzz(w, l, l->tag);
	c = cf_pkt_chunk(&w->pkt, CF_C_DATA, flags, 12 + len);
	cf_put32(c, tsn);
	cf_put32(c + 4, 0);
	cf_put32(c + 8, 16);
	memset(c + 12, (int)(tsn & 0xff), len);
	deliver_to_tester(w);
}

static void send_sack_to_tester(struct world *w, const struct cf_link *l, struct ddps_rbuf *in)
{
	uint8_t *c;

	begin_conform_sctp_fuzz(w, l, l->tag);
	c = cf_pkt_chunk(&w->pkt, CF_C_SACK, 0, 16);
	cf_put32(c, l->tsn - 1 - ddps_rbuf_u8(in) % 8);
	cf_put32(c + 4, 256u * ddps_rbuf_u8(in));
	cf_put32(c + 8, 1u << 16);
	cf_put16(c + 12, (uint16_t)(1 + ddps_rbuf_u8(in) % 4));
	cf_put16(c + 14, (uint16_t)(1 + ddps_rbuf_u8(in) % 8));
	deliver_to_tester(w);
}

/* ---- what holds at any time ---- */

static void check_in(const struct cf_link *l)
{
	size_t octets = 0;

	for (const struct cf_data *d = l->in; d; d = d->next) {
		FUZZ_CHECK(!d->next || cf_tsn_before(d->tsn, d->next->tsn));
		FUZZ_CHECK(!d->handed || cf_tsn_before(l->cum, d->tsn));
		octets += sizeof *d + d->len;
	}
	FUZZ_CHECK(octets == l->in_octets && octets <= KEPT_MAX);
}

static void check_tester_link(const struct cf_link *l)
{
	unsigned n = 0, flying = 0;
	size_t octets = 0;

	for (const struct cf_data *d = l->out; d; d = d->next) {
		n++;
		if (!d->sent || d->acked)
			continue;
		flying++;
		octets += d->len;
	}
	FUZZ_CHECK(n == l->nout && flying == l->flying && octets == l->flying_octets);
	FUZZ_CHECK(!flying || l->due != UINT64_MAX || l->state < CF_L_UP);
}

/* The case reads the oldest message. */
static void read_oldest_message(struct world *w)
{
	struct cf_queued *q = w->as.first;

	if (!q)
		return;
	FUZZ_CHECK(q->m.len <= CF_MAX && q->m.len <= w->as.held);
	w->as.first = q->next;
	if (!w->as.first)
		w->as.last = &w->as.first;
	w->as.held -= q->m.len;
	free(q);
}

static void ours(struct world *w, struct cf_link *l, unsigned b, struct ddps_rbuf *in)
{
	static const uint8_t text[4000];

	if (b < 0xd8) {
		if (l->state == CF_L_UP &&
		    cf_link_put(l, 1, 16, text, 16u * ddps_rbuf_u8(in) % 4000))
			cf_link_flush(l);
	} else if (b < 0xe8) {
		if (l->due != UINT64_MAX)
			cf_link_expired(l);
	} else if (b < 0xf8) {
		read_oldest_message(w);
		cf_link_reopen(l);
	} else if (b < 0xfc && l->state == CF_L_UP) {
		l->state = CF_L_SHUTDOWN_DUE;
		cf_link_go_on(l);
	} else if (b == 0xff) {
		cf_link_abort(l);
	}
}

static void step_conform_sctp_fuzz(struct world *w, struct cf_link *l, struct ddps_rbuf *in)
{
	unsigned b = ddps_rbuf_u8(in);

	if (b < 0x40 || !l)
		send_raw_chunks(w, l, in);
	else if (b < 0x98)
		send_data_chunk_to_tester(w, l, in);
	else if (b < 0xb0)
		send_sack_to_tester(w, l, in);
	else if (b < 0xb8)
		init(w, l, b & 1 ? CF_C_INIT : CF_C_INIT_ACK, b & 1 ? 0 : l->tag);
	else if (b < 0xc0)
		cookie(w, l, b & 1 ? CF_C_COOKIE_ECHO : CF_C_COOKIE_ACK);
	else
		ours(w, l, b, in);
}

/* Either end begins; then the association is up, unless the input says that it takes its time. */
static void start_conform_sctp_fuzz(struct world *w, unsigned how)
{
	struct cf_link *l;

	w->net.cf = &w->cf;
	w->net.below = &w->below;
	w->as.net = &w->net;
	w->as.last = &w->as.first;
	w->tag = 0x55667788;
	w->below.port = PORT;
	w->below.listen_fd = how & 1 ? -1 : -2;
	if (how & 1) {
		w->net.waiting = &w->as;
		if (how & 2)
			return;
		init(w, NULL, CF_C_INIT, 0);
		FUZZ_CHECK(w->below.links);
		cookie(w, w->below.links, CF_C_COOKIE_ECHO);
	} else {
		l = cf_link_new(&w->net, -1, true);
		FUZZ_CHECK(l);
		l->as = &w->as;
		l->peer_port = PORT;
		w->as.below = l;
		cf_link_dial(l);
		if (how & 2)
			return;
		init(w, l, CF_C_INIT_ACK, l->tag);
		cookie(w, l, CF_C_COOKIE_ACK);
	}
	FUZZ_CHECK(w->as.up && w->below.links->state == CF_L_UP);
}

int LLVMFuzzerTestOneInput(const uint8_t *in_data, size_t size)
{
	struct ddps_rbuf in = ddps_rbuf_init(in_data, size);
	struct world *w = calloc(1, sizeof *w);

	FUZZ_CHECK(w);
	fuzz_random_reset();
	fuzz_time_set(NOW);
	w->cf.trace = cf_trace_new();
	start_conform_sctp_fuzz(w, ddps_rbuf_u8(&in));
	for (int i = 0; i < STEPS_MAX && fuzz_more(&in); i++) {
		step_conform_sctp_fuzz(w, w->as.below ? w->as.below : w->below.links, &in);
		for (struct cf_link *l = w->below.links; l; l = l->next) {
			check_in(l);
			check_tester_link(l);
		}
	}
	while (w->below.links) {
		struct cf_link *l = w->below.links;

		w->below.links = l->next;
		cf_link_abort(l);
		free(l);
	}
	while (w->as.first)
		read_oldest_message(w);
	FUZZ_CHECK(!w->as.held);
	cf_trace_free(w->cf.trace);
	free(w);
	return 0;
}

/* ---- scripts as step_conform_sctp_fuzz() reads them ---- */

static size_t get_conform_sctp_fuzz_step_len(const uint8_t *p, size_t n)
{
	size_t len = 1;

	if (p[0] < 0x40)
		len = 2 + (n > 1 ? p[1] >> 2 : 0);
	else if (p[0] < 0x98)
		len = 4;
	else if (p[0] < 0xb0)
		len = 5;
	else if (p[0] >= 0xc0 && p[0] < 0xd8)
		len = 2;
	return len < n ? len : n;
}

/* A packet of chunks, mostly with the tester's tag; other steps keep their kind. */
static size_t change_conform_sctp_fuzz_step(uint8_t *p, size_t n, struct fuzz_dice *d)
{
	if (n && p[0] >= 0x40)
		return 1 + (n > 1 ? LLVMFuzzerMutate(p + 1, n - 1, n - 1) : 0);
	if (n < 2) {
		p[0] = 0;
		p[1] = fuzz_roll(d, 4) ? 0 : (uint8_t)fuzz_roll(d, 4);
		n = 2;
	}
	n = fuzz_mutate_chunks(p + 2, n - 2, 63, d);
	p[1] = (uint8_t)(n << 2 | (p[1] & 3));
	return 2 + n;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	static const struct fuzz_script script = { 1, get_conform_sctp_fuzz_step_len,
						   change_conform_sctp_fuzz_step };

	return fuzz_mutate_script(&script, data, size, max, seed);
}
