/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib/conform/adapter.h"
#include "cli/sessctl.h"
#include <poll.h>
#include <string.h>

#define OCTETS (2u << 20) /* of locked memory each way: it is registered again and again */
#define QPS    64

int adapter_configure(struct adapter *a, uint32_t seed, char *why, size_t why_len)
{
	if (!strcmp(a->o->port, "ib")) {
		snprintf(why, why_len,
			 "--port: packets in UDP are the default here, with --udp; or verbs, "
			 "verbs:DEVICE");
		return -1;
	}
	if (ipoib_port_configure(&a->port, a->o, 0, seed, why, why_len))
		return -1;
	a->port.verbs_cfg.rx_octets = a->port.verbs_cfg.tx_octets = OCTETS;
	a->port.verbs_cfg.max_qps = QPS;
	return 0;
}

static struct ddps_ipoib_port *open_adapter(void *user, const struct ddps_ipoib_up *up,
					    void *up_user, struct ddps_conform_ipoib_node *node,
					    char *why, size_t why_len)
{
	struct adapter *a = user;
	struct ipoib_port *p = &a->port;

	p->verbs_cfg.device = *p->device ? p->device : NULL;
	p->verbs_cfg.up = up;
	p->verbs_cfg.seed++;
	if (ddps_ib_verbs_new(&p->v, &p->verbs_cfg, why, why_len))
		return NULL;
	ipoib_port_user(p, up_user);
	memcpy(node->gid, ddps_ib_verbs_info(p->v)->gid, sizeof node->gid);
	node->qpn = ddps_ib_verbs_info(p->v)->qpn;
	node->pkey = ddps_ib_verbs_info(p->v)->pkey;
	a->more = ipoib_port_run(p, clock_ns());
	return ipoib_port_port(p);
}

static void on_close(void *user)
{
	ipoib_port_close(&((struct adapter *)user)->port);
}

static void on_run(void *user, uint64_t until)
{
	struct adapter *a = user;
	uint64_t now = clock_ns(), due = ipoib_port_deadline(&a->port);
	struct pollfd fds[IPOIB_PORT_FDS];
	uint64_t ns;

	due = due < until ? due : until;
	ns = a->more || due <= now ? 0 : due - now;
	ipoib_port_fds(&a->port, fds);
	(void)poll(fds, IPOIB_PORT_FDS, (int)((ns + NS_PER_MS - 1) / NS_PER_MS));
	a->more = ipoib_port_run(&a->port, clock_ns());
}

static unsigned on_waiting(void *user, uint32_t qpn)
{
	return ddps_ib_verbs_waiting(((struct adapter *)user)->port.v, qpn);
}

struct ddps_conform_ipoib_fabric adapter_fabric(struct adapter *a)
{
	return (struct ddps_conform_ipoib_fabric){ .struct_size =
							   sizeof(struct ddps_conform_ipoib_fabric),
						   .user = a,
						   .open = open_adapter,
						   .close = on_close,
						   .run = on_run,
						   .waiting = on_waiting };
}
