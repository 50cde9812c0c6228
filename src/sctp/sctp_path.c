/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths: their states (RFC 9260 8, RFC 7829), heartbeats, path MTU probes. */
#include "sctp/sctp_in.h"

#define STEADY	   (60 * 1000 * MS)	/* a path that fails later than that has not failed twice */
#define INFO_LEN   (DDPS_SC_HB_LEN - 8) /* nonce, time, address */
#define STUCK	   6u			/* times that one chunk may be lost for its size */
#define HB_BIG_MAX 4u			/* large answers that wait to be sent */

unsigned ddps_sc_overhead(const struct ddps_sc_path *p)
{
	return (p->peer.family == 6 ? 40u : 20u) + (p->encap ? 8u : 0u) + DDPS_SC_HDR;
}

/* ---- heartbeats ---- */

static uint64_t hb_rto(const struct ddps_sc_path *p)
{
	uint64_t rto = ddps_sent_rto(&p->a->tx, &p->tx), max = p->a->e->c.rto_max_ms * MS;
	unsigned n = p->errors < 6 ? p->errors : 6;

	return rto << n < max ? rto << n : max;
}

/* [9260-8.3-7] RTO + interval, and half an RTO more or less. */
static uint64_t period(const struct ddps_sc_path *p)
{
	struct ddps_sctp *e = p->a->e;
	uint64_t rto = hb_rto(p);

	return e->c.hb_interval_ms * MS + rto / 2 + rto / 1024 * (ddps_sc_random32(e) & 1023);
}

static uint64_t next_hb(const struct ddps_sc_path *p)
{
	const struct ddps_sctp *e = p->a->e;

	return e->c.hb_interval_ms ? e->now + period(p) : DDPS_SC_NEVER;
}

static void put_info(struct ddps_wbuf *w, const struct ddps_sc_path *p, uint64_t nonce)
{
	uint8_t info[INFO_LEN];
	struct ddps_wbuf i = ddps_wbuf_init(info, sizeof info);

	ddps_wbuf_u64(&i, nonce);
	ddps_wbuf_u64(&i, p->a->e->now);
	ddps_wbuf_bytes(&i, p->peer.ip, sizeof p->peer.ip);
	ddps_sc_put_tlv(w, SC_P_HB_INFO, info, sizeof info);
}

uint64_t ddps_sc_put_hb(struct ddps_wbuf *w, const struct ddps_sc_path *p)
{
	struct ddps_sctp *e = p->a->e;
	uint64_t nonce = (uint64_t)ddps_sc_random32(e) << 32 | ddps_sc_random32(e);
	uint8_t *chunk = ddps_sc_begin_chunk(w, SC_HEARTBEAT, 0);

	put_info(w, p, nonce);
	ddps_sc_end_chunk(w, chunk, 0);
	return nonce;
}

static void send_hb(struct ddps_sc_path *p)
{
	struct ddps_sctp *e = p->a->e;
	uint8_t *at = ddps_sc_blob(p->a, p, DDPS_SC_HB_LEN);
	struct ddps_wbuf w;

	p->hb_at = e->now + ddps_sent_late(&p->tx, hb_rto(p));
	if (!at)
		return;
	w = ddps_wbuf_init(at, DDPS_SC_HB_LEN);
	p->hb_nonce = ddps_sc_put_hb(&w, p);
	p->hb_sent = p->used = e->now;
	p->hb_out = true;
}

void ddps_sc_put_probe(struct ddps_sc_path *p, uint16_t size, struct ddps_wbuf *w)
{
	p->probe_nonce = ddps_sc_put_hb(w, p);
	p->probe_size = size;
}

static bool eager(const struct ddps_sc_path *p)
{
	return p->state == DDPS_SCTP_DOUBTFUL || p->state == DDPS_SCTP_UNCONFIRMED;
}

static void hb_timer(struct ddps_sc_path *p)
{
	struct ddps_sctp_assoc *a = p->a;
	uint64_t due;

	p->hb_at = DDPS_SC_NEVER;
	if (!ddps_sc_sends_hb(a))
		return;
	if (p->hb_out) { /* [9260-8.3-3] */
		p->hb_out = false;
		if (p == a->data_path) {
			if (ddps_sc_count_error(a, p))
				return;
		} else {
			ddps_sc_path_error(p);
		}
		if (!eager(p) && !p->doubt) {
			p->hb_at = next_hb(p);
			return;
		}
		p->hb_now = true;
	}
	p->doubt = false;
	if (!eager(p) && !p->hb_now) {
		if (!a->e->c.hb_interval_ms)
			return;
		due = p->used + a->e->c.hb_interval_ms * MS;
		if (due > a->e->now) { /* it was used meanwhile */
			p->hb_at = p->used + period(p);
			return;
		}
	}
	p->hb_now = false;
	if (!eager(p)) /* idle for long: what was needed to send is not now */
		ddps_sent_rest(&a->tx);
	send_hb(p);
}

void ddps_sc_heartbeat(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c)
{
	uint8_t *at;
	struct ddps_wbuf w;

	/* [9260-12.4-2] One packet is answered by one. */
	if (rx->answered || (c->len > DDPS_SC_BLOB_BIG && rx->a->nbig >= HB_BIG_MAX))
		return;
	at = ddps_sc_blob(rx->a, rx->path, ddps_sc_pad(c->len));
	if (!at)
		return;
	rx->answered = true;
	w = ddps_wbuf_init(at, ddps_sc_pad(c->len));
	ddps_sc_put_chunk(&w, SC_HEARTBEAT_ACK, 0, c->val, c->vlen);
}

/* ---- their MTU ---- */

static bool within_host(const struct ddps_sc_path *p)
{
	return ddps_sc_loopback(&p->peer) ||
	       (p->local.family && ddps_sc_addr_eq(&p->peer, &p->local));
}

/* What to ask first: the loopback interface's MTU where the way does not lead beyond it, else what
 * another association has found lately.  A link's MTU elsewhere says nothing of the next link. */
static void start_pmtu(struct ddps_sc_path *p)
{
	struct ddps_sctp_assoc *a = p->a;
	uint16_t host = a->host_mtu < UINT16_MAX ? (uint16_t)a->host_mtu : UINT16_MAX;

	p->tx.within_host = within_host(p);
	if (a->fixed_mtu)
		return;
	if (host && p->tx.within_host)
		ddps_pmtu_start_likely(&p->tx.pmtu, host, a->e->now);
	else
		ddps_pmtu_start(&p->tx.pmtu, ddps_sc_way_size(a->e, &p->peer), a->e->now);
	ddps_sent_mtu_changed(&a->tx, &p->tx, DDPS_PMTU_SIZE);
}

static void set_path_state(struct ddps_sc_path *p, enum ddps_sctp_path_state s)
{
	struct ddps_sctp_assoc *a = p->a;

	p->state = s;
	if (!a->dead && a->announced && a->up->path)
		a->up->path(a->user, &p->peer, s);
}

/* ---- answers ---- */

/* Heartbeats that a failed path must answer in a row before it is used again: more each time, so
 * that one that comes and goes is left alone. */
static unsigned proof(const struct ddps_sc_path *p)
{
	return 3u << (p->fails < 6 ? p->fails : 6);
}

static void hb_acked(struct ddps_sc_path *p)
{
	struct ddps_sctp_assoc *a = p->a;
	struct ddps_sctp *e = a->e;

	p->hb_out = false;
	p->hb_nonce = 0;
	p->good++;
	ddps_sent_rtt(&a->tx, &p->tx, e->now - p->hb_sent, e->now);
	if (!p->confirmed) {
		p->confirmed = true;
		start_pmtu(p);
	}
	ddps_sc_path_good(p);
	ddps_sc_path_pick(a); /* the primary path may have proved itself */
	a->errors = 0;	      /* [9260-8.3-6] */
	if (p == a->primary && p != a->data_path) {
		p->hb_at = e->now + ddps_sent_late(&p->tx, hb_rto(p)); /* is it there to stay? */
		p->hb_now = true;
	} else {
		p->hb_at = next_hb(p);
	}
}

static void probe_acked(struct ddps_sc_path *p)
{
	struct ddps_sctp_assoc *a = p->a;

	p->probe_nonce = 0;
	ddps_sent_mtu_changed(&a->tx, &p->tx,
			      ddps_pmtu_probe_acked(&p->tx.pmtu, p->probe_size, a->e->now));
	/* Also when it shrank: the probe that follows a black hole is answered, too. */
	ddps_sc_way_set(a->e, &p->peer, p->tx.pmtu.size);
	ddps_sc_path_good(p); /* [8899-6.2-d1] */
}

/* [9260-5.4-d2] The nonce and the address must be those of a heartbeat of ours. */
void ddps_sc_heartbeat_ack(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c)
{
	struct ddps_sctp_assoc *a = rx->a;
	struct ddps_rbuf r = ddps_rbuf_init(c->val, c->vlen);
	struct ddps_sc_tlv t;
	uint64_t nonce;
	const uint8_t *ip;

	if (ddps_sc_tlv_next(&r, &t) <= 0 || t.type != SC_P_HB_INFO || t.vlen != INFO_LEN)
		return;
	r = ddps_rbuf_init(t.val, t.vlen);
	nonce = ddps_rbuf_u64(&r);
	ddps_rbuf_take(&r, 8);
	ip = ddps_rbuf_take(&r, 16);
	for (unsigned i = 0; nonce && i < a->npaths; i++) {
		struct ddps_sc_path *p = a->path[i];

		if (memcmp(ip, p->peer.ip, 16))
			continue;
		if (nonce == p->hb_nonce) {
			hb_acked(p);
		} else if (nonce == p->probe_nonce) {
			probe_acked(p);
		} else if (nonce == p->roam_nonce) {
			ddps_sc_roamed(p);
		}
	}
}

/* ---- states ---- */

void ddps_sc_path_start(struct ddps_sc_path *p)
{
	struct ddps_sctp *e = p->a->e;

	if (p->id >= DDPS_SENT_PATHS) /* it is known, not used */
		return;
	p->hb_out = p->hb_now = false;
	p->errors = p->good = 0;
	if (p->confirmed && p->state == DDPS_SCTP_INACTIVE && p != p->a->last_heard) {
		p->hb_at = next_hb(p); /* it refused the set-up */
	} else if (p->confirmed) {
		p->state = DDPS_SCTP_ACTIVE;
		start_pmtu(p);
		p->hb_at = next_hb(p);
	} else {
		p->state = DDPS_SCTP_UNCONFIRMED;
		p->hb_at = e->now;
	}
}

/* A path that is confirmed. */
void ddps_sc_path_good(struct ddps_sc_path *p)
{
	p->errors = 0;
	if (p->state == DDPS_SCTP_ACTIVE)
		return;
	if (p->state == DDPS_SCTP_INACTIVE && p->a->npaths > 1)
		start_pmtu(p);
	set_path_state(p, DDPS_SCTP_ACTIVE);
	ddps_sc_path_pick(p->a);
}

static void fail_path(struct ddps_sc_path *p)
{
	struct ddps_sctp_assoc *a = p->a;

	a->e->st.path_failures++;
	if (a->npaths > 1)
		ddps_pmtu_stop(&p->tx.pmtu);
	set_path_state(p, DDPS_SCTP_INACTIVE);
}

static void ask_now(struct ddps_sc_path *p)
{
	if (!p->a->e->c.hb_interval_ms)
		return;
	p->hb_at = p->a->e->now;
	p->hb_now = true;
	p->hb_out = false;
}

/* Inside DTLS there is no other path: it ends with the association [8261-6.1-4]. */
static unsigned most_path_errors(const struct ddps_sctp_assoc *a)
{
	return a->sealed ? a->e->c.assoc_max_retrans : a->e->c.path_max_retrans;
}

void ddps_sc_path_error(struct ddps_sc_path *p)
{
	struct ddps_sctp_assoc *a = p->a;

	p->good = 0;
	if (p->state == DDPS_SCTP_INACTIVE) /* [9260-8.3-4] counting stops */
		return;
	p->errors++;
	if (p->errors > most_path_errors(a)) {
		fail_path(p);
	} else if (p->state == DDPS_SCTP_ACTIVE && a->npaths > 1) {
		ask_now(p); /* [7829-3-3] [7829-3-5] */
		set_path_state(p, DDPS_SCTP_DOUBTFUL);
	}
	ddps_sc_path_pick(a);
}

void ddps_sc_ask_paths(struct ddps_sctp_assoc *a)
{
	for (unsigned i = 0; ddps_sc_sends_hb(a) && i < a->npaths; i++) {
		if (a->path[i]->state == DDPS_SCTP_ACTIVE && !a->path[i]->hb_out)
			ask_now(a->path[i]);
	}
	ddps_sc_touch(a);
}

bool ddps_sc_is_silent(const struct ddps_sctp_assoc *a)
{
	for (unsigned i = 0; i < a->npaths; i++) {
		if (a->path[i]->confirmed && a->path[i]->state != DDPS_SCTP_INACTIVE)
			return false;
	}
	return ddps_sc_sends_hb(a);
}

/* During the set-up nothing else is known of it, and the one that is tried next may be preferred as well. */
void ddps_sc_path_refused(struct ddps_sc_path *p)
{
	struct ddps_sctp_assoc *a = p->a;

	p->good = 0;
	p->errors = most_path_errors(a) + 1;
	p->hb_out = false;
	fail_path(p);
	if (a->up && a->up->refused)
		a->up->refused(a->user, &p->peer);
	if (!ddps_sc_sends_hb(a))
		return;
	p->hb_at = next_hb(p);
	/* The peer may be gone as a whole: do not wait for an interval to learn of it. */
	if (p->confirmed)
		ddps_sc_ask_paths(a);
	ddps_sc_path_pick(a);
}

/* ---- which one ---- */

static bool worse(const struct ddps_sc_path *p, const struct ddps_sc_path *than)
{
	return p->state > than->state || (p->state == than->state && p->errors > than->errors);
}

/* At least one is confirmed, and none that is not is active. */
static struct ddps_sc_path *best(const struct ddps_sctp_assoc *a)
{
	struct ddps_sc_path *found = a->path[0], *now = a->data_path, *first = a->primary;

	if (first->state == DDPS_SCTP_ACTIVE && (now == first || now->state != DDPS_SCTP_ACTIVE ||
						 first->good >= proof(first) || !first->failed))
		return first;
	if (now->state == DDPS_SCTP_ACTIVE)
		return now;
	for (unsigned i = 1; i < a->npaths; i++) {
		struct ddps_sc_path *p = a->path[i];

		if (p->confirmed && (!found->confirmed || worse(found, p)))
			found = p;
	}
	return found;
}

void ddps_sc_path_pick(struct ddps_sctp_assoc *a)
{
	struct ddps_sc_path *old = a->data_path, *p = best(a);

	if (p == old)
		return;
	a->data_path = p;
	if (old->state != DDPS_SCTP_ACTIVE && old->confirmed) {
		old->failed = true;
		/* soon after it was used again, or for the first time in long */
		if (old->since && a->e->now - old->since < STEADY)
			old->fails++;
		else
			old->fails = 0;
		if (old->fails > 6)
			old->fails = 6;
		ddps_sent_path_lost(&a->tx, &old->tx);
	}
	if (p->failed) {
		p->failed = false;
		p->since = a->e->now;
		ddps_sent_path_again(&a->tx, &p->tx);
	}
	a->ask = true;
	ddps_sc_touch(a);
}

/* ---- time ---- */

/*
 * T3 has fired.  What does not pass was cut when the path took more, and it does not pass in fragments either,
 * while smaller packets are answered: it will not, however often it is sent.  True: that is the end.
 */
static bool is_stuck(struct ddps_sc_path *p)
{
	struct ddps_sctp_assoc *a = p->a;
	struct ddps_sent_chunk c;
	unsigned octets;

	if (!ddps_sent_oldest(&a->tx, &c) || c.size <= ddps_sent_smss(&p->tx))
		return false;
	if (c.tsn != a->stuck_tsn)
		a->stuck = 0;
	a->stuck_tsn = c.tsn;
	if (++a->stuck < STUCK || !ddps_pmtu_answered(&p->tx.pmtu))
		return false;
	octets = c.size + ddps_sc_overhead(p);
	ddps_sc_abort_out(a, 0, NULL, 0,
			  ddps_error_make(DDPS_E_RESET, 0,
					  "the path no longer carries packets of %u octets, "
					  "only of %u: what was cut for the larger is lost",
					  octets, (unsigned)p->tx.pmtu.size));
	return true;
}

void ddps_sc_path_timer(struct ddps_sc_path *p)
{
	struct ddps_sctp_assoc *a = p->a;
	uint64_t now = a->e->now;
	unsigned ev;

	if (ddps_sent_deadline(&a->tx, &p->tx) <= now) {
		ev = ddps_sent_timer(&a->tx, &p->tx, now);
		if (ev & DDPS_SENT_EV_SEND)
			a->ask = true;
		if (ev & DDPS_SENT_EV_T3) {
			if (is_stuck(p) || ddps_sc_count_error(a, p))
				return;
			ddps_sc_roam(p); /* the question may be lost, too */
		}
	}
	if (ddps_sc_pmtu_deadline(p) <= now)
		ddps_sent_mtu_changed(&a->tx, &p->tx, ddps_pmtu_timer(&p->tx.pmtu, now));
	if (p->hb_at <= now)
		hb_timer(p);
}
