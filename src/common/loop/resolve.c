/* SPDX-License-Identifier: BSD-2-Clause */
/* Host name lookup: one short-lived thread, an eventfd to tell the loop. */
#include "common/own.h"
#include "common/loop/resolve.h"
#include "common/system/lock.h"
#include "common/system/thread.h"
#include <ddpsess/err.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct ddps_resolve {
	struct ddps_resolver *rs;
	LIST_ENTRY(ddps_resolve) link;
	struct ddps_io io; /* its eventfd is written when the fields below are final */
	unsigned era;	   /* ... unless the program has closed it meanwhile: own.h */
	pthread_t thread;
	ddps_resolve_fn *done; /* NULL: cancelled */
	void *user;
	uint16_t port;
	bool joined;
	int err;
	size_t n;
	struct sockaddr_storage addrs[DDPS_RESOLVE_MAX];
	char host[];
};

int ddps_resolve_now(const char *host, uint16_t port, struct sockaddr_storage *addrs, size_t *n)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC }, *list;
	char service[8];
	int rc;

	snprintf(service, sizeof service, "%u", port);
	*n = 0;
	ddps_uncancellable(); /* the system's library keeps its own locks otherwise */
	rc = getaddrinfo(host, service, &hints, &list);
	ddps_uncancellable_end();
	if (rc)
		return rc == EAI_MEMORY ? DDPS_E_NOMEM : DDPS_E_ADDRESS;
	for (struct addrinfo *a = list; a && *n < DDPS_RESOLVE_MAX; a = a->ai_next) {
		if (a->ai_family != AF_INET && a->ai_family != AF_INET6)
			continue;
		memset(&addrs[*n], 0, sizeof addrs[*n]);
		memcpy(&addrs[(*n)++], a->ai_addr, a->ai_addrlen);
	}
	freeaddrinfo(list);
	return *n ? 0 : DDPS_E_ADDRESS;
}

static void *run_lookup(void *arg)
{
	struct ddps_resolve *r = arg;
	uint64_t one = 1;
	ssize_t written;

	r->err = ddps_resolve_now(r->host, r->port, r->addrs, &r->n);
	if (ddps_own_era() != r->era)
		return NULL;
	written = write(r->io.fd, &one, sizeof one);
	(void)written; /* an eventfd at 0 takes a 1 */
	return NULL;
}

void ddps_resolve_cancel(struct ddps_resolve *r)
{
	r->done = NULL;
}

static void destroy_resolve(struct ddps_resolve *r)
{
	if (!r->joined)
		pthread_join(r->thread, NULL);
	ddps_io_del(r->rs->loop, &r->io);
	close(r->io.fd);
	LIST_REMOVE(r, link);
	free(r);
}

void ddps_resolver_fini(struct ddps_resolver *rs)
{
	while (!LIST_EMPTY(&rs->list))
		destroy_resolve(LIST_FIRST(&rs->list));
}

static void take_lookup_result(void *user, uint32_t events)
{
	struct ddps_resolve *r = user;

	(void)events;
	pthread_join(r->thread, NULL);
	r->joined = true;
	/* The callee may cancel, which does nothing now, or free what @user is. */
	if (r->done)
		r->done(r->user, r->err, r->addrs, r->n);
	destroy_resolve(r);
}

static int start_thread(struct ddps_resolve *r)
{
	errno = ddps_thread_start(&r->thread, NULL, run_lookup, r);
	return errno ? DDPS_E_SYSTEM : 0;
}

int ddps_resolve_start(struct ddps_resolver *rs, const char *host, uint16_t port,
		       ddps_resolve_fn *done, void *user, struct ddps_resolve **out)
{
	struct ddps_resolve *r = calloc(1, sizeof *r + strlen(host) + 1);
	int err;

	if (!r)
		return DDPS_E_NOMEM;
	strcpy(r->host, host);
	r->rs = rs;
	r->port = port;
	r->era = ddps_own_era();
	r->done = done;
	r->user = user;
	r->io = (struct ddps_io){ .fn = take_lookup_result, .user = r };
	r->io.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (r->io.fd < 0) {
		free(r);
		return DDPS_E_SYSTEM;
	}
	err = ddps_io_set(rs->loop, &r->io, EPOLLIN);
	if (!err)
		err = start_thread(r);
	if (err) {
		ddps_io_del(rs->loop, &r->io);
		close(r->io.fd);
		free(r);
		return err;
	}
	LIST_INSERT_HEAD(&rs->list, r, link);
	*out = r;
	return 0;
}
