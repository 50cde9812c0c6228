/* SPDX-License-Identifier: BSD-2-Clause */
/* The process's context, the thread that hands its events out, and the settings. */
#include "verbs/vd.h"
#include "verbs/vd_settings.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The global state of the drop-in: its interface has no argument that could carry it. */
static struct {
	pthread_mutex_t lock;
	pid_t pid;
	struct vd_process *p;
	struct vd_config cfg;
	bool configured;
} global = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool on(const struct vd_settings *s, const char *name, bool otherwise)
{
	const char *v = vd_settings_get(s, name);

	return !v || !*v ? otherwise : !strcmp(v, "on") || !strcmp(v, "1") || !strcmp(v, "yes");
}

static void configure(struct vd_config *c)
{
	const char *transport, *name, *recv, *retry;
	struct vd_settings s;

	vd_settings_read(&s);
	transport = vd_settings_get(&s, "DDPSESS_TRANSPORT");
	name = vd_settings_get(&s, "DDPSESS_DEVICE");
	recv = vd_settings_get(&s, "DDPSESS_NO_RECV");
	retry = vd_settings_get(&s, "DDPSESS_RETRY_MS");
	snprintf(c->transport, sizeof c->transport, "%s",
		 transport && !strcmp(transport, "sctp") ? "sctp" : "tcp");
	snprintf(c->name, sizeof c->name, "%s", name && *name ? name : "ddp0");
	c->crc = on(&s, "DDPSESS_CRC", true);
	c->p2p = on(&s, "DDPSESS_P2P", true);
	c->stall = recv && !strcmp(recv, "stall");
	c->retry_ms = retry ? (unsigned)strtoul(retry, NULL, 10) : 1000;
}

const struct vd_config *vd_config(void)
{
	pthread_mutex_lock(&global.lock);
	if (!global.configured)
		configure(&global.cfg);
	global.configured = true;
	pthread_mutex_unlock(&global.lock);
	return &global.cfg;
}

/* Hands events to identifiers as long as the process lives. */
static void *serve(void *arg)
{
	struct vd_process *p = arg;
	struct pollfd fd = { ddps_event_fd(p->ctx), POLLIN, 0 };
	struct ddps_event ev;

	for (;;) {
		if (poll(&fd, 1, -1) < 0 && errno != EINTR)
			return NULL;
		/* Taken under the lock, so that what an event names cannot go before it is served. */
		pthread_mutex_lock(&p->lock);
		while (ddps_event_get(p->ctx, &ev) == 1)
			vd_conn_event(p, &ev);
		pthread_mutex_unlock(&p->lock);
	}
}

static struct vd_process *start(void)
{
	struct vd_process *p = calloc(1, sizeof *p);
	struct ddps_ctx_attr attr;
	pthread_attr_t detached;
	pthread_t thread;
	int err;

	if (!p)
		return NULL;
	p->cfg = global.cfg;
	pthread_mutex_init(&p->lock, NULL);
	ddps_ctx_attr_init(&attr);
	attr.thread = true;
	err = ddps_ctx_new(&p->ctx, &attr);
	if (err) {
		free(p);
		errno = vd_errno(err);
		return NULL;
	}
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&thread, &detached, serve, p);
	pthread_attr_destroy(&detached);
	if (err) {
		ddps_ctx_free(p->ctx);
		free(p);
		errno = err;
		return NULL;
	}
	return p;
}

struct vd_process *vd_process(void)
{
	struct vd_process *p;

	vd_config();
	pthread_mutex_lock(&global.lock);
	if (!global.p || global.pid != getpid()) {
		/* After a fork the parent's objects are of no use here; they are left alone. */
		global.p = start();
		global.pid = getpid();
	}
	p = global.p;
	pthread_mutex_unlock(&global.lock);
	return p;
}

int vd_errno(int err)
{
	switch (err) {
	case 0:
		return 0;
	case DDPS_E_NOMEM:
	case DDPS_E_LIMIT:
		return ENOMEM;
	case DDPS_E_SYSTEM:
		return errno ? errno : EIO;
	case DDPS_E_ACCESS:
		return EACCES;
	case DDPS_E_ADDRESS:
		return EADDRNOTAVAIL;
	case DDPS_E_UNSUPPORTED:
		return EOPNOTSUPP;
	case DDPS_E_BUSY:
		return EBUSY;
	case DDPS_E_AGAIN:
		return EAGAIN;
	case DDPS_E_TIMEDOUT:
		return ETIMEDOUT;
	case DDPS_E_CLOSED:
	case DDPS_E_RESET:
		return ECONNRESET;
	case DDPS_E_REFUSED:
		return ECONNREFUSED;
	default:
		return EINVAL;
	}
}

int vd_fail(int error)
{
	errno = error;
	return -1;
}
