/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The users of associations.  What a message holds follows of what it is, so whoever gets it knows
 * whether it is whole, once and in its order, and of this association: not of one before a restart.
 */
#include "sim/sctp_world.h"

#define TABLE (1u << 16)

static uint8_t table[TABLE + MAX_LEN];

void user_init(void)
{
	if (!table[0] && !table[1])
		for (uint64_t i = 0, s = 1; i < sizeof table; i++)
			table[i] = (uint8_t)sim_next(&s);
}

/* ---- messages ---- */

static const uint8_t *contents(const struct side *from, uint16_t sid, bool ordered, uint32_t n)
{
	uint32_t x = (from->slot->salt ^ n * 2654435761u ^ sid * 40503u) + 2u * from->id + ordered;

	x ^= x >> 15;
	x *= 0x2c1b3c6du;
	return table + (x >> 16) % TABLE;
}

static void put_sctp_user_u32(uint8_t *p, uint32_t v)
{
	for (unsigned i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static uint32_t get32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static size_t get_sctp_user_length(void)
{
	if (w.brief)
		return HEAD + sn_below(&w.net, w.trickles ? 40 : 400);
	switch (sn_below(&w.net, 8)) {
	case 0:
		return HEAD + sn_below(&w.net, w.max_len - HEAD);
	case 1:
		return 1100 + sn_below(&w.net, 400);
	default:
		return HEAD + sn_below(&w.net, 100);
	}
}

static bool send_one(struct side *s)
{
	uint16_t sid = (uint16_t)sn_below(&w.net, STREAMS);
	bool ordered = sn_chance(&w.net, 0.4);
	uint32_t *next = ordered ? s->next_ordered : s->next_unordered, n = next[sid];
	size_t len = get_sctp_user_length();
	uint8_t head[HEAD];
	struct iovec iov[2] = { { head, HEAD },
				{ (void *)(uintptr_t)contents(s, sid, ordered, n), len - HEAD } };
	int err;

	if (n >= MSGS)
		return false;
	put_sctp_user_u32(head, n);
	put_sctp_user_u32(head + 4, (uint32_t)len);
	put_sctp_user_u32(head + 8, s->a->own_tag);
	err = ddps_sctp_send(s->a, sid, ordered ? 7 : 8, ordered ? 0 : DDPS_SCTP_UNORDERED, iov,
			     len > HEAD ? 2 : 1, w.net.now);
	s->blocked |= err == DDPS_E_AGAIN;
	check(!err || err == DDPS_E_AGAIN || err == DDPS_E_STATE ||
		      (err == DDPS_E_NOMEM && w.poor > 0),
	      "send: %s", ddps_strerror(err));
	if (err)
		return false;
	next[sid]++;
	s->sent++;
	w.t->n[N_MESSAGES]++;
	return true;
}

bool user_usable(const struct side *s)
{
	return s->a && s->up && !s->gone && !s->shutting;
}

/* What goes with the cookie: nothing, a little, more than fits. */
static void on_answered(void *user)
{
	struct side *s = user;
	unsigned most = (unsigned)sn_below(&w.net, 2) ? 1 + (unsigned)sn_below(&w.net, 16) : 0;

	check(!s->up, "answered after it was up");
	while (most-- && !s->blocked && s->sent < s->to_send && send_one(s))
		w.t->n[N_EARLY]++;
}

void user_send_some(struct side *s)
{
	unsigned most = 1 + (unsigned)sn_below(&w.net, w.trickles ? 1 : w.trouble ? 8 : 32);

	if (w.eager && w.troubled)
		most = MESSAGES;
	while (most-- && user_usable(s) && !s->blocked && s->sent < s->to_send && send_one(s))
		;
	/* It is over when all is sent, or at any time. */
	if (user_usable(s) && !s->blocked &&
	    (s->sent >= s->to_send ? sn_chance(&w.net, w.trouble == FAILS ? 0.05 : 0.5)
				   : sn_chance(&w.net, w.trouble ? 0 : 0.02))) {
		s->shutting = true;
		ddps_sctp_shutdown(s->a, w.net.now);
	}
}

/* ---- upcalls ---- */

static void take_sctp_user_up(void *user)
{
	struct side *s = user;

	check(!s->up, "up twice");
	s->up = true;
	w.t->n[N_ASSOCS] += s->slot->side[!s->id].up;
	user_send_some(s);
}

static void on_message(void *user, const struct ddps_sctp_msg *m)
{
	struct side *s = user, *from = &s->slot->side[!s->id];
	uint32_t n = m->len < HEAD ? 0 : get32(m->data);

	check(m->stream < STREAMS && m->len >= HEAD && get32(m->data + 4) == m->len && n < MSGS,
	      "message of stream %u, %zu octets", m->stream, m->len);
	check(get32(m->data + 8) == s->a->peer_tag,
	      "node %u: a message of another association than this one", s->node);
	check(m->ppid == (m->unordered ? 8u : 7u), "payload protocol %u", m->ppid);
	check(!s->paused, "a message while paused");
	if (w.failed)
		return;
	check(!memcmp(m->data + HEAD, contents(from, m->stream, !m->unordered, n), m->len - HEAD),
	      "altered");
	if (m->unordered) {
		check(!(s->seen[m->stream][n / 8] & 1u << n % 8), "stream %u: %u twice", m->stream,
		      n);
		s->seen[m->stream][n / 8] |= (uint8_t)(1u << n % 8);
	} else {
		check(n == s->want_ordered[m->stream], "stream %u: %u, not %u", m->stream, n,
		      s->want_ordered[m->stream]);
		s->want_ordered[m->stream]++;
	}
	s->received++;
	sound_touch(s);
	if (sn_chance(&w.net, 0.05)) /* an upcall may ask for output, send, hold back */
		sn_flush_node(&w.net, s->node);
	if (sn_chance(&w.net, 0.02))
		user_send_some(s);
	if (!w.calm && !w.clean && !w.trouble && sn_chance(&w.net, 0.005)) {
		s->paused = true;
		ddps_sctp_pause(s->a, true, w.net.now);
	}
}

static void on_writable(void *user)
{
	struct side *s = user;

	check(s->blocked, "writable without need");
	s->blocked = false;
	user_send_some(s);
}

static void on_acked(void *user, uint64_t n)
{
	struct side *s = user;

	check(n >= s->acked && n >= s->before && n - s->before <= s->sent,
	      "acked %" PRIu64 " of %" PRIu64 " before a restart and %u", n, s->before, s->sent);
	s->acked = n;
	sound_touch(s);
}

static void on_shutdown(void *user)
{
	struct side *s = user;

	s->shutting = true;
}

static void on_restarted(void *user)
{
	struct side *s = user;

	check(s->slot->broken || s->slot->both, "a restart out of nothing");
	w.t->n[N_RESTARTS]++;
	memset(s->want_ordered, 0, sizeof s->want_ordered);
	memset(s->next_ordered, 0, sizeof s->next_ordered);
	memset(s->next_unordered, 0, sizeof s->next_unordered);
	memset(s->seen, 0, sizeof s->seen);
	s->before += s->sent;
	s->sent = s->received = 0;
	s->blocked = s->shutting = false;
	user_send_some(s);
}

static void on_gone(void *user, const struct ddps_error *e)
{
	struct side *s = user;

	check(!s->gone, "gone twice");
	s->gone = true;
	s->code = e->code;
	/* who comes when nobody is at the only address that it knows is refused */
	check(!e->code || w.harsh || s->slot->broken ||
		      (w.trouble == REFUSES && w.troubled && e->code == DDPS_E_REFUSED),
	      "node %u ended: %s", s->node, e->text);
	check(e->code != DDPS_E_PROTOCOL, "node %u found fault: %s", s->node, e->text);
	ddps_sctp_assoc_free(s->a, w.net.now);
	s->a = NULL;
	if (sn_chance(&w.net, 0.5))
		sn_flush_node(&w.net, s->node);
}

const struct ddps_sctp_up user_up = { .answered = on_answered,
				      .up = take_sctp_user_up,
				      .message = on_message,
				      .writable = on_writable,
				      .acked = on_acked,
				      .peer_shutdown = on_shutdown,
				      .restarted = on_restarted,
				      .gone = on_gone };

struct side *user_whose(unsigned node, uint16_t port, uint16_t peer_port)
{
	uint16_t ours = port == PORT ? peer_port : port;
	unsigned i = (unsigned)(ours - OURS);

	if (ours == PORT) /* both open: the first slot of two nodes */
		i = 0;
	if (i >= w.nslots)
		return NULL;
	for (unsigned k = 0; k < 2; k++)
		if (w.slot[i].side[k].node == node)
			return &w.slot[i].side[k];
	return NULL;
}

void user_accept(void *user, struct ddps_sctp_assoc *a)
{
	struct ddps_sctp_info in;
	struct side *s;

	ddps_sctp_info(a, &in);
	s = user_whose((unsigned)(uintptr_t)user, in.port, in.peer_port);
	/* A late one: its peer has had its end. */
	if (!s || s->a || s->gone || !s->slot->open || s->slot->side[!s->id].gone) {
		ddps_sctp_assoc_free(a, w.net.now);
		return;
	}
	s->a = a;
	ddps_sctp_assoc_set_up(a, &user_up, s);
	take_sctp_user_up(s);
}

void user_side(struct side *s)
{
	static const unsigned counts[] = { 0, 1, 1, 2, 3, 5, 10, 60 };
	struct slot *slot = s->slot;
	unsigned node = s->node, id = s->id;

	*s = (struct side){ .slot = slot, .node = node, .id = id };
	s->to_send = trouble_messages(counts[sn_below(&w.net, 8)]);
}
