/* SPDX-License-Identifier: BSD-2-Clause */
/* The peer's octets through shared memory: shared.h says how it looks. */
#include "conform/peer/shared.h"
#include "conform/peer/inside.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define RING	262144u
#define OCTETS	4096u
#define SIZE	(OCTETS + RING)
#define HELLO	16
#define VERSION 2
#define SEALS	(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE)

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

/* Where the words of a side are. */
enum {
	WRITTEN = 0,
	END = 8,
	READ = 64,
	READER = 128,
	WRITER = 192,
	READER_WOKEN = 256,
	WRITER_WOKEN = 260
};

struct cf_shared {
	uint8_t *own;
	const uint8_t *far; /* the target's, of which nothing is written */
	uint64_t in, out;   /* how far this side is */
	uint64_t written;   /* as the target has said last */
	uint64_t read;
	uint32_t said; /* a number for each sleep */
	bool gone;     /* the target has left the socket */
	int fd;	       /* of memory on its way, or -1 */
};

/* ---- addresses ---- */

void cf_shared_address(const char *uri, struct sockaddr_storage *ss, socklen_t *len)
{
	const char *name = strstr(uri, "://") + 3;
	struct sockaddr_un *un = (struct sockaddr_un *)ss;

	memset(ss, 0, sizeof *ss);
	un->sun_family = AF_UNIX;
	snprintf(un->sun_path, sizeof un->sun_path, "%s", name);
	*len = sizeof *un;
	if (*name != '@')
		return;
	un->sun_path[0] = 0;
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (name[1] ? strlen(name) : 0));
}

void cf_shared_text(const struct sockaddr_storage *ss, socklen_t len, char *buf, size_t size)
{
	const struct sockaddr_un *un = (const struct sockaddr_un *)ss;
	const bool abstract = !un->sun_path[0];
	const size_t n = len - offsetof(struct sockaddr_un, sun_path);

	snprintf(buf, size, "%s%.*s", abstract ? "@" : "", (int)n - abstract,
		 un->sun_path + abstract);
}

void cf_shared_unlisten(int fd)
{
	struct sockaddr_un un = { .sun_family = AF_UNSPEC };
	socklen_t len = sizeof un;

	if (!getsockname(fd, (struct sockaddr *)&un, &len) && un.sun_family == AF_UNIX &&
	    len > offsetof(struct sockaddr_un, sun_path) && un.sun_path[0])
		(void)unlink(un.sun_path);
}

/* ---- the memory ---- */

static uint64_t *long_at(uint8_t *memory, unsigned at)
{
	return (uint64_t *)(void *)(memory + at);
}

static uint32_t *word_at(uint8_t *memory, unsigned at)
{
	return (uint32_t *)(void *)(memory + at);
}

static uint64_t get_long(const uint8_t *memory, unsigned at)
{
	return __atomic_load_n((const uint64_t *)(const void *)(memory + at), __ATOMIC_SEQ_CST);
}

static uint32_t get_word(const uint8_t *memory, unsigned at)
{
	return __atomic_load_n((const uint32_t *)(const void *)(memory + at), __ATOMIC_SEQ_CST);
}

static void *map_shared(struct cf *cf, int fd, int prot, int flags)
{
	void *m = mmap(NULL, SIZE, prot, MAP_SHARED | flags, fd, 0);

	CF_CHECK(cf, m != MAP_FAILED, "the shared memory: %s", strerror(errno));
	return m;
}

/* A case may leave before that. */
static void close_on_its_way(struct cf_shared *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

static void pass_memory(struct cf *cf)
{
	_Alignas(struct cmsghdr) uint8_t room[CMSG_SPACE(sizeof(int))] = { 0 };
	const int fd = memfd_create("conform", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	uint8_t hello[HELLO] = "ddpsess\n";
	struct iovec iov = { hello, sizeof hello };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room
	};
	struct cmsghdr *cm = CMSG_FIRSTHDR(&m);
	ssize_t n;

	cf->conn->shared->fd = fd;
	CF_CHECK(cf, fd >= 0 && !fallocate(fd, 0, 0, SIZE), "the shared memory: %s",
		 strerror(errno));
	cf->conn->shared->own = map_shared(cf, fd, PROT_READ | PROT_WRITE, MAP_POPULATE);
	CF_CHECK(cf, !fcntl(fd, F_ADD_SEALS, SEALS), "sealing the shared memory: %s",
		 strerror(errno));
	cf_put32(hello + 8, VERSION);
	cf_put32(hello + 12, RING);
	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(cm), &fd, sizeof fd);
	n = sendmsg(cf->conn->fd, &m, MSG_NOSIGNAL);
	close_on_its_way(cf->conn->shared);
	CF_CHECK(cf, n == HELLO, "passing the memory: %s", strerror(errno));
}

static void await_hello(struct cf *cf)
{
	struct pollfd p = { .fd = cf->conn->fd, .events = POLLIN };
	uint64_t since = cf_now();
	int ready = 0;

	while (ready <= 0) {
		ready = poll(&p, 1, cf_nap(cf, since, cf_left(cf, since, "the target's memory")));
		cf_woke(cf);
	}
}

/* The one descriptor that came, or -1: of several each is closed.  The room for one has room for another, too, which
 * is for its alignment. */
static int take_lone_descriptor(struct msghdr *m)
{
	const struct cmsghdr *cm = CMSG_FIRSTHDR(m);
	const bool rights = cm && cm->cmsg_level == SOL_SOCKET && cm->cmsg_type == SCM_RIGHTS;
	const size_t n = rights ? (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
	int fd = -1;

	for (size_t i = 0; i < n; i++) {
		memcpy(&fd, CMSG_DATA(cm) + i * sizeof fd, sizeof fd);
		if (n == 1 && !(m->msg_flags & MSG_CTRUNC))
			break;
		close(fd);
		fd = -1;
	}
	return fd;
}

static void take_memory(struct cf *cf)
{
	_Alignas(struct cmsghdr) uint8_t room[CMSG_SPACE(sizeof(int))];
	uint8_t hello[HELLO] = { 0 };
	struct iovec iov = { hello, sizeof hello };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room
	};
	struct stat st;
	int fd, seals;
	ssize_t n;

	await_hello(cf);
	n = recvmsg(cf->conn->fd, &m, MSG_CMSG_CLOEXEC);
	fd = n > 0 ? take_lone_descriptor(&m) : -1;
	cf->conn->shared->fd = fd;
	CF_CHECK(cf, n == HELLO, "the target's first message is not of %d octets", HELLO);
	CF_CHECK(cf,
		 !memcmp(hello, "ddpsess\n", 8) && cf_get32(hello + 8) == VERSION &&
			 cf_get32(hello + 12) == RING,
		 "the target's first message: %s", cf_hex(hello, HELLO));
	CF_CHECK(cf, fd >= 0, "the target passes no memory, or more than one descriptor");
	CF_CHECK(cf, !fstat(fd, &st) && st.st_size == SIZE,
		 "the target passes no memory of %u octets", SIZE);
	seals = fcntl(fd, F_GET_SEALS);
	CF_CHECK(cf, seals >= 0 && (seals & SEALS) == SEALS,
		 "the target's memory is not sealed: %#x, to be at least %#x", (unsigned)seals,
		 (unsigned)SEALS);
	CF_CHECK(cf, st.st_blocks >= SIZE / 512, "the target's memory is not allocated whole");
	cf->conn->shared->far = map_shared(cf, fd, PROT_READ, 0);
	close_on_its_way(cf->conn->shared);
}

void cf_shared_open(struct cf *cf)
{
	if (!cf->run->shared)
		return;
	cf->conn->shared = calloc(1, sizeof *cf->conn->shared);
	CF_CHECK(cf, cf->conn->shared, "out of memory");
	cf->conn->shared->fd = -1;
	if (cf->c->target != CF_RESPONDER)
		take_memory(cf);
	pass_memory(cf);
	if (cf->c->target == CF_RESPONDER)
		take_memory(cf);
}

void cf_shared_close(struct cf_conn *c)
{
	if (!c->shared)
		return;
	close_on_its_way(c->shared);
	if (c->fd >= 0)
		cf_shared_end(c, false);
	if (c->shared->own)
		munmap(c->shared->own, SIZE);
	if (c->shared->far)
		munmap((void *)(uintptr_t)c->shared->far, SIZE);
	free(c->shared);
	c->shared = NULL;
}

/* ---- octets ---- */

/* The number @sleeps of the target's, of which this side says in @woken that it woke it. */
static void wake_target(struct cf_conn *c, unsigned sleeps, unsigned woken)
{
	uint32_t number = get_word(c->shared->far, sleeps), *last = word_at(c->shared->own, woken);

	if (number == *last)
		return;
	__atomic_store_n(last, number, __ATOMIC_SEQ_CST);
	while (send(c->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EINTR)
		;
}

static void ask_for_bell(struct cf_shared *s, unsigned sleeps)
{
	__atomic_store_n(word_at(s->own, sleeps), ++s->said, __ATOMIC_SEQ_CST);
}

static void take_calls(struct cf_conn *c)
{
	char octets[64];
	ssize_t n;

	do
		n = recv(c->fd, octets, sizeof octets, MSG_DONTWAIT);
	while (n > 0 || (n < 0 && errno == EINTR));
	c->shared->gone |= !n || errno != EAGAIN;
}

/* Octets between the two indexes of a ring; @which: that of the target's. */
static size_t count_between(struct cf *cf, uint64_t head, uint64_t tail, const char *which)
{
	CF_CHECK(cf, head - tail <= RING,
		 "the target's %s index is not possible: there are %llu octets in a ring of %u",
		 which, (unsigned long long)(head - tail), RING);
	return (size_t)(head - tail);
}

/* The target's index @now goes on from @before. */
static void check_onward(struct cf *cf, uint64_t *before, uint64_t now, const char *which)
{
	CF_CHECK(cf, now - *before <= RING, "the target's %s index goes back by %llu", which,
		 (unsigned long long)(*before - now));
	*before = now;
}

/* The end that it says there is, and whom it has woken. */
static void check_words(struct cf *cf, const struct cf_shared *s)
{
	uint32_t end = get_word(s->far, END), reader = get_word(s->far, READER_WOKEN),
		 writer = get_word(s->far, WRITER_WOKEN);

	CF_CHECK(cf, end <= 2, "the target says %u where it is open, closed or reset (0, 1, 2)",
		 end);
	CF_CHECK(cf, reader <= s->said && writer <= s->said,
		 "the target has woken sleeps %u and %u, of %u", reader, writer, s->said);
}

ssize_t cf_shared_send(struct cf *cf, const void *p, size_t len)
{
	struct cf_conn *c = cf->conn;
	struct cf_shared *s = c->shared;
	uint64_t read;
	size_t room;

	take_calls(c);
	check_words(cf, s);
	if (s->gone || get_word(s->far, END) > 1)
		return -EPIPE;
	read = get_long(s->far, READ);
	room = RING - count_between(cf, s->out, read, "reading");
	check_onward(cf, &s->read, read, "reading");
	if (!room) {
		ask_for_bell(s, WRITER);
		return -EAGAIN;
	}
	len = len < room ? len : room;
	for (size_t i = 0; i < len; i++)
		s->own[OCTETS + (s->out + i) % RING] = ((const uint8_t *)p)[i];
	s->out += len;
	__atomic_store_n(long_at(s->own, WRITTEN), s->out, __ATOMIC_SEQ_CST);
	wake_target(c, READER, READER_WOKEN);
	return (ssize_t)len;
}

static ssize_t get_shared_end(const struct cf_shared *s)
{
	uint32_t end = get_word(s->far, END);

	return end == 1 ? 0 : end || s->gone ? -ECONNRESET : -EAGAIN;
}

ssize_t cf_shared_recv(struct cf *cf, void *p, size_t len)
{
	struct cf_conn *c = cf->conn;
	struct cf_shared *s = c->shared;
	uint64_t written;
	ssize_t end;
	size_t n;

	take_calls(c);
	ask_for_bell(s, READER);
	check_words(cf, s);
	end = get_shared_end(s);
	written = get_long(s->far, WRITTEN);
	n = count_between(cf, written, s->in, "writing");
	check_onward(cf, &s->written, written, "writing");
	if (!n)
		return end;
	n = len < n ? len : n;
	if (!p)
		return (ssize_t)n;
	for (size_t i = 0; i < n; i++)
		((uint8_t *)p)[i] = s->far[OCTETS + (s->in + i) % RING];
	s->in += n;
	__atomic_store_n(long_at(s->own, READ), s->in, __ATOMIC_SEQ_CST);
	wake_target(c, WRITER, WRITER_WOKEN);
	return (ssize_t)n;
}

void cf_shared_end(struct cf_conn *c, bool reset)
{
	uint32_t *end;

	if (!c->shared->own || !c->shared->far)
		return;
	end = word_at(c->shared->own, END);
	if (reset || !__atomic_load_n(end, __ATOMIC_SEQ_CST))
		__atomic_store_n(end, reset ? 2 : 1, __ATOMIC_SEQ_CST);
	wake_target(c, READER, READER_WOKEN);
}
