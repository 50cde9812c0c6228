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

#define RING	   262144u
#define FIRST_RING 4096u
#define SIZE	   (FIRST_RING + 2 * RING)
#define WORDS	   256u
#define HELLO	   16

/* One ring, and how far this side is. */
struct one_ring {
	uint64_t *head, *tail;
	uint32_t *end, *reader, *writer;
	uint8_t *octets;
	uint64_t at;
};

struct cf_shared {
	void *memory;
	struct one_ring in, out;
	bool gone; /* the target has left the socket */
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

static void open_one_ring(struct one_ring *r, uint8_t *memory, unsigned nr)
{
	uint8_t *words = memory + (size_t)nr * WORDS;

	*r = (struct one_ring){
		.head = (uint64_t *)(void *)words,
		.end = (uint32_t *)(void *)(words + 8),
		.tail = (uint64_t *)(void *)(words + 64),
		.reader = (uint32_t *)(void *)(words + 128),
		.writer = (uint32_t *)(void *)(words + 192),
		.octets = memory + FIRST_RING + (size_t)nr * RING,
	};
}

static void share_memory(struct cf *cf, int fd, bool initiator)
{
	struct cf_shared *s = calloc(1, sizeof *s);

	CF_CHECK(cf, s, "out of memory");
	cf->conn->shared = s;
	s->memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			 MAP_SHARED | (initiator ? MAP_POPULATE : 0), fd, 0);
	if (s->memory == MAP_FAILED)
		s->memory = NULL;
	CF_CHECK(cf, s->memory, "the shared memory: %s", strerror(errno));
	open_one_ring(&s->out, s->memory, !initiator);
	open_one_ring(&s->in, s->memory, initiator);
}

static void pass_memory(struct cf *cf)
{
	_Alignas(struct cmsghdr) uint8_t room[CMSG_SPACE(sizeof(int))] = { 0 };
	int fd = memfd_create("conform", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	uint8_t hello[HELLO] = "ddpsess\n";
	struct iovec iov = { hello, sizeof hello };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room
	};
	struct cmsghdr *cm = CMSG_FIRSTHDR(&m);
	ssize_t n;

	CF_CHECK(cf,
		 fd >= 0 && !fallocate(fd, 0, 0, SIZE) &&
			 !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW),
		 "the shared memory: %s", strerror(errno));
	cf_put32(hello + 8, 1);
	cf_put32(hello + 12, RING);
	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(cm), &fd, sizeof fd);
	share_memory(cf, fd, true); /* before the target's seal */
	n = sendmsg(cf->conn->fd, &m, MSG_NOSIGNAL);
	close(fd);
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

static void take_memory(struct cf *cf)
{
	_Alignas(struct cmsghdr) uint8_t room[CMSG_SPACE(sizeof(int))];
	uint8_t hello[HELLO] = { 0 };
	struct iovec iov = { hello, sizeof hello };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room
	};
	struct cmsghdr *cm;
	struct stat st;
	int fd = -1, err;
	off_t hole;

	await_hello(cf);
	CF_CHECK(cf, recvmsg(cf->conn->fd, &m, MSG_CMSG_CLOEXEC) == HELLO,
		 "the target's first message is not of %d octets", HELLO);
	cm = CMSG_FIRSTHDR(&m);
	if (cm && cm->cmsg_type == SCM_RIGHTS && cm->cmsg_len == CMSG_LEN(sizeof fd))
		memcpy(&fd, CMSG_DATA(cm), sizeof fd);
	CF_CHECK(cf,
		 !memcmp(hello, "ddpsess\n", 8) && cf_get32(hello + 8) == 1 &&
			 cf_get32(hello + 12) == RING,
		 "the target's first message: %s", cf_hex(hello, HELLO));
	CF_CHECK(cf, fd >= 0 && !fstat(fd, &st) && st.st_size == SIZE,
		 "the target passes no memory of %u octets", SIZE);
	share_memory(cf, fd, false);
	err = fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
	hole = lseek(fd, 0, SEEK_HOLE);
	close(fd);
	CF_CHECK(cf, !err, "the target's memory cannot be sealed further");
	CF_CHECK(cf, hole == SIZE, "the target's memory is not allocated whole");
}

void cf_shared_open(struct cf *cf)
{
	if (!cf->run->shared)
		return;
	if (cf->c->target == CF_RESPONDER)
		pass_memory(cf);
	else
		take_memory(cf);
}

void cf_shared_close(struct cf_conn *c)
{
	if (!c->shared)
		return;
	if (c->fd >= 0)
		cf_shared_end(c, false);
	if (c->shared->memory)
		munmap(c->shared->memory, SIZE);
	free(c->shared);
	c->shared = NULL;
}

/* ---- octets ---- */

static void wake_target(struct cf_conn *c, uint32_t *sleeps)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_exchange_n(sleeps, 0, __ATOMIC_SEQ_CST))
		(void)send(c->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
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

ssize_t cf_shared_send(struct cf *cf, const void *p, size_t len)
{
	struct cf_conn *c = cf->conn;
	struct one_ring *r = &c->shared->out;
	size_t room;

	take_calls(c);
	if (c->shared->gone || __atomic_load_n(c->shared->in.end, __ATOMIC_SEQ_CST) > 1)
		return -EPIPE;
	room = RING -
	       count_between(cf, r->at, __atomic_load_n(r->tail, __ATOMIC_SEQ_CST), "reading");
	if (!room) {
		__atomic_store_n(r->writer, 1, __ATOMIC_SEQ_CST);
		return -EAGAIN;
	}
	len = len < room ? len : room;
	for (size_t i = 0; i < len; i++)
		r->octets[(r->at + i) % RING] = ((const uint8_t *)p)[i];
	r->at += len;
	__atomic_store_n(r->head, r->at, __ATOMIC_SEQ_CST);
	wake_target(c, r->reader);
	return (ssize_t)len;
}

static ssize_t get_shared_end(const struct cf_shared *s)
{
	uint32_t end = __atomic_load_n(s->in.end, __ATOMIC_SEQ_CST);

	return end == 1 ? 0 : end || s->gone ? -ECONNRESET : -EAGAIN;
}

ssize_t cf_shared_recv(struct cf *cf, void *p, size_t len)
{
	struct cf_conn *c = cf->conn;
	struct one_ring *r = &c->shared->in;
	ssize_t end;
	size_t n;

	take_calls(c);
	__atomic_store_n(r->reader, 1, __ATOMIC_SEQ_CST);
	end = get_shared_end(c->shared);
	n = count_between(cf, __atomic_load_n(r->head, __ATOMIC_SEQ_CST), r->at, "writing");
	if (!n)
		return end;
	n = len < n ? len : n;
	if (!p)
		return (ssize_t)n;
	for (size_t i = 0; i < n; i++)
		((uint8_t *)p)[i] = r->octets[(r->at + i) % RING];
	r->at += n;
	__atomic_store_n(r->tail, r->at, __ATOMIC_SEQ_CST);
	wake_target(c, r->writer);
	return (ssize_t)n;
}

void cf_shared_end(struct cf_conn *c, bool reset)
{
	uint32_t *end = c->shared->out.end;

	if (!c->shared->memory)
		return;
	if (reset || !__atomic_load_n(end, __ATOMIC_SEQ_CST))
		__atomic_store_n(end, reset ? 2 : 1, __ATOMIC_SEQ_CST);
	wake_target(c, c->shared->out.reader);
}
