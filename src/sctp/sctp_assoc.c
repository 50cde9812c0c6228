/* SPDX-License-Identifier: BSD-2-Clause */
/* An association's life: from nothing to nothing. */
#include "sctp/sctp_in.h"

#define BLOBS_MAX 64u /* control chunks that wait to be sent */

const char *ddps_sc_state_name(enum ddps_sc_state s)
{
	static const char *const name[SC_NSTATES] = {
#define DDPS_X(n, text) [SC_##n] = (text),
		DDPS_SC_STATES(DDPS_X)
#undef DDPS_X
	};

	return name[s];
}

static void begin_tx(struct ddps_sctp_assoc *a, uint32_t peer_rwnd)
{
	ddps_sent_init(&a->tx, &a->e->sent, a->own_tsn, peer_rwnd, ddps_sc_acked, a);
}

struct ddps_sctp_assoc *ddps_sc_assoc_new(struct ddps_sctp *e, const struct ddps_sctp_param *p)
{
	struct ddps_sctp_assoc *a = calloc(1, sizeof *a);

	if (a && p->nlocal)
		a->local = calloc(p->nlocal, sizeof a->local[0]);
	if (!a || (p->nlocal && !a->local) ||
	    ddps_sc_heap_reserve(&e->heap, e->st.assocs + 1) < 0) {
		if (a)
			free(a->local);
		free(a);
		e->st.no_memory++;
		return NULL;
	}
	a->e = e;
	a->path = &a->only;
	a->via = p->via;
	a->asked = p->streams;
	a->has_adaptation = p->has_adaptation;
	a->adaptation = p->adaptation;
	a->mtu = p->mtu;
	a->host_mtu = p->host_mtu;
	a->fixed_mtu = p->fixed_mtu;
	a->delay_sack_never = p->delay_sack_never;
	a->sealed = p->sealed;
	if (p->nlocal)
		memcpy(a->local, p->local, p->nlocal * sizeof a->local[0]);
	a->nlocal = (uint8_t)p->nlocal;
	a->ctl_at = a->guard_at = a->sack_at = DDPS_SC_NEVER;
	a->timer.want = DDPS_SC_NEVER;
	a->own_tag = ddps_sc_random32(e);
	a->own_tsn = ddps_sc_random32(e);
	a->told_rwnd = (uint32_t)e->c.rwnd;
	STAILQ_INIT(&a->blobs);
	STAILQ_INIT(&a->queue);
	TAILQ_INIT(&a->ready);
	begin_tx(a, 0);
	TAILQ_INSERT_TAIL(&e->all, a, all_link);
	e->st.assocs++;
	return a;
}

/* ---- beginning ---- */

void ddps_sc_start_tx(struct ddps_sctp_assoc *a, uint32_t peer_rwnd)
{
	ddps_sent_fini(&a->tx);
	begin_tx(a, peer_rwnd);
	for (unsigned i = 0; i < a->npaths; i++)
		ddps_sc_path_tx(a->path[i], i);
}

void ddps_sc_start_rx(struct ddps_sctp_assoc *a, uint32_t peer_tsn)
{
	a->peer_tsn = peer_tsn;
	ddps_sc_map_fini(&a->map);
	ddps_sc_map_init(&a->map, peer_tsn - 1);
}

void ddps_sc_wipe(struct ddps_sctp_assoc *a)
{
	ddps_sent_fini(&a->tx);
	begin_tx(a, 0);
	ddps_sc_queue_free(a);
	ddps_sc_blobs_free(&a->blobs);
	a->nblobs = a->nbig = 0;
	ddps_sc_reasm_free(a);
	ddps_sc_streams_free(a);
	free(a->ssn_out);
	a->ssn_out = NULL;
	a->nssn_out = 0;
	a->acked_n = a->sent_n;
	a->blocked = false;
	a->ndups = a->sack_packets = 0;
	a->saw_data = false;
	a->sack_at = DDPS_SC_NEVER;
	a->due = 0;
	a->early = 0;
	a->notes &= NOTE_GONE;
	a->tie_own = a->tie_peer = 0;
	a->errors = 0;
	a->guard_at = DDPS_SC_NEVER;
	a->told_rwnd = (uint32_t)a->e->c.rwnd;
	ddps_sc_stop_ctl(a);
	for (unsigned i = 0; i < a->npaths; i++) {
		struct ddps_sc_path *p = a->path[i];

		p->confirmed = p->hb_out = false;
		p->hb_nonce = p->probe_nonce = 0; /* what was sent before proves nothing */
		p->state = DDPS_SCTP_UNCONFIRMED;
		p->errors = p->good = 0;
	}
}

/* ---- the end ---- */

void ddps_sc_end(struct ddps_sctp_assoc *a, struct ddps_error why)
{
	if (a->dead)
		return;
	a->dead = true;
	a->state = SC_CLOSED;
	ddps_error_keep(&a->why, &why);
	ddps_sc_gone_add(a->e, a->own_tag, a->peer_tag);
	for (unsigned i = 0; i < a->npaths; i++)
		ddps_sc_leave(a->e, a->path[i]);
	if (a->npaths > DDPS_SENT_PATHS)
		ddps_sc_more_put(a->e, &a->share, a->npaths - DDPS_SENT_PATHS);
	if (a->counted)
		ddps_sc_peer_put(a->e, &a->share);
	a->counted = false;
	ddps_sc_stop_ctl(a);
	a->guard_at = a->sack_at = DDPS_SC_NEVER;
	a->due = 0;
	ddps_sc_note(a, NOTE_GONE);
	ddps_sc_touch(a);
}

void ddps_sc_blobs_free(struct ddps_sc_blobs *q)
{
	struct ddps_sc_blob *b;

	while ((b = STAILQ_FIRST(q))) {
		STAILQ_REMOVE_HEAD(q, link);
		free(b);
	}
}

void ddps_sc_release(struct ddps_sctp_assoc *a)
{
	struct ddps_sctp *e = a->e;

	a->freed = true;
	ddps_sc_end(a, (struct ddps_error){ .code = 0 });
	ddps_sc_timer_drop(&e->heap, &a->timer);
	if (a->in_tx)
		TAILQ_REMOVE(&e->tx, a, tx_link);
	if (a->dying)
		TAILQ_REMOVE(&e->dying, a, tx_link);
	if (a->touched)
		TAILQ_REMOVE(&e->touched, a, touch_link);
	if (a->noted)
		TAILQ_REMOVE(&e->noted, a, note_link);
	TAILQ_REMOVE(&e->all, a, all_link);
	e->st.assocs--;
	ddps_sent_fini(&a->tx);
	ddps_sc_queue_free(a);
	ddps_sc_blobs_free(&a->blobs);
	ddps_sc_map_fini(&a->map);
	ddps_sc_reasm_free(a);
	ddps_sc_streams_free(a);
	free(a->ssn_out);
	free(a->dups);
	free(a->cookie);
	free(a->report);
	free(a->local);
	ddps_error_drop(&a->why);
	for (unsigned i = 0; i < a->npaths; i++)
		free(a->path[i]);
	if (a->path != &a->only)
		free(a->path);
	free(a);
	if (!e->st.assocs) { /* what was kept for the next ones is as much as the most had once */
		ddps_sc_pool_fini(&e->pool);
		ddps_sc_heap_fini(&e->heap);
		ddps_sent_spares_free(&e->spares);
	}
}

uint8_t *ddps_sc_blob(struct ddps_sctp_assoc *a, struct ddps_sc_path *p, size_t len)
{
	struct ddps_sc_blob *b = a->nblobs < BLOBS_MAX ? malloc(sizeof *b + len) : NULL;

	if (!b) {
		a->e->st.no_memory++;
		return NULL;
	}
	b->path = p;
	b->len = len;
	a->nblobs++;
	a->nbig += len > DDPS_SC_BLOB_BIG;
	STAILQ_INSERT_TAIL(&a->blobs, b, link);
	ddps_sc_touch(a);
	return b->octets;
}

/* ---- T1 and T2 ---- */

/* All timers of many associations must not fire together. */
static uint64_t jittered(struct ddps_sctp *e, uint64_t ns)
{
	return ns + ns / 16 * (ddps_sc_random32(e) & 15) / 16;
}

void ddps_sc_restart_ctl(struct ddps_sctp_assoc *a, bool resent)
{
	if (!resent) {
		a->ctl_n = 0;
		a->ctl_rto = ddps_sent_rto(&a->tx, &a->ctl_path->tx);
		a->ctl_sent = a->e->now;
	} else {
		a->ctl_rto *= 2;
		a->ctl_sent = 0;
	}
	if (a->ctl_rto > a->e->c.rto_max_ms * MS)
		a->ctl_rto = a->e->c.rto_max_ms * MS;
	a->ctl_at = a->e->now + jittered(a->e, a->ctl_rto);
}

void ddps_sc_stop_ctl(struct ddps_sctp_assoc *a)
{
	a->ctl_at = DDPS_SC_NEVER;
	a->ctl_n = 0;
	a->ctl_sent = 0;
}

bool ddps_sc_count_error(struct ddps_sctp_assoc *a, struct ddps_sc_path *p)
{
	ddps_sc_path_error(p);
	if (a->dead)
		return true;
	if (++a->errors <= a->e->c.assoc_max_retrans)
		return false;
	ddps_sc_abort_out(a, 0, NULL, 0,
			  ddps_error_make(DDPS_E_RESET, 0,
					  "the peer has not answered %u times in a row",
					  a->errors));
	return true;
}

/* The next address that the user gave [9260-5.1-14]; after set-up, one that works. */
static void next_ctl_path(struct ddps_sctp_assoc *a)
{
	unsigned n = a->state <= SC_COOKIE_ECHOED ? a->npeers : a->npaths;

	for (unsigned i = 1; i <= n; i++) {
		struct ddps_sc_path *p = a->path[(a->ctl_path->id + i) % n];

		if (p->confirmed && (p->state == DDPS_SCTP_ACTIVE ||
				     (a->state <= SC_COOKIE_ECHOED &&
				      p->state != DDPS_SCTP_INACTIVE))) { /* nobody is there */
			a->ctl_path = p;
			return;
		}
	}
}

/* What T1 or T2 repeats. */
static uint8_t due_of_ctl(const struct ddps_sctp_assoc *a)
{
	switch (a->state) {
	case SC_COOKIE_WAIT:
		return DUE_INIT;
	case SC_COOKIE_ECHOED:
		return DUE_ECHO;
	case SC_SENT:
		return DUE_SHUTDOWN;
	default:
		return DUE_SHUTDOWN_ACK;
	}
}

void ddps_sc_move_ctl(struct ddps_sctp_assoc *a)
{
	next_ctl_path(a);
	if (a->ctl_at == DDPS_SC_NEVER)
		return;
	a->due |= due_of_ctl(a);
	if (a->ctl_sent)
		a->ctl_sent = a->e->now;
	a->ctl_at = a->e->now + jittered(a->e, a->ctl_rto);
}

static void set_up_timeout(struct ddps_sctp_assoc *a)
{
	if (a->ctl_n > a->e->c.init_max_retrans) {
		ddps_sc_end(a, ddps_error_make(DDPS_E_TIMEDOUT, 0,
					       "no answer to the SCTP set-up after %u attempts",
					       a->ctl_n));
		return;
	}
	next_ctl_path(a);
	if (ddps_sc_dial_anew(a))
		return;
	a->due |= due_of_ctl(a);
	ddps_sc_restart_ctl(a, true);
}

void ddps_sc_ctl_timeout(struct ddps_sctp_assoc *a)
{
	a->ctl_n++;
	if (a->state <= SC_COOKIE_ECHOED) {
		set_up_timeout(a);
		return;
	}
	if (ddps_sc_count_error(a, a->ctl_path))
		return;
	if (a->ctl_n > a->e->c.assoc_max_retrans) {
		ddps_sc_abort_out(a, 0, NULL, 0,
				  ddps_error_make(DDPS_E_TIMEDOUT, 0, "no answer to SHUTDOWN"));
		return;
	}
	next_ctl_path(a);
	a->due |= due_of_ctl(a);
	ddps_sc_restart_ctl(a, true);
}
