/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports come and go with their interfaces; the system says, and those are informed who have opened a device. */
#include "verbs/vd.h"
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <unistd.h>

void vd_ports_open(struct vd_process *p)
{
	struct sockaddr_nl groups = { .nl_family = AF_NETLINK,
				      .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR };

	p->link_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (p->link_fd < 0 || !bind(p->link_fd, (struct sockaddr *)&groups, sizeof groups))
		return;
	close(p->link_fd);
	p->link_fd = -1; /* a sandbox that has none: there are no such events */
}

static struct vd_port_seen read_port_state(const struct ibv_context *ctx, unsigned port)
{
	struct vd_port_seen s;

	memset(&s, 0, sizeof s);
	s.up = vd_port_now(ctx, port, &s.gid);
	return s;
}

void vd_ports_note(struct vd_context *c)
{
	for (unsigned i = 1; c->p->link_fd >= 0 && i <= vd_port_count(&c->v.context); i++)
		c->port[i - 1] = read_port_state(&c->v.context, i);
}

/* An address that changes while the port is up is another GID. */
static void compare_port_state(struct vd_context *c, unsigned port)
{
	struct vd_port_seen is = read_port_state(&c->v.context, port), was = c->port[port - 1];
	union {
		int number;
		void *element;
	} which = { .element = NULL };

	c->port[port - 1] = is;
	which.number = (int)port;
	if (is.up != was.up)
		vd_async_post(&c->v.context, is.up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR,
			      which.element);
	else if (is.up && memcmp(&is.gid, &was.gid, sizeof is.gid))
		vd_async_post(&c->v.context, IBV_EVENT_GID_CHANGE, which.element);
}

void vd_ports_look(struct vd_process *p)
{
	struct vd_context *c;
	char news[4096];

	ddps_assert_held(&p->lock);
	/* What they say does not matter; some may have been lost (ENOBUFS). */
	while (recv(p->link_fd, news, sizeof news, 0) > 0)
		;
	ddps_lock(&p->named_lock);
	LIST_FOREACH(c, &p->contexts, link)
		for (unsigned i = 1; i <= vd_port_count(&c->v.context); i++)
			compare_port_state(c, i);
	ddps_unlock(&p->named_lock);
}
