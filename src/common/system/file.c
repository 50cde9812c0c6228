/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/system/file.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

int ddps_anew(const char *path)
{
	return strncmp(path, "/dev/std", 8) && strncmp(path, "/dev/fd/", 8) &&
			       strncmp(path, "/proc/self/fd/", 14)
		       ? O_CREAT | O_TRUNC | O_NOFOLLOW
		       : O_APPEND;
}

ssize_t ddps_write_quietly(int fd, const struct iovec *iov, int n)
{
	static const struct timespec now;
	sigset_t size, old;
	ssize_t done;
	int err;

	sigemptyset(&size);
	sigaddset(&size, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &size, &old);
	done = writev(fd, iov, n);
	err = errno;
	if (done < 0 && err == EFBIG) /* it is for this thread */
		sigtimedwait(&size, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = err;
	return done;
}
