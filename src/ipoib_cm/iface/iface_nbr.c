/* SPDX-License-Identifier: BSD-2-Clause */
/* The neighbour cache: which node has which IP address, and how sure that is. */
#include <string.h>
#include "ipoib_cm/iface/iface_in.h"
#include "ipoib_cm/wire/wire.h"

static const uint8_t none[16];

#define DELAY_NS 5000000000ull /* RFC 4861 10: DELAY_FIRST_PROBE_TIME */

static uint64_t nbr_hash(const struct ddps_ipoib_if *f, const struct ddps_ipoib_ip *ip)
{
	uint8_t key[1 + sizeof(ip->a)] = { ip->v6 };

	memcpy(key + 1, ip->a, sizeof(ip->a));
	return ddps_siphash(&f->key, key, sizeof(key));
}

static bool is_same_ip(const struct ddps_ipoib_ip *a, const struct ddps_ipoib_ip *b)
{
	return a->v6 == b->v6 && memcmp(a->a, b->a, sizeof(a->a)) == 0;
}

struct ddps_ipoib_nbr *ddps_ipoib_nbr_find(struct ddps_ipoib_if *f, const struct ddps_ipoib_ip *ip)
{
	struct ddps_ipoib_nbr *b = f->nbr_last;

	if (b && is_same_ip(&b->ip, ip))
		return b;
	DDPS_TAB_EACH(&f->nbr_by_ip, nbr_hash(f, ip), b, struct ddps_ipoib_nbr, by_ip)
		if (is_same_ip(&b->ip, ip)) {
			f->nbr_last = b;
			return b;
		}
	return NULL;
}

struct ddps_ipoib_nbr *ddps_ipoib_nbr_at(struct ddps_ipoib_if *f, bool v6, const uint8_t *ip)
{
	struct ddps_ipoib_nbr *b = f->nbr_last;
	struct ddps_ipoib_ip key = { .v6 = v6 };

	if (b && b->ip.v6 == v6 && !memcmp(b->ip.a, ip, v6 ? 16 : 4))
		return b;
	memcpy(key.a, ip, v6 ? 16 : 4);
	return ddps_ipoib_nbr_find(f, &key);
}

/* ---- those that may be forgotten for another, the oldest first ---- */

static void unlink_nbr(struct ddps_ipoib_if *f, struct ddps_ipoib_nbr *b)
{
	if (b->old)
		TAILQ_REMOVE(&f->nbr_old, b, spare);
	b->old = false;
}

static void put_last(struct ddps_ipoib_if *f, struct ddps_ipoib_nbr *b)
{
	unlink_nbr(f, b);
	TAILQ_INSERT_TAIL(&f->nbr_old, b, spare);
	b->old = true;
}

/* @at: when it ends.  Nobody waits for one that is reachable, is not used, or has failed. */
static void set_nbr_state(struct ddps_ipoib_if *f, struct ddps_ipoib_nbr *b, enum nbr_state state,
			  uint64_t at)
{
	b->state = state;
	ddps_due_set(&f->nbr_dues, &b->due, at);
	if (state == NBR_REACHABLE || state == NBR_STALE || state == NBR_FAILED)
		put_last(f, b);
	else
		unlink_nbr(f, b);
}

static void set_node(struct ddps_ipoib_if *f, struct ddps_ipoib_nbr *b, struct ddps_ipoib_node *n)
{
	struct ddps_ipoib_node *old = b->node;

	if (old)
		LIST_REMOVE(b, of_node);
	b->node = n;
	if (n) {
		n->refs++;
		ddps_ipoib_node_weigh(f, n);
		LIST_INSERT_HEAD(&n->nbrs, b, of_node);
	}
	if (old)
		ddps_ipoib_node_put(f, old); /* [4755-3.4-2] */
}

static void forget_nbr(struct ddps_ipoib_if *f, struct ddps_ipoib_nbr *b)
{
	ddps_ipoib_queue_drop(f, &b->queue, &f->stats.tx_unreachable);
	set_node(f, b, NULL);
	set_nbr_state(f, b, NBR_FREE, DDPS_CM_NEVER);
	ddps_tab_del(&f->nbr_by_ip, &b->by_ip);
	if (f->nbr_last == b)
		f->nbr_last = NULL;
	TAILQ_INSERT_HEAD(&f->nbr_free, b, spare);
}

/* The packets are lost, and for a while so are those that come; the host is informed [4861-7.2.2-4]. */
static void fail_nbr(struct ddps_ipoib_if *f, struct ddps_ipoib_nbr *b)
{
	for (unsigned i = 0; i < b->queue.n; i++)
		ddps_ipoib_unreachable(f, b->queue.pkt[i].data, b->queue.pkt[i].len);
	ddps_ipoib_queue_drop(f, &b->queue, &f->stats.tx_unreachable);
	set_node(f, b, NULL);
	b->owes = false;
	set_nbr_state(f, b, NBR_FAILED, f->now + f->cfg.failed_ns);
}

/* A free slot, else that of the neighbour unused for longest that nobody waits for. */
static struct ddps_ipoib_nbr *make_nbr(struct ddps_ipoib_if *f, const struct ddps_ipoib_ip *ip)
{
	struct ddps_ipoib_nbr *b;

	if (TAILQ_EMPTY(&f->nbr_free) && f->n_nbr == f->cfg.max_nbr) {
		if (TAILQ_EMPTY(&f->nbr_old)) {
			f->stats.nbr_full++;
			return NULL;
		}
		forget_nbr(f, TAILQ_FIRST(&f->nbr_old));
	}
	b = TAILQ_FIRST(&f->nbr_free);
	if (b)
		TAILQ_REMOVE(&f->nbr_free, b, spare);
	else
		b = &f->nbr[f->n_nbr++];
	memset(b, 0, sizeof(*b));
	b->ip = *ip;
	b->due.at = DDPS_CM_NEVER;
	ddps_tab_add(&f->nbr_by_ip, &b->by_ip, nbr_hash(f, ip));
	return b;
}

/* Asks the neighbour itself while it is believed to be where it was, else everybody. */
static void query_nbr(struct ddps_ipoib_if *f, struct ddps_ipoib_nbr *b)
{
	const struct ddps_ipoib_node *n = b->all || !b->node || !b->node->has_path ? NULL : b->node;

	b->tries++;
	ddps_due_set(&f->nbr_dues, &b->due, f->now + f->cfg.retry_ns);
	/* from no address it would be the question of a node that wants this one */
	if (!memcmp(ddps_ipoib_own_for(f, b->ip.v6, b->ip.a), none, b->ip.v6 ? 16 : 4))
		return;
	f->stats.tx_query++;
	if (b->ip.v6)
		ddps_ipoib_ns_send(f, b->ip.a, n);
	else
		ddps_ipoib_arp_send(f, DDPS_IPOIB_ARP_REQUEST,
				    ddps_ipoib_own_for(f, false, b->ip.a), b->ip.a, n);
}

/* A neighbour of whom nothing is known yet [4755-3-1]. */
static struct ddps_ipoib_nbr *resolve_nbr(struct ddps_ipoib_if *f, bool v6, const uint8_t *dst)
{
	struct ddps_ipoib_ip ip = { .v6 = v6 };
	struct ddps_ipoib_nbr *b;

	memcpy(ip.a, dst, v6 ? 16 : 4);
	b = make_nbr(f, &ip);
	if (!b)
		return NULL;
	b->state = NBR_RESOLVING;
	b->all = true;
	query_nbr(f, b);
	return b;
}

struct ddps_ipoib_node *ddps_ipoib_nbr_way(struct ddps_ipoib_if *f, bool v6, const uint8_t *dst,
					   const void *packet, size_t len)
{
	struct ddps_ipoib_nbr *b = ddps_ipoib_nbr_at(f, v6, dst);

	if (!b)
		b = resolve_nbr(f, v6, dst);
	if (!b) {
		f->stats.tx_unreachable++;
		return NULL;
	}
	if (b->old && TAILQ_NEXT(b, spare))
		put_last(f, b);
	switch (b->state) {
	case NBR_RESOLVING:
	case NBR_PATH:
		(void)ddps_ipoib_queue_put(f, &b->queue, packet, len);
		return NULL;
	case NBR_FAILED:
		f->stats.tx_unreachable++;
		ddps_ipoib_unreachable(f, packet, len);
		return NULL;
	case NBR_STALE: /* [4861-7.3.3-1] */
		set_nbr_state(f, b, NBR_DELAY, f->now + DELAY_NS);
		break;
	default:
		break;
	}
	if (b->node->subnet != f->subnet)
		ddps_ipoib_node_doubt(f, b->node);
	return b->node;
}

static void answer_nbr(struct ddps_ipoib_if *f, struct ddps_ipoib_nbr *b)
{
	b->owes = false;
	f->stats.tx_answer++;
	if (b->ip.v6)
		ddps_ipoib_na_send(f, b->owes_for.a, b->ip.a, b->node);
	else
		ddps_ipoib_arp_send(f, DDPS_IPOIB_ARP_REPLY, b->owes_for.a, b->ip.a, b->node);
}

void ddps_ipoib_nbr_owe(struct ddps_ipoib_if *f, struct ddps_ipoib_nbr *b, const uint8_t *own)
{
	b->owes = true;
	b->owes_for = (struct ddps_ipoib_ip){ .v6 = b->ip.v6 };
	memcpy(b->owes_for.a, own, b->ip.v6 ? 16 : 4);
	if (!b->node || !b->node->has_path)
		return;
	answer_nbr(f, b);
	b->owes = b->node->due.at != DDPS_CM_NEVER; /* again, if that path is in doubt */
}

struct ddps_ipoib_nbr *ddps_ipoib_nbr_ask(struct ddps_ipoib_if *f, const struct ddps_ipoib_ip *ip)
{
	struct ddps_ipoib_nbr *b = ddps_ipoib_nbr_find(f, ip);

	return b ? b : resolve_nbr(f, ip->v6, ip->a);
}

/* [4861-6.3.2-1] half of the base to one and a half */
static uint64_t pick_reachable_ns(struct ddps_ipoib_if *f)
{
	return f->cfg.reachable_ns / 2 +
	       f->cfg.reachable_ns / 65536 * (ddps_ipoib_draw(f) & 0xffff);
}

static void reachable(struct ddps_ipoib_if *f, struct ddps_ipoib_nbr *b)
{
	set_nbr_state(f, b, NBR_REACHABLE, f->now + pick_reachable_ns(f));
	b->tries = 0;
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
	bool path;

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
			set_nbr_state(f, b, NBR_PATH, DDPS_CM_NEVER);
		}
		ddps_ipoib_node_flags(f, n, lladdr->flags);
	}
	path = n->has_path;
	if (b && !path)
		ddps_ipoib_node_ask_path(f, n);
	else if (b)
		ddps_ipoib_node_seen(f, n);
	ddps_ipoib_node_put(f, n);
	if (b && path)
		reachable(f, b);
	return b;
}

/* Packets go on to where they went, until nobody answers there. */
static void probe_nbr(struct ddps_ipoib_if *f, struct ddps_ipoib_nbr *b, bool all)
{
	set_nbr_state(f, b, NBR_PROBE, DDPS_CM_NEVER);
	b->tries = 0;
	b->all = all;
	query_nbr(f, b);
}

static bool is_nbr_believed(const struct ddps_ipoib_nbr *b)
{
	return b->state == NBR_REACHABLE || b->state == NBR_STALE || b->state == NBR_DELAY;
}

void ddps_ipoib_nbr_told(struct ddps_ipoib_if *f, const struct ddps_ipoib_ip *ip,
			 const struct ddps_ipoib_lladdr *a, bool solicited, bool override)
{
	struct ddps_ipoib_nbr *b = ddps_ipoib_nbr_find(f, ip);
	const struct ddps_ipoib_node *n = b ? b->node : NULL;
	struct ddps_ipoib_lladdr same;
	bool other;

	if (!b || (!n && !a)) /* [4861-7.2.5-1] [4861-7.2.5-2] */
		return;
	other = a && (!n || ddps_ipoib_lladdr_cmp(a, &n->lladdr) != 0);
	if (n && other && !override) { /* [4861-7.2.5-4] */
		if (is_nbr_believed(b))
			probe_nbr(f, b, false);
		return;
	}
	if (!solicited && !other) { /* [4861-7.2.5-6] */
		if (a)
			ddps_ipoib_node_flags(f, b->node, a->flags);
		return;
	}
	same = a ? *a : n->lladdr;
	b = ddps_ipoib_nbr_learn(f, ip, &same, false);
	if (b && !solicited && b->state == NBR_REACHABLE) /* [4861-7.2.5-3] [4861-7.2.5-5] */
		probe_nbr(f, b, false);
}

void ddps_ipoib_nbr_path(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n)
{
	bool path = n->has_path;

	if (LIST_EMPTY(&n->nbrs)) /* it is there for a REQ of its own */
		return;
	n->refs++;
	for (struct ddps_ipoib_nbr *b = LIST_FIRST(&n->nbrs), *next; b; b = next) {
		next = LIST_NEXT(b, of_node);
		if (!path)
			fail_nbr(f, b);
		else if (b->state == NBR_PATH)
			reachable(f, b);
		else if (b->owes) /* the answer by the path of before may be lost */
			answer_nbr(f, b);
		if (next && next->node != n) /* what is sent may push it out */
			next = LIST_FIRST(&n->nbrs);
	}
	ddps_ipoib_node_put(f, n);
}

void ddps_ipoib_nbr_reresolve(struct ddps_ipoib_if *f, const struct ddps_ipoib_node *n)
{
	struct ddps_ipoib_nbr *b;

	LIST_FOREACH(b, &n->nbrs, of_node)
		if (is_nbr_believed(b))
			probe_nbr(f, b, true);
}

static void expire(struct ddps_ipoib_if *f, struct ddps_ipoib_nbr *b)
{
	switch (b->state) {
	case NBR_REACHABLE:
		set_nbr_state(f, b, NBR_STALE, f->now + 2 * f->cfg.reachable_ns);
		break;
	case NBR_DELAY:
		probe_nbr(f, b, false); /* [4391-9.4-1] [4861-7.3.3-2] */
		break;
	case NBR_PROBE:
	case NBR_RESOLVING:
		if (b->tries >= f->cfg.tries && (b->state == NBR_RESOLVING || b->all)) {
			fail_nbr(f, b);
			break;
		}
		if (b->tries >= f->cfg.tries) { /* [4861-7.3.3-3] packets look for it anew */
			forget_nbr(f, b);
			break;
		}
		if (b->node)
			ddps_ipoib_node_doubt(f, b->node);
		query_nbr(f, b);
		break;
	default:
		forget_nbr(f, b);
	}
}

void ddps_ipoib_nbr_tick(struct ddps_ipoib_if *f)
{
	struct ddps_due *due;

	while ((due = ddps_dues_ready(&f->nbr_dues, f->now)))
		expire(f, (struct ddps_ipoib_nbr *)(void *)((char *)due -
							    offsetof(struct ddps_ipoib_nbr, due)));
}

uint64_t ddps_ipoib_nbr_deadline(const struct ddps_ipoib_if *f)
{
	return ddps_dues_first(&f->nbr_dues);
}

void ddps_ipoib_nbr_clear(struct ddps_ipoib_if *f)
{
	for (unsigned i = 0; i < f->n_nbr; i++)
		if (f->nbr[i].state != NBR_FREE)
			forget_nbr(f, &f->nbr[i]);
	f->n_nbr = 0;
	TAILQ_INIT(&f->nbr_free);
}

int ddps_ipoib_if_nbr_info(const struct ddps_ipoib_if *f, unsigned nr,
			   struct ddps_ipoib_if_nbr_info *info)
{
	static const char *const name[] = { "free",  "resolving", "path",  "reachable",
					    "stale", "delay",	  "probe", "failed" };
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
