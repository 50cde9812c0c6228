/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables on their way: RMPP (IBA volume 1, 13.6) with the window that the receiver grants. */
#include "ipoib_cm/sa/sa_in.h"
#include <stdlib.h>
#include <string.h>

#define TRIES	 4
#define AGAIN_NS 500000000ull
#define SEGMENT	 DDPS_SA_RECORD_LEN
#define WINDOW	 32 /* at most, whatever the receiver grants: it may not be who it says */

void ddps_sa_table_free(struct sa_table *t)
{
	free(t->data);
	*t = (struct sa_table){ 0 };
}

/* Segment @n, from 1 on: the first says the length of all, the last its own. */
static void send_table_segment(struct ddps_sa *sa, const struct sa_table *t, uint32_t n)
{
	size_t at = (size_t)(n - 1) * SEGMENT, part = t->len - at < SEGMENT ? t->len - at : SEGMENT;
	struct ddps_rmpp r = { .type = DDPS_RMPP_DATA, .flags = DDPS_RMPP_ACTIVE, .segment = n };
	uint8_t mad[DDPS_CM_MAD_LEN] = { 0 };

	if (n == 1) {
		r.flags |= DDPS_RMPP_FIRST;
		r.length = (uint32_t)(t->len + (size_t)t->n_seg * DDPS_RMPP_EXTRA);
	}
	if (n == t->n_seg) {
		r.flags |= DDPS_RMPP_LAST;
		r.length = (uint32_t)(part + DDPS_RMPP_EXTRA);
	}
	memcpy(mad, t->head, sizeof t->head);
	ddps_sa_rmpp_put(mad, &r);
	if (part)
		memcpy(ddps_sa_record(mad), t->data + at, part);
	sa->cfg.send(sa->cfg.user, t->lid, mad);
}

static void send_window(struct ddps_sa *sa, struct sa_table *t, uint32_t from, uint64_t now)
{
	for (uint32_t n = from; n <= t->window; n++)
		send_table_segment(sa, t, n);
	t->due = now + AGAIN_NS;
}

static struct sa_table *table_of(struct ddps_sa *sa, uint16_t lid)
{
	for (unsigned i = 0; i < DDPS_SA_TABLES; i++)
		if (sa->table[i].lid == lid)
			return &sa->table[i];
	return NULL;
}

uint16_t ddps_sa_table_send(struct ddps_sa *sa, uint16_t slid, const struct ddps_sa_head *h,
			    const uint8_t *head, struct sa_found *f, uint64_t now)
{
	struct sa_table *t = table_of(sa, slid);

	if (t) /* whoever asks anew has given up what it asked before */
		ddps_sa_table_free(t);
	t = table_of(sa, 0);
	if (!t || f->failed) {
		sa->stats.sa_table_limit++;
		return DDPS_SA_NO_RESOURCES;
	}
	memcpy(t->head, head, sizeof t->head);
	t->lid = slid;
	t->tid = h->tid;
	t->data = f->data;
	t->len = f->n * f->stride;
	t->n_seg = t->len ? (uint32_t)((t->len + SEGMENT - 1) / SEGMENT) : 1;
	t->window = 1;
	f->data = NULL;
	sa->stats.sa_tables++;
	send_window(sa, t, 1, now);
	return DDPS_SA_OK;
}

void ddps_sa_table_heard(struct ddps_sa *sa, uint16_t slid, uint64_t tid, const struct ddps_rmpp *r,
			 uint64_t now)
{
	struct sa_table *t = table_of(sa, slid);
	uint32_t sent;

	if (!t || t->tid != tid) {
		sa->stats.sa_late++;
		return;
	}
	if (r->type != DDPS_RMPP_ACK) { /* STOP, ABORT */
		sa->stats.sa_table_lost++;
		ddps_sa_table_free(t);
		return;
	}
	sent = t->window;
	if (r->segment > sent ||
	    r->segment < t->acked) /* of nothing that was sent, or an old one */
		return;
	if (r->segment == t->n_seg) {
		ddps_sa_table_free(t);
		return;
	}
	t->tries = r->segment > t->acked ? 0 : t->tries;
	t->acked = r->segment;
	if (r->length > t->window)
		t->window = r->length;
	if (t->window > t->acked + WINDOW)
		t->window = t->acked + WINDOW;
	if (t->window > t->n_seg)
		t->window = t->n_seg;
	if (t->window > sent)
		send_window(sa, t, sent + 1, now);
}

uint64_t ddps_sa_table_due(const struct ddps_sa *sa)
{
	uint64_t due = UINT64_MAX;

	for (unsigned i = 0; i < DDPS_SA_TABLES; i++)
		if (sa->table[i].lid && sa->table[i].due < due)
			due = sa->table[i].due;
	return due;
}

void ddps_sa_table_tick(struct ddps_sa *sa, uint64_t now)
{
	for (unsigned i = 0; i < DDPS_SA_TABLES; i++) {
		struct sa_table *t = &sa->table[i];

		if (!t->lid || t->due > now)
			continue;
		if (++t->tries < TRIES) {
			send_window(sa, t, t->acked + 1, now);
			continue;
		}
		sa->stats.sa_table_lost++;
		ddps_sa_table_free(t);
	}
}
