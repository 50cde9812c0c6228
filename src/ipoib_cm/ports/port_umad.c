/* SPDX-License-Identifier: BSD-2-Clause */
/* The libibumad port: opening, sending, receiving.  port_umad_lib.c has the SA queries. */
#include "ipoib_cm/ports/port_sa.h"
#include "ipoib_cm/ports/port_umad_priv.h"
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT_ACTIVE 4
#define METHOD_SEND 3

/* ---- addresses: LID, service level, source path bits, index of the P_Key ---- */

static ddps_cm_addr make_addr(uint16_t lid, uint8_t sl, uint8_t path_bits, uint16_t pkey_index)
{
	return (uint64_t)lid | (uint64_t)sl << 16 | (uint64_t)path_bits << 24 |
	       (uint64_t)pkey_index << 32;
}

ddps_cm_addr ddps_umad_addr(const struct ddps_sa_path *p)
{
	return make_addr(p->path.remote_lid, p->path.sl, 0, 0);
}

uint16_t ddps_umad_lid(ddps_cm_addr addr)
{
	return (uint16_t)addr;
}

/* ---- opening ---- */

static void set_gid(uint8_t gid[DDPS_IPOIB_GID_LEN], const umad_port_t *port)
{
	memcpy(gid, &port->gid_prefix, 8);
	memcpy(gid + 8, &port->port_guid, 8);
}

static int get_umad_info(struct ddps_umad *u, const char *device, int port, char *why,
			 size_t why_len)
{
	struct ddps_umad_info *i = &u->info;
	umad_port_t p;
	umad_ca_t ca;

	if (u->lib.umad_get_port(device, port, &p) < 0) {
		snprintf(why, why_len, "no InfiniBand port%s%s on this machine",
			 device ? " of device " : "", device ? device : "");
		return DDPS_E_UNSUPPORTED;
	}
	snprintf(i->device, sizeof(i->device), "%s", p.ca_name);
	i->port = p.portnum;
	i->lid = (uint16_t)p.base_lid;
	i->sm_lid = (uint16_t)p.sm_lid;
	i->sm_sl = (uint8_t)p.sm_sl;
	i->pkey = p.pkeys_size ? p.pkeys[0] : 0xffff;
	set_gid(i->gid, &p);
	u->state = (int)p.state;
	u->lib.umad_release_port(&p);
	if (u->lib.umad_get_ca(i->device, &ca) < 0) {
		snprintf(why, why_len, "%s has no readable description", i->device);
		return DDPS_E_UNSUPPORTED;
	}
	i->ca_guid = be64toh(ca.node_guid);
	u->lib.umad_release_ca(&ca);
	if (u->state == PORT_ACTIVE && i->lid && i->sm_lid)
		return 0;
	snprintf(why, why_len, "port %s:%d is not active (state %d, LID %u, SM LID %u)", i->device,
		 i->port, u->state, i->lid, i->sm_lid);
	return DDPS_E_STATE;
}

static int register_classes(struct ddps_umad *u, char *why, size_t why_len)
{
	long methods[16 / sizeof(long)] = { 1L << METHOD_SEND };

	u->cm_agent = u->lib.umad_register(u->fd, DDPS_CM_CLASS, DDPS_CM_VERSION, 0, methods);
	if (u->cm_agent < 0) {
		snprintf(why, why_len,
			 "port %s:%d does not give its CM messages away (error %d): the kernel's "
			 "ib_cm has them",
			 u->info.device, u->info.port, u->cm_agent);
		return DDPS_E_BUSY;
	}
	u->sa_agent = u->lib.umad_register(u->fd, DDPS_SA_CLASS, DDPS_SA_VERSION, 0, NULL);
	if (u->sa_agent >= 0)
		return 0;
	snprintf(why, why_len, "port %s:%d refuses queries to the subnet administrator (error %d)",
		 u->info.device, u->info.port, u->sa_agent);
	return DDPS_E_SYSTEM;
}

static int open_umad_port(struct ddps_umad *u, const char *device, int port, char *why,
			  size_t why_len)
{
	int err = ddps_umad_lib_load(&u->lib, why, why_len);

	if (err)
		return err;
	if (u->lib.umad_init() < 0) {
		snprintf(why, why_len, "no InfiniBand device: the module ib_umad is not there");
		return DDPS_E_UNSUPPORTED;
	}
	err = get_umad_info(u, device, port, why, why_len);
	if (err)
		return err;
	u->fd = u->lib.umad_open_port(u->info.device, u->info.port);
	if (u->fd < 0) {
		snprintf(why, why_len, "port %s:%d cannot be opened: %s", u->info.device,
			 u->info.port, strerror(-u->fd));
		return DDPS_E_SYSTEM;
	}
	/* the size of libibumad's header is settled only now */
	u->buf = calloc(1, u->lib.umad_size() + DDPS_CM_MAD_LEN);
	if (!u->buf) {
		snprintf(why, why_len, "not enough memory");
		return DDPS_E_NOMEM;
	}
	return register_classes(u, why, why_len);
}

int ddps_umad_open(struct ddps_umad **out, const char *device, int port, char *why, size_t why_len)
{
	struct ddps_umad *u = calloc(1, sizeof(*u));
	int err;

	if (!u) {
		snprintf(why, why_len, "not enough memory");
		return DDPS_E_NOMEM;
	}
	u->fd = -1;
	err = open_umad_port(u, device, port, why, why_len);
	if (err) {
		ddps_umad_close(u);
		return err;
	}
	*out = u;
	return 0;
}

void ddps_umad_close(struct ddps_umad *u)
{
	if (!u)
		return;
	if (u->fd >= 0)
		u->lib.umad_close_port(u->fd);
	ddps_umad_lib_unload(&u->lib);
	free(u->buf);
	free(u);
}

const struct ddps_umad_info *ddps_umad_info(const struct ddps_umad *u)
{
	return &u->info;
}

const struct ddps_umad_stats *ddps_umad_stats(const struct ddps_umad *u)
{
	return &u->stats;
}

/* ---- messages ---- */

int ddps_umad_put(struct ddps_umad *u, int agent, ddps_cm_addr to, int timeout_ms,
		  const uint8_t mad[DDPS_CM_MAD_LEN])
{
	memset(u->buf, 0, u->lib.umad_size() + DDPS_CM_MAD_LEN);
	memcpy(u->lib.umad_get_mad(u->buf), mad, DDPS_CM_MAD_LEN);
	u->lib.umad_set_addr(u->buf, (uint16_t)to, 1, to >> 16 & 15, (int)DDPS_CM_QKEY);
	u->lib.umad_get_mad_addr(u->buf)->path_bits = (uint8_t)(to >> 24);
	u->lib.umad_set_pkey(u->buf, (int)(to >> 32 & 0xffff));
	return u->lib.umad_send(u->fd, agent, u->buf, DDPS_CM_MAD_LEN, timeout_ms, 0) < 0
		       ? DDPS_E_SYSTEM
		       : 0;
}

int ddps_umad_send(struct ddps_umad *u, ddps_cm_addr to, const uint8_t mad[DDPS_CM_MAD_LEN])
{
	return ddps_umad_put(u, u->cm_agent, to, 0, mad);
}

/* An interrupted poll in the library surfaces as EPERM; the simulator's empty read as -11. */
static bool is_nothing_received(int err)
{
	return err == -ETIMEDOUT || err == -EAGAIN || err == -EINTR || err == -EPERM;
}

int ddps_umad_get(struct ddps_umad *u, int timeout_ms, int *agent, struct ddps_umad_msg *m)
{
	int len = DDPS_CM_MAD_LEN, got;
	const ib_mad_addr_t *a;

	/* MADs have 256 octets, but a simulator passes on no more than its sender gave it */
	memset(u->buf, 0, u->lib.umad_size() + DDPS_CM_MAD_LEN);
	errno = 0;
	got = u->lib.umad_recv(u->fd, u->buf, &len, timeout_ms);
	if (got < 0)
		return is_nothing_received(got) || is_nothing_received(-errno) ? 0 : DDPS_E_SYSTEM;
	if (u->lib.umad_status(u->buf)) { /* not received but sent, in vain */
		u->stats.undelivered++;
		return 0;
	}
	a = u->lib.umad_get_mad_addr(u->buf);
	m->from = make_addr(be16toh(a->lid), a->sl, a->path_bits, a->pkey_index);
	memcpy(m->mad, u->lib.umad_get_mad(u->buf), DDPS_CM_MAD_LEN);
	*agent = got;
	return 1;
}

int ddps_umad_recv(struct ddps_umad *u, int timeout_ms, uint8_t mad[DDPS_CM_MAD_LEN],
		   ddps_cm_addr *from)
{
	struct ddps_umad_msg m;
	int agent, res;

	if (u->n_kept) {
		m = u->kept[u->first_kept];
		u->first_kept = (u->first_kept + 1) % DDPS_UMAD_KEPT;
		u->n_kept--;
	} else {
		res = ddps_umad_get(u, timeout_ms, &agent, &m);
		if (res != 1 || agent != u->cm_agent) /* else a late answer of the SA */
			return res == 1 ? 0 : res;
	}
	memcpy(mad, m.mad, DDPS_CM_MAD_LEN);
	*from = m.from;
	return 1;
}
