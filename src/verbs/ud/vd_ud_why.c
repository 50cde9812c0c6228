/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a datagram was lost, or a request for one failed, for people: see vd_why.h. */
#include "verbs/cm/vd_addr.h"
#include "verbs/ud/vd_ud_in.h"
#include <stdio.h>

static void put_ud_addr(const struct ud_addr *a, char *to, size_t len)
{
	struct sockaddr_storage ss;

	ud_to_sockaddr(a, IN6_IS_ADDR_V4MAPPED(&a->ip) ? AF_INET : AF_INET6, &ss);
	vd_addr_text((struct sockaddr *)&ss, to, len);
}

void ud_why_lost(struct vd_ud_qp *u, enum vd_why why, const struct ud_addr *from,
		 const char *reason)
{
	char at[80];

	if (!vd_why_is_due(u->qp, why))
		return;
	put_ud_addr(from, at, sizeof at);
	vd_why_say(u->qp, ": a datagram from %s is lost: %s", at, reason);
}

void ud_why_not_there(struct vd_ud_qp *u, enum vd_why why, const struct ud_sqe *e, const char *what)
{
	char at[80];

	if (!vd_why_is_due(u->qp, why))
		return;
	put_ud_addr(&e->to, at, sizeof at);
	vd_why_say(u->qp, ": a datagram to queue pair %u at %s %s", e->h.dest, at, what);
}
