/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams: lost, doubled, late and overtaken, changed. */
#include "conform/relay/relay_in.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static bool of_thousand(struct cf_relay *r, unsigned n)
{
	return n && relay_chance(r, 1000) < n;
}

static void lay_datagram(struct cf_relay *r, int side, size_t len, uint64_t now)
{
	struct piece *p = relay_push(&r->lane[side], r->buf, len, relay_due(r, now));

	if (!p)
		r->lost++;
	else if (len && of_thousand(r, r->plan.flip)) {
		p->b[relay_chance(r, (uint32_t)len)] ^= (uint8_t)(1u << relay_chance(r, 8));
		p->wrong = true;
		r->flipped++;
	}
}

static void take_datagram(struct cf_relay *r, int side, size_t len, uint64_t now)
{
	if (side == 0 && r->plan.stroke == CF_STALL && r->seen++ == r->plan.at) {
		r->stall = now + r->plan.stall_ms * 1000000ull;
		r->strokes++;
	}
	if (now < r->stall || of_thousand(r, r->plan.lose) ||
	    r->lane[side].held > RELAY_HELD * 16) {
		r->lost++;
		return;
	}
	lay_datagram(r, side, len, now);
	if (of_thousand(r, r->plan.twice)) {
		lay_datagram(r, side, len, now);
		r->doubled++;
	}
}

/* A call failed: perhaps for the target's ICMP, since nobody has that port. */
static void note_udp_refusal(struct cf_relay *r)
{
	if (errno != ECONNREFUSED)
		return;
	r->refusal = errno;
	r->refused++;
}

/* Each side a bounded number of them a turn, so that what is due leaves. */
static void read_datagrams(struct cf_relay *r, int side)
{
	int fd = side ? r->back : r->front;
	ssize_t n;

	for (int i = 0; i < 64; i++) {
		struct sockaddr_storage from;
		socklen_t len = sizeof from;

		n = recvfrom(fd, r->buf, sizeof r->buf, MSG_DONTWAIT, (struct sockaddr *)&from,
			     &len);
		if (n < 0 && side == 1)
			note_udp_refusal(r);
		if (n < 0)
			return;
		if (side == 0) {
			r->from = from;
			r->from_len = len;
		}
		take_datagram(r, side, (size_t)n, relay_now());
	}
}

static void send_due_datagrams(struct cf_relay *r, int side, uint64_t now)
{
	struct lane *l = &r->lane[side];

	while (l->first && l->first->due <= now) {
		struct piece *p = relay_pop(l);
		ssize_t n = side == 0 ? send(r->back, p->b, p->len, MSG_DONTWAIT)
				      : sendto(r->front, p->b, p->len, MSG_DONTWAIT,
					       (struct sockaddr *)&r->from, r->from_len);

		if (n < 0 && side == 0)
			note_udp_refusal(r);
		if (n < 0)
			r->lost++;
		else
			r->passed++;
		if (n >= 0)
			cf_trace_packet(r->trace, side == 1, r->links_made, p->wrong, p->b, p->len);
		free(p);
	}
}

void relay_udp_turn(struct cf_relay *r)
{
	for (int side = 0; side < 2; side++) {
		read_datagrams(r, side);
		send_due_datagrams(r, side, relay_now());
	}
}

size_t relay_udp_fds(struct cf_relay *r, struct pollfd *p, uint64_t *next)
{
	for (int side = 0; side < 2; side++) {
		p[side] = (struct pollfd){ .fd = side ? r->back : r->front, .events = POLLIN };
		if (r->lane[side].first && r->lane[side].first->due < *next)
			*next = r->lane[side].first->due;
	}
	return 2;
}

void relay_udp_end(struct cf_relay *r)
{
	struct piece *p;

	for (int side = 0; side < 2; side++)
		while ((p = relay_pop(&r->lane[side])))
			free(p);
}
