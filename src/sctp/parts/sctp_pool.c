/* SPDX-License-Identifier: BSD-2-Clause */
#include "sctp/parts/sctp_pool.h"
#include <stdlib.h>

void ddps_sc_pool_fini(struct ddps_sc_pool *p)
{
	for (unsigned c = 0; c < DDPS_SC_POOL_CLASSES; c++) {
		while (p->first[c]) {
			void **mem = p->first[c];

			p->first[c] = *mem;
			free(mem);
		}
	}
	p->kept = 0;
}
