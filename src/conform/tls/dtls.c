/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DTLS 1.2 for the peer, by GnuTLS alone: a thread between the peer's plain UDP on loopback, and the target.  Each
 * packet of the one is a record of the other (RFC 8261 section 3).
 */
#include "conform/tls/tls_in.h"
#include <errno.h>
#include <gnutls/dtls.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define SIDES	   16u /* connections, as a listener */
#define RECORD	   16000u
#define SHAKE_MTU  1400u
#define SHAKE_MS   1000u /* a flight leaves again after that */
#define DATAGRAM   65536u
#define MS_PER_SEC 1000

struct side {
	struct cf_dtls *d;
	gnutls_session_t session;
	int inner; /* towards the peer; -1: not yet */
	struct sockaddr_storage target;
	socklen_t target_len;
	const uint8_t *in;
	size_t nin;
	bool done;
};

struct cf_dtls {
	struct cf_tls_creds *creds;
	int outer, stop;
	bool server, runs;
	pthread_t thread;
	struct sockaddr_in
		peer; /* a listener: where its SCTP is; a dialler: where that was heard from */
	struct side *side[SIDES];
	uint8_t b[DATAGRAM], plain[DATAGRAM];
};

/* ---- GnuTLS's socket ---- */

static ssize_t push_side(gnutls_transport_ptr_t p, const void *b, size_t n)
{
	const struct side *s = p;
	const struct sockaddr *to = s->d->server ? (const struct sockaddr *)&s->target : NULL;

	/* What is lost here leaves again. */
	(void)sendto(s->d->outer, b, n, MSG_NOSIGNAL, to, to ? s->target_len : 0);
	return (ssize_t)n;
}

static ssize_t pull_side(gnutls_transport_ptr_t p, void *b, size_t n)
{
	struct side *s = p;

	if (!s->in) {
		gnutls_transport_set_errno(s->session, EAGAIN);
		return -1;
	}
	n = n < s->nin ? n : s->nin;
	memcpy(b, s->in, n);
	s->in = NULL;
	return (ssize_t)n;
}

static int has_datagram(gnutls_transport_ptr_t p, unsigned ms)
{
	(void)ms;
	return ((struct side *)p)->in != NULL;
}

/* ---- connections ---- */

static void free_side(struct side *s)
{
	if (s->done)
		(void)gnutls_bye(s->session, GNUTLS_SHUT_WR);
	if (s->session)
		gnutls_deinit(s->session);
	if (s->inner >= 0)
		close(s->inner);
	free(s);
}

static int set_up_side(struct side *s, const char *host)
{
	struct cf_tls_creds *c = s->d->creds;
	const unsigned role = s->d->server ? GNUTLS_SERVER : GNUTLS_CLIENT;
	int err = gnutls_init(&s->session, role | GNUTLS_DATAGRAM | GNUTLS_NONBLOCK |
						   GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS);

	if (!err)
		err = gnutls_priority_set_direct(s->session,
						 cf_tls_by_psk(c)
							 ? "NORMAL:-VERS-ALL:+VERS-DTLS1.2:-KX-ALL:"
							   "+ECDHE-PSK"
							 : "NORMAL:-VERS-ALL:+VERS-DTLS1.2",
						 NULL);
	if (!err)
		err = cf_tls_give(s->session, c, s->d->server, host, 0);
	if (err)
		return err;
	gnutls_transport_set_ptr(s->session, s);
	gnutls_transport_set_push_function(s->session, push_side);
	gnutls_transport_set_pull_function(s->session, pull_side);
	gnutls_transport_set_pull_timeout_function(s->session, has_datagram);
	gnutls_dtls_set_mtu(s->session, SHAKE_MTU);
	gnutls_dtls_set_timeouts(s->session, SHAKE_MS, 60 * MS_PER_SEC);
	return 0;
}

static struct side *new_side(struct cf_dtls *d, const char *host, int *err)
{
	struct side *s = calloc(1, sizeof *s);

	*err = GNUTLS_E_MEMORY_ERROR;
	if (!s)
		return NULL;
	s->d = d;
	s->inner = -1;
	*err = set_up_side(s, host);
	if (*err) {
		free_side(s);
		return NULL;
	}
	return s;
}

/* A loopback socket that nothing was sent to or from. */
static int open_inner(struct sockaddr_in *at)
{
	const struct sockaddr_in any = { .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof *at;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && !bind(fd, (const struct sockaddr *)&any, sizeof any) &&
	    !getsockname(fd, (struct sockaddr *)at, &len))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* 1: done now, 0: it goes on, -1: it failed with @err. */
static int shake_side(struct side *s, int *err)
{
	do
		*err = gnutls_handshake(s->session);
	while (*err == GNUTLS_E_INTERRUPTED || *err == GNUTLS_E_WARNING_ALERT_RECEIVED);
	if (*err)
		return gnutls_error_is_fatal(*err) ? -1 : 0;
	s->done = true;
	gnutls_dtls_set_data_mtu(s->session, RECORD);
	return 1;
}

/* ---- the thread ---- */

static void drop_side(struct cf_dtls *d, unsigned i)
{
	free_side(d->side[i]);
	d->side[i] = NULL;
}

/* What the target has sealed; false: it is over. */
static bool open_to_peer(struct side *s)
{
	struct cf_dtls *d = s->d;
	ssize_t n;

	while ((n = gnutls_record_recv(s->session, d->plain, sizeof d->plain)) > 0)
		(void)sendto(s->inner, d->plain, (size_t)n, MSG_NOSIGNAL,
			     (const struct sockaddr *)&d->peer, sizeof d->peer);
	return n && !gnutls_error_is_fatal((int)n);
}

static void take_from_target(struct cf_dtls *d, unsigned i, size_t n)
{
	struct side *s = d->side[i];
	struct sockaddr_in at;
	bool ok = true;
	int err, step;

	s->in = d->b;
	s->nin = n;
	if (!s->done) {
		step = shake_side(s, &err);
		if (step > 0)
			s->inner = open_inner(&at);
		ok = step >= 0 && (!s->done || s->inner >= 0);
	} else {
		ok = open_to_peer(s);
	}
	s->in = NULL;
	if (!ok)
		drop_side(d, i);
}

static int find_side(struct cf_dtls *d, const struct sockaddr_storage *from, socklen_t len)
{
	int none = -1, err;

	for (unsigned i = 0; i < SIDES; i++) {
		if (!d->side[i])
			none = (int)i;
		else if (!d->server ||
			 (d->side[i]->target_len == len && !memcmp(&d->side[i]->target, from, len)))
			return (int)i;
	}
	if (none < 0 || !d->server)
		return -1;
	d->side[none] = new_side(d, NULL, &err);
	if (!d->side[none])
		return -1;
	d->side[none]->target = *from;
	d->side[none]->target_len = len;
	return none;
}

static void read_from_target(struct cf_dtls *d)
{
	struct sockaddr_storage from = { 0 };
	socklen_t len = sizeof from;
	ssize_t n;
	int i;

	while ((n = recvfrom(d->outer, d->b, sizeof d->b, MSG_DONTWAIT, (struct sockaddr *)&from,
			     &len)) > 0) {
		i = find_side(d, &from, len);
		if (i >= 0)
			take_from_target(d, (unsigned)i, (size_t)n);
		len = sizeof from;
	}
}

static void read_from_peer(struct side *s)
{
	struct cf_dtls *d = s->d;
	struct sockaddr_in from;
	socklen_t len = sizeof from;
	ssize_t n;

	while ((n = recvfrom(s->inner, d->b, sizeof d->b, MSG_DONTWAIT, (struct sockaddr *)&from,
			     &len)) >= 0) {
		if (!d->server)
			d->peer = from;
		(void)gnutls_record_send(s->session, d->b, (size_t)n);
		len = sizeof from;
	}
}

static void *run_dtls(void *user)
{
	struct cf_dtls *d = user;
	struct pollfd p[2 + SIDES];

	for (;;) {
		p[0] = (struct pollfd){ d->stop, POLLIN, 0 };
		p[1] = (struct pollfd){ d->outer, POLLIN, 0 };
		for (unsigned i = 0; i < SIDES; i++)
			p[2 + i] =
				(struct pollfd){ d->side[i] ? d->side[i]->inner : -1, POLLIN, 0 };
		if (poll(p, 2 + SIDES, -1) < 0)
			continue;
		if (p[0].revents)
			return NULL;
		if (p[1].revents)
			read_from_target(d);
		for (unsigned i = 0; i < SIDES; i++)
			if (p[2 + i].revents && d->side[i] && d->side[i]->inner == p[2 + i].fd)
				read_from_peer(d->side[i]);
	}
}

/* ---- beginning, end ---- */

static struct cf_dtls *new_dtls(struct cf_tls_creds *creds, int outer, bool server)
{
	struct cf_dtls *d = calloc(1, sizeof *d);

	if (!d)
		return NULL;
	d->creds = creds;
	d->outer = outer;
	d->server = server;
	d->stop = eventfd(0, EFD_CLOEXEC);
	return d;
}

static struct cf_dtls *start_dtls_thread(struct cf_dtls *d, char *why, size_t len)
{
	if (d && d->stop >= 0 && !pthread_create(&d->thread, NULL, run_dtls, d)) {
		d->runs = true;
		return d;
	}
	snprintf(why, len, "no memory or descriptor");
	if (d)
		cf_dtls_close(d);
	return NULL;
}

static int now_in_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int)(t.tv_sec % 1000000 * MS_PER_SEC + t.tv_nsec / 1000000);
}

/* The whole handshake; false: @why. */
static bool shake_in_time(struct side *s, unsigned limit_ms, char *why, size_t len)
{
	struct cf_dtls *d = s->d;
	const int begun = now_in_ms();
	bool answered = false, refused = false;
	int err, step;

	while (!(step = shake_side(s, &err))) {
		const unsigned again = gnutls_dtls_get_timeout(s->session);
		struct pollfd p = { d->outer, POLLIN, 0 };
		ssize_t n;

		if (now_in_ms() - begun >= (int)limit_ms)
			break;
		(void)poll(&p, 1, (int)(again < limit_ms ? again + 1 : limit_ms));
		n = recv(d->outer, d->b, sizeof d->b, MSG_DONTWAIT);
		refused |= n < 0 && errno == ECONNREFUSED;
		answered |= n > 0;
		s->in = n > 0 ? d->b : NULL;
		s->nin = n > 0 ? (size_t)n : 0;
	}
	s->in = NULL;
	if (step < 0)
		snprintf(why, len, "%s%s%s", gnutls_strerror(err),
			 err == GNUTLS_E_FATAL_ALERT_RECEIVED ? ": " : "",
			 err == GNUTLS_E_FATAL_ALERT_RECEIVED
				 ? gnutls_alert_get_name(gnutls_alert_get(s->session))
				 : "");
	else if (!step)
		snprintf(why, len, "%s",
			 answered  ? "it went silent in the handshake"
			 : refused ? "connection refused: nothing has that UDP port"
				   : "nothing answers: is it sctps:// there?");
	return step > 0;
}

struct cf_dtls *cf_dtls_dial(struct cf_tls_creds *creds, const struct sockaddr *to, socklen_t len,
			     const char *host, unsigned limit_ms, struct sockaddr_in *inner,
			     char *why, size_t why_len)
{
	int outer = socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;
	struct cf_dtls *d = new_dtls(creds, outer, false);
	struct side *s;

	if (!d || outer < 0 || connect(outer, to, len)) {
		snprintf(why, why_len, "%s", strerror(errno));
		if (!d && outer >= 0)
			close(outer);
		if (d)
			cf_dtls_close(d);
		return NULL;
	}
	s = new_side(d, host, &err);
	d->side[0] = s;
	if (!s)
		snprintf(why, why_len, "GnuTLS: %s", gnutls_strerror(err));
	if (s && shake_in_time(s, limit_ms, why, why_len)) {
		s->inner = open_inner(inner);
		if (s->inner >= 0)
			return start_dtls_thread(d, why, why_len);
		snprintf(why, why_len, "%s", strerror(errno));
	}
	cf_dtls_close(d);
	return NULL;
}

struct cf_dtls *cf_dtls_front(struct cf_tls_creds *creds, int outer,
			      const struct sockaddr_in *inner, char *why, size_t why_len)
{
	struct cf_dtls *d = new_dtls(creds, outer, true);

	if (d)
		d->peer = *inner;
	else
		close(outer);
	return start_dtls_thread(d, why, why_len);
}

void cf_dtls_close(struct cf_dtls *d)
{
	const uint64_t one = 1;

	if (d->runs) {
		if (write(d->stop, &one, sizeof one) < 0)
			abort(); /* an eventfd takes it */
		pthread_join(d->thread, NULL);
	}
	for (unsigned i = 0; i < SIDES; i++)
		if (d->side[i])
			drop_side(d, i);
	if (d->stop >= 0)
		close(d->stop);
	if (d->outer >= 0)
		close(d->outer);
	free(d);
}
