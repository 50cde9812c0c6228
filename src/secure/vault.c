/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for secrets. */
#include "secure/vault.h"
#include <ddpsess/err_codes.h>
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

bool ddps_vault_intact(const struct ddps_vault *v)
{
	struct vault_head head;

	if (!v->p)
		return false;
	memcpy(&head, v->p - VAULT_HEAD, sizeof head);
	return head.mark == VAULT_MARK;
}

void ddps_vault_free(struct ddps_vault *v)
{
	if (!v->p)
		return;
	explicit_bzero(v->p - VAULT_HEAD, v->mapped);
	munmap(v->p - VAULT_HEAD, v->mapped);
	*v = (struct ddps_vault){ .p = NULL };
}
