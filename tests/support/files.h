/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_FILES_H
#define DDPS_TEST_FILES_H
/*
 * A program that closes all descriptors above 2, as a daemon does, and opens files of its own: they
 * get the numbers of the library's.  These must not be read, written or closed.
 */
#include "support/child.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define FIRST 3
#define FILES 150 /* numbers that are taken: more than the library had */
#define COUNT 5

enum kind { MEMORY, SOCKETS, COUNTERS, KINDS };

/* The program's own: one behind the other from FIRST on, their other ends far above. */
static struct {
	enum kind kind;
	ino_t inode[FILES];
	int other[FILES];
} own;

static inline int open_own_file(int i)
{
	int pair[2];

	own.other[i] = -1;
	if (own.kind == MEMORY)
		return memfd_create("own", 0);
	if (own.kind == COUNTERS)
		return eventfd(COUNT, EFD_NONBLOCK);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair))
		return -1;
	own.other[i] = fcntl(pair[1], F_DUPFD, FIRST + 2 * FILES);
	close(pair[1]);
	return pair[0];
}

/* The library's numbers are the program's from here on. */
static inline void take_numbers(enum kind kind)
{
	struct stat st;

	own.kind = kind;
	until_others_sleep(); /* else one may have a descriptor for a moment, too */
	closefrom(FIRST);
	for (int i = 0; i < FILES; i++) {
		if (open_own_file(i) != FIRST + i || fstat(FIRST + i, &st))
			leave_child_fixture(100);
		own.inode[i] = st.st_ino;
	}
}

static inline bool is_untouched(int i)
{
	const int fd = FIRST + i;
	struct stat st;
	uint64_t n;
	char c;

	if (fstat(fd, &st) || st.st_ino != own.inode[i] || fcntl(fd, F_GETFD))
		return false;
	if (own.kind == MEMORY)
		return !st.st_size && !lseek(fd, 0, SEEK_CUR);
	if (own.kind == SOCKETS)
		return recv(own.other[i], &c, 1, MSG_PEEK) < 0 && errno == EAGAIN;
	return read(fd, &n, sizeof n) == sizeof n && n == COUNT &&
	       write(fd, &n, sizeof n) == sizeof n;
}

static inline int touched(void)
{
	int n = 0;

	for (int i = 0; i < FILES; i++)
		if (!is_untouched(i)) {
			fprintf(stderr, "kind %d: %d is not as it was\n", own.kind, FIRST + i);
			n++;
		}
	return n;
}

/* A child of fork closes what it has of its parent's, and has files of its own among it. */
static inline int touched_by_fork(void)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		leave_child_fixture(touched() != 0);
	waitpid(pid, &status, 0);
	return status ? 1 : 0;
}

static inline void expect_child_ends_well(pid_t pid, enum kind kind)
{
	const int status = await_child_status(pid);

	cr_expect_eq(status, 0, "files of kind %d: %s %d", kind,
		     WIFEXITED(status) ? "exit" : "signal",
		     WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

#endif
