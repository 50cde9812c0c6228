/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The capture of a bridge: its CM messages and IPoIB frames as they would be on InfiniBand.
 * Packets in UDP have no GIDs, nor have all of an adapter.  The GID of such a sender is that of the
 * neighbour with its queue pair; of one that is not known it is made from the LID.
 */
#include "ipoib/show/capture.h"
#include "ipoib/bridge/ipoib_bridge.h"
#include "cli/sessctl.h"
#include <errno.h>
#include <string.h>

static uint64_t wall_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void report_capture_error(struct bridge *b)
{
	out_error(&b->out, 0, "a file in a directory that exists, is yours and has room",
		  "capture '%s': %s", b->o->capture, strerror(errno));
}

/* A capture that cannot be written ends, the bridge does not. */
static void end_bridge_capture(struct bridge *b)
{
	report_capture_error(b);
	fclose(b->capture);
	b->capture = NULL;
}

int bridge_capture_open(struct bridge *b)
{
	if (!b->o->capture)
		return 0;
	b->capture = capture_create(b->o->capture);
	if (!b->capture)
		report_capture_error(b);
	return b->capture ? 0 : -1;
}

int bridge_capture_close(struct bridge *b)
{
	if (!b->capture || !fclose(b->capture))
		return 0;
	report_capture_error(b);
	return -1;
}

void bridge_trace(void *user, bool tx, ddps_cm_addr addr, const void *mad, size_t len, uint64_t now)
{
	struct bridge *b = user;
	struct capture_mad m = { .pkey = b->cfg.me.pkey, .mad = mad };

	(void)now;
	if (tx && len == DDPS_CM_MAD_LEN)
		bridge_count_rejected(b, mad);
	if (!b->capture || len != DDPS_CM_MAD_LEN)
		return;
	m.time_ns = wall_clock();
	m.slid = tx ? ipoib_port_lid(&b->port) : (uint16_t)addr;
	m.dlid = tx ? (uint16_t)addr : ipoib_port_lid(&b->port);
	if (capture_write(b->capture, &m))
		end_bridge_capture(b);
}

/*
 * The GID of the node with this UD queue pair, of its neighbours' table.  Return: false: there is none, or
 * two nodes have the same number.
 */
static bool gid_of_qpn(const struct bridge *b, uint32_t qpn, uint8_t gid[DDPS_IPOIB_GID_LEN])
{
	struct ddps_ipoib_if_nbr_info n;
	bool found = false;
	int res;

	for (unsigned i = 0; (res = ddps_ipoib_if_nbr_info(b->f, i, &n)) >= 0; i++) {
		if (!res || !n.has_lladdr || n.lladdr.qpn != qpn)
			continue;
		if (found && memcmp(gid, n.lladdr.gid, DDPS_IPOIB_GID_LEN) != 0)
			return false;
		memcpy(gid, n.lladdr.gid, DDPS_IPOIB_GID_LEN);
		found = true;
	}
	return found;
}

/* Who sent it, where its packet does not say that. */
static void guess_sender(const struct bridge *b, const struct ddps_ib_seen *s,
			 uint8_t gid[DDPS_IPOIB_GID_LEN])
{
	if (gid_of_qpn(b, s->from_qpn, gid))
		return;
	memset(gid, 0, DDPS_IPOIB_GID_LEN);
	gid[0] = 0xfe;
	gid[1] = 0x80;
	gid[DDPS_IPOIB_GID_LEN - 2] = (uint8_t)(s->slid >> 8);
	gid[DDPS_IPOIB_GID_LEN - 1] = (uint8_t)s->slid;
}

void bridge_see(void *user, const struct ddps_ib_seen *s)
{
	struct bridge *b = user;
	uint8_t gid[DDPS_IPOIB_GID_LEN];
	struct capture_frame m = {
		.slid = s->slid,
		.dlid = s->dlid,
		.pkey = b->cfg.me.pkey,
		.connected = s->connected,
		.uc = s->uc,
		.from_qpn = s->from_qpn,
		.to_qpn = s->to_qpn,
		.qkey = s->qkey,
		.from = s->from_gid ? s->from_gid : gid,
		.to = s->to_gid ? s->to_gid : gid,
		.frame = s->frame,
		.len = s->len,
		.mtu = b->o->link_mtu, /* of elsewhere it is not known */
	};

	if (!b->capture)
		return;
	if (!s->connected && !s->from_gid)
		guess_sender(b, s, gid);
	m.time_ns = wall_clock();
	if (capture_write_frame(b->capture, &m))
		end_bridge_capture(b);
}
