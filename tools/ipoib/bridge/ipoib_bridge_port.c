/* SPDX-License-Identifier: BSD-2-Clause */
/* The port of a bridge. */
#include "ipoib/bridge/ipoib_bridge.h"
#include "cli/sessctl.h"
#include <errno.h>
#include <string.h>

#define FOREVER 7 /* retries: UDP loses what InfiniBand does not */

int bridge_port_configure(struct bridge *b, uint32_t seed, char *why, size_t why_len)
{
	struct ddps_ib_udp_config *c = &b->port.cfg;

	if (strcmp(b->o->port, "ib") != 0) {
		snprintf(why, why_len, "--port: '%s' is not ib", b->o->port);
		return -1;
	}
	if (ib_opts_configure(c, b->o, why, why_len))
		return -1;
	memcpy(c->gid, b->cfg.me.addr.gid, sizeof c->gid);
	c->qpn = b->cfg.me.addr.qpn;
	c->seed = seed;
	c->up = &bridge_up;
	b->cfg.me.pkey = c->pkey;
	b->cfg.retry_count = b->cfg.rnr_retry = FOREVER;
	b->cfg.form = DDPS_IPOIB_SID_LINUX; /* whoever knows the other form alone gets it next */
	for (unsigned i = 8; i < DDPS_IPOIB_GID_LEN; i++)
		b->cfg.ca_guid = b->cfg.ca_guid << 8 | c->gid[i];
	return 0;
}

int bridge_port_open(struct bridge *b)
{
	struct bridge_port *p = &b->port;
	char why[400];
	int err;

	p->cfg.see = b->capture ? bridge_see : NULL;
	p->cfg.see_user = b;
	err = ddps_ib_udp_new(&p->ib, &p->cfg, why, sizeof why);
	if (err)
		out_error(&b->out, 0, err == DDPS_E_SYSTEM ? bridge_advice(errno) : NULL, "%s",
			  why);
	return err ? ST_FAILED : ST_DONE;
}

void bridge_port_close(struct bridge_port *p)
{
	ddps_ib_udp_free(p->ib);
}

struct ddps_ipoib_port *bridge_port_port(struct bridge_port *p)
{
	return ddps_ib_udp_port(p->ib);
}

void bridge_port_user(struct bridge_port *p, void *user)
{
	ddps_ib_udp_user(p->ib, user);
}

bool bridge_port_run(struct bridge_port *p, uint64_t now)
{
	return ddps_ib_udp_run(p->ib, now);
}

void bridge_port_fds(struct bridge_port *p, struct pollfd fds[BRIDGE_PORT_FDS])
{
	ddps_ib_udp_fds(p->ib, fds);
}

bool bridge_port_busy(const struct bridge_port *p)
{
	return ddps_ib_udp_busy(p->ib);
}

uint64_t bridge_port_deadline(const struct bridge_port *p)
{
	return ddps_ib_udp_deadline(p->ib);
}

json_t *bridge_port_counters(const struct bridge_port *p)
{
	json_t *j = json_object();
	const char *name;
	uint64_t value;

	for (unsigned i = 0; (name = ddps_ib_udp_counter(p->ib, i, &value)); i++)
		json_object_set_new(j, name, json_integer((json_int_t)value));
	return j;
}
