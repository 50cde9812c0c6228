/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What both backends do with an item taken from their socket.  Not a header in the usual sense:
 * usrsctp and the kernel name the same notifications in headers that exclude each other, so each
 * backend includes this text, once, behind its own announce(), alive(), on_assoc_change(),
 * on_dry(), on_end(), take() and doom().
 */

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
