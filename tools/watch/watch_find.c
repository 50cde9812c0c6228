/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the processes are that are watched, and which of them are meant. */
#include "cli/hostport.h"
#include "cli/sessctl.h"
#include "cli/text.h"
#include "watch/watch_ask.h"
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
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

/* The port is behind the last colon: one in brackets is an address's. */
static bool split_uri(const char *uri, struct parts *u)
{
	const char *sep = strstr(uri, "://"), *end;

	if (!sep)
		return false;
	u->scheme = (size_t)(sep - uri);
	u->h = sep + 3;
	end = u->h + strcspn(u->h, "/?");
	for (u->p = end; u->p > u->h && u->p[-1] != ':' && u->p[-1] != ']'; u->p--)
		;
	if (u->p == u->h || u->p[-1] != ':')
		return false;
	u->host = (size_t)(u->p - 1 - u->h);
	u->port = (size_t)(end - u->p);
	return true;
}

static bool is_any(const struct parts *u)
{
	return !u->host || (u->host == 7 && !memcmp(u->h, "0.0.0.0", 7)) ||
	       (u->host == 4 && !memcmp(u->h, "[::]", 4));
}

/* The next of the hosts in @u, from *@h on; false: there is none. */
static bool next_host(const struct parts *u, const char **h, char *host, size_t size)
{
	const char *end = u->h + u->host;
	size_t n;

	if (*h >= end)
		return false;
	n = strcspn(*h, ",");
	if (n > (size_t)(end - *h))
		n = (size_t)(end - *h);
	snprintf(host, size, "%.*s", (int)n, *h);
	*h += n + 1;
	return true;
}

static bool is_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET)
		return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&a6->sin6_addr, &b6->sin6_addr) &&
	       a6->sin6_scope_id == b6->sin6_scope_id;
}

const char *watch_resolve(struct watch_target *t)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found, *i;
	struct parts u;
	const char *h;
	char host[300];
	int err;

	if (!split_uri(t->uri, &u))
		return NULL; /* of shared memory */
	for (h = u.h; next_host(&u, &h, host, sizeof host);) {
		host[strcspn(host, "]")] = 0; /* brackets are the URI's */
		err = getaddrinfo(host + (*host == '['), NULL, &hints, &found);
		if (err)
			return gai_strerror(err);
		for (i = found; i && t->addresses < WATCH_ADDRESSES; i = i->ai_next)
			memcpy(&t->at[t->addresses++], i->ai_addr, i->ai_addrlen);
		freeaddrinfo(found);
	}
	return NULL;
}

static bool is_asked_for(const struct watch_target *t, const char *host)
{
	struct sockaddr_storage ss;
	char text[320];

	snprintf(text, sizeof text, "%s:0", host);
	if (hostport_parse(&ss, text))
		return false;
	for (unsigned i = 0; i < t->addresses; i++)
		if (is_same_host(&ss, &t->at[i]))
			return true;
	return false;
}

/* Whether @listener, as a listener shows itself, is reached by what is asked for: the same wire and port, and
 * one of its addresses, or any. */
static bool uri_matches(const char *listener, const struct watch_target *t)
{
	struct parts l, a;
	const char *h;
	char host[300];

	if (!split_uri(listener, &l) || !split_uri(t->uri, &a))
		return !strcmp(listener, t->uri);
	if (l.scheme != a.scheme || strncasecmp(listener, t->uri, l.scheme) != 0 ||
	    l.port != a.port || memcmp(l.p, a.p, l.port) != 0)
		return false;
	if (is_any(&l) || is_any(&a))
		return true;
	for (h = l.h; next_host(&l, &h, host, sizeof host);)
		if (is_asked_for(t, host))
			return true;
	return false;
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
				    uri_matches(json_string_value(uri), t)) return true;
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
	const char *named; /* by DDPSESS_WATCH: it has to be there */
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
	if (fd < 0 && f == WATCH_SYSTEM && errno == ENOENT) {
		if (path != s->named)
			return;
		f = WATCH_ABSENT;
	}
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

/* ---- all of them ---- */

struct named {
	const char *key;
	json_t *process;
};

/* Names are "DIRECTORY/PID.N". */
static int by_pid(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	const uint64_t p = watch_number(x->process, "pid"), q = watch_number(y->process, "pid");

	return p == q ? strverscmp(x->key, y->key) : p < q ? -1 : 1;
}

/* In the same order each time, whoever answers first. */
static json_t *sort_found(json_t *found)
{
	struct named *list = calloc(json_object_size(found) + 1, sizeof *list);
	json_t *sorted = json_object(), *p;
	const char *key;
	size_t n = 0;

	if (!list || !sorted) {
		free(list);
		json_decref(sorted);
		return found;
	}
	json_object_foreach(found, key, p) list[n++] = (struct named){ key, p };
	qsort(list, n, sizeof *list, by_pid);
	for (size_t i = 0; i < n; i++)
		json_object_set(sorted, list[i].key, list[i].process);
	free(list);
	json_decref(found);
	return sorted;
}

json_t *watch_find(const struct watch_target *t, struct watch_trouble *trouble)
{
	const char *where = getenv("DDPSESS_WATCH");
	struct search s = { .trouble = trouble };
	const uint64_t until = clock_ns() + LOOK_NS;
	const uid_t me = geteuid();
	json_t *found;

	*trouble = (struct watch_trouble){ .sys_errno = 0 };
	s.named = where && *where == '/' ? where : NULL;
	if (s.named)
		look_into(&s, s.named, me ? &me : NULL);
	else
		for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
			look_for_user(&s, forms[i], me);
	if (!me && !s.named)
		for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
			look_for_others(&s, forms[i], until);
	found = watch_ask(t, is_meant, s.places, s.count, trouble);
	free(s.places);
	return sort_found(found);
}
