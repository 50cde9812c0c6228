/* SPDX-License-Identifier: BSD-2-Clause */
/* What there is to see of an association and of packets, and which path it is to prefer. */
#include "sctp_ddp/backend/native/sd_native.h"
#include <stdio.h>
#include <string.h>

int ddps_sn_assoc_stats(struct ddps_sd_assoc *a, struct ddps_assoc_stats *st)
{
	struct ddps_sctp_info i;

	if (!a->sa || a->gone)
		return DDPS_E_STATE;
	ddps_sctp_info(a->sa, &i);
	st->packets_sent = i.sent_packets;
	st->packets_received = i.received_packets;
	st->chunks_sent = i.sent_chunks;
	st->chunks_received = i.received_chunks;
	st->retransmitted = i.retransmitted;
	st->timeouts = i.timeouts;
	st->duplicates = i.duplicates;
	st->gaps = i.gaps;
	st->restarts = i.restarts;
	st->unsent = i.unsent;
	st->unacked = i.unacked;
	st->out_of_order = i.out_of_order;
	st->rwnd = i.rwnd;
	st->peer_rwnd = i.peer_rwnd;
	st->paths = i.npaths;
	snprintf(st->state, sizeof st->state, "%s", i.state);
	return 0;
}

static enum ddps_path_state get_native_path_state(enum ddps_sctp_path_state s)
{
	static const enum ddps_path_state state[] = {
		[DDPS_SCTP_UNCONFIRMED] = DDPS_PATH_UNCONFIRMED,
		[DDPS_SCTP_ACTIVE] = DDPS_PATH_ACTIVE,
		[DDPS_SCTP_DOUBTFUL] = DDPS_PATH_DOUBTFUL,
		[DDPS_SCTP_INACTIVE] = DDPS_PATH_INACTIVE,
	};

	return state[s];
}

static int get_native_path_info(const struct ddps_sd_assoc *a, uint32_t path,
				struct ddps_sctp_path_info *p)
{
	return !a->sa || a->gone ? DDPS_E_STATE : ddps_sctp_path_info(a->sa, path, p);
}

int ddps_sn_path_stats(struct ddps_sd_assoc *a, uint32_t path, struct ddps_path_stats *st)
{
	struct ddps_sctp_path_info p;
	struct ddps_sctp_info i;
	int err = get_native_path_info(a, path, &p);

	if (err)
		return err;
	ddps_sctp_info(a->sa, &i);
	st->srtt_ns = p.srtt_ns;
	st->rttvar_ns = p.rttvar_ns;
	st->min_rtt_ns = p.min_rtt_ns;
	st->rto_ns = p.rto_ns;
	st->cwnd = p.cwnd;
	st->ssthresh = p.ssthresh;
	st->flight = p.flight;
	st->retransmitted = p.retransmitted;
	st->timeouts = p.timeouts;
	st->mtu = p.mtu;
	st->errors = p.errors;
	st->state = get_native_path_state(p.state);
	st->encap = p.encap;
	st->primary = p.primary;
	st->in_use = p.in_use;
	ddps_sn_text(&p.peer, i.peer_port, st->peer, sizeof st->peer);
	if (p.local.family)
		ddps_sn_text(&p.local, i.port, st->local, sizeof st->local);
	return 0;
}

int ddps_sn_set_primary(struct ddps_sd_assoc *a, uint32_t path)
{
	struct ddps_sctp_path_info p;
	int err = get_native_path_info(a, path, &p);

	if (!err)
		err = ddps_sctp_set_primary(a->sa, &p.peer, ddps_sn_now(a->ne));
	if (!err)
		ddps_sn_poke(a->ne);
	return err;
}

bool ddps_sn_unanswered(struct ddps_sd_assoc *a, uint64_t *most)
{
	const uint64_t at = !a->sa || a->gone ? 0 : ddps_sctp_asked_at(a->sa);

	if (at)
		*most = ddps_sn_now(a->ne) - at;
	return at;
}

/* ---- packets ---- */

void ddps_sn_tap(void *user, uint64_t now, bool sent, const struct ddps_sctp_route *r,
		 const struct iovec *iov, int niov)
{
	const struct ddps_sn_env *ne = user;
	struct sockaddr_storage peer, local = { .ss_family = AF_UNSPEC };
	struct ddps_packet p = { .transport = DDPS_TRANSPORT_SCTP,
				 .sent = sent,
				 .peer = (struct sockaddr *)&peer,
				 .local = (struct sockaddr *)&local,
				 .iov = iov,
				 .niov = niov };

	(void)now;
	ddps_sn_sockaddr(&r->peer, 0, r->peer.family == 6 ? AF_INET6 : AF_INET, &peer);
	if (r->local.family)
		ddps_sn_sockaddr(&r->local, 0, r->local.family == 6 ? AF_INET6 : AF_INET, &local);
	else /* without a way it stays unspecified */
		(void)ddps_sn_way(NULL, &peer, &local);
	for (int i = 0; i < niov; i++)
		p.len += iov[i].iov_len;
	ddps_env_show(ne->env, &p);
}
