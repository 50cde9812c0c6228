/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fragments: runs of neighbouring TSNs that belong to one message (RFC 9260 6.9).  A run is found
 * by its first and by its last TSN, so that a fragment costs the same however many there are.
 * Whatever is received and is in no run here was a whole message; that shows what cannot be.
 */
#include "sctp/sctp_in.h"

struct frag {
	STAILQ_ENTRY(frag) link;
	size_t len;
	uint8_t octets[];
};

struct ddps_sc_run {
	uint32_t first, last; /* TSNs */
	bool begin, end;      /* has a B, an E */
	uint16_t sid, ssn;
	uint32_t ppid;
	bool unordered;
	size_t len, n; /* octets, fragments */
	STAILQ_HEAD(, frag) frags;
	UT_hash_handle by_first, by_last;
};

static unsigned hash_tsn(const struct ddps_sctp_assoc *a, uint32_t tsn)
{
	return (unsigned)ddps_siphash(&a->e->hash_key, &tsn, sizeof tsn);
}

static struct ddps_sc_run *starting(const struct ddps_sctp_assoc *a, uint32_t tsn)
{
	struct ddps_sc_run *r = NULL;

	if (a->runs_first)
		HASH_FIND_BYHASHVALUE(by_first, a->runs_first, &tsn, sizeof tsn, hash_tsn(a, tsn),
				      r);
	return r;
}

static struct ddps_sc_run *find_ending_run(const struct ddps_sctp_assoc *a, uint32_t tsn)
{
	struct ddps_sc_run *r = NULL;

	if (a->runs_last)
		HASH_FIND_BYHASHVALUE(by_last, a->runs_last, &tsn, sizeof tsn, hash_tsn(a, tsn), r);
	return r;
}

static void unlink_run(struct ddps_sctp_assoc *a, struct ddps_sc_run *r)
{
	if (r->by_first.tbl)
		HASH_DELETE(by_first, a->runs_first, r);
	if (r->by_last.tbl)
		HASH_DELETE(by_last, a->runs_last, r);
	r->by_first.tbl = r->by_last.tbl = NULL;
}

/* It is in neither table. */
static bool put_in(struct ddps_sctp_assoc *a, struct ddps_sc_run *r)
{
	HASH_ADD_BYHASHVALUE(by_first, a->runs_first, first, sizeof r->first, hash_tsn(a, r->first),
			     r);
	if (r->by_first.tbl)
		HASH_ADD_BYHASHVALUE(by_last, a->runs_last, last, sizeof r->last,
				     hash_tsn(a, r->last), r);
	if (r->by_last.tbl)
		return true;
	unlink_run(a, r);
	return false;
}

static void run_free(struct ddps_sctp_assoc *a, struct ddps_sc_run *r)
{
	struct frag *f;

	while ((f = STAILQ_FIRST(&r->frags))) {
		STAILQ_REMOVE_HEAD(&r->frags, link);
		ddps_sc_uncharge(a, f->len);
		ddps_sc_pool_put(&a->e->pool, f, sizeof *f + f->len);
	}
	free(r);
}

void ddps_sc_reasm_free(struct ddps_sctp_assoc *a)
{
	struct ddps_sc_run *r, *tmp;

	HASH_CLEAR(by_last, a->runs_last);
	HASH_ITER(by_first, a->runs_first, r, tmp) {
		/* cppcheck-suppress uninitvar ; the macro sets it */
		HASH_DELETE(by_first, a->runs_first, r);
		run_free(a, r);
	}
}

#ifdef DDPS_ASSERTS
size_t ddps_sc_reasm_held(const struct ddps_sctp_assoc *a)
{
	size_t n = 0;

	for (const struct ddps_sc_run *r = a->runs_first; r; r = r->by_first.next) {
		ddps_assert(r->n == r->last - r->first + 1);
		ddps_assert(starting(a, r->first) == r && find_ending_run(a, r->last) == r);
		n += r->len + r->n * DDPS_SC_ITEM;
	}
	return n;
}
#endif

static bool is_tsn_received(const struct ddps_sctp_assoc *a, uint32_t tsn)
{
	return ddps_sc_map_ask(&a->map, tsn) == DDPS_SC_DUP;
}

static bool same_message(const struct ddps_sc_run *r, const struct ddps_sc_data *d)
{
	bool u = d->flags & SC_DATA_U;

	return r->sid == d->sid && r->unordered == u && (u || r->ssn == d->ssn);
}

/* DDPS_E_PROTOCOL if it cannot stand between its neighbours. */
int ddps_sc_fragment_fits(const struct ddps_sctp_assoc *a, const struct ddps_sc_data *d)
{
	const struct ddps_sc_run *l = find_ending_run(a, d->tsn - 1), *r = starting(a, d->tsn + 1);
	bool begin = d->flags & SC_DATA_B, end = d->flags & SC_DATA_E;

	if (begin ? l && !l->end
	    : l	  ? l->end || !same_message(l, d)
		  : is_tsn_received(a, d->tsn - 1))
		return DDPS_E_PROTOCOL;
	if (end ? r && !r->begin
	    : r ? r->begin || !same_message(r, d)
		: is_tsn_received(a, d->tsn + 1))
		return DDPS_E_PROTOCOL;
	return 0;
}

static struct ddps_sc_run *run_of(const struct ddps_sc_data *d, struct frag *f)
{
	struct ddps_sc_run *r = calloc(1, sizeof *r);

	if (!r)
		return NULL;
	r->first = r->last = d->tsn;
	r->begin = d->flags & SC_DATA_B;
	r->end = d->flags & SC_DATA_E;
	r->sid = d->sid;
	r->ssn = d->ssn;
	r->ppid = d->ppid;
	r->unordered = d->flags & SC_DATA_U;
	r->len = f->len;
	r->n = 1;
	STAILQ_INIT(&r->frags);
	STAILQ_INSERT_TAIL(&r->frags, f, link);
	return r;
}

/* @r follows @l. */
static struct ddps_sc_run *join_runs(struct ddps_sc_run *l, struct ddps_sc_run *r)
{
	STAILQ_CONCAT(&l->frags, &r->frags);
	l->last = r->last;
	l->end = r->end;
	l->len += r->len;
	l->n += r->n;
	free(r);
	return l;
}

static int deliver_run(struct ddps_sctp_assoc *a, struct ddps_sc_run *r)
{
	size_t cap = r->len, at = 0;
	uint8_t *buf = ddps_sc_pool_get(&a->e->pool, cap);
	struct ddps_sctp_msg m = { .stream = r->sid,
				   .ssn = r->ssn,
				   .ppid = r->ppid,
				   .unordered = r->unordered,
				   .data = buf,
				   .len = cap };
	struct frag *f;
	int err = DDPS_E_NOMEM;

	if (buf) {
		STAILQ_FOREACH(f, &r->frags, link) {
			memcpy(buf + at, f->octets, f->len);
			at += f->len;
		}
	}
	run_free(a, r);
	if (buf)
		err = ddps_sc_whole(a, &m);
	ddps_sc_pool_put(&a->e->pool, buf, cap);
	/* Its fragments are acknowledged: it cannot come once more. */
	if (err == DDPS_E_NOMEM) {
		a->e->st.no_memory++;
		ddps_sc_abort_out(a, SC_CAUSE_RESOURCE, NULL, 0,
				  ddps_error_make(DDPS_E_NOMEM, 0, "no memory for a message"));
	}
	return err == DDPS_E_PROTOCOL ? err : 0;
}

/* What does not fit into the window could never become whole. */
static bool is_run_too_long(const struct ddps_sctp_assoc *a, const struct ddps_sc_run *l,
			    const struct ddps_sc_run *n, size_t len)
{
	size_t all = len + (l ? l->len : 0) + (n ? n->len : 0);
	size_t frags = 1 + (l ? l->n : 0) + (n ? n->n : 0);

	return all > a->e->c.max_message || all + frags * DDPS_SC_ITEM + 3000 > a->e->c.rwnd;
}

int ddps_sc_fragment(struct ddps_sctp_assoc *a, const struct ddps_sc_data *d)
{
	struct ddps_sc_run *l = d->flags & SC_DATA_B ? NULL : find_ending_run(a, d->tsn - 1);
	struct ddps_sc_run *n = d->flags & SC_DATA_E ? NULL : starting(a, d->tsn + 1);
	struct frag *f;
	struct ddps_sc_run *r;

	if (is_run_too_long(a, l, n, d->len))
		return DDPS_E_LIMIT;
	f = ddps_sc_pool_get(&a->e->pool, sizeof *f + d->len);
	if (!f)
		return DDPS_E_NOMEM;
	f->len = d->len;
	memcpy(f->octets, d->p, d->len);
	r = run_of(d, f);
	if (!r) {
		ddps_sc_pool_put(&a->e->pool, f, sizeof *f + d->len);
		return DDPS_E_NOMEM;
	}
	ddps_sc_charge(a, d->len);
	if (l) {
		unlink_run(a, l);
		r = join_runs(l, r);
	}
	if (n) {
		unlink_run(a, n);
		r = join_runs(r, n);
	}
	if (r->begin && r->end)
		return deliver_run(a, r);
	if (put_in(a, r))
		return 0;
	run_free(a, r); /* with what was acknowledged */
	a->e->st.no_memory++;
	ddps_sc_abort_out(a, SC_CAUSE_RESOURCE, NULL, 0,
			  ddps_error_make(DDPS_E_NOMEM, 0, "no memory for a message"));
	return 0;
}
