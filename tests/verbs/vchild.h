/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_VCHILD_H
#define DDPS_TEST_VCHILD_H
/* A process of its own for what a process can do but once, and what it says on standard error. */
#include "support/child.h"
#include <fcntl.h>
#include <sys/mman.h>

static inline int vchild_file(const char *text)
{
	int fd = memfd_create("child", 0);

	cr_assert_geq(fd, 0);
	/* For memory the kernel does not keep apart what two threads write, but at its end it does. */
	cr_assert_eq(fcntl(fd, F_SETFL, O_APPEND), 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	return fd;
}

/* It lives, and ends by exit(0) unless by something else.  Return: as waitpid says. */
static inline int vchild_run(void (*live)(const void *arg), const void *arg, const char **told)
{
	static char text[65536];
	int fd = vchild_file(""), status;
	ssize_t len;
	pid_t child = fork();

	if (!child) {
		dup2(fd, STDERR_FILENO);
		live(arg);
		exit(0);
	}
	status = await_child_status(child);
	len = pread(fd, text, sizeof text - 1, 0);
	cr_assert_geq(len, 0);
	text[len] = 0;
	*told = text;
	close(fd);
	cr_assert(!WIFEXITED(status) || WEXITSTATUS(status) != CHILD_FAILED, "%s", text);
	return status;
}

static inline unsigned vchild_times(const char *text, const char *what)
{
	unsigned n = 0;

	while ((text = strstr(text, what))) {
		n++;
		text++;
	}
	return n;
}

#endif
