/* SPDX-License-Identifier: BSD-2-Clause */
/* The usrsctp peer as a backend. */
#include "peer/usrsctp_in.h"
#include "sctp_ddp/sd_wire.h"
#include <time.h>

#define ENCAP_PORT 9899
#define TICK_MS	   10
#define NS_PER_MS  1000000u

/* ---- a context's own ---- */

/* usrsctp is one for the process. */
static unsigned users;
static uint64_t usrsctp_time;

static void tick_usrsctp(void *user)
{
	struct peer *p = user;
	uint32_t ms = (uint32_t)((ddps_now() - usrsctp_time) / NS_PER_MS);

	usrsctp_time += (uint64_t)ms * NS_PER_MS;
	usrsctp_handle_timers(ms);
	ddps_timer_after(p->env->loop, &p->tick, TICK_MS);
	us_look(p);
}

static struct peer *peer_get(struct ddps_env *env, void **ctx)
{
	struct peer *p = *ctx;

	if (p)
		return p;
	p = *ctx = calloc(1, sizeof *p);
	if (!p)
		abort();
	p->env = env;
	p->tick = (struct ddps_timer){ .fn = tick_usrsctp, .user = p };
	p->look = (struct ddps_task){ .fn = us_look, .user = p };
	if (!users++) {
		usrsctp_time = ddps_now();
		usrsctp_init_nothreads(0, us_output, NULL);
		usrsctp_sysctl_set_sctp_rto_min_default(100);
	}
	ddps_timer_after(env->loop, &p->tick, TICK_MS);
	return p;
}

/* ---- the interface ---- */

static bool available(void)
{
	return true;
}

static int encap_of(const struct ddps_uri *uri)
{
	return uri->encap == DDPS_URI_ENCAP_DEFAULT ? ENCAP_PORT : uri->encap;
}

static int do_usrsctp_connect(struct ddps_env *env, void **ctx, const struct ddps_uri *uri,
			      const struct sockaddr *sa, socklen_t sa_len,
			      const struct ddps_llp_param *param, const struct ddps_sd_assoc_up *up,
			      void *user, struct ddps_sd_assoc **out)
{
	struct peer *p = peer_get(env, ctx);
	struct sockaddr_storage to = { 0 }, at = { .ss_family = sa->sa_family };
	struct sockaddr_conn conn = { .sconn_family = AF_CONN };
	struct socket *so;
	struct link *l;
	int err;

	memcpy(&to, sa, sa_len);
	if (uri->from.n)
		at = uri->from.at[0];
	ddps_sd_set_port(&at, peer_usrsctp_knobs.port);
	err = us_link_new(p, &at, sa_len, &l);
	if (err)
		return err;
	conn.sconn_port = htons(ddps_sd_port_number(&to));
	ddps_sd_set_port(&to, (uint16_t)encap_of(uri));
	so = us_socket_new(l->port);
	/* Connected: then its name has the address that is used. */
	if (!so || connect(l->io.fd, (struct sockaddr *)&to, sa_len) < 0)
		return DDPS_E_SYSTEM;
	conn.sconn_addr = us_way_to(l, &to, sa_len);
	*out = us_assoc_new(l, so, conn.sconn_addr, l->port, ntohs(conn.sconn_port));
	(*out)->up = up;
	(*out)->user = user;
	(*out)->info.by_us = true;
	ddps_timer_after(env->loop, &(*out)->deadline, param->connect_ms);
	if (usrsctp_connect(so, (struct sockaddr *)&conn, sizeof conn) < 0 && errno != EINPROGRESS)
		us_end_soon(*out, ddps_error_make(DDPS_E_SYSTEM, errno, "usrsctp_connect"));
	return 0;
}

static int do_listen(struct ddps_env *env, void **ctx, const struct ddps_uri *uri,
		     const struct sockaddr *sa, socklen_t sa_len, unsigned backlog,
		     const struct ddps_sd_listen_up *up, void *user, struct ddps_sd_endpoint **out)
{
	struct peer *p = peer_get(env, ctx);
	struct sockaddr_storage at = { 0 };
	struct ddps_sd_endpoint *e = calloc(1, sizeof *e);
	int err = 0;

	if (!e)
		abort();
	memcpy(&at, sa, sa_len);
	*e = (struct ddps_sd_endpoint){ .p = p, .up = up, .user = user };
	e->port = ddps_sd_port_number(&at);
	ddps_sd_set_port(&at, (uint16_t)encap_of(uri));
	DL_FOREACH(p->links, e->l)
	if (e->l->refs && e->l->port == encap_of(uri))
		break;
	if (e->l)
		e->l->refs++;
	else
		err = us_link_new(p, &at, sa_len, &e->l);
	if (!err) {
		e->port = e->port ? e->port : e->l->port;
		e->so = us_socket_new(e->port);
		if (!e->so || usrsctp_listen(e->so, (int)backlog) < 0)
			abort();
		DL_APPEND(p->endpoints, e);
		*out = e;
	} else {
		free(e);
	}
	return err;
}

static void endpoint_addr(struct ddps_sd_endpoint *e, char *buf, size_t len, uint16_t *encap)
{
	us_link_name(e->l, e->port, buf, len);
	*encap = e->l->port;
}

static void endpoint_free(struct ddps_sd_endpoint *e)
{
	struct ddps_sd_assoc *a;

	DL_FOREACH(e->p->assocs, a)
	if (a->ep == e)
		a->ep = NULL;
	usrsctp_close(e->so);
	DL_DELETE(e->p->endpoints, e);
	us_link_put(e->l);
	free(e);
}

static void set_usrsctp_up(struct ddps_sd_assoc *a, const struct ddps_sd_assoc_up *up, void *user)
{
	a->up = up;
	a->user = user;
}

static void get_usrsctp_info(struct ddps_sd_assoc *a, struct ddps_sd_assoc_info *out)
{
	*out = a->info;
}

static int do_usrsctp_send(struct ddps_sd_assoc *a, uint16_t stream, uint32_t ppid,
			   const struct iovec *iov, int niov)
{
	static uint8_t buf[DDPS_SD_MSG_MAX];
	struct sctp_sndinfo si = { .snd_sid = stream,
				   .snd_flags = SCTP_UNORDERED,
				   .snd_ppid = htonl(ppid) };
	size_t len = 0;

	if (!a->so)
		return DDPS_E_CLOSED;
	if (!a->announced || a->shut)
		return DDPS_E_STATE;
	for (int i = 0; i < niov; i++) {
		if (len + iov[i].iov_len > sizeof buf)
			return DDPS_E_TOO_LONG;
		if (iov[i].iov_len)
			memcpy(buf + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	if (!len || stream >= a->info.out_streams)
		return DDPS_E_INVAL;
	if (ppid == DDPS_SD_PPID_CONTROL || a->want_dry)
		si.snd_flags |= SCTP_SACK_IMMEDIATELY; /* RFC 9260 3.3.1 */
	if (usrsctp_sendv(a->so, buf, len, NULL, 0, &si, sizeof si, SCTP_SENDV_SNDINFO, 0) >= 0)
		return 0;
	a->want_write = errno == EWOULDBLOCK;
	return a->want_write ? DDPS_E_AGAIN : DDPS_E_RESET;
}

static void ask_dry(struct ddps_sd_assoc *a)
{
	struct sctp_event ev = { .se_assoc_id = SCTP_CURRENT_ASSOC,
				 .se_type = SCTP_SENDER_DRY_EVENT,
				 .se_on = 1 };

	if (!a->so || a->want_dry)
		return;
	a->want_dry = true;
	usrsctp_setsockopt(a->so, IPPROTO_SCTP, SCTP_EVENT, &ev, sizeof ev);
	ddps_task_post(a->p->env->loop, &a->p->look);
}

static void do_pause(struct ddps_sd_assoc *a, bool on)
{
	a->paused = on;
	ddps_task_post(a->p->env->loop, &a->p->look);
}

static void do_abort(struct ddps_sd_assoc *a)
{
	us_end_soon(a, ddps_error_make(DDPS_E_CLOSED, 0, "aborted by this side"));
}

static void do_shutdown(struct ddps_sd_assoc *a)
{
	if (!a->so || a->shut)
		return;
	if (!a->announced) {
		do_abort(a);
		return;
	}
	a->shut = true;
	usrsctp_shutdown(a->so, SHUT_WR);
}

static void do_usrsctp_free(struct ddps_sd_assoc *a)
{
	a->freed = true;
	us_end_soon(a, ddps_error_make(DDPS_E_CLOSED, 0, "freed"));
	ddps_task_post(a->p->env->loop, &a->p->look);
}

/* usrsctp stays while an association lingers, which its timers end: time is made up. */
static void fini(struct ddps_env *env, void *ctx)
{
	const struct timespec a_moment = { .tv_nsec = NS_PER_MS };
	struct peer *p = ctx;

	if (!p)
		return;
	while (p->endpoints)
		endpoint_free(p->endpoints);
	while (p->assocs)
		us_release(p->assocs);
	users--;
	for (int i = 0; !users && i < 100 && usrsctp_finish() < 0; i++) {
		usrsctp_handle_timers(1000);
		nanosleep(&a_moment, NULL); /* for usrsctp's helper thread */
	}
	while (p->links)
		us_link_free(p->links);
	ddps_timer_stop(env->loop, &p->tick);
	ddps_task_cancel(env->loop, &p->look);
	free(p);
}

const struct ddps_sd_backend peer_usrsctp = {
	.name = "native", /* so that URIs of its listeners can be parsed */
	.available = available,
	.connect = do_usrsctp_connect,
	.listen = do_listen,
	.endpoint_addr = endpoint_addr,
	.endpoint_free = endpoint_free,
	.set_up = set_usrsctp_up,
	.info = get_usrsctp_info,
	.send = do_usrsctp_send,
	.ask_dry = ask_dry,
	.pause = do_pause,
	.shutdown = do_shutdown,
	.abort = do_abort,
	.free = do_usrsctp_free,
	.fini = fini,
};
