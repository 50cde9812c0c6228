/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket of a process that is watched, and the thread that answers. */
#include "common/own.h"
#include "common/system/lock.h"
#include "common/system/thread.h"
#include "common/system/user.h"
#include "watch/watch_in.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_MS 2000 /* for one client to take its answer */
#define NAP_NS	  1000000

struct ddps_watch {
	struct ddps_ctx *ctx;
	pid_t pid;
	int fd;
	struct stat self; /* of @fd: a program may close what is not its own */
	pthread_t thread;
	uint64_t since;
	char label[DDPS_WATCH_LABEL];
	struct ddps_watch_own own; /* under the context's lock */
	struct ddps_watch_place place;
};

/* ---- answering ---- */

struct client {
	int fd, listening; /* shut down: no answer is wanted any more */
	uint64_t deadline;
};

/* Until the client takes more.  false: it is over. */
static bool await_room(const struct client *c)
{
	struct pollfd p[] = { { c->fd, POLLOUT, 0 }, { c->listening, 0, 0 } };
	const uint64_t now = ddps_now();
	int ms = c->deadline > now ? (int)((c->deadline - now) / 1000000) : 0;

	return ms && (poll(p, 2, ms) > 0 || errno == EINTR) && !p[1].revents;
}

static bool put_watch_text(void *user, const char *text, size_t len)
{
	const struct client *c = user;

	while (len) {
		ssize_t n = send(c->fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		if (n < 0 && !await_room(c))
			return false;
		if (n > 0) {
			text += n;
			len -= (size_t)n;
		}
	}
	return true;
}

/* Its user is this process's, or root.  The directory and the mode say so too; an administrator may
 * have changed them. */
static bool may_ask(int fd)
{
	struct ucred who;
	socklen_t len = sizeof who;

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) &&
	       (ddps_user_is_own(who.uid) || who.uid == 0);
}

static void answer_watcher(const struct ddps_watch *w, int fd)
{
	struct client c = { fd, w->fd, ddps_now() + ANSWER_MS * UINT64_C(1000000) };

	const struct ddps_watch_subject s = { w->ctx, w->label, w->since, &w->own };

	if (may_ask(fd))
		ddps_watch_tell(&s, put_watch_text, &c);
}

/* Whether @fd is still what it was. */
static bool is_watch_socket_ours(const struct ddps_watch *w)
{
	struct stat st;

	return !fstat(w->fd, &st) && st.st_dev == w->self.st_dev && st.st_ino == w->self.st_ino;
}

/* Interrupted by setuid(), which the C library has all threads do; or there is no memory to wait with now. */
static bool waits_again(void)
{
	static const struct timespec nap = { .tv_nsec = NAP_NS };

	if (errno == ENOMEM)
		return !nanosleep(&nap, NULL) || errno == EINTR;
	return errno == EINTR;
}

static void *serve_watchers(void *arg)
{
	const struct ddps_watch *w = arg;
	struct pollfd p = { w->fd, POLLIN, 0 };

	ddps_watch_sweep(&w->place);
	for (;;) {
		int fd, n = poll(&p, 1, -1);

		if (n < 0 && waits_again())
			continue;
		if (n < 0 || p.revents != POLLIN || !is_watch_socket_ours(w))
			return NULL;
		fd = ddps_own(accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
		if (fd >= 0) {
			answer_watcher(w, fd);
			ddps_own_close(fd);
		} else if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
			/* No descriptor is free, say: a while later one may be. */
			p.events = 0;
			if (poll(&p, 1, ANSWER_MS) > 0)
				return NULL;
			p.events = POLLIN;
		}
	}
}

/* ---- opening and closing ---- */

static int start_watch(struct ddps_watch *w)
{
	if (fstat(w->fd, &w->self))
		return DDPS_E_SYSTEM;
	errno = ddps_thread_start(&w->thread, NULL, serve_watchers, w);
	return errno ? DDPS_E_SYSTEM : 0;
}

static void let_watch_go(struct ddps_watch *w)
{
	int keep = errno;

	if (w->fd >= 0) {
		unlink(w->place.path);
		ddps_own_close(w->fd);
	}
	free(w);
	errno = keep;
}

static int mark(struct ddps_ctx *ctx, bool watched)
{
	int err = ddps_ctx_enter(ctx);

	if (err < 0)
		return err;
	err = watched && ctx->watched ? DDPS_E_BUSY : 0;
	if (!err)
		ctx->watched = watched;
	ddps_ctx_leave(ctx);
	return err;
}

static int open_watch_as(struct ddps_watch *w, const char *where)
{
	int err = ddps_watch_dir(&w->place, where);

	if (err)
		return err;
	w->fd = ddps_watch_listen(&w->place);
	return w->fd < 0 ? w->fd : start_watch(w);
}

int ddps_watch_open(struct ddps_watch **out, struct ddps_ctx *ctx, const char *label,
		    const char *where)
{
	struct ddps_watch *w;
	int err;

	if (!out || !ctx)
		return DDPS_E_INVAL;
	*out = NULL;
	if (!where)
		where = secure_getenv("DDPSESS_WATCH");
	if (where && !*where)
		where = NULL;
	if (where && !strcmp(where, "off"))
		return 0;
	ddps_uncancellable();
	err = mark(ctx, true);
	if (err) {
		ddps_uncancellable_end();
		return err;
	}
	w = calloc(1, sizeof *w);
	err = w ? 0 : DDPS_E_NOMEM;
	if (w) {
		w->ctx = ctx;
		w->pid = getpid();
		w->fd = -1;
		w->since = ddps_now();
		snprintf(w->label, sizeof w->label, "%s", label ? label : "");
		err = open_watch_as(w, where);
	}
	if (!err) {
		*out = w;
	} else {
		if (w)
			let_watch_go(w);
		mark(ctx, false);
	}
	ddps_uncancellable_end();
	return err;
}

static bool is_context_name(const char *s)
{
	const size_t len = s ? strlen(s) : 0;

	return len && len < DDPS_WATCH_NAME &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == len;
}

int ddps_watch_add(struct ddps_watch *w, const char *name, ddps_watch_fn *fn, void *user)
{
	int err;

	if (!is_context_name(name) || !fn)
		return DDPS_E_INVAL;
	if (!w)
		return 0;
	err = ddps_ctx_enter(w->ctx);
	if (err < 0)
		return err;
	snprintf(w->own.name, sizeof w->own.name, "%s", name);
	w->own.fn = fn;
	w->own.user = user;
	ddps_ctx_leave(w->ctx);
	return 0;
}

static void stop_watch(struct ddps_watch *w)
{
	if (w->pid != getpid()) {
		free(w); /* the fork has closed its sockets; the name is the parent's */
		return;
	}
	mark(w->ctx, false);
	/* The program has closed what is not its own: nothing can wake the thread, which keeps @w. */
	if (!is_watch_socket_ours(w))
		return;
	shutdown(w->fd, SHUT_RDWR);
	pthread_join(w->thread, NULL);
	let_watch_go(w);
}

void ddps_watch_close(struct ddps_watch *w)
{
	if (!w)
		return;
	ddps_uncancellable();
	stop_watch(w);
	ddps_uncancellable_end();
}
