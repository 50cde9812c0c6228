/* SPDX-License-Identifier: BSD-2-Clause */
/* The two ports that a bridge can have, as one. */
#include "ipoib/bridge/ipoib_bridge.h"
#include "cli/sessctl.h"
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define LINK_MTU 2048 /* of a datagram, encapsulation header included */
#define FOREVER	 7    /* retries: UDP loses what InfiniBand does not */

/* ---- options ---- */

static int configure_soft(struct bridge *b, uint32_t seed, char *why, size_t why_len)
{
	const struct ipoib_opts *o = b->o;
	struct bridge_port *p = &b->port;
	const struct ddps_ipoib_iface *me = &b->cfg.me;

	if (o->sa || o->link_mtu || o->qkey != IPOIB_UNSET || o->pkey != IPOIB_UNSET) {
		snprintf(why, why_len, "--sa, --link-mtu, --qkey and --pkey go with --port ib");
		return -1;
	}
	memcpy(p->soft_cfg.gid, me->addr.gid, sizeof p->soft_cfg.gid);
	if (soft_address(&p->soft_cfg.udp, "--udp", o->udp, why, why_len) ||
	    (o->group && soft_address(&p->soft_cfg.group, "--multicast", o->group, why, why_len)) ||
	    soft_uri(p->listen, o->listen, o->udp, "--listen", why, why_len) ||
	    soft_peers(p->peer, o, &p->soft_cfg, why, why_len))
		return -1;
	b->cfg.me.pkey = 0xffff;
	p->soft_cfg.seed = seed;
	p->soft_cfg.qpn = me->addr.qpn;
	p->soft_cfg.link_mtu = LINK_MTU;
	p->soft_cfg.listen = me->addr.flags ? p->listen : NULL;
	p->soft_cfg.up = ddps_ipoib_if_up();
	return 0;
}

/* HOST:PORT with an IPv4 address. */
static int read_udp(struct ddps_ib_udp_config *c, const char *text, char *why, size_t why_len)
{
	struct sockaddr_storage s;
	struct sockaddr_in a;

	if (soft_address(&s, "--udp", text, why, why_len))
		return -1;
	memcpy(&a, &s, sizeof a);
	if (s.ss_family != AF_INET || !a.sin_port) {
		snprintf(why, why_len, "--udp: '%s': --port ib needs IPv4, such as 192.0.2.1:4791",
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
			 "bridges; it may be the own one");
	else if (inet_pton(AF_INET, text, a) != 1 || memcmp(a, c->ip4, 3) != 0 || !a[3] ||
		 a[3] == 255)
		snprintf(why, why_len, "--sa: '%s' is no address in the same /24 as --udp", text);
	else {
		c->sa_lid = a[3];
		return 0;
	}
	return -1;
}

/* What the administration gives to the link; others learn it from there. */
static int read_link(struct ddps_ib_udp_config *c, const struct ipoib_opts *o, char *why,
		     size_t why_len)
{
	uint32_t mtu = o->link_mtu ? o->link_mtu : LINK_MTU;

	for (c->mtu = 1; c->mtu <= 5 && 128u << c->mtu != mtu; c->mtu++)
		;
	if (o->pkey != IPOIB_UNSET)
		c->pkey = (uint16_t)o->pkey;
	if (o->qkey != IPOIB_UNSET)
		c->qkey = (uint32_t)o->qkey;
	if (c->mtu > 5)
		snprintf(why, why_len, "--link-mtu: %u is not 256, 512, 1024, 2048 or 4096",
			 (unsigned)mtu);
	else if (!(c->pkey & 0x7fff))
		snprintf(why, why_len, "--pkey: 0 and 0x8000 are no P_Keys");
	else if (c->sa_lid != c->ip4[3] && (o->link_mtu || o->qkey != IPOIB_UNSET))
		snprintf(why, why_len,
			 "--link-mtu and --qkey are the subnet administration's, and that is "
			 "elsewhere");
	else
		return 0;
	return -1;
}

static int configure_ib(struct bridge *b, uint32_t seed, char *why, size_t why_len)
{
	const struct ipoib_opts *o = b->o;
	struct ddps_ib_udp_config *c = &b->port.ib_cfg;

	if (o->group || o->listen || o->peer.n) {
		snprintf(why, why_len, "--multicast, --listen and --peer go with --port soft");
		return -1;
	}
	ddps_ib_udp_config_init(c);
	if (read_udp(c, o->udp, why, why_len) || read_sa(c, o->sa, why, why_len) ||
	    read_link(c, o, why, why_len))
		return -1;
	memcpy(c->gid, b->cfg.me.addr.gid, sizeof c->gid);
	c->qpn = b->cfg.me.addr.qpn;
	c->seed = seed;
	c->up = ddps_ipoib_if_up();
	b->port.own_lid = c->ip4[3];
	b->cfg.me.pkey = c->pkey;
	b->cfg.retry_count = b->cfg.rnr_retry = FOREVER;
	b->cfg.form = DDPS_IPOIB_SID_LINUX; /* whoever knows the other form alone gets it next */
	for (unsigned i = 8; i < DDPS_IPOIB_GID_LEN; i++)
		b->cfg.ca_guid = b->cfg.ca_guid << 8 | c->gid[i];
	return 0;
}

int bridge_port_configure(struct bridge *b, uint32_t seed, char *why, size_t why_len)
{
	const char *port = b->o->port;

	b->port.is_ib = !strcmp(port, "ib");
	if (b->port.is_ib)
		return configure_ib(b, seed, why, why_len);
	if (!strcmp(port, "soft"))
		return configure_soft(b, seed, why, why_len);
	snprintf(why, why_len, "--port: '%s' is not soft or ib", port);
	return -1;
}

/* ---- life ---- */

static int open_ib(struct bridge *b)
{
	struct bridge_port *p = &b->port;
	char why[400];
	int err;

	p->ib_cfg.see = b->capture ? bridge_see_ib : NULL;
	p->ib_cfg.see_user = b;
	err = ddps_ib_udp_new(&p->ib, &p->ib_cfg, why, sizeof why);
	if (err)
		out_error(&b->out, 0, err == DDPS_E_SYSTEM ? bridge_advice(errno) : NULL, "%s",
			  why);
	return err ? ST_FAILED : ST_DONE;
}

static int open_soft(struct bridge *b)
{
	struct bridge_port *p = &b->port;
	char why[400];
	int err;

	p->soft_cfg.see = b->capture ? bridge_see : NULL;
	p->soft_cfg.see_user = b;
	err = ddps_ipoib_soft_new(&p->soft, &p->soft_cfg, why, sizeof why);
	if (err == DDPS_E_INVAL)
		out_error(&b->out, 0, "--multicast 239.192.0.1:7300 or [ff02::4:1]:7300", "%s",
			  why);
	else if (err)
		out_error(&b->out, 0, bridge_advice(err == DDPS_E_SYSTEM ? errno : 0), "%s", why);
	for (size_t i = 0; !err && i < b->o->peer.n; i++)
		if (ddps_ipoib_soft_add(p->soft, &p->peer[i].peer)) {
			out_error(&b->out, 0, bridge_advice(0),
				  "--peer: too many, or one that cannot be");
			err = DDPS_E_INVAL;
		}
	return err ? ST_FAILED : ST_DONE;
}

int bridge_port_open(struct bridge *b)
{
	return b->port.is_ib ? open_ib(b) : open_soft(b);
}

void bridge_port_close(struct bridge_port *p)
{
	ddps_ipoib_soft_free(p->soft);
	ddps_ib_udp_free(p->ib);
}

/* ---- work ---- */

struct ddps_ipoib_port *bridge_port_port(struct bridge_port *p)
{
	return p->is_ib ? ddps_ib_udp_port(p->ib) : ddps_ipoib_soft_port(p->soft);
}

void bridge_port_user(struct bridge_port *p, void *user)
{
	if (p->is_ib)
		ddps_ib_udp_user(p->ib, user);
	else
		ddps_ipoib_soft_user(p->soft, user);
}

bool bridge_port_run(struct bridge_port *p, uint64_t now)
{
	return p->is_ib ? ddps_ib_udp_run(p->ib, now) : ddps_ipoib_soft_run(p->soft, now);
}

void bridge_port_fds(struct bridge_port *p, struct pollfd fds[BRIDGE_PORT_FDS])
{
	for (unsigned i = 0; i < BRIDGE_PORT_FDS; i++)
		fds[i].fd = -1;
	if (p->is_ib)
		ddps_ib_udp_fds(p->ib, fds);
	else
		ddps_ipoib_soft_fds(p->soft, fds);
}

uint64_t bridge_port_deadline(const struct bridge_port *p)
{
	return p->is_ib ? ddps_ib_udp_deadline(p->ib) : DDPS_CM_NEVER;
}

unsigned bridge_port_udp(const struct bridge_port *p)
{
	return p->is_ib ? p->ib_cfg.udp_port : ddps_ipoib_soft_udp_port(p->soft);
}

void bridge_port_uri(const struct bridge_port *p, char uri[SOFT_TEXT_MAX])
{
	*uri = '\0';
	if (!p->is_ib)
		(void)ddps_ipoib_soft_uri(p->soft, uri, SOFT_TEXT_MAX);
}

#define COUNT(name, text) json_object_set_new(j, #name, json_integer((json_int_t)st->name));

json_t *bridge_port_counters(const struct bridge_port *p)
{
	json_t *j = json_object();
	const char *name;
	uint64_t value;

	if (p->is_ib) {
		for (unsigned i = 0; (name = ddps_ib_udp_counter(p->ib, i, &value)); i++)
			json_object_set_new(j, name, json_integer((json_int_t)value));
	} else {
		const struct ddps_soft_stats *st = ddps_ipoib_soft_stats(p->soft);

		DDPS_SOFT_STATS(COUNT)
	}
	return j;
}
