/* SPDX-License-Identifier: BSD-2-Clause */
/* The network of a world of IPoIB: it loses, doubles, delays and alters packets, and has no room at times. */
#include "sim/ipoib_world.h"

static void fly(struct node *from, uint16_t lid, const struct ddps_ib_pkt *p)
{
	struct flying *f, **at;

	if (world.flying == FLYING || p->len > sizeof f->data)
		return;
	f = malloc(sizeof *f);
	if (!f)
		return;
	world.flying++;
	*f = (struct flying){ .from = from->i, .slid = from->cfg.lid, .lid = lid, .p = *p };
	f->at = world.now + world.delay;
	if (p->len)
		memcpy(f->data, p->data, p->len);
	if (happens(from, SIM_late, world.late, T_LATE))
		f->at += sim_like(20 * world.delay);
	for (at = &world.first; *at && (*at)->at <= f->at; at = &(*at)->next)
		;
	f->next = *at;
	*at = f;
}

/* What nobody has asked for, though its checksum is right. */
static void alter_ipoib_net(struct ddps_ib_pkt *p, uint8_t *data)
{
	switch (sim_like(6)) {
	case 0:
		p->opcode = (uint8_t)sim_like(256);
		break;
	case 1:
		p->psn = (p->psn + (uint32_t)sim_like(64) - 32) & 0xffffff;
		break;
	case 2:
		p->qpn = sim_like(2) ? 1 : (uint32_t)sim_like(1u << 24);
		break;
	case 3:
		p->syndrome = (uint8_t)sim_like(256);
		p->msn = (uint32_t)sim_like(1u << 24);
		break;
	case 4:
		p->len = sim_like(p->len + 1);
		break;
	default:
		if (p->len)
			data[sim_like(p->len)] = (uint8_t)sim_like(256);
	}
}

bool net_send(void *wire, uint16_t lid, unsigned group, struct ddps_ib_pkt *p)
{
	uint8_t data[DDPS_IB_MTU_MAX];
	struct node *n = wire;
	struct ddps_ib_pkt lie;

	world.t->n[T_PACKETS]++;
	check(group < DDPS_SAC_GROUPS, "group %u", group);
	if ((!world.calm || world.no_rtu) && n->stalled_until == UINT64_MAX)
		return true; /* what it says when it is ended is not heard */
	if (world.calm && !group)
		timers(n, p);
	if (n->room_at || (world.tight && !draw_ipoib_world(world.tight)) ||
	    happens(n, SIM_again, world.full, T_FULL)) {
		if (!n->room_at)
			n->room_at = world.now + 1 +
				     (world.tight ? draw_ipoib_world(MS) : sim_like(world.delay));
		return false;
	}
	/* The checksum finds what is altered. */
	if (happens(n, SIM_corrupt, world.altered, T_ALTERED) ||
	    happens(n, SIM_lost, world.lost, T_LOST))
		return true;
	if ((int)n->i == world.liar && p->len <= sizeof data &&
	    happens(n, SIM_lie, world.lies, T_LIES)) {
		lie = *p;
		if (p->len)
			memcpy(data, p->data, p->len);
		lie.data = data;
		alter_ipoib_net(&lie, data);
		fly(n, sim_like(8) ? lid : (uint16_t)(1 + sim_like(world.n)), &lie);
		if (sim_like(2))
			return true;
	}
	lie = *p;
	if (greed(n, &lie, data))
		fly(n, lid, &lie);
	if (happens(n, SIM_doubled, world.doubled, T_DOUBLED))
		fly(n, lid, p);
	return true;
}

/* Once all is calm: who asks whom for a connection? */
static void notice(struct node *n, const struct flying *f)
{
	struct ddps_cm_mad m;

	if (world.calm && f->p.qpn == DDPS_IB_GSI_QPN && !n->asked_at[f->from] &&
	    !ddps_cm_mad_decode(&m, f->data, f->p.len) && m.hdr.attr_id == DDPS_CM_REQ &&
	    !memcmp(m.u.req.primary.remote_gid, n->cfg.gid, sizeof n->cfg.gid))
		n->asked_at[f->from] = world.now;
}

void net_land(void)
{
	while (world.first && world.first->at <= world.now) {
		struct flying *f = world.first;
		bool group = f->lid >= DDPS_MLID_FIRST;

		world.first = f->next;
		world.flying--;
		f->p.data = f->data;
		for (unsigned i = 0; i < world.n; i++) {
			struct node *n = &world.node[i];

			be(n);
			if ((group || n->cfg.lid == f->lid) && !n->away &&
			    (world.calm || n->stalled_until <= world.now)) {
				notice(n, f);
				ddps_ib_node_rx(n->n, f->slid, group ? f->lid : 0, &f->p,
						world.now);
			}
		}
		free(f);
	}
}

void net_clear(void)
{
	while (world.first) {
		struct flying *f = world.first;

		world.first = f->next;
		free(f);
	}
}

/* ---- what happens to the nodes of a world of IPoIB besides what the network does ---- */

void moves(struct node *n)
{
	if (!n->i || n->lid + NODES > LAST_LID)
		return;
	n->lid = (uint16_t)(n->lid + NODES);
	world.t->n[T_MOVES]++;
}

void swap(struct node *a, struct node *b)
{
	const uint16_t lid = a->lid;

	a->lid = b->lid;
	b->lid = lid;
	world.swapped = true;
	world.t->n[T_MOVES] += 2;
}

void trouble(void)
{
	struct node *n = &world.node[sim_like(world.n)];
	unsigned what = (unsigned)sim_like(4);

	be(n);
	if (getenv("DDPS_SIM_TRACE"))
		fprintf(stderr, "%.6f node %u: trouble %u\n", (double)world.now / 1e9, n->i, what);
	switch (what) {
	case 0:
		n->stalled_until = world.now + sim_like(5 * SEC);
		break;
	case 1:
		finish(n);
		if (sim_happens(SIM_moves, 0, world.draws++, 0.2))
			moves(n);
		begin(n);
		world.t->n[T_RESTARTS]++;
		break;
	case 2:
		if (n->stopped) {
			if (!ddps_ipoib_if_start(n->f, world.now))
				n->stopped = false;
		} else {
			ddps_ipoib_if_stop(n->f, world.now);
			n->stopped = true;
		}
		break;
	default:
		world.delay = US + sim_like(2 * world.delay);
	}
}

void poor(void)
{
	struct node *n = &world.node[sim_like(world.n)];

	n->poor_until = world.now + sim_like(SEC);
	if (sim_like(2)) {
		be(n);
		finish(n);
		begin(n);
		world.t->n[T_RESTARTS]++;
	}
}
