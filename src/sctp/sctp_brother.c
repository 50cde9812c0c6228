/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs of one host, each with an SCTP and a UDP port of its own.  An association is known by the host's
 * address and the SCTP ports [6951-5.4], and two programs may have taken the same one by chance: the second
 * set-up would be a restart of the first one's association, and end it.  It is told so instead, by the error
 * cause that Linux has for it, and tries another port.
 */
#include "common/bytes.h"
#include "sctp/sctp_in.h"

bool ddps_sc_other_program(struct ddps_sc_rx *rx, uint32_t tag)
{
	const struct ddps_sc_path *p = ddps_sc_path_of(rx->a, &rx->from.peer);
	uint8_t ports[4];
	struct ddps_wbuf w = ddps_wbuf_init(ports, sizeof ports);

	if (!p || !p->encap || !rx->from.encap || p->encap == rx->from.encap)
		return false;
	rx->e->st.restarts_refused++;
	ddps_wbuf_u16(&w, p->encap);
	ddps_wbuf_u16(&w, rx->from.encap);
	ddps_sc_stray_abort(rx, tag, false, SC_CAUSE_ENCAP, ports, sizeof ports);
	return true;
}

/* To none of its addresses is there one from @port. */
static bool is_free(const struct ddps_sctp_assoc *a, uint16_t port)
{
	for (unsigned i = 0; i < a->npaths; i++) {
		if (ddps_sc_find(a->e, a->via, port, a->peer_port, &a->path[i]->peer))
			return false;
	}
	return port;
}

bool ddps_sc_other_port(struct ddps_sctp_assoc *a)
{
	uint16_t port;

	if (!a->any_port || !a->path[0]->encap || a->stale++ == a->e->c.init_max_retrans)
		return false;
	/* the next one may be the other program's, too, as each takes one after the other */
	a->e->next_port = (uint16_t)ddps_sc_random32(a->e);
	port = ddps_sc_free_port(a->e, a->via, a->peer_port, &a->path[0]->peer);
	if (!is_free(a, port))
		return false;
	ddps_sc_move(a, port);
	ddps_sc_init_again(a);
	return true;
}
