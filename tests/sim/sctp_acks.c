/* SPDX-License-Identifier: BSD-2-Clause */
/* What follows of an acknowledgement: the RTO (RFC 6298), and what leaves next (RFC 5682). */
#include "sim/sctp_world.h"

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
 * early the next is not sooner than that. */
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
	check(p->t3s == e->t3s || p->t3s == is[i].t3s || rto >= rtt || rto == a->tx.conf->rto_max,
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
