/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a connection ended or a datagram was lost, for people. */
#include "verbs/vd_why.h"
#include "verbs/vd_lid.h"
#include "verbs/vd_secure.h"
#include "common/system/say.h"
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool vd_why_is_due(struct vd_qp *qp, enum vd_why why)
{
	return (why & (VD_WHY_INSECURE | VD_WHY_NO_WAY) || vd_config()->check ||
		vd_config()->strict) &&
	       !(__atomic_fetch_or(&qp->told, why, __ATOMIC_RELAXED) & why);
}

void vd_why_say(const struct vd_qp *qp, const char *fmt, ...)
{
	char text[400];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	ddps_say("ddpsess: queue pair %u%s\n", qp->qp.qp_base.qp_num, text);
}

void vd_why_no_way(struct vd_qp *qp, const struct ibv_ah_attr *ah)
{
	const struct ibv_context *ctx = qp->qp.qp_base.context;
	char text[INET_ADDRSTRLEN] = "?";
	struct sockaddr_in a4;
	struct in6_addr gid;
	struct in_addr to;

	if (ah->is_global) {
		memcpy(&gid, ah->grh.dgid.raw, sizeof gid);
		if (!IN6_IS_ADDR_V4MAPPED(&gid) && vd_why_is_due(qp, VD_WHY_NO_WAY))
			vd_why_say(
				qp,
				": its peer's GID is no IPv4 address (::ffff:192.0.2.1), as GIDs "
				"of these devices are: is the peer on sessctl run, too?");
		return;
	}
	vd_own_address(ctx, &a4);
	inet_ntop(AF_INET, &a4.sin_addr, text, sizeof text);
	if (!vd_has_lids(ctx)) {
		if (vd_why_is_due(qp, VD_WHY_NO_WAY))
			vd_why_say(
				qp,
				": the program names its peer by a LID and no GID, and this "
				"device has no LIDs: give the program a GID's index (-g 0, -x 0), "
				"or choose sessctl run --face ib");
	} else if (!vd_lid_address(&a4, ah->dlid, &to) && vd_why_is_due(qp, VD_WHY_NO_WAY)) {
		vd_why_say(qp,
			   ": no host has LID %u in the subnet of %s, this port's address, whose "
			   "LID is %u (0: none): give the program a GID's index (-g 0, -x 0)",
			   ah->dlid, text, vd_lid_of(&a4));
	}
}

static void say_conn_end(struct vd_qp *qp, const struct ddps_event *ev, bool no_recv, bool insecure)
{
	const char *peer = *ev->error.peer ? ev->error.peer : ev->info.peer;

	if (vd_why_is_due(qp, insecure ? VD_WHY_INSECURE : VD_WHY_ENDED))
		vd_why_say(qp, "%s%s: %s%s", *peer ? ", peer " : "", peer,
			   no_recv ? "a Send of the peer has no receive: " : "", ev->error.text);
}

/* A plain side whose peer is secured meets what is no MPA, or over SCTP silence. */
static bool may_be_secured(const struct ddps_error *e)
{
	return e->code == DDPS_E_KEY || (e->code == DDPS_E_TIMEDOUT && vd_over_sctp(vd_config()));
}

void vd_why_ended(struct vd_qp *qp, const struct ddps_event *ev, bool no_recv)
{
	say_conn_end(qp, ev, no_recv,
		     vd_is_insecure(ev->error.code) ||
			     (ev->type == DDPS_EV_FAILED && *ev->error.text &&
			      ev->error.code != DDPS_E_REFUSED &&
			      (vd_config()->secured || may_be_secured(&ev->error))));
}

void vd_why_failed(struct vd_qp *qp, const struct ddps_event *ev)
{
	if (vd_config()->secured || may_be_secured(&ev->error))
		vd_why_ended(qp, ev, false);
}

/* Nothing that is authentic has said so: it may be somebody's on the way. */
static bool is_unsaid_end(const struct ddps_error *e)
{
	return vd_config()->secured && !e->by_peer &&
	       (e->code == DDPS_E_TIMEDOUT || e->code == DDPS_E_SYSTEM || e->code == DDPS_E_RESET);
}

void vd_why_lost(struct vd_qp *qp, const struct ddps_event *ev)
{
	const int code = ev->error.code;
	bool under_way;

	under_way = __atomic_load_n(&qp->sends_told, __ATOMIC_RELAXED) !=
		    __atomic_load_n(&qp->sends_fetched, __ATOMIC_RELAXED);
	if (is_unsaid_end(&ev->error))
		say_conn_end(qp, ev, false, true);
	else if (code && (code != DDPS_E_RESET || under_way))
		vd_why_ended(qp, ev, false);
}
