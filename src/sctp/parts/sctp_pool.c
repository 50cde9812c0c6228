/* SPDX-License-Identifier: BSD-2-Clause */
#include "sctp/parts/sctp_pool.h"
#include <stdlib.h>

static void free_pool_piece(struct ddps_sc_pool *p, unsigned c)
{
	void **mem = p->first[c];

	p->first[c] = *mem;
	p->kept -= ddps_sc_pool_size(c);
	free(mem);
}

/* One class is looked at: whoever gives back many comes to those that keep something soon. */
bool ddps_sc_pool_make_room(struct ddps_sc_pool *p, unsigned c)
{
	const size_t most = DDPS_SC_POOL_KEPT - ddps_sc_pool_size(c);

	while (p->hand != c && p->kept > most && p->first[p->hand])
		free_pool_piece(p, p->hand);
	if (p->kept <= most)
		return true;
	p->hand = (p->hand + 1) % DDPS_SC_POOL_CLASSES;
	return false;
}

void ddps_sc_pool_fini(struct ddps_sc_pool *p)
{
	for (unsigned c = 0; c < DDPS_SC_POOL_CLASSES; c++) {
		while (p->first[c])
			free_pool_piece(p, c);
	}
}
