/* SPDX-License-Identifier: BSD-2-Clause */
/* What a subnet administration says of its groups, counted anew: see ddps_sa_check(). */
#include <string.h>
#include "common/system/assert.h"
#include "ipoib_cm/sa/sa_in.h"

#ifdef DDPS_ASSERTS

static void check_sa_group(const struct ddps_sa *sa, unsigned i, unsigned made[DDPS_SA_LIDS])
{
	const struct sa_group *g = &sa->group[i];
	bool needed = i < sa->n_part; /* broadcast groups stay */

	ddps_assert(g->maker < DDPS_SA_LIDS);
	ddps_assert(g->rec.mlid == DDPS_MLID_FIRST + i); /* its place says it */
	ddps_assert(ddps_sa_part(sa, g->rec.pkey) != DDPS_SA_NO_PART);
	for (unsigned lid = 0; lid < DDPS_SA_LIDS; lid++)
		needed |= (g->join[lid] & (DDPS_MC_FULL | DDPS_MC_SEND_FULL)) != 0;
	ddps_assert(needed); /* one without anybody who counts is gone */
	for (unsigned k = 0; k < i; k++)
		ddps_assert(!sa->group[k].used ||
			    memcmp(sa->group[k].rec.mgid, g->rec.mgid, DDPS_IPOIB_GID_LEN) != 0);
	made[g->maker]++;
}

static void check_sa_table(const struct sa_table *t)
{
	ddps_assert(t->lid < DDPS_SA_LIDS && (!t->len || (t->lid && t->data)));
	ddps_assert(!t->lid || (t->acked < t->n_seg && t->acked <= t->window));
	ddps_assert(t->window <= t->n_seg);
}

void ddps_sa_check(const struct ddps_sa *sa)
{
	unsigned made[DDPS_SA_LIDS] = { 0 };

	ddps_assert(sa->n_report <= DDPS_SA_REPORTS && sa->n_notice <= DDPS_SA_NOTICES);
	for (unsigned i = 0; i < DDPS_SA_GROUPS; i++)
		if (sa->group[i].used)
			check_sa_group(sa, i, made);
	for (unsigned lid = 1; lid < DDPS_SA_LIDS; lid++)
		ddps_assert(sa->port[lid].made == made[lid]);
	for (unsigned i = 0; i < DDPS_SA_TABLES; i++)
		check_sa_table(&sa->table[i]);
}

#endif
