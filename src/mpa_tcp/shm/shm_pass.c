/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that is shared by passing its descriptor. */
#include "mpa_tcp/shm/shm_pass.h"
#include "common/bytes.h"
#include "common/own.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define HELLO	 16 /* octets: MARK, VERSION and the octets of a ring, both big-endian */
#define MARK	 "ddpsess\n"
#define MARK_LEN 8
#define VERSION	 2u
#define SIZE	 sizeof(struct ddps_shm_memory)
#define BLOCKS	 ((off_t)(SIZE / 512)) /* of a file that has all of it */
#define SEALS	 (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE)
/* Octets that are given back when memory is closed for the last time: a huge page, or two. */
#define MOST	 (4 << 20)
#define AHEAD	 4   /* pages that are read ahead at a time */
#define FDS_ROOM 4   /* of descriptors, so that one too many is seen */
#define BELLS	 256 /* that are read at a time: more than a peer has reason to ring */

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008u
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

static void *map_memory(int fd, int prot, int flags)
{
	void *m = mmap(NULL, SIZE, prot, MAP_SHARED | flags, fd, 0);

	if (m == MAP_FAILED)
		return NULL;
	(void)madvise(m, SIZE, MADV_DONTFORK); /* a child has no use for it */
	return m;
}

/* Some systems take memory only if it says that nobody runs it; those before Linux 6.3 do not know the word. */
static int make_memfd(void)
{
	const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create("ddpsess", flags | MFD_NOEXEC_SEAL);

	return fd < 0 && errno == EINVAL ? memfd_create("ddpsess", flags) : fd;
}

/* A page is charged to whoever touches it first.  0, or -1 with errno. */
static int allocate_pages(int fd)
{
	int err;

	do
		err = fallocate(fd, 0, 0, (off_t)SIZE);
	while (err < 0 && errno == EINTR);
	return err;
}

struct ddps_shm_memory *ddps_shm_make(int *fd)
{
	struct ddps_shm_memory *m = NULL;
	int keep;

	*fd = make_memfd();
	if (*fd < 0)
		return NULL;
	if (!allocate_pages(*fd))
		m = map_memory(*fd, PROT_READ | PROT_WRITE, MAP_POPULATE);
	if (!m || fcntl(*fd, F_ADD_SEALS, SEALS) < 0) {
		keep = errno;
		ddps_shm_unmap(m);
		close(*fd);
		*fd = -1;
		errno = keep;
		return NULL;
	}
	return m;
}

void ddps_shm_unmap(const struct ddps_shm_memory *m)
{
	if (m)
		munmap((void *)(uintptr_t)m, SIZE);
}

int ddps_shm_pass(int sock, int fd)
{
	uint8_t hello[HELLO];
	struct ddps_wbuf w = ddps_wbuf_init(hello, sizeof hello);
	_Alignas(struct cmsghdr) uint8_t room[CMSG_SPACE(sizeof fd)] = { 0 };
	struct iovec iov = { hello, sizeof hello };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room
	};
	struct cmsghdr *cm = CMSG_FIRSTHDR(&m);
	ssize_t n;

	ddps_wbuf_bytes(&w, MARK, MARK_LEN);
	ddps_wbuf_u32(&w, VERSION);
	ddps_wbuf_u32(&w, DDPS_SHM_OCTETS);
	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(cm), &fd, sizeof fd);
	do
		n = sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n == sizeof hello ? 0 : -EPROTO;
}

/* Pages of another kind could be taken away although the size is sealed, or not be there when they are touched.  What
 * is beyond the size nobody sees, but it would be given back at the end. */
static const char *check_memory(int fd)
{
	struct statfs fs;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & SEALS) != SEALS)
		return "its memory is not sealed against changes of its size and of its pages";
	if (fstatfs(fd, &fs) < 0 || (unsigned long)fs.f_type != TMPFS_MAGIC)
		return "its memory is not made of ordinary pages";
	if (fstat(fd, &st) < 0 || st.st_size != (off_t)SIZE || st.st_blocks > MOST / 512)
		return "its memory has another size";
	return NULL;
}

/* What the file has by now, within its size and beyond it.  To ask for that takes no lock of its owner's. */
static off_t count_blocks(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? 0 : (off_t)st.st_blocks;
}

/* Of a file that had @had blocks: none is missing, and none came by a touch. */
static bool has_all_blocks(off_t had, off_t has)
{
	return has <= had && has >= BLOCKS;
}

/*
 * A page that is not there would be missing when it is touched, if the system had no other: so each is had here, where
 * that is an error and no signal, and the seals keep it.  It would be charged to this side for as long as the peer likes,
 * too, so its maker has to have had it: the file may not grow.  It may have blocks beyond its size, which make up the
 * number and can be given back at any time: so that is looked at after every few pages.  NULL or a sentence.
 */
static const char *read_ahead(uint8_t *at, int fd)
{
	static const char sparse[] = "its memory is not allocated whole";
	const size_t step = AHEAD * (size_t)sysconf(_SC_PAGESIZE);
	off_t had = count_blocks(fd), has;

	if (!has_all_blocks(had, had))
		return sparse;
	for (size_t left = SIZE, n; left; left -= n, at += n, had = has) {
		n = left < step ? left : step;
		if (madvise(at, n, MADV_POPULATE_READ))
			return errno == EINVAL ? "its memory cannot be read ahead, as Linux 5.14 "
						 "and later can"
					       : "its memory could not be mapped";
		has = count_blocks(fd);
		if (!has_all_blocks(had, has))
			return sparse;
	}
	return NULL;
}

/* Memory that came as @fd; NULL: @why is a sentence. */
static const struct ddps_shm_memory *accept_memory(int fd, const char **why)
{
	void *m;

	*why = check_memory(fd);
	if (*why)
		return NULL;
	m = map_memory(fd, PROT_READ, 0);
	*why = m ? read_ahead(m, fd) : "its memory could not be mapped";
	if (!*why)
		return m;
	ddps_shm_unmap(m);
	return NULL;
}

/* Of memory as it should be there is little to give back; anything else may do what it likes when it is closed for the
 * last time, a file of FUSE each time.  To ask for its seals asks no file system. */
static void close_passed(int fd)
{
	if (fd < 0)
		return;
	if (check_memory(fd))
		(void)ddps_own_close_apart(fd);
	else
		close(fd);
}

/* The one descriptor that came, or -1; any other is closed. */
static int take_descriptor(struct msghdr *m)
{
	int fds[FDS_ROOM], first = -1, n = 0;

	for (struct cmsghdr *cm = CMSG_FIRSTHDR(m); cm; cm = CMSG_NXTHDR(m, cm)) {
		size_t len = cm->cmsg_len - CMSG_LEN(0);

		if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS || len > sizeof fds)
			continue;
		memcpy(fds, CMSG_DATA(cm), len);
		for (size_t i = 0; i < len / sizeof fds[0]; i++) {
			if (!n++)
				first = fds[i];
			else
				close_passed(fds[i]);
		}
	}
	if (n > 1) {
		close_passed(first);
		return -1;
	}
	return first;
}

static const char *check_hello(const uint8_t *hello, size_t n)
{
	struct ddps_rbuf r = ddps_rbuf_init(hello + MARK_LEN, HELLO - MARK_LEN);

	if (n != HELLO || memcmp(hello, MARK, MARK_LEN))
		return "it does not speak the protocol of shm://";
	if (ddps_rbuf_u32(&r) != VERSION || ddps_rbuf_u32(&r) != DDPS_SHM_OCTETS)
		return "it speaks another version of the protocol of shm://";
	return NULL;
}

const struct ddps_shm_memory *ddps_shm_take(int sock, const char **why)
{
	uint8_t hello[HELLO];
	_Alignas(struct cmsghdr) uint8_t room[CMSG_SPACE(FDS_ROOM * sizeof(int))];
	struct iovec iov = { hello, sizeof hello };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room
	};
	const struct ddps_shm_memory *memory = NULL;
	ssize_t n;
	int fd;

	*why = "";
	/* Whatever there was no room for stays with the socket, and is closed as that is. */
	do
		n = recvmsg(sock, &m, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0) {
		errno = n < 0 && errno == EAGAIN ? EAGAIN : ECONNRESET;
		return NULL;
	}
	fd = take_descriptor(&m);
	*why = check_hello(hello, (size_t)n);
	if (!*why && fd < 0)
		*why = m.msg_flags & MSG_CTRUNC
			       ? "its memory could not be taken: has this process descriptors left?"
			       : "it passed no memory";
	if (!*why)
		memory = accept_memory(fd, why);
	/* Its message goes, and with it a descriptor that is not the last. */
	if (fd >= 0 && !check_memory(fd))
		(void)recv(sock, hello, (size_t)n, MSG_DONTWAIT);
	close_passed(fd);
	return memory;
}

/* ---- closing may block ---- */

void ddps_shm_guard(int sock)
{
	const int on = 1;

	(void)setsockopt(sock, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on);
}

ssize_t ddps_shm_bells(int sock, size_t most)
{
	uint8_t octets[BELLS];
	struct iovec iov = { octets, most < sizeof octets ? most : sizeof octets };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n = recvmsg(sock, &m, MSG_PEEK | MSG_DONTWAIT);

	if (n > 0 && m.msg_flags & MSG_CTRUNC)
		return -EPROTO;
	/* No more than that: what has come since may have descriptors. */
	if (n > 0)
		n = recv(sock, octets, (size_t)n, MSG_DONTWAIT);
	return n < 0 ? -errno : n;
}

/* A connection.  false: it waits for a thread. */
static bool close_connection(int sock)
{
	int left = 0;

	if (ddps_shm_bells(sock, BELLS) != -EPROTO && !ioctl(sock, FIONREAD, &left) && !left) {
		ddps_own_close(sock);
		return true;
	}
	(void)shutdown(sock, SHUT_RDWR);
	return ddps_own_close_apart(sock);
}

bool ddps_shm_close(int sock)
{
	const int keep = errno;
	bool soon = true;
	int fd, left;

	if (!ddps_own_has(sock))
		return true;
	/* Nobody adds to its queue; and who else has a copy, a child or a listener's, learns of it. */
	(void)shutdown(sock, ddps_own_forked(sock) ? SHUT_RDWR : SHUT_RD);
	if (!ioctl(sock, FIONREAD, &left)) {
		soon = close_connection(sock);
	} else { /* a listener */
		while ((fd = accept4(sock, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
			soon &= close_connection(ddps_own(fd));
		if (errno == EAGAIN || errno == EINVAL)
			ddps_own_close(sock);
		else
			soon = ddps_own_close_apart(sock);
	}
	errno = keep;
	return soon;
}
