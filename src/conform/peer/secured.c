/* SPDX-License-Identifier: BSD-2-Clause */
/* The peer's octets on their way to TCP, or to the TLS of a library. */
#include "conform/peer/secured.h"
#include "conform/peer/inside.h"
#include "conform/peer/shared.h"
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PLUGIN "libddpsess-tls.so"

/* ---- of a run ---- */

/* libddpsess finds and loads it, and says what is wrong with the files. */
int cf_secured_load(struct cf_secured *s, const struct ddps_secure_attr *attr, char *why,
		    size_t len)
{
	struct ddps_secure *checked = NULL;
	struct ddps_error e = { .code = 0 };
	int err = ddps_secure_open(&checked, attr, &e);
	void *at;

	*s = (struct cf_secured){ .lib = NULL };
	if (err) {
		snprintf(why, len, "%s", e.text);
		return err;
	}
	ddps_secure_close(checked);
	at = dlopen(PLUGIN, RTLD_NOW | RTLD_NOLOAD);
	s->lib = at ? dlsym(at, CF_TLS_SYMBOL) : NULL;
	if (!s->lib || s->lib->abi != CF_TLS_ABI) {
		snprintf(why, len, PLUGIN " is of another release: install that of this one");
		return DDPS_E_NO_TLS;
	}
	s->creds = s->lib->load(attr, why, len);
	s->x509 = s->creds && s->lib->has_x509(s->creds);
	return s->creds ? 0 : DDPS_E_CONFIG;
}

void cf_secured_unload(struct cf_secured *s)
{
	if (s->creds)
		s->lib->unload(s->creds);
}

/* ---- of a connection ---- */

static void wait_for_step(struct cf *cf, int step, uint64_t since)
{
	struct pollfd p = { .fd = cf->conn->fd, .events = step == CF_TLS_WRITE ? POLLOUT : POLLIN };
	int ready = 0;

	while (ready <= 0) {
		ready = poll(&p, 1, cf_nap(cf, since, cf_left(cf, since, "the TLS handshake")));
		cf_woke(cf);
	}
}

bool cf_secured_try(struct cf *cf, unsigned how)
{
	const struct cf_secured *s = cf->run->secured;
	const bool server = cf->c->target == CF_INITIATOR;
	struct cf_conn *c = cf->conn;
	uint64_t since = cf_now();
	char host[256] = "", why[300];
	int step;

	if (!server)
		cf_uri_host(cf->run->uri, host, sizeof host);
	c->tls = s->lib->begin(s->creds, c->fd, server, *host ? host : NULL, how, why, sizeof why);
	CF_CHECK(cf, c->tls, "%s", why);
	while ((step = s->lib->step(c->tls, why, sizeof why)) > 0)
		wait_for_step(cf, step, since);
	if (step)
		snprintf(cf->left.why, sizeof cf->left.why, "the TLS handshake: %s", why);
	return !step;
}

void cf_secured_open(struct cf *cf)
{
	if (cf->run->secured && !cf_secured_try(cf, 0))
		longjmp(cf->left.to, 1);
}

void cf_secured_close(struct cf_conn *c, const struct cf_run *run)
{
	if (!c->tls)
		return;
	if (c->fd >= 0)
		(void)run->secured->lib->bye(c->tls);
	run->secured->lib->free(c->tls);
	c->tls = NULL;
}

/* ---- octets ---- */

ssize_t cf_octets_send(struct cf *cf, const void *p, size_t len)
{
	struct cf_conn *c = cf->conn;
	ssize_t n;

	if (c->tls)
		return cf->run->secured->lib->write(c->tls, p, len);
	if (c->shared)
		return cf_shared_send(cf, p, len);
	n = send(c->fd, p, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	return n < 0 ? -errno : n;
}

static ssize_t recv_secured(struct cf *cf, void *p, size_t len)
{
	struct cf_conn *c = cf->conn;
	ssize_t n = 1;

	if (!c->peeked)
		n = cf->run->secured->lib->read(c->tls, p ? p : &c->peek, p ? len : 1);
	else if (p)
		*(uint8_t *)p = c->peek;
	c->peeked = !p && n > 0;
	return n;
}

ssize_t cf_octets_recv(struct cf *cf, void *p, size_t len)
{
	uint8_t b;
	ssize_t n;

	if (cf->conn->tls)
		return recv_secured(cf, p, len);
	if (cf->conn->shared)
		return cf_shared_recv(cf, p, len);
	n = recv(cf->conn->fd, p ? p : &b, p ? len : 1, MSG_DONTWAIT | (p ? 0 : MSG_PEEK));
	return n < 0 ? -errno : n;
}

void cf_octets_end(struct cf *cf)
{
	if (cf->conn->tls)
		(void)cf->run->secured->lib->bye(cf->conn->tls);
	if (cf->conn->shared) {
		cf_shared_end(cf->conn, false);
		return;
	}
	shutdown(cf->conn->fd, SHUT_WR);
}
