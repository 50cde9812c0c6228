/* SPDX-License-Identifier: BSD-2-Clause */
/* What the adapter says of itself: its port, the subnet, queue pairs. */
#include "ipoib_cm/verbs/vport_in.h"
#include <string.h>

#define TURN 32

/* For the reason that has just been said: whoever is informed may ask for it. */
static void lose_link(struct ddps_ib_verbs *v)
{
	if (!v->info.active)
		return;
	v->info.active = false;
	v->stats.port_down++;
	v->cfg.up->link(v->user, false, v->now);
}

static void port_down(struct ddps_ib_verbs *v)
{
	if (!v->info.active)
		return;
	ddps_vport_say(v, "%s:%u went down; try: the cable, ibstat, the subnet manager",
		       v->info.device, v->info.port);
	lose_link(v);
}

/* The administration that has answered so far may know nothing of this port any more. */
static void renew(struct ddps_ib_verbs *v)
{
	v->stats.renewed++;
	ddps_sac_renew(v->sac, v->now);
}

/* The interface and its peers know the GID: there is no going on with another one. */
static bool gid_is_another(struct ddps_ib_verbs *v)
{
	uint8_t was[DDPS_IPOIB_GID_LEN];

	memcpy(was, v->info.gid, sizeof(was));
	if (!ddps_vport_dev_gid(v) && !memcmp(was, v->info.gid, sizeof(was)))
		return false;
	memcpy(v->info.gid, was, sizeof(was));
	ddps_vport_say(v, "%s:%u has another GID now; try: open the port again", v->info.device,
		       v->info.port);
	return true;
}

/*
 * What the port has now.  That it is active, or no more, is for port_up() and port_down() to take: an
 * event may come late, when the state is that of a later one, and the interface has to be informed.
 */
static int refresh(struct ddps_ib_verbs *v, bool *up)
{
	const bool was = v->info.active;
	int err = ddps_vport_dev_refresh(v);

	*up = v->info.active;
	v->info.active = was;
	return err;
}

/* With what it has now: perhaps another LID, manager, or place of the P_Key. */
static void port_up(struct ddps_ib_verbs *v)
{
	uint16_t was = v->pkey_index;
	bool up;

	if (refresh(v, &up) || !up)
		return;
	if (gid_is_another(v) || ddps_vport_dev_pkeys(v) ||
	    (v->pkey_index != was && ddps_vport_ud_rebuild(v)))
		return; /* there is no link for us here */
	v->info.active = true;
	renew(v);
	v->cfg.up->link(v->user, true, v->now);
}

/* All that others know of this port, and all paths, are of before.  @has: why; NULL: it was or is down. */
static void port_is_another(struct ddps_ib_verbs *v, const char *has)
{
	if (has && v->info.active) {
		ddps_vport_say(v, "%s:%u has another %s now, and begins anew", v->info.device,
			       v->info.port, has);
		lose_link(v);
	}
	port_down(v);
	port_up(v);
}

/* The table was written; that need not mean this link's place in it. */
static void pkeys_changed(struct ddps_ib_verbs *v)
{
	uint16_t index = v->pkey_index, key = v->info.pkey;

	if (ddps_vport_dev_pkeys(v)) {
		lose_link(v);
	} else if (!v->info.active) {
		port_up(v);
	} else if (index != v->pkey_index || key != v->info.pkey) {
		v->pkey_index = index;
		port_is_another(v, "P_Key, or place of it,");
	}
}

/* The subnet may not know this port any more. */
static void subnet_changed(struct ddps_ib_verbs *v)
{
	bool up;

	if (!refresh(v, &up) && up != v->info.active) {
		port_is_another(v, NULL);
	} else if (v->info.active) {
		renew(v);				/* connections go on */
		v->cfg.up->link(v->user, true, v->now); /* paths are asked for anew */
	}
}

static void lid_changed(struct ddps_ib_verbs *v)
{
	uint16_t was = v->info.lid;
	bool up;

	if (!refresh(v, &up) && (up != v->info.active || was != v->info.lid))
		port_is_another(v, up ? "LID" : NULL);
}

static void of_port(struct ddps_ib_verbs *v, enum ibv_event_type type)
{

	switch (type) {
	case IBV_EVENT_PORT_ERR:
		port_down(v);
		break;
	case IBV_EVENT_PORT_ACTIVE:
		if (!v->info.active)
			port_up(v);
		break;
	case IBV_EVENT_GID_CHANGE:
		if (v->info.active && gid_is_another(v))
			lose_link(v);
		break;
	case IBV_EVENT_LID_CHANGE:
		lid_changed(v);
		break;
	case IBV_EVENT_PKEY_CHANGE:
		pkeys_changed(v);
		break;
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
		subnet_changed(v);
		break;
	default:
		break;
	}
}

static void take_async_event(struct ddps_ib_verbs *v, enum ibv_event_type type, int port,
			     uint32_t qpn)
{
	switch (type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		if (qpn == v->info.qpn)
			(void)ddps_vport_ud_rebuild(v);
		else
			ddps_vport_qp_event(v, qpn, type);
		break;
	case IBV_EVENT_DEVICE_FATAL:
		ddps_vport_say(v, "%s has failed; try: dmesg, its driver loaded anew",
			       v->info.device);
		lose_link(v);
		break;
	case IBV_EVENT_CQ_ERR:
	case IBV_EVENT_SRQ_ERR:
		ddps_vport_say(v, "%s has lost a queue of ours; try: open the port again",
			       v->info.device);
		lose_link(v);
		break;
	default:
		if (port == v->info.port)
			of_port(v, type);
	}
}

static bool is_of_qp(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return true;
	default:
		return false;
	}
}

void ddps_vport_events(struct ddps_ib_verbs *v)
{
	struct ibv_async_event e;

	for (unsigned i = 0; i < TURN && !v->lib.get_async_event(v->ctx, &e); i++) {
		bool qp = is_of_qp(e.event_type);
		uint32_t qpn = qp ? e.element.qp->qp_num : 0;
		int port = qp ? 0 : e.element.port_num;

		v->lib.ack_async_event(&e); /* destroying a queue pair waits for that */
		v->stats.events++;
		take_async_event(v, e.event_type, port, qpn);
	}
}
