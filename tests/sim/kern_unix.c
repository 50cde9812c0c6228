/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets between processes of one machine, on which all hosts are then: streams with names of their own, which pass
 * descriptors.  What is written is there immediately; whoever sleeps notices it a little later.
 */
#include "sim/kern_in.h"
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/un.h>
#include <unistd.h>

#define NOTICE_NS 2000u /* at most, until a sleeper runs */
#define NAMES	  64u

struct piece {
	struct piece *next;
	struct kern_memory *passed; /* NULL: none */
	size_t len, off;
	uint8_t octets[];
};

/* One end. */
struct kern_unix {
	struct kern_unix *peer, *next; /* next: in a listener's queue */
	struct piece *first, **last;
	uint64_t inode;				   /* of its name, 0: it has not bound one */
	char name[sizeof(struct sockaddr_un) + 1]; /* "": none.  An abstract one begins with @ */
	bool shut_in, shut_out, linked;
	int err;
	unsigned who;
	uint64_t news, seen; /* what has happened here, and what of that epoll has reported */
	uint64_t notice;     /* when a sleeper sees the last of it */
};

static struct {
	char path[sizeof(struct sockaddr_un) + 1]; /* "": free */
	uint64_t inode;
} names[NAMES];
static uint64_t inodes;

struct kern_unix *kern_unix_new(void)
{
	struct kern_unix *u = kern_alloc(sizeof *u);

	*u = (struct kern_unix){ .linked = false };
	u->last = &u->first;
	return u;
}

static void wake_unix(struct kern_unix *u)
{
	uint64_t at = kern.now + 1 + kern_draw() % NOTICE_NS;

	u->news++;
	if (at > u->notice)
		u->notice = at;
	kern_wake(u->notice);
}

/* ---- names ---- */

static void get_unix_name(const struct sockaddr *sa, socklen_t len, char *name)
{
	const struct sockaddr_un *un = (const struct sockaddr_un *)sa;
	const size_t n = len - offsetof(struct sockaddr_un, sun_path);

	if (!n) {
		snprintf(name, sizeof *un, "@%05x", (unsigned)++inodes);
		return;
	}
	memcpy(name, un->sun_path, n);
	name[n] = 0;
	if (!name[0])
		name[0] = '@';
}

uint64_t kern_unix_inode(const char *path)
{
	for (unsigned i = 0; i < NAMES; i++)
		if (!strcmp(names[i].path, path))
			return names[i].inode;
	return 0;
}

bool kern_unix_unlink(const char *path)
{
	for (unsigned i = 0; i < NAMES; i++) {
		if (strcmp(names[i].path, path) != 0)
			continue;
		names[i].path[0] = 0;
		return true;
	}
	return false;
}

void kern_unix_nobody(void)
{
	memset(names, 0, sizeof names);
	inodes = 0;
}

int kern_unix_bind(struct kern_file *f, const struct sockaddr *sa, socklen_t len)
{
	char name[sizeof f->un->name];

	get_unix_name(sa, len, name);
	if (name[0] == '@' ? kern_unix_bound(name) != NULL : kern_unix_inode(name) != 0)
		return kern_err(EADDRINUSE);
	f->un->inode = ++inodes;
	memcpy(f->un->name, name, sizeof name);
	for (unsigned i = 0; name[0] != '@'; i++) {
		if (names[i].path[0])
			continue;
		memcpy(names[i].path, name, sizeof name);
		names[i].inode = inodes;
		break;
	}
	return 0;
}

/* A file that is gone may have had the same name. */
bool kern_unix_is(const struct kern_file *f, const char *name)
{
	return f->un->inode && !strcmp(f->un->name, name) &&
	       (name[0] == '@' || f->un->inode == kern_unix_inode(name));
}

int kern_unix_name(const struct kern_file *f, struct sockaddr *sa, socklen_t *len)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const size_t n = strlen(f->un->name);

	memcpy(un.sun_path, f->un->name, n);
	if (n && un.sun_path[0] == '@')
		un.sun_path[0] = 0;
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	memcpy(sa, &un, sizeof un);
	return 0;
}

/* ---- connections ---- */

int kern_unix_connect(struct kern_file *f, const struct sockaddr *sa, socklen_t len)
{
	char name[sizeof f->un->name];
	struct kern_unix *c, **end;
	struct kern_file *l;
	unsigned n = 0;

	get_unix_name(sa, len, name);
	if (name[0] != '@' && !kern_unix_inode(name))
		return kern_err(ENOENT);
	l = kern_unix_bound(name);
	if (!l || !l->listening || kern_chance(kern.f.refused, &kern.n.refused))
		return kern_err(ECONNREFUSED);
	for (end = &l->un_queue; *end; end = &(*end)->next)
		n++;
	if (n > l->backlog)
		return kern_err(EAGAIN);
	c = kern_unix_new();
	c->peer = f->un;
	c->linked = f->un->linked = true;
	c->who = f->who < KERN_HOSTS ? l->host : f->who ^ 1;
	memcpy(c->name, l->un->name, sizeof c->name);
	f->un->peer = c;
	*end = c;
	wake_unix(l->un);
	return 0;
}

/* @who: whose the accepted end is. */
struct kern_unix *kern_unix_take(struct kern_file *l, unsigned *who)
{
	struct kern_unix *u = l->un_queue;

	l->un_queue = u->next;
	u->next = NULL;
	*who = u->who;
	return u;
}

static void drop_piece(struct kern_unix *u)
{
	struct piece *p = u->first;

	u->first = p->next;
	if (!u->first)
		u->last = &u->first;
	kern_memory_release(p->passed);
	free(p);
}

static void drop_unix(struct kern_unix *u, bool unseen)
{
	if (!u)
		return;
	if (u->peer) {
		u->peer->shut_in = u->peer->shut_out = true;
		if (unseen || u->first)
			u->peer->err = ECONNRESET;
		u->peer->peer = NULL;
		wake_unix(u->peer);
	}
	while (u->first)
		drop_piece(u);
	free(u);
}

void kern_unix_close(struct kern_file *f)
{
	while (f->un_queue) {
		struct kern_unix *u = f->un_queue;

		f->un_queue = u->next;
		drop_unix(u, true);
	}
	drop_unix(f->un, false);
	f->un = NULL;
}

int kern_unix_shutdown(struct kern_file *f, int how)
{
	struct kern_unix *u = f->un, *peer = u->peer;

	u->shut_in |= how != SHUT_WR;
	u->shut_out |= how != SHUT_RD;
	if (!peer)
		return u->linked || f->listening ? 0 : kern_err(ENOTCONN);
	peer->shut_in |= how != SHUT_RD;
	peer->shut_out |= how != SHUT_WR;
	wake_unix(peer);
	return 0;
}

/* Octets that wait, or -1: a listener has none. */
int kern_unix_unread(const struct kern_file *f)
{
	size_t n = 0;

	if (f->listening)
		return kern_err(EINVAL);
	for (const struct piece *p = f->un->first; p; p = p->next)
		n += p->len - p->off;
	return (int)n;
}

uint32_t kern_unix_ready(const struct kern_file *f)
{
	const struct kern_unix *u = f->un;
	uint32_t ev = 0;

	if (f->listening)
		return f->un_queue && u->notice <= kern.now ? EPOLLIN : 0u;
	if (!u->linked)
		return EPOLLOUT | EPOLLHUP;
	if (u->notice > kern.now)
		return 0;
	if (u->err)
		ev |= EPOLLERR;
	if (u->shut_in)
		ev |= EPOLLIN | EPOLLRDHUP;
	if (u->shut_in && u->shut_out)
		ev |= EPOLLHUP;
	return ev | (u->first ? EPOLLIN | EPOLLOUT : EPOLLOUT);
}

bool kern_unix_news(const struct kern_file *f)
{
	return f->un->news != f->un->seen;
}

/* @again: it is watched anew, and all that is there is news. */
void kern_unix_reported(struct kern_file *f, bool again)
{
	f->un->seen = again ? f->un->news - 1 : f->un->news;
}

/* ---- octets ---- */

static size_t count_unix_octets(const struct msghdr *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->msg_iovlen; i++)
		n += m->msg_iov[i].iov_len;
	return n;
}

/* The memory whose descriptor @m passes, or NULL. */
static struct kern_memory *get_passed_memory(const struct msghdr *m)
{
	const struct cmsghdr *cm = m->msg_controllen ? CMSG_FIRSTHDR(m) : NULL;
	int fd;

	if (!cm || cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS)
		return NULL;
	memcpy(&fd, CMSG_DATA(cm), sizeof fd);
	return kern_memory_hold(kern_file(fd)->memory);
}

ssize_t kern_unix_send(struct kern_file *f, const struct msghdr *m)
{
	struct kern_unix *u = f->un;
	const size_t len = count_unix_octets(m);
	struct piece *p;
	size_t at = 0;

	if (u->err) {
		errno = u->err;
		u->err = 0;
		return -1;
	}
	if (u->shut_out || !u->peer)
		return kern_err(u->linked ? EPIPE : ENOTCONN);
	p = kern_alloc(sizeof *p + len);
	*p = (struct piece){ .passed = get_passed_memory(m), .len = len };
	for (size_t i = 0; i < m->msg_iovlen; at += m->msg_iov[i++].iov_len)
		memcpy(p->octets + at, m->msg_iov[i].iov_base, m->msg_iov[i].iov_len);
	*u->peer->last = p;
	u->peer->last = &p->next;
	wake_unix(u->peer);
	return (ssize_t)len;
}

/* The descriptor that came with the first piece, as far as the caller has room for one. */
static void put_passed_memory(const struct piece *p, struct msghdr *m)
{
	struct cmsghdr *cm = m->msg_controllen ? CMSG_FIRSTHDR(m) : NULL;
	int fd = -1;

	if (p->passed && cm)
		fd = kern_memory_open(p->passed);
	if (p->passed && fd < 0)
		m->msg_flags |= MSG_CTRUNC;
	m->msg_controllen = fd < 0 ? 0 : CMSG_SPACE(sizeof fd);
	if (fd < 0)
		return;
	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(cm), &fd, sizeof fd);
}

/* Octets do not follow each other across a descriptor. */
ssize_t kern_unix_recv(struct kern_file *f, struct msghdr *m, int flags)
{
	struct kern_unix *u = f->un;
	const bool peek = flags & MSG_PEEK;
	uint8_t *to = m->msg_iov[0].iov_base;
	size_t left = m->msg_iov[0].iov_len, n = 0;
	struct piece *p = u->first;

	if (!p) {
		m->msg_controllen = 0;
		if (u->err) {
			errno = u->err;
			u->err = 0;
			return -1;
		}
		return u->shut_in ? 0 : kern_err(u->linked ? EAGAIN : EINVAL);
	}
	m->msg_flags = 0;
	put_passed_memory(p, m);
	for (bool passed = p->passed; p && left && (!n || (!passed && !p->passed));) {
		const size_t k = p->len - p->off < left ? p->len - p->off : left;
		struct piece *next = p->next;

		memcpy(to + n, p->octets + p->off, k);
		n += k;
		left -= k;
		if (!peek)
			p->off += k;
		if (!peek && p->off == p->len)
			drop_piece(u);
		p = next;
	}
	return (ssize_t)n;
}
