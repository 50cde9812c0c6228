/* SPDX-License-Identifier: BSD-2-Clause */
/* Life of an IPoIB interface: made, joined, ticking, stopped. */
#include <stdlib.h>
#include <string.h>
#include "common/sized.h"
#include "ipoib_cm/iface/iface_in.h"
#include "ipoib_cm/wire/wire.h"

#define MS	   1000000ull
#define SEC	   (1000 * MS)
#define CM_TIMEOUT 18 /* 5-bit: about a second */
#define MAX_SLOTS  65535u

static void default_u64(uint64_t *v, uint64_t otherwise)
{
	if (!*v)
		*v = otherwise;
}

/* [4755-5-1] */
static void need_mtu(struct ddps_ipoib_if_config *c)
{
	c->me.min_mtu = c->n_ip6 ? DDPS_IPOIB_MTU_MIN_V6 : DDPS_IPOIB_MTU_MIN_V4;
}

static void default_uint(unsigned *v, unsigned otherwise)
{
	if (!*v)
		*v = otherwise;
}

#define CONFIG DDPS_SIZED(ddps_ipoib_if_config, sizeof(struct ddps_ipoib_if_config))

void ddps_ipoib_if_config_init_sized(struct ddps_ipoib_if_config *cfg, size_t size)
{
	const struct ddps_ipoib_if_config zero = { .struct_size = sizeof(zero) };

	ddps_sized_init(cfg, size, &zero, &CONFIG);
}

static void set_if_defaults(struct ddps_ipoib_if_config *c)
{
	if (!c->scope)
		c->scope = DDPS_IPOIB_SCOPE_DEFAULT;
	default_u64(&c->policy.backoff_ns, SEC);
	default_u64(&c->policy.long_ns, 30 * SEC);
	default_u64(&c->policy.soon_ns, 100 * MS);
	default_uint(&c->max_nbr, 256);
	default_uint(&c->max_peers, 256);
	default_uint(&c->max_qps, 512);
	if (!c->queue_octets)
		c->queue_octets = 4u << 20;
	default_u64(&c->retry_ns, SEC);
	default_uint(&c->tries, 3);
	default_u64(&c->reachable_ns, 30 * SEC);
	default_u64(&c->failed_ns, 3 * SEC);
	default_u64(&c->idle_ns, 120 * SEC);
	default_u64(&c->probe_ns, SEC);
	if (!c->cm_timeout)
		c->cm_timeout = CM_TIMEOUT;
	if (!c->cm_retries)
		c->cm_retries = 7;
	need_mtu(c);
}

static bool is_if_config_ok(const struct ddps_ipoib_if_config *c)
{
	uint8_t octets[DDPS_IPOIB_LLADDR_LEN];

	return !ddps_ipoib_lladdr_encode(octets, &c->me.addr) && c->me.addr.qpn &&
	       c->me.addr.qpn != DDPS_IPOIB_QPN_MCAST && c->scope <= 15 && c->prefix4 <= 32 &&
	       c->n_ip6 <= DDPS_IPOIB_IF_IP6_MAX &&
	       ddps_ipoib_mtu_cm(c->me.rx_mtu, c->me.rx_mtu) >= c->me.min_mtu &&
	       c->max_nbr <= MAX_SLOTS && c->max_peers <= MAX_SLOTS && c->max_qps <= MAX_SLOTS &&
	       c->cm_timeout <= DDPS_CM_TIME_MAX && c->cm_retries <= 15 && c->retry_count <= 7 &&
	       c->rnr_retry <= 7;
}

int ddps_ipoib_if_config_take(struct ddps_ipoib_if_config *to,
			      const struct ddps_ipoib_if_config *cfg)
{
	int err = ddps_sized_take(to, cfg, &CONFIG);

	set_if_defaults(to);
	return err || is_if_config_ok(to) ? err : DDPS_E_INVAL;
}

static int alloc(struct ddps_ipoib_if *f)
{
	const struct ddps_ipoib_if_config *c = &f->cfg;
	struct ddps_cm_config cm = { .struct_size = sizeof(cm),
				     .ca_guid = c->ca_guid,
				     .tid_high = c->seed,
				     .id_seed = c->seed,
				     .max_conns = c->max_qps,
				     .max_per_addr = DDPS_IPOIB_CONNS_PER_ADDR,
				     .hash_key = { c->hash_key[0], c->hash_key[1] } };
	const struct ddps_ipoib_priv priv = { .qpn = c->me.addr.qpn, .rx_mtu = c->me.rx_mtu };

	TAILQ_INIT(&f->nbr_free);
	TAILQ_INIT(&f->nbr_old);
	ddps_ipoib_priv_encode(cm.priv, &priv);
	if (ddps_cm_new(&f->cm, &cm))
		return DDPS_E_NOMEM;
	f->nbr = calloc(c->max_nbr, sizeof(*f->nbr));
	f->node = calloc(c->max_peers, sizeof(*f->node));
	f->qp = calloc(c->max_qps, sizeof(*f->qp));
	/* nothing longer than an IP packet can be sent, whatever the peers accept */
	f->frame_size = DDPS_IPOIB_ENCAP_LEN + UINT16_MAX + 40;
	f->frame = malloc(f->frame_size);
	f->key = (struct ddps_siphash_key){ { c->hash_key[0], c->hash_key[1] } };
	return f->nbr && f->node && f->qp && f->frame && ddps_tab_new(&f->nbr_by_ip, c->max_nbr) &&
			       ddps_tab_new(&f->node_by_lladdr, c->max_peers) &&
			       ddps_tab_new(&f->node_by_gid, c->max_peers) &&
			       ddps_tab_new(&f->qp_by_qpn, c->max_qps) &&
			       ddps_tab_new(&f->qp_by_id, c->max_qps) &&
			       ddps_dues_new(&f->nbr_dues, c->max_nbr) &&
			       ddps_dues_new(&f->node_dues, c->max_peers) &&
			       ddps_dues_new(&f->qp_dues, c->max_qps)
		       ? 0
		       : DDPS_E_NOMEM;
}

int ddps_ipoib_if_new(struct ddps_ipoib_if **out, const struct ddps_ipoib_if_config *cfg,
		      struct ddps_ipoib_port *port, const struct ddps_ipoib_if_calls *calls)
{
	struct ddps_ipoib_if *f;
	int err;

	if (!port || !port->ops || port->ops->struct_size < sizeof(*port->ops) || !calls->deliver ||
	    calls->struct_size < sizeof(*calls))
		return DDPS_E_INVAL;
	f = calloc(1, sizeof(*f));
	if (!f)
		return DDPS_E_NOMEM;
	err = ddps_ipoib_if_config_take(&f->cfg, cfg);
	if (err) {
		free(f);
		return err;
	}
	f->calls = *calls;
	f->port = port;
	f->n_ip6 = f->cfg.n_ip6;
	f->rng = cfg->seed;
	if (alloc(f)) {
		ddps_ipoib_if_free(f);
		return DDPS_E_NOMEM;
	}
	f->links.cm = f->cm;
	f->cm->gone = ddps_ipoib_qp_gone;
	f->cm->gone_user = f;
	f->cm->port_bits = UINT16_MAX; /* the LID, as <ddpsess/ipoib_port.h> has it */
	f->links.me = f->cfg.me;
	f->links.policy = f->cfg.policy;
	f->links.ops = &ddps_ipoib_conn_ops;
	f->links.user = f;
	ddps_ipoib_mgid_broadcast(f->broadcast, f->cfg.me.pkey, f->cfg.scope);
	*out = f;
	return 0;
}

static void free_tables(struct ddps_ipoib_if *f)
{
	free(f->nbr_by_ip.row);
	free(f->node_by_lladdr.row);
	free(f->node_by_gid.row);
	free(f->qp_by_qpn.row);
	free(f->qp_by_id.row);
	free(f->nbr_dues.heap);
	free(f->node_dues.heap);
	free(f->qp_dues.heap);
}

void ddps_ipoib_if_free(struct ddps_ipoib_if *f)
{
	if (!f)
		return;
	if (f->nbr)
		ddps_ipoib_nbr_clear(f);
	for (unsigned i = 0; i < f->n_qp; i++)
		if (f->qp[i].used)
			ddps_ipoib_qp_free(f, &f->qp[i]);
	for (unsigned i = 0; i < f->n_node; i++)
		ddps_ipoib_queue_drop(f, &f->node[i].hold, &f->stats.tx_down);
	ddps_cm_free(f->cm);
	free_tables(f);
	free(f->nbr);
	free(f->node);
	free(f->qp);
	free(f->frame);
	free(f);
}

int ddps_ipoib_queue_put(struct ddps_ipoib_if *f, struct ddps_ipoib_queue *q, const void *packet,
			 size_t len)
{
	struct ddps_ipoib_pkt p = { .len = len };

	if (q->n == DDPS_IPOIB_IF_QUEUE) { /* the latest are worth more than the first */
		f->queued -= q->pkt[0].len;
		free(q->pkt[0].data);
		memmove(q->pkt, q->pkt + 1, --q->n * sizeof(q->pkt[0]));
		f->stats.tx_queue_full++;
	}
	p.data = len <= f->cfg.queue_octets - f->queued ? malloc(len) : NULL;
	if (!p.data) {
		f->stats.tx_queue_full++;
		return DDPS_E_LIMIT;
	}
	memcpy(p.data, packet, len);
	f->queued += len;
	q->pkt[q->n++] = p;
	return 0;
}

void ddps_ipoib_queue_drop(struct ddps_ipoib_if *f, struct ddps_ipoib_queue *q, uint64_t *count)
{
	for (unsigned i = 0; i < q->n; i++) {
		f->queued -= q->pkt[i].len;
		free(q->pkt[i].data);
	}
	*count += q->n;
	q->n = 0;
}

static void join_broadcast(struct ddps_ipoib_if *f)
{
	int err = f->port->ops->join(f->port, f->broadcast); /* [4391-5-2] */

	f->stats.join_failed += err != 0;
	f->join_at = f->now + f->cfg.retry_ns; /* again, if no answer comes */
}

int ddps_ipoib_if_start(struct ddps_ipoib_if *f, uint64_t now)
{
	if (f->state != DDPS_IPOIB_IF_DOWN)
		return DDPS_E_STATE;
	f->now = now;
	f->state = DDPS_IPOIB_IF_JOINING;
	join_broadcast(f);
	ddps_ipoib_check(f);
	return 0;
}

/* Without memory of its own: a host that comes up while it has none would never be asked for a connection. */
static void listen(struct ddps_ipoib_if *f, bool on)
{
	static const enum ddps_ipoib_sid_form form[] = { DDPS_IPOIB_SID_RFC, DDPS_IPOIB_SID_LINUX };
	const struct ddps_ipoib_priv priv = { .qpn = f->cfg.me.addr.qpn,
					      .rx_mtu = f->cfg.me.rx_mtu };
	struct ddps_cm_listener l = { .pkey = f->cfg.me.pkey };

	if (!f->cfg.me.addr.flags) /* what is not advertised is not offered */
		return;
	memcpy(l.gid, f->cfg.me.addr.gid, sizeof(l.gid));
	ddps_ipoib_priv_encode(l.priv, &priv); /* [4755-3.2-11] */
	for (unsigned i = 0; i < 2; i++) {
		ddps_ipoib_service_id(&l.service_id, form[i], f->cfg.me.addr.qpn);
		if (!on) {
			ddps_cm_unlisten(f->cm, l.service_id);
			continue;
		}
		f->listener[i].l = l;
		(void)ddps_cm_listen_kept(f->cm, &f->listener[i]); /* it is no listener now */
	}
}

static void end_if_conns(struct ddps_ipoib_if *f)
{
	listen(f, false);
	ddps_ipoib_nbr_clear(f);
	ddps_ipoib_node_clear(f); /* [4755-3.4-1] */
}

/* Memberships may be gone, too: it is joined again. */
static void lose_if_link(struct ddps_ipoib_if *f)
{
	if (f->state != DDPS_IPOIB_IF_UP)
		return;
	end_if_conns(f);
	f->state = DDPS_IPOIB_IF_JOINING;
	f->join_at = f->now + f->cfg.retry_ns;
	f->heard_at = f->now;
}

/* A link too narrow for one protocol serves the other [4755-5-1].  Return: whether there is one for it. */
static bool take_link_mtu(struct ddps_ipoib_if *f, uint32_t ud_mtu)
{
	const bool v6 = ud_mtu >= DDPS_IPOIB_MTU_MIN_V6;

	if (ud_mtu < DDPS_IPOIB_MTU_MIN_V4 || (!v6 && f->n_ip6 && !ddps_ipoib_serves(f, false)))
		return false;
	ddps_ipoib_own_fit(f, ud_mtu, v6 ? f->n_ip6 : 0); /* [4391-5-3] */
	need_mtu(&f->cfg);
	f->links.me.min_mtu = f->cfg.me.min_mtu;
	return true;
}

static void if_joined(void *user, const uint8_t mgid[DDPS_IPOIB_GID_LEN], int err,
		      uint32_t link_mtu, uint64_t now)
{
	struct ddps_ipoib_if *f = user;
	const bool broadcast = memcmp(mgid, f->broadcast, DDPS_IPOIB_GID_LEN) == 0;

	f->now = now;
	if (!err && broadcast && f->state != DDPS_IPOIB_IF_DOWN &&
	    !take_link_mtu(f, ddps_ipoib_mtu_ud(link_mtu))) {
		err = DDPS_E_LIMIT;
		lose_if_link(f);
	}
	f->stats.join_failed += err != 0;
	if (!err && broadcast && f->state == DDPS_IPOIB_IF_JOINING) {
		f->state = DDPS_IPOIB_IF_UP;
		listen(f, true);
		ddps_ipoib_own_begin(f);
	}
	ddps_ipoib_check(f);
}

void ddps_ipoib_if_stop(struct ddps_ipoib_if *f, uint64_t now)
{
	f->now = now;
	if (f->state == DDPS_IPOIB_IF_DOWN)
		return;
	end_if_conns(f);
	if (f->state == DDPS_IPOIB_IF_UP) {
		ddps_ipoib_own_end(f);
		f->heard_at = now;
	}
	f->port->ops->leave(f->port, f->broadcast);
	f->state = DDPS_IPOIB_IF_DOWN;
	ddps_ipoib_check(f);
}

static void if_link(void *user, bool up, uint64_t now)
{
	struct ddps_ipoib_if *f = user;

	f->now = now;
	if (!up)
		lose_if_link(f);
	else if (f->state == DDPS_IPOIB_IF_JOINING)
		join_broadcast(f);
	else
		f->subnet++;
	ddps_ipoib_check(f);
}

bool ddps_ipoib_if_at_rest(const struct ddps_ipoib_if *f)
{
	return !f->n_qp_used;
}

uint64_t ddps_ipoib_if_deadline(const struct ddps_ipoib_if *f)
{
	uint64_t t = ddps_ipoib_min(ddps_ipoib_conn_deadline(f), ddps_ipoib_node_deadline(f));

	t = ddps_ipoib_min(t, ddps_ipoib_nbr_deadline(f));
	if (f->state == DDPS_IPOIB_IF_UP)
		t = ddps_ipoib_min(t, f->own_due);
	return f->state == DDPS_IPOIB_IF_JOINING ? ddps_ipoib_min(t, f->join_at) : t;
}

void ddps_ipoib_if_tick(struct ddps_ipoib_if *f, uint64_t now)
{
	f->now = now;
	if (f->state == DDPS_IPOIB_IF_JOINING && now >= f->join_at)
		join_broadcast(f);
	ddps_ipoib_conn_tick(f);
	ddps_ipoib_node_tick(f);
	ddps_ipoib_nbr_tick(f);
	ddps_ipoib_own_tick(f);
	ddps_ipoib_conn_settle(f);
	ddps_ipoib_check(f);
}

enum ddps_ipoib_if_state ddps_ipoib_if_state(const struct ddps_ipoib_if *f)
{
	return f->state;
}

const struct ddps_ipoib_if_stats *ddps_ipoib_if_stats(const struct ddps_ipoib_if *f)
{
	return &f->stats;
}

const struct ddps_cm_stats *ddps_ipoib_if_cm_stats(const struct ddps_ipoib_if *f)
{
	return ddps_cm_stats(f->cm);
}

static void if_ud(void *user, const struct ddps_ipoib_ud_from *from, const void *frame, size_t len,
		  uint64_t now)
{
	ddps_ipoib_rx_ud(user, from, frame, len, now);
	ddps_ipoib_conn_settle(user);
	ddps_ipoib_check(user);
}

static void if_qp(void *user, uint32_t qpn, const void *frame, size_t len, uint64_t now)
{
	ddps_ipoib_rx_qp(user, qpn, frame, len, now);
	ddps_ipoib_conn_settle(user);
	ddps_ipoib_check(user);
}

static void if_qp_error(void *user, uint32_t qpn, int err, uint64_t now)
{
	ddps_ipoib_conn_error(user, qpn, err, now);
	ddps_ipoib_conn_settle(user);
	ddps_ipoib_check(user);
}

static void if_path(void *user, const uint8_t gid[DDPS_IPOIB_GID_LEN],
		    const struct ddps_ipoib_path *path, uint64_t now)
{
	struct ddps_ipoib_if *f = user;

	f->now = now;
	ddps_ipoib_node_path(f, gid, path);
	ddps_ipoib_conn_settle(f);
	ddps_ipoib_check(f);
}

static const struct ddps_ipoib_up up = {
	.struct_size = sizeof(up),
	.ud = if_ud,
	.mad = ddps_ipoib_conn_mad,
	.qp = if_qp,
	.qp_error = if_qp_error,
	.path = if_path,
	.joined = if_joined,
	.link = if_link,
};

const struct ddps_ipoib_up *ddps_ipoib_if_up(void)
{
	return &up;
}
