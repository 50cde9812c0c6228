/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of sessctl ipoib that a port of an InfiniBand subnet in UDP needs. */
#include "ipoib/ipoib_port.h"
#include "cli/hostport.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LINK_MTU 2048 /* of a datagram, encapsulation header included */

/* HOST:PORT with an IPv4 address. */
static int read_udp(struct ddps_ib_udp_config *c, const char *text, char *why, size_t why_len)
{
	struct sockaddr_storage s;
	struct sockaddr_in a;

	if (hostport_parse(&s, text)) {
		snprintf(why, why_len, "--udp: '%s' is no address and port; such as 192.0.2.1:4791",
			 text);
		return -1;
	}
	memcpy(&a, &s, sizeof a);
	if (s.ss_family != AF_INET || !a.sin_port) {
		snprintf(why, why_len,
			 "--udp: '%s': --port ib needs IPv4 and a port, such as 192.0.2.1:4791",
			 text);
		return -1;
	}
	memcpy(c->ip4, &a.sin_addr, sizeof c->ip4);
	c->udp_port = ntohs(a.sin_port);
	return 0;
}

static int read_sa(struct ddps_ib_udp_config *c, const char *text, char *why, size_t why_len)
{
	uint8_t a[4];

	if (!text)
		snprintf(why, why_len,
			 "--sa is needed: the address of the subnet administration, one of the "
			 "nodes; it may be the own one");
	else if (inet_pton(AF_INET, text, a) != 1 || memcmp(a, c->ip4, 3) != 0 || !a[3] ||
		 a[3] == 255)
		snprintf(why, why_len,
			 "--sa: '%s' is no address in the same /24 as --udp, which is %u.%u.%u.N",
			 text, c->ip4[0], c->ip4[1], c->ip4[2]);
	else {
		c->sa_lid = a[3];
		return 0;
	}
	return -1;
}

/* What the administration gives to the link; others learn it from there. */
static int read_ib_link_options(struct ddps_ib_udp_config *c, const struct ipoib_opts *o, char *why,
				size_t why_len)
{
	uint32_t mtu = o->link_mtu ? o->link_mtu : LINK_MTU;

	for (c->mtu = 1; c->mtu <= 5 && 128u << c->mtu != mtu; c->mtu++)
		;
	if (o->pkey != IPOIB_UNSET)
		c->pkey = (uint16_t)o->pkey;
	if (o->qkey != IPOIB_UNSET)
		c->qkey = (uint32_t)o->qkey;
	if (o->lifetime != IPOIB_UNSET)
		c->life = (uint32_t)o->lifetime;
	if (c->mtu > 5)
		snprintf(why, why_len, "--link-mtu: %u is not 256, 512, 1024, 2048 or 4096",
			 (unsigned)mtu);
	else if (!(c->pkey & 0x7fff))
		snprintf(why, why_len, "--pkey: 0 and 0x8000 are no P_Keys");
	else if (c->sa_lid != c->ip4[3] &&
		 (o->link_mtu || o->qkey != IPOIB_UNSET || o->lifetime != IPOIB_UNSET))
		snprintf(why, why_len,
			 "--link-mtu, --qkey and --lifetime are the subnet administration's, and "
			 "that is elsewhere");
	else
		return 0;
	return -1;
}

/* What else the administration here looks after. */
static int read_partitions(struct ddps_ib_udp_config *c, const struct ipoib_opts *o, char *why,
			   size_t why_len)
{
	const struct optval_list *l = &o->partition;
	char *end;

	if (l->n && c->sa_lid != c->ip4[3]) {
		snprintf(why, why_len,
			 "--partition is the subnet administration's, and that is elsewhere");
		return -1;
	}
	if (l->n > DDPS_IB_UDP_PKEYS) {
		snprintf(why, why_len, "--partition: %d more than --pkey are possible",
			 DDPS_IB_UDP_PKEYS);
		return -1;
	}
	for (size_t i = 0; i < l->n; i++) {
		unsigned long key = strtoul(l->at[i], &end, 0);
		bool twice = !((key ^ c->pkey) & 0x7fff);

		for (size_t k = 0; k < i; k++)
			twice |= !((key ^ c->pkeys[k]) & 0x7fff);
		if (*end || end == l->at[i] || key > 0xffff || !(key & 0x7fff) || twice) {
			snprintf(why, why_len, "--partition: '%s' is %s", l->at[i],
				 twice ? "there already; bit 15 makes no other partition"
				       : "no P_Key, such as 0x8002");
			return -1;
		}
		c->pkeys[i] = (uint16_t)key;
	}
	return 0;
}

int ib_opts_configure(struct ddps_ib_udp_config *c, const struct ipoib_opts *o, char *why,
		      size_t why_len)
{
	ddps_ib_udp_config_init(c);
	return read_udp(c, o->udp, why, why_len) || read_sa(c, o->sa, why, why_len) ||
			       read_ib_link_options(c, o, why, why_len) ||
			       read_partitions(c, o, why, why_len)
		       ? -1
		       : 0;
}

int ib_opts_device(const char *text, const char *kind, char device[IPOIB_DEVICE_LEN], int *port)
{
	size_t n = strlen(kind);
	char *colon, *end;
	long value;

	device[0] = '\0';
	*port = 0;
	if (!strcmp(text, kind))
		return 0;
	if (strncmp(text, kind, n) != 0 || text[n] != ':' ||
	    strlen(text + n + 1) >= IPOIB_DEVICE_LEN)
		return -1;
	strcpy(device, text + n + 1);
	colon = strchr(device, ':');
	if (colon) {
		*colon++ = '\0';
		value = strtol(colon, &end, 10);
		if (*end || end == colon || value < 1 || value > 254)
			return -1;
		*port = (int)value;
	}
	return *device ? 0 : -1;
}

const char *ib_opts_advice(int err)
{
	return err == EADDRINUSE      ? "another port, or end what has this one (ss -lnp)"
	       : err == EADDRNOTAVAIL ? "an address that 'ip address' shows"
	       : err == ENETDOWN      ? "ip link set lo up, in this network namespace"
				      : NULL;
}
