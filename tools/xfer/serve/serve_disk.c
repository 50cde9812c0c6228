/* SPDX-License-Identifier: BSD-2-Clause */
/* The loop goes on while a disk works for a session. */
#include "xfer/serve/serve.h"
#include <stddef.h>

void session_disk(struct session *s, void (*work)(void *job), void (*then)(struct session *s))
{
	s->then = then;
	s->disk_busy = true;
	s->disk_begin = clock_ns();
	s->task.work = work;
	s->task.arg = s->job;
	disk_do(s->sv->disk, &s->task);
}

static void disk_through(struct session *s)
{
	s->disk_busy = false;
	if (s->state >= SESSION_LEAVING) {
		session_stop(s);
		return;
	}
	/* the peer is not to blame for that time */
	if (s->limit)
		s->limit += clock_ns() - s->disk_begin;
	session_renew(s);
	s->then(s);
}

void serve_disk(struct server *sv, bool wait)
{
	struct disk_task *t;

	while (sv->disk && (t = disk_take(sv->disk, wait))) {
		disk_through((struct session *)((char *)t - offsetof(struct session, task)));
		wait = false;
	}
}
