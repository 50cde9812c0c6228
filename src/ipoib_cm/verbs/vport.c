/* SPDX-License-Identifier: BSD-2-Clause */
/* A port of an adapter: its life and its turns. */
#include "ipoib_cm/verbs/vport_in.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "common/sized.h"

#define BATCH	 16
#define TURN	 512 /* completions in one turn */
#define CQ_SPARE 16

static const struct ddps_ib_verbs_config defaults = { .struct_size = sizeof(defaults),
						      .pkey = 0xffff,
						      .scope = 2,
						      .max_qps = 512,
						      .tx_octets = 16u << 20,
						      .rx_octets = 16u << 20 };

DDPS_SIZED_NO_TAIL(ddps_ib_verbs_config, reserved2);
#define CONFIG DDPS_SIZED(ddps_ib_verbs_config, sizeof(struct ddps_ib_verbs_config))

void ddps_ib_verbs_config_init_sized(struct ddps_ib_verbs_config *cfg, size_t size)
{
	ddps_sized_init(cfg, size, &defaults, &CONFIG);
}

void ddps_vport_say(struct ddps_ib_verbs *v, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(v->why, sizeof(v->why), fmt, ap);
	va_end(ap);
}

/* ---- what the interface asks for ---- */

static int send_vport_ud(struct ddps_ipoib_port *port, const struct ddps_ipoib_lladdr *to,
			 const struct ddps_ipoib_path *path, const void *frame, size_t len)
{
	struct ddps_ib_verbs *v = VPORT(port);
	uint16_t pkey_index;
	struct vp_way w;

	if (to->qpn == DDPS_IPOIB_QPN_MCAST)
		return ddps_togroup(&v->to_group, to->gid, frame, len, v->now);
	if (!path || !ddps_vport_way(v, path->addr, &w, &pkey_index))
		return DDPS_E_ADDRESS;
	return ddps_vport_ud_send(v, &w, to->gid, to->qpn, frame, len);
}

static const struct ddps_ipoib_port_ops ops = {
	.struct_size = sizeof(ops),
	.ud_send = send_vport_ud,
	.join = ddps_vport_join,
	.leave = ddps_vport_leave,
	.resolve = ddps_vport_resolve,
	.mad_send = ddps_vport_mad_send,
	.qp_create = ddps_vport_qp_create,
	.qp_ready = ddps_vport_qp_ready,
	.qp_send = ddps_vport_qp_send,
	.qp_stop = ddps_vport_qp_stop,
	.qp_destroy = ddps_vport_qp_destroy,
};

/* ---- completions ---- */

static void take_vport_completion(struct ddps_ib_verbs *v, const struct ibv_wc *wc)
{
	uint32_t i;
	struct vp_pool *p = ddps_vport_done(v, wc->wr_id, &i);

	if (!p) {
		v->stats.rx_bad += wc->status != IBV_WC_WR_FLUSH_ERR; /* of an earlier life */
		return;
	}
	switch (p->kind) {
	case VP_UD_IN:
		ddps_vport_ud_rx(v, wc, i);
		break;
	case VP_UD_OUT:
		ddps_vport_ud_sent(v, wc, i);
		break;
	case VP_MSG_IN:
		ddps_vport_qp_rx(v, wc, i);
		break;
	default:
		ddps_vport_qp_sent(v, wc, i);
	}
}

/* Return: whether it was emptied. */
static bool poll_vport_cq(struct ddps_ib_verbs *v, struct ibv_cq *cq)
{
	struct ibv_wc wc[BATCH];

	for (unsigned done = 0; done < TURN;) {
		int n = v->lib.poll_cq(cq, BATCH, wc);

		if (n <= 0)
			return true;
		for (int i = 0; i < n; i++)
			take_vport_completion(v, &wc[i]);
		done += (unsigned)n;
	}
	return false;
}

/*
 * Asked for first and looked at then, so that nothing comes in between unnoticed.  Once each: an
 * adapter may answer immediately if something waits already, and then again.
 */
static void take_vport_notices(struct ddps_ib_verbs *v)
{
	bool tx = false, rx = false;
	struct ibv_cq *cq;
	void *user;

	for (unsigned i = 0; i < TURN && !v->lib.get_cq_event(v->channel, &cq, &user); i++) {
		v->lib.ack_cq_events(cq, 1);
		tx |= cq == v->tx_cq;
		rx |= cq == v->rx_cq;
	}
	if (tx)
		(void)v->lib.req_notify_cq(v->tx_cq, 0);
	if (rx)
		(void)v->lib.req_notify_cq(v->rx_cq, 0);
}

bool ddps_ib_verbs_run(struct ddps_ib_verbs *v, uint64_t now)
{
	bool more;

	v->now = now;
	ddps_vport_events(v);
	take_vport_notices(v);
	more = !poll_vport_cq(v, v->tx_cq);
	more |= !poll_vport_cq(v, v->rx_cq);
	more |= ddps_vport_mad_run(v);
	ddps_vport_roce_run(v);
	if (v->info.active && ddps_sac_due(v->sac) <= now)
		ddps_sac_tick(v->sac, now);
	if (!more)
		ddps_vport_qp_tick(v);
	return more;
}

uint64_t ddps_ib_verbs_deadline(const struct ddps_ib_verbs *v)
{
	uint64_t due = ddps_vport_qp_due(v), t = v->info.active ? ddps_sac_due(v->sac) : due;

	if (v->answers.n)
		return v->now;
	return t < due ? t : due;
}

void ddps_ib_verbs_fds(const struct ddps_ib_verbs *v, struct pollfd fds[DDPS_IB_VERBS_FDS])
{
	fds[0] = (struct pollfd){ .fd = v->channel->fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = v->ctx->async_fd, .events = POLLIN };
	fds[2] = (struct pollfd){ .fd = v->lib.umad.umad_get_fd(v->umad), .events = POLLIN };
}

/* ---- life ---- */

static int open_queues(struct ddps_ib_verbs *v)
{
	const int out = VP_UD_TX + (int)(v->cfg.tx_octets / VP_MSG_LEN) + CQ_SPARE;
	const int in = VP_UD_RX + (int)(v->cfg.rx_octets / VP_MSG_LEN) + CQ_SPARE;

	v->channel = v->lib.create_comp_channel(v->ctx);
	if (v->channel) {
		(void)fcntl(v->channel->fd, F_SETFL, fcntl(v->channel->fd, F_GETFL) | O_NONBLOCK);
		v->rx_cq = v->lib.create_cq(v->ctx, in, NULL, v->channel, 0);
		v->tx_cq = v->lib.create_cq(v->ctx, out, NULL, v->channel, 0);
	}
	if (v->rx_cq && v->tx_cq && !v->lib.req_notify_cq(v->rx_cq, 0) &&
	    !v->lib.req_notify_cq(v->tx_cq, 0))
		return 0;
	ddps_vport_say(v, "%s gives no completion queues of %d and %d: %s", v->info.device, in, out,
		       strerror(errno));
	return DDPS_E_SYSTEM;
}

static int open_vport(struct ddps_ib_verbs *v)
{
	int err = ddps_vport_dev_open(v);

	if (!err)
		err = ddps_vport_ways_new(v);
	if (!err)
		err = ddps_vport_mad_open(v); /* before memory is locked: it is what fails most */
	if (!err)
		err = open_queues(v);
	if (!err)
		err = ddps_vport_ud_new(v);
	if (!err)
		err = ddps_vport_qps_new(v);
	return err ? err : ddps_vport_groups_new(v);
}

int ddps_vport_new(struct ddps_ib_verbs **out, const struct ddps_ib_verbs_config *cfg,
		   const struct ddps_verbs_lib *lib, char *why, size_t why_len)
{
	struct ddps_ib_verbs *v = calloc(1, sizeof(*v));
	int err, keep;

	if (!v) {
		snprintf(why, why_len, "out of memory");
		return DDPS_E_NOMEM;
	}
	v->port.ops = &ops;
	v->lib = *lib;
	v->cfg = *cfg;
	v->key.k[0] = cfg->seed * 0x9e3779b97f4a7c15u;
	v->key.k[1] = ~v->key.k[0];
	v->ud_psn = cfg->seed;
	v->umad = v->cm_agent = v->sa_agent = v->report_agent = v->netdev = -1;
	err = open_vport(v);
	if (!err) {
		*out = v;
		return 0;
	}
	keep = errno;
	snprintf(why, why_len, "%s", *v->why ? v->why : "out of memory");
	v->lib.handle = v->lib.umad.handle = NULL; /* the caller's in this case */
	ddps_ib_verbs_free(v);
	errno = keep;
	return err;
}

static bool vport_config_fits(const struct ddps_ib_verbs_config *c)
{
	return c->up && c->pkey & 0x7fff && c->scope <= 15 && c->mtu <= 5 && c->max_qps &&
	       c->max_qps <= 65536 && c->tx_octets >= 4 * VP_MSG_LEN &&
	       c->rx_octets >= 4 * VP_MSG_LEN && c->tx_octets <= 65536ull * VP_MSG_LEN &&
	       c->rx_octets <= 65536ull * VP_MSG_LEN;
}

int ddps_ib_verbs_new(struct ddps_ib_verbs **out, const struct ddps_ib_verbs_config *cfg, char *why,
		      size_t why_len)
{
	struct ddps_ib_verbs_config mine = defaults;
	struct ddps_verbs_lib lib;
	int err = ddps_sized_take(&mine, cfg, &CONFIG), keep;

	if (err || !vport_config_fits(&mine)) {
		snprintf(why, why_len,
			 "a P_Key, scope or limit that cannot be, or a member that is "
			 "not set");
		return err ? err : DDPS_E_INVAL;
	}
	err = ddps_verbs_lib_load(&lib, why, why_len);
	if (err)
		return err;
	err = ddps_vport_new(out, &mine, &lib, why, why_len);
	keep = errno;
	if (err)
		ddps_verbs_lib_unload(&lib);
	errno = keep;
	return err;
}

void ddps_ib_verbs_free(struct ddps_ib_verbs *v)
{
	if (!v)
		return;
	if (v->ud && v->sac)
		ddps_vport_groups_free(v);
	ddps_vport_roce_free(v);
	ddps_vport_qps_free(v);
	ddps_vport_ud_free(v);
	ddps_vport_ways_free(v);
	if (v->rx_cq)
		v->lib.destroy_cq(v->rx_cq);
	if (v->tx_cq)
		v->lib.destroy_cq(v->tx_cq);
	if (v->channel)
		v->lib.destroy_comp_channel(v->channel);
	ddps_vport_mad_close(v);
	ddps_vport_dev_close(v);
	ddps_verbs_lib_unload(&v->lib);
	free(v);
}

struct ddps_ipoib_port *ddps_ib_verbs_port(struct ddps_ib_verbs *v)
{
	return &v->port;
}

void ddps_ib_verbs_user(struct ddps_ib_verbs *v, void *user)
{
	v->user = user;
}

const struct ddps_ib_verbs_info *ddps_ib_verbs_info(const struct ddps_ib_verbs *v)
{
	return &v->info;
}

const char *ddps_ib_verbs_why(const struct ddps_ib_verbs *v)
{
	return v->why;
}

bool ddps_ib_verbs_busy(const struct ddps_ib_verbs *v)
{
	const struct vp_pool *p = &v->pool[VP_MSG_OUT];

	return v->n_behind || p->n_out > p->n / 2;
}

const char *ddps_ib_verbs_counter(const struct ddps_ib_verbs *v, unsigned i, uint64_t *value)
{
	const struct ddps_sac_stats *sac = ddps_sac_stats(v->sac);
	unsigned k = 0;

#define COUNTER(from, name)                                                                        \
	if (k++ == i) {                                                                            \
		*value = (from)->name;                                                             \
		return #name;                                                                      \
	}
#define DDPS_X(name, text) COUNTER(&v->stats, name)
	DDPS_VPORT_STATS(DDPS_X)
#undef DDPS_X
#define DDPS_X(name, text) COUNTER(sac, name)
	DDPS_SAC_STATS(DDPS_X)
#undef DDPS_X
	return NULL;
}
