/* SPDX-License-Identifier: BSD-2-Clause */
/* What users may see: completions, events, memory. */
#include "sim/session_world.h"
#include "sctp_ddp/sd_assoc.h"
#include "session/session.h"
#include <stdlib.h>

#define name(e) (e)->pair->tcp ? "tcp" : "sctp", (unsigned)((e)->pair - world.pair), (e)->id
#define NAME	"%s pair %u end %u: "

const uint8_t *model_octets(const struct end *e, unsigned n, bool write)
{
	uint32_t x = (e->pair->salt ^ n * 2654435761u) + 2u * e->id + write;

	x ^= x >> 15;
	x *= 0x2c1b3c6du;
	return table + (x >> 16) % TABLE;
}

static void see(uint64_t *digest, uint64_t what)
{
	*digest = (*digest ^ what) * 0x9e3779b97f4a7c15u;
	*digest ^= *digest >> 29;
}

static bool is_ok(const struct ddps_wc *wc)
{
	return wc->status == DDPS_WC_SUCCESS;
}

/* ---- memory that nobody has a right to ---- */

/* Quick, since all memory of a host goes through here: whatever single octet changes, it differs. */
static uint64_t sum(const uint8_t *p, size_t len)
{
	uint64_t x[4] = { len, len + 1, len + 2, len + 3 }, v[4];

	for (; len >= sizeof v; p += sizeof v, len -= sizeof v) {
		memcpy(v, p, sizeof v);
		for (unsigned k = 0; k < 4; k++)
			x[k] = (x[k] << 7 | x[k] >> 57) + v[k];
	}
	for (; len; p++, len--)
		see(x, *p);
	for (unsigned k = 1; k < 4; k++)
		see(x, x[k]);
	return x[0];
}

void model_to_send(struct end *e, unsigned tx)
{
	e->tx_kept[tx - 1] = sum(e->tx_mem + (tx - 1) * RECV_LEN, RECV_LEN);
}

void model_scribble(struct end *e, unsigned tx)
{
	uint8_t *at = e->tx_mem + (tx - 1) * RECV_LEN;

	if (!tx)
		return;
	check(!e->tx || e->tx_kept[tx - 1] == sum(at, RECV_LEN),
	      NAME "memory was written while it was sent", name(e));
	memset(at, 0x5a, RECV_LEN);
	e->tx_used[tx - 1] = false;
}

static uint64_t *kept(struct end *e, const struct wr *w, const uint8_t **at, size_t *len)
{
	bool read = w->op == DDPS_OP_READ;

	*len = read ? SLOT_LEN : RECV_LEN;
	*at = read ? e->read_mem + w->slot * SLOT_LEN : e->recv_mem + w->at * RECV_LEN;
	return read ? &e->read_kept[w->slot] : &e->recv_kept[w->at];
}

/* Memory that nobody may write from now on. */
static void keep(struct end *e, const struct wr *w)
{
	const uint8_t *at;
	size_t len;
	uint64_t *k;

	if (!e->pair->lied || (w->op == DDPS_OP_RECV && shares(e)) ||
	    (w->op != DDPS_OP_READ && w->op != DDPS_OP_RECV))
		return;
	k = kept(e, w, &at, &len);
	*k = sum(at, len);
}

void model_lend(struct end *e, const struct wr *w)
{
	const uint8_t *at;
	size_t len;
	uint64_t *k;

	if (!e->pair->lied)
		return;
	k = kept(e, w, &at, &len);
	check(!*k || *k == sum(at, len), NAME "memory was written when %s had ended", name(e),
	      w->op == DDPS_OP_READ ? "a Read" : "a receive");
	*k = 0;
}

static uint64_t all_memory(const struct end *e)
{
	return sum(e->sink_mem, sizeof e->sink_mem) + sum(e->read_mem, sizeof e->read_mem) +
	       sum(e->recv_mem, sizeof e->recv_mem) + sum((const uint8_t *)e->cell, sizeof e->cell);
}

/* The entry that completes: in the order of posting, once, silent ones that succeeded left out. */
static bool take_model_message(struct end *e, struct queue *q, const struct ddps_wc *wc,
			       struct wr *out)
{
	while (q->n) {
		struct wr w = q->wr[q->first];

		if (w.id != wc->wr_id && !w.silent)
			break;
		q->first = (q->first + 1) % (OPS + SLOTS);
		q->n--;
		model_scribble(e, w.tx);
		if (w.id == wc->wr_id) {
			*out = w;
			return true;
		}
	}
	check(false, NAME "completion of %" PRIu64 " out of order, twice or of nothing (%s)",
	      name(e), wc->wr_id, ddps_op_name(wc->op));
	return false;
}

/* A receive of a queue that sessions share: any that is posted. */
static bool take_shared(struct end *e, const struct ddps_wc *wc, struct wr *out)
{
	struct shared *s = &shared[e->host];
	unsigned i = (unsigned)(wc->wr_id % SHARED);

	check(wc->wr_id & SHARED_ID && s->posted[i] == wc->wr_id,
	      NAME "a shared receive completes twice or was never posted", name(e));
	s->posted[i] = 0;
	*out = (struct wr){ .op = DDPS_OP_RECV, .at = i };
	world.t->n[T_SHARED]++;
	return !world.failed;
}

/* The peer has it, says the library. */
static void is_placed(const struct end *e, const struct wr *w)
{
	const struct end *o = &e->pair->end[!e->id];

	world.t->n[T_PLACED]++;
	if (w->op != DDPS_OP_WRITE || w->at + SLOTS < e->nwrites || e->pair->evil)
		return;
	check(!memcmp(o->sink_mem + w->at % SLOTS * SLOT_LEN, model_octets(e, w->at, true), w->len),
	      NAME "Write %u is confirmed and not in place", name(e), w->at);
}

/* The first @writes of @from are in place at @e. */
static void writes_are_there(struct end *e, const struct end *from, unsigned writes,
			     const char *behind)
{
	for (unsigned s = 0; s < SLOTS && s < writes; s++) {
		unsigned n = (writes - 1 - s) / SLOTS * SLOTS + s;

		if (n + SLOTS < from->nwrites) /* it may be on its way to be overwritten */
			continue;
		check(!memcmp(e->sink_mem + s * SLOT_LEN, model_octets(from, n, true),
			      from->write_len[n]),
		      NAME "Write %u is not in place behind a %s", name(e), n, behind);
	}
}

static void is_written(const struct end *e, const struct wr *w)
{
	const struct end *o = &e->pair->end[!e->id];

	world.t->n[T_FLUSHED]++;
	if (w->at + SLOTS < e->ncells)
		return;
	check(!memcmp(&o->cell[w->at % SLOTS], model_octets(e, w->at, true), sizeof o->cell[0]),
	      NAME "Atomic Write %u is done and not in place", name(e), w->at);
}

static void note_session_model_received(struct end *e, const struct ddps_wc *wc, const struct wr *w)
{
	const struct end *from = get_other_session_end(e);
	const struct msg *m = &from->msgs[e->received % OPS];
	const uint8_t *want = model_octets(from, e->received, false);
	const uint8_t *mem = shares(e) ? shared[e->host].mem : e->recv_mem;

	if (e->pair->lied) {
		check(wc->len <= RECV_LEN, NAME "%u octets in a receive", name(e), wc->len);
		e->received++;
		return;
	}
	check(e->received < from->nmsgs, NAME "a message that nobody sent", name(e));
	if (world.failed)
		return;
	check(wc->has_imm == m->imm && wc->invalidated == m->invalidate &&
		      wc->len == (m->imm ? 0 : m->len),
	      NAME "message %u: %u octets, not %u", name(e), e->received, wc->len, m->len);
	check(!m->invalidate || wc->inv_stag == ddps_mr_stag(e->inv), NAME "wrong STag", name(e));
	check(!memcmp(m->imm ? wc->imm : mem + w->at * RECV_LEN, want,
		      m->imm ? DDPS_IMM_OCTETS : m->len),
	      NAME "message %u altered", name(e), e->received);
	/* [5040-5.5] when it is delivered */
	writes_are_there(e, from, m->writes, "message");
	e->received++;
	see(&e->digest[0], (uint64_t)wc->len << 3 | (uint64_t)wc->has_imm << 2 |
				   (uint64_t)wc->invalidated << 1 | (uint64_t)wc->solicited);
}

static void note_session_model_sent(struct end *e, const struct ddps_wc *wc, const struct wr *w)
{
	if (e->pair->lied)
		e->reads_done += w->op == DDPS_OP_READ;
	else if (w->op == DDPS_OP_READ) {
		e->reads_done++;
		check(wc->len == w->len &&
			      !memcmp(e->read_mem + w->slot * SLOT_LEN, table + w->at, w->len),
		      NAME "a Read of %u octets brought other ones", name(e), w->len);
	} else if (w->op == DDPS_OP_FETCH_ADD) {
		check(wc->original == e->added, NAME "the counter was %" PRIu64 ", not %u", name(e),
		      wc->original, e->added);
		e->added++;
	}
	if (w->op == DDPS_OP_ATOMIC_WRITE && !e->pair->lied && !e->pair->evil)
		is_written(e, w);
	if (w->op == DDPS_OP_FLUSH && !e->pair->lied && !e->pair->evil) {
		world.t->n[T_FLUSHED]++;
		writes_are_there(get_other_session_end(e), e, w->at, "Flush");
	}
	if (w->placed && !e->pair->lied)
		is_placed(e, w);
	see(&e->digest[1], (uint64_t)w->op << 32 | w->len);
}

void model_completion(const struct ddps_wc *wc)
{
	struct end *e = wc->user;
	bool recv = wc->op == DDPS_OP_RECV;
	struct queue *q = recv ? &e->rq : &e->sq;
	bool answered;
	struct wr w;

	if (getenv("DDPS_SIM_TRACE"))
		fprintf(stderr, NAME "%s %" PRIu64 ": %s\n", name(e), ddps_op_name(wc->op),
			wc->wr_id, ddps_wc_status_name(wc->status));
	check(!e->freed && wc->ep == e->ep, NAME "a completion of an endpoint that is gone",
	      name(e));
	if (world.failed ||
	    !(recv && shares(e) ? take_shared(e, wc, &w) : take_model_message(e, q, wc, &w)))
		return;
	keep(e, &w);
	check(w.op == wc->op, NAME "%s, not %s", name(e), ddps_op_name(wc->op), ddps_op_name(w.op));
	/* What left before the end has left, though a Read in front of it is not answered. */
	answered = recv || w.op == DDPS_OP_READ || w.op == DDPS_OP_FETCH_ADD ||
		   w.op == DDPS_OP_ATOMIC_WRITE || w.op == DDPS_OP_FLUSH || w.placed;
	check(!q->failed || !is_ok(wc) || !answered, NAME "success behind a failure", name(e));
	q->failed |= !is_ok(wc);
	world.t->n[T_OPS]++;
	if (!is_ok(wc))
		return;
	if (recv)
		note_session_model_received(e, wc, &w);
	else
		note_session_model_sent(e, wc, &w);
}

/* ---- events ---- */

static void note_carrier(struct end *e)
{
	if (!e->pair->tcp && e->ep->llp)
		e->carrier = ((const struct ddps_sd_session *)e->ep->llp)->carrier;
}

/* As far as is known: on one host at least they were on one association. */
static bool may_share_carrier(const struct pair *a, const struct pair *b)
{
	for (unsigned i = 0; i < 4; i++) {
		const void *of_a = a->end[i / 2].carrier, *of_b = b->end[i % 2].carrier;

		if (!of_a || !of_b || of_a == of_b)
			return true;
	}
	return false;
}

bool model_doubts(const struct end *e)
{
	if (!e->code || !kern.sctp || e->pair->tcp)
		return false;
	for (const struct pair *p = world.pair; p < world.pair + world.npairs; p++)
		if (!p->tcp && (p->end[0].naughty || p->end[1].naughty) &&
		    may_share_carrier(e->pair, p))
			return true;
	return false;
}

static void at_its_end(struct end *e, const struct ddps_event *ev)
{
	e->final = true;
	e->code = ev->error.code;
	e->triple = ev->error.has_triple ? ev->error.triple : (struct ddps_triple){ 0 };
	memcpy(e->text, ev->error.text, sizeof e->text);
	check(!e->terminated || ev->error.has_triple, NAME "a Terminate, and then \"%s\"", name(e),
	      ev->error.text);
	if (e->pair->lied)
		e->kept = all_memory(e);
	check(!e->code || !e->pair->tidy || !world.quiet || e->aborted || model_doubts(e),
	      NAME "%s: %s", name(e), ddps_event_name(ev->type), ev->error.text);
}

void model_event(struct end *e, const struct ddps_event *ev)
{
	check(e->asked && !e->final && !e->freed && ev->ep == e->ep, NAME "%s out of order",
	      name(e), ddps_event_name(ev->type));
	switch (ev->type) {
	case DDPS_EV_ESTABLISHED:
		check(!e->established, NAME "established twice", name(e));
		e->established = true;
		note_carrier(e);
		e->ord = ev->info.ord;
		world.t->n[T_SHM] += !e->id && ev->info.transport == DDPS_TRANSPORT_SHM;
		check(ev->info.ird <= DDPS_RD_MAX && ev->info.ord <= DDPS_RD_MAX, NAME "IRD %u",
		      name(e), ev->info.ird);
		break;
	case DDPS_EV_REJECTED:
		check(!e->established && e->id == 0, NAME "rejected", name(e));
		check(e->pair->rejected || world.corrupt || !world.quiet || e->pair->lied,
		      NAME "nobody rejected it", name(e));
		at_its_end(e, ev);
		break;
	case DDPS_EV_FAILED:
		check(!e->established, NAME "failed once established", name(e));
		at_its_end(e, ev);
		break;
	case DDPS_EV_TERMINATED:
		check(!e->terminated, NAME "terminated twice", name(e));
		check(ev->error.has_triple, NAME "terminated without a code", name(e));
		e->terminated = true;
		world.t->n[T_TERMINATES]++;
		break;
	case DDPS_EV_PEER_CLOSED:
		check(e->established && !e->peer_closed, NAME "peer closed twice", name(e));
		e->peer_closed = true;
		break;
	case DDPS_EV_PEER_CLOSING:
		check(e->established && !e->peer_closed, NAME "peer closing behind its close",
		      name(e));
		break;
	case DDPS_EV_CLOSED:
		check(e->established || e->id == 1, NAME "closed before it was established",
		      name(e));
		at_its_end(e, ev);
		break;
	default:
		check(false, NAME "%s", name(e), ddps_event_name(ev->type));
	}
}

/* ---- at the end ---- */

void model_final(struct end *e)
{
	while (e->sq.n && e->sq.wr[e->sq.first].silent) {
		e->sq.first = (e->sq.first + 1) % (OPS + SLOTS);
		e->sq.n--;
	}
	check(!e->sq.n, NAME "%u requests never completed", name(e), e->sq.n);
	check(!e->rq.n, NAME "%u receives never completed", name(e), e->rq.n);
	for (unsigned i = 0; i < sizeof e->guard; i++)
		check(e->guard[i] == 0xa5, NAME "memory without rights was written", name(e));
	check(!e->kept || e->kept == all_memory(e), NAME "memory was written when all had ended",
	      name(e));
}

bool model_waits(const struct end *e)
{
	for (unsigned i = 0; i < e->sq.n; i++)
		if (!e->sq.wr[(e->sq.first + i) % (OPS + SLOTS)].silent)
			return true;
	return false;
}

/*
 * Whoever has ended in order has lost nothing, however the other one ended.  But by its close_ms, when TCP had taken all;
 * and where octets are altered: a responder whose first FPDU is bad may send no Terminate, and ends with a FIN.
 */
static void check_order_of_end(const struct end *e, const struct end *peer)
{
	check(!e->final || e->code || peer->code == DDPS_E_TIMEDOUT || peer->received == e->nmsgs,
	      NAME "ended in order, and %u of %u messages arrived: %s", name(e), peer->received,
	      e->nmsgs, peer->text);
}

void model_pair(struct pair *p)
{
	const struct end *a = &p->end[0], *b = &p->end[1];

	world.t->n[T_LIED] += p->lied;
	if (!a->established || !b->established) {
		world.t->n[p->rejected ? T_REJECTED : T_FAILED]++;
		check(p->lied || a->naughty || b->naughty || !world.quiet || p->rejected,
		      NAME "never came about: %s%s", name(a), a->text, b->text);
		return;
	}
	world.t->n[T_SESSIONS]++;
	world.t->n[p->tcp ? T_TCP : T_SCTP]++;
	world.t->n[T_TLS] += p->tcp && world.secured;
	world.t->n[T_DTLS] += !p->tcp && world.inside;
	if (p->tcp && p->tidy && !p->lied && !world.corrupt) {
		check_order_of_end(a, b);
		check_order_of_end(b, a);
	}
	if (a->code || b->code) {
		world.t->n[T_BROKEN]++;
		return;
	}
	world.t->n[T_ORDERLY]++;
	if (!p->tidy)
		return;
	check(a->received == b->nmsgs && b->received == a->nmsgs,
	      NAME "%u of %u, %u of %u messages arrived", name(a), a->received, b->nmsgs,
	      b->received, a->nmsgs);
}

/* ---- what a context counts of its associations, counted again from what there is ---- */

#define LISTENERS 8u

/* Of one listener, found by its associations. */
struct taken {
	const struct ddps_sd_listener *l;
	unsigned half_open, silent, idle;
};

struct counts {
	struct taken of[LISTENERS];
	unsigned n;
};

static struct taken *take_checked_session_counts(struct counts *all,
						 const struct ddps_sd_listener *l)
{
	unsigned i = 0;

	while (i < all->n && all->of[i].l != l)
		i++;
	if (i == LISTENERS)
		return NULL;
	if (i == all->n)
		all->of[all->n++].l = l;
	return &all->of[i];
}

static void pairs(unsigned host, const struct ddps_sd_carrier *c)
{
	unsigned n = 0, outgoing = 0, pending = 0, waiting = 0, full = 0, sessions = 0;
	const struct ddps_sd_session *s;
	uint32_t over = 0;
	size_t held = 0;

	for (unsigned i = 0; i < c->npairs_size; i++) {
		const struct ddps_sd_pair *p = c->pairs[i];

		if (!p)
			continue;
		n++;
		outgoing += p->sm.state == DDPS_SD_A1;
		pending += p->sm.state == DDPS_SD_P1;
		waiting += p->waits;
		full += p->brim;
		over += p->over;
		held += p->rx.octets;
		sessions += p->sess != NULL;
	}
	TAILQ_FOREACH(s, &c->waiting, link)
		sessions++;
	check(c->npairs == n && c->outgoing == outgoing && c->pending == pending,
	      "host %u: %u stream pairs, %u and %u asked for; counted are %u, %u, %u", host, n,
	      outgoing, pending, c->npairs, c->outgoing, c->pending);
	check(c->nwaiting == waiting && c->nbrim == full && c->over == over && c->held == held,
	      "host %u: %u wait, %u are full, %u octets too many, %zu held; counted are %u, %u, "
	      "%u, %zu",
	      host, waiting, full, over, held, c->nwaiting, c->nbrim, c->over, c->held);
	check(c->nsessions == sessions, "host %u: %u sessions, counted are %u", host, sessions,
	      c->nsessions);
}

void counts_check(unsigned host, const struct ddps_ctx *ctx)
{
	const struct ddps_sd_provider *prov = ctx->env.sctp;
	const struct ddps_sd_carrier *c;
	struct counts all = { .n = 0 };
	struct taken *t;

	if (!prov)
		return;
	TAILQ_FOREACH(c, &prov->carriers, link) {
		pairs(host, c);
		t = c->listener ? take_checked_session_counts(&all, c->listener) : NULL;
		check(t || !c->listener, "host %u: more than %u listeners", host, LISTENERS);
		if (!t)
			continue;
		t->half_open += c->fresh + c->pending;
		t->silent += c->fresh && c->share.counted;
		t->idle += !c->fresh && c->share.counted;
	}
	for (t = all.of; t < all.of + all.n; t++) {
		check(t->l->half_open == t->half_open, "host %u: %u are half open, counted are %u",
		      host, t->half_open, t->l->half_open);
		check(t->l->silent.places == t->silent && t->l->idle.places == t->idle,
		      "host %u: %u silent, %u idle associations; counted are %u and %u", host,
		      t->silent, t->idle, t->l->silent.places, t->l->idle.places);
	}
}
