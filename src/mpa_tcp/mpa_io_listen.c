/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA over TCP sockets: listeners, and the provider's table. */
#include "common/own.h"
#include "common/error.h"
#include "mpa_tcp/mpa_tls.h"
#include "mpa_tcp/shm/mpa_shm.h"
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ACCEPTS	 8
#define PAUSE_MS 100 /* after running out of descriptors or memory */
/* Each may hold some descriptors, and may block whoever closes them: all of them are far from the usual limit of 1024.
 * Whoever comes beyond that waits in the kernel's queue. */
#define SHM_HALF_OPEN 64u

struct ddps_mpa_listener {
	struct ddps_llp_listener base; /* first */
	struct ddps_env *env;
	const struct ddps_llp_listen_up *up;
	void *user;
	struct ddps_llp_listen_param p;
	uint32_t keepalive_ms; /* of its socket: each accepted one has it, too */
	struct ddps_io io;
	struct ddps_timer pause;
	bool paused, paused_before; /* before: nobody was accepted since */
	unsigned half_open;
	/* Those of them whose Request is not whole, or that are rejected and have not left, by address. */
	struct ddps_shares silent;
	LIST_HEAD(, ddps_mpa_conn) conns; /* all that are not handed up or still counted */
	union ddps_mpa_addr addr;
	bool any;	   /* that is every address of the host */
	bool secured;	   /* inside TLS */
	bool crc, markers; /* there: to be asked for */
	bool shm;	   /* through shared memory: */
	char name[DDPS_SHM_TEXT];
	struct ddps_shm_file file;
};

/* ---- the half-open ones ---- */

/* Where all places are taken: not mainly by Requests that wait for the application. */
static bool many_silent(const struct ddps_mpa_listener *l)
{
	return l->silent.places > l->p.max_half_open / 2;
}

/* Above the bound new peers wait in the kernel's queue, but not for those that say nothing. */
static int watch_mpa_listener(struct ddps_mpa_listener *l)
{
	bool in = !l->paused && (l->half_open < l->p.max_half_open || many_silent(l));

	return ddps_io_set(l->env->loop, &l->io, in ? EPOLLIN : 0);
}

static void unlink_conn(struct ddps_mpa_conn *c)
{
	LIST_REMOVE(c, of_listener);
	c->listed = false;
}

static void on_settled(struct ddps_mpa_conn *c)
{
	struct ddps_mpa_listener *l = c->listener;

	if (!l)
		return;
	c->listener = NULL;
	l->half_open--;
	ddps_shares_del(&l->silent, &c->share);
	if (c->llp.up) /* else it is destroyed soon */
		unlink_conn(c);
	watch_mpa_listener(l);
}

static void pass_mpa_request(struct ddps_mpa_conn *c, const struct ddps_setup *s)
{
	struct ddps_mpa_listener *l = c->listener;

	ddps_shares_del(&l->silent, &c->share);
	watch_mpa_listener(l);
	l->up->request(l->user, &c->llp, s);
}

/* Where it comes from: of peers on this host it is the user who has a share. */
static uint64_t get_net(const struct ddps_mpa_conn *c)
{
	return c->shm ? ddps_mpa_shm_uid(c) : ddps_share_net_sa(&c->peer.sa);
}

/* It need not leave before LINGER: the next one may have its place. */
static void on_rejected(struct ddps_mpa_conn *c)
{
	struct ddps_mpa_listener *l = c->listener;

	if (!l)
		return;
	if (ddps_shares_add(&l->silent, &c->share, get_net(c)) < 0)
		on_settled(c);
	else
		watch_mpa_listener(l);
}

static const struct ddps_mpa_owner owner = { pass_mpa_request, on_rejected, on_settled };

static void close_mpa_socket(struct ddps_mpa_listener *l, int fd)
{
	if (l->shm)
		ddps_mpa_shm_let_go(l->env, fd);
	else
		ddps_own_close(fd);
}

/* Its own end: asked for only where the listener has more than one. */
static void set_local(struct ddps_mpa_conn *c, const struct ddps_mpa_listener *l)
{
	if (l->any || l->shm)
		c->tcp->local(c);
	else
		c->local = l->addr;
}

/* Return: the connection; NULL: there is none. */
static struct ddps_mpa_conn *add_conn(struct ddps_mpa_listener *l, int fd,
				      const struct sockaddr *peer)
{
	struct ddps_mpa_conn *c = l->shm ? ddps_mpa_shm_new(l->env, fd, l->name, l->name[0] == '@')
					 : ddps_mpa_io_new(l->env, fd, peer);

	if (!c) {
		if (!l->shm || errno != EACCES)
			ddps_log(&l->env->log, DDPS_LOG_ERROR, "mpa", "accept: out of memory");
		close_mpa_socket(l, fd);
		return NULL;
	}
	c->share.owner = c;
	if ((l->secured && ddps_mpa_tls_wrap(c, NULL) < 0) ||
	    ddps_shares_add(&l->silent, &c->share, get_net(c)) < 0) {
		ddps_log(&l->env->log, DDPS_LOG_ERROR, "mpa", "accept: out of memory");
		ddps_mpa_conn_destroy(c);
		return NULL;
	}
	c->ask_crc = l->crc;
	c->ask_markers = l->markers;
	c->keepalive_ms = l->keepalive_ms;
	set_local(c, l);
	if (!l->shm && !l->secured) /* while its Request is on its way */
		ddps_mpa_conn_update_emss(c);
	c->owner = &owner;
	c->listener = l;
	LIST_INSERT_HEAD(&l->conns, c, of_listener);
	c->listed = true;
	l->half_open++;
	c->p.setup_ms = l->p.setup_ms; /* the rest comes with answer() */
	ddps_mpa_conn_step(c, DDPS_MPA_EV_RESPOND);
	ddps_mpa_conn_deadline(c, DDPS_MPA_T_SETUP, l->p.setup_ms);
	return c;
}

/* ---- accepting ---- */

static void resume_mpa_listener(void *user)
{
	struct ddps_mpa_listener *l = user;

	l->paused = false;
	watch_mpa_listener(l);
}

/* Another peer needs @c's place. */
static void give_up_silent(struct ddps_mpa_listener *l, struct ddps_mpa_conn *c)
{
	l->env->half_open_given_up++;
	c->tcp->reset(c);
	ddps_mpa_conn_fail(c, DDPS_E_LIMIT, 0,
			   "%s, and %u are half open: its place went to another",
			   c->state == DDPS_MPA_STREAM ? "rejected" : "no whole MPA Request",
			   l->half_open);
}

/* That one which has to go first; NULL: it has just sent something, and is read first: a burst is not
 * silence.  But once only: what lies there may be nothing that anybody reads. */
static struct ddps_mpa_conn *first_to_go(const struct ddps_mpa_listener *l)
{
	struct ddps_mpa_conn *c = ddps_shares_first_to_go(&l->silent)->owner;
	int unread = 0;

	if (!c->spared)
		(void)ioctl(c->io.fd, FIONREAD, &unread);
	c->spared = true;
	return unread ? NULL : c;
}

/* Descriptors have run out: whoever waits has that of a silent peer, as where places run out.  Return
 * whether there is one; accept() says so, too, where nobody waits. */
static bool make_descriptor_room(struct ddps_mpa_listener *l)
{
	struct pollfd p = { .fd = l->io.fd, .events = POLLIN };
	struct ddps_mpa_conn *go;

	if (!l->silent.places)
		return false;
	go = poll(&p, 1, 0) == 1 ? first_to_go(l) : NULL;
	if (go)
		give_up_silent(l, go);
	return true;
}

/* Whoever waits stays in the queue and the socket readable: do not spin. */
static void pause_mpa_listener(struct ddps_mpa_listener *l, const char *why)
{
	if (!l->paused_before)
		ddps_log(&l->env->log, DDPS_LOG_WARN, "mpa",
			 "accept: %s: nobody is accepted until that is over", why);
	l->paused_before = true;
	ddps_timer_after(l->env->loop, &l->pause, PAUSE_MS);
	l->paused = true;
	watch_mpa_listener(l);
}

static void take_accept_failure(struct ddps_mpa_listener *l, int err)
{
	struct ddps_error e;

	switch (err) {
	case EMFILE:
	case ENFILE:
		if (make_descriptor_room(l))
			break;
		/* fall through */
	case ENOBUFS:
	case ENOMEM:
		pause_mpa_listener(l, strerror(err));
		break;
	case EBADF:
	case EINVAL:
	case ENOTSOCK:
		e = ddps_error_make(DDPS_E_SYSTEM, err, "accept: %s", strerror(err));
		ddps_io_del(l->env->loop, &l->io);
		l->up->failed(l->user, &e);
		break;
	default: /* nobody there, a signal, the peer's or the network's trouble */
		break;
	}
}

/* Return whether one more can be taken.  @go: whoever has to go for it, or NULL. */
static bool has_half_open_room(const struct ddps_mpa_listener *l, struct ddps_mpa_conn **go)
{
	*go = NULL;
	if (l->half_open < l->p.max_half_open)
		return true;
	if (!many_silent(l))
		return false;
	*go = first_to_go(l);
	return *go != NULL;
}

/* Return whether there may be more; @new: that one, or NULL. */
static bool accept_mpa_conn(struct ddps_mpa_listener *l, struct ddps_mpa_conn **new)
{
	struct ddps_mpa_conn *go;
	struct sockaddr_storage ss;
	socklen_t len = sizeof ss;
	int fd;

	*new = NULL;
	if (l->shm && ddps_own_is_crowded()) {
		pause_mpa_listener(l,
				   "too many descriptors that peers have passed wait to be closed");
		return false;
	}
	if (!has_half_open_room(l, &go))
		return false;
	fd = ddps_own(
		accept4(l->io.fd, (struct sockaddr *)&ss, &len, SOCK_NONBLOCK | SOCK_CLOEXEC));
	if (fd < 0) {
		take_accept_failure(l, errno);
		return false;
	}
	l->paused_before = false;
	if (go)
		give_up_silent(l, go);
	*new = add_conn(l, fd, (struct sockaddr *)&ss);
	if (l->half_open >= l->p.max_half_open)
		l->env->half_open_full++;
	watch_mpa_listener(l);
	return true;
}

/* One a turn: to ask in vain costs the kernel a whole socket, another turn next to nothing; but
 * some more where others are busy, whose turns take their time. */
static void take_mpa_accepts(void *user, uint32_t events)
{
	struct ddps_mpa_listener *l = user;
	const bool alone = ddps_loop_share(l->env->loop, 2, 1, 2) > 1;
	const bool now = alone && !l->shm && !l->secured;
	struct ddps_mpa_conn *c = NULL;

	(void)events;
	for (unsigned n = alone ? 1 : ACCEPTS; n && accept_mpa_conn(l, &c); n--)
		if (c && !now)
			ddps_mpa_conn_watch(c);
	if (!now || !c)
		return;
	/* A peer on this machine has sent its Request by now, and waits for the Reply. */
	c->io.late = true;
	ddps_mpa_conn_ready(c, DDPS_MPA_IN);
}

/* ---- listeners ---- */

/* A bound, listening socket, or -1 with errno. */
static int open_mpa_listener(const struct ddps_uri *uri, const struct sockaddr *sa,
			     socklen_t sa_len, struct ddps_mpa_listener *l)
{
	const unsigned backlog = l->p.backlog;
	int fd = ddps_own(socket(sa->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	int one = 1, v6only = uri->host[0] != 0;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	/* Those that connect have from their first moment what the socket has now, and the class, too. */
	ddps_mpa_io_nodelay(fd);
	l->keepalive_ms = l->p.keepalive_ms;
	if (l->keepalive_ms && !ddps_mpa_io_keepalive(fd, l->keepalive_ms))
		l->keepalive_ms = 0;
	if (sa->sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, sizeof v6only);
	ddps_own_tos(fd, sa->sa_family, uri->tos);
	if (ddps_own_bind(fd, sa, sa_len) == 0 &&
	    listen(fd, backlog > INT_MAX ? INT_MAX : (int)backlog) == 0)
		return fd;
	ddps_own_close(fd);
	return -1;
}

/* The same; where any address is meant and IPv6 is off, IPv4 alone. */
static int open_listener(const struct ddps_uri *uri, const struct sockaddr *sa, socklen_t sa_len,
			 struct ddps_mpa_listener *l)
{
	bool any = !uri->host[0];
	int fd = open_mpa_listener(uri, sa, sa_len, l);
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(uri->port) };

	if (fd >= 0 || !any || sa->sa_family != AF_INET6 ||
	    (errno != EAFNOSUPPORT && errno != EADDRNOTAVAIL))
		return fd;
	return open_mpa_listener(uri, (struct sockaddr *)&in, sizeof in, l);
}

static bool is_any_mpa(const union ddps_mpa_addr *a)
{
	return a->sa.sa_family == AF_INET6 ? IN6_IS_ADDR_UNSPECIFIED(&a->in6.sin6_addr)
					   : a->in.sin_addr.s_addr == htonl(INADDR_ANY);
}

static int mpa_listen(struct ddps_env *env, const struct ddps_uri *uri, const struct sockaddr *sa,
		      socklen_t sa_len, const struct ddps_llp_listen_param *p,
		      const struct ddps_llp_listen_up *up, void *user,
		      struct ddps_llp_listener **out)
{
	struct ddps_mpa_listener *l;
	struct sockaddr_storage ss = { 0 };
	socklen_t len = sizeof ss;
	const bool shm = ddps_uri_shm(uri);
	int fd, err;

	if (shm ? sa->sa_family != AF_UNIX : sa->sa_family != AF_INET && sa->sa_family != AF_INET6)
		return DDPS_E_ADDRESS;
	if (!p->max_half_open)
		return DDPS_E_INVAL;
	if (!strcmp(uri->scheme, "tls") && !env->secure)
		return DDPS_E_NO_CERT;
	l = calloc(1, sizeof *l);
	if (!l)
		return DDPS_E_NOMEM;
	l->p = *p;
	if (shm && l->p.max_half_open > SHM_HALF_OPEN)
		l->p.max_half_open = SHM_HALF_OPEN;
	fd = shm ? ddps_mpa_shm_bind(sa, sa_len, p->backlog, &l->file)
		 : open_listener(uri, sa, sa_len, l);
	l->shm = shm;
	l->secured = !strcmp(uri->scheme, "tls");
	l->base.provider = l->secured ? &ddps_tls_provider
			   : shm      ? &ddps_shm_provider
				      : &ddps_mpa_provider;
	l->crc = uri->crc;
	l->markers = uri->markers;
	l->env = env;
	l->up = up;
	l->user = user;
	l->io = (struct ddps_io){ .fd = fd, .fn = take_mpa_accepts, .user = l };
	l->pause = (struct ddps_timer){ .fn = resume_mpa_listener, .user = l };
	if (fd < 0 || getsockname(fd, (struct sockaddr *)&ss, &len) < 0 ||
	    watch_mpa_listener(l) < 0) {
		err = errno;
		if (fd >= 0)
			close_mpa_socket(l, fd);
		free(l);
		errno = err;
		return DDPS_E_SYSTEM;
	}
	if (shm)
		ddps_addr_text((struct sockaddr *)&ss, l->name, sizeof l->name);
	else
		ddps_mpa_addr_set(&l->addr, (struct sockaddr *)&ss);
	l->any = is_any_mpa(&l->addr);
	*out = &l->base;
	return 0;
}

static int mpa_listener_uri(struct ddps_llp_listener *base, char *buf, size_t len)
{
	struct ddps_mpa_listener *l = (struct ddps_mpa_listener *)base;
	char addr[72];

	ddps_mpa_addr_text(&l->addr, addr, sizeof addr);
	return snprintf(buf, len, "%s://%s", base->provider->scheme, l->shm ? l->name : addr);
}

static void mpa_listener_free(struct ddps_llp_listener *base)
{
	struct ddps_mpa_listener *l = (struct ddps_mpa_listener *)base;
	struct ddps_mpa_conn *c;

	ddps_io_del(l->env->loop, &l->io);
	ddps_timer_stop(l->env->loop, &l->pause);
	if (l->shm)
		ddps_mpa_shm_unbind(l->name, &l->file);
	shutdown(l->io.fd, SHUT_RDWR); /* also for whoever has a copy of it */
	close_mpa_socket(l, l->io.fd);
	while ((c = LIST_FIRST(&l->conns))) {
		c->listener = NULL;
		if (c->llp.up) /* lives on, and belongs to the layer above */
			unlink_conn(c);
		else
			ddps_mpa_conn_destroy(c);
	}
	ddps_shares_fini(&l->silent);
	free(l);
}

static void mpa_fini(struct ddps_env *env)
{
	ddps_spares_fini(&env->mpa_tx);
	ddps_spares_fini(&env->mpa_copied);
	ddps_spares_fini(&env->mpa_rx);
	free(env->sealed);
	env->sealed = NULL;
}

const struct ddps_llp_provider ddps_mpa_provider = {
	.scheme = "tcp",
	.connect = ddps_mpa_io_connect,
	.listen = mpa_listen,
	.listener_uri = mpa_listener_uri,
	.listener_free = mpa_listener_free,
	.fini = mpa_fini,
};

const struct ddps_llp_provider ddps_tls_provider = {
	.scheme = "tls",
	.connect = ddps_mpa_io_connect,
	.listen = mpa_listen,
	.listener_uri = mpa_listener_uri,
	.listener_free = mpa_listener_free,
	.wind_up = ddps_mpa_late_wind_up,
	.fini = ddps_mpa_late_fini,
};

const struct ddps_llp_provider ddps_shm_provider = {
	.scheme = "shm",
	.connect = ddps_mpa_shm_connect,
	.listen = mpa_listen,
	.listener_uri = mpa_listener_uri,
	.listener_free = mpa_listener_free,
};
