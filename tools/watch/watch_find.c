/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the processes are that are watched, and which of them are meant. */
#include "cli/sessctl.h"
#include "cli/text.h"
#include "watch/watch_ask.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <unistd.h>

/* ---- URIs ---- */

struct parts {
	size_t scheme, host, port; /* lengths */
	const char *h, *p;
};

static bool split_uri(const char *uri, struct parts *u)
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

	if (!split_uri(listener, &l) || !split_uri(asked, &a))
		return false;
	if (l.scheme == 3 && !memcmp(listener, "shm", 3))
		return !strcmp(listener, asked);
	return l.scheme == a.scheme && !memcmp(listener, asked, l.scheme) && l.port == a.port &&
	       !memcmp(l.p, a.p, l.port) &&
	       (is_any(&l) || (l.host == a.host && !memcmp(l.h, a.h, l.host)));
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

/* ---- directories ---- */

/* What is before a user's number. */
static const char *const forms[] = { "/run/user/", "/tmp/ddpsess-" };

/* Somebody may have made many of them: they are looked for in a bounded time. */
#define LOOK_NS (2 * NS_PER_S)

struct search {
	struct watch_trouble *trouble;
	struct watch_place *places;
	size_t count, room;
};

static int add_place(struct search *s, const char *path, uid_t uid)
{
	struct watch_place *p;

	if (s->count == s->room) {
		const size_t room = s->room ? 2 * s->room : 16;

		p = realloc(s->places, room * sizeof *p);
		if (!p)
			return -1;
		s->places = p;
		s->room = room;
	}
	p = &s->places[s->count++];
	*p = (struct watch_place){ .uid = uid };
	memcpy(p->path, path, strlen(path) + 1);
	return 0;
}

/* Sockets of @uid lie in @path, or, if @uid is NULL, of whoever has it.  Nobody else may write to it: in
 * /tmp anybody may have made a directory of that name. */
static void look_into(struct search *s, const char *path, const uid_t *uid)
{
	enum watch_fault f = WATCH_SYSTEM;
	uid_t owner = 0;
	int fd = -1;

	errno = ENAMETOOLONG;
	if (strlen(path) < sizeof s->places->path)
		fd = watch_open_place(path, uid, &owner, &f);
	if (fd >= 0)
		close(fd);
	if (fd >= 0 && !add_place(s, path, owner))
		return;
	if (fd < 0 && f == WATCH_SYSTEM && errno == ENOENT)
		return;
	watch_met(s->trouble, fd < 0 ? f : WATCH_SYSTEM, path, NULL);
}

/* Where processes of @uid listen. */
static void look_for_user(struct search *s, const char *form, uid_t uid)
{
	char dir[64];

	snprintf(dir, sizeof dir, "%s%u%s", form, uid, form[1] == 'r' ? "/ddpsess" : "");
	look_into(s, dir, &uid);
}

/* A user's number, as it is written: no other name leads to the same directories. */
static bool is_user(const char *text, uid_t *uid)
{
	char again[24];
	uint64_t n;

	if (text_number(text, &n) || n >= UINT32_MAX)
		return false;
	*uid = (uid_t)n;
	snprintf(again, sizeof again, "%u", *uid);
	return !strcmp(again, text);
}

/* Users for whom there is something that begins like @form.  Root's own are there already. */
static void look_for_others(struct search *s, const char *form, uint64_t until)
{
	const char *slash = strrchr(form, '/'), *prefix = slash + 1;
	const size_t skip = strlen(prefix);
	struct dirent *e;
	char in[16];
	uid_t uid;
	DIR *d;

	snprintf(in, sizeof in, "%.*s", (int)(slash - form), form);
	d = opendir(in);
	while (d && clock_ns() < until && (e = readdir(d)))
		if (!strncmp(e->d_name, prefix, skip) && is_user(e->d_name + skip, &uid) && uid)
			look_for_user(s, form, uid);
	if (!d)
		return;
	if (clock_ns() >= until)
		watch_met(s->trouble, WATCH_LATE, in, NULL);
	closedir(d);
}

json_t *watch_find(const struct watch_target *t, struct watch_trouble *trouble)
{
	const char *where = getenv("DDPSESS_WATCH");
	struct search s = { .trouble = trouble };
	const uint64_t until = clock_ns() + LOOK_NS;
	const uid_t me = geteuid();
	json_t *found;

	*trouble = (struct watch_trouble){ .sys_errno = 0 };
	if (where && *where == '/')
		look_into(&s, where, me ? &me : NULL);
	else
		for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
			look_for_user(&s, forms[i], me);
	if (!me && !(where && *where == '/'))
		for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
			look_for_others(&s, forms[i], until);
	found = watch_ask(t, is_meant, s.places, s.count, trouble);
	free(s.places);
	return found;
}
