/* SPDX-License-Identifier: BSD-2-Clause */
/* The device and its port: which one, what state it is in, its tables of GIDs and P_Keys. */
#include "ipoib_cm/verbs/vport_in.h"
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define PKEY_DEFAULT 0xffff
#define LMC_MAX	     7

static int query_vport_attr(struct ddps_ib_verbs *v, uint8_t port, struct ibv_port_attr *a)
{
	memset(a, 0, sizeof(*a)); /* an older library fills in less */
	return v->lib.query_port(v->ctx, port, (struct _compat_ibv_port_attr *)a);
}

static bool is_ib(const struct ibv_port_attr *a)
{
	return a->link_layer == IBV_LINK_LAYER_INFINIBAND ||
	       a->link_layer == IBV_LINK_LAYER_UNSPECIFIED;
}

/* RoCE is taken only from whoever names the device: its network is in use for other things. */
static bool is_roce(const struct ddps_ib_verbs *v, const struct ibv_port_attr *a)
{
	return v->cfg.device && a->link_layer == IBV_LINK_LAYER_ETHERNET && !v->iwarp;
}

/* The port that was asked for, or the first that fits, an active one if there is one; 0: none. */
static uint8_t choose_port(struct ddps_ib_verbs *v)
{
	struct ibv_device_attr dev;
	uint8_t found = 0;

	if (v->cfg.port)
		return v->cfg.port;
	if (v->lib.query_device(v->ctx, &dev))
		return 0;
	for (uint8_t i = 1; i && i <= dev.phys_port_cnt; i++) {
		struct ibv_port_attr a;

		if (query_vport_attr(v, i, &a) || !(is_ib(&a) || is_roce(v, &a)))
			continue;
		if (a.state == IBV_PORT_ACTIVE)
			return i;
		found = found ? found : i;
	}
	return found;
}

/* Return: 0; DDPS_E_UNSUPPORTED: not this one; DDPS_E_SYSTEM. */
static int open_one(struct ddps_ib_verbs *v, struct ibv_device *dev)
{
	snprintf(v->info.device, sizeof(v->info.device), "%s", v->lib.get_device_name(dev));
	errno = 0;
	v->ctx = v->lib.open_device(dev);
	if (!v->ctx) {
		int err = errno ? errno : EACCES;

		ddps_vport_say(v, "device %s cannot be opened: %s; try: %s", v->info.device,
			       strerror(err),
			       err == EACCES || err == EPERM
				       ? "root, or permission for /dev/infiniband/uverbs*"
				       : "modprobe ib_uverbs");
		errno = err;
		return DDPS_E_SYSTEM;
	}
	v->info.node_guid = be64toh(v->lib.get_device_guid(dev));
	v->iwarp = dev->transport_type == IBV_TRANSPORT_IWARP;
	v->info.port = choose_port(v);
	if (v->info.port) {
		*v->why = '\0'; /* of devices that were passed over */
		return 0;
	}
	ddps_vport_say(
		v, "device %s has no port with an InfiniBand link layer; try: %s", v->info.device,
		v->iwarp ? "another device (ibv_devices): iWARP has no datagrams, so it cannot "
			   "carry IPoIB"
			 : "another device (ibv_devices), or name this one if it is RoCE");
	v->lib.close_device(v->ctx);
	v->ctx = NULL;
	return DDPS_E_UNSUPPORTED;
}

static int open_vport_device(struct ddps_ib_verbs *v)
{
	int n = 0, err = DDPS_E_UNSUPPORTED;
	struct ibv_device **list;

	list = v->lib.get_device_list(&n);
	if (!list || !n)
		ddps_vport_say(v, "no RDMA device on this machine; try: ibv_devices, modprobe "
				  "ib_uverbs and the adapter's driver; --port ib needs none");
	else if (v->cfg.device)
		ddps_vport_say(v, "no device '%s'; try: ibv_devices shows what there is",
			       v->cfg.device);
	for (int i = 0; list && i < n && err == DDPS_E_UNSUPPORTED; i++)
		if (!v->cfg.device || !strcmp(v->cfg.device, v->lib.get_device_name(list[i])))
			err = open_one(v, list[i]);
	if (list)
		v->lib.free_device_list(list);
	return err;
}

/* ---- the port ---- */

int ddps_vport_dev_refresh(struct ddps_ib_verbs *v)
{
	struct ibv_port_attr a;

	if (query_vport_attr(v, v->info.port, &a)) {
		ddps_vport_say(v, "%s has no port %u; try: ibv_devinfo shows which there are",
			       v->info.device, v->info.port);
		return DDPS_E_UNSUPPORTED;
	}
	v->info.roce = !is_ib(&a);
	if (v->info.roce && !is_roce(v, &a)) {
		ddps_vport_say(v,
			       "%s:%u has no InfiniBand link layer%s; try: another device or port "
			       "(ibv_devinfo)%s",
			       v->info.device, v->info.port,
			       v->iwarp ? ", and iWARP cannot carry IPoIB" : "",
			       v->iwarp ? "" : ", or name this device if it is RoCE");
		return DDPS_E_UNSUPPORTED;
	}
	v->info.lid = a.lid;
	v->info.lmc = a.lmc > LMC_MAX ? LMC_MAX : a.lmc;
	v->info.sm_lid = a.sm_lid;
	if (v->info.roce) {
		v->info.lid = v->info.sm_lid = 0;
		v->info.lmc = 0;
	}
	v->info.mtu = (uint8_t)a.active_mtu;
	v->info.active = a.state == IBV_PORT_ACTIVE;
	v->sm_sl = a.sm_sl & 15;
	v->grh_required = a.flags & IBV_QPF_GRH_REQUIRED;
	return 0;
}

/* What the configuration says of the link is for a link that has no administration. */
static int check_link(struct ddps_ib_verbs *v)
{
	if (!v->info.roce && (v->cfg.qkey || v->cfg.mtu))
		ddps_vport_say(
			v,
			"%s:%u is a port of InfiniBand: its subnet says the link's Q_Key and "
			"MTU; try: without these",
			v->info.device, v->info.port);
	else if (v->info.roce && v->cfg.mtu > v->info.mtu)
		ddps_vport_say(
			v,
			"a link MTU of %u octets is above the %u of %s:%u; try: a larger MTU "
			"of the network device",
			128u << v->cfg.mtu, 128u << v->info.mtu, v->info.device, v->info.port);
	else
		return 0;
	return DDPS_E_INVAL;
}

static int check_state(struct ddps_ib_verbs *v)
{
	struct ibv_port_attr a;

	if (query_vport_attr(v, v->info.port, &a) || a.state == IBV_PORT_NOP)
		ddps_vport_say(v, "%s:%u does not say its state", v->info.device, v->info.port);
	else if (a.state == IBV_PORT_DOWN)
		ddps_vport_say(v, "%s:%u is down; try: the cable, ibstat", v->info.device,
			       v->info.port);
	else if (a.state != IBV_PORT_ACTIVE && v->info.roce)
		ddps_vport_say(v, "%s:%u is not active; try: is its network device up (ip link)?",
			       v->info.device, v->info.port);
	else if (a.state != IBV_PORT_ACTIVE)
		ddps_vport_say(v,
			       "%s:%u has a link, but no subnet manager has made it active; try: "
			       "start opensm on one node of the fabric",
			       v->info.device, v->info.port);
	else if (!v->info.roce && (!a.lid || !a.sm_lid))
		ddps_vport_say(v,
			       "%s:%u is active without a %s; try: start opensm, sminfo shows it",
			       v->info.device, v->info.port, a.lid ? "subnet manager" : "LID");
	else if (v->info.mtu < 1 || v->info.mtu > 5)
		ddps_vport_say(v, "%s:%u has an MTU that cannot be", v->info.device, v->info.port);
	else
		return 0;
	return DDPS_E_STATE;
}

int ddps_vport_dev_pkeys(struct ddps_ib_verbs *v)
{
	struct ibv_port_attr a;
	bool found = false, full = false;
	int n = query_vport_attr(v, v->info.port, &a) ? 0 : a.pkey_tbl_len;

	v->sa_pkey_index = 0;
	for (int i = 0; i < n && i < 0x8000; i++) {
		__be16 at;
		uint16_t pkey;

		if (v->lib.query_pkey(v->ctx, v->info.port, i, &at))
			continue;
		pkey = be16toh(at);
		if ((pkey & 0x7fff) == (PKEY_DEFAULT & 0x7fff))
			v->sa_pkey_index = (uint16_t)i;
		if (!(pkey & 0x7fff) || (pkey ^ v->cfg.pkey) & 0x7fff || full)
			continue;
		if (found && !(pkey & 0x8000))
			continue;
		found = true;
		full = pkey & 0x8000;
		v->pkey_index = (uint16_t)i;
		v->info.pkey = pkey;
	}
	if (found)
		return 0;
	ddps_vport_say(v,
		       "P_Key 0x%04x is not in the table of %s:%u; try: the subnet manager's "
		       "partitions, /sys/class/infiniband/%s/ports/%u/pkeys",
		       v->cfg.pkey, v->info.device, v->info.port, v->info.device, v->info.port);
	return DDPS_E_ADDRESS;
}

int ddps_vport_dev_gid(struct ddps_ib_verbs *v)
{
	static const union ibv_gid none;
	union ibv_gid gid = none;

	v->info.gid_index = v->info.roce ? v->info.gid_index : v->cfg.gid_index;
	if (v->info.roce)
		return ddps_vport_roce_gid(v);
	if (v->lib.query_gid(v->ctx, v->info.port, v->cfg.gid_index, &gid) ||
	    !memcmp(gid.raw, none.raw, sizeof(gid.raw))) {
		ddps_vport_say(v, "%s:%u has no GID with index %u; try: ibv_devinfo -v shows them",
			       v->info.device, v->info.port, v->cfg.gid_index);
		return DDPS_E_ADDRESS;
	}
	memcpy(v->info.gid, gid.raw, sizeof(v->info.gid));
	return 0;
}

int ddps_vport_dev_open(struct ddps_ib_verbs *v)
{
	int err = open_vport_device(v);

	if (!err)
		err = ddps_vport_dev_refresh(v);
	if (!err)
		err = check_link(v);
	if (!err)
		err = check_state(v);
	if (!err)
		err = ddps_vport_dev_gid(v);
	if (!err)
		err = ddps_vport_dev_pkeys(v);
	if (err)
		return err;
	(void)fcntl(v->ctx->async_fd, F_SETFL, fcntl(v->ctx->async_fd, F_GETFL) | O_NONBLOCK);
	v->pd = v->lib.alloc_pd(v->ctx);
	if (v->pd)
		return 0;
	ddps_vport_say(v, "%s gives no protection domain: %s", v->info.device, strerror(errno));
	return DDPS_E_SYSTEM;
}

void ddps_vport_dev_close(struct ddps_ib_verbs *v)
{
	if (v->pd)
		v->lib.dealloc_pd(v->pd);
	if (v->ctx)
		v->lib.close_device(v->ctx);
	v->pd = NULL;
	v->ctx = NULL;
}
