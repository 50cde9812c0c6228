/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SYSTEM_FILE_H
#define DDPS_SYSTEM_FILE_H
#include <sys/uio.h>

/* writev, but a file that may not grow any more (ulimit -f) fails with EFBIG: no SIGXFSZ comes, which would end
 * the program of whoever writes here. */
ssize_t ddps_write_quietly(int fd, const struct iovec *iov, int n);

/* Flags of open() for a file that is made or emptied: somebody else may have made a link of that name, which is not
 * followed.  Where @path stands for what is open already, such as /dev/stdout, what is there stays, and what is written
 * comes behind it. */
int ddps_anew(const char *path);

#endif
