/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_STAG_H
#define DDPS_STAG_H
/*
 * Steering tags: the one place that decides whether a key may touch memory (RFC 5041 8,
 * RFC 5042 6).  Not locked (context's lock).
 */
#include <ddpsess/wr.h>
#include <uthash.h>

/* Not the caller's right: the STag is a local key, too, as no window's is. */
#define DDPS_STAG_LOCAL	     0x80000000u
#define DDPS_STAG_QUARANTINE 1024 /* freed values that are not given out again yet */
#define DDPS_STAG_NEAR	     16u

struct ddps_stag_table {
	struct ddps_mr *by_stag;
	struct ddps_mr *near[DDPS_STAG_NEAR]; /* found by STags that end so, or NULL: most work
						* keeps to a few regions */
	uint64_t losses;		      /* see ddps_stag_losses */
	uint32_t max;
	uint32_t windows;
	uint32_t freed[DDPS_STAG_QUARANTINE]; /* ring; 0: empty, 0 is never an STag */
	unsigned next_freed;
};

struct ddps_pd {
	struct ddps_stag_table *table;
	struct ddps_ctx *ctx; /* for the session layer; not used here */
	unsigned users;	      /* regions (counted by stag.c) and endpoints (by their owner) */
	bool verbs_rules;     /* of struct ddps_ctx_attr */
	unsigned streams;     /* RDMAP streams of the PD, counted by ddps_rdmap_new and _free
			   */
};

struct ddps_mr {
	struct ddps_pd *pd;
	uint64_t stream; /* bound to the stream of this number, or 0: any of the PD */
	uint8_t *addr;
	uint64_t base; /* tagged offset of addr[0] */
	size_t len;
	unsigned access; /* DDPS_LOCAL_WRITE ... */
	uint32_t stag;
	bool valid;  /* false: invalidated, or a window that is not bound; kept until freed */
	bool window; /* has no memory but that of @of, when it is bound */
	bool shared; /* ... and is every stream's then */
	struct ddps_mr *of;
	uint32_t windows; /* bound to it */
	uint32_t pending; /* posted requests that bind it */
	UT_hash_handle hh;
};

int ddps_stag_table_new(struct ddps_stag_table **out, uint32_t max_regions);
void ddps_stag_table_free(struct ddps_stag_table *t); /* frees remaining regions too */
uint32_t ddps_stag_count(const struct ddps_stag_table *t);

/* Rises with each region that is deregistered or invalidated: while it is the same, what was once
 * allowed still is. */
static inline uint64_t ddps_stag_losses(const struct ddps_stag_table *t)
{
	return t->losses;
}

/* Where the region of @stag stands if it is near. */
static inline struct ddps_mr **ddps_stag_near(struct ddps_stag_table *t, uint32_t stag)
{
	return &t->near[stag % DDPS_STAG_NEAR];
}

/* The region of @stag, or NULL; valid or not, of whatever PD. */
struct ddps_mr *ddps_stag_find(struct ddps_stag_table *t, uint32_t stag);

/* Whether @stag may be given out now: not 0, not in use, not one of the last 1024 freed; nor one
 * that a window can take, which can have any low octet.  @window: it is for a window. */
bool ddps_stag_usable(struct ddps_stag_table *t, uint32_t stag, bool window);

/*
 * Register: random STag, never 0, not one freed a short while ago.  Return 0 or
 * DDPS_E_INVAL (range or rights), DDPS_E_LIMIT (max_regions), DDPS_E_NOMEM, DDPS_E_SYSTEM
 * (no entropy).
 */
int ddps_stag_add(struct ddps_pd *pd, void *addr, size_t len, unsigned access, uint64_t stream,
		  struct ddps_mr **out);
void ddps_stag_remove(struct ddps_mr *mr); /* frees @mr, to which no window is bound */

/*
 * Other rights, memory or PD for a region, whose STag stays: what @what has not is as it was.
 * 0, DDPS_E_INVAL, or DDPS_E_BUSY: windows are bound to it.
 */
int ddps_stag_change(struct ddps_mr *mr, unsigned what, const struct ddps_mr_change *to);

/* The peer calls its first octet @to from now on.  0, or DDPS_E_INVAL: it would reach beyond the last address. */
int ddps_stag_place(struct ddps_mr *mr, uint64_t to);

/* A window of @pd, of every stream or (@shared false) of the one that binds it; not bound yet.
 * As ddps_stag_add. */
int ddps_stag_add_window(struct ddps_pd *pd, bool shared, struct ddps_mr **out);

/* Whether @mr is a window that can be bound with these rights. */
bool ddps_stag_is_window(const struct ddps_pd *pd, const struct ddps_mr *mr, unsigned access);

enum ddps_stag_verdict {
	DDPS_STAG_OK,
	DDPS_STAG_INVALID,     /* unknown, invalidated */
	DDPS_STAG_ASSOCIATION, /* other PD, or bound to another stream */
	DDPS_STAG_ACCESS,      /* right missing */
	DDPS_STAG_WRAP,	       /* TO + len wraps 2^64 */
	DDPS_STAG_BOUNDS
};

/*
 * Check an access by @stream of @pd to [@to, @to + @len), in the order of the list above,
 * and give the address.  @len > 0.  @need: rights, all of them
 * wanted.
 */
enum ddps_stag_verdict ddps_stag_check(struct ddps_pd *pd, uint64_t stream, uint32_t stag,
				       uint64_t to, uint64_t len, unsigned need, uint8_t **at);

/* Check a local piece (address, not tagged offset); @need 0 or DDPS_LOCAL_WRITE.  A piece
 * without octets needs no region. */
enum ddps_stag_verdict ddps_stag_check_local(struct ddps_pd *pd, uint64_t stream,
					     const struct ddps_sge *sge, unsigned need);

/*
 * The region that a queue has used last.  As long as nothing was lost since, what lies in it needs no other check.
 */
struct ddps_stag_seen {
	uint64_t losses; /* of the table, then */
	uint64_t base;	 /* tagged offset of its first octet */
	uintptr_t addr;
	size_t len;
	uint32_t stag; /* 0: there is none */
};

static inline bool ddps_stag_is_seen(const struct ddps_stag_seen *s,
				     const struct ddps_stag_table *t, const struct ddps_sge *sge)
{
	uintptr_t off =
		(uintptr_t)sge->addr - s->addr; /* beyond any length if it begins before it */

	return s->stag == sge->lkey && s->losses == t->losses && off <= s->len &&
	       sge->len <= s->len - off && s->stag;
}

/* Whether ddps_stag_check_local() says OK of a piece that has octets; @s is its region then. */
bool ddps_stag_see(struct ddps_pd *pd, uint64_t stream, const struct ddps_sge *sge, unsigned need,
		   struct ddps_stag_seen *s);

/*
 * Remote invalidation (RFC 5040 5.3).  A region bound to @stream may be invalidated; one
 * bound to no stream may be only if @pd has no second stream, since otherwise several
 * could be using it [5040-8.1.1-7], or has verbs_rules.  OK, INVALID, ASSOCIATION or, while
 * windows are bound to it, ACCESS.
 */
enum ddps_stag_verdict ddps_stag_invalidate(struct ddps_pd *pd, uint64_t stream, uint32_t stag);

/*
 * Bind a window to @piece of a region, whose rights must cover @access, under the STag @stag, of
 * which the low octet may differ from the one before; NULL, or a piece without octets: unbind it.
 * OK, INVALID (the region, or @stag is no STag for it), ASSOCIATION, ACCESS (no right to bind, or a
 * window of one stream that is bound already), BOUNDS.
 */
enum ddps_stag_verdict ddps_stag_bind(struct ddps_pd *pd, uint64_t stream, struct ddps_mr *window,
				      uint32_t stag, const struct ddps_sge *piece, unsigned access);

/* Invalidate one's own, a region or a window: OK, INVALID or ASSOCIATION. */
enum ddps_stag_verdict ddps_stag_revoke(struct ddps_pd *pd, uint64_t stream, uint32_t stag);

/* What the table counts is what there is; in builds for tests. */
#ifdef DDPS_ASSERTS
void ddps_stag_table_check(const struct ddps_stag_table *t);
#else
static inline void ddps_stag_table_check(const struct ddps_stag_table *t)
{
	(void)t;
}
#endif

/* "STag unknown or invalidated", ... */
const char *ddps_stag_verdict_text(enum ddps_stag_verdict v);

#endif
