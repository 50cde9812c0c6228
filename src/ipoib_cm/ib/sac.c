/* SPDX-License-Identifier: BSD-2-Clause */
/* Queries, their repetition and answers; paths; subscriptions. */
#include "ipoib_cm/ib/sac_in.h"
#include <stdlib.h>
#include <string.h>
#include "common/bytes.h"

#define NEVER	 UINT64_MAX
#define MS	 1000000ull
#define AGAIN_NS (300 * MS)
#define TRIES	 10
#define RENEW_NS (300000 * MS) /* subscriptions, unless the port says otherwise */
#define TRAP_NEW 66
#define ANY	 0xffff

struct ddps_sac *ddps_sac_new(const struct ddps_sac_config *cfg)
{
	struct ddps_sac *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->cfg = *cfg;
	c->cfg.renew_ns = cfg->renew_ns ? cfg->renew_ns : RENEW_NS;
	c->tid = cfg->seed;
	c->inform_at = NEVER;
	return c;
}

void ddps_sac_free(struct ddps_sac *c)
{
	free(c);
}

const struct ddps_sac_stats *ddps_sac_stats(const struct ddps_sac *c)
{
	return &c->stats;
}

uint32_t ddps_sac_begin(struct ddps_sac *c, struct sac_query *q, uint64_t now)
{
	c->tid += c->tid == UINT32_MAX ? 2 : 1; /* 0 stands for none */
	*q = (struct sac_query){ .tid = c->tid, .tries = 1, .due = now + AGAIN_NS };
	return q->tid;
}

bool ddps_sac_again(struct ddps_sac *c, struct sac_query *q, uint64_t now)
{
	if (q->tries++ < TRIES) {
		q->due = now + AGAIN_NS;
		return true;
	}
	c->stats.sac_unanswered++;
	c->unheard = true;
	q->tid = 0;
	return false;
}

void ddps_sac_send(struct ddps_sac *c, const uint8_t *mad)
{
	c->stats.sac_queries++;
	c->cfg.ops->send(c->cfg.user, mad);
}

/* ---- paths ---- */

static void ask_sac_path(struct ddps_sac *c, const struct sac_path *p)
{
	const struct ddps_sa_head h = { .method = DDPS_SA_GET,
					.attr = DDPS_SA_PATH_RECORD,
					.tid = p->q.tid,
					.mask = DDPS_PR_DGID | DDPS_PR_SGID | DDPS_PR_REVERSIBLE |
						DDPS_PR_NUMB_PATH | DDPS_PR_PKEY };
	struct ddps_sa_pr pr = { .pkey = c->cfg.pkey };
	uint8_t mad[DDPS_CM_MAD_LEN];

	memcpy(pr.dgid, p->gid, sizeof(pr.dgid));
	memcpy(pr.sgid, c->cfg.gid, sizeof(pr.sgid));
	ddps_sa_mad_begin(mad, &h);
	ddps_sa_pr_put(mad, &pr);
	ddps_sac_send(c, mad);
}

int ddps_sac_path(struct ddps_sac *c, const uint8_t gid[DDPS_IPOIB_GID_LEN], uint64_t now)
{
	struct sac_path *p = &c->path[c->n_path];

	for (unsigned i = 0; i < c->n_path; i++)
		if (!memcmp(c->path[i].gid, gid, DDPS_IPOIB_GID_LEN))
			return 0; /* asked already */
	if (c->n_path == DDPS_SAC_PATHS) {
		c->stats.sac_full++;
		return DDPS_E_AGAIN;
	}
	c->n_path++;
	memcpy(p->gid, gid, sizeof(p->gid));
	ddps_sac_begin(c, &p->q, now);
	ask_sac_path(c, p);
	return 0;
}

static void path_done(struct ddps_sac *c, unsigned i, const struct ddps_sa_pr *pr, uint64_t now)
{
	struct sac_path was = c->path[i];

	c->path[i] = c->path[--c->n_path];
	c->cfg.ops->path(c->cfg.user, was.gid, pr, now);
}

static bool path_can_be(const struct ddps_sa_pr *pr)
{
	uint8_t mtu = pr->mtu & 0x3f;

	return pr->dlid && pr->dlid < DDPS_MLID_FIRST && pr->slid && mtu >= 1 && mtu <= 5 &&
	       (pr->life & 0x3f) <= DDPS_CM_TIME_MAX;
}

static void path_answer(struct ddps_sac *c, unsigned i, const struct ddps_sa_head *h,
			const uint8_t *mad, uint64_t now)
{
	struct ddps_sa_pr pr;

	if (h->attr != DDPS_SA_PATH_RECORD) {
		c->stats.sac_bad++;
		return;
	}
	ddps_sa_pr_get(&pr, mad);
	if (h->status) {
		c->stats.sac_refused++;
		path_done(c, i, NULL, now);
	} else if (!path_can_be(&pr) || memcmp(pr.dgid, c->path[i].gid, sizeof(pr.dgid)) != 0) {
		c->stats.sac_bad++;
		path_done(c, i, NULL, now);
	} else {
		path_done(c, i, &pr, now);
	}
}

/* ---- subscriptions [4391-10-5] ---- */

static void ask_inform(struct ddps_sac *c, unsigned i)
{
	const struct ddps_sa_head h = { .method = DDPS_SA_SET,
					.attr = DDPS_SA_INFORM_INFO,
					.tid = c->inform[i].tid };
	const struct ddps_sa_inform r = { .lid_first = ANY,
					  .generic = true,
					  .subscribe = true,
					  .type = ANY,
					  .trap = (uint16_t)(TRAP_NEW + i) };
	uint8_t mad[DDPS_CM_MAD_LEN];

	ddps_sa_mad_begin(mad, &h);
	ddps_sa_inform_put(mad, &r);
	ddps_sac_send(c, mad);
}

static void inform_tick(struct ddps_sac *c, uint64_t now)
{
	if (c->inform_at == NEVER && ddps_sac_link(c))
		c->inform_at = now;
	for (unsigned i = 0; i < 2; i++) {
		struct sac_query *q = &c->inform[i];

		if (c->inform_at <= now)
			(void)ddps_sac_begin(c, q, now);
		else if (!q->tid || q->due > now || !ddps_sac_again(c, q, now))
			continue;
		ask_inform(c, i);
	}
	if (c->inform_at <= now)
		c->inform_at = now + c->cfg.renew_ns;
}

/* ---- what comes ---- */

static void answer_sa_report(struct ddps_sac *c, const struct ddps_sa_head *h, const uint8_t *mad,
			     uint64_t now)
{
	struct ddps_sa_head r = *h;
	uint8_t out[DDPS_CM_MAD_LEN];
	struct ddps_sa_notice n;

	r.method = DDPS_SA_REPORT | DDPS_SA_RESPONSE;
	r.status = 0;
	ddps_sa_mad_begin(out, &r);
	memcpy(ddps_sa_record(out), mad + (DDPS_CM_MAD_LEN - DDPS_SA_RECORD_LEN),
	       DDPS_SA_RECORD_LEN);
	c->cfg.ops->send(c->cfg.user, out);
	c->stats.sac_reports++;
	if (h->attr == DDPS_SA_NOTICE && !ddps_sa_notice_get(&n, mad))
		ddps_sac_group_report(c, n.trap, n.gid, now);
}

/*
 * Whoever refuses what it has granted is another administration.  So may be who never granted: it began
 * between the answer to the join and the subscription.  Or it grants none at all, so each doubt without
 * a grant takes twice as many refusals as the one before.
 */
static bool is_another(struct ddps_sac *c, unsigned i)
{
	const unsigned n = ++c->refused;

	return c->granted[i] || (n & (n - 1)) == 0;
}

static void inform_answer(struct ddps_sac *c, unsigned i, uint16_t status, uint64_t now)
{
	const bool forgotten = status && is_another(c, i);

	c->inform[i].tid = 0;
	c->granted[i] = !status;
	if (c->granted[0] &&
	    c->granted[1]) /* one alone proves nothing: it may never grant the other */
		c->refused = 0;
	c->stats.sac_refused += status != 0;
	if (forgotten) {
		c->stats.sac_forgotten++;
		ddps_sac_renew(c, now);
	}
}

static void take_sa_answer(struct ddps_sac *c, const struct ddps_sa_head *h, const uint8_t *mad,
			   uint64_t now)
{
	uint32_t tid = (uint32_t)h->tid;

	for (unsigned i = 0; tid && i < c->n_path; i++)
		if (c->path[i].q.tid == tid) {
			path_answer(c, i, h, mad, now);
			return;
		}
	for (unsigned i = 0; tid && i < DDPS_SAC_GROUPS; i++)
		if (c->group[i].used && c->group[i].q.tid == tid) {
			ddps_sac_group_answer(c, &c->group[i], h, mad, now);
			return;
		}
	for (unsigned i = 0; tid && i < 2; i++)
		if (c->inform[i].tid == tid && h->attr == DDPS_SA_INFORM_INFO) {
			inform_answer(c, i, h->status, now);
			return;
		}
	if (tid && ddps_sa_late(c->tid, tid))
		c->stats.sac_late++;
	else
		c->stats.sac_bad++;
}

void ddps_sac_rx(struct ddps_sac *c, const uint8_t mad[DDPS_CM_MAD_LEN], uint64_t now)
{
	struct ddps_sa_head h;
	bool good = !ddps_sa_mad_head(&h, mad);

	c->unheard = c->unheard && !good;
	if (good && h.method == DDPS_SA_REPORT)
		answer_sa_report(c, &h, mad, now);
	else if (good && h.method == DDPS_SA_GET_RESP)
		take_sa_answer(c, &h, mad, now);
	else if (!good || h.method != (DDPS_SA_DELETE | DDPS_SA_RESPONSE))
		c->stats.sac_bad++; /* for the answer to a Delete nobody waits */
}

bool ddps_sac_unheard(const struct ddps_sac *c)
{
	return c->unheard && ddps_sac_link(c);
}

void ddps_sac_renew(struct ddps_sac *c, uint64_t now)
{
	for (unsigned i = 0; i < DDPS_SAC_GROUPS; i++)
		ddps_sac_group_renew(c, &c->group[i], now);
	c->inform[0].tid = c->inform[1].tid = 0;
	c->granted[0] = c->granted[1] = false;
	c->inform_at = NEVER; /* again when the link is known */
}

static uint64_t get_sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t ddps_sac_due(const struct ddps_sac *c)
{
	uint64_t due = c->inform_at == NEVER && ddps_sac_link(c) ? 0 : c->inform_at;

	for (unsigned i = 0; i < c->n_path; i++)
		due = get_sooner(due, c->path[i].q.due);
	for (unsigned i = 0; i < 2; i++)
		due = c->inform[i].tid ? get_sooner(due, c->inform[i].due) : due;
	for (unsigned i = 0; i < DDPS_SAC_GROUPS; i++)
		due = get_sooner(due, ddps_sac_group_due(&c->group[i]));
	return due;
}

void ddps_sac_tick(struct ddps_sac *c, uint64_t now)
{
	for (unsigned i = c->n_path; i-- > 0;) {
		if (i >= c->n_path || c->path[i].q.due > now)
			continue;
		if (ddps_sac_again(c, &c->path[i].q, now))
			ask_sac_path(c, &c->path[i]);
		else
			path_done(c, i, NULL, now);
	}
	for (unsigned i = 0; i < DDPS_SAC_GROUPS; i++)
		if (ddps_sac_group_due(&c->group[i]) <= now)
			ddps_sac_group_tick(c, &c->group[i], now);
	inform_tick(c, now);
}
