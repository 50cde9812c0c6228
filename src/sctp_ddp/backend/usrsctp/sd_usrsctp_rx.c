/* SPDX-License-Identifier: BSD-2-Clause */
/* What comes out of a usrsctp association, for sd_life.c. */
#include "sctp_ddp/backend/usrsctp/sd_usrsctp.h"
#include <errno.h>

#define TURN 64 /* items per turn, then other associations have theirs */

static enum ddps_sd_what change_of(uint16_t state)
{
	switch (state) {
	case SCTP_COMM_UP:
		return DDPS_SD_UP;
	case SCTP_SHUTDOWN_COMP:
		return DDPS_SD_SHUT_DONE;
	case SCTP_RESTART:
		return DDPS_SD_RESTART;
	default: /* COMM_LOST, CANT_STR_ASSOC */
		return DDPS_SD_LOST;
	}
}

/* Of a notification; its octets may be less than all of it. */
static void read_note(struct ddps_sd_item *it)
{
	union sctp_notification n;

	memset(&n, 0, sizeof n);
	memcpy(&n, it->data, it->len < sizeof n ? it->len : sizeof n);
	it->what = DDPS_SD_OTHER;
	switch (n.sn_header.sn_type) {
	case SCTP_ASSOC_CHANGE:
		it->what = change_of(n.sn_assoc_change.sac_state);
		it->in_streams = n.sn_assoc_change.sac_inbound_streams;
		it->out_streams = n.sn_assoc_change.sac_outbound_streams;
		break;
	case SCTP_ADAPTATION_INDICATION:
		it->what = DDPS_SD_INDICATION;
		it->adaptation = n.sn_adaptation_event.sai_adaptation_ind;
		break;
	case SCTP_SHUTDOWN_EVENT:
		it->what = DDPS_SD_PEER_SHUT;
		break;
	case SCTP_SENDER_DRY_EVENT:
		it->what = DDPS_SD_DRY;
		break;
	case SCTP_PARTIAL_DELIVERY_EVENT:
		it->what = DDPS_SD_PART_LOST;
		break;
	default:
		break;
	}
}

static void read_data(struct ddps_sd_item *it, const struct sctp_rcvinfo *info)
{
	it->what = DDPS_SD_DATA;
	it->stream = info->rcv_sid;
	it->ppid = ntohl(info->rcv_ppid);
	it->unordered = info->rcv_flags & SCTP_UNORDERED;
}

/* One read from SCTP: a message or the next part of one, or a notification. */
static struct ddps_sd_item take_usrsctp_item(struct ddps_sd_assoc *a)
{
	struct ddps_sd_item it = { .what = DDPS_SD_NOTHING };
	struct sctp_rcvinfo info = { 0 };
	size_t cap;
	uint8_t *buf = ddps_sd_part_room(&a->life.part, a->ue->rx_buf, &cap);
	socklen_t info_len = sizeof info;
	unsigned info_type = 0;
	int flags = 0;
	ssize_t n;

	ddps_us_lock(a->ue);
	n = usrsctp_recvv(a->so, buf, cap, NULL, NULL, &info, &info_len, &info_type, &flags);
	if (n < 0)
		it.sys_errno = errno;
	ddps_us_unlock();
	if (n < 0 && it.sys_errno == EWOULDBLOCK)
		return it;
	it.data = buf;
	it.len = n > 0 ? (size_t)n : 0;
	it.eor = flags & MSG_EOR;
	if (n <= 0)
		it.what = DDPS_SD_END;
	else if (flags & MSG_NOTIFICATION)
		read_note(&it);
	else
		read_data(&it, &info);
	return it;
}

/* ---- the end ---- */

static struct ddps_error why(const struct ddps_sd_assoc *a, int sys_errno)
{
	if (!a->life.announced)
		return sys_errno == ETIMEDOUT ? ddps_error_make(DDPS_E_TIMEDOUT, sys_errno,
								"no answer to the SCTP set-up")
					      : ddps_error_make(DDPS_E_REFUSED, sys_errno,
								"peer aborted the SCTP set-up");
	if (sys_errno == ECONNABORTED)
		return ddps_error_make(DDPS_E_RESET, sys_errno,
				       "SCTP gave the association up: no acknowledgements, "
				       "or a violation of SCTP by the peer");
	return ddps_error_make(DDPS_E_RESET, sys_errno, "peer aborted the SCTP association");
}

static int so_error(struct ddps_sd_assoc *a)
{
	int err = 0;
	socklen_t len = sizeof err;

	ddps_us_lock(a->ue);
	if (usrsctp_getsockopt(a->so, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		err = errno;
	ddps_us_unlock();
	return err;
}

/* All handed over so far is acknowledged if that still holds now; else ask again. */
static void on_dry(struct ddps_sd_assoc *a)
{
	struct sctp_event ev = { .se_assoc_id = SCTP_CURRENT_ASSOC,
				 .se_type = SCTP_SENDER_DRY_EVENT };
	struct sctp_status st = { 0 };
	socklen_t len = sizeof st;
	bool dry;

	if (!a->life.want_dry)
		return;
	ddps_us_lock(a->ue);
	usrsctp_setsockopt(a->so, IPPROTO_SCTP, SCTP_EVENT, &ev, sizeof ev);
	dry = usrsctp_getsockopt(a->so, IPPROTO_SCTP, SCTP_STATUS, &st, &len) == 0 &&
	      st.sstat_unackdata == 0 && st.sstat_penddata == 0;
	if (!dry) {
		ev.se_on = 1;
		usrsctp_setsockopt(a->so, IPPROTO_SCTP, SCTP_EVENT, &ev, sizeof ev);
	}
	ddps_us_unlock();
	if (!dry)
		return;
	a->life.want_dry = false;
	a->life.up->dry(a->life.user);
}

static void shut_socket(struct ddps_sd_assoc *a)
{
	ddps_us_lock(a->ue);
	ddps_us_close(a);
	ddps_us_unlock();
}

/* The addresses are known from the start. */
static void came_up(struct ddps_sd_assoc *a)
{
	(void)a;
}

const struct ddps_sd_life_ops ddps_us_life = {
	.take = take_usrsctp_item,
	.so_error = so_error,
	.why = why,
	.came_up = came_up,
	.dry = on_dry,
	.doom = ddps_us_doom,
	.close = shut_socket,
	.release = ddps_us_release,
};

static int events(struct ddps_sd_assoc *a)
{
	int ev;

	ddps_us_lock(a->ue);
	ev = usrsctp_get_events(a->so);
	ddps_us_unlock();
	return ev;
}

/* After all that came before the peer went. */
static bool given_up(struct ddps_sd_assoc *a, bool read_all)
{
	bool gone;

	ddps_us_lock(a->ue);
	gone = a->unreachable;
	ddps_us_unlock();
	if (!gone || !(read_all || !a->life.up_seen))
		return false;
	ddps_us_doom(a, a->life.up_seen
				? ddps_error_make(DDPS_E_RESET, ECONNREFUSED,
						  "the peer's process is gone: nobody is at its "
						  "UDP port any more")
				: ddps_error_make(DDPS_E_REFUSED, ECONNREFUSED,
						  "nothing listens at the peer's UDP port, or "
						  "its host has no SCTP"));
	return true;
}

static bool tell_path(struct ddps_sd_assoc *a)
{
	bool told;

	ddps_us_lock(a->ue);
	told = a->path_changed && a->life.announced;
	if (told)
		a->path_changed = false;
	ddps_us_unlock();
	if (told)
		a->life.up->path(a->life.user);
	return ddps_sd_life_alive(&a->life);
}

static void turn(struct ddps_sd_assoc *a)
{
	int n = 0;

	if (given_up(a, false))
		return;
	while (n < TURN && !a->life.paused && ddps_sd_life_step(&a->life))
		n++;
	if (!ddps_sd_life_alive(&a->life) || given_up(a, a->life.paused || n < TURN) ||
	    !tell_path(a))
		return;
	/* Nobody reads a paused association, yet a lost one is lost. */
	if (a->life.paused && (events(a) & SCTP_EVENT_ERROR)) {
		ddps_sd_life_on_end(&a->life, so_error(a));
		return;
	}
	if (n == TURN) {
		ddps_us_lock(a->ue);
		ddps_us_mark(a);
		ddps_us_unlock();
	}
	if (a->life.want_write && (events(a) & SCTP_EVENT_WRITE)) {
		a->life.want_write = false;
		a->life.up->writable(a->life.user);
	}
}

void ddps_us_serve(struct ddps_sd_assoc *a)
{
	if (ddps_sd_life_enter(&a->life))
		turn(a);
	ddps_sd_life_leave(&a->life);
}
