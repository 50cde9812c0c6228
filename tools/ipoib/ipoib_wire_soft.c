/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CM messages of sessctl ipoib connect and listen over UDP, by the soft port: towards another of
 * these commands, or towards a running bridge.  Datagrams of UD and sessions are not looked at.
 */
#include "ipoib/ipoib_soft_opts.h"
#include "ipoib/ipoib_wire.h"
#include "cli/sessctl.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define QUEUE	 64 /* messages; CM repeats what is lost */
#define LINK_MTU 2048
#define OWN_LID	 1 /* for people and captures; peers count from 2 */

struct soft_wire {
	struct ddps_soft *soft;
	struct ddps_soft_config cfg;
	struct soft_peer peer[OPTVAL_LIST_MAX];
	struct {
		ddps_cm_addr from;
		uint8_t mad[DDPS_CM_MAD_LEN];
	} queue[QUEUE];
	unsigned first, n;
	struct ddps_ipoib_path path; /* of the last question; addr 0: none */
	bool answered;
};

/* ---- what the port tells ---- */

static void on_ud(void *user, const struct ddps_ipoib_ud_from *from, const void *frame, size_t len,
		  uint64_t now)
{
	(void)user, (void)from, (void)frame, (void)len, (void)now;
}

static void on_mad(void *user, ddps_cm_addr from, const void *mad, size_t len, uint64_t now)
{
	struct soft_wire *w = user;
	unsigned at = (w->first + w->n) % QUEUE;

	(void)now;
	if (w->n == QUEUE || len != DDPS_CM_MAD_LEN)
		return;
	w->queue[at].from = from;
	memcpy(w->queue[at].mad, mad, DDPS_CM_MAD_LEN);
	w->n++;
}

static void on_qp(void *user, uint32_t qpn, const void *frame, size_t len, uint64_t now)
{
	(void)user, (void)qpn, (void)frame, (void)len, (void)now;
}

static void on_qp_error(void *user, uint32_t qpn, int err, uint64_t now)
{
	(void)user, (void)qpn, (void)err, (void)now;
}

static void on_path(void *user, const uint8_t gid[DDPS_IPOIB_GID_LEN],
		    const struct ddps_ipoib_path *path, uint64_t now)
{
	struct soft_wire *w = user;

	(void)gid, (void)now;
	w->answered = true;
	w->path = path ? *path : (struct ddps_ipoib_path){ 0 };
}

static void on_joined(void *user, const uint8_t mgid[DDPS_IPOIB_GID_LEN], int err, uint32_t mtu,
		      uint64_t now)
{
	(void)user, (void)mgid, (void)err, (void)mtu, (void)now;
}

static void on_link(void *user, bool up, uint64_t now)
{
	(void)user, (void)up, (void)now;
}

static const struct ddps_ipoib_up up_calls = {
	sizeof(struct ddps_ipoib_up),
	on_ud,
	on_mad,
	on_qp,
	on_qp_error,
	on_path,
	on_joined,
	on_link,
};

/* ---- what the commands ask for ---- */

static int soft_send(void *port, ddps_cm_addr to, const uint8_t mad[DDPS_CM_MAD_LEN])
{
	struct ddps_ipoib_port *p = ddps_ipoib_soft_port(((struct soft_wire *)port)->soft);

	return p->ops->mad_send(p, to, mad) ? DDPS_E_SYSTEM : 0;
}

static int soft_recv(void *port, int timeout_ms, uint8_t mad[DDPS_CM_MAD_LEN], ddps_cm_addr *from)
{
	struct soft_wire *w = port;
	struct pollfd fds[DDPS_SOFT_FDS];

	if (!w->n && !ddps_ipoib_soft_run(w->soft, clock_ns()) && !w->n) {
		ddps_ipoib_soft_fds(w->soft, fds);
		if (poll(fds, DDPS_SOFT_FDS, timeout_ms) > 0)
			(void)ddps_ipoib_soft_run(w->soft, clock_ns());
	}
	if (!w->n)
		return 0;
	*from = w->queue[w->first].from;
	memcpy(mad, w->queue[w->first].mad, DDPS_CM_MAD_LEN);
	w->first = (w->first + 1) % QUEUE;
	w->n--;
	return 1;
}

/* The port answers from its list, in its next round. */
static int soft_path(void *port, const uint8_t gid[DDPS_IPOIB_GID_LEN], struct ddps_sa_path *path)
{
	struct soft_wire *w = port;
	struct ddps_ipoib_port *p = ddps_ipoib_soft_port(w->soft);

	w->answered = false;
	if (p->ops->resolve(p, gid))
		return DDPS_E_SYSTEM;
	while (!w->answered)
		(void)ddps_ipoib_soft_run(w->soft, clock_ns());
	if (!w->path.addr)
		return DDPS_E_ADDRESS;
	*path = (struct ddps_sa_path){ .pkey = 0xffff, .mtu = w->path.mtu, .life = w->path.life };
	path->path.local_lid = w->path.slid;
	path->path.remote_lid = w->path.dlid;
	memcpy(path->path.local_gid, w->cfg.gid, DDPS_IPOIB_GID_LEN);
	memcpy(path->path.remote_gid, gid, DDPS_IPOIB_GID_LEN);
	path->path.rate = w->path.rate;
	path->path.subnet_local = 1;
	path->path.ack_timeout = w->path.life;
	return 0;
}

/* The port's tokens count the peers from 1. */
static ddps_cm_addr soft_addr(const struct ddps_sa_path *path)
{
	return (ddps_cm_addr)path->path.remote_lid - OWN_LID;
}

static uint16_t soft_lid(ddps_cm_addr addr)
{
	return (uint16_t)(addr + OWN_LID);
}

static void soft_close(void *port)
{
	struct soft_wire *w = port;

	ddps_ipoib_soft_free(w->soft);
	free(w);
}

static const struct wire_ops soft_ops = {
	.name = "soft",
	.no_path = "--peer GID,HOST:PORT for that GID",
	.send = soft_send,
	.recv = soft_recv,
	.path = soft_path,
	.addr = soft_addr,
	.lid = soft_lid,
	.close = soft_close,
};

static int configure(struct soft_wire *w, const struct ipoib_opts *o, char *why, size_t why_len)
{
	if (!o->gid || !o->udp || !o->peer.n)
		snprintf(why, why_len, "--port soft needs --gid, --udp and --peer");
	else if (ddps_ipoib_gid_parse(w->cfg.gid, o->gid))
		snprintf(why, why_len, "--gid: '%s' is not written like an IPv6 address", o->gid);
	else if (!soft_address(&w->cfg.udp, "--udp", o->udp, why, why_len) &&
		 !soft_peers(w->peer, o, &w->cfg, why, why_len))
		return 0;
	return -1;
}

static int open_port(struct soft_wire *w, const struct ipoib_opts *o, struct out *out)
{
	char why[1000];

	if (configure(w, o, why, sizeof why)) {
		out_error(out, 0,
			  "--gid fe80::1 --udp 127.0.0.1:7100 --peer fe80::2,127.0.0.1:7101", "%s",
			  why);
		return ST_USAGE;
	}
	w->cfg.qpn = (uint32_t)o->qpn;
	w->cfg.link_mtu = LINK_MTU;
	w->cfg.up = &up_calls;
	w->cfg.user = w;
	if (ddps_ipoib_soft_new(&w->soft, &w->cfg, why, sizeof why)) {
		out_error(out, 0, soft_advice(errno), "port soft: %s", why);
		return ST_FAILED;
	}
	for (size_t i = 0; i < o->peer.n; i++)
		if (ddps_ipoib_soft_add(w->soft, &w->peer[i].peer)) {
			out_error(out, 0, NULL, "--peer: '%s' cannot be", o->peer.at[i]);
			return ST_USAGE;
		}
	return ST_DONE;
}

int wire_open_soft(struct wire *wire, const struct ipoib_opts *o, struct out *out)
{
	struct soft_wire *w = calloc(1, sizeof *w);
	struct ddps_umad_info *i = &wire->info;
	int res;

	if (!w) {
		out_error(out, 0, NULL, "not enough memory");
		return ST_FAILED;
	}
	res = open_port(w, o, out);
	if (res) {
		soft_close(w);
		return res;
	}
	*wire = (struct wire){ .ops = &soft_ops, .port = w };
	snprintf(i->device, sizeof i->device, "udp");
	i->port = ddps_ipoib_soft_udp_port(w->soft);
	i->lid = OWN_LID;
	i->pkey = 0xffff;
	memcpy(i->gid, w->cfg.gid, sizeof i->gid);
	for (unsigned k = 8; k < DDPS_IPOIB_GID_LEN; k++)
		i->ca_guid = i->ca_guid << 8 | i->gid[k];
	return ST_DONE;
}
