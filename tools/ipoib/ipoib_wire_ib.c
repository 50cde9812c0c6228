/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CM messages of sessctl ipoib connect and listen on a subnet whose packets travel in UDP, or by an
 * adapter: towards another of these commands, a running bridge, or Linux.  The node joins the link,
 * as nobody finds it otherwise; datagrams are not looked at, and queue pairs are not made.
 */
#include "ipoib/ipoib_port.h"
#include "ipoib/ipoib_wire.h"
#include "cli/sessctl.h"
#include "cli/sig.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define QUEUE	   64 /* messages; CM repeats what is lost */
#define LINK_SCOPE 2

struct ib_wire {
	struct ipoib_port port;
	bool open;
	uint8_t broadcast[DDPS_IPOIB_GID_LEN];
	struct {
		ddps_cm_addr from;
		uint8_t mad[DDPS_CM_MAD_LEN];
	} queue[QUEUE];
	unsigned first, n;
	struct ddps_ipoib_path path; /* of the last question; addr 0: none */
	bool answered;		     /* the last question, a join or a path */
	int join_err;
};

/* ---- what the port says ---- */

static void ignore_wire_ud(void *user, const struct ddps_ipoib_ud_from *from, const void *frame,
			   size_t len, uint64_t now)
{
	(void)user, (void)from, (void)frame, (void)len, (void)now;
}

static void keep_wire_mad(void *user, ddps_cm_addr from, const void *mad, size_t len, uint64_t now)
{
	struct ib_wire *w = user;
	unsigned at = (w->first + w->n) % QUEUE;

	(void)now;
	if (w->n == QUEUE || len != DDPS_CM_MAD_LEN)
		return;
	w->queue[at].from = from;
	memcpy(w->queue[at].mad, mad, DDPS_CM_MAD_LEN);
	w->n++;
}

static void ignore_wire_qp(void *user, uint32_t qpn, const void *frame, size_t len, uint64_t now)
{
	(void)user, (void)qpn, (void)frame, (void)len, (void)now;
}

static void ignore_wire_qp_error(void *user, uint32_t qpn, int err, uint64_t now)
{
	(void)user, (void)qpn, (void)err, (void)now;
}

static void take_wire_path(void *user, const uint8_t gid[DDPS_IPOIB_GID_LEN],
			   const struct ddps_ipoib_path *path, uint64_t now)
{
	struct ib_wire *w = user;

	(void)gid, (void)now;
	w->answered = true;
	w->path = path ? *path : (struct ddps_ipoib_path){ 0 };
}

static void take_wire_joined(void *user, const uint8_t mgid[DDPS_IPOIB_GID_LEN], int err,
			     uint32_t mtu, uint64_t now)
{
	struct ib_wire *w = user;

	(void)mgid, (void)mtu, (void)now;
	w->answered = true;
	w->join_err = err;
}

static void ignore_wire_link(void *user, bool up, uint64_t now)
{
	(void)user, (void)up, (void)now;
}

static const struct ddps_ipoib_up up_calls = {
	sizeof(struct ddps_ipoib_up), ignore_wire_ud, keep_wire_mad,	ignore_wire_qp,
	ignore_wire_qp_error,	      take_wire_path, take_wire_joined, ignore_wire_link,
};

/* ---- what the commands ask for ---- */

/* One turn, after a wait of at most @timeout_ms. */
static void serve_ib_wire(struct ib_wire *w, int timeout_ms)
{
	struct pollfd fds[IPOIB_PORT_FDS];
	uint64_t now = clock_ns(), due = ipoib_port_deadline(&w->port), ms;

	if (due != DDPS_CM_NEVER) {
		ms = due > now ? (due - now + NS_PER_MS - 1) / NS_PER_MS : 0;
		timeout_ms = ms < (uint64_t)timeout_ms ? (int)ms : timeout_ms;
	}
	ipoib_port_fds(&w->port, fds);
	(void)poll(fds, IPOIB_PORT_FDS, timeout_ms);
	(void)ipoib_port_run(&w->port, clock_ns());
}

/* The port gives every question an answer in the end.  Return: false: a signal came first. */
static bool await_wire_answer(struct ib_wire *w)
{
	while (!w->answered && !sig_pending())
		serve_ib_wire(w, 100);
	return w->answered;
}

static int ib_send(void *port, ddps_cm_addr to, const uint8_t mad[DDPS_CM_MAD_LEN])
{
	struct ddps_ipoib_port *p = ipoib_port_port(&((struct ib_wire *)port)->port);

	return p->ops->mad_send(p, to, mad) ? DDPS_E_SYSTEM : 0;
}

static int ib_recv(void *port, int timeout_ms, uint8_t mad[DDPS_CM_MAD_LEN], ddps_cm_addr *from)
{
	struct ib_wire *w = port;

	if (!w->n)
		serve_ib_wire(w, timeout_ms);
	if (!w->n)
		return 0;
	*from = w->queue[w->first].from;
	memcpy(mad, w->queue[w->first].mad, DDPS_CM_MAD_LEN);
	w->first = (w->first + 1) % QUEUE;
	w->n--;
	return 1;
}

static int ib_path(void *port, const uint8_t gid[DDPS_IPOIB_GID_LEN], struct ddps_sa_path *path)
{
	struct ib_wire *w = port;
	struct ddps_ipoib_port *p = ipoib_port_port(&w->port);

	w->answered = false;
	if (p->ops->resolve(p, gid))
		return DDPS_E_SYSTEM;
	if (!await_wire_answer(w))
		return DDPS_E_TIMEDOUT;
	if (!w->path.addr)
		return DDPS_E_ADDRESS;
	*path = (struct ddps_sa_path){ .pkey = w->port.pkey,
				       .mtu = w->path.mtu,
				       .life = w->path.life };
	path->path.local_lid = w->path.slid;
	path->path.remote_lid = w->path.dlid;
	memcpy(path->path.local_gid, w->port.gid, DDPS_IPOIB_GID_LEN);
	memcpy(path->path.remote_gid, gid, DDPS_IPOIB_GID_LEN);
	path->path.sl = w->path.sl;
	path->path.rate = w->path.rate;
	path->path.flow_label = w->path.flow_label;
	path->path.hop_limit = w->path.hop_limit;
	path->path.traffic_class = w->path.traffic_class;
	path->path.subnet_local = w->path.hop_limit <= 1; /* as Linux has it */
	path->path.ack_timeout = ddps_cm_ack_timeout(w->path.life, 0);
	return 0;
}

/* Of the path that was asked for last: with its GRH, if it has one. */
static ddps_cm_addr ib_addr(void *port, const struct ddps_sa_path *path)
{
	(void)path;
	return ((struct ib_wire *)port)->path.addr;
}

static uint16_t ib_lid(ddps_cm_addr addr)
{
	return (uint16_t)addr;
}

static void ib_close(void *port)
{
	struct ib_wire *w = port;
	struct ddps_ipoib_port *p = w->open ? ipoib_port_port(&w->port) : NULL;

	if (p)
		p->ops->leave(p, w->broadcast);
	ipoib_port_close(&w->port);
	free(w);
}

static const struct wire_ops ib_ops = {
	.name = "ib",
	.no_path = "start the peer, and see that its --sa is the same",
	.send = ib_send,
	.recv = ib_recv,
	.path = ib_path,
	.addr = ib_addr,
	.lid = ib_lid,
	.close = ib_close,
};

static const struct wire_ops verbs_ops = {
	.name = "verbs",
	.no_path = "check that opensm runs and that the GID is one of this subnet",
	.send = ib_send,
	.recv = ib_recv,
	.path = ib_path,
	.addr = ib_addr,
	.lid = ib_lid,
	.close = ib_close,
};

/* ---- opening ---- */

static int join_wire_group(struct ib_wire *w, struct out *out)
{
	struct ddps_ipoib_port *p = ipoib_port_port(&w->port);

	const char *why;

	ddps_ipoib_mgid_broadcast(w->broadcast, w->port.pkey, LINK_SCOPE);
	(void)ipoib_port_run(&w->port, clock_ns());
	if (!p->ops->join(p, w->broadcast) && await_wire_answer(w) && !w->join_err)
		return ST_DONE;
	why = ipoib_port_why(&w->port);
	if (!w->answered)
		out_error(out, 0, "again; it joins within seconds if the administration answers",
			  "interrupted while joining the link");
	else if (*why)
		ipoib_port_error(out,
				 w->port.verbs ? "port verbs: joining the link"
					       : "port ib: joining the link",
				 why);
	else if (w->join_err == DDPS_E_TIMEDOUT)
		out_error(out, 0, "start the subnet administration, see that --sa is its address",
			  "port ib: joining the link: the administration does not answer");
	else
		out_error(out, 0, "see that --pkey is the link's", "port ib: joining the link: %s",
			  w->join_err == DDPS_E_REJECTED ? "the administration refuses it"
							 : ddps_strerror(w->join_err));
	return w->join_err == DDPS_E_TIMEDOUT ? ST_TIMEDOUT : ST_FAILED;
}

static int open_wire_port(struct ib_wire *w, const struct ipoib_opts *o, struct out *out)
{
	char why[1000];
	uint32_t seed;
	int res;

	if (getrandom(&seed, sizeof seed, 0) != sizeof seed) {
		out_error(out, 0, "a kernel that has getrandom(2)", "no random numbers: %s",
			  strerror(errno));
		return ST_FAILED;
	}
	if (ipoib_port_configure(&w->port, o, (uint32_t)o->qpn, seed, why, sizeof why)) {
		out_error(out, 0, "--gid fe80::1 --udp 127.0.0.1:4791 --sa 127.0.0.1", "%s", why);
		return ST_USAGE;
	}
	res = ipoib_port_open(&w->port, &up_calls, NULL, NULL, out);
	if (res)
		return res;
	w->open = true;
	ipoib_port_user(&w->port, w);
	return join_wire_group(w, out);
}

int wire_open_ib(struct wire *wire, const struct ipoib_opts *o, struct out *out)
{
	struct ib_wire *w = calloc(1, sizeof *w);
	struct ddps_umad_info *i = &wire->info;
	int res;

	if (!w) {
		out_error(out, 0, "fewer programs simultaneously", "not enough memory");
		return ST_FAILED;
	}
	res = open_wire_port(w, o, out);
	if (res) {
		ib_close(w);
		return res;
	}
	*wire = (struct wire){ .ops = w->port.verbs ? &verbs_ops : &ib_ops, .port = w };
	snprintf(i->device, sizeof i->device, "%.*s", (int)sizeof i->device - 1,
		 w->port.verbs ? ddps_ib_verbs_info(w->port.v)->device : "udp");
	i->port = w->port.verbs ? ddps_ib_verbs_info(w->port.v)->port : w->port.udp_cfg.udp_port;
	i->lid = ipoib_port_lid(&w->port);
	i->pkey = w->port.pkey;
	memcpy(i->gid, w->port.gid, sizeof i->gid);
	i->ca_guid = w->port.guid;
	return ST_DONE;
}
