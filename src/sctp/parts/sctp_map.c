/* SPDX-License-Identifier: BSD-2-Clause */
#include "sctp/parts/sctp_map.h"
#include <ddpsess/err.h>
#include <stdlib.h>

#define WORDS (DDPS_SC_WINDOW / 64)

static uint64_t *get_map_word(const struct ddps_sc_map *m, uint32_t tsn)
{
	return &m->bits[tsn % DDPS_SC_WINDOW / 64];
}

static uint64_t bit(uint32_t tsn)
{
	return 1ull << tsn % 64;
}

void ddps_sc_map_init(struct ddps_sc_map *m, uint32_t cum)
{
	*m = (struct ddps_sc_map){ .cum = cum, .high = cum };
}

void ddps_sc_map_fini(struct ddps_sc_map *m)
{
	free(m->bits);
	m->bits = NULL;
}

enum ddps_sc_map_what ddps_sc_map_ask(const struct ddps_sc_map *m, uint32_t tsn)
{
	uint32_t off = tsn - m->cum;

	if (!off || off > INT32_MAX)
		return DDPS_SC_DUP;
	if (off >= DDPS_SC_WINDOW)
		return DDPS_SC_BEYOND;
	return m->bits && (*get_map_word(m, tsn) & bit(tsn)) ? DDPS_SC_DUP : DDPS_SC_NEW;
}

/* cum + 1 has come: what was above it may follow. */
static void advance_cum(struct ddps_sc_map *m)
{
	m->cum++;
	while (m->lone && (*get_map_word(m, m->cum + 1) & bit(m->cum + 1))) {
		m->cum++;
		*get_map_word(m, m->cum) &= ~bit(m->cum);
		m->lone--;
	}
	if (!m->lone) {
		m->high = m->cum;
		if (m->bits)
			ddps_sc_map_fini(m);
	}
}

int ddps_sc_map_reserve(struct ddps_sc_map *m, uint32_t tsn)
{
	if (!m->bits && tsn != m->cum + 1)
		m->bits = calloc(WORDS, sizeof *m->bits);
	return m->bits || tsn == m->cum + 1 ? 0 : DDPS_E_NOMEM;
}

void ddps_sc_map_mark(struct ddps_sc_map *m, uint32_t tsn)
{
	if (tsn == m->cum + 1) {
		advance_cum(m);
		return;
	}
	*get_map_word(m, tsn) |= bit(tsn);
	m->lone++;
	if ((int32_t)(tsn - m->high) > 0)
		m->high = tsn;
}

/* The first TSN from @t to high that is (not) received; high + 1: none. */
static uint32_t scan(const struct ddps_sc_map *m, uint32_t t, bool received)
{
	uint32_t end = m->high + 1;

	while ((int32_t)(t - end) < 0) {
		uint64_t w = received ? *get_map_word(m, t) : ~*get_map_word(m, t);

		w >>= t % 64;
		if (w) {
			t += (uint32_t)__builtin_ctzll(w);
			return (int32_t)(t - end) < 0 ? t : end;
		}
		t += 64 - t % 64;
	}
	return end;
}

bool ddps_sc_map_run(const struct ddps_sc_map *m, uint32_t from, uint32_t *start, uint32_t *end)
{
	if (!m->bits)
		return false;
	*start = scan(m, from + 1, true);
	if (*start == m->high + 1)
		return false;
	*end = scan(m, *start, false) - 1;
	return true;
}
