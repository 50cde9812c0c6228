/* SPDX-License-Identifier: BSD-2-Clause */
/* A pipe into a file without a name, and back. */
#include "cli/pipe.h"
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#define STEP_MS	 100   /* between two looks at whether it is still wanted */
#define READ_MAX 65536 /* octets */

static bool await_pipe(int fd, short events, const atomic_bool *off)
{
	struct pollfd p = { .fd = fd, .events = events };

	while (!atomic_load(off))
		if (poll(&p, 1, STEP_MS) > 0)
			return true;
	errno = ECANCELED;
	return false;
}

static bool is_worth_another_try(ssize_t n)
{
	return n < 0 && (errno == EINTR || errno == EAGAIN);
}

int pipe_fill(struct temp *t, int in, uint64_t *size, const atomic_bool *off)
{
	uint8_t buf[READ_MAX];

	*size = 0;
	while (await_pipe(in, POLLIN, off)) {
		ssize_t n = read(in, buf, sizeof buf);

		if (is_worth_another_try(n))
			continue;
		if (n <= 0)
			return n ? -1 : 0;
		if (temp_write(t, buf, (uint32_t)n, *size))
			return -1;
		*size += (uint64_t)n;
	}
	return -1;
}

/* A pipe that poll calls writable takes PIPE_BUF octets without waiting: pipe(7). */
int pipe_drain(const struct temp *t, int out, uint64_t size, const atomic_bool *off)
{
	uint8_t buf[PIPE_BUF];
	uint64_t at = 0;

	while (at < size) {
		ssize_t n = pread(t->fd, buf, sizeof buf, (off_t)at);

		if (n == 0)
			errno = EIO;
		if (n <= 0 || !await_pipe(out, POLLOUT, off))
			return -1;
		n = write(out, buf, (size_t)n);
		if (n < 0 && !is_worth_another_try(n))
			return -1;
		at += n > 0 ? (uint64_t)n : 0;
	}
	return 0;
}
