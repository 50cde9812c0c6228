/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared memory below MPA: connecting, accepting, and the socket's file. */
#include "common/error.h"
#include "common/own.h"
#include "common/system/user.h"
#include "mpa_tcp/shm/mpa_shm_conn.h"
#include "secure/told.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOCK_MS 1000 /* for as long a listener waits for others that begin */

_Static_assert(sizeof(struct ddps_shm_memory) % 4096 == 0, "whole pages are mapped");

/* ---- both ---- */

static void try_again(void *user);
static void show_later(void *user);

struct ddps_mpa_shm *ddps_mpa_shm_part(struct ddps_mpa_conn *c)
{
	struct ddps_mpa_shm *t = calloc(1, sizeof *t);

	if (!t)
		return NULL;
	t->c = c;
	t->fd = -1;
	t->task = (struct ddps_task){ .fn = show_later, .user = t };
	t->again = (struct ddps_timer){ .fn = try_again, .user = t };
	return t;
}

/* A connection on the socket @fd. */
static struct ddps_mpa_conn *make_shm_conn(struct ddps_env *env, int fd)
{
	const union ddps_mpa_addr nobody = { .un = { .family = AF_UNIX } };
	struct ddps_mpa_conn *c = ddps_mpa_conn_new(env, &ddps_mpa_shm_tcp, &nobody.sa);

	if (!c)
		return NULL;
	c->io.fd = fd;
	c->shm = ddps_mpa_shm_part(c);
	if (c->shm)
		return c;
	c->open = false; /* the socket stays the caller's */
	ddps_mpa_conn_destroy(c);
	return NULL;
}

static void show_later(void *user)
{
	ddps_mpa_shm_show(user);
}

/* Who is at the other end; false: not of this process's user, though he has to be. */
static bool take_credentials(struct ddps_mpa_shm *t, bool own_user)
{
	socklen_t len = sizeof t->peer;

	return !getsockopt(t->c->io.fd, SOL_SOCKET, SO_PEERCRED, &t->peer, &len) &&
	       (!own_user || ddps_user_is_own(t->peer.uid));
}

static void tell_refused(const struct ddps_mpa_shm *t)
{
	char who[24], why[120 + DDPS_SHM_TEXT];

	snprintf(who, sizeof who, "user %u", (unsigned)t->peer.uid);
	snprintf(why, sizeof why, "%s is for one user only%s: listen at a file for others", t->name,
		 t->peer.uid == geteuid()
			 ? ", and here all users that the namespace does not map have this number"
			 : "");
	ddps_told_refused(t->c->env, who, DDPS_E_ACCESS, why, false);
}

static void name_caller(struct ddps_mpa_shm *t, pid_t pid)
{
	snprintf(t->caller, sizeof t->caller, "pid %d", (int)pid);
}

void ddps_mpa_shm_let_go(struct ddps_env *env, int fd)
{
	static bool told;

	if (!ddps_shm_close(fd) && !__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
		ddps_log(&env->log, DDPS_LOG_WARN, "mpa",
			 "shared memory: peers pass descriptors whose closing blocks, and all "
			 "threads for that are at it, or none can be made: more of them stay open "
			 "until one is free");
}

uint32_t ddps_mpa_shm_uid(const struct ddps_mpa_conn *c)
{
	return c->shm->peer.uid;
}

/* ---- the initiator ---- */

/* 0, or an errno.  EAGAIN: the listener's queue is full. */
static int link_up(struct ddps_mpa_shm *t)
{
	const int sock = t->c->io.fd;
	int err;

	if (connect(sock, (const struct sockaddr *)&t->to, t->to_len) < 0)
		return errno;
	/* Anybody can have an abstract name. */
	if (!take_credentials(t, !t->to.sun_path[0]))
		return EACCES;
	err = -ddps_shm_pass(sock, t->fd);
	ddps_own_close(t->fd);
	t->fd = -1;
	if (err)
		return err == EAGAIN ? ENOBUFS : err;
	return ddps_mpa_shm_link(t) < 0 ? errno : 0;
}

/* Try to connect; true: it is decided, see t->err. */
static bool try_link(struct ddps_mpa_shm *t)
{
	t->err = link_up(t);
	if (t->err != EAGAIN)
		return true;
	t->err = 0;
	ddps_timer_after(t->c->env->loop, &t->again, DDPS_SHM_AGAIN_MS);
	return false;
}

static void try_again(void *user)
{
	struct ddps_mpa_shm *t = user;

	if (t->linked)
		ddps_mpa_shm_ring(t);
	else if (try_link(t))
		ddps_mpa_conn_ready(t->c, DDPS_MPA_OUT);
}

static void start_shm(struct ddps_mpa_conn *c)
{
	struct ddps_mpa_shm *t = c->shm;

	ddps_mpa_conn_deadline(c, DDPS_MPA_T_CONNECT, c->p.connect_ms);
	if (!try_link(t))
		return;
	if (t->err) {
		/* Where there is no file nobody listens. */
		ddps_mpa_conn_fail(c,
				   t->err == ENOENT ? DDPS_E_REFUSED : ddps_err_from_errno(t->err),
				   t->err, "connect: %s%s", strerror(t->err),
				   t->err == EACCES && !t->to.sun_path[0]
					   ? ": another user has this abstract name"
					   : "");
		return;
	}
	ddps_mpa_setup_connected(c);
	ddps_mpa_conn_watch(c);
}

int ddps_mpa_shm_connect(struct ddps_env *env, const struct ddps_uri *uri,
			 const struct sockaddr *sa, socklen_t sa_len,
			 const struct ddps_setup *setup, const struct ddps_llp_param *p,
			 const struct ddps_llp_up *up, void *user, struct ddps_llp **out)
{
	int err = ddps_mpa_setup_check(setup), fd;
	struct ddps_shm_memory *memory;
	struct ddps_mpa_conn *c;
	struct ddps_mpa_shm *t;

	(void)uri;
	if (err)
		return err;
	if (sa->sa_family != AF_UNIX || sa_len > sizeof t->to)
		return DDPS_E_ADDRESS;
	fd = ddps_own(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return DDPS_E_SYSTEM;
	c = make_shm_conn(env, fd);
	if (!c) {
		ddps_own_close(fd);
		return DDPS_E_NOMEM;
	}
	t = c->shm;
	memory = ddps_shm_make(&t->fd);
	if (!memory) {
		err = errno;
		ddps_mpa_conn_destroy(c);
		errno = err;
		return DDPS_E_SYSTEM;
	}
	ddps_own(t->fd);
	ddps_mpa_shm_attach(t, memory);
	memcpy(&t->to, sa, sa_len);
	t->to_len = sa_len;
	ddps_addr_text(sa, t->name, sizeof t->name);
	name_caller(t, getpid());
	c->peer.un.text = t->name;
	ddps_mpa_setup_initiate(c, setup, p, up, user);
	start_shm(c);
	*out = &c->llp;
	return 0;
}

/* ---- the responder ---- */

struct ddps_mpa_conn *ddps_mpa_shm_new(struct ddps_env *env, int fd, const char *name,
				       bool own_user)
{
	struct ddps_mpa_conn *c = make_shm_conn(env, fd);
	int err = 0;

	if (!c) {
		errno = ENOMEM;
		return NULL;
	}
	snprintf(c->shm->name, sizeof c->shm->name, "%s", name);
	if (!take_credentials(c->shm, own_user)) {
		tell_refused(c->shm);
		err = EACCES;
	} else if (ddps_mpa_shm_link(c->shm) < 0) {
		err = errno;
	}
	if (err) {
		ddps_io_del(env->loop, &c->io);
		c->open = false; /* the socket stays the caller's */
		ddps_mpa_conn_destroy(c);
		errno = err;
		return NULL;
	}
	name_caller(c->shm, c->shm->peer.pid);
	c->peer.un.text = c->shm->caller;
	return c;
}

/* ---- the peer's memory ---- */

/* The responder's own, once the initiator's is here: 0, or an errno. */
static int answer_hello(struct ddps_mpa_shm *t)
{
	struct ddps_shm_memory *memory;
	int fd, err;

	if (t->memory)
		return 0;
	memory = ddps_shm_make(&fd);
	if (!memory)
		return errno;
	ddps_mpa_shm_attach(t, memory);
	err = -ddps_shm_pass(t->c->io.fd, ddps_own(fd));
	ddps_own_close(fd);
	return err;
}

bool ddps_mpa_shm_take_hello(struct ddps_mpa_shm *t)
{
	const char *why;
	const struct ddps_shm_memory *far = ddps_shm_take(t->c->io.fd, &why);
	int err;

	if (!far && !why[0] && errno == EAGAIN)
		return false;
	if (!far) {
		ddps_mpa_conn_fail(t->c, why[0] ? DDPS_E_PROTOCOL : DDPS_E_RESET, 0,
				   "shared memory: %s; it is refused",
				   why[0] ? why : "the peer has closed before it passed any");
		return false;
	}
	err = answer_hello(t);
	if (err) {
		ddps_shm_unmap(far);
		ddps_mpa_conn_fail(t->c, ddps_err_from_errno(err), err,
				   "shared memory of this side: %s", strerror(err));
		return false;
	}
	ddps_mpa_shm_meet(t, far);
	return true;
}

/* ---- the listener's socket ---- */

static struct ddps_shm_file get_file(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return (struct ddps_shm_file){ .inode = 0 };
	return (struct ddps_shm_file){ .dev = st.st_dev, .inode = st.st_ino };
}

static bool is_same_socket(const char *path, const struct ddps_shm_file *file)
{
	const struct ddps_shm_file now = get_file(path);

	return now.inode && now.dev == file->dev && now.inode == file->inode;
}

/*
 * Listeners that begin in the folder of @path do so one after another: one that has its file and does not listen yet
 * looks like one that has ended.  Anybody who can read the folder can keep its lock; then it is done without.  The
 * folder, or -1.
 */
static int lock_folder(const char *path)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	const char *end = strrchr(path, '/');
	char folder[sizeof(struct sockaddr_un)];
	int fd;

	snprintf(folder, sizeof folder, "%.*s", end ? (int)(end - path) + 1 : 1, end ? path : ".");
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; fd >= 0 && i < LOCK_MS; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return fd;
		if (errno != EWOULDBLOCK && errno != EINTR)
			break;
		nanosleep(&moment, NULL);
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

/* A child of fork may have a copy of @fd. */
static void unlock_folder(int fd)
{
	if (fd < 0)
		return;
	(void)flock(fd, LOCK_UN);
	close(fd);
}

/* A listener that has ended without removing its file: nobody answers there.  true: it is away. */
static bool remove_stale(const struct sockaddr_un *un)
{
	const struct ddps_shm_file file = get_file(un->sun_path);
	bool stale;
	int fd;

	if (!file.inode)
		return false;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	stale = connect(fd, (const struct sockaddr *)un, sizeof *un) < 0 && errno == ECONNREFUSED;
	close(fd);
	return stale && is_same_socket(un->sun_path, &file) && !unlink(un->sun_path);
}

int ddps_mpa_shm_bind(const struct sockaddr *sa, socklen_t sa_len, unsigned backlog,
		      struct ddps_shm_file *file)
{
	int fd = ddps_own(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	const struct sockaddr_un *un = (const struct sockaddr_un *)sa;
	uint64_t since = 0;
	int err = 0, folder;

	if (fd < 0)
		return -1;
	folder = un->sun_path[0] ? lock_folder(un->sun_path) : -1;
	if (bind(fd, sa, sa_len) < 0)
		err = errno;
	if (err == EADDRINUSE && un->sun_path[0] && remove_stale(un))
		err = bind(fd, sa, sa_len) < 0 ? errno : 0;
	while (err == EADDRINUSE && !un->sun_path[0]) { /* a child of fork may still have it */
		errno = err;
		if (!ddps_own_retry(&since))
			break;
		err = bind(fd, sa, sa_len) < 0 ? errno : 0;
	}
	if (!err && listen(fd, backlog > INT_MAX ? INT_MAX : (int)backlog) < 0)
		err = errno;
	*file = get_file(un->sun_path[0] ? un->sun_path : "");
	unlock_folder(folder);
	if (!err)
		return fd;
	ddps_own_close(fd);
	errno = err;
	return -1;
}

void ddps_mpa_shm_unbind(const char *path, const struct ddps_shm_file *file)
{
	if (file->inode && is_same_socket(path, file))
		(void)unlink(path);
}
