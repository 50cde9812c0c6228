/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups that are received, and groups that are sent to (RFC 4391 section 10). */
#include "ipoib_cm/ib/sac_in.h"
#include <string.h>
#include "common/bytes.h"

#define NEVER	   UINT64_MAX
#define SEC	   1000000000ull
#define ABSENT_NS  (30 * SEC)
#define IDLE_NS	   (60 * SEC) /* then one that is only sent to is left (RFC 4392 4.2.5) */
#define BACK_OFF   (1 * SEC)
#define BACK_MAX   (16 * SEC)
#define TRAP_NEW   66
#define TRAP_DEL   67
#define EXACTLY	   (DDPS_SEL_EXACTLY << 6)
#define CODE	   0x3f
#define JOIN_KNOWN (DDPS_MC_MGID | DDPS_MC_PORT_GID | DDPS_MC_PKEY | DDPS_MC_JOIN)

static bool is_sac_broadcast(const struct ddps_sac *c, const uint8_t *mgid)
{
	return !memcmp(mgid, c->cfg.broadcast, DDPS_IPOIB_GID_LEN);
}

static struct sac_group *find_sac_group(struct ddps_sac *c, const uint8_t *mgid)
{
	for (unsigned i = 0; i < DDPS_SAC_GROUPS; i++)
		if (c->group[i].used && !memcmp(c->group[i].mgid, mgid, DDPS_IPOIB_GID_LEN))
			return &c->group[i];
	return NULL;
}

const struct ddps_sa_mcm *ddps_sac_link(const struct ddps_sac *c)
{
	for (unsigned i = 0; i < DDPS_SAC_GROUPS; i++)
		if (c->group[i].used && c->group[i].state == SAC_MEMBER &&
		    is_sac_broadcast(c, c->group[i].mgid))
			return &c->group[i].rec;
	return NULL;
}

const struct ddps_sa_mcm *ddps_sac_member(const struct ddps_sac *c, uint16_t mlid)
{
	for (unsigned i = 0; i < DDPS_SAC_GROUPS; i++) {
		const struct sac_group *g = &c->group[i];

		if (g->used && g->state == SAC_MEMBER && g->join & DDPS_MC_FULL &&
		    g->rec.mlid == mlid)
			return &g->rec;
	}
	return NULL;
}

static void send_query(struct ddps_sac *c, const struct sac_group *g, uint8_t method, uint64_t mask)
{
	const struct ddps_sa_head h = {
		.method = method, .attr = DDPS_SA_MCMEMBER_RECORD, .tid = g->q.tid, .mask = mask
	};
	const struct ddps_sa_mcm *link = ddps_sac_link(c);
	struct ddps_sa_mcm r = { .pkey = c->cfg.pkey, .join = g->join };
	uint8_t mad[DDPS_CM_MAD_LEN];

	if (link && !is_sac_broadcast(c, g->mgid)) { /* [4391-10-8] [4391-10-9] */
		r = *link;
		r.mtu = EXACTLY | (link->mtu & CODE);
		r.rate = EXACTLY | (link->rate & CODE);
		r.mlid = 0;
		r.join = g->join;
	}
	memcpy(r.mgid, g->mgid, sizeof(r.mgid));
	memcpy(r.port_gid, c->cfg.gid, sizeof(r.port_gid));
	ddps_sa_mad_begin(mad, &h);
	ddps_sa_mcm_put(mad, &r);
	ddps_sac_send(c, mad);
}

/* What its state asks. */
static void ask_for_group(struct ddps_sac *c, const struct sac_group *g)
{
	if (g->state == SAC_ASKED) /* [4391-10-1] */
		send_query(c, g, DDPS_SA_GET, DDPS_MC_MGID);
	else if (g->join == DDPS_MC_FULL && !is_sac_broadcast(c, g->mgid)) /* [4391-10-7] */
		send_query(c, g, DDPS_SA_SET, DDPS_MC_ALL);
	else
		send_query(c, g, DDPS_SA_SET, JOIN_KNOWN);
}

static void set_group_state(struct ddps_sac *c, struct sac_group *g, enum sac_state state,
			    uint64_t now)
{
	g->state = state;
	if (state == SAC_JOINING)
		g->join = g->want ? DDPS_MC_FULL : DDPS_MC_SEND_NON;
	ddps_sac_begin(c, &g->q, now);
	ask_for_group(c, g);
}

/* Told once: nobody answers a Delete that is lost, and nothing depends on it. */
static void give_back(struct ddps_sac *c, struct sac_group *g, uint64_t now)
{
	if (g->state != SAC_MEMBER && g->state != SAC_JOINING)
		return;
	ddps_sac_begin(c, &g->q, now);
	send_query(c, g, DDPS_SA_DELETE, DDPS_MC_MGID | DDPS_MC_PORT_GID | DDPS_MC_JOIN);
}

static int hold_sac_group(struct ddps_sac *c, const struct sac_group *g,
			  const struct ddps_sa_mcm *rec)
{
	return c->cfg.ops->hold ? c->cfg.ops->hold(c->cfg.user, (unsigned)(g - c->group), rec) : 0;
}

static void end_group(struct ddps_sac *c, struct sac_group *g, uint64_t now)
{
	give_back(c, g, now);
	(void)hold_sac_group(c, g, NULL);
	g->used = false;
}

/* A place: a free one, else that of the group that was sent to the longest ago. */
static struct sac_group *place_sac_group(struct ddps_sac *c, const uint8_t *mgid, uint64_t now)
{
	struct sac_group *g = NULL;

	for (unsigned i = 0; i < DDPS_SAC_GROUPS; i++) {
		struct sac_group *at = &c->group[i];

		if (!at->used) {
			g = at;
			break;
		}
		if (!at->want && (!g || at->used_at < g->used_at))
			g = at;
	}
	if (!g) {
		c->stats.sac_full++;
		return NULL;
	}
	if (g->used)
		end_group(c, g, now);
	*g = (struct sac_group){ .used = true, .back_off = BACK_OFF, .used_at = now };
	memcpy(g->mgid, mgid, sizeof(g->mgid));
	return g;
}

int ddps_sac_join(struct ddps_sac *c, const uint8_t mgid[DDPS_IPOIB_GID_LEN], uint64_t now)
{
	struct sac_group *g = find_sac_group(c, mgid);

	if (g && (g->state == SAC_ASKED || g->state == SAC_JOINING)) {
		g->want = true; /* the answer to what is asked leads on to it */
		return 0;
	}
	if (!g)
		g = place_sac_group(c, mgid, now);
	if (!g)
		return DDPS_E_LIMIT;
	g->want = true;
	set_group_state(c, g, SAC_JOINING, now);
	return 0;
}

void ddps_sac_leave(struct ddps_sac *c, const uint8_t mgid[DDPS_IPOIB_GID_LEN], uint64_t now)
{
	struct sac_group *g = find_sac_group(c, mgid);

	if (g)
		end_group(c, g, now); /* [4391-10-10] */
}

int ddps_sac_open(struct ddps_sac *c, const uint8_t mgid[DDPS_IPOIB_GID_LEN], uint64_t now,
		  const struct ddps_sa_mcm **rec, unsigned *group)
{
	struct sac_group *g = find_sac_group(c, mgid);

	if (!g)
		g = place_sac_group(c, mgid, now);
	if (!g)
		return DDPS_E_LIMIT;
	g->used_at = now;
	*group = (unsigned)(g - c->group);
	*rec = &g->rec;
	switch (g->state) {
	case SAC_MEMBER:
		return 0;
	case SAC_ABSENT:
		return DDPS_E_ADDRESS;
	case SAC_UNKNOWN:
		set_group_state(c, g, SAC_ASKED, now);
		return DDPS_E_AGAIN;
	default:
		return DDPS_E_AGAIN;
	}
}

/* Not now: a wanted one is asked for again, later and later; others are dropped. */
static void put_off(struct ddps_sac *c, struct sac_group *g, int err, uint64_t now)
{
	g->q.tid = 0;
	if (!g->want) {
		g->state = SAC_ABSENT;
		g->until = now + ABSENT_NS;
		c->cfg.ops->open(c->cfg.user, (unsigned)(g - c->group), false, now);
		return;
	}
	g->state = SAC_WAITING;
	g->until = now + g->back_off;
	g->back_off = g->back_off < BACK_MAX ? 2 * g->back_off : BACK_MAX;
	c->cfg.ops->joined(c->cfg.user, g->mgid, err, NULL, now);
}

static bool record_can_be(const struct sac_group *g, const struct ddps_sa_mcm *r)
{
	uint8_t mtu = r->mtu & CODE;

	return !memcmp(r->mgid, g->mgid, sizeof(r->mgid)) && r->mlid >= DDPS_MLID_FIRST &&
	       r->mlid <= DDPS_MLID_LAST && mtu >= 1 && mtu <= 5;
}

/* What waits can be asked for with the values of the link now [4391-10-8]. */
static void link_is_known(struct ddps_sac *c, uint64_t now)
{
	for (unsigned i = 0; i < DDPS_SAC_GROUPS; i++)
		if (c->group[i].used && c->group[i].want && c->group[i].state == SAC_WAITING)
			set_group_state(c, &c->group[i], SAC_JOINING, now);
}

static void joined(struct ddps_sac *c, struct sac_group *g, const struct ddps_sa_mcm *rec,
		   uint64_t now)
{
	int err;

	if (g->want && g->join != DDPS_MC_FULL) { /* it was asked for to be sent to */
		set_group_state(c, g, SAC_JOINING, now);
		return;
	}
	err = hold_sac_group(c, g, rec);
	if (err) {
		give_back(c, g, now);
		if (!g->want) /* put_off() says it of those that are */
			c->cfg.ops->joined(c->cfg.user, g->mgid, err, NULL, now);
		put_off(c, g, err, now);
		return;
	}
	g->q.tid = 0;
	g->state = SAC_MEMBER; /* [4391-10-4] [4391-9.1.2-1] */
	g->rec = *rec;
	g->back_off = BACK_OFF;
	if (g->want)
		c->cfg.ops->joined(c->cfg.user, g->mgid, 0, &g->rec, now);
	c->cfg.ops->open(c->cfg.user, (unsigned)(g - c->group), true, now);
	if (is_sac_broadcast(c, g->mgid))
		link_is_known(c, now);
}

void ddps_sac_group_answer(struct ddps_sac *c, struct sac_group *g, const struct ddps_sa_head *h,
			   const uint8_t *mad, uint64_t now)
{
	struct ddps_sa_mcm r;

	ddps_sa_mcm_get(&r, mad);
	if (h->attr != DDPS_SA_MCMEMBER_RECORD || h->method != DDPS_SA_GET_RESP ||
	    (!h->status && !record_can_be(g, &r))) {
		c->stats.sac_bad++;
		return; /* the query goes on */
	}
	c->stats.sac_refused += h->status != 0;
	if (g->state == SAC_ASKED && (g->want || !h->status))
		set_group_state(c, g, SAC_JOINING, now); /* [4391-10-3] */
	else if (h->status)
		put_off(c, g, h->status == DDPS_SA_DENIED ? DDPS_E_BUSY : DDPS_E_REJECTED, now);
	else
		joined(c, g, &r, now);
}

/* [4391-10-6] */
void ddps_sac_group_report(struct ddps_sac *c, uint16_t trap, const uint8_t *mgid, uint64_t now)
{
	struct sac_group *g = find_sac_group(c, mgid);

	if (!g)
		return;
	if (trap == TRAP_NEW && (g->state == SAC_ABSENT || g->state == SAC_WAITING)) {
		set_group_state(c, g, g->want ? SAC_JOINING : SAC_ASKED, now);
	} else if (trap == TRAP_DEL && g->state == SAC_MEMBER) {
		if (g->want) {
			set_group_state(c, g, SAC_JOINING, now);
			return;
		}
		g->state = SAC_ABSENT;
		g->until = now + ABSENT_NS;
	}
}

void ddps_sac_group_renew(struct ddps_sac *c, struct sac_group *g, uint64_t now)
{
	if (!g->used)
		return;
	if (g->want && is_sac_broadcast(c, g->mgid)) {
		set_group_state(c, g, SAC_JOINING, now);
	} else if (g->want) { /* with the values of the link, when they are known again */
		g->q.tid = 0;
		g->state = SAC_WAITING;
		g->until = now + g->back_off;
	} else if (g->state == SAC_ASKED || g->state == SAC_JOINING) {
		set_group_state(c, g, SAC_ASKED, now); /* somebody waits for it */
	} else {
		g->state = SAC_UNKNOWN;
	}
}

uint64_t ddps_sac_group_due(const struct sac_group *g)
{
	if (!g->used)
		return NEVER;
	switch (g->state) {
	case SAC_ASKED:
	case SAC_JOINING:
		return g->q.due;
	case SAC_ABSENT:
	case SAC_WAITING:
		return g->until;
	case SAC_MEMBER:
		return g->want ? NEVER : g->used_at + IDLE_NS;
	default:
		return NEVER;
	}
}

void ddps_sac_group_tick(struct ddps_sac *c, struct sac_group *g, uint64_t now)
{
	switch (g->state) {
	case SAC_ASKED:
	case SAC_JOINING:
		if (ddps_sac_again(c, &g->q, now))
			ask_for_group(c, g);
		else
			put_off(c, g, DDPS_E_TIMEDOUT, now);
		break;
	case SAC_WAITING:
		set_group_state(c, g, SAC_JOINING, now);
		break;
	default: /* idle; or whether it is there shows when somebody sends */
		end_group(c, g, now);
	}
}
