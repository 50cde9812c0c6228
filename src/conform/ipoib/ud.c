/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams, ARP, and which neighbour the peer is to the target. */
#include "conform/ipoib/peer.h"
#include <string.h>

#define QPN_LOW	  0x600000u /* of identities whose order does not matter */
#define ARP_LEN	  56u
#define ASK_AGAIN 400000000ull
#define CLAIM_NS  8000000000ull /* RFC 5227: from a probe to an address in use, at most */

struct ci_pkt ci_ud(const struct ci *ci, const void *b, size_t len)
{
	return (struct ci_pkt){ .op = CI_UD | CI_ONLY,
				.pkey = ci->plan.pkey,
				.qpn = ci->target.qpn,
				.qkey = ci->qkey,
				.src_qpn = ci->me.qpn,
				.data = b,
				.len = len };
}

void ci_ud_send(struct ci *ci, const void *frame, size_t len)
{
	struct ci_pkt p = ci_ud(ci, frame, len);

	if (ci->fab.used)
		ci_fab_ud(ci, NULL, frame, len);
	else
		ci_packet(ci, ci->target.lid, &p);
}

void ci_ud_group(struct ci *ci, const struct ci_group *g, const void *frame, size_t len)
{
	struct ci_pkt p = ci_ud(ci, frame, len);

	p.qpn = CI_MCAST_QPN;
	if (ci->fab.used)
		ci_fab_ud(ci, g->mgid, frame, len);
	else
		ci_packet(ci, g->mlid, &p);
}

size_t ci_arp(const struct ci *ci, uint8_t *b, unsigned op, uint32_t sender, uint32_t target)
{
	memset(b, 0, CI_ENCAP + ARP_LEN);
	cf_put16(b, CI_ARP);
	b += CI_ENCAP;
	cf_put16(b, 32); /* RFC 4391 9.2 */
	cf_put16(b + 2, 0x0800);
	b[4] = CI_LLA;
	b[5] = 4;
	cf_put16(b + 6, (uint16_t)op);
	memcpy(b + 8, ci->me.lla, CI_LLA);
	cf_put32(b + 28, sender);
	cf_put32(b + 52, target);
	return CI_ENCAP + ARP_LEN;
}

/* The target starts: until it knows that nobody else has its address, it answers nobody. */
static bool is_arp_probe(const struct ci *ci, const struct ci_ev *e)
{
	const uint8_t *a = e->b + CI_ENCAP;

	return e->len >= CI_ENCAP + ARP_LEN && cf_get16(e->b) == CI_ARP && cf_get16(a + 6) == 1 &&
	       !cf_get32(a + 28) && cf_get32(a + 52) == ci->plan.target;
}

const uint8_t *ci_arp_reply(struct ci *ci, uint32_t asker, uint64_t until, bool learn)
{
	struct ci_ev *e;

	while ((e = ci_await(ci, CI_EV_FRAME, until))) {
		const uint8_t *a = e->b + CI_ENCAP;

		if (is_arp_probe(ci, e))
			ci->claimed_until = e->at + CLAIM_NS;
		if (e->len < CI_ENCAP + ARP_LEN || cf_get16(e->b) != CI_ARP ||
		    cf_get16(a + 6) != 2 || cf_get32(a + 52) != asker ||
		    cf_get32(a + 28) != ci->plan.target)
			continue;
		if (learn) {
			memcpy(ci->target.lla, a + 8, CI_LLA);
			ci->target.qpn = ci_get24(a + 9);
		}
		return e->b;
	}
	return NULL;
}

/* Another QPN, address, CA GUID. */
static void identity(struct ci *ci, uint8_t flags, int order)
{
	struct ci_me *me = &ci->me;
	uint32_t n = ++ci->n_cases, t = ci->target.qpn;

	*me = (struct ci_me){ .first_id = ci->next_id };
	me->ip = ci->plan.ip + 1 + n % (ci->plan.ips - 2);
	me->guid = (uint64_t)ci->random << 32 | n;
	me->qpn = QPN_LOW + ((ci->random >> 8) + n) % 0x100000;
	if (order < 0)
		me->qpn = t > 0x2000 ? t - 1 - n : 2 + n % (t > 3 ? t - 2 : 1);
	else if (order > 0)
		me->qpn = t < 0xff0000 ? t + 1 + n : t < 0xfffffe ? t + 1 + n % (0xfffffe - t) : t;
	if (ci->fab.used) { /* a port numbers its queue pairs itself */
		ci_fab_open(ci);
		me->qpn = ci->fab.qpn;
	}
	if ((order < 0 && me->qpn >= t) || (order > 0 && me->qpn <= t) || me->qpn < 2 ||
	    me->qpn > 0xfffffe)
		ci_skip(ci, "no queue pair number is %s than the target's %06x",
			order < 0 ? "smaller" : "larger", t);
	me->lla[0] = flags;
	ci_put24(me->lla + 1, me->qpn);
	memcpy(me->lla + 4, ci->plan.gid, CI_GID);
	memcpy(me->ip6, ci->plan.gid, 8);
	cf_put64(me->ip6 + 8, 0x0200000000000000u | me->guid);
}

uint32_t ci_stranger(const struct ci *ci)
{
	return ci->plan.ip + ci->plan.ips - 1;
}

/* What the target says without being asked: it may ask for somebody, or tell a group something. */
static bool is_unasked(const struct ci_ev *e)
{
	bool nd =
		cf_get16(e->b) == CI_IP6 && e->b[CI_ENCAP + 6] == 58 && e->b[CI_ENCAP + 40] == 135;

	return e->mlid || nd || (cf_get16(e->b) == CI_ARP && cf_get16(e->b + CI_ENCAP + 6) == 1);
}

/* The target has dealt with all frames.  @strict: without an answer to one. */
static void ud_barrier(struct ci *ci, bool strict)
{
	uint8_t b[CI_ENCAP + ARP_LEN];
	uint64_t until = ci_limit(ci, CI_PART_LINK), now;

	ci_due(ci, "an ARP reply");
	while ((now = cf_now()) < until) {
		uint64_t next = now + ASK_AGAIN < until ? now + ASK_AGAIN : until;
		struct ci_ev *e;

		ci_ud_send(ci, b, ci_arp(ci, b, 1, ci->plan.ip, ci->plan.target));
		while ((e = ci_await(ci, CI_EV_FRAME, next))) {
			const uint8_t *a = e->b + CI_ENCAP;
			bool arp = cf_get16(e->b) == CI_ARP && e->len >= CI_ENCAP + ARP_LEN;

			if (arp && cf_get16(a + 6) == 2 && cf_get32(a + 52) == ci->plan.ip) {
				ci_got(ci);
				return;
			}
			if (strict && !is_unasked(e)) {
				ci_due(ci, "no answer");
				ci_fail(ci, "an answer comes where none is due: %s",
					cf_hex(e->b, e->len));
			}
		}
	}
	ci_fail(ci, "the target does not answer ARP requests any more");
}

void ci_resolve(struct ci *ci)
{
	uint64_t until = ci_limit(ci, CI_PART_LINK), now;
	uint8_t b[CI_ENCAP + ARP_LEN];
	unsigned asked = 0;

	ci_due(ci, "an ARP reply");
	while ((now = cf_now()) < until || now < ci->claimed_until) {
		uint64_t next = now + ASK_AGAIN;

		if (now < until && until < next && until > ci->claimed_until)
			next = until;
		ci_ud_group(ci, &ci->group[0], b, ci_arp(ci, b, 1, ci->me.ip, ci->plan.target));
		asked++;
		if (!ci_arp_reply(ci, ci->me.ip, next, true))
			continue;
		ci_heard(ci, CI_PART_LINK);
		if (asked > 1 && ci->target.lid)
			ud_barrier(ci,
				   false); /* each has an answer, which is none to a later one */
		return;
	}
	ci_fail(ci, "the target does not answer ARP requests");
}

void ci_meet(struct ci *ci, uint8_t flags)
{
	ci_meet_order(ci, flags, 0);
}

void ci_meet_order(struct ci *ci, uint8_t flags, int order)
{
	identity(ci, flags, order);
	ci_resolve(ci);
}

static bool gid_ordered(const uint8_t *gid, const uint8_t *target, int order)
{
	int d = memcmp(gid, target, CI_GID);

	return cf_get64(gid + 8) && (order < 0 ? d < 0 : d > 0);
}

bool ci_gid_order(uint8_t gid[CI_GID], const uint8_t target[CI_GID], int order, uint16_t n)
{
	memset(gid + 8, order < 0 ? 0 : 0xff, 8);
	cf_put16(gid + 14, n);
	if (!gid_ordered(gid, target, order))
		cf_put64(gid + 8, cf_get64(target + 8) + (order < 0 ? UINT64_MAX : 1));
	return gid_ordered(gid, target, order);
}

void ci_meet_gid(struct ci *ci, uint8_t flags, int order)
{
	uint8_t *gid = ci->me.lla + 4;

	identity(ci, flags, 0);
	ci->me.qpn = ci->target.qpn;
	ci_put24(ci->me.lla + 1, ci->me.qpn);
	if (!ci_gid_order(gid, ci->target.lla + 4, order, (uint16_t)ci->n_cases))
		ci_skip(ci, "no GID is %s than the target's", order < 0 ? "smaller" : "larger");
	ci_resolve(ci);
}

void ci_ud_quiet(struct ci *ci)
{
	ud_barrier(ci, true);
}
