/* SPDX-License-Identifier: BSD-2-Clause */
/* CM messages of sessctl ipoib connect and listen over an InfiniBand port. */
#include "ipoib/ipoib_wire.h"
#include "cli/sessctl.h"
#include <stdlib.h>
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
	.addr = ddps_umad_addr,
	.lid = ddps_umad_lid,
	.close = umad_close,
};

/* umad[:DEVICE[:PORT]].  Return: 0 or -1. */
static int split_port(const char *text, char device[32], int *port)
{
	char *colon, *end;
	long n;

	device[0] = 0;
	*port = 0;
	if (!strcmp(text, "umad"))
		return 0;
	if (strncmp(text, "umad:", 5) != 0 || strlen(text + 5) >= 32)
		return -1;
	strcpy(device, text + 5);
	colon = strchr(device, ':');
	if (colon) {
		*colon++ = 0;
		n = strtol(colon, &end, 10);
		if (*end || end == colon || n < 1 || n > 254)
			return -1;
		*port = (int)n;
	}
	return *device ? 0 : -1;
}

int wire_open(struct wire *w, const struct ipoib_opts *o, struct out *out)
{
	char device[32], why[300];
	struct ddps_umad *u;
	int port, err;

	if (!strcmp(o->port, "ib"))
		return wire_open_ib(w, o, out);
	if (split_port(o->port, device, &port)) {
		out_error(out, 0, "umad, umad:DEVICE, umad:DEVICE:PORT or ib", "no port '%s'",
			  o->port);
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
