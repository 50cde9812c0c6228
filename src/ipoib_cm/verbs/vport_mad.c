/* SPDX-License-Identifier: BSD-2-Clause */
/* MADs by libibumad: CM messages, queries to the subnet administration, and its reports. */
#include "ipoib_cm/verbs/vport_in.h"
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define OFF_CLASS   1
#define OFF_METHOD  3
#define METHOD_SEND 3
#define ANSWER_MS   290 /* a little less than the client's own time until it asks again */
#define TURN	    64	/* messages in one turn */
#define MASK_LEN    (16 / sizeof(long))

static int take_mad_refusal(struct ddps_ib_verbs *v, int err)
{
	if (err == ENOENT || err == ENODEV || err == ENXIO)
		ddps_vport_say(v, "%s:%u has no device for MADs; try: modprobe ib_umad",
			       v->info.device, v->info.port);
	else if (err == EACCES || err == EPERM)
		ddps_vport_say(v,
			       "no permission for the MADs of %s:%u (/dev/infiniband/umad*); try: "
			       "root, or a udev rule that gives you the device",
			       v->info.device, v->info.port);
	else
		ddps_vport_say(v, "the MADs of %s:%u: %s", v->info.device, v->info.port,
			       strerror(err));
	errno = err;
	return DDPS_E_SYSTEM;
}

static int register_agents(struct ddps_ib_verbs *v)
{
	const struct ddps_umad_lib *l = &v->lib.umad;
	long cm[MASK_LEN] = { 1L << METHOD_SEND }, report[MASK_LEN] = { 1L << DDPS_SA_REPORT };

	v->cm_agent = l->umad_register(v->umad, DDPS_CM_CLASS, DDPS_CM_VERSION, 0, cm);
	if (v->cm_agent < 0) {
		ddps_vport_say(v,
			       "%s:%u does not give its CM messages away: the kernel's ib_cm has "
			       "them; try: modprobe -r ib_ipoib rdma_ucm rdma_cm ib_cm",
			       v->info.device, v->info.port);
		return DDPS_E_BUSY;
	}
	if (v->info.roce)
		return 0;
	v->sa_agent = l->umad_register(v->umad, DDPS_SA_CLASS, DDPS_SA_VERSION, 0, NULL);
	if (v->sa_agent < 0) {
		ddps_vport_say(v, "%s:%u takes no queries to the subnet administration (error %d)",
			       v->info.device, v->info.port, v->sa_agent);
		return DDPS_E_SYSTEM;
	}
	/* without them groups that appear later are found by asking again */
	v->report_agent = l->umad_register(v->umad, DDPS_SA_CLASS, DDPS_SA_VERSION, 0, report);
	v->stats.no_reports = v->report_agent < 0;
	return 0;
}

int ddps_vport_mad_open(struct ddps_ib_verbs *v)
{
	const struct ddps_umad_lib *l = &v->lib.umad;
	int fd;

	errno = 0;
	if (l->umad_init() < 0)
		return take_mad_refusal(v, errno ? errno : ENODEV);
	errno = 0;
	v->umad = l->umad_open_port(v->info.device, v->info.port);
	if (v->umad < 0)
		return take_mad_refusal(v, errno ? errno : -v->umad);
	fd = l->umad_get_fd(v->umad);
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK))
		return take_mad_refusal(v, errno);
	/* the size of libibumad's header is settled only now */
	v->mad = calloc(1, l->umad_size() + DDPS_CM_MAD_LEN);
	if (!v->mad) {
		ddps_vport_say(v, "out of memory");
		return DDPS_E_NOMEM;
	}
	return register_agents(v);
}

void ddps_vport_mad_close(struct ddps_ib_verbs *v)
{
	if (v->umad >= 0)
		v->lib.umad.umad_close_port(v->umad);
	v->umad = -1;
	free(v->mad);
}

/* ---- out ---- */

static int put_vport_mad(struct ddps_ib_verbs *v, int agent, const struct vp_way *w,
			 uint16_t pkey_index, int timeout_ms, const uint8_t mad[DDPS_CM_MAD_LEN])
{
	const struct ddps_umad_lib *l = &v->lib.umad;
	ib_mad_addr_t *a;

	memset(v->mad, 0, l->umad_size() + DDPS_CM_MAD_LEN);
	memcpy(l->umad_get_mad(v->mad), mad, DDPS_CM_MAD_LEN);
	l->umad_set_addr(v->mad, w->dlid, 1, w->sl, (int)DDPS_CM_QKEY);
	l->umad_set_pkey(v->mad, pkey_index);
	a = l->umad_get_mad_addr(v->mad);
	a->path_bits = w->bits;
	a->grh_present = w->grh;
	if (w->grh) {
		memcpy(a->gid, w->gid, sizeof(a->gid));
		a->gid_index = v->info.gid_index;
		a->hop_limit = w->hop;
		a->traffic_class = w->tclass;
		a->flow_label = htobe32(w->flow);
	}
	if (l->umad_send(v->umad, agent, v->mad, DDPS_CM_MAD_LEN, timeout_ms, 0) < 0) {
		v->stats.mad_tx_failed++;
		return DDPS_E_SYSTEM;
	}
	v->stats.mad_tx++;
	return 0;
}

int ddps_vport_mad_send(struct ddps_ipoib_port *port, ddps_cm_addr to,
			const uint8_t mad[DDPS_CM_MAD_LEN])
{
	struct ddps_ib_verbs *v = VPORT(port);
	uint16_t pkey_index;
	struct vp_way w;

	if (!ddps_vport_way(v, to, &w, &pkey_index))
		return DDPS_E_ADDRESS;
	return put_vport_mad(v, v->cm_agent, &w, pkey_index, 0, mad);
}

/* Queries and answers to reports: the kernel passes an answer on only while it waits for one. */
void ddps_vport_sa_send(struct ddps_ib_verbs *v, const uint8_t mad[DDPS_CM_MAD_LEN])
{
	bool answer = mad[OFF_METHOD] & DDPS_SA_RESPONSE;
	struct vp_way w = { .dlid = v->info.sm_lid, .sl = v->sm_sl };

	if (!v->info.active) {
		v->stats.mad_tx_failed++;
		return;
	}
	if (v->info.roce) {
		ddps_vport_roce_query(v, mad);
		return;
	}
	if (!w.dlid) {
		ddps_vport_say(v, "%s:%u knows no subnet manager; try: start opensm",
			       v->info.device, v->info.port);
		v->stats.mad_tx_failed++;
		return;
	}
	(void)put_vport_mad(v, answer ? v->report_agent : v->sa_agent, &w, v->sa_pkey_index,
			    answer ? 0 : ANSWER_MS, mad);
}

/* ---- in ---- */

static ddps_cm_addr get_mad_sender(struct ddps_ib_verbs *v, const ib_mad_addr_t *a)
{
	struct vp_way w = { .dlid = be16toh(a->lid),
			    .sl = a->sl,
			    .bits = a->path_bits,
			    .grh = a->grh_present,
			    .hop = a->hop_limit,
			    .tclass = a->traffic_class,
			    .flow = be32toh(a->flow_label) & 0xfffff };

	if (w.grh)
		memcpy(w.gid, a->gid, sizeof(w.gid));
	else
		w.hop = w.tclass = 0, w.flow = 0;
	return ddps_vport_addr(v, &w, a->pkey_index);
}

static void take_vport_mads(struct ddps_ib_verbs *v, int agent)
{
	const struct ddps_umad_lib *l = &v->lib.umad;
	ddps_cm_addr from = get_mad_sender(v, l->umad_get_mad_addr(v->mad));
	uint8_t mad[DDPS_CM_MAD_LEN];

	/* another message may be sent from the buffer while this one is looked at */
	memcpy(mad, l->umad_get_mad(v->mad), sizeof(mad));
	if (agent == v->cm_agent && mad[OFF_CLASS] == DDPS_CM_CLASS) {
		v->stats.mad_rx++;
		v->cfg.up->mad(v->user, from, mad, sizeof(mad), v->now);
	} else if ((agent == v->sa_agent || agent == v->report_agent) &&
		   mad[OFF_CLASS] == DDPS_SA_CLASS) {
		v->stats.mad_rx++;
		ddps_sac_rx(v->sac, mad, v->now);
	} else {
		v->stats.mad_bad++;
	}
}

bool ddps_vport_mad_run(struct ddps_ib_verbs *v)
{
	const struct ddps_umad_lib *l = &v->lib.umad;

	for (unsigned i = 0; i < TURN; i++) {
		int len = DDPS_CM_MAD_LEN, agent;

		memset(v->mad, 0, l->umad_size() + DDPS_CM_MAD_LEN);
		agent = l->umad_recv(v->umad, v->mad, &len, 0);
		if (agent < 0)
			return false;
		if (l->umad_status(v->mad)) /* not received but sent, in vain */
			v->stats.mad_undelivered++;
		else if (len != DDPS_CM_MAD_LEN)
			v->stats.mad_bad++;
		else
			take_vport_mads(v, agent);
	}
	return true;
}
