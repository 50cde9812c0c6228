/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SCTP_MAP_H
#define DDPS_SCTP_MAP_H
/* TSNs received: all up to @cum, and above it a bitmap that exists only while there are gaps. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DDPS_SC_WINDOW 32768u /* TSNs above cum that are taken */

struct ddps_sc_map {
	uint32_t cum;	/* all up to here */
	uint32_t high;	/* the highest received; cum: none above */
	uint64_t *bits; /* of tsn % WINDOW; NULL: none above cum */
	unsigned lone;	/* received above cum */
};

enum ddps_sc_map_what {
	DDPS_SC_NEW,
	DDPS_SC_DUP,
	DDPS_SC_BEYOND /* of the window */
};

void ddps_sc_map_init(struct ddps_sc_map *m, uint32_t cum);
void ddps_sc_map_fini(struct ddps_sc_map *m);
enum ddps_sc_map_what ddps_sc_map_ask(const struct ddps_sc_map *m, uint32_t tsn);
/* What it takes to mark @tsn: 0 or DDPS_E_NOMEM. */
int ddps_sc_map_reserve(struct ddps_sc_map *m, uint32_t tsn);
/* Mark a NEW one, after ddps_sc_map_reserve(). */
void ddps_sc_map_mark(struct ddps_sc_map *m, uint32_t tsn);
/* The same of cum + 1, while none above it is received. */
static inline void ddps_sc_map_next(struct ddps_sc_map *m)
{
	if (m->bits)
		ddps_sc_map_mark(m, m->cum + 1);
	else
		m->high = ++m->cum;
}
/* The next run of received TSNs above @from (>= cum): false: none. */
bool ddps_sc_map_run(const struct ddps_sc_map *m, uint32_t from, uint32_t *start, uint32_t *end);

#endif
