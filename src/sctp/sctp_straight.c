/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The straight way of what is received: whole messages outside of any order, in the order of TSNs, while nothing is
 * missing and nothing is held.  Everything else takes the steps of sctp_rx.c, which would have done the same: to
 * leave a chunk to them is never wrong.
 */
#include "sctp/sctp_in.h"

#define WHOLE (SC_DATA_B | SC_DATA_E | SC_DATA_U)

/* Asked before each chunk: any upcall may change it. */
static inline bool is_all_plain(const struct ddps_sctp_assoc *a)
{
	return a->state == SC_ESTABLISHED && !a->dead && !a->paused && !a->held && !a->kept &&
	       !a->streams && a->map.high == a->map.cum;
}

/* [9260-6.2-27] [9260-6.5-2] [9260-6.10-6] are not for what is taken here. */
static bool take_plain(struct ddps_sc_rx *rx, struct ddps_rbuf *r)
{
	struct ddps_sctp_assoc *a = rx->a;
	const uint8_t *c = r->p;
	size_t left = ddps_rbuf_left(r), len, padded;
	struct ddps_sctp_msg m = { .unordered = true };
	struct ddps_sc_data_hdr d;

	if (left <= sizeof d)
		return false;
	memcpy(&d, c, sizeof d);
	if (d.type != SC_DATA || (d.flags & WHOLE) != WHOLE)
		return false;
	len = be16toh(d.len);
	m.stream = be16toh(d.sid);
	if (len <= DDPS_SC_DATA_HDR || len > left || be32toh(d.tsn) != a->map.cum + 1 ||
	    m.stream >= a->in_streams)
		return false;
	m.ssn = be16toh(d.ssn);
	m.ppid = be32toh(d.ppid);
	m.data = c + DDPS_SC_DATA_HDR;
	m.len = len - DDPS_SC_DATA_HDR;
	padded = ddps_sc_pad(len);
	r->p += padded < left ? padded : left;
	rx->data = true;
	rx->now_flag |= d.flags & SC_DATA_I;
	a->up->message(a->user, &m);
	if (a->dead)
		return true;
	ddps_sc_map_next(&a->map);
	rx->fresh = true;
	a->n_chunks_in++;
	return true;
}

unsigned ddps_sc_straight_data(struct ddps_sc_rx *rx, struct ddps_rbuf *r)
{
	unsigned n = 0;

	if (rx->e->sent.stepwise)
		return 0;
	while (is_all_plain(rx->a) && take_plain(rx, r))
		n++;
	return n;
}
