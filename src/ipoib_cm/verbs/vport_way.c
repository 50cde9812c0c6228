/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ways to others.  A token (ddps_cm_addr) has the LID in its lowest 16 bits, then service level,
 * source path bits, rate and the index of the P_Key; the upper 16 bits say which GRH, if there is
 * one.  GRHs are kept in a table whose oldest entry goes when it is full; a token of that then
 * leads nowhere.
 */
#include "ipoib_cm/verbs/vport_in.h"
#include <string.h>

#define AT_SL	 16
#define AT_BITS	 20
#define AT_RATE	 27
#define AT_PKEY	 33
#define AT_GRH	 48
#define AT_LIFE	 58
#define LIFE_MAX 64

static bool same_grh(const struct vp_grh *g, const struct vp_way *w)
{
	return g->used && g->hop == w->hop && g->tclass == w->tclass && g->flow == w->flow &&
	       !memcmp(g->gid, w->gid, sizeof(g->gid));
}

/* Number of the entry, from 1, so that 0 is none. */
static uint32_t grh_of(struct ddps_ib_verbs *v, const struct vp_way *w)
{
	uint32_t oldest = 1;

	for (uint32_t i = 1; i < VP_GRHS; i++) {
		struct vp_grh *g = &v->grh[i];

		if (same_grh(g, w)) {
			g->used_at = ++v->stamp;
			return i;
		}
		if (g->used_at < v->grh[oldest].used_at)
			oldest = i;
	}
	v->grh[oldest] = (struct vp_grh){ .used = true,
					  .life = (uint8_t)((v->grh[oldest].life + 1) % LIFE_MAX),
					  .hop = w->hop,
					  .tclass = w->tclass,
					  .flow = w->flow,
					  .used_at = ++v->stamp };
	memcpy(v->grh[oldest].gid, w->gid, sizeof(w->gid));
	return oldest;
}

ddps_cm_addr ddps_vport_addr(struct ddps_ib_verbs *v, const struct vp_way *w, uint16_t pkey_index)
{
	uint64_t grh = w->grh ? grh_of(v, w) : 0;

	return (uint64_t)w->dlid | (uint64_t)(w->sl & 15) << AT_SL |
	       (uint64_t)(w->bits & 0x7f) << AT_BITS | (uint64_t)(w->rate & 0x3f) << AT_RATE |
	       (uint64_t)(pkey_index & 0x7fff) << AT_PKEY | grh << AT_GRH |
	       (grh ? (uint64_t)v->grh[grh].life << AT_LIFE : 0);
}

bool ddps_vport_way(struct ddps_ib_verbs *v, ddps_cm_addr addr, struct vp_way *w,
		    uint16_t *pkey_index)
{
	uint32_t i = addr >> AT_GRH & (VP_GRHS - 1);
	struct vp_grh *g = &v->grh[i];

	*w = (struct vp_way){ .dlid = (uint16_t)addr,
			      .sl = addr >> AT_SL & 15,
			      .bits = addr >> AT_BITS & 0x7f,
			      .rate = addr >> AT_RATE & 0x3f,
			      .grh = i != 0 };
	*pkey_index = addr >> AT_PKEY & 0x7fff;
	if (v->info.roce ? !i : !w->dlid || w->dlid >= DDPS_MLID_FIRST)
		return false;
	if (!i)
		return true;
	if (!g->used || g->life != addr >> AT_LIFE)
		return false;
	g->used_at = ++v->stamp;
	w->hop = g->hop;
	w->tclass = g->tclass;
	w->flow = g->flow;
	memcpy(w->gid, g->gid, sizeof(w->gid));
	return true;
}

/* ---- address handles ---- */

void ddps_vport_ah_attr(const struct ddps_ib_verbs *v, const struct vp_way *w,
			struct ibv_ah_attr *a)
{
	*a = (struct ibv_ah_attr){ .dlid = w->dlid,
				   .sl = w->sl,
				   .src_path_bits = w->bits,
				   .static_rate = w->rate,
				   .is_global = w->grh,
				   .port_num = v->info.port };
	if (!w->grh)
		return;
	memcpy(a->grh.dgid.raw, w->gid, sizeof(w->gid));
	a->grh.flow_label = w->flow;
	a->grh.sgid_index = v->info.gid_index;
	a->grh.hop_limit = w->hop;
	a->grh.traffic_class = w->tclass;
}

static bool is_same_way(const struct vp_way *a, const struct vp_way *b)
{
	return a->dlid == b->dlid && a->sl == b->sl && a->bits == b->bits && a->rate == b->rate &&
	       a->grh == b->grh && a->hop == b->hop && a->tclass == b->tclass &&
	       a->flow == b->flow && !memcmp(a->gid, b->gid, sizeof(a->gid));
}

static uint64_t hash_way(const struct ddps_ib_verbs *v, const struct vp_way *w)
{
	uint8_t b[DDPS_IPOIB_GID_LEN + 5];

	memcpy(b, w->gid, sizeof(w->gid));
	memcpy(b + sizeof(w->gid), &w->dlid, sizeof(w->dlid));
	b[DDPS_IPOIB_GID_LEN + 2] = w->sl;
	b[DDPS_IPOIB_GID_LEN + 3] = w->bits;
	b[DDPS_IPOIB_GID_LEN + 4] = w->rate;
	return ddps_siphash(&v->key, b, sizeof(b));
}

/* A free place, or that of the handle that was not used for the longest time. */
static struct vp_ah *place_ah(struct ddps_ib_verbs *v)
{
	struct vp_ah *at = NULL;

	for (uint32_t i = 0; i < VP_AHS; i++) {
		if (!v->ah[i].ah)
			return &v->ah[i];
		if (!v->ah[i].refs && (!at || v->ah[i].used_at < at->used_at))
			at = &v->ah[i];
	}
	if (!at)
		return NULL;
	ddps_tab_del(&v->ahs, &at->link);
	v->lib.destroy_ah(at->ah);
	at->ah = NULL;
	return at;
}

uint32_t ddps_vport_ah(struct ddps_ib_verbs *v, const struct vp_way *w)
{
	uint64_t hash = hash_way(v, w);
	struct ibv_ah_attr attr;
	struct vp_ah *a;

	DDPS_TAB_EACH(&v->ahs, hash, a, struct vp_ah, link)
		if (is_same_way(&a->way, w)) {
			a->used_at = ++v->stamp;
			return (uint32_t)(a - v->ah);
		}
	a = place_ah(v);
	if (!a) {
		v->stats.ah_full++;
		return VP_NONE;
	}
	ddps_vport_ah_attr(v, w, &attr);
	a->ah = v->lib.create_ah(v->pd, &attr);
	if (!a->ah) {
		ddps_vport_say(v, "%s: no address handle for LID %u", v->info.device, w->dlid);
		return VP_NONE;
	}
	v->stats.ah_made++;
	a->way = *w;
	a->refs = 0;
	a->used_at = ++v->stamp;
	ddps_tab_add(&v->ahs, &a->link, hash);
	return (uint32_t)(a - v->ah);
}

int ddps_vport_ways_new(struct ddps_ib_verbs *v)
{
	return ddps_tab_new(&v->ahs, VP_AHS) ? 0 : DDPS_E_NOMEM;
}

void ddps_vport_ways_free(struct ddps_ib_verbs *v)
{
	for (uint32_t i = 0; i < VP_AHS; i++)
		if (v->ah[i].ah)
			v->lib.destroy_ah(v->ah[i].ah);
	free(v->ahs.row);
}
