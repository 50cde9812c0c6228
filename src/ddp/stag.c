/* SPDX-License-Identifier: BSD-2-Clause */
/* The STag table: registration, access checks, remote invalidation. */
/* uthash would else end the process when memory runs out. */
#define HASH_NONFATAL_OOM 1
/* STags are random, and ours: nothing is gained by scrambling them for the buckets. */
#define HASH_FUNCTION(key, len, hash) ((hash) = *(const uint32_t *)(key))
#define HASH_KEYCMP(a, b, len)	      (*(const uint32_t *)(a) != *(const uint32_t *)(b))
#include "ddp/stag.h"
#include <stdlib.h>
#include <sys/random.h>

#define LEN_MAX (UINT64_C(1) << 48)
#define KNOWN                                                                                      \
	(DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE | DDPS_REMOTE_READ | DDPS_REMOTE_ATOMIC |            \
	 DDPS_ZERO_BASED)
#define QUARANTINE 1024 /* freed values that are not given out again yet */

struct ddps_stag_table {
	struct ddps_mr *by_stag;
	struct ddps_mr *last; /* found, or NULL: most work keeps to one region */
	uint64_t losses;      /* see ddps_stag_losses */
	uint32_t max;
	uint32_t freed[QUARANTINE]; /* ring; 0: empty, 0 is never an STag */
	unsigned next_freed;
};

int ddps_stag_table_new(struct ddps_stag_table **out, uint32_t max_regions)
{
	struct ddps_stag_table *t = calloc(1, sizeof *t);

	if (!t)
		return DDPS_E_NOMEM;
	t->max = max_regions;
	*out = t;
	return 0;
}

void ddps_stag_table_free(struct ddps_stag_table *t)
{
	struct ddps_mr *mr, *tmp;

	if (!t)
		return;
	HASH_ITER (hh, t->by_stag, mr, tmp) {
		HASH_DEL(t->by_stag, mr);
		free(mr);
	}
	free(t);
}

uint32_t ddps_stag_count(const struct ddps_stag_table *t)
{
	return HASH_COUNT(t->by_stag);
}

uint64_t ddps_stag_losses(const struct ddps_stag_table *t)
{
	return t->losses;
}

struct ddps_mr *ddps_stag_find(struct ddps_stag_table *t, uint32_t stag)
{
	struct ddps_mr *mr = t->last;

	if (mr && mr->stag == stag)
		return mr;
	HASH_FIND(hh, t->by_stag, &stag, sizeof stag, mr);
	if (mr)
		t->last = mr;
	return mr;
}

bool ddps_stag_usable(struct ddps_stag_table *t, uint32_t stag)
{
	if (!stag || ddps_stag_find(t, stag))
		return false;
	for (unsigned i = 0; i < QUARANTINE; i++)
		if (t->freed[i] == stag)
			return false;
	return true;
}

/* Over the whole space and hard to predict [5042-6.1.1-4] [5040-8.1.1-8]. */
static int draw(struct ddps_stag_table *t, uint32_t *stag)
{
	do {
		if (getrandom(stag, sizeof *stag, 0) != (ssize_t)sizeof *stag)
			return DDPS_E_SYSTEM;
	} while (!ddps_stag_usable(t, *stag));
	return 0;
}

int ddps_stag_add(struct ddps_pd *pd, void *addr, size_t len, unsigned access, uint64_t stream,
		  struct ddps_mr **out)
{
	struct ddps_stag_table *t = pd->table;
	struct ddps_mr *mr;
	int err;

	if ((!addr && len) || len > LEN_MAX || (access & ~KNOWN) ||
	    (uintptr_t)addr + len < (uintptr_t)addr)
		return DDPS_E_INVAL;
	if (ddps_stag_count(t) >= t->max)
		return DDPS_E_LIMIT;
	mr = calloc(1, sizeof *mr);
	if (!mr)
		return DDPS_E_NOMEM;
	err = draw(t, &mr->stag);
	if (err) {
		free(mr);
		return err;
	}
	mr->pd = pd;
	mr->stream = stream;
	mr->addr = addr;
	mr->base = access & DDPS_ZERO_BASED ? 0 : (uintptr_t)addr;
	mr->len = len;
	mr->access = access;
	mr->valid = true;
	HASH_ADD(hh, t->by_stag, stag, sizeof mr->stag, mr);
	if (!mr->hh.tbl) {
		free(mr);
		return DDPS_E_NOMEM;
	}
	pd->users++;
	*out = mr;
	return 0;
}

void ddps_stag_remove(struct ddps_mr *mr)
{
	struct ddps_stag_table *t = mr->pd->table;

	if (t->last == mr)
		t->last = NULL;
	t->losses++;
	t->freed[t->next_freed] = mr->stag;
	t->next_freed = (t->next_freed + 1) % QUARANTINE;
	HASH_DEL(t->by_stag, mr);
	mr->pd->users--;
	free(mr);
}

/* Valid, of this PD, of this stream, with the right [5041-8.2-1] [5041-8.2-2]. */
static enum ddps_stag_verdict may_use(const struct ddps_mr *mr, const struct ddps_pd *pd,
				      uint64_t stream, unsigned need)
{
	if (!mr || !mr->valid)
		return DDPS_STAG_INVALID;
	if (mr->pd != pd || (mr->stream && mr->stream != stream))
		return DDPS_STAG_ASSOCIATION;
	if ((mr->access & need) != need)
		return DDPS_STAG_ACCESS;
	return DDPS_STAG_OK;
}

enum ddps_stag_verdict ddps_stag_check(struct ddps_pd *pd, uint64_t stream, uint32_t stag,
				       uint64_t to, uint64_t len, unsigned need, uint8_t **at)
{
	struct ddps_mr *mr = ddps_stag_find(pd->table, stag);
	enum ddps_stag_verdict v = may_use(mr, pd, stream, need);

	if (v)
		return v;
	/* Before the bounds, which a wrapped sum would pass or blur [5041-7.1-16]. */
	if (to + len < to)
		return DDPS_STAG_WRAP;
	if (to < mr->base || to - mr->base > mr->len || len > mr->len - (to - mr->base))
		return DDPS_STAG_BOUNDS;
	*at = mr->addr + (to - mr->base);
	return DDPS_STAG_OK;
}

enum ddps_stag_verdict ddps_stag_check_local(struct ddps_pd *pd, uint64_t stream,
					     const struct ddps_sge *sge, unsigned need)
{
	uintptr_t at = (uintptr_t)sge->addr, start;
	enum ddps_stag_verdict v;
	struct ddps_mr *mr;

	if (!sge->len)
		return DDPS_STAG_OK;
	mr = ddps_stag_find(pd->table, sge->lkey);
	v = may_use(mr, pd, stream, need);
	if (v)
		return v;
	start = (uintptr_t)mr->addr;
	if (at < start || at - start > mr->len || sge->len > mr->len - (at - start))
		return DDPS_STAG_BOUNDS;
	return DDPS_STAG_OK;
}

enum ddps_stag_verdict ddps_stag_invalidate(struct ddps_pd *pd, uint64_t stream, uint32_t stag)
{
	struct ddps_mr *mr = ddps_stag_find(pd->table, stag);
	enum ddps_stag_verdict v = may_use(mr, pd, stream, 0);

	if (v)
		return v;
	if (!mr->stream && pd->streams > 1 && !pd->verbs_rules)
		return DDPS_STAG_ASSOCIATION;
	mr->valid = false;
	pd->table->losses++;
	return DDPS_STAG_OK;
}

const char *ddps_stag_verdict_text(enum ddps_stag_verdict v)
{
	switch (v) {
	case DDPS_STAG_OK:
		return "usable";
	case DDPS_STAG_INVALID:
		return "unknown or invalidated";
	case DDPS_STAG_ASSOCIATION:
		return "not associated with this stream";
	case DDPS_STAG_ACCESS:
		return "without the right";
	case DDPS_STAG_WRAP:
		return "range wraps";
	case DDPS_STAG_BOUNDS:
		return "range out of bounds";
	}
	return "?";
}
