/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints with several addresses (RFC 9260 1.3): one socket that is bound to none of them, takes
 * what came to one of them, and sends from that which the system would choose.
 */
#include "sctp_ddp/backend/native/sd_native.h"
#include "sctp_ddp/backend/sd_sock.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int ddps_sn_way(const struct sockaddr_storage *from, const struct sockaddr_storage *to,
		struct sockaddr_storage *local)
{
	int fd = socket(to->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;
	socklen_t local_len = sizeof *local;
	struct sockaddr_storage own = { 0 };

	if (fd < 0)
		return errno;
	if (from) {
		own = *from;
		ddps_sd_set_port(&own, 0);
	}
	if ((from && bind(fd, (struct sockaddr *)&own, ddps_addr_len(&own)) < 0) ||
	    connect(fd, (const struct sockaddr *)to, ddps_addr_len(to)) < 0 ||
	    getsockname(fd, (struct sockaddr *)local, &local_len) < 0)
		err = errno;
	close(fd);
	return err;
}

static unsigned find_place_in_list(const struct ddps_sctp_addr *a,
				   const struct ddps_sctp_addr *list, unsigned n)
{
	unsigned i = 0;

	while (i < n && !ddps_sc_addr_eq(a, &list[i]))
		i++;
	return i;
}

unsigned ddps_sn_homes_source(void *user, const struct ddps_sctp_addr *peer,
			      const struct ddps_sctp_addr *local, unsigned n)
{
	struct sockaddr_storage to, from;
	struct ddps_sctp_addr own;
	unsigned i = n;

	(void)user;
	ddps_sn_sockaddr(peer, 9, peer->family == 6 ? AF_INET6 : AF_INET, &to);
	if (!ddps_sn_way(NULL, &to, &from)) {
		own = ddps_sn_addr(&from);
		i = find_place_in_list(&own, local, n);
	}
	/* not one of those that were given: the first that can be a source at all */
	for (unsigned k = 0; i == n && k < n; k++)
		if (local[k].family == peer->family)
			i = k;
	return i;
}

bool ddps_sn_homes_own(void *user, const struct ddps_sctp_addr *a)
{
	struct sockaddr_storage to, from;

	(void)user;
	if (ddps_sc_loopback(a))
		return true;
	ddps_sn_sockaddr(a, 9, a->family == 6 ? AF_INET6 : AF_INET, &to);
	return !ddps_sn_way(NULL, &to, &from) && ddps_sn_same_addr(&from, &to);
}

bool ddps_sn_homes_take(const struct ddps_sn_sock *s, const struct ddps_sctp_addr *local)
{
	return !s->homes || find_place_in_list(local, s->homes->at, s->homes->n) < s->homes->n;
}

/* ---- sockets ---- */

static bool same_list(const struct ddps_sn_homes *a, const struct ddps_sn_homes *b)
{
	if (a->n != b->n)
		return false;
	for (unsigned i = 0; i < a->n; i++)
		if (!ddps_sc_addr_eq(&a->at[i], &b->at[i]))
			return false;
	return true;
}

/* That of another endpoint of this context with the same addresses and UDP port. */
static struct ddps_sn_sock *find_sock(const struct ddps_sn_env *ne, const struct ddps_sn_homes *h,
				      int encap, uint8_t tos)
{
	bool raw = encap == DDPS_URI_ENCAP_OFF;

	for (unsigned i = 0; (raw || encap) && i < ne->nsocks; i++) {
		struct ddps_sn_sock *s = ne->socks[i];

		if (s && s->homes && s->raw == raw && (raw || s->port == encap) && s->tos == tos &&
		    same_list(s->homes, h))
			return s;
	}
	return NULL;
}

int ddps_sn_homes_sock(struct ddps_sn_env *ne, const struct ddps_uri_addrs *list, int family,
		       int encap, uint8_t tos, struct ddps_sn_sock **out)
{
	struct sockaddr_storage any = { .ss_family = (sa_family_t)family };
	struct ddps_sn_homes *h = calloc(1, sizeof *h);
	unsigned how = DDPS_SN_OWN;
	int err;

	if (!h)
		return DDPS_E_NOMEM;
	h->n = list->n;
	for (unsigned i = 0; i < list->n; i++) {
		h->at[i] = ddps_sn_addr(&list->at[i]);
		if (h->at[i].family == 4)
			how |= DDPS_SN_BOTH;
	}
	*out = find_sock(ne, h, encap, tos);
	if (*out) {
		(*out)->refs++;
		free(h);
		return 0;
	}
	err = ddps_sn_sock_bind(ne, (struct sockaddr *)&any, ddps_addr_len(&any), encap, how, tos,
				out);
	if (err) {
		free(h);
		return err;
	}
	(*out)->homes = h;
	if ((*out)->twin)
		(*out)->twin->homes = h;
	return 0;
}

/* ---- addresses ---- */

int ddps_sn_homes_family(const struct ddps_uri_addrs *a, const struct ddps_uri_addrs *b)
{
	for (unsigned i = 0; i < a->n + b->n; i++)
		if ((i < a->n ? &a->at[i] : &b->at[i - a->n])->ss_family == AF_INET6)
			return AF_INET6;
	return AF_INET;
}

void ddps_sn_homes_text(const struct ddps_sn_homes *h, uint16_t port, char *buf, size_t len)
{
	struct ddps_uri_addrs list = { .n = h->n };

	for (unsigned i = 0; i < h->n; i++)
		ddps_sn_sockaddr(&h->at[i], port, h->at[i].family == 6 ? AF_INET6 : AF_INET,
				 &list.at[i]);
	ddps_addrs_text(&list, buf, len);
}
