/* SPDX-License-Identifier: BSD-2-Clause */
/* The STag table: registration, access checks, remote invalidation. */
/* uthash would else end the process when memory runs out. */
#define HASH_NONFATAL_OOM 1
/* STags are random, and ours: nothing is gained by scrambling them for the buckets. */
#define HASH_FUNCTION(key, len, hash) ((hash) = *(const uint32_t *)(key))
#define HASH_KEYCMP(a, b, len)	      (*(const uint32_t *)(a) != *(const uint32_t *)(b))
#include "ddp/stag.h"
#include "common/system/assert.h"
#include "common/system/random.h"
#include <stdlib.h>

#define LEN_MAX (UINT64_C(1) << 48)
#define KNOWN                                                                                      \
	(DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE | DDPS_REMOTE_READ | DDPS_REMOTE_ATOMIC |            \
	 DDPS_ZERO_BASED | DDPS_BIND | DDPS_FLUSHABLE | DDPS_PERSISTENT)
/* What a window can give. */
#define REMOTE (DDPS_REMOTE_WRITE | DDPS_REMOTE_READ | DDPS_REMOTE_ATOMIC)

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
	HASH_ITER(hh, t->by_stag, mr, tmp) {
		HASH_DEL(t->by_stag, mr);
		free(mr);
	}
	free(t);
}

uint32_t ddps_stag_count(const struct ddps_stag_table *t)
{
	return HASH_COUNT(t->by_stag);
}

#ifdef DDPS_ASSERTS

#define CHECK_MAX 64u /* with more regions counting takes longer than a test has */

static uint32_t count_bound(const struct ddps_stag_table *t, const struct ddps_mr *of)
{
	const struct ddps_mr *mr;
	uint32_t n = 0;

	for (mr = t->by_stag; mr; mr = mr->hh.next)
		n += mr->of == of;
	return n;
}

static void check_region(const struct ddps_stag_table *t, const struct ddps_mr *mr)
{
	const struct ddps_mr *of = mr->of;

	ddps_assert(mr->stag && mr->pd->table == t && mr->pd->users);
	ddps_assert(mr->windows == count_bound(t, mr));
	ddps_assert(mr->window || (!of && mr->access & DDPS_STAG_LOCAL));
	ddps_assert(!mr->window || (!mr->windows && mr->valid == !!of));
	/* A window reaches no further than its region, which stays while it does. */
	ddps_assert(!of || (of->valid && of->pd == mr->pd && mr->addr >= of->addr &&
			    mr->addr + mr->len <= of->addr + of->len));
}

void ddps_stag_table_check(const struct ddps_stag_table *t)
{
	const struct ddps_mr *mr, *near;
	uint32_t windows = 0;

	ddps_assert(ddps_stag_count(t) <= t->max && t->next_freed < DDPS_STAG_QUARANTINE);
	for (unsigned i = 0; i < DDPS_STAG_NEAR; i++) {
		if (!(near = t->near[i]))
			continue;
		HASH_FIND(hh, t->by_stag, &near->stag, sizeof near->stag, mr);
		ddps_assert(mr == near && near->stag % DDPS_STAG_NEAR == i);
	}
	if (ddps_stag_count(t) > CHECK_MAX)
		return;
	for (mr = t->by_stag; mr; mr = mr->hh.next) {
		check_region(t, mr);
		windows += mr->window;
	}
	ddps_assert(windows <= t->windows); /* one that got no memory for its name is not here */
}
#endif

struct ddps_mr *ddps_stag_find(struct ddps_stag_table *t, uint32_t stag)
{
	struct ddps_mr **near = ddps_stag_near(t, stag), *mr = *near;

	if (mr && mr->stag == stag)
		return mr;
	HASH_FIND(hh, t->by_stag, &stag, sizeof stag, mr);
	if (mr)
		*near = mr;
	return mr;
}

/* Whether a name that differs from @stag in the low octet at most is in use: by a window, or by
 * anything. */
static bool has_kin(struct ddps_stag_table *t, uint32_t stag, bool window)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t kin = (stag & ~UINT32_C(0xff)) | i;
		struct ddps_mr *mr;

		HASH_FIND(hh, t->by_stag, &kin, sizeof kin, mr);
		if (mr && (mr->window || !window))
			return true;
	}
	return false;
}

bool ddps_stag_usable(struct ddps_stag_table *t, uint32_t stag, bool window)
{
	if (!stag || ddps_stag_find(t, stag))
		return false;
	for (unsigned i = 0; i < DDPS_STAG_QUARANTINE; i++)
		if (t->freed[i] == stag)
			return false;
	/* A window can have all that differ in the low octet. */
	return !(window || t->windows) || !has_kin(t, stag, !window);
}

/* Over the whole space and hard to predict [5042-6.1.1-4] [5040-8.1.1-8]. */
static int draw_stag(struct ddps_stag_table *t, uint32_t *stag, bool window)
{
	int err;

	do
		err = ddps_random(stag, sizeof *stag);
	while (!err && !ddps_stag_usable(t, *stag, window));
	return err;
}

/* Into the table, under a new STag. */
static int enlist_mr(struct ddps_pd *pd, const struct ddps_mr *as, struct ddps_mr **out)
{
	struct ddps_stag_table *t = pd->table;
	struct ddps_mr *mr;
	int err;

	if (ddps_stag_count(t) >= t->max)
		return DDPS_E_LIMIT;
	mr = calloc(1, sizeof *mr);
	if (!mr)
		return DDPS_E_NOMEM;
	*mr = *as;
	err = draw_stag(t, &mr->stag, mr->window);
	if (err) {
		free(mr);
		return err;
	}
	mr->pd = pd;
	HASH_ADD(hh, t->by_stag, stag, sizeof mr->stag, mr);
	if (!mr->hh.tbl) {
		free(mr);
		return DDPS_E_NOMEM;
	}
	pd->users++;
	t->windows += mr->window;
	*out = mr;
	ddps_stag_table_check(t);
	return 0;
}

static bool in_range(const void *addr, size_t len)
{
	return (addr || !len) && len <= LEN_MAX && (uintptr_t)addr + len >= (uintptr_t)addr;
}

static uint64_t get_mr_base(const void *addr, unsigned access)
{
	return access & DDPS_ZERO_BASED ? 0 : (uintptr_t)addr;
}

int ddps_stag_add(struct ddps_pd *pd, void *addr, size_t len, unsigned access, uint64_t stream,
		  struct ddps_mr **out)
{
	const struct ddps_mr as = { .stream = stream,
				    .addr = addr,
				    .base = get_mr_base(addr, access),
				    .len = len,
				    .access = access | DDPS_STAG_LOCAL,
				    .valid = true };

	return in_range(addr, len) && !(access & ~KNOWN) ? enlist_mr(pd, &as, out) : DDPS_E_INVAL;
}

int ddps_stag_place(struct ddps_mr *mr, uint64_t to)
{
	if (to + mr->len < to)
		return DDPS_E_INVAL;
	mr->base = to;
	mr->pd->table->losses++; /* whoever remembers it has another base */
	return 0;
}

/* It is not valid any more; a window lets go of its region. */
static void invalidate_mr(struct ddps_mr *mr)
{
	mr->valid = false;
	mr->pd->table->losses++;
	if (mr->of)
		mr->of->windows--;
	mr->of = NULL;
	ddps_stag_table_check(mr->pd->table);
}

/* It goes, or is renamed. */
static void forget_near(struct ddps_stag_table *t, const struct ddps_mr *mr)
{
	struct ddps_mr **near = ddps_stag_near(t, mr->stag);

	if (*near == mr)
		*near = NULL;
}

static void retire(struct ddps_stag_table *t, struct ddps_mr *mr)
{
	if (!mr->hh.tbl)
		return;
	forget_near(t, mr);
	t->freed[t->next_freed] = mr->stag;
	t->next_freed = (t->next_freed + 1) % DDPS_STAG_QUARANTINE;
	HASH_DEL(t->by_stag, mr);
	mr->hh.tbl = NULL;
}

void ddps_stag_remove(struct ddps_mr *mr)
{
	struct ddps_stag_table *t = mr->pd->table;

	invalidate_mr(mr);
	retire(t, mr);
	t->windows -= mr->window;
	mr->pd->users--;
	free(mr);
	ddps_stag_table_check(t);
}

int ddps_stag_change(struct ddps_mr *mr, unsigned what, const struct ddps_mr_change *to)
{
	unsigned access = what & DDPS_CHANGE_ACCESS ? to->access : mr->access & ~DDPS_STAG_LOCAL;
	void *addr = what & DDPS_CHANGE_MEMORY ? to->addr : mr->addr;
	size_t len = what & DDPS_CHANGE_MEMORY ? to->len : mr->len;

	if (mr->window || access & ~KNOWN || !in_range(addr, len))
		return DDPS_E_INVAL;
	if (mr->windows)
		return DDPS_E_BUSY;
	if (what & DDPS_CHANGE_PD) {
		mr->pd->users--;
		mr->pd = to->pd;
		mr->pd->users++;
	}
	if (what & DDPS_CHANGE_MEMORY || (access ^ mr->access) & DDPS_ZERO_BASED)
		mr->base = get_mr_base(addr, access);
	mr->addr = addr;
	mr->len = len;
	mr->access = access | DDPS_STAG_LOCAL;
	mr->valid = true;
	mr->pd->table->losses++; /* what was checked before must be again */
	ddps_stag_table_check(mr->pd->table);
	return 0;
}

/* ---- windows ---- */

int ddps_stag_add_window(struct ddps_pd *pd, bool shared, struct ddps_mr **out)
{
	const struct ddps_mr as = { .window = true, .shared = shared };

	return enlist_mr(pd, &as, out);
}

bool ddps_stag_is_window(const struct ddps_pd *pd, const struct ddps_mr *mr, unsigned access)
{
	return mr && mr->window && mr->pd == pd && !(access & ~(REMOTE | DDPS_ZERO_BASED));
}

/* Whether @mr can have @stag from now on: one that differs in the low octet is nobody else's, as
 * ddps_stag_usable sees to. */
static bool can_have(const struct ddps_mr *mr, uint32_t stag)
{
	return stag && stag >> 8 == mr->stag >> 8;
}

static enum ddps_stag_verdict rename(struct ddps_stag_table *t, struct ddps_mr *mr, uint32_t stag)
{
	uint32_t old = mr->stag;

	if (stag == old)
		return DDPS_STAG_OK;
	/* All that differ in that octet are its own: none has to rest before it is used again. */
	forget_near(t, mr);
	if (mr->hh.tbl)
		HASH_DEL(t->by_stag, mr);
	mr->stag = stag;
	HASH_ADD(hh, t->by_stag, stag, sizeof mr->stag, mr);
	if (mr->hh.tbl)
		return DDPS_STAG_OK;
	invalidate_mr(mr); /* no memory: it is in the table again with the next name that it gets */
	return DDPS_STAG_INVALID;
}

/* What a window on @piece needs of the region. */
static enum ddps_stag_verdict may_bind_window(const struct ddps_mr *mr, const struct ddps_pd *pd,
					      const struct ddps_sge *piece, unsigned access)
{
	uintptr_t at = (uintptr_t)piece->addr, start;
	unsigned need = DDPS_BIND;

	if (!mr || !mr->valid || mr->window)
		return DDPS_STAG_INVALID;
	if (mr->pd != pd || mr->stream)
		return DDPS_STAG_ASSOCIATION;
	if (access & (DDPS_REMOTE_WRITE | DDPS_REMOTE_ATOMIC))
		need |= DDPS_LOCAL_WRITE;
	if ((mr->access & need) != need)
		return DDPS_STAG_ACCESS;
	start = (uintptr_t)mr->addr;
	if (at < start || at - start > mr->len || piece->len > mr->len - (at - start))
		return DDPS_STAG_BOUNDS;
	return DDPS_STAG_OK;
}

static size_t offset_in(const struct ddps_mr *mr, const struct ddps_sge *piece)
{
	return (uintptr_t)piece->addr - (uintptr_t)mr->addr;
}

enum ddps_stag_verdict ddps_stag_bind(struct ddps_pd *pd, uint64_t stream, struct ddps_mr *window,
				      uint32_t stag, const struct ddps_sge *piece, unsigned access)
{
	struct ddps_mr *mr = NULL;
	enum ddps_stag_verdict v;

	if (!can_have(window, stag))
		return DDPS_STAG_INVALID;
	if (piece && piece->len) {
		if (window->valid && !window->shared)
			return DDPS_STAG_ACCESS;
		mr = ddps_stag_find(pd->table, piece->lkey);
		v = may_bind_window(mr, pd, piece, access);
		if (v)
			return v;
	}
	v = rename(pd->table, window, stag);
	if (v)
		return v;
	if (window->valid)
		invalidate_mr(window);
	if (!mr)
		return DDPS_STAG_OK;
	window->of = mr;
	mr->windows++;
	window->stream = window->shared ? 0 : stream;
	window->addr = piece->addr;
	window->len = piece->len;
	window->base = access & DDPS_ZERO_BASED ? 0 : mr->base + offset_in(mr, piece);
	window->access = access;
	window->valid = true;
	ddps_stag_table_check(pd->table);
	return DDPS_STAG_OK;
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
	v = may_use(mr, pd, stream, need | DDPS_STAG_LOCAL);
	if (v)
		return v;
	start = (uintptr_t)mr->addr;
	if (at < start || at - start > mr->len || sge->len > mr->len - (at - start))
		return DDPS_STAG_BOUNDS;
	return DDPS_STAG_OK;
}

bool ddps_stag_see(struct ddps_pd *pd, uint64_t stream, const struct ddps_sge *sge, unsigned need,
		   struct ddps_stag_seen *s)
{
	const struct ddps_mr *mr;

	if (!sge->len || ddps_stag_check_local(pd, stream, sge, need))
		return false;
	mr = ddps_stag_find(pd->table, sge->lkey);
	*s = (struct ddps_stag_seen){ .losses = pd->table->losses,
				      .base = mr->base,
				      .addr = (uintptr_t)mr->addr,
				      .len = mr->len,
				      .stag = mr->stag };
	return true;
}

enum ddps_stag_verdict ddps_stag_invalidate(struct ddps_pd *pd, uint64_t stream, uint32_t stag)
{
	struct ddps_mr *mr = ddps_stag_find(pd->table, stag);
	enum ddps_stag_verdict v = may_use(mr, pd, stream, 0);

	if (v)
		return v;
	if (!mr->stream && pd->streams > 1 && !pd->verbs_rules)
		return DDPS_STAG_ASSOCIATION;
	if (mr->windows) /* its memory is in use yet */
		return DDPS_STAG_ACCESS;
	invalidate_mr(mr);
	return DDPS_STAG_OK;
}

enum ddps_stag_verdict ddps_stag_revoke(struct ddps_pd *pd, uint64_t stream, uint32_t stag)
{
	struct ddps_mr *mr = ddps_stag_find(pd->table, stag);
	enum ddps_stag_verdict v = may_use(mr, pd, stream, 0);

	if (!v && mr->windows)
		return DDPS_STAG_ACCESS;
	if (!v)
		invalidate_mr(mr);
	return v;
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
