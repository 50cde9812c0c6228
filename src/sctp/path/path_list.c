/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses of a peer: which there are, and which of them carry what is sent. */
#include "sctp/sctp_in.h"

/* Nobody can foresee it, and a simulation can repeat it. */
static uint8_t late_of(const struct ddps_sc_path *p)
{
	const uint32_t who[2] = { p->a->own_tag, p->id };

	return (uint8_t)ddps_siphash(&p->a->e->hash_key, who, sizeof who);
}

void ddps_sc_path_tx(struct ddps_sc_path *p, unsigned id)
{
	struct ddps_sctp_assoc *a = p->a;
	struct ddps_pmtu_limits lim =
		ddps_pmtu_limits(p->peer.family == 6, a->fixed_mtu ? a->fixed_mtu : a->mtu);

	ddps_sent_path_init(&a->tx, &p->tx, id, &lim, ddps_sc_overhead(p));
	p->tx.late = p->tx.pmtu.late = late_of(p);
	if (a->fixed_mtu) {
		ddps_pmtu_fix(&p->tx.pmtu, lim.max);
		ddps_sent_mtu_changed(&a->tx, &p->tx, DDPS_PMTU_SIZE);
	}
}

/* A number for what is sent that no other path has.  They are those of the list until one is dropped: what is under
 * way keeps the number of the path that it was sent on. */
static unsigned tx_id(const struct ddps_sc_path *p)
{
	unsigned id = p->id;

	for (unsigned i = 0; id < DDPS_SENT_PATHS && p->a->tx.path[id]; i++)
		id = i;
	return id;
}

/* Of our addresses that the peer knows, if it knows several.  False: none is of @peer's family. */
static bool choose_source(const struct ddps_sctp_assoc *a, const struct ddps_sctp_addr *peer,
			  struct ddps_sctp_addr *local)
{
	const struct ddps_sctp_config *c = &a->e->c;
	unsigned i = a->nlocal, same = 0;

	*local = (struct ddps_sctp_addr){ 0 };
	if (a->nlocal < 2)
		return true;
	for (unsigned k = 0; k < a->nlocal; k++)
		same += a->local[k].family == peer->family;
	if (same && c->source)
		i = c->source(c->user, peer, a->local, a->nlocal);
	if (i < a->nlocal)
		*local = a->local[i];
	return same;
}

/* What comes from elsewhere the peer takes for another association's, and aborts. */
const struct ddps_sctp_addr *ddps_sc_only(const struct ddps_sctp_assoc *a,
					  const struct ddps_sctp_addr *local)
{
	return a->nlocal < 2 ? local : NULL;
}

/* Where what goes to @peer comes from.  False: nothing can. */
static bool source_of(const struct ddps_sctp_assoc *a, const struct ddps_sctp_addr *peer,
		      const struct ddps_sctp_addr *local, struct ddps_sctp_addr *source)
{
	if (!local)
		return choose_source(a, peer, source);
	*source = *local;
	return !local->family || local->family == peer->family;
}

/* Room for an address beyond those that carry what is sent. */
static bool has_more(struct ddps_sctp_assoc *a)
{
	if (a->npaths != DDPS_SC_ADDRS_MAX && ddps_sc_more_get(a->e, &a->share))
		return true;
	a->left = true;
	a->e->st.addrs_left++;
	return false;
}

/* The list is for one, then for those that carry what is sent, then for all that there may be. */
static bool make_place(struct ddps_sctp_assoc *a)
{
	const size_t n = a->npaths == 1			? DDPS_SENT_PATHS
			 : a->npaths == DDPS_SENT_PATHS ? DDPS_SC_ADDRS_MAX
							: 0;
	struct ddps_sc_path **all;

	if (!n)
		return true;
	all = realloc(a->path == &a->only ? NULL : a->path, n * sizeof(struct ddps_sc_path *));
	if (!all)
		return false;
	if (a->path == &a->only)
		all[0] = a->only;
	a->path = all;
	return true;
}

/* Where it is from shows when something comes from @peer: nothing else is sent there. */
static struct ddps_sc_path *path_new(struct ddps_sctp_assoc *a, const struct ddps_sctp_addr *peer,
				     const struct ddps_sctp_addr *local)
{
	struct ddps_sctp_addr source = { 0 };
	struct ddps_sc_path *p;

	if (local)
		source = *local;
	if (a->npaths < DDPS_SENT_PATHS && !source_of(a, peer, local, &source))
		return NULL;
	p = calloc(1, sizeof *p);
	if (p)
		p->local = source;
	return p;
}

struct ddps_sc_path *ddps_sc_path_add(struct ddps_sctp_assoc *a, const struct ddps_sctp_addr *peer,
				      const struct ddps_sctp_addr *local, uint16_t encap)
{
	bool more = a->npaths >= DDPS_SENT_PATHS;
	struct ddps_sc_path *p;

	if (ddps_sc_find(a->e, a->via, a->port, a->peer_port, peer) || (more && !has_more(a)))
		return NULL;
	p = path_new(a, peer, local);
	if (p) {
		p->a = a;
		p->peer = *peer;
		p->encap = encap;
		p->id = a->npaths;
		p->state = DDPS_SCTP_UNCONFIRMED;
		p->hb_at = DDPS_SC_NEVER;
	}
	if (!p || !make_place(a) || !ddps_sc_enter(a->e, p)) {
		if (more)
			ddps_sc_more_put(a->e, &a->share, 1);
		free(p);
		return NULL;
	}
	a->path[a->npaths++] = p;
	ddps_sc_path_tx(p, tx_id(p));
	if (!p->id)
		a->share = *peer;
	if (!a->primary)
		a->primary = a->data_path = a->last_heard = a->sack_path = a->ctl_path = p;
	return p;
}

struct ddps_sc_path *ddps_sc_path_of(const struct ddps_sctp_assoc *a,
				     const struct ddps_sctp_addr *peer)
{
	for (unsigned i = 0; i < a->npaths; i++) {
		if (ddps_sc_addr_eq(&a->path[i]->peer, peer))
			return a->path[i];
	}
	return NULL;
}

bool ddps_sc_path_sure(const struct ddps_sc_path *p)
{
	return p->confirmed || p->a->state <= SC_COOKIE_ECHOED;
}

void ddps_sc_path_front(struct ddps_sc_path *p)
{
	struct ddps_sctp_assoc *a = p->a;
	struct ddps_sc_path *last = a->path[DDPS_SENT_PATHS - 1];

	if (p->id < DDPS_SENT_PATHS)
		return;
	last->id = p->id;
	p->id = DDPS_SENT_PATHS - 1;
	a->path[last->id] = last;
	a->path[p->id] = p;
	last->confirmed = false;
	last->state = DDPS_SCTP_UNCONFIRMED;
	last->hb_at = DDPS_SC_NEVER;
	if (a->data_path == last)
		a->data_path = p;
	if (a->primary == last)
		a->primary = p;
}

bool ddps_sc_is_mine(const struct ddps_sctp_assoc *a, const struct ddps_sctp_addr *addr)
{
	return a->left || ddps_sc_path_of(a, addr) || ddps_sc_is_own(a->e, &a->path[0]->peer, addr);
}

/* ---- out of the list ---- */

static void forget_blobs(const struct ddps_sc_path *p)
{
	struct ddps_sctp_assoc *a = p->a;
	struct ddps_sc_blobs others = STAILQ_HEAD_INITIALIZER(others);
	struct ddps_sc_blob *b;

	while ((b = STAILQ_FIRST(&a->blobs))) {
		STAILQ_REMOVE_HEAD(&a->blobs, link);
		if (b->path != p) {
			STAILQ_INSERT_TAIL(&others, b, link);
			continue;
		}
		a->nblobs--;
		a->nbig -= b->len > DDPS_SC_BLOB_BIG;
		free(b);
	}
	STAILQ_CONCAT(&a->blobs, &others);
}

/* What is at the end takes the place of @p, which has its number.  One that was beyond those that carry what is sent
 * becomes one of them, and may need an address of ours that it can be reached from. */
static void to_the_end(struct ddps_sc_path *p)
{
	struct ddps_sctp_assoc *a = p->a;
	struct ddps_sc_path *q = a->path[a->npaths - 1];
	struct ddps_sctp_addr source;

	if (q == p)
		return;
	if (p->id < DDPS_SENT_PATHS && q->id >= DDPS_SENT_PATHS) {
		ddps_sc_path_tx(q, p->tx.id);
		if (source_of(a, &q->peer, q->local.family == q->peer.family ? &q->local : NULL,
			      &source))
			q->local = source;
	}
	a->path[p->id] = q;
	q->id = p->id;
	p->id = (uint8_t)(a->npaths - 1);
}

void ddps_sc_path_drop(struct ddps_sc_path *p)
{
	struct ddps_sctp_assoc *a = p->a;
	struct ddps_sc_path **const at[] = { &a->primary, &a->data_path, &a->last_heard,
					     &a->sack_path, &a->ctl_path };

	to_the_end(p);
	if (--a->npaths >= DDPS_SENT_PATHS)
		ddps_sc_more_put(a->e, &a->share, 1);
	ddps_sc_leave(a->e, p);
	for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
		if (*at[i] == p)
			*at[i] = a->data_path == p ? a->path[0] : a->data_path;
	}
	forget_blobs(p);
	ddps_sent_path_gone(&a->tx, &p->tx);
	free(p);
	ddps_sc_touch(a);
}

void ddps_sc_path_claim(struct ddps_sctp_assoc *a, const struct ddps_sctp_addr *peer)
{
	struct ddps_sc_path *p = ddps_sc_find(a->e, a->via, a->port, a->peer_port, peer);

	if (!p || ddps_sc_path_sure(p) || p->a->npaths < 2)
		return;
	a->e->st.addrs_taken++;
	ddps_sc_path_drop(p);
}
