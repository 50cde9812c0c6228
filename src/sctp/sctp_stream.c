/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole messages: order in a stream, holds, delivery. */
#include "sctp/sctp_in.h"

static struct ddps_sc_stream *find_stream(const struct ddps_sctp_assoc *a, uint16_t sid)
{
	struct ddps_sc_stream *s = NULL;

	if (a->streams)
		HASH_FIND(hh, a->streams, &sid, sizeof sid, s);
	return s;
}

static struct ddps_sc_stream *stream_get(struct ddps_sctp_assoc *a, uint16_t sid)
{
	struct ddps_sc_stream *s = find_stream(a, sid);

	if (s)
		return s;
	s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->sid = sid;
	TAILQ_INIT(&s->kept);
	HASH_ADD(hh, a->streams, sid, sizeof s->sid, s);
	if (s->hh.tbl)
		return s;
	free(s);
	return NULL;
}

static size_t get_stream_share(const struct ddps_sctp_assoc *a)
{
	return a->e->c.rwnd / 8 > 65536 ? a->e->c.rwnd / 8 : 65536;
}

/* ---- copies ---- */

static struct ddps_sc_held *hold_whole_message(struct ddps_sctp_assoc *a,
					       const struct ddps_sctp_msg *m)
{
	struct ddps_sc_held *h = ddps_sc_pool_get(&a->e->pool, sizeof *h + m->len);

	if (!h) {
		a->e->st.no_memory++;
		return NULL;
	}
	memset(h, 0, sizeof *h);
	h->m = *m;
	h->m.data = h->octets;
	memcpy(h->octets, m->data, m->len);
	ddps_sc_charge(a, m->len);
	return h;
}

static void held_free(struct ddps_sctp_assoc *a, struct ddps_sc_held *h)
{
	ddps_sc_uncharge(a, h->m.len);
	ddps_sc_pool_put(&a->e->pool, h, sizeof *h + h->m.len);
}

static void empty(struct ddps_sctp_assoc *a, struct ddps_sc_helds *q)
{
	struct ddps_sc_held *h;

	while ((h = TAILQ_FIRST(q))) {
		TAILQ_REMOVE(q, h, link);
		held_free(a, h);
	}
}

void ddps_sc_streams_free(struct ddps_sctp_assoc *a)
{
	struct ddps_sc_stream *s, *tmp;
	struct ddps_sc_held *h, *htmp;

	HASH_ITER(hh, a->streams, s, tmp) {
		empty(a, &s->kept);
		HASH_DEL(a->streams, s);
		free(s);
	}
	HASH_ITER(hh, a->ahead, h, htmp) {
		HASH_DEL(a->ahead, h);
		held_free(a, h);
	}
	empty(a, &a->ready);
}

/* ---- delivery ---- */

static bool is_delivered_now(const struct ddps_sctp_assoc *a, const struct ddps_sc_stream *s)
{
	return !a->paused && TAILQ_EMPTY(&a->ready) && !(s && s->hold);
}

static void overrun(struct ddps_sctp_assoc *a, struct ddps_sc_stream *s)
{
	s->overrun = true;
	empty(a, &s->kept);
	a->e->st.overruns++;
	if (a->up->overrun)
		a->up->overrun(a->user, s->sid);
}

static void keep_in_stream(struct ddps_sctp_assoc *a, struct ddps_sc_stream *s,
			   struct ddps_sc_held *h)
{
	TAILQ_INSERT_TAIL(&s->kept, h, link);
	s->octets += h->m.len + DDPS_SC_ITEM;
	if (s->octets > get_stream_share(a))
		overrun(a, s);
}

/* It is this message's turn.  0 or DDPS_E_NOMEM. */
static int take_message_turn(struct ddps_sctp_assoc *a, struct ddps_sc_stream *s,
			     const struct ddps_sctp_msg *m)
{
	struct ddps_sc_held *h;

	if (is_delivered_now(a, s)) {
		a->up->message(a->user, m);
		return 0;
	}
	if (s && s->overrun)
		return 0;
	h = hold_whole_message(a, m);
	if (!h)
		return DDPS_E_NOMEM;
	if (s && s->hold)
		keep_in_stream(a, s, h);
	else
		TAILQ_INSERT_TAIL(&a->ready, h, link);
	return 0;
}

/* ---- order ---- */

static uint32_t order_key(uint16_t sid, uint16_t ssn)
{
	return (uint32_t)sid << 16 | ssn;
}

static unsigned hash_stream_key(const struct ddps_sctp_assoc *a, uint32_t key)
{
	return (unsigned)ddps_siphash(&a->e->hash_key, &key, sizeof key);
}

static struct ddps_sc_held *find_ahead(const struct ddps_sctp_assoc *a, uint32_t key)
{
	struct ddps_sc_held *h = NULL;

	if (a->ahead)
		HASH_FIND_BYHASHVALUE(hh, a->ahead, &key, sizeof key, hash_stream_key(a, key), h);
	return h;
}

static int wait_in_order(struct ddps_sctp_assoc *a, const struct ddps_sctp_msg *m)
{
	struct ddps_sc_held *h = hold_whole_message(a, m);

	if (!h)
		return DDPS_E_NOMEM;
	h->key = order_key(m->stream, m->ssn);
	HASH_ADD_BYHASHVALUE(hh, a->ahead, key, sizeof h->key, hash_stream_key(a, h->key), h);
	if (h->hh.tbl)
		return 0;
	held_free(a, h);
	return DDPS_E_NOMEM;
}

/* Those whose turn has come by the one before.  They were copied, and so find a place. */
static void deliver_following(struct ddps_sctp_assoc *a, struct ddps_sc_stream *s)
{
	struct ddps_sc_held *h;

	while (!a->dead && (h = find_ahead(a, order_key(s->sid, s->next)))) {
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): it was found there */
		HASH_DEL(a->ahead, h);
		s->next++;
		if (is_delivered_now(a, s)) {
			a->up->message(a->user, &h->m);
			held_free(a, h);
		} else if (s->overrun) {
			held_free(a, h);
		} else if (s->hold) {
			keep_in_stream(a, s, h);
		} else {
			TAILQ_INSERT_TAIL(&a->ready, h, link);
		}
	}
}

bool ddps_sc_would_hold(struct ddps_sctp_assoc *a, const struct ddps_sctp_msg *m)
{
	struct ddps_sc_stream *s = find_stream(a, m->stream);

	if (!m->unordered && m->ssn != (s ? s->next : 0))
		return true;
	return !is_delivered_now(a, s) && !(s && s->overrun);
}

int ddps_sc_whole(struct ddps_sctp_assoc *a, const struct ddps_sctp_msg *m)
{
	struct ddps_sc_stream *s;
	int err;

	if (m->unordered)
		return take_message_turn(a, find_stream(a, m->stream), m);
	s = stream_get(a, m->stream);
	if (!s)
		return DDPS_E_NOMEM;
	if (m->ssn != s->next) {
		if ((int16_t)(m->ssn - s->next) < 0 || find_ahead(a, order_key(m->stream, m->ssn)))
			return DDPS_E_PROTOCOL;
		return wait_in_order(a, m);
	}
	err = take_message_turn(a, s, m);
	if (err < 0)
		return err;
	s->next++;
	deliver_following(a, s);
	return 0;
}

/* ---- what was held ---- */

void ddps_sc_deliver_ready(struct ddps_sctp_assoc *a)
{
	struct ddps_sc_held *h;
	struct ddps_sc_stream *s;

	while (!a->paused && !a->freed && a->up && (h = TAILQ_FIRST(&a->ready))) {
		TAILQ_REMOVE(&a->ready, h, link);
		s = find_stream(a, h->m.stream);
		if (s && s->hold && !s->overrun) {
			keep_in_stream(a, s, h);
			continue;
		}
		if (!(s && s->hold))
			a->up->message(a->user, &h->m);
		held_free(a, h);
	}
}

void ddps_sctp_pause(struct ddps_sctp_assoc *a, bool on, uint64_t now)
{
	ddps_sc_time(a->e, now);
	a->paused = on;
	if (!on)
		ddps_sc_note(a, NOTE_DELIVER);
	ddps_sc_touch(a);
}

int ddps_sctp_hold_stream(struct ddps_sctp_assoc *a, uint16_t stream, bool on, uint64_t now)
{
	struct ddps_sc_stream *s = on ? stream_get(a, stream) : find_stream(a, stream);

	ddps_sc_time(a->e, now);
	if (on && !s)
		return DDPS_E_NOMEM;
	if (!s)
		return 0;
	s->hold = on;
	if (on)
		return 0;
	s->overrun = false;
	s->octets = 0;
	TAILQ_CONCAT(&a->ready, &s->kept, link);
	if (!TAILQ_EMPTY(&a->ready))
		ddps_sc_note(a, NOTE_DELIVER);
	return 0;
}

void ddps_sctp_keep(struct ddps_sctp_assoc *a, int64_t octets, uint64_t now)
{
	ddps_sc_time(a->e, now);
	if (octets < 0 && (uint64_t)-octets > a->kept)
		a->kept = 0;
	else
		a->kept = (size_t)((int64_t)a->kept + octets);
	ddps_sc_touch(a);
}
