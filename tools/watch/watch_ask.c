/* SPDX-License-Identifier: BSD-2-Clause */
/* Many sockets are asked at the same time.  Each directory has its share of what is asked at a time, and of
 * the memory, so nobody can hide somebody else. */
#include "watch/watch_ask.h"
#include "cli/sessctl.h"
#include "common/system/user.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define ASK_NS (5 * NS_PER_S)
#define ASKED  256u /* at a time, if there are as many descriptors */
#define OTHERS                                                                                     \
	24u /* descriptors for all else: three while a socket is looked for, what was inherited */
#define COST_OWN                                                                                   \
	(1ull << 30) /* of answers of one's own programs: 65 536 sessions take four fifths */
#define COST_OTHERS (512ull << 20) /* of everybody else's together */

/* Names that are read: of one's own directory, or of everybody else's together. */
#define NAMES	    262144u
#define NAMES_LEAST 256u /* of each */

/* About the octets of memory that an answer takes: for each of its own, and for each value in it, before
 * which there is such a character. */
#define COST_OCTET 4
#define COST_VALUE 160
#define VALUES	   "[{,"

struct question {
	struct watch_place *of;
	char *text;
	size_t len, room;
	pid_t pid;
	char name[32];
};

struct asking {
	const struct watch_target *target;
	watch_meant *meant;
	struct watch_trouble *trouble;
	json_t *found;
	unsigned count, most;
	struct pollfd fds[ASKED];
	struct question q[ASKED];
};

void watch_met(struct watch_trouble *t, enum watch_fault f, const char *dir, const char *name)
{
	if (!t->met[f]) {
		snprintf(t->first[f], sizeof t->first[f], "%s%s%s", dir, name ? "/" : "",
			 name ? name : "");
		if (f == WATCH_SYSTEM)
			t->sys_errno = errno;
	}
	t->met[f]++;
}

int watch_open_place(const char *path, const uid_t *uid, uid_t *owner, enum watch_fault *f)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	*f = fd < 0 && (errno == ELOOP || errno == ENOTDIR) ? WATCH_FOREIGN : WATCH_SYSTEM;
	if (fd < 0 || fstat(fd, &st)) /* of an open file it does not fail */
		return -1;
	*owner = st.st_uid;
	if ((!uid || st.st_uid == *uid) && !ddps_user_is_nobody(st.st_uid) &&
	    !(st.st_mode & (S_IWGRP | S_IWOTH)))
		return fd;
	*f = WATCH_FOREIGN;
	close(fd);
	return -1;
}

/* ---- a question ---- */

struct watch_name {
	uint32_t pid, n;
};

/* "123.1": a PID and a number, as the library writes them. */
static void write_name(char *dst, size_t size, const struct watch_name *w)
{
	snprintf(dst, size, "%u.%u", w->pid, w->n);
}

static bool take_name(struct watch_name *w, const char *s)
{
	char again[sizeof((struct question *)0)->name];

	if (sscanf(s, "%9u.%9u", &w->pid, &w->n) != 2)
		return false;
	write_name(again, sizeof again, w);
	return !strcmp(again, s);
}

/* What has been looked at is what is connected to: it is not looked up again. */
static int dial_file(int file)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), keep;

	snprintf(sa.sun_path, sizeof sa.sun_path, "/proc/self/fd/%d", file);
	if (fd < 0 || !connect(fd, (struct sockaddr *)&sa, sizeof sa))
		return fd;
	keep = errno;
	close(fd);
	errno = keep;
	return -1;
}

/* A descriptor to read from; or -1 and the fault, or WATCH_FAULTS: the process is gone, and the next one
 * that begins to be watched removes it. */
static int dial_name(const struct watch_place *p, int dir, const char *name, enum watch_fault *f)
{
	int file = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), fd = -1;
	struct stat st;

	*f = WATCH_SYSTEM;
	if (file < 0 && errno == ENOENT)
		*f = WATCH_FAULTS;
	if (file < 0 || fstat(file, &st))
		return -1; /* fstat of an open file does not fail */
	if (!S_ISSOCK(st.st_mode) || st.st_uid != p->uid) {
		*f = WATCH_FOREIGN;
	} else {
		fd = dial_file(file);
		if (fd < 0 && errno == ECONNREFUSED)
			*f = WATCH_FAULTS;
		if (fd < 0 && errno == EPROTOTYPE) /* no stream: not ours */
			*f = WATCH_FOREIGN;
		if (fd < 0 && errno == EAGAIN) /* it has as many clients as it takes */
			*f = WATCH_LATE;
	}
	close(file);
	return fd;
}

/* Who listens knows its PID as its own namespace counts; the kernel knows it as ours does. */
static bool is_peer_of_place(const struct watch_place *p, int fd, pid_t *pid)
{
	struct ucred who;
	socklen_t len = sizeof who;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len))
		return false;
	*pid = who.pid;
	return who.uid == p->uid;
}

static void ask_name(struct asking *a, struct watch_place *p, int dir, const char *name)
{
	struct question *q = &a->q[a->count];
	enum watch_fault f;
	int fd = dial_name(p, dir, name, &f);
	pid_t pid = 0;

	if (fd < 0) {
		if (f != WATCH_FAULTS)
			watch_met(a->trouble, f, p->path, name);
		return;
	}
	if (!is_peer_of_place(p, fd, &pid)) {
		watch_met(a->trouble, WATCH_FOREIGN, p->path, name);
	} else if (!a->target->pid || !pid || pid == a->target->pid) {
		*q = (struct question){ .of = p, .pid = pid };
		memcpy(q->name, name, strlen(name) + 1);
		a->fds[a->count++] = (struct pollfd){ fd, POLLIN, 0 };
		p->asked++;
		return;
	}
	close(fd);
}

/* Once, since a position of one stream means nothing to another. */
static void list_names(struct asking *a, struct watch_place *p, int dir)
{
	int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = again >= 0 ? fdopendir(again) : NULL;
	struct dirent *e = NULL;
	size_t room = 0, most = p->most;

	p->listed = true;
	while (d && most && (e = readdir(d))) {
		const size_t more = room ? 2 * room : 16;
		struct watch_name w, *grown;

		most--;
		if (!take_name(&w, e->d_name))
			continue;
		if (p->count == room) {
			grown = reallocarray(p->names, more, sizeof *grown);
			if (!grown)
				break;
			p->names = grown;
			room = more;
		}
		p->names[p->count++] = w;
	}
	if (!d || e)
		watch_met(a->trouble, d && !most ? WATCH_MANY : WATCH_SYSTEM, p->path, NULL);
	if (d)
		closedir(d);
	else if (again >= 0)
		close(again);
}

/* It is open only while its sockets are dialled: there may be more directories than descriptors. */
static int open_again(struct asking *a, struct watch_place *p)
{
	enum watch_fault f;
	uid_t owner;
	int fd = watch_open_place(p->path, &p->uid, &owner, &f);

	if (fd >= 0)
		return fd;
	if (f != WATCH_SYSTEM || errno != ENOENT)
		watch_met(a->trouble, f, p->path, NULL);
	p->over = true;
	return -1;
}

static bool may_ask_place(const struct asking *a, const struct watch_place *p, unsigned at_a_time)
{
	return !p->over && p->asked < at_a_time && a->count < a->most;
}

/* As many of its sockets as it may have asked at a time. */
static void ask_more(struct asking *a, struct watch_place *p, unsigned at_a_time, uint64_t until)
{
	char name[sizeof a->q->name];
	int dir = may_ask_place(a, p, at_a_time) ? open_again(a, p) : -1;

	if (dir < 0)
		return;
	if (!p->listed)
		list_names(a, p, dir);
	while (may_ask_place(a, p, at_a_time) && clock_ns() < until) {
		p->over = p->at == p->count;
		if (p->over)
			break;
		write_name(name, sizeof name, &p->names[p->at++]);
		ask_name(a, p, dir, name);
	}
	close(dir);
}

/* ---- an answer ---- */

static void end_question(struct asking *a, unsigned i)
{
	close(a->fds[i].fd);
	free(a->q[i].text);
	a->q[i].of->asked--;
	a->count--;
	a->q[i] = a->q[a->count];
	a->fds[i] = a->fds[a->count];
}

static uint64_t get_text_cost(const char *text, size_t len)
{
	uint64_t cost = COST_OCTET * len;

	for (size_t i = 0; i < len; i++)
		cost += text[i] && strchr(VALUES, text[i]) ? COST_VALUE : 0;
	return cost;
}

/* What has come.  1: there may be more, 0: it was all, or -1 and the fault. */
static int read_watch_answer(struct question *q, int fd, enum watch_fault *f)
{
	uint64_t cost;
	ssize_t n;

	if (q->len == q->room) {
		const size_t room = q->room ? 2 * q->room : 16384;
		char *more = realloc(q->text, room);

		*f = WATCH_SYSTEM;
		if (!more)
			return -1;
		q->text = more;
		q->room = room;
	}
	n = read(fd, q->text + q->len, q->room - q->len);
	*f = WATCH_GARBLED;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 1 : -1;
	cost = get_text_cost(q->text + q->len, (size_t)n);
	*f = WATCH_LONG;
	if (cost > q->of->left)
		return -1;
	q->of->left -= cost;
	q->len += (size_t)n;
	return n > 0;
}

/* false: it is no object; and the fault. */
static bool take_watch_answer(struct asking *a, struct question *q, enum watch_fault *f)
{
	char key[sizeof q->of->path + sizeof q->name];
	json_error_t e;
	json_t *answer = json_loadb(q->text, q->len, 0, &e);
	bool whole = json_is_object(answer);

	*f = WATCH_STRANGE;
	if (!q->len || (!answer && json_error_code(&e) == json_error_premature_end_of_input))
		*f = WATCH_GARBLED;
	if (whole && q->pid)
		json_object_set_new(answer, "pid", json_integer(q->pid));
	if (whole && a->meant(a->target, answer)) {
		snprintf(key, sizeof key, "%s/%s", q->of->path, q->name);
		json_object_set(a->found, key, answer);
	}
	json_decref(answer);
	return whole;
}

static void hear_all(struct asking *a)
{
	enum watch_fault f;

	for (unsigned i = a->count; i-- > 0;) {
		struct question *q = &a->q[i];
		int more = a->fds[i].revents ? read_watch_answer(q, a->fds[i].fd, &f) : 1;

		if (!more && !take_watch_answer(a, q, &f))
			more = -1;
		if (more < 0)
			watch_met(a->trouble, f, q->of->path, q->name);
		if (more <= 0)
			end_question(a, i);
	}
}

/* With few questions at a time all may be answered while there are sockets still to be asked. */
static bool names_left(const struct watch_place *places, size_t count)
{
	while (count && places[count - 1].over)
		count--;
	return count;
}

json_t *watch_ask(const struct watch_target *t, watch_meant *meant, struct watch_place *places,
		  size_t count, struct watch_trouble *trouble)
{
	struct asking a = {
		.target = t, .meant = meant, .trouble = trouble, .found = json_object()
	};
	const uint64_t until = clock_ns() + ASK_NS;
	const long files = sysconf(_SC_OPEN_MAX);
	unsigned at_a_time;

	a.most = files < 0 || files > (long)(ASKED + OTHERS) ? ASKED
		 : files > (long)OTHERS			     ? (unsigned)files - OTHERS
							     : 1;
	at_a_time = count < a.most ? a.most / (unsigned)(count + 1) + 1 : 1;
	for (size_t i = 0; i < count; i++) {
		const bool own = t->pid || places[i].uid == geteuid();

		places[i].left = own ? COST_OWN : COST_OTHERS / count;
		places[i].most = own || count < NAMES / NAMES_LEAST ? NAMES / (own ? 1 : count)
								    : NAMES_LEAST;
	}
	do {
		for (size_t i = 0; i < count; i++)
			ask_more(&a, &places[i], at_a_time, until);
		if (a.count && poll(a.fds, a.count, clock_left_ms(until)) > 0)
			hear_all(&a);
	} while ((a.count || names_left(places, count)) && clock_ns() < until);
	while (a.count) {
		watch_met(trouble, WATCH_LATE, a.q[0].of->path, a.q[0].name);
		end_question(&a, 0);
	}
	for (size_t i = 0; i < count; i++) {
		if (!places[i].over)
			watch_met(trouble, WATCH_LATE, places[i].path, NULL);
		free(places[i].names);
	}
	return a.found;
}
