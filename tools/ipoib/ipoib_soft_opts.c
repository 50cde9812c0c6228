/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of sessctl ipoib that the soft port needs. */
#include "ipoib/ipoib_soft_opts.h"
#include "cli/hostport.h"
#include <ddpsess/session.h>
#include <errno.h>
#include <string.h>

int soft_address(struct sockaddr_storage *a, const char *option, const char *text, char *why,
		 size_t why_len)
{
	if (!hostport_parse(a, text))
		return 0;
	snprintf(why, why_len,
		 "%s: '%s' is no address and port; such as 192.0.2.1:7000 or [2001:db8::1]:7000",
		 option, text);
	return -1;
}

int soft_uri(char dst[SOFT_TEXT_MAX], const char *given, const char *udp, const char *option,
	     char *why, size_t why_len)
{
	char part[200];
	int n = given ? snprintf(dst, SOFT_TEXT_MAX, "%s", given)
		      : snprintf(dst, SOFT_TEXT_MAX, "tcp://%s", udp);

	if (n < SOFT_TEXT_MAX && !ddps_uri_check(dst, part, sizeof part))
		return 0;
	snprintf(why, why_len, "%s: '%s' is no session URI: %s", option, dst,
		 n < SOFT_TEXT_MAX ? part : "too long");
	return -1;
}

/* GID,HOST:PORT[,URI] */
static int read_peer(struct soft_peer *p, const char *text, char *why, size_t why_len)
{
	char buf[2 * SOFT_TEXT_MAX], *udp, *uri = NULL;

	snprintf(buf, sizeof buf, "%s", text);
	udp = strchr(buf, ',');
	if (udp) {
		*udp++ = '\0';
		uri = strchr(udp, ',');
	}
	if (uri)
		*uri++ = '\0';
	if (strlen(text) >= sizeof buf || !udp || ddps_ipoib_gid_parse(p->peer.gid, buf)) {
		snprintf(why, why_len,
			 "--peer: '%s' is not of the form GID,HOST:PORT[,URI], such as "
			 "fe80::2,192.0.2.2:7000",
			 text);
		return -1;
	}
	if (soft_address(&p->peer.udp, "--peer", udp, why, why_len) ||
	    soft_uri(p->uri, uri, udp, "--peer", why, why_len))
		return -1;
	p->peer.uri = p->uri;
	return 0;
}

int soft_peers(struct soft_peer peer[OPTVAL_LIST_MAX], const struct ipoib_opts *o,
	       const struct ddps_soft_config *own, char *why, size_t why_len)
{
	for (size_t i = 0; i < o->peer.n; i++) {
		const uint8_t *gid = peer[i].peer.gid;
		const char *text = o->peer.at[i];

		if (read_peer(&peer[i], text, why, why_len))
			return -1;
		if (peer[i].peer.udp.ss_family != own->udp.ss_family) {
			snprintf(why, why_len, "--peer: '%s' and --udp '%s' are IPv4 and IPv6",
				 text, o->udp);
			return -1;
		}
		for (size_t k = 0; k < i; k++)
			if (!memcmp(peer[k].peer.gid, gid, DDPS_IPOIB_GID_LEN)) {
				snprintf(why, why_len, "--peer: '%s' has the GID of another", text);
				return -1;
			}
		if (!memcmp(own->gid, gid, DDPS_IPOIB_GID_LEN)) {
			snprintf(why, why_len, "--peer: '%s' has our own GID", text);
			return -1;
		}
	}
	return 0;
}

const char *soft_advice(int err)
{
	return err == EADDRINUSE      ? "another port, or end what has this one (ss -lnp)"
	       : err == EADDRNOTAVAIL ? "an address that 'ip address' shows"
				      : NULL;
}
