/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA over TCP sockets: connecting, and the exchange of Request and Reply. */
#include "common/term_codes.h"
#include "common/own.h"
#include "common/error.h"
#include "mpa_tcp/mpa_conn.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* An invalid frame closes TCP at once [5044-8-6]; nothing is said on the wire. */
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
static void gone(struct ddps_mpa_conn *c, enum ddps_mpa_event ev, int err)
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
			      "peer %s the connection %s", err ? "reset" : "closed", when);
	ddps_mpa_conn_step(c, ev);
	ddps_mpa_conn_end(c, &e);
}

bool ddps_mpa_setup_flush(struct ddps_mpa_conn *c)
{
	struct ddps_mpa_startup *s = c->startup;

	while (s && !c->connecting && s->out_sent < s->out_len) {
		ssize_t n = send(c->io.fd, s->out + s->out_sent, s->out_len - s->out_sent,
				 MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			gone(c, DDPS_MPA_EV_LOST, errno);
		if (n < 0)
			return false;
		s->out_sent += (size_t)n;
	}
	return true;
}

/*
 * Read the peer's frame.  Of a Reply what is missing, not one octet more: what is behind it must
 * stay in the socket.  Behind a Request nothing may be.  true: @f is whole and valid.
 */
static bool read_frame(struct ddps_mpa_conn *c, struct ddps_mpa_frame *f)
{
	enum ddps_mpa_kind kind = c->initiator ? DDPS_MPA_REPLY : DDPS_MPA_REQUEST;
	struct ddps_mpa_startup *s = c->startup;

	for (;;) {
		size_t want = c->initiator ? s->in_need : sizeof s->in;
		ssize_t n = recv(c->io.fd, s->in + s->in_len, want - s->in_len, 0);
		const char *why = "";
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			ddps_mpa_conn_step(c, DDPS_MPA_EV_PART);
			return false;
		}
		if (n <= 0) {
			gone(c, n ? DDPS_MPA_EV_LOST : DDPS_MPA_EV_FIN, n ? errno : 0);
			return false;
		}
		s->in_len += (size_t)n;
		r = ddps_mpa_frame_decode(f, kind, s->in, s->in_len, &s->in_need, &why);
		if (r < 0)
			bad_frame(c, DDPS_MPA_EV_BAD_FRAME, r, why);
		else if (r && s->in_len > s->in_need)
			surplus(c);
		if (r)
			return r > 0 && s->in_len == s->in_need;
	}
}

/* ---- initiator ---- */

static void on_connected(struct ddps_mpa_conn *c)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t len = sizeof ss;

	c->connecting = false;
	ddps_mpa_conn_step(c, DDPS_MPA_EV_INITIATE);
	ddps_mpa_conn_deadline(c, DDPS_MPA_T_SETUP, c->p.setup_ms);
	/* The Request first: what follows is done while the peer looks at it. */
	if (!ddps_mpa_setup_flush(c) && c->io.fd < 0)
		return;
	if (!getsockname(c->io.fd, (struct sockaddr *)&ss, &len))
		ddps_mpa_addr_set(&c->local, (struct sockaddr *)&ss);
	ddps_mpa_conn_update_emss(c);
}

/* TCP has an answer. */
static void on_connect_done(struct ddps_mpa_conn *c)
{
	socklen_t len = sizeof(int);
	int err = 0;

	if (getsockopt(c->io.fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		err = errno;
	if (!err) {
		on_connected(c);
		return;
	}
	ddps_mpa_conn_step(c, DDPS_MPA_EV_LOST);
	ddps_mpa_conn_fail(c, ddps_err_from_errno(err), err, "connect: %s", strerror(err));
}

/* CRCs are on if either side asked [5044-7.1.1-10]; markers where their receiver did. */
static void agree(struct ddps_mpa_conn *c, bool peer_crc, bool peer_markers)
{
	c->rx.crc = c->tx.crc = c->p.crc || peer_crc;
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
	int err = ddps_mpa_reply_fits(f, c->req_enhanced, &why);

	if (!err && c->startup->out_sent < c->startup->out_len) {
		err = DDPS_E_PROTOCOL;
		why = "it came before the Request had left";
	}
	if (err) {
		bad_frame(c, DDPS_MPA_EV_BAD_FRAME, err, why);
		return;
	}
	c->rev = f->rev;
	ddps_mpa_conn_deadline(c, DDPS_MPA_T_NONE, 0);
	if (f->reject) {
		s.enhanced = f->enhanced && c->req_enhanced;
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

/* A port that was given may be kept by a socket of the application's; any other is chosen by
 * connect, which has more to choose from. */
static int bind_own(int fd, const struct sockaddr_storage *from)
{
	bool v6 = from->ss_family == AF_INET6;
	in_port_t port = v6 ? ((const struct sockaddr_in6 *)from)->sin6_port
			    : ((const struct sockaddr_in *)from)->sin_port;
	int one = 1;

	if (port)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	else
		setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
	return bind(fd, (const struct sockaddr *)from,
		    v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
}

static int start_connect(struct ddps_mpa_conn *c, const struct ddps_uri *uri,
			 const struct sockaddr *sa, socklen_t sa_len)
{
	struct pollfd pfd = { .fd = c->io.fd, .events = POLLOUT };

	c->connecting = true;
	if (uri->from.ss_family && bind_own(c->io.fd, &uri->from) < 0)
		return errno;
	if (connect(c->io.fd, sa, sa_len) < 0 && errno != EINPROGRESS && errno != EINTR)
		return errno;
	ddps_mpa_conn_deadline(c, DDPS_MPA_T_CONNECT, c->p.connect_ms);
	/* On this machine it has been done by now. */
	if (poll(&pfd, 1, 0) == 1 && pfd.revents == POLLOUT)
		on_connected(c);
	ddps_mpa_conn_watch(c);
	return 0;
}

int ddps_mpa_setup_connect(struct ddps_env *env, const struct ddps_uri *uri,
			   const struct sockaddr *sa, socklen_t sa_len,
			   const struct ddps_setup *setup, const struct ddps_llp_param *p,
			   const struct ddps_llp_up *up, void *user, struct ddps_llp **out)
{
	struct ddps_mpa_frame f = {
		.markers = p->markers,
		.crc = p->crc,
		.enhanced = setup->enhanced,
		/* Plain ones are Rev 1: an RFC 5044 peer closes on Rev 2 for nothing. */
		.rev = setup->enhanced ? DDPS_MPA_REV_ENH : DDPS_MPA_REV_PLAIN,
		.pd = setup->pd,
		.pd_len = setup->pd_len,
	};
	struct ddps_mpa_conn *c;
	int fd, err;

	if (setup->pd_len > DDPS_MPA_PD_MAX)
		return DDPS_E_TOO_LONG;
	if (setup->enhanced && setup->pd_len < DDPS_MPA_WORD_LEN)
		return DDPS_E_INVAL;
	if (sa->sa_family != AF_INET && sa->sa_family != AF_INET6)
		return DDPS_E_ADDRESS;
	fd = ddps_own(socket(sa->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return DDPS_E_SYSTEM;
	c = ddps_mpa_conn_new(env, fd, sa);
	if (!c) {
		ddps_own_close(fd);
		return DDPS_E_NOMEM;
	}
	c->initiator = true;
	c->req_enhanced = setup->enhanced;
	c->rev = f.rev;
	c->p = *p;
	c->llp.up = up;
	c->llp.user = user;
	c->startup->out_len = ddps_mpa_frame_encode(c->startup->out, DDPS_MPA_REQUEST, &f);
	err = start_connect(c, uri, sa, sa_len);
	if (err)
		ddps_mpa_conn_fail(c, ddps_err_from_errno(err), err, "connect: %s", strerror(err));
	*out = &c->llp;
	return 0;
}

/* ---- responder ---- */

/* There is something while our Reply is to come: more octets, or the end. */
static void on_impatience(struct ddps_mpa_conn *c)
{
	uint8_t octet;
	ssize_t n = recv(c->io.fd, &octet, 1, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		surplus(c);
	else
		gone(c, n ? DDPS_MPA_EV_LOST : DDPS_MPA_EV_FIN, n ? errno : 0);
}

static void on_request(struct ddps_mpa_conn *c, const struct ddps_mpa_frame *f)
{
	struct ddps_setup s = { .enhanced = f->enhanced, .pd = f->pd, .pd_len = f->pd_len };

	ddps_mpa_conn_step(c, DDPS_MPA_EV_REQUEST_OK);
	ddps_mpa_conn_deadline(c, DDPS_MPA_T_NONE, 0);
	c->rev = f->rev;
	c->req_enhanced = f->enhanced;
	c->req_crc = f->crc;
	c->req_markers = f->markers;
	ddps_mpa_conn_update_emss(c);
	agree(c, f->crc, f->markers);
	ddps_mpa_listener_request(c, &s);
}

int ddps_mpa_setup_answer(struct ddps_mpa_conn *c, const struct ddps_setup *s,
			  const struct ddps_llp_param *p)
{
	struct ddps_mpa_frame f = {
		.markers = p->markers && !s->reject,
		.crc = p->crc || c->req_crc, /* the OR: some initiators go by this bit alone */
		.reject = s->reject,
		.enhanced = s->enhanced, /* as in the Request [6581-10-5] [6581-10-6] */
		.rev = c->rev,
		.pd = s->pd,
		.pd_len = s->pd_len,
	};

	if (c->state != DDPS_MPA_REQUEST_ULP)
		return DDPS_E_STATE;
	if (s->pd_len > DDPS_MPA_PD_MAX)
		return DDPS_E_TOO_LONG;
	if (s->enhanced != c->req_enhanced || (s->enhanced && s->pd_len < DDPS_MPA_WORD_LEN))
		return DDPS_E_INVAL;
	c->p = *p;
	c->startup->out_len = ddps_mpa_frame_encode(c->startup->out, DDPS_MPA_REPLY, &f);
	ddps_mpa_listener_release(c);
	/* Reception is on before the Reply leaves [5044-7.1.2-10]. */
	if (s->reject) {
		ddps_mpa_conn_step(c, DDPS_MPA_EV_ULP_REJECT);
		c->rx.dead = true;
		/* No FIN behind the Reply: siw would take the rejection for a failure. */
		ddps_mpa_conn_deadline(c, DDPS_MPA_T_LINGER, DDPS_MPA_LINGER_MS);
	} else {
		ddps_mpa_conn_step(c, DDPS_MPA_EV_ULP_ACCEPT);
		agree(c, c->req_crc, c->req_markers);
		ddps_mpa_conn_deadline(c, DDPS_MPA_T_FIRST_FPDU, c->p.first_fpdu_ms);
	}
	ddps_mpa_setup_flush(c);
	ddps_mpa_conn_watch(c);
	return 0;
}

/* ---- both ---- */

void ddps_mpa_setup_io(struct ddps_mpa_conn *c)
{
	struct ddps_mpa_frame f;

	if (c->connecting)
		on_connect_done(c);
	else if (c->state == DDPS_MPA_REQUEST_ULP)
		on_impatience(c);
	else if (read_frame(c, &f)) {
		if (c->initiator)
			on_reply(c, &f);
		else
			on_request(c, &f);
	}
}
