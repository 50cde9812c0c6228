/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device's folders for programs that look there: preloaded by sessctl run, it leads calls that
 * name a path below /sys/class/infiniband and its like to files that sessctl has written, and answers
 * what is asked by netlink about RDMA devices.  Nothing else is changed.  Whatever makes system calls of its own, or walks by functions of libc that
 * open inside of it (glob, nftw), does not pass here.
 */
#include "view/view.h"
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/netlink.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

/* There is no call that could carry it: the functions are libc's. */
static char root[PATH_MAX];

__attribute__((constructor)) static void find_root(void)
{
	const char *dir = getenv("DDPSESS_VIEW");

	if (dir && *dir == '/' && strlen(dir) < sizeof root)
		memcpy(root, dir, strlen(dir) + 1);
}

/* Calls from before the constructor find no root, and go where they went. */
#define INTO(path) (*root ? view_into(root, path, (char[2 * PATH_MAX]){ 0 }, 2 * PATH_MAX) : (path))

/* libc's own, asked for by every caller until one has it. */
#define NEXT(name, ...)                                                                            \
	({                                                                                         \
		static __typeof__(&name) next_;                                                    \
		__typeof__(&name) f_ = __atomic_load_n(&next_, __ATOMIC_RELAXED);                  \
                                                                                                   \
		if (!f_) {                                                                         \
			f_ = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                           \
			__atomic_store_n(&next_, f_, __ATOMIC_RELAXED);                            \
		}                                                                                  \
		f_(__VA_ARGS__);                                                                   \
	})

/* ---- to open ---- */

/* The third argument is there only if the flags say so. */
#define MODE(flags)                                                                                \
	({                                                                                         \
		mode_t mode_ = 0;                                                                  \
                                                                                                   \
		if ((flags)&O_CREAT || ((flags)&O_TMPFILE) == O_TMPFILE) {                         \
			va_list ap_;                                                               \
			va_start(ap_, flags);                                                      \
			mode_ = va_arg(ap_, mode_t);                                               \
			va_end(ap_);                                                               \
		}                                                                                  \
		mode_;                                                                             \
	})

/* A counter, whose value is that of now; -1: it is none; less: it has none now. */
#define COUNTER(dir, path, flags) (*root ? view_count_open(root, dir, path, flags) : -1)

#define OPEN(name, path, flags, ...)                                                               \
	({                                                                                         \
		const char *into_ = INTO(path);                                                    \
		int fd_ = COUNTER(AT_FDCWD, into_, flags);                                         \
                                                                                                   \
		fd_ == -1 ? NEXT(name, into_, __VA_ARGS__) : fd_ < 0 ? -1 : fd_;                   \
	})

#define OPENAT(name, dir, path, flags, ...)                                                        \
	({                                                                                         \
		const char *into_ = INTO(path);                                                    \
		int fd_ = COUNTER(dir, into_, flags);                                              \
                                                                                                   \
		fd_ == -1 ? NEXT(name, dir, into_, __VA_ARGS__) : fd_ < 0 ? -1 : fd_;              \
	})

API int open(const char *path, int flags, ...)
{
	mode_t mode = MODE(flags);

	return OPEN(open, path, flags, flags, mode);
}

API int open64(const char *path, int flags, ...)
{
	mode_t mode = MODE(flags);

	return OPEN(open64, path, flags, flags, mode);
}

API int openat(int dir, const char *path, int flags, ...)
{
	mode_t mode = MODE(flags);

	return OPENAT(openat, dir, path, flags, flags, mode);
}

API int openat64(int dir, const char *path, int flags, ...)
{
	mode_t mode = MODE(flags);

	return OPENAT(openat64, dir, path, flags, flags, mode);
}

/* What the headers turn these into where sizes are checked (_FORTIFY_SOURCE). */
API int __open_2(const char *path, int flags);
API int __open64_2(const char *path, int flags);
API int __openat_2(int dir, const char *path, int flags);
API int __openat64_2(int dir, const char *path, int flags);

API int __open_2(const char *path, int flags)
{
	return OPEN(__open_2, path, flags, flags);
}

API int __open64_2(const char *path, int flags)
{
	return OPEN(__open64_2, path, flags, flags);
}

API int __openat_2(int dir, const char *path, int flags)
{
	return OPENAT(__openat_2, dir, path, flags, flags);
}

API int __openat64_2(int dir, const char *path, int flags)
{
	return OPENAT(__openat64_2, dir, path, flags, flags);
}

/* The same for streams.  false: it is none. */
static bool open_counter_stream(const char *path, const char *mode, FILE **f)
{
	int fd;

	if (!*root || !mode || *mode != 'r' || strchr(mode, '+'))
		return false;
	fd = view_count_open(root, AT_FDCWD, path,
			     strchr(mode, 'e') ? O_RDONLY | O_CLOEXEC : O_RDONLY);
	*f = fd < 0 ? NULL : fdopen(fd, mode);
	return fd != -1;
}

#define FOPEN(name, path, mode)                                                                    \
	({                                                                                         \
		const char *into_ = INTO(path);                                                    \
		FILE *f_of_;                                                                       \
                                                                                                   \
		open_counter_stream(into_, mode, &f_of_) ? f_of_ : NEXT(name, into_, mode);        \
	})

API FILE *fopen(const char *path, const char *mode)
{
	return FOPEN(fopen, path, mode);
}

API FILE *fopen64(const char *path, const char *mode)
{
	return FOPEN(fopen64, path, mode);
}

API DIR *opendir(const char *path)
{
	return NEXT(opendir, INTO(path));
}

API int scandir(const char *path, struct dirent ***list, int (*keep)(const struct dirent *),
		int (*order)(const struct dirent **, const struct dirent **))
{
	return NEXT(scandir, INTO(path), list, keep, order);
}

API int scandir64(const char *path, struct dirent64 ***list, int (*keep)(const struct dirent64 *),
		  int (*order)(const struct dirent64 **, const struct dirent64 **))
{
	return NEXT(scandir64, INTO(path), list, keep, order);
}

/* ---- to look ---- */

API int access(const char *path, int how)
{
	return NEXT(access, INTO(path), how);
}

API int faccessat(int dir, const char *path, int how, int flags)
{
	return NEXT(faccessat, dir, INTO(path), how, flags);
}

API int euidaccess(const char *path, int how)
{
	return NEXT(euidaccess, INTO(path), how);
}

API int eaccess(const char *path, int how)
{
	return NEXT(eaccess, INTO(path), how);
}

API int stat(const char *path, struct stat *st)
{
	return NEXT(stat, INTO(path), st);
}

API int stat64(const char *path, struct stat64 *st)
{
	return NEXT(stat64, INTO(path), st);
}

API int lstat(const char *path, struct stat *st)
{
	return NEXT(lstat, INTO(path), st);
}

API int lstat64(const char *path, struct stat64 *st)
{
	return NEXT(lstat64, INTO(path), st);
}

API int fstatat(int dir, const char *path, struct stat *st, int flags)
{
	return NEXT(fstatat, dir, INTO(path), st, flags);
}

API int fstatat64(int dir, const char *path, struct stat64 *st, int flags)
{
	return NEXT(fstatat64, dir, INTO(path), st, flags);
}

API int statx(int dir, const char *path, int flags, unsigned mask, struct statx *st)
{
	return NEXT(statx, dir, INTO(path), flags, mask, st);
}

/* What they were before glibc 2.33: programs that were built then still call them. */
API int __xstat(int ver, const char *path, struct stat *st);
API int __xstat64(int ver, const char *path, struct stat64 *st);
API int __lxstat(int ver, const char *path, struct stat *st);
API int __lxstat64(int ver, const char *path, struct stat64 *st);
API int __fxstatat(int ver, int dir, const char *path, struct stat *st, int flags);
API int __fxstatat64(int ver, int dir, const char *path, struct stat64 *st, int flags);

API int __xstat(int ver, const char *path, struct stat *st)
{
	return NEXT(__xstat, ver, INTO(path), st);
}

API int __xstat64(int ver, const char *path, struct stat64 *st)
{
	return NEXT(__xstat64, ver, INTO(path), st);
}

API int __lxstat(int ver, const char *path, struct stat *st)
{
	return NEXT(__lxstat, ver, INTO(path), st);
}

API int __lxstat64(int ver, const char *path, struct stat64 *st)
{
	return NEXT(__lxstat64, ver, INTO(path), st);
}

API int __fxstatat(int ver, int dir, const char *path, struct stat *st, int flags)
{
	return NEXT(__fxstatat, ver, dir, INTO(path), st, flags);
}

API int __fxstatat64(int ver, int dir, const char *path, struct stat64 *st, int flags)
{
	return NEXT(__fxstatat64, ver, dir, INTO(path), st, flags);
}

API ssize_t getxattr(const char *path, const char *name, void *to, size_t len)
{
	return NEXT(getxattr, INTO(path), name, to, len);
}

API ssize_t lgetxattr(const char *path, const char *name, void *to, size_t len)
{
	return NEXT(lgetxattr, INTO(path), name, to, len);
}

API ssize_t listxattr(const char *path, char *to, size_t len)
{
	return NEXT(listxattr, INTO(path), to, len);
}

API ssize_t llistxattr(const char *path, char *to, size_t len)
{
	return NEXT(llistxattr, INTO(path), to, len);
}

API int chdir(const char *path)
{
	return NEXT(chdir, INTO(path));
}

/* ---- names ---- */

API ssize_t readlink(const char *path, char *to, size_t len)
{
	return NEXT(readlink, INTO(path), to, len);
}

API ssize_t readlinkat(int dir, const char *path, char *to, size_t len)
{
	return NEXT(readlinkat, dir, INTO(path), to, len);
}

/* The program's names again, where the path ends in the view. */
static char *back(char *real)
{
	if (real && *root)
		view_out_of(root, real);
	return real;
}

API char *realpath(const char *path, char *to)
{
	return back(NEXT(realpath, INTO(path), to));
}

API char *__realpath_chk(const char *path, char *to, size_t len);
API char *__realpath_chk(const char *path, char *to, size_t len)
{
	return back(NEXT(__realpath_chk, INTO(path), to, len));
}

API char *canonicalize_file_name(const char *path)
{
	return back(NEXT(canonicalize_file_name, INTO(path)));
}

/* ---- netlink ---- */

API int socket(int domain, int type, int protocol)
{
	if (*root && domain == AF_NETLINK && protocol == NETLINK_RDMA)
		protocol = VIEW_NLDEV_PROTOCOL;
	return NEXT(socket, domain, type, protocol);
}

API ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	if (*root && msg && view_nldev_is_asked(fd, msg->msg_name, msg->msg_namelen))
		return view_nldev_answer(root, fd, msg);
	return NEXT(sendmsg, fd, msg, flags);
}

/* The address is a union of pointers in programs, and one pointer to the linker. */
API ssize_t sendto(int fd, const void *data, size_t len, int flags, __CONST_SOCKADDR_ARG addr,
		   socklen_t addr_len)
{
	struct iovec part = { (void *)(uintptr_t)data, len };

	if (*root && view_nldev_is_asked(fd, addr.__sockaddr__, addr_len))
		return view_nldev_answer(root, fd,
					 &(struct msghdr){ .msg_iov = &part, .msg_iovlen = 1 });
	return NEXT(sendto, fd, data, len, flags, addr, addr_len);
}
