/* SPDX-License-Identifier: BSD-2-Clause */
/* What the options of sessctl ipoib bridge say, taken apart. */
#include "ipoib/bridge/ipoib_bridge.h"
#include "ipoib/bridge/tun.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define DATAGRAM_MTU 2048 /* encapsulation header included */
#define FOREVER	     7	  /* retries: UDP loses what InfiniBand does not */

/* 10.0.0.1/24, fd00::1/64 */
static int read_ip(struct bridge_ip *ip, const char *text)
{
	const char *slash = strchr(text, '/');
	unsigned long max, n;
	char host[64], *end;

	ip->family = strchr(text, ':') ? AF_INET6 : AF_INET;
	max = ip->family == AF_INET6 ? 128 : 32;
	if (!slash || slash[1] < '0' || slash[1] > '9')
		return -1;
	snprintf(host, sizeof host, "%.*s", (int)(slash - text), text);
	n = strtoul(slash + 1, &end, 10);
	ip->prefix = (unsigned)n;
	return *end || !n || n > max || inet_pton(ip->family, host, ip->addr) != 1 ? -1 : 0;
}

static int read_ips(struct bridge *b, char *why, size_t why_len)
{
	struct ddps_ipoib_if_config *c = &b->cfg;

	for (size_t i = 0; i < b->o->ip.n; i++) {
		struct bridge_ip ip;

		if (read_ip(&ip, b->o->ip.at[i])) {
			snprintf(why, why_len,
				 "--ip: '%s' is not of the form 10.0.0.1/24 or fd00::1/64",
				 b->o->ip.at[i]);
			return -1;
		}
		if (ip.family == AF_INET ? c->has_ip4 : c->n_ip6 == DDPS_IPOIB_IF_IP6_MAX) {
			snprintf(why, why_len, "--ip: one IPv4 and %d IPv6 addresses at most",
				 DDPS_IPOIB_IF_IP6_MAX);
			return -1;
		}
		b->ip[b->n_ip++] = ip;
		if (ip.family == AF_INET) {
			c->has_ip4 = true;
			c->prefix4 = ip.prefix;
			memcpy(c->ip4, ip.addr, 4);
		} else {
			memcpy(c->ip6[c->n_ip6++], ip.addr, 16);
		}
	}
	return 0;
}

static bool name_fits(const char *tun)
{
	return *tun && strlen(tun) < TUN_NAME_MAX && !strpbrk(tun, "/%: \t\n") &&
	       strcmp(tun, ".") != 0 && strcmp(tun, "..") != 0;
}

/* Names, numbers and flags. */
static int read_scalars(struct bridge *b, char *why, size_t why_len)
{
	const struct ipoib_opts *o = b->o;
	struct ddps_ipoib_lladdr *me = &b->cfg.me.addr;
	const uint32_t max = DDPS_IPOIB_MTU_CM_MAX + DDPS_IPOIB_ENCAP_LEN;

	if (!name_fits(o->tun))
		snprintf(why, why_len,
			 "--tun: '%s' is no name of a device: 1 to 15 characters, no / %% : or "
			 "blank",
			 o->tun);
	else if (ddps_ipoib_flags_parse(&me->flags, o->flags))
		snprintf(why, why_len, "--mode: '%s' is not rc, uc, rc,uc or ud", o->flags);
	else if (o->qpn != IPOIB_UNSET && (o->qpn < 2 || o->qpn == DDPS_IPOIB_QPN_MCAST))
		snprintf(why, why_len, "--qpn: 0, 1 and 0xffffff are taken");
	else if (o->mtu < DDPS_IPOIB_MTU_MIN_V6 + DDPS_IPOIB_ENCAP_LEN || o->mtu > max)
		snprintf(why, why_len, "--mtu: %u is not %u to %u", (unsigned)o->mtu,
			 DDPS_IPOIB_MTU_MIN_V6 + DDPS_IPOIB_ENCAP_LEN, max);
	else
		return 0;
	return -1;
}

static int random_numbers(struct bridge *b, uint32_t *seed, uint32_t *qpn, char *why,
			  size_t why_len)
{
	uint32_t r[3];

	if (getrandom(r, sizeof r, 0) != sizeof r ||
	    getrandom(b->cfg.hash_key, sizeof b->cfg.hash_key, 0) != sizeof b->cfg.hash_key) {
		snprintf(why, why_len, "random numbers: %s", strerror(errno));
		return -1;
	}
	b->cfg.seed = r[0];
	*seed = r[1];
	/* like an adapter's, another one each time: peers see that it is a new life */
	*qpn = b->o->qpn == IPOIB_UNSET ? 2 + r[2] % 0xfffffd : (uint32_t)b->o->qpn;
	return 0;
}

int bridge_configure(struct bridge *b, char *why, size_t why_len)
{
	const struct ipoib_opts *o = b->o;
	struct ddps_ipoib_iface *me = &b->cfg.me;
	uint32_t seed, qpn;

	if (!o->tun) {
		snprintf(why, why_len, "--tun is needed");
		return -1;
	}
	ddps_ipoib_if_config_init(&b->cfg);
	if (read_scalars(b, why, why_len))
		return -1;
	if (read_ips(b, why, why_len) || random_numbers(b, &seed, &qpn, why, why_len) ||
	    ipoib_port_configure(&b->port, o, qpn, seed, why, why_len))
		return -1;
	if (b->port.verbs && o->qpn != IPOIB_UNSET) {
		snprintf(why, why_len, "--qpn: the adapter numbers its queue pairs itself");
		return -1;
	}
	/* the form of service ID is the library's default: the RFC's first; whoever refuses it gets
	 * the other one next [4755-3.5-1] */
	b->cfg.retry_count = b->cfg.rnr_retry = FOREVER;
	me->rx_mtu = me->addr.flags ? (uint32_t)o->mtu : DATAGRAM_MTU;
	return 0;
}

/* [4391-8-1] the link-local address of the port's GUID, unless --ip has one. */
static void add_link_local(struct bridge *b)
{
	struct bridge_ip ip = { AF_INET6, { 0xfe, 0x80 }, 64 };
	struct ddps_ipoib_if_config *c = &b->cfg;

	for (unsigned i = 0; i < c->n_ip6; i++)
		if (c->ip6[i][0] == 0xfe && (c->ip6[i][1] & 0xc0) == 0x80)
			return;
	if (!c->n_ip6 || c->n_ip6 == DDPS_IPOIB_IF_IP6_MAX)
		return;
	ddps_ipoib_iid(ip.addr + 8, b->port.gid + 8, false);
	memcpy(c->ip6[c->n_ip6++], ip.addr, sizeof ip.addr);
	b->ip[b->n_ip++] = ip;
}

void bridge_identify(struct bridge *b)
{
	memcpy(b->cfg.me.addr.gid, b->port.gid, sizeof b->port.gid);
	b->cfg.me.addr.qpn = b->port.qpn;
	b->cfg.me.pkey = b->port.pkey;
	b->cfg.ca_guid = b->port.guid;
	add_link_local(b);
	b->wants_ip6 = b->cfg.n_ip6 != 0;
}
