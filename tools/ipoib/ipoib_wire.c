/* SPDX-License-Identifier: BSD-2-Clause */
/* CM messages of sessctl ipoib connect and listen over an InfiniBand port. */
#include "ipoib/ipoib_port.h"
#include "ipoib/ipoib_wire.h"
#include "cli/sessctl.h"
#include <string.h>

#define PATH_TRIES 10
#define PATH_WAIT  500 /* ms for each */

static int umad_send(void *port, ddps_cm_addr to, const uint8_t mad[DDPS_CM_MAD_LEN])
{
	return ddps_umad_send(port, to, mad);
}

static int umad_recv(void *port, int timeout_ms, uint8_t mad[DDPS_CM_MAD_LEN], ddps_cm_addr *from)
{
	return ddps_umad_recv(port, timeout_ms, mad, from);
}

static int umad_path(void *port, const uint8_t gid[DDPS_IPOIB_GID_LEN], struct ddps_sa_path *path)
{
	return ddps_umad_path(port, gid, PATH_TRIES, PATH_WAIT, path);
}

static ddps_cm_addr umad_addr(void *port, const struct ddps_sa_path *path)
{
	(void)port;
	return ddps_umad_addr(path);
}

static void umad_close(void *port)
{
	ddps_umad_close(port);
}

static const struct wire_ops umad_ops = {
	.name = "umad",
	.no_path = "check that opensm runs and that the GID is one of this subnet",
	.send = umad_send,
	.recv = umad_recv,
	.path = umad_path,
	.addr = umad_addr,
	.lid = ddps_umad_lid,
	.close = umad_close,
};

int wire_open(struct wire *w, const struct ipoib_opts *o, struct out *out)
{
	char device[IPOIB_DEVICE_LEN], why[300];
	struct ddps_umad *u;
	int port, err;

	if (!strcmp(o->port, "ib") || !strncmp(o->port, "verbs", 5))
		return wire_open_ib(w, o, out);
	if (ib_opts_device(o->port, "umad", device, &port)) {
		out_error(out, 0, "umad or verbs, with :DEVICE or :DEVICE:PORT behind it; ib",
			  "no port '%s'", o->port);
		return ST_USAGE;
	}
	err = ddps_umad_open(&u, *device ? device : NULL, port, why, sizeof why);
	if (!err) {
		*w = (struct wire){ .ops = &umad_ops, .port = u, .info = *ddps_umad_info(u) };
		return ST_DONE;
	}
	out_error(out, 0,
		  err == DDPS_E_BUSY	? "--port rdmacm, which goes through the kernel's ib_cm"
		  : err == DDPS_E_STATE ? "start a subnet manager (opensm), check the cable"
					: "--port ib without hardware; modprobe ib_umad with it",
		  "port %s: %s", o->port, why);
	return ST_FAILED;
}

void wire_close(struct wire *w)
{
	if (w->port)
		w->ops->close(w->port);
	w->port = NULL;
}
