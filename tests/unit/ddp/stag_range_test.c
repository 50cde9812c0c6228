/* SPDX-License-Identifier: BSD-2-Clause */
/* Ranges, rights and owners of regions and windows: all of them around each limit. */
#include "ddp/stag.h"
#include <criterion/criterion.h>

#define LEN    100
#define STREAM 7
#define REMOTE (DDPS_REMOTE_WRITE | DDPS_REMOTE_READ | DDPS_REMOTE_ATOMIC)
#define ALL    (DDPS_LOCAL_WRITE | REMOTE | DDPS_BIND)

static struct ddps_stag_table *table;
static struct ddps_pd pd, other;
static uint8_t mem[LEN];

static void setup(void)
{
	cr_assert_eq(ddps_stag_table_new(&table, 1000), 0);
	pd = other = (struct ddps_pd){ .table = table };
}

static void teardown(void)
{
	ddps_stag_table_free(table);
}

TestSuite(stag_range, .init = setup, .fini = teardown);

static struct ddps_mr *add_to_stag_range(void *addr, size_t len, unsigned access, uint64_t stream)
{
	struct ddps_mr *mr = NULL;

	cr_assert_eq(ddps_stag_add(&pd, addr, len, access, stream, &mr), 0);
	return mr;
}

static const uint64_t offsets[] = { 0,	 1,	  2,	   LEN / 2,    LEN - 2,	       LEN - 1,
				    LEN, LEN + 1, LEN + 2, UINT32_MAX, UINT64_MAX - 1, UINT64_MAX };
static const uint64_t lens[] = { 1,	     2,		 LEN / 2,    LEN - 2,	     LEN - 1,
				 LEN,	     LEN + 1,	 LEN + 2,    UINT32_MAX - 1, UINT32_MAX,
				 1ull << 32, 1ull << 63, 0ull - 101, 0ull - 100,     0ull - 99,
				 0ull - 2,   UINT64_MAX };
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* What a range is to one of LEN octets at @base, whose end is a number yet. */
static enum ddps_stag_verdict judge_range_plainly(uint64_t base, uint64_t to, uint64_t len)
{
	if (to > UINT64_MAX - len)
		return DDPS_STAG_WRAP;
	return to >= base && to + len <= base + LEN ? DDPS_STAG_OK : DDPS_STAG_BOUNDS;
}

static void expect_remote_ranges(const struct ddps_mr *mr)
{
	for (size_t i = 0; i < COUNT(offsets); i++)
		for (size_t k = 0; k < COUNT(lens); k++) {
			uint64_t to = mr->base + offsets[i];
			uint8_t *at = NULL;
			enum ddps_stag_verdict v = ddps_stag_check(&pd, STREAM, mr->stag, to,
								   lens[k], DDPS_REMOTE_READ, &at);

			cr_expect_eq(v, judge_range_plainly(mr->base, to, lens[k]),
				     "%zu of %zu: %s", k, i, ddps_stag_verdict_text(v));
			cr_expect_eq(at, v ? NULL : mr->addr + offsets[i]);
		}
}

Test(stag_range, of_the_peer, .description = "5041-7.1-16 5041-8.3-5")
{
	uint8_t *high = (uint8_t *)(UINTPTR_MAX - LEN);

	expect_remote_ranges(add_to_stag_range(mem, LEN, ALL, 0));
	expect_remote_ranges(add_to_stag_range(mem, LEN, ALL | DDPS_ZERO_BASED, 0));
	expect_remote_ranges(add_to_stag_range(high, LEN, ALL, 0));
	expect_remote_ranges(add_to_stag_range(high, LEN, ALL | DDPS_ZERO_BASED, 0));
}

/* Local ones are addresses, and have 32 bits of length. */
Test(stag_range, of_this_side)
{
	uint8_t *starts[] = { mem, (uint8_t *)(UINTPTR_MAX - LEN) };

	for (size_t s = 0; s < COUNT(starts); s++) {
		struct ddps_mr *mr = add_to_stag_range(starts[s], LEN, ALL | DDPS_ZERO_BASED, 0);

		for (size_t i = 0; i < COUNT(offsets); i++)
			for (size_t k = 0; k < COUNT(lens); k++) {
				uintptr_t at = (uintptr_t)starts[s] + offsets[i];
				struct ddps_sge p = { (void *)at, (uint32_t)lens[k], mr->stag };
				bool in = !p.len || !judge_range_plainly((uintptr_t)starts[s],
									 (uintptr_t)at, p.len);

				cr_expect_eq(ddps_stag_check_local(&pd, STREAM, &p, 0),
					     in ? DDPS_STAG_OK : DDPS_STAG_BOUNDS, "%zu of %zu", k,
					     i);
			}
	}
}

/* A window is a part of its region, and its own range begins and ends there. */
Test(stag_range, of_windows)
{
	struct ddps_mr *mr = add_to_stag_range(mem, LEN, ALL, 0), *w = NULL;

	for (size_t i = 0; i < COUNT(offsets); i++)
		for (size_t k = 0; k < COUNT(lens); k++) {
			uintptr_t at = (uintptr_t)mem + offsets[i];
			struct ddps_sge p = { (void *)at, (uint32_t)lens[k], mr->stag };
			enum ddps_stag_verdict in =
				p.len ? judge_range_plainly((uintptr_t)mem, at, p.len) : 0;
			uint8_t *first = NULL;

			cr_assert_eq(ddps_stag_add_window(&pd, false, &w), 0);
			cr_expect_eq(ddps_stag_bind(&pd, STREAM, w, w->stag, &p, DDPS_REMOTE_READ),
				     in ? DDPS_STAG_BOUNDS : DDPS_STAG_OK, "%zu of %zu", k, i);
			cr_expect_eq(w->valid, !in && p.len);
			cr_expect_eq(mr->windows, w->valid);
			if (w->valid) {
				cr_expect_eq(ddps_stag_check(&pd, STREAM, w->stag, at, p.len,
							     DDPS_REMOTE_READ, &first),
					     DDPS_STAG_OK);
				cr_expect_eq(first, (uint8_t *)at);
				cr_expect_eq(ddps_stag_check(&pd, STREAM, w->stag, at, p.len + 1,
							     DDPS_REMOTE_READ, &first),
					     DDPS_STAG_BOUNDS);
				cr_expect_eq(ddps_stag_check(&pd, STREAM, w->stag, at - 1, 1,
							     DDPS_REMOTE_READ, &first),
					     DDPS_STAG_BOUNDS);
			}
			ddps_stag_remove(w);
			cr_expect_eq(mr->windows, 0);
		}
}

/* A right that is missing is missing, whatever others there are. */
Test(stag_range, rights, .description = "5041-8.3.1-6 5040-8.1.1-5")
{
	for (unsigned has = 0; has <= ALL; has++) {
		struct ddps_mr *mr, *w;
		struct ddps_sge p;
		uint8_t *at;

		if (has & ~(unsigned)ALL)
			continue;
		mr = add_to_stag_range(mem, LEN, has, 0);
		p = (struct ddps_sge){ mem, 1, mr->stag };
		for (unsigned need = 0; need <= REMOTE; need++) {
			bool writes = need & (DDPS_REMOTE_WRITE | DDPS_REMOTE_ATOMIC);
			unsigned binds = DDPS_BIND | (writes ? DDPS_LOCAL_WRITE : 0);

			if (need & ~(unsigned)REMOTE)
				continue;
			cr_expect_eq(ddps_stag_check(&pd, STREAM, mr->stag, mr->base, 1, need, &at),
				     need & ~has ? DDPS_STAG_ACCESS : DDPS_STAG_OK, "%#x of %#x",
				     need, has);
			cr_assert_eq(ddps_stag_add_window(&pd, false, &w), 0);
			cr_expect_eq(ddps_stag_bind(&pd, STREAM, w, w->stag, &p, need),
				     binds & ~has ? DDPS_STAG_ACCESS : DDPS_STAG_OK, "%#x of %#x",
				     need, has);
			if (w->valid)
				cr_expect_eq(w->access, need);
			ddps_stag_remove(w);
		}
		cr_expect_eq(ddps_stag_check_local(&pd, STREAM, &p, 0), DDPS_STAG_OK);
		cr_expect_eq(ddps_stag_check_local(&pd, STREAM, &p, DDPS_LOCAL_WRITE),
			     has & DDPS_LOCAL_WRITE ? DDPS_STAG_OK : DDPS_STAG_ACCESS);
		ddps_stag_remove(mr);
	}
}

/* Who may touch, invalidate and bind what is whose. */
Test(stag_range, owners, .description = "5041-8.2-1 5041-8.2-2 5040-5.3-16 5040-8.1.1-7")
{
	for (unsigned k = 0; k < 64; k++) {
		uint64_t bound = k & 1 ? STREAM : 0, asks = k & 2 ? STREAM : STREAM + 1;
		struct ddps_pd *by = k & 4 ? &pd : &other;
		struct ddps_mr *mr = add_to_stag_range(mem, LEN, ALL, bound), *w;
		struct ddps_sge p = { mem, 1, mr->stag };
		bool mine = by == &pd && (!bound || bound == asks);
		bool alone = k & 8, rules = k & 16;
		bool may = mine && (bound || alone || rules);
		uint8_t *at;

		if (k & 32)
			mr->valid = false;
		pd.streams = other.streams = alone ? 1 : 2;
		pd.verbs_rules = other.verbs_rules = rules;
		cr_expect_eq(ddps_stag_check(by, asks, mr->stag, mr->base, 1, DDPS_REMOTE_READ,
					     &at),
			     !mr->valid ? DDPS_STAG_INVALID
			     : mine	? DDPS_STAG_OK
					: DDPS_STAG_ASSOCIATION,
			     "%u", k);
		cr_assert_eq(ddps_stag_add_window(by, false, &w), 0);
		cr_expect_eq(ddps_stag_bind(by, asks, w, w->stag, &p, 0),
			     !mr->valid		   ? DDPS_STAG_INVALID
			     : by == &pd && !bound ? DDPS_STAG_OK
						   : DDPS_STAG_ASSOCIATION,
			     "%u", k);
		if (w->valid)
			cr_expect_eq(ddps_stag_revoke(by, asks, mr->stag), DDPS_STAG_ACCESS);
		ddps_stag_remove(w);
		cr_expect_eq(ddps_stag_invalidate(by, asks, mr->stag),
			     k & 32 ? DDPS_STAG_INVALID
			     : may  ? DDPS_STAG_OK
				    : DDPS_STAG_ASSOCIATION,
			     "%u", k);
		cr_expect_eq(mr->valid, !(k & 32) && !may, "%u", k);
		ddps_stag_remove(mr);
		cr_expect_eq(pd.users + other.users, 0);
	}
}

/* A window can have all names that differ in the low octet: nobody else has one of them. */
Test(stag_range, names)
{
	struct ddps_mr *mr = add_to_stag_range(mem, LEN, ALL, 0), *w;
	uint32_t block = mr->stag & ~0xffu;

	for (uint32_t i = 0; i < 256; i++) {
		uint32_t name = block | i;

		cr_expect_eq(ddps_stag_usable(table, name, false), name && name != mr->stag);
		cr_expect_not(ddps_stag_usable(table, name, true), "it could come to %#x",
			      mr->stag);
	}
	cr_assert_eq(ddps_stag_add_window(&pd, false, &w), 0);
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t name = (w->stag & ~0xffu) | i;

		cr_expect_not(ddps_stag_usable(table, name, false));
		cr_expect_not(ddps_stag_usable(table, name, true));
		name = block | i;
		cr_expect_eq(ddps_stag_usable(table, name, false), name && name != mr->stag);
	}
	for (unsigned side = 0; side < 2; side++) { /* the blocks next to the window's are free */
		uint32_t name = (w->stag & ~0xffu) + (side ? 0x100u : 0u - 1);

		if (name >> 8 == 0 || name >> 8 == block >> 8)
			continue;
		cr_expect(ddps_stag_usable(table, name, false), "%#x", name);
		cr_expect(ddps_stag_usable(table, name, true), "%#x", name);
	}
}

/* What can be a region at all. */
Test(stag_range, regions)
{
	static const struct {
		uintptr_t addr;
		uint64_t len;
		int err;
	} row[] = {
		{ 0, 0, 0 },
		{ 0, 1, DDPS_E_INVAL },
		{ 1, 0, 0 },
		{ 1, 1ull << 48, 0 },
		{ 1, (1ull << 48) + 1, DDPS_E_INVAL },
		{ 1, UINT64_MAX, DDPS_E_INVAL },
		{ UINTPTR_MAX, 0, 0 },
		{ UINTPTR_MAX, 1, DDPS_E_INVAL },
		{ UINTPTR_MAX - 9, 9, 0 },
		{ UINTPTR_MAX - 9, 10, DDPS_E_INVAL },
	};
	struct ddps_mr *mr, *kept = add_to_stag_range(mem, 1, ALL, 0);

	for (size_t i = 0; i < COUNT(row); i++) {
		void *addr = (void *)row[i].addr;
		struct ddps_mr_change to = { .addr = addr, .len = (size_t)row[i].len };

		cr_expect_eq(ddps_stag_add(&pd, addr, (size_t)row[i].len, ALL, 0, &mr), row[i].err,
			     "%zu", i);
		cr_expect_eq(ddps_stag_change(kept, DDPS_CHANGE_MEMORY, &to), row[i].err, "%zu", i);
		if (!row[i].err)
			cr_expect(kept->addr == addr && kept->len == row[i].len &&
				  kept->base == row[i].addr);
	}
}

/* A region that was seen answers as the table does, until something is lost. */
Test(stag_range, of_a_region_that_was_seen)
{
	struct ddps_mr *mr = add_to_stag_range(mem, LEN, DDPS_LOCAL_WRITE, 0),
		       *gone = add_to_stag_range(mem, LEN, 0, 0);
	struct ddps_sge sge = { .addr = mem, .len = 1, .lkey = gone->stag };
	struct ddps_stag_seen seen = { 0 };

	cr_expect_not(ddps_stag_is_seen(&seen, table, &sge));
	cr_expect_not(ddps_stag_see(&pd, STREAM, &sge, DDPS_LOCAL_WRITE, &seen), "no right");
	cr_expect_not(ddps_stag_see(&other, STREAM, &sge, 0, &seen), "another domain");
	sge.lkey = mr->stag;
	sge.len = 0;
	cr_expect_not(ddps_stag_see(&pd, STREAM, &sge, 0, &seen), "of nothing");
	sge.len = 1;
	cr_assert(ddps_stag_see(&pd, STREAM, &sge, DDPS_LOCAL_WRITE, &seen));
	cr_expect_eq(seen.base, mr->base);
	for (uint32_t off = 0; off < LEN + 2; off++)
		for (uint32_t len = 1; len < LEN + 2; len++) {
			sge.addr = (void *)((uintptr_t)mem - 1 + off);
			sge.len = len;
			cr_expect_eq(ddps_stag_is_seen(&seen, table, &sge),
				     !ddps_stag_check_local(&pd, STREAM, &sge, DDPS_LOCAL_WRITE),
				     "%u octets at %d", len, (int)off - 1);
		}
	sge = (struct ddps_sge){ .addr = mem, .len = 1, .lkey = gone->stag };
	cr_expect_not(ddps_stag_is_seen(&seen, table, &sge), "another region");
	sge.lkey = mr->stag;
	cr_assert(ddps_stag_is_seen(&seen, table, &sge));
	ddps_stag_remove(gone);
	cr_expect_not(ddps_stag_is_seen(&seen, table, &sge), "it may be this one that is gone");
	ddps_stag_remove(mr);
}
