/* SPDX-License-Identifier: BSD-2-Clause */
/* The regions of rdmap_rig.h: whether only those have changed them who may. */
#include "rdmap_rig.h"

/* Tagged offsets of all but one are the same in every run, so what is sent is too. */
static const struct {
	size_t len;
	unsigned access;
	bool own, foreign;
} plan[RIG_REGIONS] = {
	{ 256, ALL_RIGHTS | ALL_FLUSHES | DDPS_ZERO_BASED | DDPS_BIND, false, false },
	{ 100, DDPS_LOCAL_WRITE | DDPS_ZERO_BASED | DDPS_BIND, false, false },
	{ 120, DDPS_REMOTE_READ | DDPS_ZERO_BASED, false, false },
	{ 80, DDPS_REMOTE_WRITE | DDPS_FLUSHABLE | DDPS_ZERO_BASED, true, false },
	{ 64, DDPS_REMOTE_WRITE | DDPS_REMOTE_READ, false, false },
	{ 48, ALL_RIGHTS | ALL_FLUSHES | DDPS_ZERO_BASED, true, true },
};

/* ---- regions ---- */

void rig_register(struct rig *g, unsigned i)
{
	struct rig_region *m = &g->region[i];
	uint64_t stream = plan[i].foreign ? (uintptr_t)plan : (uintptr_t)g;

	if (m->mr)
		return;
	m->len = plan[i].len;
	m->access = plan[i].access;
	m->foreign = plan[i].foreign;
	m->generation++;
	m->mem = malloc(m->len);
	m->shadow = malloc(m->len);
	m->cover = calloc(m->len, sizeof *m->cover);
	FUZZ_CHECK(m->mem && m->shadow && m->cover);
	for (size_t k = 0; k < m->len; k++)
		m->mem[k] = (uint8_t)(k * 7 + i);
	memcpy(m->shadow, m->mem, m->len);
	FUZZ_CHECK(!ddps_stag_add(&g->pd, m->mem, m->len, m->access, plan[i].own ? stream : 0,
				  &m->mr));
	m->stag = m->mr->stag;
}

void rig_deregister(struct rig *g, unsigned i)
{
	struct rig_region *m = &g->region[i];

	if (!m->mr || m->mr->windows)
		return;
	ddps_stag_remove(m->mr);
	m->mr = NULL;
	free(m->mem);
	free(m->shadow);
	free(m->cover);
}

static bool was_asked(const struct rig *g, unsigned window, const struct rig_region *m, size_t at,
		      size_t len, unsigned right)
{
	for (unsigned i = 0; i < g->nbinds; i++) {
		const struct rig_bind *b = &g->bind[i];

		if (b->window == window && &g->region[b->region] == m &&
		    b->generation == m->generation && b->access & right && at >= b->off &&
		    at - b->off <= b->len && len <= b->len - (at - b->off))
			return true;
	}
	return false;
}

bool rig_by_window(const struct rig *g, const struct rig_region *m, size_t at, size_t len,
		   unsigned right)
{
	for (unsigned i = 0; i < RIG_WINDOWS; i++) {
		const struct ddps_mr *w = g->window[i];

		if (w && w->valid && w->of == m->mr && was_asked(g, i, m, at, len, right))
			return true;
	}
	return false;
}

static bool may_change(const struct rig *g, const struct rig_region *m, size_t at)
{
	return m->cover[at] || (m->access & DDPS_REMOTE_WRITE && !m->foreign) ||
	       rig_by_window(g, m, at, 1, DDPS_REMOTE_WRITE);
}

/* All of it is of one region that may be made persistent. */
int rig_persist(void *user, uint8_t *at, size_t len)
{
	const struct rig *g = user;

	for (unsigned i = 0; i < RIG_REGIONS; i++) {
		const struct rig_region *m = &g->region[i];

		if (m->mr && at >= m->mem && at + len <= m->mem + m->len) {
			FUZZ_CHECK(len && m->access & DDPS_PERSISTENT && !m->foreign);
			return len % 16 == 13 ? -1 : 0; /* a file system that is full */
		}
	}
	FUZZ_CHECK(false);
}

void rig_cover(struct rig *g, const struct rig_work *w, int by)
{
	for (unsigned i = 0; i < w->nsge; i++) {
		struct rig_region *m = &g->region[w->sge[i].region];

		if (!m->mr || m->generation != w->sge[i].generation)
			continue;
		for (size_t k = 0; k < w->sge[i].len; k++)
			m->cover[w->sge[i].off + k] = (uint16_t)(m->cover[w->sge[i].off + k] + by);
	}
}

void rig_look(struct rig *g, size_t octets)
{
	size_t changed = 0;

	for (unsigned i = 0; i < RIG_REGIONS; i++) {
		struct rig_region *m = &g->region[i];

		for (size_t k = 0; m->mr && k < m->len; k++) {
			if (m->mem[k] == m->shadow[k])
				continue;
			changed++;
			FUZZ_CHECK(may_change(g, m, k));
			fuzz_note(&g->log, "%u[%zu] = %02x", i, k, m->mem[k]);
			m->shadow[k] = m->mem[k];
		}
	}
	FUZZ_CHECK(changed <= octets);
	for (unsigned i = 0; i < g->nwork; i++) {
		if (!g->work[i].done || g->work[i].settled)
			continue;
		g->work[i].settled = true;
		rig_cover(g, &g->work[i], -1);
	}
}
