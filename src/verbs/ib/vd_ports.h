/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VERBS_VD_PORTS_H
#define DDPS_VERBS_VD_PORTS_H
/* Events of ports whose interfaces go and come. */
#include <infiniband/verbs.h>
#include <stdbool.h>

#define VD_PORTS 4 /* of a device */

struct vd_process;
struct vd_context;

/* What was there of a port when it was looked at last. */
struct vd_port_seen {
	bool up;
	union ibv_gid gid;
};

/* The process is informed of interfaces from now on, if it can be. */
void vd_ports_open(struct vd_process *p);
/* What there is now, to be compared with. */
void vd_ports_note(struct vd_context *c);
/* Something has changed: PORT_ERR, PORT_ACTIVE, GID_CHANGE; the process's lock is held. */
void vd_ports_look(struct vd_process *p);

#endif
