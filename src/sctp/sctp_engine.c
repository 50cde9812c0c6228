/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine and its turn: input, tick, output. */
#include "sctp/sctp_build.h"

#define STRAY_MAX   256u
#define STRAY_WHOLE 1152u /* octets that pass nearly anywhere, over UDP and IPv6 */
/* Associations whose timers fire in one tick; the rest has its turn in the next. */
#define TICK_MAX 256u
#define REST	 1000000u /* ns; a timer that is later than this: the host did not run */

void ddps_sctp_defaults(struct ddps_sctp_config *c)
{
	*c = (struct ddps_sctp_config){
		.max_assocs = 65536,
		.max_assocs_per_addr = 16384,
		.max_more_addrs = 16384,
		.max_more_addrs_per_addr = 1024,
		.rwnd = 4u << 20,
		.max_held = 256u << 20,
		.send_buffer = 4u << 20,
		.unsent = 256u << 10,
		.max_message = 1u << 20,
		.max_chunks = 64,
		.icmp_grace = 1,
		.rto_initial_ms = 1000,
		.rto_min_ms = 400,
		.rto_max_ms = 60000,
		.sack_delay_ms = 20,
		.cookie_life_ms = 60000,
		.hb_interval_ms = 30000,
		.assoc_max_retrans = 10,
		.path_max_retrans = 5,
		.init_max_retrans = 8,
		.answers_per_s = 1000,
		.starts_per_s = 50000,
	};
}

static bool is_engine_config_ok(const struct ddps_sctp_config *c)
{
	return c->random && c->rwnd >= 4096 && c->rwnd <= UINT32_MAX && c->sack_delay_ms <= 500 &&
	       c->rto_initial_ms && c->rto_min_ms <= c->rto_max_ms &&
	       c->rto_initial_ms <= c->rto_max_ms && c->max_chunks && c->cookie_life_ms;
}

int ddps_sctp_new(const struct ddps_sctp_config *c, uint64_t now, struct ddps_sctp **out)
{
	struct ddps_sctp *e;
	uint8_t secret[2][32];

	if (!is_engine_config_ok(c))
		return DDPS_E_INVAL;
	e = calloc(1, sizeof *e);
	if (!e)
		return DDPS_E_NOMEM;
	e->c = *c;
	e->sent = (struct ddps_sent_conf){ .rto_initial = c->rto_initial_ms * MS,
					   .rto_min = c->rto_min_ms * MS,
					   .rto_max = c->rto_max_ms * MS,
					   .grain = 128000,
					   .spares = &e->spares };
	e->now = now;
	e->period = 1;
	e->period_at = now;
	ddps_sc_share_inbox(e);
	e->answers = (struct ddps_sc_bucket){ c->answers_per_s, now };
	e->starts = (struct ddps_sc_bucket){ c->starts_per_s, now };
	c->random(c->user, &e->hash_key, sizeof e->hash_key);
	c->random(c->user, secret, sizeof secret);
	c->random(c->user, &e->next_port, sizeof e->next_port);
	ddps_sc_keys_init(&e->keys, secret, now);
	TAILQ_INIT(&e->all);
	TAILQ_INIT(&e->tx);
	TAILQ_INIT(&e->touched);
	TAILQ_INIT(&e->noted);
	TAILQ_INIT(&e->dying);
	STAILQ_INIT(&e->stray);
	STAILQ_INIT(&e->spent);
	*out = e;
	return 0;
}

void ddps_sctp_free(struct ddps_sctp *e)
{
	struct ddps_sctp_assoc *a;
	struct ddps_sctp_port *l, *tmp;

	if (!e)
		return;
	while ((a = TAILQ_FIRST(&e->all)))
		ddps_sc_release(a);
	HASH_ITER(hh, e->ports, l, tmp) {
		HASH_DEL(e->ports, l);
		free(l);
	}
	ddps_sc_blobs_free(&e->stray);
	ddps_sc_blobs_free(&e->spent);
	ddps_sc_heap_fini(&e->heap);
	ddps_sc_pool_fini(&e->pool);
	ddps_sent_spares_free(&e->spares);
	free(e);
}

uint32_t ddps_sc_random32(struct ddps_sctp *e)
{
	uint32_t r = 0;

	while (!r)
		e->c.random(e->c.user, &r, sizeof r);
	return r;
}

/* ---- what follows of a change ---- */

void ddps_sc_note(struct ddps_sctp_assoc *a, unsigned notes)
{
	if (a->freed)
		return;
	a->notes |= (uint8_t)notes;
	if (a->noted)
		return;
	a->noted = true;
	TAILQ_INSERT_TAIL(&a->e->noted, a, note_link);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t assoc_deadline(const struct ddps_sctp_assoc *a)
{
	uint64_t at = earlier(earlier(a->ctl_at, a->guard_at), a->sack_at);

	for (unsigned i = 0; i < a->npaths; i++)
		at = earlier(at, ddps_sc_path_deadline(a->path[i]));
	return at;
}

static void set_in_tx(struct ddps_sctp_assoc *a, bool on)
{
	if (a->in_tx == on)
		return;
	a->in_tx = on;
	if (on)
		TAILQ_INSERT_TAIL(&a->e->tx, a, tx_link);
	else
		TAILQ_REMOVE(&a->e->tx, a, tx_link);
}

/* @leaves: what it has to send leaves now, and the timer is set behind that. */
static void settle_one(struct ddps_sctp_assoc *a, bool leaves)
{
	struct ddps_sctp *e = a->e;

	if (!a->dead && a->state != SC_ESTABLISHED)
		ddps_sc_shut_step(a);
	if (a->dead) {
		set_in_tx(a, false);
		ddps_sc_timer_drop(&e->heap, &a->timer);
		if (a->freed && e->busy) { /* one of its upcalls may be under way */
			if (!a->dying)
				TAILQ_INSERT_TAIL(&e->dying, a, tx_link);
			a->dying = true;
		} else if (a->freed) {
			ddps_sc_release(a);
		}
		return;
	}
	if (ddps_sc_has_window_news(a))
		ddps_sc_window_update(a);
	set_in_tx(a, ddps_sc_has_output(a));
	if (!leaves || !a->in_tx)
		ddps_sc_timer_set(&e->heap, &a->timer, assoc_deadline(a));
	ddps_sc_check(a);
}

static __attribute__((noinline)) void settle_first(struct ddps_sctp *e, bool leaves)
{
	struct ddps_sctp_assoc *a = TAILQ_FIRST(&e->touched);

	TAILQ_REMOVE(&e->touched, a, touch_link);
	a->touched = false;
	settle_one(a, leaves);
}

/* Mostly there is none. */
static inline void settle_touched(struct ddps_sctp *e, bool leaves)
{
	while (!TAILQ_EMPTY(&e->touched))
		settle_first(e, leaves);
}

/* Before the upcalls.  Where one is due, and nothing is that has to come before it, all is settled behind it. */
static inline void settle_before_notes(struct ddps_sctp *e)
{
	const struct ddps_sctp_assoc *a = TAILQ_FIRST(&e->touched);

	if (a && a->noted && a->state == SC_ESTABLISHED && !a->dead && !TAILQ_NEXT(a, touch_link))
		return;
	settle_touched(e, false);
}

/* Each upcall may have the association freed, which is dead then: it stays in memory until it is
 * settled. */
static void notify_user(struct ddps_sctp_assoc *a)
{
	unsigned notes = a->notes;

	a->notes = 0;
	if ((notes & NOTE_ANSWERED) && !a->dead && a->up->answered)
		a->up->answered(a->user);
	if (notes & NOTE_DELIVER)
		ddps_sc_deliver_ready(a);
	if ((notes & NOTE_ACKED) && !a->dead)
		a->up->acked(a->user, a->acked_n);
	if ((notes & NOTE_WRITABLE) && !a->dead)
		a->up->writable(a->user);
	if ((notes & NOTE_SHUTDOWN) && !a->freed)
		a->up->peer_shutdown(a->user);
	if (!(notes & NOTE_GONE) || a->freed)
		return;
	/* An orderly end comes after all that was received. */
	if (!a->why.code && a->paused && !TAILQ_EMPTY(&a->ready)) {
		a->notes |= NOTE_GONE; /* until it is paused no more */
		return;
	}
	const struct ddps_sctp_up *up = a->up;
	const struct ddps_error why = ddps_error_kept(&a->why);

	a->up = NULL;
	up->gone(a->user, &why);
}

static void tell_all(struct ddps_sctp *e)
{
	struct ddps_sctp_assoc *a;
	unsigned n = TICK_MAX;

	while (n-- && (a = TAILQ_FIRST(&e->noted))) {
		TAILQ_REMOVE(&e->noted, a, note_link);
		a->noted = false;
		notify_user(a);
		ddps_sc_touch(a);
	}
}

static void finish_turn(struct ddps_sctp *e)
{
	struct ddps_sctp_assoc *a;

	settle_before_notes(e);
	tell_all(e);
	e->busy = false;
	settle_touched(e, false);
	while ((a = TAILQ_FIRST(&e->dying)))
		ddps_sc_release(a);
}

/* ---- in ---- */

/*
 * A timer should have been served before this, or sent what has waited since the last look: the host did
 * not run, or not this part of it.  What is read first may have restarted those that were due first, and
 * it is the same rest.
 */
static void note_rest(struct ddps_sctp *e)
{
	uint64_t due = ddps_sc_heap_next(&e->heap);

	if (!due)
		due = e->looked;
	e->looked = e->now;
	if (e->now <= REST || due >= e->now - REST)
		return;
	if (due > e->sent.rest_to)
		e->sent.rest_from = due;
	e->sent.rest_to = e->now;
	if (e->now - e->sent.rest_from >= DDPS_SENT_SLEEP)
		e->sent.slept_from = e->sent.rest_from;
}

/* The packets of one datagram, or of several of one size. */
static void take_engine_packets(struct ddps_sc_rx *rx, const struct ddps_sctp_in *in)
{
	size_t seg = in->seg_size && in->seg_size < in->len ? in->seg_size : in->len;

	rx->from = &in->from;
	for (size_t at = 0; at < in->len; at += seg) {
		size_t left = in->len - at;

		rx->e->st.packets_in++;
		ddps_sc_packet(rx, in->data + at, left < seg ? left : seg);
	}
}

void ddps_sctp_input(struct ddps_sctp *e, const struct ddps_sctp_in *in, unsigned n, uint64_t now)
{
	struct ddps_sc_rx rx;

	ddps_sc_time(e, now);
	note_rest(e);
	if (!STAILQ_EMPTY(&e->spent))
		ddps_sc_blobs_free(&e->spent);
	e->busy = true;
	rx.e = e;
	rx.path = NULL;
	rx.pkt = NULL;
	for (unsigned i = 0; i < n; i++) {
		if (!in[i].again)
			rx.path = NULL;
		take_engine_packets(&rx, &in[i]);
	}
	finish_turn(e);
}

/* ---- time ---- */

static void assoc_timer(struct ddps_sctp_assoc *a)
{
	uint64_t now = a->e->now;

	ddps_sc_touch(a);
	if (a->guard_at <= now) {
		ddps_sc_abort_out(a, 0, NULL, 0,
				  ddps_error_make(DDPS_E_TIMEDOUT, 0,
						  "SHUTDOWN was not finished in time"));
		return;
	}
	if (a->sack_at <= now) {
		a->sack_at = DDPS_SC_NEVER;
		a->due |= DUE_SACK;
	}
	if (a->ctl_at <= now)
		ddps_sc_ctl_timeout(a);
	for (unsigned i = 0; i < a->npaths && !a->dead; i++)
		ddps_sc_path_timer(a->path[i]);
}

void ddps_sctp_tick(struct ddps_sctp *e, uint64_t now)
{
	struct ddps_sc_timer *t;
	unsigned n = TICK_MAX;

	ddps_sc_time(e, now);
	note_rest(e);
	if (!STAILQ_EMPTY(&e->spent))
		ddps_sc_blobs_free(&e->spent);
	e->busy = true;
	while (n-- && (t = ddps_sc_heap_due(&e->heap, e->now)))
		assoc_timer((struct ddps_sctp_assoc *)((char *)t -
						       offsetof(struct ddps_sctp_assoc, timer)));
	finish_turn(e);
}

uint64_t ddps_sctp_deadline(const struct ddps_sctp *e)
{
	if (!TAILQ_EMPTY(&e->noted) || !TAILQ_EMPTY(&e->touched))
		return e->now;
	return ddps_sc_heap_next(&e->heap);
}

bool ddps_sctp_pending(const struct ddps_sctp *e)
{
	return !TAILQ_EMPTY(&e->tx) || !TAILQ_EMPTY(&e->touched) || !STAILQ_EMPTY(&e->stray);
}

/* ---- out ---- */

static void stray_output(struct ddps_sctp *e, struct ddps_sctp_out *out)
{
	struct ddps_sc_blob *b = STAILQ_FIRST(&e->stray);

	STAILQ_REMOVE_HEAD(&e->stray, link);
	e->nstray--;
	out->to = b->to;
	memcpy(out->head, b->octets, b->len);
	out->iov[0] = (struct iovec){ out->head, b->len };
	out->niov = out->nsegs = 1;
	out->len = out->seg_size = b->len;
	out->fragment = b->len > STRAY_WHOLE; /* an INIT ACK whose cookie has many addresses */
	ddps_sc_crc_put(out->head, b->len);
	if (e->c.tap)
		e->c.tap(e->c.user, e->now, true, &out->to, out->iov, 1);
	free(b);
}

/* Nobody but the one that was touched has anything to send, and that is a lone message: it leaves before it is settled,
 * and has nothing to send behind it. */
static bool output_touched(struct ddps_sctp *e, struct ddps_sctp_out *out)
{
	struct ddps_sctp_assoc *a = TAILQ_FIRST(&e->touched);

	if (!a || TAILQ_NEXT(a, touch_link) || !TAILQ_EMPTY(&e->tx) || !STAILQ_EMPTY(&e->stray) ||
	    e->sent.stepwise || !ddps_sc_straight_lone(a, out))
		return false;
	TAILQ_REMOVE(&e->touched, a, touch_link);
	a->touched = false;
	ddps_sc_timer_set(&e->heap, &a->timer, assoc_deadline(a));
	ddps_sc_check(a);
	e->st.packets_out++;
	return true;
}

int ddps_sctp_output(struct ddps_sctp *e, struct ddps_sctp_out *out, uint64_t now)
{
	struct ddps_sctp_assoc *a;
	int sent;

	ddps_sc_time(e, now);
	out->niov = out->nsegs = 0;
	out->len = out->seg_size = 0;
	out->fragment = out->probe = out->data = out->sack = false;
	out->pn = 0;
	out->port = 0;
	if (output_touched(e, out))
		return 1;
	settle_touched(e, true);
	if (!STAILQ_EMPTY(&e->stray)) {
		e->st.packets_out++;
		stray_output(e, out);
		return 1;
	}
	while ((a = TAILQ_FIRST(&e->tx))) {
		TAILQ_REMOVE(&e->tx, a, tx_link);
		sent = ddps_sc_assoc_output(a, out);
		if (sent && ddps_sc_has_output(a)) { /* it has its next turn after the others */
			TAILQ_INSERT_TAIL(&e->tx, a, tx_link);
		} else {
			a->in_tx = false;
			ddps_sc_timer_set(&e->heap, &a->timer, assoc_deadline(a));
		}
		if (sent) {
			e->st.packets_out += out->nsegs;
			return 1;
		}
	}
	return 0;
}

/* A packet of @len octets to @to, waiting to be sent; they are not set.  NULL: it is not. */
static struct ddps_sc_blob *stray(struct ddps_sctp *e, const struct ddps_sctp_route *to, size_t len)
{
	struct ddps_sc_blob *b;

	if (e->nstray >= STRAY_MAX) {
		e->st.answers_limited++;
		return NULL;
	}
	b = malloc(sizeof *b + len);
	if (!b) {
		e->st.no_memory++;
		return NULL;
	}
	b->len = len;
	b->to = *to;
	e->nstray++;
	STAILQ_INSERT_TAIL(&e->stray, b, link);
	return b;
}

void ddps_sc_stray(struct ddps_sctp *e, const struct ddps_sctp_route *to, uint16_t port,
		   uint16_t peer_port, uint32_t tag, const void *chunks, size_t len)
{
	struct ddps_sc_blob *b = stray(e, to, DDPS_SC_HDR + len);
	struct ddps_wbuf w;

	if (!b)
		return;
	w = ddps_wbuf_init(b->octets, b->len);
	ddps_sc_put_header(&w, port, peer_port, tag);
	ddps_wbuf_bytes(&w, chunks, len);
}

void ddps_sc_stray_again(struct ddps_sctp *e, const struct ddps_sctp_out *out)
{
	struct ddps_sc_blob *b = stray(e, &out->to, out->len);

	if (b)
		memcpy(b->octets, out->head, b->len);
}

void ddps_sctp_stats(const struct ddps_sctp *e, struct ddps_sctp_stats *s)
{
	*s = e->st;
}
