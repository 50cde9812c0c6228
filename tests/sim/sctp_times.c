/* SPDX-License-Identifier: BSD-2-Clause */
/* How long things take in a world: what is to be reported, what is waited for, what is measured. */
#include "sim/sctp_world.h"

static uint32_t tsn_of(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* What has left reports all up to there: it is on its way. */
void times_sent(struct side *s, const uint8_t *p, size_t len)
{
	struct ddps_rbuf r = ddps_sc_chunks(p, len);
	struct ddps_sc_chunk c;

	while (ddps_sc_chunk_next(&r, &c) > 0) {
		if (c.type == SC_DATA && c.vlen >= 4) {
			acks_sent(s, tsn_of(c.val));
			cost_sent(s, tsn_of(c.val));
		}
		if ((c.type != SC_SACK && c.type != SC_SHUTDOWN) || c.vlen < 4)
			continue;
		s->told = tsn_of(c.val);
		if (c.type == SC_SACK && s->a)
			s->told_high = s->a->map.high;
		else if ((int32_t)(s->told_high - s->told) < 0 || !s->tells)
			s->told_high = s->told;
		s->tells = true;
	}
}

/* Each event is followed by all output that there is: what has arrived has been reported then, or there
 * is a time for it.  A peer that is not told would have to ask, by a T3. */
static void does_sctp_times_tell(const struct side *s, const struct ddps_sctp_assoc *a)
{
	bool owes = !s->tells || s->told != a->map.cum || s->told_high != a->map.high;

	if (!a->saw_data || a->state > SC_SENT)
		return;
	check(!owes || a->sack_at != DDPS_SC_NEVER,
	      "node %u: the peer will not be told what has arrived", s->node);
}

/*
 * T3 does not count longer than it would if it began now: what was doubled while nobody answered
 * is over as soon as somebody does.  One that began with another RTT may go on: a half more.
 */
static void waits(const struct side *s, const struct ddps_sctp_assoc *a)
{
	for (unsigned k = 0; k < a->npaths; k++) {
		const struct ddps_sent_path *p = &a->path[k]->tx;
		uint64_t most = ddps_sent_rto(&a->tx, p);

		if (most < a->tx.conf->rto_initial)
			most = a->tx.conf->rto_initial;
		check(!p->nflight || p->t3_at <= w.net.now + most + most / 2,
		      "node %u: T3 in %.6f s, where %.6f s are due", s->node,
		      (double)(p->t3_at - w.net.now) / 1e9, (double)most / 1e9);
	}
}

/* An RTT is of packets that were sent and answered: not shorter than the way, and not longer than
 * that and what a SACK may wait. */
static void measures(const struct side *s, const struct ddps_sctp_assoc *a)
{
	uint64_t most = w.rtt_most + trouble_rests(s);

	for (unsigned k = 0; w.rtt_most && k < a->npaths; k++) {
		const struct ddps_sent_path *p = &a->path[k]->tx;

		check(!p->srtt || (p->min_rtt >= w.rtt_least && p->srtt >= w.rtt_least),
		      "node %u: a round trip of %.6f s, on a path of %.6f", s->node,
		      (double)(p->min_rtt < p->srtt ? p->min_rtt : p->srtt) / 1e9,
		      (double)w.rtt_least / 1e9);
		check(p->min_rtt <= most && p->srtt <= most,
		      "node %u: a round trip of %.6f s, on a path of %.6f at most", s->node,
		      (double)(p->min_rtt > p->srtt ? p->min_rtt : p->srtt) / 1e9,
		      (double)most / 1e9);
	}
}

/* Where nothing is lost on its way no path has become narrower: it is the peer that had no room. */
static void holes(const struct side *s, const struct ddps_sctp_assoc *a)
{
	for (unsigned k = 0; w.steady && k < a->npaths; k++)
		check(!a->path[k]->tx.pmtu.black_holes, "node %u: a black hole where none is",
		      s->node);
}

bool is_window_tight(const struct ddps_sctp_assoc *a, uint32_t window)
{
	uint64_t out = 0;

	for (unsigned k = 0; k < a->npaths; k++)
		out += a->path[k]->tx.flight + a->path[k]->tx.lost_octets;
	return window <= out;
}

/* A T3 can then only be for what the peer had no room for.  When it has for all of it, that is over. */
static void reopens(const struct side *s, const struct ddps_sctp_assoc *a)
{
	for (unsigned k = 0; w.steady && k < a->npaths; k++)
		check(!a->path[k]->tx.backoff || is_window_tight(a, a->tx.a_rwnd) || a->tx.zero_out,
		      "node %u: the peer has room, and a T3 is waited for", s->node);
}

/* Where nothing is lost on its way, nobody asks twice for an association, whatever sockets have no room for. */
void sets_up(const struct side *s, const struct ddps_sctp_assoc *a)
{
	check(!w.sure || a->state > SC_COOKIE_ECHOED || !a->ctl_n,
	      "node %u: an INIT or a COOKIE ECHO is sent again", s->node);
}

void times(const struct side *s, const struct ddps_sctp_assoc *a)
{
	does_sctp_times_tell(s, a);
	waits(s, a);
	measures(s, a);
	holes(s, a);
	reopens(s, a);
	if (w.trouble)
		cost_sound(s, a);
}

/* ---- what one trouble may cost (sctp_trouble.c): T3s, and how often one chunk is sent ---- */

#define TSNS 4096u /* of one side; what is beyond is not counted */

static uint8_t sends[2 * SLOTS][TSNS];

void cost_begin(void)
{
	memset(sends, 0, sizeof sends);
}

/*
 * Since nothing is lost any more but for its size: what is resent goes in a packet that passes, or soon in
 * one that does.  Short chunks need not be in large packets.  0: nothing is known
 */
static unsigned most_sends(void)
{
	switch (w.trouble) {
	case NARROWS:
		return w.brief ? 3 : 5;
	case THINS:
		return 24;
	case REROUTES:
		return 3;
	default:
		return 0;
	}
}

void cost_sent(const struct side *s, uint32_t tsn)
{
	unsigned most = most_sends();
	uint32_t i;
	uint8_t *n;

	if (!most || !s->a || !w.well_at || w.net.now < w.well_at)
		return;
	i = tsn - s->a->own_tsn;
	if (i >= TSNS)
		return;
	n = &sends[2 * (s->slot - w.slot) + s->id][i];
	check(++*n <= most, "node %u: a chunk is sent %u times, where %u will do", s->node, *n,
	      most);
}

/*
 * A path that takes less: one T3 finds it, and one more where a single large chunk is on its way.  If it
 * takes less than the base size that is found in two steps.  One that takes longer has T3s too early,
 * until its RTT is known.  What is lost for less than a round trip a tail loss probe finds.
 */
static uint64_t most_t3s(const struct side *s)
{
	switch (w.trouble) {
	case NARROWS:
		return 2;
	case THINS:
		return 8;
	case LOSES: /* of the others SACKs are lost, perhaps that of what was resent */
		return s->node ? 3 : 1;
	case SLOWS:
		return 8;
	case REROUTES:
		return 6;
	default:
		return UINT64_MAX;
	}
}

void cost_sound(const struct side *s, const struct ddps_sctp_assoc *a)
{
	uint64_t t3s = a->path[0]->tx.t3s, most = most_t3s(s);

	check(t3s <= most, "node %u: %" PRIu64 " T3s where %" PRIu64 " will do", s->node, t3s,
	      most);
	if (w.trouble == SLOWS && t3s < 2 && a->path[0]->tx.pmtu.black_holes)
		w.false_holes |= 1ull << (2 * (s->slot - w.slot) + s->id);
}

/* A path that takes longer does not take less.  Where the first packet of a SACK and what was resent look
 * the same it may seem so, but not to many. */
void cost_end(void)
{
	unsigned n = (unsigned)__builtin_popcountll(w.false_holes);

	check(n <= 2 + w.nslots / 2, "%u of %u ends find a black hole where none is", n,
	      2 * w.nslots);
}

/* ---- acks ---- */

/* What follows of an acknowledgement: the RTO (RFC 6298), and what leaves next (RFC 5682). */

#define RING 256u

/* A TSN that was sent. */
struct sent {
	uint32_t tsn, order; /* order: when it was sent last, among all of this side */
	uint64_t at, t3s;    /* T3s of the path before it was */
	bool once;
};

static struct {
	struct sent sent[RING];
	uint32_t order, next, cum, tag;
	uint64_t undone, t3s, srtt, rttvar; /* t3s: when an RTT was measured last */
	bool known;			    /* next and cum */
	bool only_new; /* and nothing before next may leave with the next packet */
} is[2 * SLOTS];

static unsigned which(const struct side *s)
{
	return 2 * (unsigned)(s->slot - w.slot) + s->id;
}

void acks_begin(void)
{
	memset(is, 0, sizeof is);
}

static bool before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

void acks_sent(const struct side *s, uint32_t tsn)
{
	unsigned i = which(s);
	struct sent *e = &is[i].sent[tsn % RING];
	bool again = is[i].known && before(tsn, is[i].next);

	check(!is[i].only_new || !again, "node %u: what is lost leaves in the place of new data",
	      s->node);
	is[i].only_new = false;
	*e = (struct sent){ .tsn = tsn,
			    .order = is[i].order++,
			    .at = w.net.now,
			    .t3s = s->a ? s->a->path[0]->tx.t3s : 0,
			    .once = !again };
	if (!again)
		is[i].next = tsn + 1;
}

/* Of what was acknowledged now the one that left last, if all of them are known. */
static const struct sent *latest(unsigned i, uint32_t cum)
{
	const struct sent *found = NULL;

	if (cum - is[i].cum > RING)
		return NULL;
	for (uint32_t t = is[i].cum; t != cum; t++) {
		const struct sent *e = &is[i].sent[(t + 1) % RING];

		if (e->tsn != t + 1)
			return NULL;
		if (!found || before(found->order, e->order))
			found = e;
	}
	return found;
}

/* What was sent once and is acknowledged shows the RTT: no T3 waits doubled any more, and if one was too
 * early the next is not sooner than that.  After more than a second that may be an outage, and the RTT holds. */
static void measured(const struct side *s, const struct ddps_sctp_assoc *a, unsigned i)
{
	const struct ddps_sent_path *p = &a->path[0]->tx;
	const struct sent *e = p->nsacked ? NULL : latest(i, a->tx.cum);
	uint64_t rto = ddps_sent_rto(&a->tx, p), rtt;

	if (!e || !e->once)
		return;
	rtt = w.net.now - e->at;
	check(!p->backoff, "node %u: T3 waits doubled, and what was sent once is acknowledged",
	      s->node);
	check(p->t3s == e->t3s || p->t3s == is[i].t3s || rto >= rtt || rtt > SEC ||
		      rto == a->tx.conf->rto_max,
	      "node %u: T3 waits %.6f s, and an answer took %.6f", s->node, (double)rto / 1e9,
	      (double)rtt / 1e9);
}

/* The second step of F-RTO: new data shows whether T3 was too early. */
static bool asks_by_new(const struct ddps_sctp_assoc *a)
{
	const struct ddps_sent_path *p = &a->path[0]->tx;
	size_t len = ddps_sc_next_len(a, ddps_sctp_max_chunk(a));

	return p->frto == 2 && p->frto_new == 2 && !p->force && len &&
	       len <= ddps_sent_window(&a->tx) && a->tx.next - a->tx.cum <= DDPS_SENT_MAX;
}

/* @shutdown: the packet has one, which is no answer to anything. */
void acks_taken(const struct side *s, bool shutdown)
{
	const struct ddps_sctp_assoc *a = s->a;
	unsigned i = which(s);

	/* what finds no room in the socket is sent, and not seen */
	if (!a || a->dead || a->state < SC_ESTABLISHED || a->npaths > 1 || w.net.full > 0)
		return;
	if (!is[i].known || is[i].tag != a->own_tag) { /* it begins */
		is[i].known = true;
		is[i].tag = a->own_tag;
		is[i].next = a->tx.next;
		is[i].cum = a->tx.cum;
		memset(is[i].sent, 0, sizeof is[i].sent);
	} else if (is[i].cum != a->tx.cum && !shutdown) {
		measured(s, a, i);
	}
	if (is[i].undone != a->path[0]->tx.undone) /* when they were sent is not known any more */
		memset(is[i].sent, 0, sizeof is[i].sent);
	if (is[i].srtt != a->path[0]->tx.srtt || is[i].rttvar != a->path[0]->tx.rttvar)
		is[i].t3s = a->path[0]->tx.t3s; /* once a round trip will do */
	is[i].srtt = a->path[0]->tx.srtt;
	is[i].rttvar = a->path[0]->tx.rttvar;
	is[i].undone = a->path[0]->tx.undone;
	is[i].cum = a->tx.cum;
	is[i].only_new = asks_by_new(a);
}

void acks_over(const struct side *s)
{
	is[which(s)].only_new = false;
}
