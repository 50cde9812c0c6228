/* SPDX-License-Identifier: BSD-2-Clause */
/* The ends of an MPA connection: what they are, and as text. */
#include "mpa_tcp/mpa_conn.h"
#include <stdio.h>
#include <string.h>

/* An IPv4 address that a dual-stack socket shows as IPv6 is shown as what it is. */
void ddps_mpa_addr_set(union ddps_mpa_addr *a, const struct sockaddr *sa)
{
	memset(a, 0, sizeof *a);
	memcpy(a, sa,
	       sa->sa_family == AF_INET6  ? sizeof a->in6
	       : sa->sa_family == AF_UNIX ? sizeof a->un
					  : sizeof a->in);
	if (sa->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&a->in6.sin6_addr)) {
		struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = a->in6.sin6_port };

		memcpy(&in.sin_addr, &a->in6.sin6_addr.s6_addr[12], sizeof in.sin_addr);
		memset(a, 0, sizeof *a);
		a->in = in;
	}
}

void ddps_mpa_addr_text(const union ddps_mpa_addr *a, char *buf, size_t len)
{
	buf[0] = '\0';
	if (a->sa.sa_family == AF_UNIX)
		snprintf(buf, len, "%s", a->un.text ? a->un.text : "");
	else if (a->sa.sa_family != AF_UNSPEC)
		ddps_addr_text(&a->sa, buf, len);
}
