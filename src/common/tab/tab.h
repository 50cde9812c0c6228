/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TAB_H
#define DDPS_TAB_H
/*
 * A hash table whose links are members of what it holds: entries cost no memory of their own, and
 * the table is as large from the beginning as its bound on entries asks for.  Hashes come from a
 * key that peers do not know (common/siphash.h), lest they fill one row.
 */
#include <stdint.h>
#include <stdlib.h>
#include "common/siphash.h"

struct ddps_tab_link {
	struct ddps_tab_link *next;
	uint64_t hash;
};

struct ddps_tab {
	struct ddps_tab_link **row;
	uint64_t mask;
};

/* For up to @n entries.  Return: whether there was memory. */
static inline _Bool ddps_tab_new(struct ddps_tab *t, unsigned n)
{
	size_t rows = 1;

	while (rows < n)
		rows *= 2;
	t->mask = rows - 1;
	t->row = (struct ddps_tab_link **)calloc(rows, sizeof(*t->row));
	return t->row;
}

static inline void ddps_tab_add(struct ddps_tab *t, struct ddps_tab_link *l, uint64_t hash)
{
	l->hash = hash;
	l->next = t->row[hash & t->mask];
	t->row[hash & t->mask] = l;
}

/* It is in the table. */
static inline void ddps_tab_del(struct ddps_tab *t, const struct ddps_tab_link *l)
{
	struct ddps_tab_link **at = &t->row[l->hash & t->mask];

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
}

/* The next with the hash of @l, from @l on.  Return: NULL: there is none. */
static inline struct ddps_tab_link *ddps_tab_like(struct ddps_tab_link *l, uint64_t hash)
{
	while (l && l->hash != hash)
		l = l->next;
	return l;
}

static inline struct ddps_tab_link *ddps_tab_first(const struct ddps_tab *t, uint64_t hash)
{
	return ddps_tab_like(t->row[hash & t->mask], hash);
}

/* Each @var of @type with that hash, whose link is @member; the body may not remove it. */
#define DDPS_TAB_EACH(tab, value, var, type, member)                                               \
	for (struct ddps_tab_link *tab_at = ddps_tab_first(tab, value);                            \
	     ((var) = tab_at ? (type *)(void *)((char *)tab_at - offsetof(type, member)) : NULL);  \
	     tab_at = ddps_tab_like(tab_at->next, value))

#endif
