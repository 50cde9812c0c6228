/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets of processes that are watched, and what they say. */
#include "watch/watch.h"
#include "cli/sessctl.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define ANSWER_MAX (256u << 20) /* 65 536 sessions take a third of it */
#define ANSWER_NS  (5 * NS_PER_S)

struct search {
	const struct watch_target *target;
	struct watch_trouble *trouble;
	json_t *found;
};

/* ---- URIs ---- */

struct parts {
	size_t scheme, host, port; /* lengths */
	const char *h, *p;
};

static bool take_apart(const char *uri, struct parts *u)
{
	const char *sep = strstr(uri, "://"), *end;

	if (!sep)
		return false;
	u->scheme = (size_t)(sep - uri);
	u->h = sep + 3;
	end = *u->h == '[' ? strchr(u->h, ']') : u->h + strcspn(u->h, ":/?");
	if (!end)
		return false;
	end += *end == ']';
	u->host = (size_t)(end - u->h);
	u->p = end + (*end == ':');
	u->port = strspn(u->p, "0123456789");
	return true;
}

static bool is_any(const struct parts *u)
{
	return (u->host == 7 && !memcmp(u->h, "0.0.0.0", 7)) ||
	       (u->host == 4 && !memcmp(u->h, "[::]", 4)) || (u->host == 1 && *u->h == '*');
}

/* Whether @listener, as a listener shows itself, is reached by @asked: the same wire and port, and the
 * same host, or any. */
static bool uri_matches(const char *listener, const char *asked)
{
	struct parts l, a;

	if (!take_apart(listener, &l) || !take_apart(asked, &a))
		return false;
	return l.scheme == a.scheme && !memcmp(listener, asked, l.scheme) && l.port == a.port &&
	       !memcmp(l.p, a.p, l.port) &&
	       (is_any(&l) || (l.host == a.host && !memcmp(l.h, a.h, l.host)));
}

/* ---- one socket ---- */

/* All that comes until the end, or NULL with errno. */
static char *slurp(int fd, size_t *len)
{
	const uint64_t until = clock_ns() + ANSWER_NS;
	char *text = NULL, *more;
	size_t room = 0;
	ssize_t n;

	for (*len = 0;; *len += (size_t)n) {
		struct pollfd p = { fd, POLLIN, 0 };

		if (*len == room) {
			room = room ? 2 * room : 16384;
			more = room > ANSWER_MAX ? NULL : realloc(text, room);
			if (!more)
				break;
			text = more;
		}
		if (poll(&p, 1, clock_left_ms(until)) <= 0)
			break;
		n = read(fd, text + *len, room - *len);
		if (!n)
			return text;
		if (n < 0)
			break;
	}
	free(text);
	return NULL;
}

static bool is_meant(const struct watch_target *t, const json_t *s)
{
	const json_t *uri;
	size_t i;

	if (t->pid)
		return watch_number(s, "pid") == (uint64_t)t->pid;
	if (!t->uri)
		return true;
	json_array_foreach(json_object_get(s, "listeners"), i,
			   uri) if (json_is_string(uri) &&
				    uri_matches(json_string_value(uri), t->uri)) return true;
	return false;
}

static int dial(const char *path)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), keep;
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	memcpy(sa.sun_path, path, strlen(path) + 1);
	if (fd < 0 || !connect(fd, (struct sockaddr *)&sa, sizeof sa))
		return fd;
	keep = errno;
	close(fd);
	errno = keep;
	return -1;
}

/* Who listens knows its PID as its own namespace counts; the kernel knows it as ours does. */
static pid_t pid_of(int fd)
{
	struct ucred who = { .pid = 0 };
	socklen_t len = sizeof who;

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) ? 0 : who.pid;
}

static void ask(struct search *s, const char *path)
{
	int fd = dial(path);
	json_t *answer = NULL;
	pid_t pid;
	char *text;
	size_t len;

	if (fd < 0 && (errno == ECONNREFUSED || errno == ENOENT))
		return; /* the process is gone; the next one that begins to be watched removes it */
	if (fd < 0) {
		s->trouble->sys_errno = errno;
		return;
	}
	pid = pid_of(fd);
	if (!s->target->pid || !pid || pid == s->target->pid) {
		text = slurp(fd, &len);
		answer = text ? json_loadb(text, len, 0, NULL) : NULL;
		free(text);
		if (json_is_object(answer) && pid)
			json_object_set_new(answer, "pid", json_integer(pid));
		if (!json_is_object(answer))
			s->trouble->garbled++;
		else if (is_meant(s->target, answer))
			json_object_set(s->found, path, answer);
	}
	json_decref(answer);
	close(fd);
}

/* ---- directories ---- */

/* "123.1": a PID and a number. */
static bool is_socket_name(const char *s)
{
	size_t n = strspn(s, "0123456789");

	return n && s[n] == '.' && s[n + 1] && !s[n + 1 + strspn(s + n + 1, "0123456789")];
}

static void look_into(struct search *s, const char *dir)
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct dirent *e;
	DIR *d = opendir(dir);

	if (!d) {
		if (errno != ENOENT)
			s->trouble->sys_errno = errno;
		return;
	}
	while ((e = readdir(d))) {
		int n = snprintf(path, sizeof path, "%s/%s", dir, e->d_name);

		if (is_socket_name(e->d_name) && n > 0 && (size_t)n < sizeof path)
			ask(s, path);
	}
	closedir(d);
}

/* Where processes of @uid listen.  In /tmp anybody may have made a directory of that name. */
static void look_for_user(struct search *s, unsigned long uid)
{
	struct stat st;
	char dir[64];

	snprintf(dir, sizeof dir, "/run/user/%lu/ddpsess", uid);
	look_into(s, dir);
	snprintf(dir, sizeof dir, "/tmp/ddpsess-%lu", uid);
	if (!lstat(dir, &st) && S_ISDIR(st.st_mode) && st.st_uid == uid)
		look_into(s, dir);
}

/* Root sees everybody's: @prefix is in front of the users' numbers. */
static void look_for_all(struct search *s, const char *in, const char *prefix)
{
	size_t skip = strlen(prefix);
	struct dirent *e;
	DIR *d = opendir(in);
	char *end;

	while (d && (e = readdir(d))) {
		unsigned long uid;

		if (strncmp(e->d_name, prefix, skip))
			continue;
		uid = strtoul(e->d_name + skip, &end, 10);
		if (end != e->d_name + skip && !*end)
			look_for_user(s, uid);
	}
	if (d)
		closedir(d);
}

json_t *watch_find(const struct watch_target *t, struct watch_trouble *trouble)
{
	const char *where = getenv("DDPSESS_WATCH");
	/* cppcheck-suppress ctuuninitvar ; it is written there, not read */
	struct search s = { t, trouble, json_object() };

	*trouble = (struct watch_trouble){ .garbled = 0 };
	if (where && *where == '/') {
		look_into(&s, where);
	} else if (geteuid()) {
		look_for_user(&s, geteuid());
	} else {
		look_for_all(&s, "/run/user", "");
		look_for_all(&s, "/tmp", "ddpsess-");
	}
	return s.found;
}
