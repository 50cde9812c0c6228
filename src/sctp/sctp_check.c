/* SPDX-License-Identifier: BSD-2-Clause */
/* What an association says of itself, counted anew: see ddps_sc_check(). */
#include "sctp/sctp_in.h"

#ifdef DDPS_ASSERTS

#define CHECK_MAX                                                                                  \
	(256 * DDPS_SC_ITEM) /* with more held or waiting counting takes longer than a test has */

static void check_paths(const struct ddps_sctp_assoc *a)
{
	const struct ddps_sc_path *named[] = { a->primary, a->data_path, a->last_heard,
					       a->sack_path, a->ctl_path };

	ddps_assert(a->npaths);
	for (unsigned i = 0; i < a->npaths; i++) {
		const struct ddps_sc_path *p = a->path[i];

		ddps_assert(p->a == a);
		for (unsigned k = 0; k < i; k++)
			ddps_assert(a->path[k] != p);
		ddps_assert(p->tx.id >= DDPS_SENT_PATHS || a->tx.path[p->tx.id] == &p->tx);
	}
	for (size_t n = 0; n < sizeof named / sizeof *named; n++) {
		bool found = !named[n];

		for (unsigned i = 0; i < a->npaths; i++)
			found |= a->path[i] == named[n];
		ddps_assert(found);
	}
	ddps_assert(a->primary && a->data_path);
}

static void check_waiting(const struct ddps_sctp_assoc *a)
{
	const struct ddps_sc_msg *m;
	const struct ddps_sc_blob *b;
	size_t unsent = 0, buffered = 0;
	unsigned nblobs = 0, nbig = 0, n = 0;

	STAILQ_FOREACH(b, &a->blobs, link) {
		nblobs++;
		nbig += b->len > DDPS_SC_BLOB_BIG;
	}
	ddps_assert(a->nblobs == nblobs && a->nbig == nbig);
	STAILQ_FOREACH(m, &a->queue, link) {
		ddps_assert(m->refs && m->cut < m->len);
		ddps_assert(!m->cut || m == STAILQ_FIRST(&a->queue)); /* they are cut in turn */
		unsent += m->len - m->cut;
		buffered += m->len + sizeof *m;
		if (++n > CHECK_MAX / DDPS_SC_ITEM)
			return;
	}
	ddps_assert(a->early <= n);
	ddps_assert(a->unsent == unsent && a->buffered >= buffered);
	ddps_assert(a->buffered == buffered || a->tx.next != a->tx.cum + 1 || a->dead);
	ddps_assert(a->acked_n <= a->sent_n);
}

static size_t count_held(const struct ddps_sc_helds *q)
{
	const struct ddps_sc_held *h;
	size_t n = 0;

	TAILQ_FOREACH(h, q, link)
		n += h->m.len + DDPS_SC_ITEM;
	return n;
}

static void check_received(const struct ddps_sctp_assoc *a)
{
	const struct ddps_sc_map *m = &a->map;
	const struct ddps_sc_stream *s;
	const struct ddps_sc_held *h;
	uint32_t at = m->cum, start, end, lone = 0;
	size_t held = ddps_sc_reasm_held(a);

	ddps_assert(m->high - m->cum < DDPS_SC_WINDOW);
	ddps_assert(!m->lone == (m->high == m->cum));
	if (a->held > CHECK_MAX || m->lone > CHECK_MAX / DDPS_SC_ITEM)
		return;
	while (ddps_sc_map_run(m, at, &start, &end)) {
		ddps_assert(start - m->cum > 1 && end - start < DDPS_SC_WINDOW);
		lone += end - start + 1;
		at = end;
	}
	ddps_assert(m->lone == lone && (at == m->high));
	for (s = a->streams; s; s = s->hh.next) {
		ddps_assert(s->octets >= count_held(&s->kept));
		held += count_held(&s->kept);
	}
	for (h = a->ahead; h; h = h->hh.next)
		held += h->m.len + DDPS_SC_ITEM;
	held += count_held(&a->ready);
	ddps_assert(a->held == held ||
		    (a->e->busy && a->held > held)); /* an upcall may have one in hand */
}

void ddps_sc_check(const struct ddps_sctp_assoc *a)
{
	ddps_assert(a->state < SC_NSTATES && !a->freed);
	check_paths(a);
	check_waiting(a);
	check_received(a);
}
#endif
