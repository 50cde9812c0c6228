/* SPDX-License-Identifier: BSD-2-Clause */
/* The directory of sockets and the names in it. */
#include "common/own.h"
#include "common/system/user.h"
#include "watch/watch_in.h"
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONTEXTS 1000 /* of one process */
#define BACKLOG	 8
#define OTHERS	 (S_IRWXG | S_IRWXO)

/* Ours, and nobody else may write to it; @made by us: nobody else may look either. */
static int check_watch_dir(const char *dir, bool made)
{
	struct stat st;

	if (lstat(dir, &st))
		return DDPS_E_SYSTEM;
	if (S_ISDIR(st.st_mode) && ddps_user_is_own(st.st_uid) &&
	    !(st.st_mode & (made ? OTHERS : S_IWGRP | S_IWOTH)))
		return 0;
	errno = EACCES;
	return DDPS_E_ACCESS;
}

static int make_watch_dir(const char *dir)
{
	if (mkdir(dir, S_IRWXU) && errno != EEXIST)
		return DDPS_E_SYSTEM;
	return check_watch_dir(dir, true);
}

int ddps_watch_dir(struct ddps_watch_place *pl, const char *where)
{
	const unsigned uid = (unsigned)geteuid();
	struct stat st;

	if (where) {
		if (*where != '/' || strlen(where) >= sizeof pl->dir)
			return DDPS_E_INVAL;
		memcpy(pl->dir, where, strlen(where) + 1);
		return check_watch_dir(where, false);
	}
	snprintf(pl->dir, sizeof pl->dir, "/run/user/%u", uid);
	if (!lstat(pl->dir, &st) && S_ISDIR(st.st_mode) && ddps_user_is_own(st.st_uid)) {
		snprintf(pl->dir, sizeof pl->dir, "/run/user/%u/ddpsess", uid);
		if (!make_watch_dir(pl->dir))
			return 0;
	}
	snprintf(pl->dir, sizeof pl->dir, "/tmp/ddpsess-%u", uid);
	return make_watch_dir(pl->dir);
}

static struct sockaddr_un make_watch_address(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	memcpy(sa.sun_path, path, strlen(path) + 1);
	return sa;
}

/* Whether somebody listens there, without waiting for him. */
static bool alive(const char *path)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_un sa = make_watch_address(path);
	bool yes;

	if (fd < 0)
		return true; /* nobody knows */
	yes = !connect(fd, (struct sockaddr *)&sa, sizeof sa) ||
	      (errno != ECONNREFUSED && errno != ENOENT);
	close(fd);
	return yes;
}

/* Give the socket at @making the first name of this process that is free, or left over; others are
 * of other contexts, or of a process in another PID namespace. */
static int name_watch_socket(struct ddps_watch_place *pl, const char *making)
{
	for (unsigned i = 1; i <= CONTEXTS; i++) {
		snprintf(pl->path, sizeof pl->path, "%s/%d.%u", pl->dir, (int)getpid(), i);
		if (!link(making, pl->path))
			return 0;
		if (errno != EEXIST)
			return -1;
		if (!alive(pl->path) && !unlink(pl->path) && !link(making, pl->path))
			return 0;
	}
	return -1;
}

static int bind_at(int fd, const char *path)
{
	struct sockaddr_un sa = make_watch_address(path);

	/* Before bind, or there is a moment in which others could connect. */
	if (fchmod(fd, S_IRUSR | S_IWUSR))
		return -1;
	return bind(fd, (struct sockaddr *)&sa, sizeof sa) || listen(fd, BACKLOG) ? -1 : 0;
}

int ddps_watch_listen(struct ddps_watch_place *pl)
{
	char making[sizeof pl->path];
	int fd, keep, err;

	_Static_assert(sizeof pl->dir + sizeof "/.1234567890.12345678" <= sizeof pl->path,
		       "room for a name");
	snprintf(making, sizeof making, "%s/.%d.%x", pl->dir, (int)getpid(), (unsigned)ddps_now());
	fd = ddps_own(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return DDPS_E_SYSTEM;
	err = bind_at(fd, making) || name_watch_socket(pl, making);
	keep = errno;
	unlink(making);
	if (!err)
		return fd;
	ddps_own_close(fd);
	errno = keep;
	return DDPS_E_SYSTEM;
}

/* "123.1", and as far as we can see there is no process 123: it may be in another namespace, so this
 * alone does not say that the socket is left over. */
static bool looks_dead(const char *s)
{
	size_t pid = strspn(s, "0123456789");

	return pid && s[pid] == '.' && s[pid + 1] &&
	       !s[pid + 1 + strspn(s + pid + 1, "0123456789")] && kill(atoi(s), 0) &&
	       errno == ESRCH;
}

void ddps_watch_sweep(const struct ddps_watch_place *pl)
{
	char path[sizeof pl->path];
	struct dirent *e;
	DIR *d = opendir(pl->dir);

	while (d && (e = readdir(d))) {
		int n = looks_dead(e->d_name)
				? snprintf(path, sizeof path, "%s/%s", pl->dir, e->d_name)
				: 0;

		if (n > 0 && (size_t)n < sizeof path && !alive(path))
			unlink(path);
	}
	if (d)
		closedir(d);
}
