/* SPDX-License-Identifier: BSD-2-Clause */
/* What carries IPoIB for a command: one of two ports of the library, by --port. */
#include "ipoib/ipoib_port.h"
#include "cli/sessctl.h"
#include <errno.h>
#include <string.h>

#define ADVICE "; try: " /* so ends what an adapter's port says */

static int configure_udp(struct ipoib_port *p, const struct ipoib_opts *o, char *why,
			 size_t why_len)
{
	if (!o->gid || !o->udp)
		snprintf(why, why_len, "--port ib needs --gid, --udp and --sa");
	else if (ib_opts_configure(&p->udp_cfg, o, why, why_len))
		return -1;
	else if (ddps_ipoib_gid_parse(p->gid, o->gid))
		snprintf(why, why_len, "--gid: '%s' is not written like an IPv6 address", o->gid);
	else
		return 0;
	return -1;
}

static int configure_verbs(struct ipoib_port *p, const struct ipoib_opts *o, char *why,
			   size_t why_len)
{
	int port;

	if (ib_opts_device(o->port, "verbs", p->device, &port)) {
		snprintf(why, why_len,
			 "--port: '%s' is not ib, verbs, verbs:DEVICE or verbs:DEVICE:PORT",
			 o->port);
		return -1;
	}
	if (o->gid || o->udp || o->sa || o->lifetime != IPOIB_UNSET) {
		snprintf(why, why_len,
			 "--gid, --udp, --sa and --lifetime go with --port ib: with verbs the "
			 "adapter and its subnet say these");
		return -1;
	}
	for (; o->link_mtu && 128u << p->verbs_cfg.mtu != o->link_mtu; p->verbs_cfg.mtu++)
		if (p->verbs_cfg.mtu == 5) {
			snprintf(why, why_len, "--link-mtu: %u is not 256, 512, 1024, 2048 or 4096",
				 (unsigned)o->link_mtu);
			return -1;
		}
	p->verbs = true;
	p->verbs_cfg.port = (uint8_t)port;
	if (o->qkey != IPOIB_UNSET)
		p->verbs_cfg.qkey = (uint32_t)o->qkey;
	if (o->pkey != IPOIB_UNSET)
		p->verbs_cfg.pkey = (uint16_t)o->pkey;
	if (p->verbs_cfg.pkey & 0x7fff)
		return 0;
	snprintf(why, why_len, "--pkey: 0 and 0x8000 are no P_Keys");
	return -1;
}

int ipoib_port_configure(struct ipoib_port *p, const struct ipoib_opts *o, uint32_t qpn,
			 uint32_t seed, char *why, size_t why_len)
{
	int err;

	ddps_ib_udp_config_init(&p->udp_cfg);
	ddps_ib_verbs_config_init(&p->verbs_cfg);
	err = strcmp(o->port, "ib") != 0 ? configure_verbs(p, o, why, why_len)
					 : configure_udp(p, o, why, why_len);
	if (err)
		return -1;
	memcpy(p->udp_cfg.gid, p->gid, sizeof p->gid);
	for (unsigned i = 8; i < DDPS_IPOIB_GID_LEN; i++)
		p->guid = p->guid << 8 | p->gid[i];
	p->qpn = p->udp_cfg.qpn = qpn;
	p->pkey = p->udp_cfg.pkey;
	p->udp_cfg.seed = p->verbs_cfg.seed = seed;
	return 0;
}

void ipoib_port_error(struct out *out, const char *what, const char *why)
{
	const char *advice = strstr(why, ADVICE);

	out_error(out, 0, advice ? advice + strlen(ADVICE) : "dmesg, and what ibv_devinfo says",
		  "%s: %.*s", what, (int)(advice ? advice - why : (ptrdiff_t)strlen(why)), why);
}

static int open_verbs(struct ipoib_port *p, struct out *out)
{
	const struct ddps_ib_verbs_info *info;
	char why[500];

	p->verbs_cfg.device = *p->device ? p->device : NULL;
	if (ddps_ib_verbs_new(&p->v, &p->verbs_cfg, why, sizeof why)) {
		ipoib_port_error(out, "port verbs", why);
		return ST_FAILED;
	}
	info = ddps_ib_verbs_info(p->v);
	memcpy(p->gid, info->gid, sizeof p->gid);
	p->qpn = info->qpn;
	p->pkey = info->pkey;
	p->guid = info->node_guid;
	return ST_DONE;
}

static const char *system_advice(int err)
{
	const char *advice = err == EPERM || err == EACCES
				     ? "an address and a port that you may use"
				     : ib_opts_advice(err);

	return advice ? advice : "another --udp";
}

int ipoib_port_open(struct ipoib_port *p, const struct ddps_ipoib_up *up,
		    void (*see)(void *user, const struct ddps_ib_seen *s), void *see_user,
		    struct out *out)
{
	char why[400];
	int err;

	p->out = out;
	p->udp_cfg.up = p->verbs_cfg.up = up;
	p->udp_cfg.see = p->verbs_cfg.see = see;
	p->udp_cfg.see_user = p->verbs_cfg.see_user = see_user;
	if (p->verbs)
		return open_verbs(p, out);
	err = ddps_ib_udp_new(&p->udp, &p->udp_cfg, why, sizeof why);
	if (!err)
		return ST_DONE;
	out_error(out, 0,
		  err == DDPS_E_SYSTEM ? system_advice(errno) : "other --udp, --sa or --pkey",
		  "port ib: %s", why);
	return ST_FAILED;
}

void ipoib_port_close(struct ipoib_port *p)
{
	ddps_ib_udp_free(p->udp);
	ddps_ib_verbs_free(p->v);
	p->udp = NULL;
	p->v = NULL;
}

struct ddps_ipoib_port *ipoib_port_port(const struct ipoib_port *p)
{
	return p->verbs ? ddps_ib_verbs_port(p->v) : ddps_ib_udp_port(p->udp);
}

void ipoib_port_user(const struct ipoib_port *p, void *user)
{
	if (p->verbs)
		ddps_ib_verbs_user(p->v, user);
	else
		ddps_ib_udp_user(p->udp, user);
}

/* Packets that are not sent, and what the administration, if it is here, has found out about its subnet. */
static void tell_notices(struct ipoib_port *p)
{
	const char *notice;

	while ((notice = ddps_ib_udp_notice(p->udp))) {
		snprintf(p->notice, sizeof p->notice, "%s", notice);
		if (p->out->json)
			json_out_line(p->out, json_pack("{ss ss}", "event", "subnet_notice", "why",
							notice));
		else
			fprintf(p->out->err, "port ib: %s\n", notice);
		out_flush(p->out);
	}
}

bool ipoib_port_run(struct ipoib_port *p, uint64_t now)
{
	bool more = p->verbs ? ddps_ib_verbs_run(p->v, now) : ddps_ib_udp_run(p->udp, now);

	if (!p->verbs)
		tell_notices(p);
	return more;
}

void ipoib_port_fds(const struct ipoib_port *p, struct pollfd fds[IPOIB_PORT_FDS])
{
	for (unsigned i = 0; i < IPOIB_PORT_FDS; i++)
		fds[i] = (struct pollfd){ .fd = -1 };
	if (p->verbs)
		ddps_ib_verbs_fds(p->v, fds);
	else
		ddps_ib_udp_fds(p->udp, fds);
}

bool ipoib_port_busy(const struct ipoib_port *p)
{
	return p->verbs ? ddps_ib_verbs_busy(p->v) : ddps_ib_udp_busy(p->udp);
}

uint64_t ipoib_port_deadline(const struct ipoib_port *p)
{
	return p->verbs ? ddps_ib_verbs_deadline(p->v) : ddps_ib_udp_deadline(p->udp);
}

uint16_t ipoib_port_lid(const struct ipoib_port *p)
{
	return p->verbs ? ddps_ib_verbs_info(p->v)->lid : ddps_ib_udp_lid(p->udp);
}

const char *ipoib_port_why(const struct ipoib_port *p)
{
	if (p->verbs)
		return ddps_ib_verbs_why(p->v);
	return p->udp ? ddps_ib_udp_why(p->udp) : "";
}

json_t *ipoib_port_counters(const struct ipoib_port *p)
{
	json_t *j = json_object();
	const char *name;
	uint64_t value;

	for (unsigned i = 0; (name = p->verbs ? ddps_ib_verbs_counter(p->v, i, &value)
					      : ddps_ib_udp_counter(p->udp, i, &value));
	     i++)
		json_object_set_new(j, name, json_integer((json_int_t)value));
	return j;
}

void ipoib_port_describe(const struct ipoib_port *p, json_t *j)
{
	const struct ddps_ib_verbs_info *info;

	if (!p->verbs) {
		json_object_set_new(j, "udp_port", json_integer(p->udp_cfg.udp_port));
		return;
	}
	info = ddps_ib_verbs_info(p->v);
	json_object_set_new(j, "device", json_string(info->device));
	json_object_set_new(j, "port_number", json_integer(info->port));
}
