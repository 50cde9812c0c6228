/* SPDX-License-Identifier: BSD-2-Clause */
/* What comes out of a usrsctp association: messages, notifications and its end. */
#include "sctp_ddp/backend/usrsctp/sd_usrsctp.h"
#include <errno.h>

#define TURN 64 /* items per turn, then other associations have theirs */

enum item { ITEM_NONE, ITEM_DATA, ITEM_NOTE, ITEM_END };

struct got {
	enum item what;
	int sys_errno;
	bool eor;
	struct sctp_rcvinfo info;
	const uint8_t *data;
	size_t len;
};

/* One read from SCTP: a message or the next part of one, or a notification. */
static struct got take(struct ddps_sd_assoc *a)
{
	struct got g = { .what = ITEM_NONE };
	size_t cap;
	uint8_t *buf = ddps_sd_part_room(&a->part, a->ue->rx_buf, &cap);
	socklen_t info_len = sizeof g.info;
	unsigned info_type = 0;
	int flags = 0;
	ssize_t n;

	ddps_us_lock(a->ue);
	n = usrsctp_recvv(a->so, buf, cap, NULL, NULL, &g.info, &info_len, &info_type, &flags);
	if (n < 0)
		g.sys_errno = errno;
	ddps_us_unlock();
	if (n < 0 && g.sys_errno == EWOULDBLOCK)
		return g;
	g.data = buf;
	g.len = n > 0 ? (size_t)n : 0;
	g.eor = flags & MSG_EOR;
	if (n <= 0)
		g.what = ITEM_END;
	else if (flags & MSG_NOTIFICATION)
		g.what = ITEM_NOTE;
	else
		g.what = ITEM_DATA;
	return g;
}

static bool alive(const struct ddps_sd_assoc *a)
{
	return !a->freed && !a->doomed && !a->ended;
}

/* ---- the end ---- */

static struct ddps_error why(const struct ddps_sd_assoc *a, int sys_errno)
{
	if (!a->announced)
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

	if (!a->want_dry)
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
	a->want_dry = false;
	a->up->dry(a->user);
}

static void shut_socket(struct ddps_sd_assoc *a)
{
	ddps_us_lock(a->ue);
	ddps_us_close(a);
	ddps_us_unlock();
}

#define doom	   ddps_us_doom
#define env_of(a)  ((a)->ue->env)
#define came_up(a) ((void)(a)) /* the addresses are known from the start */
#include "sctp_ddp/backend/sd_serve.h"

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
	if (!gone || !(read_all || !a->up_seen))
		return false;
	ddps_us_doom(a, a->up_seen ? ddps_error_make(DDPS_E_RESET, ECONNREFUSED,
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
	told = a->path_changed && a->announced;
	if (told)
		a->path_changed = false;
	ddps_us_unlock();
	if (told)
		a->up->path(a->user);
	return alive(a);
}

static void turn(struct ddps_sd_assoc *a)
{
	int n = 0;

	if (given_up(a, false))
		return;
	while (n < TURN && !a->paused && step(a))
		n++;
	if (!alive(a) || given_up(a, a->paused || n < TURN) || !tell_path(a))
		return;
	/* Nobody reads a paused association, yet a lost one is lost. */
	if (a->paused && (events(a) & SCTP_EVENT_ERROR)) {
		on_end(a, so_error(a));
		return;
	}
	if (n == TURN) {
		ddps_us_lock(a->ue);
		ddps_us_mark(a);
		ddps_us_unlock();
	}
	if (a->want_write && (events(a) & SCTP_EVENT_WRITE)) {
		a->want_write = false;
		a->up->writable(a->user);
	}
}

void ddps_us_serve(struct ddps_sd_assoc *a)
{
	a->serving = true;
	if (alive(a))
		turn(a);
	if (a->doomed && !a->ended && !a->freed)
		finish(a);
	a->serving = false;
	if (a->freed)
		ddps_us_release(a);
}
