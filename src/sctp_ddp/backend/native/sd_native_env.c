/* SPDX-License-Identifier: BSD-2-Clause */
/* What one context has of the engine: itself, its clock and its sockets. */
#include "common/own.h"
#include "common/system/random.h"
#include "sctp_ddp/backend/native/sd_dtls.h"
#include "sctp_ddp/backend/sd_sock.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define WINDOW_MAX    (4u << 20)
#define WINDOW_MIN    (256u << 10)
#define HEAVY	      4096u /* a datagram from a stranger, as messages and packets */
#define HEARTBEAT_MS  10000 /* an idle peer that vanished is found by these */
#define RTO_MAX_MS    10000
#define SACK_GRACE_US 100 /* an answer takes a few; who waits for a SACK alone waits little more */
#define PORTS	      65536u

/* ---- sockets ---- */

struct ddps_sn_sock *ddps_sn_sock_to(const struct ddps_sn_env *ne, const struct ddps_sctp_route *r)
{
	struct ddps_sn_sock *s = ne->socks[r->via]; /* a number stays in the table */

	return s && s->twin && r->peer.family == 4 ? s->twin : s;
}

/* A free number, in a table that has it. */
static int number_native_sock(struct ddps_sn_env *ne, uint16_t *via)
{
	struct ddps_sn_sock **socks;
	unsigned i;

	for (i = 0; i < ne->nsocks && ne->socks[i]; i++)
		;
	if (i > UINT16_MAX)
		return DDPS_E_LIMIT;
	if (i == ne->nsocks) {
		socks = realloc(ne->socks, (ne->nsocks + 1) * sizeof *socks);
		if (!socks)
			return DDPS_E_NOMEM;
		ne->socks = socks;
		ne->socks[ne->nsocks++] = NULL;
	}
	*via = (uint16_t)i;
	return 0;
}

static struct ddps_sn_sock *sock_make(struct ddps_sn_env *ne, int family, bool raw, uint8_t tos)
{
	struct ddps_sn_sock *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	*s = (struct ddps_sn_sock){ .ne = ne, .family = family, .raw = raw, .refs = 1, .tos = tos };
	s->io = (struct ddps_io){ .fn = ddps_sn_readable, .user = s, .fd = -1, .eager = true };
	s->heavy = HEAVY;
	return s;
}

static int sock_open(struct ddps_sn_sock *s)
{
	s->io.fd = ddps_sd_sock_open(s->family, s->raw, &s->gso);
	if (s->io.fd < 0)
		return DDPS_E_SYSTEM;
	ddps_own_tos(s->io.fd, s->family, s->tos);
	return 0;
}

static int sock_new(struct ddps_sn_env *ne, int family, bool raw, uint8_t tos,
		    struct ddps_sn_sock **out)
{
	struct ddps_sn_sock *s = sock_make(ne, family, raw, tos);
	int err;

	if (!s)
		return DDPS_E_NOMEM;
	err = number_native_sock(ne, &s->via);
	if (!err && raw) {
		s->ours = calloc(PORTS, sizeof *s->ours);
		err = s->ours ? 0 : DDPS_E_NOMEM;
	}
	if (!err)
		err = sock_open(s);
	if (err) {
		free(s->ours);
		free(s);
		return err;
	}
	ne->socks[s->via] = s;
	*out = s;
	return 0;
}

/* Of one that is not bound to an address. */
static int open_twin(struct ddps_sn_sock *s)
{
	struct ddps_sn_sock *t = sock_make(s->ne, AF_INET, true, s->tos);
	int err;

	if (!t)
		return DDPS_E_NOMEM;
	err = sock_open(t);
	if (err) {
		free(t);
		return err;
	}
	t->via = s->via;
	t->ours = s->ours;
	t->of = s;
	s->twin = t;
	return ddps_io_set(s->ne->env->loop, &t->io, EPOLLIN);
}

static void close_twin(struct ddps_sn_sock *t)
{
	if (!t)
		return;
	t->ne->nfull -= t->full;
	ddps_io_del(t->ne->env->loop, &t->io);
	ddps_own_close(t->io.fd);
	free(t);
}

int ddps_sn_sock_number(struct ddps_sn_sock *udp, struct ddps_sn_dtls *c)
{
	struct ddps_sn_sock *s = sock_make(udp->ne, udp->family, false, udp->tos);
	int err = s ? number_native_sock(udp->ne, &s->via) : DDPS_E_NOMEM;

	if (err) {
		free(s);
		return err;
	}
	s->dtls = c;
	c->as = s;
	udp->ne->ndtls++;
	udp->ne->socks[s->via] = s;
	return 0;
}

static void sock_close(struct ddps_sn_sock *s)
{
	s->ne->socks[s->via] = NULL;
	if (s->dtls) {
		s->ne->ndtls--;
		ddps_sn_dtls_free(s->dtls);
		free(s);
		return;
	}
	close_twin(s->twin);
	if (s->ne->source[s->via % DDPS_SN_SOURCES].sock == s)
		s->ne->source[s->via % DDPS_SN_SOURCES].sock = NULL;
	s->ne->nfull -= s->full;
	ddps_sn_dtls_table_free(s);
	ddps_io_del(s->ne->env->loop, &s->io);
	ddps_own_close(s->io.fd);
	free(s->ours);
	free(s->homes);
	free(s);
}

void ddps_sn_sock_put(struct ddps_sn_sock *s)
{
	if (!--s->refs)
		s->ne->unused = true;
}

void ddps_sn_close_unused(struct ddps_sn_env *ne)
{
	if (!ne->unused)
		return;
	ne->unused = false;
	for (unsigned i = 0; i < ne->nsocks; i++)
		if (ne->socks[i] && !ne->socks[i]->refs)
			sock_close(ne->socks[i]);
}

void ddps_sn_sock_port(struct ddps_sn_sock *s, uint16_t port, bool on)
{
	if (!s->raw)
		return;
	if (on)
		s->ours[port]++;
	else
		s->ours[port]--;
}

static int bind_native_sock(struct ddps_sn_sock *s, const struct sockaddr_storage *ss,
			    socklen_t len)
{
	struct sockaddr_storage bound = { 0 };
	socklen_t bound_len = sizeof bound;

	if (ddps_own_bind(s->io.fd, (const struct sockaddr *)ss, len) < 0 ||
	    getsockname(s->io.fd, (struct sockaddr *)&bound, &bound_len) < 0)
		return DDPS_E_SYSTEM;
	s->port = s->raw ? 0 : ddps_sd_port_number(&bound);
	return ddps_io_set(s->ne->env->loop, &s->io, EPOLLIN);
}

int ddps_sn_sock_client(struct ddps_sn_env *ne, int family, bool raw, uint8_t tos,
			struct ddps_sn_sock **out)
{
	struct sockaddr_storage any = { .ss_family = (sa_family_t)family };
	struct ddps_sn_sock *s;
	int err;

	for (unsigned i = 0; i < ne->nsocks; i++) {
		s = ne->socks[i];
		if (s && s->shared && s->family == family && s->raw == raw && s->tos == tos) {
			s->refs++;
			*out = s;
			return 0;
		}
	}
	err = sock_new(ne, family, raw, tos, &s);
	if (err)
		return err;
	s->shared = true;
	err = bind_native_sock(s, &any,
			       family == AF_INET6 ? sizeof(struct sockaddr_in6)
						  : sizeof(struct sockaddr_in));
	if (err)
		sock_close(s);
	else
		*out = s;
	return err;
}

static bool bound_to(const struct ddps_sn_sock *s, const struct sockaddr_storage *want, bool raw)
{
	struct sockaddr_storage have = { 0 };
	socklen_t len = sizeof have;

	if (!s || s->dtls || s->shared || s->homes || s->raw != raw ||
	    s->family != want->ss_family ||
	    getsockname(s->io.fd, (struct sockaddr *)&have, &len) < 0)
		return false;
	return ddps_sn_same_addr(&have, want) && (raw || s->port == ddps_sd_port_number(want));
}

/* DTLS and plain SCTP never share a port: one could be taken for the other. */
static bool fits_security(const struct ddps_sn_sock *s, unsigned how)
{
	return how & DDPS_SN_SECURED ? s->secured && !s->table->ep : !s->secured;
}

int ddps_sn_sock_bind(struct ddps_sn_env *ne, const struct sockaddr *sa, socklen_t len, int encap,
		      unsigned how, uint8_t tos, struct ddps_sn_sock **out)
{
	bool raw = encap == DDPS_URI_ENCAP_OFF, own = how & DDPS_SN_OWN;
	bool twin = raw && how & DDPS_SN_BOTH && sa->sa_family == AF_INET6;
	int only = how & DDPS_SN_ONLY && sa->sa_family == AF_INET6;
	struct sockaddr_storage ss = { 0 };
	struct ddps_sn_sock *s;
	int err;

	memcpy(&ss, sa, len);
	ddps_sd_set_port(&ss, raw ? 0 : (uint16_t)encap);
	/* Endpoints of one context share a UDP port, as they would with a kernel's SCTP. */
	for (unsigned i = 0; !own && (raw || encap) && i < ne->nsocks; i++) {
		if (bound_to(ne->socks[i], &ss, raw) && fits_security(ne->socks[i], how) &&
		    ne->socks[i]->tos == tos && ne->socks[i]->only == (bool)only &&
		    !ne->socks[i]->twin == !twin) {
			ne->socks[i]->refs++;
			*out = ne->socks[i];
			return 0;
		}
	}
	err = sock_new(ne, sa->sa_family, raw, tos, &s);
	if (err)
		return err;
	s->only = only;
	if (only)
		setsockopt(s->io.fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
	err = how & DDPS_SN_SECURED ? ddps_sn_dtls_begin(s, own) : 0;
	if (!err)
		err = bind_native_sock(s, &ss, len);
	if (!err && twin)
		err = open_twin(s);
	if (err)
		sock_close(s);
	else
		*out = s;
	return err;
}

/* ---- the engine ---- */

static void system_random(void *buf, size_t len)
{
	if (ddps_random(buf, len))
		abort(); /* no kernel that we run on: keys of nothing would be worse */
}

/* A tag takes 4 octets, an association a dozen such: the system is asked for many together. */
void ddps_sn_random(void *user, void *buf, size_t len)
{
	struct ddps_sn_env *ne = user;

	if (!ne || len > sizeof ne->noise) {
		system_random(buf, len);
		return;
	}
	if (ne->noise_left < len) {
		system_random(ne->noise, sizeof ne->noise);
		ne->noise_left = sizeof ne->noise;
	}
	ne->noise_left -= len;
	memcpy(buf, ne->noise + ne->noise_left, len);
	memset(ne->noise + ne->noise_left, 0, len); /* what was used is nobody else's */
}

/* A window beyond what a socket can hold would make the peer overrun it. */
static size_t get_native_window(void)
{
	bool gso;
	int fd = ddps_sd_sock_open(AF_INET, false, &gso), n = 0;

	if (fd >= 0) {
		n = ddps_sd_sock_rcvbuf(fd);
		ddps_own_close(fd);
	}
	if (n > (int)WINDOW_MAX)
		return WINDOW_MAX;
	return n < (int)WINDOW_MIN ? WINDOW_MIN : (size_t)n;
}

static void flush_native(void *user)
{
	struct ddps_sn_env *ne = user;

	ddps_sn_now(ne);
	ddps_sn_turn(ne);
}

static int env_new(struct ddps_env *env, struct ddps_sn_env **out)
{
	struct ddps_sn_env *ne = calloc(1, sizeof *ne);
	struct ddps_sctp_config c;
	int err;

	if (!ne)
		return DDPS_E_NOMEM;
	TAILQ_INIT(&ne->assocs);
	ne->env = env;
	ddps_sn_inbox_init(&ne->inbox, env->scratch);
	ne->host_mtu = ddps_sd_sock_host_mtu();
	for (unsigned i = 0; i < DDPS_SN_OUTS; i++)
		ne->out[i] = (struct ddps_sctp_out){ .iov = ne->iov[i],
						     .iov_max = DDPS_SN_IOV,
						     .head = ne->head[i],
						     .head_max = DDPS_SN_HEAD,
						     .max_segs = DDPS_SN_SEGS };
	ne->timer = (struct ddps_timer){ .fn = ddps_sn_tick, .user = ne };
	ne->flush = (struct ddps_task){ .fn = flush_native, .user = ne };
	ddps_sctp_defaults(&c);
	c.random = ddps_sn_random;
	c.source = ddps_sn_homes_source;
	c.own = ddps_sn_homes_own;
	c.tap = env->capture ? ddps_sn_tap : NULL;
	c.user = ne;
	c.rwnd = c.inbox = get_native_window();
	c.hb_interval_ms = HEARTBEAT_MS;
	c.rto_max_ms = RTO_MAX_MS;
	c.sack_grace_us = SACK_GRACE_US;
	c.icmp_grace = 0; /* a killed peer's host says so, with the tag: do not wait for T3 */
	err = ddps_sctp_new(&c, ddps_now(), &ne->e);
	if (err)
		free(ne);
	else
		*out = ne;
	return err;
}

int ddps_sn_env_get(struct ddps_env *env, void **ctx, struct ddps_sn_env **out)
{
	int err = 0;

	if (!*ctx) {
		err = env_new(env, out);
		if (!err)
			*ctx = *out;
	}
	*out = *ctx;
	return err;
}

void ddps_sn_env_free(struct ddps_sn_env *ne)
{
	ddps_sn_flush(ne);	  /* ABORTs */
	ddps_sn_close_unused(ne); /* whatever has no room */
	ddps_sn_dtls_end_all(ne);
	ddps_timer_stop(ne->env->loop, &ne->timer);
	ddps_task_cancel(ne->env->loop, &ne->flush);
	ddps_sctp_free(ne->e);
	free(ne->socks);
	free(ne->sealed);
	free(ne);
}
