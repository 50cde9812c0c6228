/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls that make and end endpoints and associations, and report them. */
#include "sctp/sctp_in.h"

#define STREAMS_DEFAULT 4096u
#define MTU_DEFAULT	1500u

static int param_ok(struct ddps_sctp_param *p)
{
	if (!p->streams)
		p->streams = STREAMS_DEFAULT;
	if (!p->mtu)
		p->mtu = MTU_DEFAULT;
	if (p->mtu < 576 || (p->fixed_mtu && p->fixed_mtu < 576) || p->nlocal > DDPS_SCTP_ADDRS_MAX)
		return DDPS_E_INVAL;
	for (unsigned i = 0; i < p->nlocal; i++) {
		if (!ddps_sc_unicast(&p->local[i]))
			return DDPS_E_INVAL;
	}
	return 0;
}

int ddps_sctp_listen(struct ddps_sctp *e, const struct ddps_sctp_param *p,
		     ddps_sctp_accept_fn *accept, void *user, struct ddps_sctp_port **out)
{
	struct ddps_sctp_param param = *p;
	struct ddps_sctp_port *l;

	if (!p->port || !accept || param_ok(&param) < 0)
		return DDPS_E_INVAL;
	if (ddps_sc_find_port(e, p->via, p->port))
		return DDPS_E_BUSY;
	l = calloc(1, sizeof *l);
	if (!l)
		return DDPS_E_NOMEM;
	l->e = e;
	l->key.via = p->via;
	l->key.port = p->port;
	l->param = param;
	l->accept = accept;
	l->user = user;
	HASH_ADD(hh, e->ports, key, sizeof l->key, l);
	if (!l->hh.tbl) {
		free(l);
		return DDPS_E_NOMEM;
	}
	*out = l;
	return 0;
}

void ddps_sctp_unlisten(struct ddps_sctp_port *l)
{
	HASH_DEL(l->e->ports, l);
	free(l);
}

/* ---- connect ---- */

/* Whether one of the addresses that the peer shall know can send to @peer. */
static bool has_source_for(const struct ddps_sctp_param *p, const struct ddps_sctp_addr *peer)
{
	unsigned i = 0;

	while (i < p->nlocal && p->local[i].family != peer->family)
		i++;
	return !p->nlocal || i < p->nlocal;
}

static int find_place(struct ddps_sctp *e, struct ddps_sctp_param *p,
		      const struct ddps_sctp_addr *peer, unsigned n, uint16_t port)
{
	if (!p->port)
		p->port = ddps_sc_free_port(e, p->via, port, &peer[0]);
	if (!p->port)
		return DDPS_E_BUSY;
	for (unsigned i = 0; i < n; i++) {
		const struct ddps_sc_path *has = ddps_sc_find(e, p->via, p->port, port, &peer[i]);

		if (has && ddps_sc_path_sure(has))
			return DDPS_E_BUSY;
	}
	return 0;
}

static int begin_assoc(struct ddps_sctp_assoc *a, const struct ddps_sctp_addr *peer, unsigned n,
		       uint16_t encap)
{
	for (unsigned i = 0; i < n; i++) {
		struct ddps_sc_path *p;

		if (ddps_sc_path_of(a, &peer[i]))
			continue;
		ddps_sc_path_claim(a, &peer[i]);
		p = ddps_sc_path_add(a, &peer[i], NULL, encap);
		if (!p)
			return DDPS_E_NOMEM;
		p->confirmed = true; /* [9260-5.4-d2] the user gave it */
		p->state = DDPS_SCTP_ACTIVE;
	}
	a->npeers = a->npaths;
	a->by_us = true;
	a->state = SC_COOKIE_WAIT;
	a->due = DUE_INIT;
	ddps_sc_restart_ctl(a, false);
	ddps_sc_touch(a);
	return 0;
}

int ddps_sctp_connect(struct ddps_sctp *e, const struct ddps_sctp_param *p,
		      const struct ddps_sctp_addr *peer, unsigned n, uint16_t port, uint16_t encap,
		      const struct ddps_sctp_up *up, void *user, uint64_t now,
		      struct ddps_sctp_assoc **out)
{
	struct ddps_sctp_param param = *p;
	struct ddps_sctp_assoc *a;
	int err;

	ddps_sc_time(e, now);
	if (!n || n > DDPS_SCTP_ADDRS_MAX || !port || param_ok(&param) < 0)
		return DDPS_E_INVAL;
	for (unsigned i = 0; i < n; i++) {
		if (!ddps_sc_unicast(&peer[i]) || !has_source_for(&param, &peer[i]))
			return DDPS_E_INVAL;
	}
	err = find_place(e, &param, peer, n, port);
	if (err < 0)
		return err;
	if (e->st.assocs >= e->c.max_assocs)
		return DDPS_E_LIMIT;
	a = ddps_sc_assoc_new(e, &param);
	if (!a)
		return DDPS_E_NOMEM;
	a->port = param.port;
	a->any_port = !p->port;
	a->peer_port = port;
	err = begin_assoc(a, peer, n, encap);
	if (err < 0) {
		ddps_sc_release(a);
		return err;
	}
	a->up = up;
	a->user = user;
	*out = a;
	return 0;
}

void ddps_sctp_assoc_set_up(struct ddps_sctp_assoc *a, const struct ddps_sctp_up *up, void *user)
{
	a->up = up;
	a->user = user;
}

/* ---- the end ---- */

void ddps_sctp_shutdown(struct ddps_sctp_assoc *a, uint64_t now)
{
	ddps_sc_time(a->e, now);
	if (a->dead)
		return;
	if (a->state <= SC_COOKIE_ECHOED)
		ddps_sc_abort_out(a, SC_CAUSE_USER, NULL, 0, (struct ddps_error){ .code = 0 });
	else if (a->state == SC_ESTABLISHED)
		a->state = SC_PENDING;
	ddps_sc_touch(a);
}

void ddps_sctp_abort(struct ddps_sctp_assoc *a, const char *reason, uint64_t now)
{
	ddps_sc_time(a->e, now);
	ddps_sc_abort_out(a, SC_CAUSE_USER, reason, reason ? strlen(reason) : 0, /* [9260-9.1-2] */
			  ddps_error_make(DDPS_E_CLOSED, 0, "aborted by this side"));
}

void ddps_sctp_assoc_free(struct ddps_sctp_assoc *a, uint64_t now)
{
	ddps_sctp_abort(a, NULL, now);
	a->freed = true;
	a->up = NULL;
	a->notes = 0;
	ddps_sc_touch(a);
}

static struct ddps_sc_path *find_out_path(struct ddps_sctp *e, const struct ddps_sctp_out *out,
					  uint64_t now)
{
	ddps_sc_time(e, now);
	return out->port ? ddps_sc_find(e, out->to.via, out->port, out->peer_port, &out->to.peer)
			 : NULL;
}

static void data_again(struct ddps_sc_path *p, const struct ddps_sctp_out *out)
{
	ddps_sent_refused(&p->a->tx, &p->tx, out->pn);
	ddps_sc_sack_again(p->a, out);
}

void ddps_sctp_refused(struct ddps_sctp *e, const struct ddps_sctp_out *out, uint32_t mtu,
		       uint64_t now)
{
	struct ddps_sc_path *p = find_out_path(e, out, now);

	if (!p)
		return;
	if (out->data)
		data_again(p, out);
	ddps_sent_mtu_changed(&p->a->tx, &p->tx, ddps_pmtu_local(&p->tx.pmtu, mtu, e->now));
	ddps_sc_way_set(e, &p->peer, p->tx.pmtu.size);
	ddps_sc_touch(p->a);
}

/* What a packet of @a without DATA may have had, as far as it is not repeated by others. */
static uint8_t due_again(const struct ddps_sctp_assoc *a)
{
	switch (a->state) {
	case SC_COOKIE_WAIT:
		return DUE_INIT;
	case SC_COOKIE_ECHOED:
		return DUE_ECHO;
	case SC_SENT: /* it reports no gaps: the SACK next to it does */
		return DUE_SHUTDOWN | (a->n_chunks_in ? DUE_SACK : 0);
	case SC_ACK_SENT:
		return DUE_SHUTDOWN_ACK;
	default:
		return a->n_chunks_in ? DUE_SACK : 0;
	}
}

/* Answers: nobody repeats them unless the peer asks again.  One that is large is left to that. */
static void answers_again(struct ddps_sc_path *p, const struct ddps_sctp_out *out)
{
	struct ddps_rbuf r = ddps_sc_chunks(out->head, out->niov == 1 ? out->len : DDPS_SC_HDR);
	struct ddps_sc_chunk c;
	uint8_t *at;

	while (ddps_sc_chunk_next(&r, &c) > 0) {
		if (c.type == SC_COOKIE_ACK)
			p->a->due |= DUE_COOKIE_ACK;
		if (c.type != SC_HEARTBEAT_ACK && c.type != SC_ERROR)
			continue;
		at = ddps_sc_blob(p->a, p, ddps_sc_pad(c.len));
		if (at)
			memcpy(at, c.all, ddps_sc_pad(c.len));
	}
}

void ddps_sctp_unsent(struct ddps_sctp *e, const struct ddps_sctp_out *out, uint64_t now)
{
	struct ddps_sc_path *p = find_out_path(e, out, now);

	if (!out->port && out->len)
		ddps_sc_stray_again(e, out);
	if (!p)
		return;
	if (out->data) {
		data_again(p, out);
	} else if (!out->probe) {
		p->a->due |= due_again(p->a);
		answers_again(p, out);
	}
	ddps_sc_touch(p->a);
}

int ddps_sctp_set_primary(struct ddps_sctp_assoc *a, const struct ddps_sctp_addr *peer,
			  uint64_t now)
{
	struct ddps_sc_path *p = ddps_sc_path_of(a, peer);

	ddps_sc_time(a->e, now);
	if (!p || a->dead)
		return DDPS_E_INVAL;
	a->primary = p;
	p->failed = false;
	ddps_sc_path_pick(a);
	return 0;
}

/* ---- what there is to see ---- */

uint64_t ddps_sctp_sent(const struct ddps_sctp_assoc *a)
{
	return a->sent_n;
}

uint64_t ddps_sctp_acked(const struct ddps_sctp_assoc *a)
{
	return a->acked_n;
}

uint64_t ddps_sctp_asked_at(const struct ddps_sctp_assoc *a)
{
	return a->tx.nflight || a->tx.nlost ? a->tx.asked_at : 0;
}

/* Of the messages themselves: what else each costs is of the send buffer only. */
static uint64_t count_unacked(const struct ddps_sctp_assoc *a)
{
	return a->buffered - a->unsent - (a->sent_n - a->acked_n) * sizeof(struct ddps_sc_msg);
}

void ddps_sctp_info(const struct ddps_sctp_assoc *a, struct ddps_sctp_info *i)
{
	*i = (struct ddps_sctp_info){ .state = ddps_sc_state_name(a->state),
				      .port = a->port,
				      .peer_port = a->peer_port,
				      .via = a->via,
				      .in_streams = a->in_streams,
				      .out_streams = a->out_streams,
				      .has_adaptation = a->peer_has_adaptation,
				      .zero_checksum = a->zero_checksum,
				      .by_us = a->by_us,
				      .behind = a->acked_n < a->full_n,
				      .adaptation = a->peer_adaptation,
				      .tag = a->own_tag,
				      .peer_tag = a->peer_tag,
				      .npaths = a->npaths,
				      .peer_rwnd = a->tx.a_rwnd,
				      .rwnd = ddps_sc_rwnd(a),
				      .unsent = a->unsent,
				      .unacked = count_unacked(a),
				      .sent_packets = a->n_packets_out,
				      .received_packets = a->n_packets_in,
				      .sent_chunks = a->n_chunks_out,
				      .received_chunks = a->n_chunks_in,
				      .duplicates = a->n_dups,
				      .gaps = a->n_gaps,
				      .out_of_order = a->held,
				      .restarts = a->n_restarts };
	for (unsigned k = 0; k < a->npaths; k++) {
		i->retransmitted += a->path[k]->tx.resent;
		i->timeouts += a->path[k]->tx.t3s;
	}
}

int ddps_sctp_path_info(const struct ddps_sctp_assoc *a, unsigned i,
			struct ddps_sctp_path_info *info)
{
	const struct ddps_sc_path *p;

	if (i >= a->npaths)
		return DDPS_E_INVAL;
	p = a->path[i];
	*info = (struct ddps_sctp_path_info){ .peer = p->peer,
					      .local = p->local,
					      .encap = p->encap,
					      .state = p->state,
					      .primary = p == a->primary,
					      .in_use = p == a->data_path,
					      .srtt_ns = p->tx.srtt,
					      .rttvar_ns = p->tx.rttvar,
					      .rto_ns = ddps_sent_rto(&a->tx, &p->tx),
					      .min_rtt_ns = p->tx.min_rtt,
					      .cwnd = p->tx.cc.cwnd,
					      .ssthresh = p->tx.cc.ssthresh,
					      .flight = p->tx.flight,
					      .retransmitted = p->tx.resent,
					      .timeouts = p->tx.t3s,
					      .mtu = p->tx.pmtu.size,
					      .errors = p->errors };
	return 0;
}
