/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How an association is made.  Of a list of addresses the kernel tries the next one if the first is silent, but the
 * whole set-up fails if its host refuses it.  So there is one with the next address in front then, until each was.
 */
#include "common/own.h"
#include "sctp_ddp/backend/kernel/sd_kernel.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct ddps_sk_dial {
	struct ddps_uri uri;
	unsigned left; /* addresses that were not in front yet */
};

static struct ddps_sk_dial *make_sk_dial(const struct ddps_uri *uri)
{
	struct ddps_sk_dial *d = malloc(sizeof *d);

	if (d)
		*d = (struct ddps_sk_dial){ .uri = *uri, .left = uri->hosts.n - 1 };
	return d;
}

/* 0 or an error, with errno. */
static int open_dial_socket(const struct ddps_uri *uri, int family, int *fd)
{
	int err, keep;

	*fd = ddps_sk_socket(family, &err);
	if (*fd < 0)
		return err;
	ddps_own_tos(*fd, family, uri->tos);
	err = ddps_sk_encap_to(*fd, family, uri->encap);
	if (!err)
		return 0;
	keep = errno;
	ddps_own_close(*fd);
	errno = keep;
	return err;
}

/* To @sa or the URI's list, from the URI's addresses if it has some. */
static int reach_peer(int fd, const struct ddps_uri *uri, const struct sockaddr *sa,
		      socklen_t sa_len)
{
	if (uri->from.n && ddps_sk_bind(fd, &uri->from) < 0)
		return -1;
	if (uri->hosts.n)
		return ddps_sk_connect(fd, &uri->hosts);
	return connect(fd, sa, sa_len);
}

static bool begin_dial(struct ddps_sd_assoc *a, const struct ddps_uri *uri,
		       const struct sockaddr *sa, socklen_t sa_len)
{
	if (reach_peer(a->io.fd, uri, sa, sa_len) == 0 || errno == EINPROGRESS)
		return true;
	ddps_sk_end_soon(a, ddps_error_make(ddps_err_from_errno(errno), errno, "connect: %s",
					    strerror(errno)));
	return false;
}

int ddps_sk_dial(struct ddps_env *env, void **ctx, const struct ddps_uri *uri,
		 const struct sockaddr *sa, socklen_t sa_len, const struct ddps_llp_param *param,
		 const struct ddps_sd_assoc_up *up, void *user, struct ddps_sd_assoc **out)
{
	struct ddps_sk_env *ke;
	struct ddps_sd_assoc *a;
	int err = ddps_sk_env_get(env, ctx, &ke), fd;

	if (err)
		return err;
	if (uri->encap == 0 || !ddps_sk_families_fit(sa, uri))
		return DDPS_E_ADDRESS;
	err = open_dial_socket(uri, ddps_sk_family(sa, uri), &fd);
	if (err)
		return err;
	a = ddps_sk_assoc_new(ke, fd);
	if (!a) {
		ddps_own_close(fd);
		return DDPS_E_NOMEM;
	}
	if (uri->hosts.n && !(a->dial = make_sk_dial(uri))) {
		ddps_sk_release(a);
		return DDPS_E_NOMEM;
	}
	a->life.up = up;
	a->life.user = user;
	a->life.info.by_us = true;
	a->connecting = true;
	a->life.info.encap = uri->encap > 0 ? (uint16_t)uri->encap : 0;
	ddps_addr_text(sa, a->life.info.peer, sizeof a->life.info.peer);
	a->life.info.peer_addr = ddps_addr_of(sa);
	ddps_timer_after(env->loop, &a->life.deadline, param->connect_ms);
	if (begin_dial(a, uri, sa, sa_len))
		ddps_sk_watch(a);
	*out = a;
	return 0;
}

bool ddps_sk_dial_next(struct ddps_sd_assoc *a, int sys_errno)
{
	struct ddps_sk_dial *d = a->dial;
	struct ddps_uri_addrs *hosts;
	struct sockaddr_storage refused;
	const struct sockaddr *sa;
	int fd;

	/* an ABORT, or ICMP: no SCTP there, or no way */
	if ((sys_errno != ECONNREFUSED && sys_errno != ENOPROTOOPT && sys_errno != EHOSTUNREACH) ||
	    !d || !d->left)
		return false;
	d->left--;
	hosts = &d->uri.hosts;
	refused = hosts->at[0];
	memmove(hosts->at, hosts->at + 1, (hosts->n - 1) * sizeof refused);
	hosts->at[hosts->n - 1] = refused;
	sa = (const struct sockaddr *)&hosts->at[0];
	if (open_dial_socket(&d->uri, ddps_sk_family(sa, &d->uri), &fd))
		return false;
	ddps_log(&a->ke->env->log, DDPS_LOG_INFO, "sctp", "%s refuses the set-up: the next address",
		 a->life.info.peer);
	ddps_sk_close(a);
	a->io.fd = fd;
	ddps_addr_text(sa, a->life.info.peer, sizeof a->life.info.peer);
	a->life.info.peer_addr = ddps_addr_of(sa);
	(void)begin_dial(a, &d->uri, sa, ddps_addr_len(&hosts->at[0]));
	return true;
}
