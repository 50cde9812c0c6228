/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for secrets. */
#include "secure/vault.h"
#include <ddpsess/err_codes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* In front of what is kept; a child of fork finds it wiped like the rest. */
struct vault_head {
	unsigned long mark;
};
#define VAULT_MARK 0x7661756c7421ul
#define VAULT_HEAD 64 /* what follows is aligned to it */

int ddps_vault_new(struct ddps_vault *v, size_t size)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct vault_head head = { VAULT_MARK };
	unsigned char *at;

	*v = (struct ddps_vault){ .size = size };
	v->mapped = (size + VAULT_HEAD + page - 1) / page * page;
	at = mmap(NULL, v->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return DDPS_E_NOMEM;
	/* A core file with the secrets is worse than no secured wire. */
	if (madvise(at, v->mapped, MADV_DONTDUMP)) {
		munmap(at, v->mapped);
		return DDPS_E_NOMEM;
	}
	madvise(at, v->mapped, MADV_WIPEONFORK);
	(void)mlock(at, v->mapped); /* a small RLIMIT_MEMLOCK is no reason to fail */
	memcpy(at, &head, sizeof head);
	v->p = at + VAULT_HEAD;
	return 0;
}

/* ---- several in the same pages ---- */

#define SLAB_PLACES 64u /* at most: the bits of a word */
#define SLAB_SHIFT  4u	/* pages of the largest: 1 << 4 */

/* What it says of its places is in no page with secrets, where a child of fork would find zeros. */
struct ddps_vault_slab {
	struct ddps_vault pages;
	struct ddps_vaults *of;
	struct ddps_vault_slab *prev, *next; /* while it has a free place */
	size_t each;			     /* octets of a place */
	uint64_t all, taken;		     /* places: a bit each */
};

static void open_slab(struct ddps_vault_slab *s)
{
	s->prev = NULL;
	s->next = s->of->open;
	if (s->next)
		s->next->prev = s;
	s->of->open = s;
}

static void close_slab(struct ddps_vault_slab *s)
{
	if (s->next)
		s->next->prev = s->prev;
	if (s->prev)
		s->prev->next = s->next;
	else
		s->of->open = s->next;
}

/* An owner of few has few pages: each slab is twice as long as the one before. */
static struct ddps_vault_slab *make_slab(struct ddps_vaults *all, size_t each)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const unsigned shift = all->n < SLAB_SHIFT ? all->n : SLAB_SHIFT;
	const size_t len = (page << shift) - VAULT_HEAD, n = len / each;
	struct ddps_vault_slab *s = n ? calloc(1, sizeof *s) : NULL;

	if (!s)
		return NULL;
	if (ddps_vault_new(&s->pages, len)) {
		free(s);
		return NULL;
	}
	s->of = all;
	s->each = each;
	s->all = n >= SLAB_PLACES ? UINT64_MAX : (UINT64_C(1) << n) - 1;
	all->n++;
	open_slab(s);
	return s;
}

static void free_slab(struct ddps_vault_slab *s)
{
	close_slab(s);
	s->of->n--;
	ddps_vault_free(&s->pages);
	free(s);
}

int ddps_vault_in(struct ddps_vaults *all, struct ddps_vault *v, size_t size)
{
	const size_t each = (size + VAULT_HEAD - 1) / VAULT_HEAD * VAULT_HEAD;
	struct ddps_vault_slab *s;
	unsigned at;

	if (!all || !size)
		return ddps_vault_new(v, size);
	s = all->open;
	while (s && s->each != each)
		s = s->next;
	if (!s)
		s = make_slab(all, each);
	if (!s)
		return ddps_vault_new(v, size);
	at = (unsigned)__builtin_ctzll(~s->taken);
	s->taken |= UINT64_C(1) << at;
	if (s->taken == s->all)
		close_slab(s);
	*v = (struct ddps_vault){ .p = s->pages.p + at * each, .size = size, .slab = s };
	return 0;
}

/* Its place is zeros for whoever has it next. */
static void leave_slab(struct ddps_vault *v)
{
	struct ddps_vault_slab *s = v->slab;

	explicit_bzero(v->p, s->each);
	if (s->taken == s->all)
		open_slab(s);
	s->taken &= ~(UINT64_C(1) << (size_t)(v->p - s->pages.p) / s->each);
	if (!s->taken)
		free_slab(s);
}

/* ---- any ---- */

bool ddps_vault_intact(const struct ddps_vault *v)
{
	struct vault_head head;

	if (!v->p)
		return false;
	if (v->slab)
		v = &v->slab->pages;
	memcpy(&head, v->p - VAULT_HEAD, sizeof head);
	return head.mark == VAULT_MARK;
}

void ddps_vault_free(struct ddps_vault *v)
{
	if (!v->p)
		return;
	if (v->slab) {
		leave_slab(v);
	} else {
		explicit_bzero(v->p - VAULT_HEAD, v->mapped);
		munmap(v->p - VAULT_HEAD, v->mapped);
	}
	*v = (struct ddps_vault){ .p = NULL };
}
