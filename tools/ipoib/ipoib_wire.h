/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_IPOIB_WIRE_H
#define SESSCTL_IPOIB_WIRE_H
/*
 * What carries the CM messages of sessctl ipoib connect and listen: an InfiniBand port
 * (ipoib_wire.c), or one whose packets travel in UDP (ipoib_wire_ib.c).
 */
#include "ipoib/ipoib.h"
#include "cli/out/out.h"
#include <ddpsess/ib_umad.h>

struct wire_ops {
	const char *name;
	const char *no_path; /* what to try if there is no path */
	/* As ddps_umad_send, _recv and _path; @path waits as long as it is worth. */
	int (*send)(void *port, ddps_cm_addr to, const uint8_t mad[DDPS_CM_MAD_LEN]);
	int (*recv)(void *port, int timeout_ms, uint8_t mad[DDPS_CM_MAD_LEN], ddps_cm_addr *from);
	int (*path)(void *port, const uint8_t gid[DDPS_IPOIB_GID_LEN], struct ddps_sa_path *path);
	ddps_cm_addr (*addr)(void *port, const struct ddps_sa_path *path);
	uint16_t (*lid)(ddps_cm_addr addr);
	void (*close)(void *port);
};

struct wire {
	const struct wire_ops *ops;
	void *port;
	struct ddps_umad_info info; /* in UDP: device "udp", and its port number */
};

/* As --port says.  Return: an enum status, after saying what is wrong. */
int wire_open(struct wire *w, const struct ipoib_opts *o, struct out *out);
int wire_open_ib(struct wire *w, const struct ipoib_opts *o, struct out *out);
/* Also if it was never opened. */
void wire_close(struct wire *w);

#endif
