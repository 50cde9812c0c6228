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

/* A T3 can then only be for what the peer had no room for.  When it has, all that is over. */
static void reopens(const struct side *s, const struct ddps_sctp_assoc *a)
{
	for (unsigned k = 0; w.steady && k < a->npaths; k++)
		check(!a->path[k]->tx.backoff || !a->tx.a_rwnd || a->tx.zero_out,
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
