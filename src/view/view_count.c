/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE 1
#include "view/view.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_MS 200 /* for processes to bring their counters up to date */
#define ASKED	  64u /* at a time */
#define LOCKED_MS 500 /* that others may have the sum of those that have ended */
#define AGAIN_MS  2
#define SIZE	  (VIEW_NCOUNTERS * sizeof(uint64_t))

static const struct counter {
	const char *folder, *name;
} counters[] = {
#define COUNTER_NAMES(folder, name) { #folder, #name },
	VIEW_COUNTERS(COUNTER_NAMES)
};

const char *view_count_name(unsigned i)
{
	return counters[i].name;
}

/* ---- the processes ---- */

/* What the file @name of @live has; false: nothing, or not all.  A pipe of that name has no place 0, and nobody waits for
 * its writer. */
static bool read_counters(int live, const char *name, uint64_t v[VIEW_NCOUNTERS])
{
	int fd = openat(live, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	bool all = fd >= 0 && pread(fd, v, SIZE, 0) == (ssize_t)SIZE;

	if (fd >= 0)
		close(fd);
	return all;
}

static void add_counters(uint64_t to[VIEW_NCOUNTERS], const uint64_t from[VIEW_NCOUNTERS])
{
	for (unsigned i = 0; i < VIEW_NCOUNTERS; i++)
		to[i] += from[i];
}

/* A connection to the process behind @name, which asks it.  -1: it is not asked now; @gone: there is none any more. */
static int dial_process(int live, const char *name, bool *gone)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	/* A path of any length, by its folder. */
	snprintf(to.sun_path, sizeof to.sun_path, "/proc/self/fd/%d/%s", live, name);
	if (!connect(fd, (struct sockaddr *)&to, sizeof to))
		return fd;
	*gone |= errno == ECONNREFUSED;
	close(fd);
	return -1;
}

static int64_t get_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

/* All of @p answer, hang up, or are late. */
static void await_processes(struct pollfd *p, unsigned n)
{
	const int64_t until = get_ms() + ANSWER_MS;
	unsigned left = n;

	for (int64_t now; left && (now = get_ms()) < until;) {
		if (poll(p, n, (int)(until - now)) < 0 && errno != EINTR)
			break;
		for (unsigned i = 0; i < n; i++)
			if (p[i].fd >= 0 && p[i].revents) {
				close(p[i].fd);
				p[i] = (struct pollfd){ .fd = -1 };
				left--;
			}
	}
	for (unsigned i = 0; i < n; i++)
		if (p[i].fd >= 0)
			close(p[i].fd);
}

/* Its counters go into those of the processes that have ended, which nobody else reads or changes meanwhile. */
static void bury_process(int live, int ended, const char *name)
{
	uint64_t all[VIEW_NCOUNTERS] = { 0 }, own[VIEW_NCOUNTERS];
	char file[NAME_MAX + sizeof VIEW_SUM];
	bool gone = false;
	int fd;

	/* Another reader may have done so before. */
	if (faccessat(live, name, F_OK, 0))
		return;
	fd = dial_process(live, name, &gone);
	if (fd >= 0)
		close(fd);
	if (!gone)
		return;
	snprintf(file, sizeof file, "%s" VIEW_SUM, name);
	if (pread(ended, all, SIZE, 0) < 0)
		return;
	if (read_counters(live, file, own)) {
		add_counters(all, own);
		if (pwrite(ended, all, SIZE, 0) != (ssize_t)SIZE)
			return;
	}
	unlinkat(live, file, 0);
	unlinkat(live, name, 0);
}

/* "4711.1" */
static bool is_process_name(const char *s)
{
	size_t pid = strspn(s, "0123456789");

	return pid && s[pid] == '.' && s[pid + 1] &&
	       !s[pid + 1 + strspn(s + pid + 1, "0123456789")];
}

/* All are asked at the same time, so those that hang cost the time of one.  Return: whether some are gone. */
static bool ask_processes(int live, DIR *d)
{
	struct pollfd p[ASKED];
	struct dirent *e;
	bool gone = false;
	unsigned n = 0;
	int fd;

	while ((e = readdir(d))) {
		fd = is_process_name(e->d_name) ? dial_process(live, e->d_name, &gone) : -1;
		if (fd < 0)
			continue;
		p[n++] = (struct pollfd){ .fd = fd, .events = POLLIN };
		if (n == ASKED) {
			await_processes(p, n);
			n = 0;
		}
	}
	await_processes(p, n);
	return gone;
}

static void sum_processes(int live, DIR *d, uint64_t sum[VIEW_NCOUNTERS])
{
	char file[NAME_MAX + sizeof VIEW_SUM];
	uint64_t own[VIEW_NCOUNTERS];
	struct dirent *e;

	rewinddir(d);
	while ((e = readdir(d))) {
		if (!is_process_name(e->d_name))
			continue;
		snprintf(file, sizeof file, "%s" VIEW_SUM, e->d_name);
		if (read_counters(live, file, own))
			add_counters(sum, own);
	}
}

static void bury_processes(int live, int ended, DIR *d)
{
	struct dirent *e;

	if (flock(ended, LOCK_EX | LOCK_NB))
		return; /* the next reader will */
	rewinddir(d);
	while ((e = readdir(d)))
		if (is_process_name(e->d_name))
			bury_process(live, ended, e->d_name);
}

/* Others have it for a moment: one that was stopped meanwhile stops nobody else. */
static bool share_ended(int ended)
{
	const int64_t until = get_ms() + LOCKED_MS;

	while (flock(ended, LOCK_SH | LOCK_NB)) {
		if (errno != EWOULDBLOCK)
			return true; /* a file system without locks */
		if (get_ms() >= until)
			return false;
		(void)poll(NULL, 0, AGAIN_MS);
	}
	return true;
}

bool view_count_sum(const char *root, uint64_t sum[VIEW_NCOUNTERS])
{
	uint64_t all[VIEW_NCOUNTERS];
	char path[PATH_MAX + sizeof VIEW_LIVE];
	bool gone = false, mine = true;
	int ended = -1;
	DIR *d;

	memset(sum, 0, SIZE);
	snprintf(path, sizeof path, "%s/" VIEW_LIVE, root);
	d = opendir(path);
	if (d)
		ended = openat(dirfd(d), VIEW_ENDED,
			       O_RDWR | O_CREAT | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (ended >= 0)
		gone = ask_processes(dirfd(d), d);
	if (ended >= 0)
		mine = share_ended(ended);
	if (ended >= 0 && mine) {
		if (pread(ended, all, SIZE, 0) == (ssize_t)SIZE)
			add_counters(sum, all);
		sum_processes(dirfd(d), d, sum);
		if (gone)
			bury_processes(dirfd(d), ended, d);
	}
	if (ended >= 0)
		close(ended);
	if (d)
		closedir(d);
	return mine;
}

/* ---- files ---- */

/* Which counter the last two parts of @path name; VIEW_NCOUNTERS: none. */
static unsigned find_counter(const char *path)
{
	const char *name = strrchr(path, '/');
	size_t n;
	unsigned i;

	for (i = 0; name && i < VIEW_NCOUNTERS; i++) {
		n = strlen(counters[i].folder);
		if (!strcmp(name + 1, counters[i].name) && (size_t)(name - path) > n &&
		    *(name - n - 1) == '/' && !memcmp(name - n, counters[i].folder, n))
			return i;
	}
	return VIEW_NCOUNTERS;
}

static bool is_counter_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (unsigned i = 0; i < VIEW_NCOUNTERS; i++)
		if (!strcmp(name, counters[i].name))
			return true;
	return false;
}

/* The file itself, below @root, by its own name. */
static bool find_real_path(int dir, const char *path, char real[PATH_MAX])
{
	char link[32];
	int fd = openat(dir, path, O_PATH | O_CLOEXEC);
	ssize_t n = -1;

	if (fd >= 0) {
		snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
		n = readlink(link, real, PATH_MAX - 1);
		close(fd);
	}
	if (n >= 0)
		real[n] = 0;
	return n >= 0;
}

static int make_counter_file(uint64_t value, int flags)
{
	int fd = memfd_create("counter", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);

	if (fd >= 0 && (dprintf(fd, "%" PRIu64 "\n", value) < 0 || lseek(fd, 0, SEEK_SET))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

int view_count_open(const char *root, int dir, const char *path, int flags)
{
	uint64_t sum[VIEW_NCOUNTERS];
	const size_t n = strlen(root);
	char real[PATH_MAX];
	unsigned which;
	int keep = errno, fd = -1;

	if (!path || (flags & O_ACCMODE) != O_RDONLY || flags & (O_DIRECTORY | O_PATH) ||
	    !is_counter_name(path))
		return -1;
	if (find_real_path(dir, path, real) && !strncmp(real, root, n) && real[n] == '/') {
		which = find_counter(real);
		if (which < VIEW_NCOUNTERS)
			fd = view_count_sum(root, sum) ? make_counter_file(sum[which], flags)
						       : VIEW_COUNT_BUSY;
	}
	errno = fd == VIEW_COUNT_BUSY ? EBUSY : keep;
	return fd;
}
