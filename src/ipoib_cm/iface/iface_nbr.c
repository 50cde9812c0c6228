/* SPDX-License-Identifier: BSD-2-Clause */
/* The neighbour cache: which node has which IP address, and how sure that is. */
#include <string.h>
#include "ipoib_cm/iface/iface_in.h"

struct ddps_ipoib_nbr *ddps_ipoib_nbr_find(struct ddps_ipoib_if *f, const struct ddps_ipoib_ip *ip)
{
	for (unsigned i = 0; i < f->n_nbr; i++) {
		struct ddps_ipoib_nbr *b = &f->nbr[i];

		if (b->state != NBR_FREE && b->ip.v6 == ip->v6 &&
		    memcmp(b->ip.a, ip->a, sizeof(ip->a)) == 0)
			return b;
	}
	return NULL;
}

static void set_node(struct ddps_ipoib_if *f, struct ddps_ipoib_nbr *b, struct ddps_ipoib_node *n)
{
	struct ddps_ipoib_node *old = b->node;

	if (n)
		n->refs++;
	b->node = n;
	if (old)
		ddps_ipoib_node_put(f, old); /* [4755-3.4-2] */
}

static void forget_nbr(struct ddps_ipoib_if *f, struct ddps_ipoib_nbr *b)
{
	ddps_ipoib_queue_drop(f, &b->queue, &f->stats.tx_unreachable);
	set_node(f, b, NULL);
	b->state = NBR_FREE;
}

/* The packets are lost, and for a while so are those that come. */
static void fail_nbr(struct ddps_ipoib_if *f, struct ddps_ipoib_nbr *b)
{
	forget_nbr(f, b);
	b->owes = false;
	b->state = NBR_FAILED;
	b->at = f->now + f->cfg.failed_ns;
}

/* A free slot, else that of the neighbour unused for longest that nobody waits for. */
static struct ddps_ipoib_nbr *make_nbr(struct ddps_ipoib_if *f, const struct ddps_ipoib_ip *ip)
{
	struct ddps_ipoib_nbr *best = NULL;

	for (unsigned i = 0; i < f->n_nbr; i++) {
		struct ddps_ipoib_nbr *b = &f->nbr[i];

		if (b->state == NBR_FREE) {
			best = b;
			break;
		}
		if ((b->state == NBR_REACHABLE || b->state == NBR_FAILED) &&
		    (!best || b->used_at < best->used_at))
			best = b;
	}
	if ((!best || best->state != NBR_FREE) && f->n_nbr < f->cfg.max_nbr)
		best = &f->nbr[f->n_nbr++];
	if (!best) {
		f->stats.nbr_full++;
		return NULL;
	}
	if (best->state != NBR_FREE)
		forget_nbr(f, best);
	memset(best, 0, sizeof(*best));
	best->ip = *ip;
	best->used_at = f->now;
	best->at = DDPS_CM_NEVER;
	return best;
}

/* Asks the neighbour itself while it is believed to be where it was, then everybody. */
static void query(struct ddps_ipoib_if *f, struct ddps_ipoib_nbr *b, bool all)
{
	const struct ddps_ipoib_node *n = all || !b->node || !b->node->has_path ? NULL : b->node;

	b->tries++;
	b->at = f->now + f->cfg.retry_ns;
	f->stats.tx_query++;
	if (b->ip.v6)
		ddps_ipoib_ns_send(f, b->ip.a, n);
	else
		ddps_ipoib_arp_send(f, DDPS_IPOIB_ARP_REQUEST, b->ip.a, n);
}

void ddps_ipoib_nbr_send(struct ddps_ipoib_if *f, const struct ddps_ipoib_ip *ip,
			 const void *packet, size_t len)
{
	struct ddps_ipoib_nbr *b = ddps_ipoib_nbr_find(f, ip);

	if (!b) {
		b = make_nbr(f, ip);
		if (!b) {
			f->stats.tx_unreachable++;
			return;
		}
		b->state = NBR_RESOLVING;
		query(f, b, true); /* [4755-3-1] */
	}
	b->used_at = f->now;
	if (b->state == NBR_FAILED)
		f->stats.tx_unreachable++;
	else if (b->state == NBR_RESOLVING || b->state == NBR_PATH)
		(void)ddps_ipoib_queue_put(f, &b->queue, packet, len);
	else
		ddps_ipoib_tx_packet(f, b->node, packet, len);
}

static void answer_nbr(struct ddps_ipoib_if *f, struct ddps_ipoib_nbr *b)
{
	b->owes = false;
	f->stats.tx_answer++;
	if (b->ip.v6)
		ddps_ipoib_na_send(f, b->owes_for.a, b->ip.a, b->node);
	else
		ddps_ipoib_arp_send(f, DDPS_IPOIB_ARP_REPLY, b->ip.a, b->node);
}

static void reachable(struct ddps_ipoib_if *f, struct ddps_ipoib_nbr *b)
{
	b->state = NBR_REACHABLE;
	b->tries = 0;
	b->at = f->now + f->cfg.reachable_ns;
	if (b->owes)
		answer_nbr(f, b);
	if (b->queue.n)
		ddps_ipoib_tx_queue(f, b->node, &b->queue);
}

struct ddps_ipoib_nbr *ddps_ipoib_nbr_learn(struct ddps_ipoib_if *f, const struct ddps_ipoib_ip *ip,
					    const struct ddps_ipoib_lladdr *lladdr, bool create)
{
	struct ddps_ipoib_nbr *b = ddps_ipoib_nbr_find(f, ip);
	struct ddps_ipoib_node *n;

	if (!b && !create)
		return NULL;
	n = ddps_ipoib_node_get(f, lladdr);
	if (!n)
		return NULL;
	n->refs++; /* not while another neighbour is pushed out for this one */
	if (!b)
		b = make_nbr(f, ip);
	if (b) {
		if (b->node != n) { /* QPN or GID is another: another neighbour */
			set_node(f, b, n);
			b->state = NBR_PATH;
			b->at = DDPS_CM_NEVER;
		}
		ddps_ipoib_node_flags(f, n, lladdr->flags);
	}
	if (b && n->has_path)
		b->state = NBR_REACHABLE;
	else if (b)
		ddps_ipoib_node_ask_path(f, n);
	ddps_ipoib_node_put(f, n);
	if (b && b->state == NBR_REACHABLE)
		reachable(f, b);
	return b;
}

void ddps_ipoib_nbr_path(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n)
{
	bool path = n->has_path;

	n->refs++;
	for (unsigned i = 0; i < f->n_nbr; i++) {
		struct ddps_ipoib_nbr *b = &f->nbr[i];

		if (b->state == NBR_FREE || b->node != n)
			continue;
		if (!path)
			fail_nbr(f, b);
		else if (b->state == NBR_PATH)
			reachable(f, b);
	}
	ddps_ipoib_node_put(f, n);
}

void ddps_ipoib_nbr_reresolve(struct ddps_ipoib_if *f, const struct ddps_ipoib_node *n)
{
	for (unsigned i = 0; i < f->n_nbr; i++) {
		struct ddps_ipoib_nbr *b = &f->nbr[i];

		if (b->state != NBR_REACHABLE || b->node != n)
			continue;
		b->state = NBR_PROBE;
		b->tries = 0;
		query(f, b, true);
	}
}

static void expire(struct ddps_ipoib_if *f, struct ddps_ipoib_nbr *b)
{
	switch (b->state) {
	case NBR_REACHABLE:
		if (b->used_at + f->cfg.reachable_ns <= f->now) {
			forget_nbr(f, b);
			break;
		}
		b->state = NBR_PROBE; /* [4391-9.4-1] */
		b->tries = 0;
		query(f, b, false);
		break;
	case NBR_RESOLVING:
	case NBR_PROBE:
		if (b->tries >= f->cfg.tries)
			fail_nbr(f, b);
		else
			query(f, b, true);
		break;
	default:
		forget_nbr(f, b);
	}
}

void ddps_ipoib_nbr_tick(struct ddps_ipoib_if *f)
{
	for (unsigned i = 0; i < f->n_nbr; i++)
		if (f->nbr[i].state != NBR_FREE && f->nbr[i].at <= f->now)
			expire(f, &f->nbr[i]);
}

uint64_t ddps_ipoib_nbr_deadline(const struct ddps_ipoib_if *f)
{
	uint64_t t = DDPS_CM_NEVER;

	for (unsigned i = 0; i < f->n_nbr; i++)
		if (f->nbr[i].state != NBR_FREE)
			t = ddps_ipoib_min(t, f->nbr[i].at);
	return t;
}

void ddps_ipoib_nbr_clear(struct ddps_ipoib_if *f)
{
	for (unsigned i = 0; i < f->n_nbr; i++)
		if (f->nbr[i].state != NBR_FREE)
			forget_nbr(f, &f->nbr[i]);
	f->n_nbr = 0;
}

int ddps_ipoib_if_nbr_info(const struct ddps_ipoib_if *f, unsigned nr,
			   struct ddps_ipoib_if_nbr_info *info)
{
	static const char *const name[] = { "free",	 "resolving", "path",
					    "reachable", "probe",     "failed" };
	const struct ddps_ipoib_nbr *b = nr < f->n_nbr ? &f->nbr[nr] : NULL;
	struct ddps_ipoib_qp *qp = NULL;

	if (!b || b->state == NBR_FREE)
		return b ? 0 : -1;
	memset(info, 0, sizeof(*info));
	info->ip6 = b->ip.v6;
	memcpy(info->ip, b->ip.a, sizeof(info->ip));
	info->state = name[b->state];
	info->mtu = f->ud_mtu;
	info->mode = "ud";
	if (b->node) {
		info->has_lladdr = true;
		info->lladdr = b->node->lladdr;
		info->mtu = ddps_ipoib_tx_mtu(f, b->node, &qp);
	}
	if (qp)
		info->mode = qp->transport == DDPS_CM_UC ? "uc" : "rc";
	return 1;
}
