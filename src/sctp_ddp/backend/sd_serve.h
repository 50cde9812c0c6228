/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What both backends do with an association's life and with an item taken from its socket.  Not
 * a header in the usual sense: usrsctp and the kernel name the same notifications in headers that
 * exclude each other, so each backend includes this text, once, behind its own alive(), so_error(),
 * why(), on_dry(), take(), and the names doom, env_of, shut_socket and came_up.
 */

/* ---- the end ---- */

static void on_end(struct ddps_sd_assoc *a, int sys_errno)
{
	if (!sys_errno && (a->peer_shut || a->shut))
		doom(a, ddps_error_make(DDPS_OK, 0, "association shut down"));
	else
		doom(a, why(a, sys_errno));
}

/* Last upcall; an association that nobody was told of goes silently. */
static void finish(struct ddps_sd_assoc *a)
{
	struct ddps_error e = a->end;

	a->ended = true;
	shut_socket(a);
	ddps_timer_stop(env_of(a)->loop, &a->deadline);
	if (!a->up) {
		a->freed = true;
		return;
	}
	memcpy(e.peer, a->info.peer, sizeof e.peer);
	ddps_log(&env_of(a)->log, DDPS_LOG_DEBUG, "sctp", "%s gone: %s", e.peer, e.text);
	a->up->gone(a->user, &e);
}

/* ---- the beginning ---- */

static void announce(struct ddps_sd_assoc *a)
{
	struct ddps_sd_endpoint *ep = a->ep;

	a->announced = true;
	a->ep = NULL;
	ddps_timer_stop(env_of(a)->loop, &a->deadline);
	ddps_log(&env_of(a)->log, DDPS_LOG_DEBUG, "sctp", "%s up, streams %u/%u, %s", a->info.peer,
		 a->info.in_streams, a->info.out_streams,
		 a->info.has_adaptation ? "indication" : "no indication");
	if (!a->accepted) {
		a->up->comm_up(a->user);
		return;
	}
	if (ep)
		ep->up->accepted(ep->user, a);
	if (!a->up) /* no endpoint any more, or its owner did not want it */
		a->freed = true;
}

/* ---- notifications ---- */

static void on_assoc_change(struct ddps_sd_assoc *a, const struct sctp_assoc_change *n)
{
	switch (n->sac_state) {
	case SCTP_COMM_UP:
		a->info.in_streams = n->sac_inbound_streams;
		a->info.out_streams = n->sac_outbound_streams;
		came_up(a);
		a->up_seen = true;
		break;
	case SCTP_SHUTDOWN_COMP:
		doom(a, ddps_error_make(DDPS_OK, 0, "association shut down"));
		break;
	case SCTP_RESTART:
		/* All sessions are lost.  Neither SCTP shows the indication of the new INIT, so
		 * whether DDP may go on is not known: it may not [5043-11.1-3]. */
		doom(a, ddps_error_make(DDPS_E_RESET, 0, "peer restarted"));
		break;
	default: /* COMM_LOST, CANT_STR_ASSOC */
		on_end(a, so_error(a));
	}
}

static void on_note(struct ddps_sd_assoc *a, const struct got *g)
{
	union sctp_notification n;

	memset(&n, 0, sizeof n);
	memcpy(&n, g->data, g->len < sizeof n ? g->len : sizeof n);
	if (a->up_seen && !a->announced && n.sn_header.sn_type != SCTP_ADAPTATION_INDICATION) {
		announce(a);
		if (!alive(a))
			return;
	}
	switch (n.sn_header.sn_type) {
	case SCTP_ASSOC_CHANGE:
		on_assoc_change(a, &n.sn_assoc_change);
		break;
	case SCTP_ADAPTATION_INDICATION:
		a->info.has_adaptation = true;
		a->info.adaptation = n.sn_adaptation_event.sai_adaptation_ind;
		if (a->up_seen && !a->announced)
			announce(a);
		break;
	case SCTP_SHUTDOWN_EVENT:
		a->peer_shut = true;
		a->up->peer_shutdown(a->user);
		break;
	case SCTP_SENDER_DRY_EVENT:
		on_dry(a);
		break;
	case SCTP_PARTIAL_DELIVERY_EVENT: /* the rest of a message will not come */
		ddps_sd_part_drop(&a->part);
		break;
	default:
		break;
	}
}

/* ---- messages ---- */

static void on_data(struct ddps_sd_assoc *a, const struct got *g)
{
	struct ddps_sd_part part = a->part;
	int err;

	if (!g->eor) {
		err = ddps_sd_part_hold(&a->part, g->data, g->len);
		if (err)
			doom(a, ddps_error_make(err, 0, "a user message of %u octets or more",
						DDPS_SD_MSG_MAX));
		return;
	}
	a->part = (struct ddps_sd_part){ 0 }; /* @a may be gone after the upcall */
	a->up->message(a->user, g->info.rcv_sid, ntohl(g->info.rcv_ppid),
		       (g->info.rcv_flags & SCTP_UNORDERED) != 0, part.own ? part.own : g->data,
		       part.len + g->len);
	ddps_sd_part_drop(&part);
}

/* ---- a turn ---- */

/* Returns whether there may be more to read. */
static bool step(struct ddps_sd_assoc *a)
{
	struct got g = take(a);

	if (a->up_seen && !a->announced && g.what != ITEM_NOTE) {
		/* The indication comes with COMM_UP or not at all. */
		announce(a);
		if (!alive(a))
			return false;
	}
	switch (g.what) {
	case ITEM_NOTE:
		on_note(a, &g);
		break;
	case ITEM_DATA:
		on_data(a, &g);
		break;
	case ITEM_END:
		on_end(a, g.sys_errno);
		break;
	case ITEM_NONE:
		return false;
	}
	return alive(a);
}
