/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether memory can be registered: an adapter pins its pages, which fails where there are none, or where
 * they may not be written to and the region says that they are.  Nothing is pinned here, so the list of
 * what the process has mapped is asked instead.
 */
#include "verbs/ib/vd_memory.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define WRITABLE                                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC |             \
	 IBV_ACCESS_MW_BIND)

struct maps {
	int fd;
	char buf[4096];
	size_t n, at;
};

/* The next octet; -1: there is none. */
static int next_octet(struct maps *m)
{
	ssize_t n;

	if (m->at == m->n) {
		do
			n = read(m->fd, m->buf, sizeof m->buf);
		while (n < 0 && errno == EINTR);
		if (n <= 0)
			return -1;
		m->n = (size_t)n;
		m->at = 0;
	}
	return m->buf[m->at++];
}

/* A number in hex and the octet behind it. */
static bool read_map_hex(struct maps *m, char end, uintptr_t *v)
{
	static const char digits[] = "0123456789abcdef";
	const char *d;
	int c;

	for (*v = 0; (c = next_octet(m)) > 0 && c != end; *v = *v << 4 | (uintptr_t)(d - digits)) {
		d = strchr(digits, c);
		if (!d)
			return false;
	}
	return c == end;
}

/* "START-END rwxp ...", in the order of addresses. */
static bool read_mapping(struct maps *m, uintptr_t *start, uintptr_t *end, bool *r, bool *w)
{
	int c;

	if (!read_map_hex(m, '-', start) || !read_map_hex(m, ' ', end))
		return false;
	*r = next_octet(m) == 'r';
	*w = next_octet(m) == 'w';
	while ((c = next_octet(m)) > 0 && c != '\n')
		;
	return c == '\n';
}

static bool covers(struct maps *m, uintptr_t at, uintptr_t to, bool write)
{
	uintptr_t start, end;
	bool r, w;

	while (at < to) {
		if (!read_mapping(m, &start, &end, &r, &w))
			return false;
		if (end <= at)
			continue;
		if (start > at || !r || (write && !w))
			return false;
		at = end;
	}
	return true;
}

bool vd_can_register(const void *mem, size_t len, unsigned access)
{
	struct maps m = { .n = 0 };
	int keep = errno;
	bool can = true;

	if (!len || access & IBV_ACCESS_ON_DEMAND) /* that looks when it is touched */
		return true;
	ddps_uncancellable();
	m.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (m.fd >= 0) { /* without /proc all is believed, as before */
		can = covers(&m, (uintptr_t)mem, (uintptr_t)mem + len, access & WRITABLE);
		close(m.fd);
	}
	ddps_uncancellable_end();
	errno = keep;
	return can;
}

/* ---- which of many ---- */

struct search {
	const struct vd_regions *all;
	const struct vd_mr *found;
	bool others;
};

/* Nothing is mapped in between, or nothing that may be written to. */
static void note_gap(struct search *s, uintptr_t from, uintptr_t to, bool readable)
{
	const struct vd_mr *mr;

	LIST_FOREACH(mr, s->all, link) {
		const uintptr_t at = (uintptr_t)mr->mr.addr;

		if (!at || !mr->mr.length || at >= to || at + mr->mr.length <= from ||
		    mr->access & IBV_ACCESS_ON_DEMAND || (readable && !(mr->access & WRITABLE)))
			continue;
		s->others = s->others || (s->found && s->found != mr);
		if (!s->found)
			s->found = mr;
	}
}

const struct vd_mr *vd_find_unmapped(const struct vd_regions *all, bool *others)
{
	struct search s = { .all = all };
	struct maps m = { .fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC) };
	uintptr_t start, end, last = 0;
	bool r, w;

	*others = false;
	if (m.fd < 0)
		return NULL;
	while (read_mapping(&m, &start, &end, &r, &w)) {
		note_gap(&s, last, start, false);
		if (!r || !w)
			note_gap(&s, start, end, r);
		last = end;
	}
	note_gap(&s, last, UINTPTR_MAX, false);
	close(m.fd);
	*others = s.others;
	return s.found;
}
