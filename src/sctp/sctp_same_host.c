/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs of one host, each with an SCTP and a UDP port of its own.  An association is known by the host's
 * address and the SCTP ports [6951-5.4], and two programs may have taken the same one by chance: the second
 * set-up would be a restart of the first one's association, and end it.  It is informed instead, by the error
 * cause that Linux has for it, and tries another port.
 *
 * Or it is the same program, which has begun anew from another UDP port.  So the old one is asked whether it
 * lives: whoever answers keeps the association, however often others ask for it, and when no path has answered
 * for as long as a path may take [9260-8.2-1], the next set-up has it.
 *
 * Or the program that made a cookie has ended before it came back: the one in its place cannot know the cookie as
 * its own, and says nothing [9260-5.1.5-2].  So the set-up begins anew, once, and from another port: if the
 * answers were lost after all, the association that is there is not to be begun anew, but aborted.  A peer that
 * sends DATA or SACKs is there: whoever waits for its COOKIE ACK does so.
 *
 * And addresses that two hosts have both: those of containers and of other private networks are the same
 * everywhere.
 */
#include "common/bytes.h"
#include "sctp/sctp_in.h"

#define ECHOES 3u /* of a cookie, without an answer */

bool ddps_sc_other_program(struct ddps_sc_rx *rx, uint32_t tag)
{
	const struct ddps_sc_path *p = ddps_sc_path_of(rx->a, &rx->from->peer);
	uint8_t ports[4];
	struct ddps_wbuf w = ddps_wbuf_init(ports, sizeof ports);

	if (!p || !p->encap || !rx->from->encap || p->encap == rx->from->encap)
		return false;
	if (ddps_sc_is_silent(rx->a))
		return false;
	ddps_sc_ask_paths(rx->a);
	rx->e->st.restarts_refused++;
	ddps_wbuf_u16(&w, p->encap);
	ddps_wbuf_u16(&w, rx->from->encap);
	ddps_sc_stray_abort(rx, tag, false, SC_CAUSE_ENCAP, ports, sizeof ports);
	return true;
}

/* To none of its addresses is there one from @port. */
static bool is_port_free(const struct ddps_sctp_assoc *a, uint16_t port)
{
	for (unsigned i = 0; i < a->npaths; i++) {
		if (ddps_sc_find(a->e, a->via, port, a->peer_port, &a->path[i]->peer))
			return false;
	}
	return port;
}

static bool dial_from_elsewhere(struct ddps_sctp_assoc *a)
{
	uint16_t port;

	/* the next one may be the other program's, too, as each takes one after the other */
	a->e->next_port = (uint16_t)ddps_sc_random32(a->e);
	port = ddps_sc_free_port(a->e, a->via, a->peer_port, &a->path[0]->peer);
	if (!is_port_free(a, port))
		return false;
	ddps_sc_move(a, port);
	ddps_sc_init_again(a);
	return true;
}

bool ddps_sc_other_port(struct ddps_sctp_assoc *a)
{
	if (!a->any_port || !a->path[0]->encap || a->stale++ == a->e->c.init_max_retrans)
		return false;
	return dial_from_elsewhere(a);
}

/* Its COOKIE ACK is lost, and the next COOKIE ECHO is answered by another one. */
void ddps_sc_taken(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c)
{
	(void)c;
	rx->a->taken = true;
}

bool ddps_sc_dial_anew(struct ddps_sctp_assoc *a)
{
	static const uint8_t abort[4] = { SC_ABORT, 0, 0, 4 };
	const struct ddps_sc_path *p = a->ctl_path;
	const struct ddps_sctp_route to = { .peer = p->peer,
					    .local = p->local,
					    .encap = p->encap,
					    .via = a->via,
					    .sealed = a->sealed };
	const uint16_t port = a->port;
	const uint32_t tag = a->peer_tag;

	if (a->state != SC_COOKIE_ECHOED || a->ctl_n < ECHOES || !a->any_port || a->stale ||
	    a->taken)
		return false;
	a->stale++;
	if (!dial_from_elsewhere(a))
		return false;
	a->e->st.aborts_out++;
	ddps_sc_stray(a->e, &to, port, a->peer_port, tag, abort, sizeof abort);
	return true;
}

bool ddps_sc_is_own(const struct ddps_sctp *e, const struct ddps_sctp_addr *peer,
		    const struct ddps_sctp_addr *addr)
{
	const struct ddps_sctp_config *c = &e->c;

	/* a peer on this host has all of its addresses with us */
	return c->own && !ddps_sc_addr_eq(peer, addr) && c->own(c->user, addr) &&
	       !c->own(c->user, peer);
}

bool ddps_sc_leaves_out(struct ddps_sctp_assoc *a, const struct ddps_sctp_addr *peer,
			const struct ddps_sctp_addr *addr)
{
	if (a->npaths >= DDPS_SENT_PATHS || !ddps_sc_is_own(a->e, peer, addr))
		return false;
	a->e->st.addrs_own++;
	return true;
}

/* It became our own later, and who listens here does not know what came there. */
bool ddps_sc_came_back(struct ddps_sc_rx *rx)
{
	const struct ddps_sctp_assoc *a = rx->a;

	for (unsigned i = 0; i < a->npaths; i++) {
		if (a->path[i] == rx->path || !a->path[i]->confirmed ||
		    !ddps_sc_is_own(rx->e, &a->path[i]->peer, &rx->path->peer))
			continue;
		rx->e->st.addrs_own++;
		ddps_sc_path_error(rx->path);
		return true;
	}
	return false;
}
