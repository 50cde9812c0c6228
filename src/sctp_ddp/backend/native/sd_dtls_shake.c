/* SPDX-License-Identifier: BSD-2-Clause */
/* Handshakes of DTLS: datagrams for the context's thread, and what it makes of them. */
#include "sctp_ddp/backend/native/sd_dtls.h"
#include "secure/secure.h"
#include <errno.h>
#include <string.h>

#define SERVER_NS  (10 * NSEC_PER_SEC) /* a peer has so long */
#define TODO_MAX   65536u
#define TODO_N	   64u
#define ANEW	   2u /* times that a dial begins anew since nothing comes for so long ... */
#define SILENT_NS  (3 * NSEC_PER_SEC)
#define LASTING_NS (6 * NSEC_PER_SEC) /* ... or nothing comes of it for so long */
#define FAILING_NS (3 * NSEC_PER_SEC) /* a dial may fail for so long by what is anybody's, ... */
#define AGAIN_MS   100u		      /* ... each time after so long */
#define IP_AND_UDP 28u		      /* headers, at least */

/* @early: as of ddps_sn_dtls_refused. */
static void fail_dtls(struct ddps_sn_dtls *c, struct ddps_error e, bool early)
{
	if (c->server)
		ddps_sn_dtls_refused(c->ne, &c->peer, c->at.port, e.code, e.text, early);
	ddps_sn_dtls_end(c, &e);
}

static void tell_who(const struct ddps_sn_dtls *c, const struct ddps_peer_id *id)
{
	char peer[72];

	ddps_sn_text(&c->peer, c->at.port, peer, sizeof peer);
	ddps_log(&c->ne->env->log, DDPS_LOG_INFO, "secure", "%s: %s, %s, %s, peer %s", peer,
		 id->version, id->suite, id->group, id->name);
}

/* ---- SCTP on top ---- */

static uint32_t less_record(const struct ddps_sn_dtls *c, uint32_t mtu)
{
	uint32_t over = ddps_dtls_overhead(c->cur.rec);

	if (!mtu)
		return 0;
	mtu = mtu > over ? mtu - over : 0;
	if (c->most && mtu > c->most + IP_AND_UDP)
		mtu = c->most + IP_AND_UDP;
	mtu &= ~3u; /* packets are multiples of 4 octets */
	return mtu > DDPS_SN_DTLS_MTU ? DDPS_SN_DTLS_MTU : mtu;
}

static void fit_param(struct ddps_sn_dtls *c)
{
	struct ddps_sctp_param *p = &c->param;

	p->via = c->as->via;
	p->sealed = true;
	p->mtu = less_record(c, p->mtu);
	if (p->mtu < 576)
		p->mtu = 576;
	p->host_mtu = less_record(c, p->host_mtu);
	if (p->host_mtu && p->host_mtu < p->mtu)
		p->host_mtu = 0;
}

static int start_sctp(struct ddps_sn_dtls *c)
{
	struct ddps_sd_assoc *a = c->dials;
	struct ddps_sctp_info i;
	int err;

	fit_param(c);
	if (c->server) {
		if (c->ep)
			return ddps_sctp_listen(c->ne->e, &c->param, ddps_sn_accept, c->ep, &c->l);
		return 0;
	}
	err = ddps_sctp_connect(c->ne->e, &c->param, &c->peer, 1, c->peer_port, c->at.port,
				&ddps_sn_up, a, ddps_sn_now(c->ne), &a->sa);
	if (err)
		return err;
	ddps_sctp_info(a->sa, &i);
	a->port = i.port;
	c->took = true;
	return 0;
}

static void open_dtls(struct ddps_sn_dtls *c)
{
	struct ddps_peer_id id;
	int err = ddps_sn_keys_take(c, &c->cur, &id, &c->witness);

	if (!err)
		err = ddps_sn_dtls_keep_who(c, &id);
	if (!err) {
		c->state = DDPS_SN_OPEN;
		c->deadline = 0;
		ddps_error_drop(&c->refused);
		ddps_shares_del(&c->udp->table->shaking, &c->share);
		ddps_timer_stop(c->ne->env->loop, &c->timer);
		if (!c->server) { /* a listener's last flight may have to leave again */
			ddps_shake_free(c->shake);
			c->shake = NULL;
			ddps_sn_framed_drop(&c->todo);
		}
		tell_who(c, &id);
		err = start_sctp(c);
	}
	if (err) {
		fail_dtls(c, ddps_error_make(err, 0, "no memory for a DTLS connection"), false);
		return;
	}
	ddps_sn_dtls_linger(c);
	ddps_sn_dtls_input_early(c);
	ddps_sn_poke(c->ne);
}

/* ---- steps ---- */

/*
 * New keys: an empty record of data goes in front, in the same datagram.  It shows whose handshake this is, if a NAT on
 * the way has just given this side another port: there it would seem to be a stranger's.
 */
static void send_flight_of(struct ddps_sn_dtls *c, const uint8_t *p, size_t n)
{
	uint8_t *out = ddps_sn_dtls_room(c->ne);
	ssize_t len = out ? ddps_dtls_seal(c->cur.rec, DDPS_DTLS_DATA, NULL, 0, out, DDPS_SN_SEALED)
			  : -ENOMEM;

	if (len < 0 || n > DDPS_SN_SEALED - (size_t)len)
		return; /* as if it were lost */
	memcpy(out + len, p, n);
	ddps_sn_dtls_send_raw(c->udp, &c->peer, c->at.port, &c->local, out, (size_t)len + n);
}

static void send_flight(struct ddps_sn_dtls *c)
{
	size_t n, at = 0;
	const uint8_t *p = ddps_shake_output(c->shake, &n);

	while (at < n) {
		size_t len = (size_t)p[at] << 8 | p[at + 1];

		if (c->renewing && !c->server)
			send_flight_of(c, p + at + 2, len);
		else
			ddps_sn_dtls_send_raw(c->udp, &c->peer, c->at.port, &c->local, p + at + 2,
					      len);
		at += 2 + len;
	}
	ddps_shake_sent(c->shake, n);
}

/* A step may have to wait for its turn: a deadline is kept meanwhile, and so is how long it may stay unused. */
static void feed_shake(struct ddps_sn_dtls *c)
{
	if (c->deadline)
		ddps_timer_start(c->ne->env->loop, &c->timer, c->deadline);
	else if (c->state == DDPS_SN_SHAKING)
		ddps_timer_stop(c->ne->env->loop, &c->timer);
	if (ddps_shake_feed(c->shake, c->todo.p, c->todo.len))
		fail_dtls(c, ddps_error_make(DDPS_E_NOMEM, 0, "no memory for a handshake"), false);
	else
		c->todo.len = c->todo.n = 0;
}

static void drop_shake(struct ddps_sn_dtls *c)
{
	ddps_shake_free(c->shake);
	c->shake = NULL;
	c->todo.len = c->todo.n = 0;
}

static void begin_anew(struct ddps_sn_dtls *c)
{
	const struct ddps_creds_want want = { .host = c->host };
	struct ddps_error why;

	drop_shake(c);
	if (ddps_sn_dtls_shake(c, &want, NULL, NULL, 0, &why))
		fail_dtls(c, why, false);
}

static bool begin_anew_in_silence(struct ddps_sn_dtls *c)
{
	const uint64_t now = ddps_now();

	if (c->server || c->state != DDPS_SN_SHAKING || c->anew == ANEW ||
	    (now - c->heard_at < SILENT_NS && now - c->begun_at < LASTING_NS))
		return false;
	c->anew++;
	begin_anew(c);
	return true;
}

/*
 * Nothing authenticates a handshake before its end: one datagram of anybody's can end it, at either side, and the peer
 * does not know.  So a dial begins anew, until it has failed for a while.
 */
static bool try_again_soon(struct ddps_sn_dtls *c, const struct ddps_error *why)
{
	if (c->server)
		return false;
	if (!c->failing_since)
		c->failing_since = ddps_now();
	if (ddps_now() - c->failing_since >= FAILING_NS)
		return false;
	ddps_error_drop(&c->refused);
	ddps_error_keep(&c->refused, why);
	drop_shake(c);
	ddps_timer_after(c->ne->env->loop, &c->timer, AGAIN_MS);
	return true;
}

/*
 * A listener that renews keys says its last word, by which the dialler begins with them, only when it has them itself:
 * whom it does not let in any more goes on with the old ones.  False: it is over, and nothing of it has left.
 */
static bool renew_before_last_word(struct ddps_sn_dtls *c)
{
	const enum ddps_hs_state state = ddps_shake_state(c->shake);

	if (!c->server || !c->renewing || c->coming.rec || state == DDPS_HS_MORE)
		return true;
	if (state == DDPS_HS_FAILED)
		ddps_sn_dtls_not_renewed(c, ddps_shake_why(c->shake)->text);
	else
		ddps_sn_dtls_renewed(c);
	return c->shake;
}

static void stepped(void *user)
{
	struct ddps_sn_dtls *c = user;
	const struct ddps_verdict *v;
	struct ddps_error why;
	uint64_t due;

	if (!renew_before_last_word(c))
		return;
	send_flight(c);
	switch (ddps_shake_state(c->shake)) {
	case DDPS_HS_FAILED:
		v = ddps_shake_why(c->shake);
		if (c->renewing) {
			ddps_sn_dtls_not_renewed(c, v->text);
			return;
		}
		why = ddps_error_make(v->code, 0, "%s", v->text);
		if (!v->anybodys || !try_again_soon(c, &why))
			fail_dtls(c, why, v->anybodys);
		return;
	case DDPS_HS_DONE:
		if (c->state == DDPS_SN_SHAKING) {
			open_dtls(c);
			if (c->state != DDPS_SN_OPEN)
				return;
		} else if (c->renewing && !c->coming.rec) {
			ddps_sn_dtls_renewed(c);
			if (!c->shake)
				return;
		}
		break;
	case DDPS_HS_MORE:
		break;
	}
	if (c->todo.len && (!c->deadline || ddps_now() < c->deadline)) {
		feed_shake(c);
	} else if (c->state == DDPS_SN_SHAKING || (c->renewing && !c->coming.rec)) {
		due = ddps_now() + (ddps_shake_timeout(c->shake) + 1) * NSEC_PER_MSEC;
		if (c->deadline && due > c->deadline)
			due = c->deadline;
		ddps_timer_start(c->ne->env->loop, &c->timer, due);
	}
}

int ddps_sn_dtls_shake(struct ddps_sn_dtls *c, const struct ddps_creds_want *want,
		       const struct ddps_hs_began *began, const uint8_t *in, size_t n,
		       struct ddps_error *why)
{
	static const struct ddps_hs_began none;
	struct sockaddr_storage ss;
	int err;

	ddps_sn_sockaddr(&c->peer, c->at.port, c->peer.family == 6 ? AF_INET6 : AF_INET, &ss);
	err = ddps_shake_datagrams(c->ne->env, want, (struct sockaddr *)&ss, began ? began : &none,
				   stepped, c, &c->shake, why);
	if (err)
		return err;
	c->begun_at = c->heard_at = ddps_now();
	if (c->server || c->renewing)
		c->deadline = ddps_now() + SERVER_NS;
	if (n && !ddps_sn_framed_add(&c->todo, in, n)) {
		*why = ddps_error_make(DDPS_E_NOMEM, 0, "no memory for a handshake");
		return DDPS_E_NOMEM;
	}
	feed_shake(c);
	return 0;
}

void ddps_sn_dtls_shake_in(struct ddps_sn_dtls *c, const uint8_t *in, size_t n)
{
	if (!c->shake || c->todo.len + n > TODO_MAX || c->todo.n == TODO_N)
		return; /* it leaves again */
	c->heard_at = ddps_now();
	if (!ddps_sn_framed_add(&c->todo, in, n))
		return;
	if (!ddps_shake_busy(c->shake))
		feed_shake(c);
}

struct ddps_error ddps_sn_dtls_late(const struct ddps_sn_dtls *c)
{
	const struct ddps_verdict *v;

	if (c->failing_since)
		return ddps_error_kept(&c->refused);
	if (!c->shake || ddps_shake_busy(c->shake))
		return ddps_error_make(DDPS_E_TIMEDOUT, 0, "no DTLS handshake in time");
	v = ddps_shake_why(c->shake);
	return ddps_error_make(v->code ? v->code : DDPS_E_TIMEDOUT, 0, "%s%s",
			       v->code ? v->text : "no DTLS handshake in time",
			       c->unreachable ? " (its host says that nothing has this port)" : "");
}

/* A step that is under way may find out why nothing comes: it has a second to say so. */
static void end_late_shake(struct ddps_sn_dtls *c)
{
	const uint64_t last = c->deadline + NSEC_PER_SEC;

	if (c->shake && ddps_shake_busy(c->shake) && !ddps_shake_waits(c->shake) &&
	    ddps_now() < last)
		ddps_timer_start(c->ne->env->loop, &c->timer, last);
	else
		fail_dtls(c, ddps_sn_dtls_late(c), true);
}

void ddps_sn_dtls_timer(void *user)
{
	static const struct ddps_error none;
	struct ddps_sn_dtls *c = user;

	if (c->state == DDPS_SN_OPEN && !c->renewing) {
		if (c->as->refs == 1)
			ddps_sn_dtls_end(c, &none);
		return;
	}
	if (c->renewing && ddps_now() >= c->deadline) {
		ddps_sn_dtls_not_renewed(c, c->coming.rec ? "the peer does not use them"
							  : "the peer does not answer");
		return;
	}
	if (c->deadline && ddps_now() >= c->deadline)
		end_late_shake(c);
	else if (!c->shake)
		begin_anew(c);
	else if (!begin_anew_in_silence(c))
		feed_shake(c);
}
