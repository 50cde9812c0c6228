/* SPDX-License-Identifier: BSD-2-Clause */
/* The native backend: the engine of src/sctp over UDP (RFC 6951) or raw IP. */
#include "sctp_ddp/backend/native/sd_dtls.h"
#include "sctp_ddp/backend/sd_sock.h"
#include "sctp_ddp/sd_wire.h"
#include <stdlib.h>
#include <string.h>

static bool is_native_available(void)
{
	return true;
}

static void fini(struct ddps_env *env, void *ctx)
{
	struct ddps_sn_env *ne = ctx;

	(void)env;
	if (!ne)
		return;
	while (!LIST_EMPTY(&ne->endpoints))
		ddps_sn_endpoint_free(LIST_FIRST(&ne->endpoints));
	while (!TAILQ_EMPTY(&ne->assocs))
		ddps_sn_assoc_release(TAILQ_FIRST(&ne->assocs));
	ddps_sn_env_free(ne);
}

/* ---- connect ---- */

/* What an association is to connect, and what the system says of the ways there. */
struct goal {
	struct ddps_uri_addrs from; /* ours; none: as the system chooses */
	struct ddps_uri_addrs to;
	struct sockaddr_storage local; /* on the way to the first that can be reached */
	uint32_t mtu;		       /* the largest of the links' */
	uint16_t encap;
	uint8_t tos;
	int sys_errno; /* no address of the peer can be reached, else 0 */
};

/* Of its port nothing is said. */
static void add_own(struct ddps_uri_addrs *list, const struct sockaddr_storage *own)
{
	for (unsigned i = 0; i < list->n; i++)
		if (ddps_sn_same_addr(&list->at[i], own))
			return;
	list->at[list->n++] = *own;
}

/* Within the host the loopback interface is all of the way: the system need not be asked. */
static uint32_t way_mtu(const struct ddps_sn_env *ne, const struct sockaddr_storage *to,
			const struct sockaddr_storage *local)
{
	struct ddps_sctp_addr a = ddps_sn_addr(to);

	if (ne->host_mtu && (ddps_sn_same_addr(to, local) || (a.family == 4 && a.ip[0] == 127)))
		return ne->host_mtu;
	return ddps_sd_sock_mtu(to);
}

/* Of a peer's list, addresses that this host has as well: unless the peer is here they are not its own. */
static void leave_out_own(const struct ddps_sn_env *ne, struct ddps_uri_addrs *to)
{
	struct ddps_uri_addrs other = { 0 };
	char list[256];

	for (unsigned i = 0; to->n > 1 && i < to->n; i++) {
		const struct ddps_sctp_addr a = ddps_sn_addr(&to->at[i]);

		if (!ddps_sn_homes_own(NULL, &a))
			other.at[other.n++] = to->at[i];
	}
	if (!other.n || other.n == to->n)
		return;
	*to = other;
	ddps_addrs_text(to, list, sizeof list);
	ddps_log(&ne->env->log, DDPS_LOG_INFO, "sctp",
		 "of the peer's addresses this host has some as well: %s is left", list);
}

/* To several addresses of the peer we have those that the system would use: the peer has to be
 * informed of each.  Those of its addresses that there is no way to are left out. */
static void find_ways(const struct ddps_sn_env *ne, struct goal *g)
{
	struct ddps_uri_addrs own = { 0 }, to = { 0 };
	int err = 0;

	leave_out_own(ne, &g->to);
	for (unsigned i = 0; i < g->to.n; i++) {
		struct sockaddr_storage local = { 0 };
		int no = ddps_sn_way(g->from.n == 1 ? &g->from.at[0] : NULL, &g->to.at[i], &local);
		uint32_t mtu = no ? 0 : way_mtu(ne, &g->to.at[i], &local);

		if (no && !err)
			err = no;
		if (mtu > g->mtu)
			g->mtu = mtu;
		if (no)
			continue;
		if (!own.n)
			g->local = local;
		add_own(&own, &local);
		to.at[to.n++] = g->to.at[i];
	}
	g->sys_errno = own.n ? 0 : err;
	if (own.n)
		g->to = to;
	if (!g->from.n && own.n > 1)
		g->from = own;
}

/* Hand the set-up to the engine. */
static int start_native_assoc(struct ddps_sd_assoc *a, const struct goal *g)
{
	struct ddps_sctp_param p = ddps_sn_param(a->sock, g->mtu < 576 ? 576 : g->mtu);
	struct ddps_sctp_addr peer[DDPS_SCTP_ADDRS_MAX];
	struct ddps_sctp_info i;
	int err;

	for (unsigned k = 0; k < g->to.n; k++)
		peer[k] = ddps_sn_addr(&g->to.at[k]);
	err = ddps_sctp_connect(a->ne->e, &p, peer, g->to.n, ddps_sd_port_number(&g->to.at[0]),
				g->encap, &ddps_sn_up, a, ddps_sn_now(a->ne), &a->sa);
	if (err)
		return err;
	ddps_sctp_info(a->sa, &i);
	a->port = i.port;
	ddps_sn_sock_port(a->sock, a->port, true);
	return 0;
}

/* A DTLS connection over a socket of its own: with one socket there could be one to each peer only. */
static int dial_dtls(struct ddps_sn_env *ne, const struct goal *g, struct ddps_sn_sock **out)
{
	struct sockaddr_storage ss = { .ss_family = (sa_family_t)ddps_sn_homes_family(&g->to,
										      &g->from) };
	const struct ddps_sctp_addr peer = ddps_sn_addr(&g->to.at[0]);
	const struct ddps_sctp_addr local = ddps_sn_addr(&g->local);
	struct ddps_sn_sock *udp;
	struct ddps_sn_dtls *c;
	int err;

	if (g->from.n)
		ss = g->from.at[0];
	err = ddps_sn_sock_bind(ne, (struct sockaddr *)&ss, ddps_addr_len(&ss), 0,
				DDPS_SN_OWN | DDPS_SN_SECURED, g->tos, &udp);
	if (err)
		return err;
	c = ddps_sn_dtls_new(udp, &peer, g->encap, &local);
	ddps_sn_sock_put(udp); /* the connection has it, or nobody */
	if (!c) {
		ddps_sn_poke(ne);
		return DDPS_E_NOMEM;
	}
	*out = c->as;
	c->as->refs++;
	return 0;
}

/* The handshake first; the engine is asked when it is done. */
static void start_dtls(struct ddps_sd_assoc *a, const struct goal *g,
		       const struct ddps_llp_param *p)
{
	const struct ddps_creds_want want = { .host = p->host };
	struct ddps_sn_dtls *c = a->sock->dtls;
	struct ddps_error why;

	c->host = p->host ? strdup(p->host) : NULL;
	if (p->host && !c->host) {
		ddps_sn_end_soon(a, ddps_error_make(DDPS_E_NOMEM, 0, "no memory for a handshake"));
		return;
	}
	c->dials = a;
	c->param = ddps_sn_param(a->sock, g->mtu);
	c->peer_port = ddps_sd_port_number(&g->to.at[0]);
	if (ddps_sn_dtls_shake(c, &want, NULL, NULL, 0, &why))
		ddps_sn_end_soon(a, why);
}

/* A socket of its own for what shall come from certain addresses. */
static int client_sock(struct ddps_sn_env *ne, const struct goal *g, bool raw,
		       struct ddps_sn_sock **out)
{
	const struct sockaddr_storage *from = &g->from.at[0];
	int family = ddps_sn_homes_family(&g->to, &g->from);

	if (!g->from.n)
		return ddps_sn_sock_client(ne, family, raw, g->tos, out);
	if (g->from.n > 1)
		return ddps_sn_homes_sock(ne, &g->from, family, raw ? DDPS_URI_ENCAP_OFF : 0,
					  g->tos, out);
	return ddps_sn_sock_bind(ne, (const struct sockaddr *)from, ddps_addr_len(from),
				 raw ? DDPS_URI_ENCAP_OFF : 0, 0, g->tos, out);
}

static int native_connect(struct ddps_env *env, void **ctx, const struct ddps_uri *uri,
			  const struct sockaddr *sa, socklen_t sa_len,
			  const struct ddps_llp_param *param, const struct ddps_sd_assoc_up *up,
			  void *user, struct ddps_sd_assoc **out)
{
	const bool secured = ddps_uri_sctps(uri);
	int encap = ddps_sn_encap(uri), err;
	bool raw = encap == DDPS_URI_ENCAP_OFF;
	struct goal g = { .from = uri->from, .to = uri->hosts, .tos = uri->tos };
	struct ddps_sn_sock *s;
	struct ddps_sd_assoc *a;
	struct ddps_sn_env *ne;

	if (!g.to.n) {
		g.to.n = 1;
		memcpy(&g.to.at[0], sa, sa_len);
	}
	if (!encap || !ddps_sd_port_number(&g.to.at[0]) ||
	    !ddps_sd_sock_families_fit(&g.from, &g.to))
		return DDPS_E_ADDRESS;
	g.encap = raw ? 0 : (uint16_t)encap;
	err = ddps_sn_env_get(env, ctx, &ne);
	if (err)
		return err;
	find_ways(ne, &g);
	err = secured ? dial_dtls(ne, &g, &s) : client_sock(ne, &g, raw, &s);
	if (err)
		return err;
	a = ddps_sn_assoc_new(ne, s);
	if (!a) {
		ddps_sn_sock_put(s);
		ddps_sn_poke(ne); /* which closes it */
		return DDPS_E_NOMEM;
	}
	a->up = up;
	a->user = user;
	a->by_us = true;
	a->local = ddps_sn_addr(&g.local);
	if (g.sys_errno)
		ddps_sn_end_soon(a, ddps_error_make(DDPS_E_SYSTEM, g.sys_errno,
						    "cannot send to the peer"));
	else if (secured)
		start_dtls(a, &g, param);
	else
		err = start_native_assoc(a, &g);
	if (err) {
		ddps_sn_assoc_release(a);
		return err;
	}
	ddps_timer_after(env->loop, &a->deadline, param->connect_ms);
	ddps_sn_poke(ne);
	*out = a;
	return 0;
}

/* ---- associations ---- */

static void set_up_native_assoc(struct ddps_sd_assoc *a, const struct ddps_sd_assoc_up *up,
				void *user)
{
	a->up = up;
	a->user = user;
}

static void assoc_free(struct ddps_sd_assoc *a)
{
	if (a->ne->accepting == a)
		a->ne->accepting = NULL;
	ddps_sn_assoc_release(a);
}

static bool is_native_usable(const struct ddps_sd_assoc *a)
{
	return a->sa && !a->gone && !a->end.code;
}

static int native_send(struct ddps_sd_assoc *a, uint16_t stream, uint32_t ppid,
		       const struct iovec *iov, int niov)
{
	/* Set-up and end of a session wait for acknowledgements: have the peer send them
	 * immediately (RFC 9260 6.1).  [5043-10-1] */
	unsigned flags =
		DDPS_SCTP_UNORDERED | (ppid == DDPS_SD_PPID_CONTROL ? DDPS_SCTP_SACK_NOW : 0);
	size_t len = 0;
	int err;

	if (!is_native_usable(a))
		return DDPS_E_CLOSED;
	for (int i = 0; i < niov; i++)
		len += iov[i].iov_len;
	if (len > DDPS_SD_MSG_MAX)
		return DDPS_E_TOO_LONG;
	/* It is queued only: the clock is read when a packet is made of it. */
	err = ddps_sctp_send(a->sa, stream, ppid, flags, iov, niov, 0);
	if (!err)
		a->ne->fresh += len;
	if (err == DDPS_E_NOMEM)
		ddps_sn_end_soon(a, ddps_error_make(err, 0, "no memory for a message of %zu octets",
						    len));
	return err;
}

static uint8_t *get_native_place(struct ddps_sd_assoc *a, uint16_t stream, size_t len)
{
	return is_native_usable(a) && len <= DDPS_SD_MSG_MAX ? ddps_sctp_place(a->sa, stream, len)
							     : NULL;
}

static void take_native_place(struct ddps_sd_assoc *a, uint8_t *at, uint16_t stream, uint32_t ppid,
			      size_t len, bool filled)
{
	ddps_sctp_placed(a->sa, at, stream, ppid, len, filled);
	a->ne->fresh += filled ? len : 0;
}

static size_t get_native_room(const struct ddps_sd_assoc *a)
{
	return is_native_usable(a) ? ddps_sctp_room(a->sa) : 0;
}

static void do_flush(struct ddps_sd_assoc *a)
{
	if (a->sa)
		ddps_sn_posted(a->ne, a->sa);
}

/* Acknowledgements are reported anyway. */
static void ask_native_dry(struct ddps_sd_assoc *a)
{
	(void)a;
}

static void ack_native_now(struct ddps_sd_assoc *a)
{
	if (is_native_usable(a))
		ddps_sctp_sack_now(a->sa);
}

static void native_pause(struct ddps_sd_assoc *a, bool on)
{
	if (!is_native_usable(a))
		return;
	ddps_sctp_pause(a->sa, on, ddps_sn_now(a->ne));
	ddps_sn_poke(a->ne);
}

static bool native_keep(struct ddps_sd_assoc *a, size_t octets)
{
	struct ddps_sctp_info i;

	if (!is_native_usable(a))
		return false;
	ddps_sctp_keep(a->sa, (int64_t)octets - (int64_t)a->kept, ddps_sn_now(a->ne));
	a->kept = octets;
	ddps_sctp_info(a->sa, &i);
	ddps_sn_poke(a->ne);
	return !i.rwnd;
}

static void native_abort(struct ddps_sd_assoc *a)
{
	ddps_sn_end_soon(a, ddps_error_make(DDPS_E_CLOSED, 0, "aborted by this side"));
}

static void native_shutdown(struct ddps_sd_assoc *a)
{
	if (!is_native_usable(a))
		return;
	if (!a->is_up) {
		native_abort(a);
		return;
	}
	ddps_sctp_shutdown(a->sa, ddps_sn_now(a->ne));
	ddps_sn_poke(a->ne);
}

const struct ddps_sd_backend ddps_sd_native = {
	.name = "native",
	.acks = true,
	.homes = true,
	.shares = true,
	.secures = true,
	.available = is_native_available,
	.connect = native_connect,
	.listen = ddps_sn_listen,
	.endpoint_addr = ddps_sn_endpoint_addr,
	.endpoint_free = ddps_sn_endpoint_free,
	.set_up = set_up_native_assoc,
	.info = ddps_sn_info,
	.peer_id = ddps_sn_dtls_peer_id,
	.judge = ddps_sn_dtls_judge,
	.late = ddps_sn_late,
	.assoc_stats = ddps_sn_assoc_stats,
	.path_stats = ddps_sn_path_stats,
	.set_primary = ddps_sn_set_primary,
	.unanswered = ddps_sn_unanswered,
	.send = native_send,
	.place = get_native_place,
	.placed = take_native_place,
	.room = get_native_room,
	.flush = do_flush,
	.ask_dry = ask_native_dry,
	.ack_now = ack_native_now,
	.pause = native_pause,
	.keep = native_keep,
	.shutdown = native_shutdown,
	.abort = native_abort,
	.free = assoc_free,
	.fini = fini,
};
