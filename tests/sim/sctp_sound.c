/* SPDX-License-Identifier: BSD-2-Clause */
/* What holds in a world, whatever happens. */
#include "sim/sctp_world.h"

#define PACKETS	  4u /* times as many as seem due */
#define CRAWLS	  4u
#define LEAST_RTO 200000000u /* ns */

/*
 * Nothing is lost any more: T3 has to find what is missing once, not again and again with a little
 * that arrives between.  Each path may find that it takes less than was thought, and that the RTT
 * is another one.
 */
static void crawls(struct side *s, const struct ddps_sctp_assoc *a)
{
	uint64_t t3s = 0;

	for (unsigned k = 0; k < a->npaths; k++)
		t3s += a->path[k]->tx.t3s;
	if (w.calm && w.trouble != SLOWS && t3s > s->t3s && a->tx.cum != s->cum)
		s->crawls++;
	if (t3s != s->t3s)
		s->cum = a->tx.cum;
	s->t3s = t3s;
	check(s->crawls <= CRAWLS, "node %u: T3 after T3, with some progress between", s->node);
}

/*
 * Each T3 takes twice as long as the one before, whoever is heard meanwhile (9260-6.3.3-e2): else an
 * association whose way there is dead for a while would soon be given up.  A path that is new
 * or whose RTT was measured, or news of what was sent, begins anew; so does a peer without room, and one that has
 * some again.
 */
static void backs_off(struct side *s, const struct ddps_sctp_assoc *a)
{
	const uint64_t most = a->tx.conf->rto_max;
	const bool opens = a->tx.a_rwnd > s->rwnd && is_window_tight(a, s->rwnd);

	s->rwnd = a->tx.a_rwnd;
	for (unsigned k = 0; k < a->npaths && k < sizeof s->row / sizeof *s->row; k++) {
		const struct ddps_sent_path *p = &a->path[k]->tx;
		struct row *r = &s->row[k], is = { .path = p,
						   .t3s = p->t3s,
						   .looked = w.net.now,
						   .before = r->before,
						   .cum = a->tx.cum,
						   .sacked = p->nsacked,
						   .spurious = p->spurious,
						   .srtt = p->srtt,
						   .rttvar = p->rttvar,
						   .good = a->path[k]->good,
						   .n = r->n };
		uint64_t least;

		if (r->path != p || r->cum != is.cum || r->sacked != is.sacked ||
		    r->spurious != is.spurious || r->srtt != is.srtt || r->rttvar != is.rttvar ||
		    (is.good && is.good != r->good) || !p->srtt || a->tx.zero_out || opens)
			is.n = 0;
		if (r->path == p && p->t3s != r->t3s) {
			least = (uint64_t)LEAST_RTO << is.n;
			check(!is.n || w.net.now - r->before >= (least < most ? least : most),
			      "node %u: T3 number %u in a row comes after %.3f s", s->node,
			      is.n + 1, (double)(w.net.now - r->before) / 1e9);
			is.before = r->looked;
			is.n += is.n < 20;
		}
		*r = is;
	}
}

static uint32_t lost_bits(const struct ddps_sent *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; s->ring && i <= s->mask >> 6; i++)
		n += (uint32_t)__builtin_popcountll(s->lost[i]);
	return n;
}

static void sound(struct side *s)
{
	const struct ddps_sctp_assoc *a = s->a;
	uint32_t flight = 0, lost = 0, sacked = 0, out;
	bool goes_on = false;

	if (a && !a->dead)
		sets_up(s, a);
	if (!a || a->state < SC_ESTABLISHED || a->dead)
		return;
	for (unsigned k = 0; k < a->npaths; k++) {
		const struct ddps_sent_path *p = &a->path[k]->tx;

		flight += p->nflight;
		lost += p->nlost;
		sacked += p->nsacked;
		check(!p->nflight == !p->flight, "%u chunks in flight, of %" PRIu64 " octets",
		      p->nflight, p->flight);
		check(p->cc.cwnd < 1ull << 31, "cwnd %" PRIu64, p->cc.cwnd);
		check(p->cc.phase == DDPS_CC_RECOVER || p->cc.cwnd >= 512, "cwnd %" PRIu64,
		      p->cc.cwnd);
		check(p->cc.smss >= 68 && p->cc.smss <= 65535, "a packet takes %u", p->cc.smss);
		check(!w.clean || w.paths > 1 || s->slot->both || !(p->t3s || p->lost),
		      "%" PRIu64 " T3s, %" PRIu64 " chunks taken for lost where nothing is", p->t3s,
		      p->lost);
		goes_on |= ddps_sent_deadline(&a->tx, p) != DDPS_SENT_NEVER;
	}
	crawls(s, a);
	backs_off(s, a);
	times(s, a);
	out = a->tx.next - a->tx.cum - 1;
	check(!out || goes_on, "%u chunks are out, and nothing will ever happen", out);
	check(flight == a->tx.nflight && lost == a->tx.nlost && flight + lost + sacked == out,
	      "%u, %u, %u chunks of %u", flight, lost, sacked, out);
	check(lost_bits(&a->tx) == lost, "%u chunks of %u are marked as lost", lost_bits(&a->tx),
	      lost);
	check(a->buffered <= a->e->c.send_buffer + OVERHEAD, "%zu octets wait", a->buffered);
	check(a->held <= 2 * a->e->c.rwnd + OVERHEAD, "%zu octets held", a->held);
	/* What fills a gap may pass both bounds, by as much again: may_hold(). */
	check(a->e->st.held <= 2 * a->e->c.max_held, "all hold %" PRIu64, a->e->st.held);
}

void sound_all(void)
{
	for (; w.touched; w.touched &= w.touched - 1) {
		struct slot *s = &w.slot[__builtin_ctzll(w.touched)];

		for (unsigned k = 0; k < 2; k++) {
			acks_over(&s->side[k]);
			sound(&s->side[k]);
		}
	}
}

void sound_empty(const struct sn_node *d)
{
	const struct ddps_sctp *e = d->e;
	const struct ddps_sctp_assoc *a;

	if ((a = TAILQ_FIRST(&e->all)))
		check(false, "node %u has one left: %s, ports %u, %u", d->id,
		      ddps_sc_state_name(a->state), a->port, a->peer_port);
	check(!e->st.assocs, "%u associations are left", e->st.assocs);
	check(!e->st.held, "%" PRIu64 " octets are held by nobody", e->st.held);
	check(!e->paths && !e->peers, "addresses are left");
	w.t->n[N_PACKETS] += d->sent;
	w.t->n[N_LOST] += d->lost;
}

void sound_modest(const struct sim_tally *was)
{
	const uint64_t *n = w.t->n;
	uint64_t packets = n[N_PACKETS] - was->n[N_PACKETS];
	uint64_t due = 10 * (n[N_ASSOCS] - was->n[N_ASSOCS] + w.nslots) +
		       (n[N_MESSAGES] - was->n[N_MESSAGES]) * (1 + w.max_len / 536);

	check(packets <= PACKETS * due, "%" PRIu64 " packets where %" PRIu64 " would do", packets,
	      due);
}
