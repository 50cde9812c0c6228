/* SPDX-License-Identifier: BSD-2-Clause */
/* An MPA connection: the exchange of Request and Reply. */
#include "common/error.h"
#include "common/term_codes.h"
#include "mpa_tcp/mpa_conn.h"
#include "mpa_tcp/shm/mpa_near.h"
#include <errno.h>
#include <string.h>

/* An invalid frame closes TCP immediately [5044-8-6]; nothing is said on the wire. */
static void bad_frame(struct ddps_mpa_conn *c, enum ddps_mpa_event ev, int code, const char *why)
{
	struct ddps_error e =
		ddps_error_triple(code, ddps_term_triple(DDPS_TERM_MPA_FRAME), "invalid MPA %s: %s",
				  c->initiator ? "Reply" : "Request", why);

	ddps_mpa_conn_step(c, ev);
	ddps_mpa_conn_end(c, &e);
}

/* The initiator has to wait for our Reply: more than its Request is an error [5044-7.1.1-18]. */
static void surplus(struct ddps_mpa_conn *c)
{
	bad_frame(c, DDPS_MPA_EV_SURPLUS, DDPS_E_PROTOCOL, "octets follow it before the Reply");
}

/*
 * The peer went away.  No errno: a reset and a close both mean that it did not like our
 * frame, and the layer above may try again without enhancement [6581-10-8].
 */
static void take_setup_gone(struct ddps_mpa_conn *c, enum ddps_mpa_event ev)
{
	const struct ddps_mpa_startup *s = c->startup;
	const char *when = c->initiator ? "before its MPA Reply" : "before its MPA Request";
	struct ddps_error e;

	if (ddps_mpa_reads_stream(c) || c->state == DDPS_MPA_REQUEST_ULP)
		when = "before our MPA Reply";
	else if (s->in_len)
		when = c->initiator ? "inside its MPA Reply, truncated"
				    : "inside its MPA Request, truncated";
	e = ddps_error_triple(DDPS_E_RESET, ddps_term_triple(DDPS_TERM_MPA_CLOSED),
			      "peer %s the connection %s",
			      ev == DDPS_MPA_EV_LOST ? "reset" : "closed", when);
	/* Inside TLS a peer that closes says so; a reset may be anybody's. */
	if (c->tls && ev == DDPS_MPA_EV_LOST)
		e.sys_errno = ECONNRESET;
	ddps_mpa_conn_step(c, ev);
	ddps_mpa_conn_end(c, &e);
}

bool ddps_mpa_setup_flush(struct ddps_mpa_conn *c)
{
	struct ddps_mpa_startup *s = c->startup;

	while (s && s->out_sent < s->out_len) {
		struct iovec iov = { s->out + s->out_sent, s->out_len - s->out_sent };
		ssize_t n = c->tcp->send(c, &iov, 1);

		if (n == -EINTR)
			continue;
		if (n < 0 && n != -EAGAIN)
			take_setup_gone(c, DDPS_MPA_EV_LOST);
		if (n < 0)
			return false;
		s->out_sent += (size_t)n;
	}
	return true;
}

/* So much is asked for.  Of a Reply what is missing, not one octet more: what is behind it must stay in the socket.  One
 * that lacks the word that we have sent is the last thing that is read. */
static size_t get_asked(const struct ddps_mpa_startup *s, bool initiator)
{
	if (!initiator)
		return sizeof s->in;
	return s->enhanced && s->in_need == DDPS_MPA_HDR_LEN ? DDPS_MPA_HDR_LEN + DDPS_MPA_WORD_LEN
							     : s->in_need;
}

/* Read the peer's frame.  Behind a Request nothing may be.  true: @f is whole and valid. */
static bool read_frame(struct ddps_mpa_conn *c, struct ddps_mpa_frame *f)
{
	enum ddps_mpa_kind kind = c->initiator ? DDPS_MPA_REPLY : DDPS_MPA_REQUEST;
	struct ddps_mpa_startup *s = c->startup;

	for (;;) {
		size_t want = get_asked(s, c->initiator);
		struct iovec iov = { s->in + s->in_len, want - s->in_len };
		/* A Reply that has waited is whole. */
		ssize_t n = iov.iov_len ? c->tcp->recv(c, &iov, 1) : 0;
		const char *why = "";
		int r;

		if (n == -EAGAIN) {
			ddps_mpa_conn_step(c, DDPS_MPA_EV_PART);
			return false;
		}
		if (n < 0 || (!n && iov.iov_len)) {
			take_setup_gone(c, n ? DDPS_MPA_EV_LOST : DDPS_MPA_EV_FIN);
			return false;
		}
		s->in_len += (size_t)n;
		r = ddps_mpa_frame_decode(f, kind, s->in, s->in_len, &s->in_need, &why);
		if (r < 0)
			bad_frame(c, DDPS_MPA_EV_BAD_FRAME, r, why);
		else if (r && s->in_len > s->in_need && !c->initiator)
			surplus(c);
		if (r)
			return r > 0 && (c->initiator || s->in_len == s->in_need);
	}
}

/* ---- initiator ---- */

void ddps_mpa_setup_connected(struct ddps_mpa_conn *c)
{
	ddps_mpa_conn_step(c, DDPS_MPA_EV_INITIATE);
	ddps_mpa_conn_deadline(c, DDPS_MPA_T_SETUP, c->p.setup_ms);
	ddps_mpa_near_offer(c);
	/* The Request first: what follows is done while the peer looks at it. */
	if (!ddps_mpa_setup_flush(c) && !c->open)
		return;
	c->tcp->local(c);
	if (c->tcp->options)
		c->tcp->options(c);
	ddps_mpa_conn_update_emss(c);
}

int ddps_mpa_setup_try(struct ddps_mpa_conn *c)
{
	struct iovec iov = { c->startup->out, c->startup->out_len };
	ssize_t n = c->tcp->send(c, &iov, 1);

	if (n == -EAGAIN || n == -EINTR)
		return 0;
	/* Only what was connected can be reset. */
	if (n < 0 && n != -ECONNRESET && n != -EPIPE)
		return (int)-n;
	if (n > 0)
		c->startup->out_sent = (size_t)n;
	ddps_mpa_setup_connected(c);
	return 0;
}

/* TCP has an answer. */
static void on_connect_done(struct ddps_mpa_conn *c)
{
	int err = c->tcp->error(c);

	if (!err) {
		ddps_mpa_setup_connected(c);
		return;
	}
	ddps_mpa_conn_step(c, DDPS_MPA_EV_LOST);
	ddps_mpa_conn_fail(c, ddps_err_from_errno(err), err, "connect: %s", strerror(err));
}

/* CRCs are on if either side asked [5044-7.1.1-10]; markers where their receiver did.  In memory that two processes
 * share nothing can change on the way. */
static void agree(struct ddps_mpa_conn *c, bool peer_crc, bool peer_markers)
{
	c->rx.crc = c->tx.crc = !ddps_mpa_has_moved(c) && (c->p.crc || peer_crc);
	c->rx.markers = c->p.markers;
	c->tx.markers = peer_markers;
	c->tx.spares = c->tx.crc || peer_markers ? &c->env->mpa_copied : &c->env->mpa_tx;
	ddps_mpa_conn_set_mulpdu(c);
}

static void on_reply(struct ddps_mpa_conn *c, const struct ddps_mpa_frame *f)
{
	struct ddps_setup s = {
		.enhanced = f->enhanced, .reject = f->reject, .pd = f->pd, .pd_len = f->pd_len
	};
	const char *why = "";
	int err = ddps_mpa_reply_fits(f, c->startup->enhanced, &why);

	if (!err && c->startup->out_sent < c->startup->out_len) {
		err = DDPS_E_PROTOCOL;
		why = "it came before the Request had left";
	}
	if (err) {
		bad_frame(c, DDPS_MPA_EV_BAD_FRAME, err, why);
		return;
	}
	if (!f->reject && ddps_mpa_near_pass(c))
		return;
	c->rev = f->rev;
	ddps_mpa_conn_deadline(c, DDPS_MPA_T_NONE, 0);
	if (f->reject) {
		s.enhanced = f->enhanced && c->startup->enhanced;
		ddps_mpa_conn_step(c, DDPS_MPA_EV_REPLY_REJECT);
		c->llp.up->answer(c->llp.user, &s);
		/* MPA leaves TCP open [5044-7.1.2-13]; nobody above has a use for it. */
		if (ddps_mpa_alive(c))
			ddps_mpa_conn_end(c, NULL);
		return;
	}
	ddps_mpa_conn_step(c, DDPS_MPA_EV_REPLY_OK);
	agree(c, f->crc, f->markers);
	c->llp.up->answer(c->llp.user, &s);
}

void ddps_mpa_setup_open(struct ddps_mpa_conn *c)
{
	if (c->state != DDPS_MPA_REPLY_ULP)
		return;
	ddps_mpa_conn_step(c, DDPS_MPA_EV_ULP_ACCEPT);
	ddps_mpa_conn_watch(c);
	if (c->held)
		ddps_task_post(c->env->loop, &c->task);
}

int ddps_mpa_setup_check(const struct ddps_setup *setup)
{
	if (setup->pd_len > DDPS_MPA_PD_MAX)
		return DDPS_E_TOO_LONG;
	if (setup->enhanced && setup->pd_len < DDPS_MPA_WORD_LEN)
		return DDPS_E_INVAL;
	return 0;
}

/* Inside TLS a CRC finds nothing that the records do not: it is for those who ask by the URI. */
static bool wants_crc(const struct ddps_mpa_conn *c, const struct ddps_llp_param *p)
{
	return c->tls ? c->ask_crc : p->crc && !c->shm;
}

void ddps_mpa_setup_initiate(struct ddps_mpa_conn *c, const struct ddps_setup *setup,
			     const struct ddps_llp_param *p, const struct ddps_llp_up *up,
			     void *user)
{
	struct ddps_mpa_frame f = {
		.markers = p->markers || c->ask_markers,
		.crc = wants_crc(c, p),
		.enhanced = setup->enhanced,
		/* Plain ones are Rev 1: an RFC 5044 peer closes on Rev 2 for nothing. */
		.rev = setup->enhanced ? DDPS_MPA_REV_ENH : DDPS_MPA_REV_PLAIN,
		.pd = setup->pd,
		.pd_len = setup->pd_len,
	};

	c->initiator = true;
	c->startup->enhanced = setup->enhanced;
	c->rev = f.rev;
	c->p = *p;
	c->p.crc = f.crc;
	c->p.markers = f.markers;
	c->llp.up = up;
	c->llp.user = user;
	c->startup->out_len = ddps_mpa_frame_encode(c->startup->out, DDPS_MPA_REQUEST, &f);
}

/* ---- responder ---- */

/* There is something while our Reply is to come: more octets, or the end. */
static void on_impatience(struct ddps_mpa_conn *c)
{
	uint8_t octet;
	struct iovec iov = { &octet, 1 };
	ssize_t n = c->tcp->recv(c, &iov, 1);

	if (n == -EAGAIN)
		return;
	if (n > 0)
		surplus(c);
	else
		take_setup_gone(c, n ? DDPS_MPA_EV_LOST : DDPS_MPA_EV_FIN);
}

static void take_mpa_request(struct ddps_mpa_conn *c, const struct ddps_mpa_frame *f)
{
	struct ddps_setup s = { .enhanced = f->enhanced, .pd = f->pd, .pd_len = f->pd_len };

	ddps_mpa_conn_step(c, DDPS_MPA_EV_REQUEST_OK);
	ddps_mpa_conn_deadline(c, DDPS_MPA_T_NONE, 0);
	c->rev = f->rev;
	c->startup->enhanced = f->enhanced;
	c->startup->crc = f->crc;
	c->startup->markers = f->markers;
	if (!c->emss)
		ddps_mpa_conn_update_emss(c);
	agree(c, f->crc, f->markers);
	c->owner->request(c, &s);
}

int ddps_mpa_setup_answer(struct ddps_mpa_conn *c, const struct ddps_setup *s,
			  const struct ddps_llp_param *p)
{
	struct ddps_mpa_frame f = {
		.markers = (p->markers || c->ask_markers) && !s->reject,
		.reject = s->reject,
		.enhanced = s->enhanced, /* as in the Request [6581-10-5] [6581-10-6] */
		.rev = c->rev,
		.pd = s->pd,
		.pd_len = s->pd_len,
	};

	if (c->state != DDPS_MPA_REQUEST_ULP)
		return DDPS_E_STATE;
	f.crc = wants_crc(c, p) || c->startup->crc; /* some initiators go by this bit alone */
	if (s->pd_len > DDPS_MPA_PD_MAX)
		return DDPS_E_TOO_LONG;
	if (s->enhanced != c->startup->enhanced || (s->enhanced && s->pd_len < DDPS_MPA_WORD_LEN))
		return DDPS_E_INVAL;
	c->p = *p;
	c->p.crc = f.crc;
	c->p.markers = f.markers;
	c->startup->out_len = ddps_mpa_frame_encode(c->startup->out, DDPS_MPA_REPLY, &f);
	if (s->reject)
		c->owner->rejected(c);
	else
		c->owner->settled(c);
	/* Reception is on before the Reply leaves [5044-7.1.2-10]. */
	if (s->reject) {
		ddps_mpa_conn_step(c, DDPS_MPA_EV_ULP_REJECT);
		c->rx.dead = true;
		/* No FIN behind the Reply: siw would take the rejection for a failure. */
		ddps_mpa_conn_deadline(c, DDPS_MPA_T_LINGER, DDPS_MPA_LINGER_MS);
	} else {
		ddps_mpa_conn_step(c, DDPS_MPA_EV_ULP_ACCEPT);
		agree(c, c->startup->crc, c->startup->markers);
		ddps_mpa_conn_deadline(c, DDPS_MPA_T_FIRST_FPDU, c->p.first_fpdu_ms);
	}
	if (!s->reject)
		ddps_mpa_near_call(c);
	ddps_mpa_setup_flush(c);
	if (c->open && c->tcp->options)
		c->tcp->options(c);
	ddps_mpa_conn_watch(c);
	return 0;
}

/* ---- both ---- */

void ddps_mpa_setup_moved(struct ddps_mpa_conn *c)
{
	agree(c, false, c->tx.markers);
	ddps_mpa_conn_update_emss(c);
}

void ddps_mpa_setup_io(struct ddps_mpa_conn *c)
{
	struct ddps_mpa_frame f;

	if (ddps_mpa_connecting(c))
		on_connect_done(c);
	else if (c->state == DDPS_MPA_REQUEST_ULP)
		on_impatience(c);
	else if (read_frame(c, &f)) {
		if (c->initiator)
			on_reply(c, &f);
		else
			take_mpa_request(c, &f);
	}
}
