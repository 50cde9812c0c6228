/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading ahead of a segment that is held back for long. */
#include "mpa_tcp/mpa_conn.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STALL_MS 1000u
/* More than Linux lets a sender have under way (tcp_wmem).  Whoever comes too late for it waits for the program,
 * as its peer does. */
#define READ_AHEAD  (8u << 20)
#define AHEADS_MOST 16u

/* A large buffer for what is held back, of which there are @count. */
static bool make_ahead_buffer(struct ddps_mpa_rx *rx, unsigned *count)
{
	const size_t seg = rx->hold_seg_len, rest = rx->hold_rest_len;
	uint8_t *hold = *count < AHEADS_MOST ? malloc(seg + rest + READ_AHEAD) : NULL;

	if (!hold)
		return false;
	memcpy(hold, rx->hold_seg, seg);
	memcpy(hold + seg, rx->hold_rest, rest);
	free(rx->hold);
	rx->hold = rx->hold_seg = hold;
	rx->hold_rest = hold + seg;
	rx->hold_room = READ_AHEAD;
	rx->aheads = count;
	++*count;
	return true;
}

/* Where to read what follows; false: nowhere. */
static bool find_ahead_room(struct ddps_mpa_rx *rx, unsigned *count, struct iovec *to)
{
	if (!rx->stalled || (!rx->aheads && !make_ahead_buffer(rx, count)))
		return false;
	*to = (struct iovec){ rx->hold_rest + rx->hold_rest_len, rx->hold_room };
	return rx->hold_room;
}

void ddps_mpa_ahead_soon(struct ddps_mpa_conn *c)
{
	if (c->deadline == DDPS_MPA_T_NONE && !c->rx.aheads)
		ddps_mpa_conn_deadline(c, DDPS_MPA_T_STALL, STALL_MS);
}

/*
 * The peer's close is behind all that it has sent, and TCP takes that only as far as its buffer reaches.  What a
 * sender's TCP has left goes into a buffer of ours, so that a program that posts no receives, but waits for the
 * close, sees it.
 */
void ddps_mpa_ahead_read(struct ddps_mpa_conn *c)
{
	struct iovec to;
	ssize_t n = 1;

	while (n > 0 && c->rd == DDPS_MPA_RD_OPEN &&
	       find_ahead_room(&c->rx, &c->env->aheads, &to)) {
		n = c->tcp->recv(c, &to, 1);
		if (n > 0) {
			c->rx.hold_rest_len += (size_t)n;
			c->rx.hold_room -= (size_t)n;
		} else if (!n) {
			ddps_mpa_data_closing(c);
		} else if (n != -EAGAIN) {
			ddps_mpa_data_hangup(c, (int)-n);
		}
	}
	if (ddps_mpa_alive(c))
		ddps_mpa_conn_watch(c);
}
