/* SPDX-License-Identifier: BSD-2-Clause */
/* What the user of an endpoint does: its program follows of its own generator. */
#include "sim/session_world.h"
#include <stdlib.h>

#define PATIENT_MS 20000

static uint64_t own(struct end *e, uint64_t m)
{
	return sim_below(&e->rng, m);
}

static bool own_chance(struct end *e, double p)
{
	return sim_chance(&e->rng, p);
}

static void push(struct queue *q, struct wr w)
{
	q->wr[(q->first + q->n++) % (OPS + SLOTS)] = w;
}

void user_begin(struct end *e)
{
	static const unsigned depths[] = { 1, 2, 8, 16 }, counts[] = { 0, 1, 3, 10, 30, OPS - 1 };
	struct pair *p = e->pair;
	unsigned id = e->id, host = e->host;

	memset(e, 0, offsetof(struct end, sink_mem));
	e->pair = p;
	e->id = id;
	e->host = host;
	e->rng = e->program = ((uint64_t)p->salt << 1 | id) * 0x9e3779b97f4a7c15u;
	kern_be(KERN_HOSTS + 2 * (unsigned)(p - world.pair) + id, pair_name(p, id));
	e->sq_depth = depths[own(e, 4)];
	e->rq_depth = depths[own(e, 4)];
	e->to_post = counts[own(e, 6)];
	if (id == 0 && p->tidy && !e->to_post)
		e->to_post = 1;
	if (world.bulk) {
		e->sq_depth = 16;
		e->to_post = OPS - 1;
	}
	memset(e->guard, 0xa5, sizeof e->guard);
}

static bool regions(struct end *e)
{
	struct ddps_pd *pd = world.host[e->host].pd;
	struct ddps_ep *ep = below(e->pair, 2) || kern.liars ? e->ep : NULL;

	return !ddps_mr_reg(pd, table, sizeof table, DDPS_REMOTE_READ, ep, &e->src) &&
	       !ddps_mr_reg(pd, e->sink_mem, sizeof e->sink_mem, DDPS_REMOTE_WRITE | DDPS_FLUSHABLE,
			    ep, &e->sink) &&
	       !ddps_mr_reg(pd, e->read_mem, sizeof e->read_mem + sizeof e->recv_mem,
			    DDPS_LOCAL_WRITE, NULL, &e->local) &&
	       !ddps_mr_reg(pd, &e->counter, sizeof e->counter, DDPS_REMOTE_ATOMIC, ep,
			    &e->atomic) &&
	       !ddps_mr_reg(pd, e->cell, sizeof e->cell, DDPS_REMOTE_WRITE, ep, &e->cells) &&
	       !ddps_mr_reg(pd, e->guard, sizeof e->guard, DDPS_REMOTE_WRITE,
			    world.host[e->host].nobody, &e->bait) &&
	       !ddps_mr_reg(pd, e->tx_mem, sizeof e->tx_mem, DDPS_LOCAL_WRITE, NULL, &e->tx) &&
	       !ddps_mr_reg(pd, e->inv_mem, sizeof e->inv_mem, DDPS_REMOTE_WRITE, e->ep, &e->inv);
}

/* Its endpoint, or false: no memory. */
static bool make_session_user_endpoint(struct end *e)
{
	struct host *h = at_host(e->host);
	struct ddps_ep_attr attr;
	int err;

	ddps_ep_attr_init(&attr);
	attr.pd = h->pd;
	attr.send_cq = attr.recv_cq = h->cq;
	attr.sq_depth = e->sq_depth;
	attr.rq_depth = e->rq_depth;
	attr.rfc7306 = e->pair->rfc7306;
	attr.flush = e->pair->flush;
	attr.user = e;
	if (shares(e))
		attr.srq = h->srq;
	attr.no_recv =
		e->pair->tidy || own_chance(e, 0.5) ? DDPS_NO_RECV_TERMINATE : DDPS_NO_RECV_STALL;
	err = ddps_ep_new(h->ctx, &attr, &e->ep);
	check(!err || !world.quiet, "endpoint: %s", ddps_strerror(err));
	if (err)
		e->ep = NULL;
	return !err && regions(e);
}

static void make_session_user_parameters(struct end *e, struct ddps_conn_param *p, uint32_t *pd)
{
	ddps_conn_param_init(p);
	p->ird = world.bulk ? 8 : (uint16_t)own(e, 9);
	p->ord = world.bulk ? 8 : (uint16_t)own(e, 9);
	p->markers = e->pair->markers;
	p->crc = e->pair->crc;
	p->shm = world.near;
	/* A host that stands still, and then a path that swallows long packets without a word: each end is
	 * told in time what the other does, but no longer within the seconds that are the default. */
	if (world.quiet)
		p->close_ms = p->setup_ms = PATIENT_MS;
	if (e->id == 0)
		p->p2p = e->pair->p2p;
	*pd = e->pair->salt;
	p->private_data = pd;
	p->private_data_len = sizeof *pd;
}

static void post_recv(struct end *e)
{
	unsigned at = e->nrecvs % SLOTS;
	struct ddps_sge sge = { e->recv_mem + at * RECV_LEN, RECV_LEN, ddps_mr_stag(e->local) };
	struct wr w = { .op = DDPS_OP_RECV, .at = at };
	int err;

	model_lend(e, &w);
	err = ddps_post_recv(e->ep, e->next_id, &sge, 1);

	/* a peer that lies may have taken back what is bound to the session: Send with Invalidate */
	check(!err || err == DDPS_E_STATE || err == DDPS_E_LIMIT ||
		      (err == DDPS_E_ACCESS && e->pair->lied) ||
		      (err == DDPS_E_NOMEM && !world.quiet),
	      "post_recv: %s", ddps_strerror(err));
	check(err != DDPS_E_LIMIT || e->rq.n >= e->rq_depth, "%u receives are %u too many", e->rq.n,
	      e->rq_depth);
	if (err)
		return;
	w.id = e->next_id++;
	push(&e->rq, w);
	e->nrecvs++;
}

static void post_session_user_recvs(struct end *e)
{
	unsigned most = e->rq_depth;

	if (shares(e))
		return;
	while (most-- && e->rq.n < e->rq_depth && e->nrecvs - e->received < SLOTS)
		post_recv(e);
}

void user_share(unsigned host)
{
	struct shared *s = &shared[host];
	struct host *h = at_host(host);

	for (unsigned i = 0; i < SHARED; i++) {
		struct ddps_sge sge = { s->mem + i * RECV_LEN, RECV_LEN, ddps_mr_stag(s->mr) };
		uint64_t id = SHARED_ID | ++s->ids * SHARED | i;
		int err;

		if (s->posted[i])
			continue;
		err = ddps_post_srq_recv(h->srq, id, &sge, 1);
		check(!err || (err == DDPS_E_NOMEM && !world.quiet), "post_srq_recv: %s",
		      ddps_strerror(err));
		if (!err)
			s->posted[i] = id;
	}
}

void user_connect(struct end *e)
{
	struct ddps_conn_param p;
	char uri[80];
	uint32_t pd;
	int err;

	if (!make_session_user_endpoint(e)) {
		e->final = true;
		e->code = DDPS_E_NOMEM;
		return;
	}
	make_session_user_parameters(e, &p, &pd);
	post_session_user_recvs(e);
	sim_uri(uri, sizeof uri, get_other_session_end(e)->host, e->pair->tcp);
	kern.who = KERN_HOSTS + 2 * (unsigned)(e->pair - world.pair);
	err = ddps_connect(e->ep, uri, &p);
	check(!err || !world.quiet, "connect: %s", ddps_strerror(err));
	e->asked = !err;
	if (err) {
		e->final = true;
		e->code = err;
	}
	if (!err && below(e->pair, 10) == 0)
		check(ddps_connect(e->ep, uri, &p) == DDPS_E_STATE, "connected twice");
}

void user_request(unsigned host, const struct ddps_event *ev)
{
	uint32_t salt = 0;
	unsigned i;

	if (ev->private_data_len >= sizeof salt)
		memcpy(&salt, ev->private_data, sizeof salt);
	for (i = 0; i < world.npairs; i++)
		if (world.pair[i].open && world.pair[i].salt == salt &&
		    world.pair[i].end[1].host == host && !world.pair[i].end[1].asked &&
		    !world.pair[i].end[1].final && !world.pair[i].end[1].req)
			break;
	/* Else it comes too late: its initiator has given up. */
	if (i == world.npairs)
		ddps_reject(ev->request, NULL, 0);
	else
		world.pair[i].end[1].req = ev->request;
}

void user_answer(struct end *e)
{
	struct ddps_conn_param p;
	uint32_t pd;
	int err;

	at_host(e->host);
	if (own_chance(e, e->pair->tidy ? 0 : 0.2)) {
		e->pair->rejected = true;
		err = ddps_reject(e->req, "no", 2);
		if (!err || err == DDPS_E_CLOSED)
			e->req = NULL;
		e->final = true;
		return;
	}
	if (!e->ep && !make_session_user_endpoint(e)) {
		ddps_reject(e->req, NULL, 0);
		e->req = NULL;
		e->pair->rejected = true;
		e->final = true;
		return;
	}
	make_session_user_parameters(e, &p, &pd);
	post_session_user_recvs(e);
	e->asked = true;
	err = ddps_accept(e->req, e->ep, &p);
	check(!err || err == DDPS_E_CLOSED || err == DDPS_E_IRD || err == DDPS_E_RTR ||
		      !world.quiet,
	      "accept: %s", ddps_strerror(err));
	if (!err || err == DDPS_E_CLOSED || err == DDPS_E_IRD || err == DDPS_E_RTR)
		e->req = NULL;
	if (err) {
		e->asked = false;
		e->final = true;
		e->code = err;
		e->pair->rejected |= err == DDPS_E_IRD || err == DDPS_E_RTR;
		if (e->req)
			ddps_reject(e->req, NULL, 0);
		e->req = NULL;
	}
}

/* ---- work ---- */

/* The peer's region, as if it had told; and what is wrong with it, if that is the program. */
static void remote(struct end *e, struct ddps_mr *mr, uint64_t off, struct ddps_send_wr *wr)
{
	wr->stag = ddps_mr_stag(mr);
	wr->to = ddps_mr_to(mr) + off;
	if (!e->pair->evil || !does_session_world_happen(e, SIM_wrong, e->ops, 0.05))
		return;
	switch (own(e, 3)) {
	case 0:
		wr->stag ^= 1u << own(e, 32);
		break;
	case 1:
		wr->to += (uint64_t)1 << (20 + own(e, 20));
		break;
	default:
		wr->stag = ddps_mr_stag(own_chance(e, 0.5) ? get_other_session_end(e)->local
							   : get_other_session_end(e)->src);
	}
}

static uint32_t get_session_user_length(struct end *e, uint32_t most)
{
	uint32_t len =
		world.bulk ? most : (uint32_t)(own_chance(e, 0.3) ? own(e, 64) : own(e, most + 1));

	return does_session_world_happen(e, SIM_large, e->ops, 1) ? len : len % 8;
}

static bool post_session_user(struct end *e, struct ddps_send_wr *wr, struct wr w)
{
	int err;

	wr->wr_id = w.id = e->next_id;
	w.op = wr->op;
	w.silent = wr->flags & DDPS_WR_SILENT;
	w.placed = wr->flags & DDPS_WR_PLACED;
	err = ddps_post_send(e->ep, wr);
	/* a peer that lies may have taken back what is bound to the session: Send with Invalidate */
	check(!err || err == DDPS_E_STATE || err == DDPS_E_LIMIT ||
		      (err == DDPS_E_ACCESS && e->pair->lied) ||
		      (err == DDPS_E_NOMEM && !world.quiet),
	      "post_send: %s", ddps_strerror(err));
	if (err)
		return false;
	if (getenv("DDPS_SIM_TRACE"))
		fprintf(stderr, "%s pair %u end %u: posts %s %" PRIu64 ", %u octets, flags %x\n",
			e->pair->tcp ? "tcp" : "sctp", (unsigned)(e->pair - world.pair), e->id,
			ddps_op_name(w.op), w.id, w.len, wr->flags);
	e->next_id++;
	push(&e->sq, w);
	return true;
}

/* Have @sge send from memory of its own, which changes when that has left. */
static unsigned own_memory(struct end *e, struct ddps_sge *sge)
{
	unsigned i = 0;

	if (own_chance(e, 0.5))
		return 0;
	while (i < SLOTS && e->tx_used[i])
		i++;
	if (i == SLOTS || !e->tx)
		return 0;
	memcpy(e->tx_mem + i * RECV_LEN, sge->addr, sge->len);
	sge->addr = e->tx_mem + i * RECV_LEN;
	sge->lkey = ddps_mr_stag(e->tx);
	e->tx_used[i] = true;
	model_to_send(e, i + 1);
	return i + 1;
}

/* The last one says that all have left. */
static unsigned silent(struct end *e, double share)
{
	return own_chance(e, share) && e->ops + 1 < e->to_post ? DDPS_WR_SILENT : 0u;
}

static bool post_message(struct end *e, bool imm)
{
	struct msg m = { .len = get_session_user_length(e, RECV_LEN),
			 .writes = e->nwrites,
			 .imm = imm };
	const uint8_t *from = model_octets(e, e->nmsgs, false);
	struct ddps_sge sge = { (void *)(uintptr_t)from, m.len, ddps_mr_stag(e->src) };
	struct ddps_send_wr wr = { .op = imm ? DDPS_OP_IMM : DDPS_OP_SEND, .sge = &sge };

	unsigned tx = imm ? 0 : own_memory(e, &sge);

	wr.nsge = !imm;
	wr.flags = silent(e, 0.2) | (own_chance(e, 0.2) ? DDPS_WR_SOLICITED : 0u) |
		   (own_chance(e, 0.2) ? DDPS_WR_FENCE : 0u);
	memcpy(wr.imm, from, sizeof wr.imm);
	if (!imm && own_chance(e, 0.05) && get_other_session_end(e)->ep && !e->invalidated) {
		wr.flags |= DDPS_WR_INVALIDATE;
		wr.stag = ddps_mr_stag(get_other_session_end(e)->inv);
		m.invalidate = true;
	}
	e->msgs[e->nmsgs] = m;
	if (!post_session_user(e, &wr, (struct wr){ .len = m.len, .tx = tx })) {
		model_scribble(e, tx);
		return false;
	}
	e->invalidated |= m.invalidate;
	e->nmsgs++;
	return true;
}

static bool post_write(struct end *e)
{
	unsigned slot = e->nwrites % SLOTS;
	uint32_t len = get_session_user_length(e, SLOT_LEN);
	struct ddps_sge sge[2] = { { (void *)(uintptr_t)model_octets(e, e->nwrites, true), len,
				     ddps_mr_stag(e->src) } };
	struct ddps_send_wr wr = { .op = DDPS_OP_WRITE, .sge = sge, .nsge = 1 };
	unsigned tx = own_memory(e, sge);

	if (len > 1 && own_chance(e, 0.3)) {
		sge[0].len = 1 + (uint32_t)own(e, len - 1);
		sge[1] = sge[0];
		sge[1].addr = (uint8_t *)sge[0].addr + sge[0].len;
		sge[1].len = len - sge[0].len;
		wr.nsge = 2;
	}
	wr.flags = silent(e, 0.3);
	if (e->ord && !wr.flags && own_chance(e, 0.2))
		wr.flags = DDPS_WR_PLACED;
	remote(e, get_other_session_end(e)->sink, slot * SLOT_LEN, &wr);
	e->write_len[e->nwrites] = len;
	if (!post_session_user(e, &wr, (struct wr){ .len = len, .at = e->nwrites, .tx = tx })) {
		model_scribble(e, tx);
		return false;
	}
	e->nwrites++;
	return true;
}

static bool post_read(struct end *e)
{
	uint32_t len = get_session_user_length(e, SLOT_LEN), at = (uint32_t)own(e, TABLE);
	struct ddps_sge sge = { e->read_mem + (e->nreads % SLOTS) * SLOT_LEN, len,
				ddps_mr_stag(e->local) };
	struct ddps_send_wr wr = { .op = DDPS_OP_READ, .sge = &sge, .nsge = 1 };

	struct wr w = { .op = DDPS_OP_READ, .len = len, .at = at };

	if (e->nreads - e->reads_done == SLOTS)
		return false;
	remote(e, get_other_session_end(e)->src, at, &wr);
	w.slot = e->nreads % SLOTS;
	model_lend(e, &w);
	if (!post_session_user(e, &wr, w))
		return !e->ord;
	e->nreads++;
	return true;
}

static bool post_add(struct end *e)
{
	struct ddps_sge sge = { e->read_mem + sizeof e->read_mem - 8, 8, ddps_mr_stag(e->local) };
	struct ddps_send_wr wr = { .op = DDPS_OP_FETCH_ADD, .sge = &sge, .nsge = 1 };

	wr.stag = ddps_mr_stag(get_other_session_end(e)->atomic);
	wr.to = (uintptr_t)&get_other_session_end(e)->counter;
	wr.atomic.data = 1;
	return post_session_user(e, &wr, (struct wr){ .len = 8 }) || !e->ord;
}

static bool post_session_word(struct end *e)
{
	struct ddps_send_wr wr = { .op = DDPS_OP_ATOMIC_WRITE };

	wr.flags = silent(e, 0.2);
	memcpy(wr.imm, model_octets(e, e->ncells, true), sizeof wr.imm);
	remote(e, get_other_session_end(e)->cells, e->ncells % SLOTS * sizeof(uint64_t), &wr);
	if (!post_session_user(e, &wr, (struct wr){ .len = sizeof wr.imm, .at = e->ncells }))
		return !e->ord;
	e->ncells++;
	return true;
}

/* All of the peer's sink, as a region or as octets. */
static bool post_session_flush(struct end *e)
{
	struct ddps_send_wr wr = { .op = DDPS_OP_FLUSH };

	wr.flags = silent(e, 0.2) | (own_chance(e, 0.2) ? DDPS_WR_FENCE : 0u);
	wr.atomic.mask = DDPS_FLUSH_VISIBLE;
	if (own_chance(e, 0.5))
		wr.atomic.mask |= DDPS_FLUSH_REGION;
	else
		wr.atomic.data = sizeof e->sink_mem;
	remote(e, get_other_session_end(e)->sink, 0, &wr);
	return post_session_user(e, &wr, (struct wr){ .at = e->nwrites }) || !e->ord;
}

/* May one more message be sent?  The peer must have a receive for it; whoever is not tidy
 * does not care, so it waits or the session ends. */
static bool credit(struct end *e)
{
	if (shares(get_other_session_end(e)))
		return e->nmsgs < get_other_session_end(e)->received + 8;
	return get_other_session_end(e)->nrecvs > e->nmsgs ||
	       (!e->pair->tidy && own_chance(e, 0.2));
}

static bool post_next(struct end *e)
{
	const unsigned kinds = e->pair->flush ? 10 : e->pair->rfc7306 ? 8 : 6;
	unsigned what = world.bulk ? 4 + (unsigned)own(e, 2) : (unsigned)own(e, kinds);

	if (!e->id && !e->ops) /* whatever else, the responder waits for something */
		return post_write(e);
	if (what < 3 || what == 6) {
		if (credit(e))
			return post_message(e, what == 6);
		if (e->pair->tidy)
			return false;
	}
	if (what < 5)
		return post_write(e);
	if (what >= 8)
		return what == 8 ? post_session_flush(e) : post_session_word(e);
	return what == 5 ? post_read(e) : post_add(e);
}

/* The next of its program; false: not now. */
static bool post_one(struct end *e)
{
	e->rng = e->program + e->ops * 0x2545f4914f6cdd1du;
	if ((does_session_world_happen(e, SIM_op, e->ops, 1) || !(e->id || e->ops)) &&
	    !post_next(e))
		return false;
	e->ops++;
	return true;
}

static bool is_session_user_done(const struct end *e)
{
	return !model_waits(e) && e->ops >= e->to_post;
}

/* At the end of a world nobody goes on, but for those with whom nothing can have gone wrong. */
static bool may_session_go_on(const struct end *e)
{
	return !world.still || (world.quiet && e->pair->tidy);
}

static bool hurry(const struct end *e)
{
	return world.calm && !may_session_go_on(e);
}

static void finish_session_user(struct end *e)
{
	struct end *o = get_other_session_end(e);

	if (!hurry(e) && e->pair->tidy &&
	    (!is_session_user_done(e) || !is_session_user_done(o) || e->received < o->nmsgs ||
	     o->received < e->nmsgs))
		return;
	if (!hurry(e) && !e->pair->tidy && !is_session_user_done(e) && below(e->pair, 50))
		return;
	e->disconnected = true;
	ddps_disconnect(e->ep);
}

static void mischief(struct end *e)
{
	e->naughty = true;
	switch (sim_like(7)) {
	case 0:
		e->aborted = true;
		ddps_abort(e->ep);
		break;
	case 1:
		ddps_mr_dereg(e->sink);
		e->sink = NULL;
		break;
	case 2:
		ddps_mr_dereg(e->local);
		e->local = NULL;
		break;
	case 3:
		e->disconnected = true;
		ddps_disconnect(e->ep);
		break;
	case 4: /* what has left may not be read again, what has not may not leave */
		ddps_mr_dereg(e->tx);
		e->tx = NULL;
		memset(e->tx_mem, 0x5a, sizeof e->tx_mem);
		break;
	default:
		if (!shares(e)) { /* what it has taken of the queue is gone with it */
			user_free(e);
			break;
		}
		e->aborted = true;
		ddps_abort(e->ep);
	}
}

/* Nobody has that STag: the session ends within the post. */
static void post_stale_invalidate(struct end *e)
{
	struct ddps_send_wr wr = { .op = DDPS_OP_LOCAL_INV, .stag = ddps_mr_stag(e->inv) ^ 1 };

	e->naughty = true;
	post_session_user(e, &wr, (struct wr){ .len = 0 });
}

/* There was memory for all its regions, the last of regions() among them; mischief may take some. */
static bool equipped(const struct end *e)
{
	return e->inv && e->local;
}

void user_turn(struct end *e)
{
	unsigned most = 1 + (unsigned)below(e->pair, 8);

	at_host(e->host);
	if (e->final || !e->asked || !e->ep)
		return;
	if (!e->pair->tidy && !world.still &&
	    does_session_world_happen(e, SIM_mischief, e->looks++, 0.01)) {
		mischief(e);
		return;
	}
	if (!e->pair->tidy && !world.still && e->established && e->inv &&
	    does_session_world_happen(e, SIM_stale, e->looks, 0.003)) {
		post_stale_invalidate(e);
		return;
	}
	if (e->local && (e->pair->tidy || world.still || below(e->pair, 10) < 7))
		post_session_user_recvs(e);
	if (!e->established || !(may_session_go_on(e) || world.calm))
		return;
	while (may_session_go_on(e) && most-- && !e->disconnected && e->ops < e->to_post &&
	       get_other_session_end(e)->sink && equipped(get_other_session_end(e)) &&
	       equipped(e) && post_one(e))
		;
	if (!e->disconnected)
		finish_session_user(e);
}

void user_free(struct end *e)
{
	struct ddps_mr *mr[] = { e->src,   e->sink, e->local, e->atomic,
				 e->cells, e->inv,  e->tx,    e->bait };

	at_host(e->host);
	if (e->req)
		ddps_reject(e->req, NULL, 0);
	e->req = NULL;
	ddps_ep_free(e->ep);
	for (unsigned i = 0; i < sizeof mr / sizeof *mr; i++)
		ddps_mr_dereg(mr[i]);
	e->src = e->sink = e->local = e->atomic = e->cells = e->inv = e->tx = e->bait = NULL;
	e->ep = NULL;
	e->freed = e->final = true;
	e->code = e->code ? e->code : DDPS_E_CLOSED;
	e->sq.n = e->rq.n = 0;
}
