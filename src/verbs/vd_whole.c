/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether the process still has its descriptors.  A program may close all that are not its own
 * (closefrom, close_range, a daemon at its start), and gives their numbers to its own files: these
 * must be neither read, nor written, nor closed.  So there is a mark, a socket that is for this
 * alone and whose inode no other file has.  With it the others have gone.  Whoever has its objects
 * has what a child of fork has of its parent's.
 *
 * The thread of the process sleeps on the mark, and wakes up when its other end is closed.
 */
#include "verbs/vd.h"
#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

void vd_mark_open(struct vd_process *p)
{
	struct stat st;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p->mark.fd)) {
		p->mark.fd[0] = p->mark.fd[1] = -1; /* nothing is noticed */
		return;
	}
	if (!fstat(p->mark.fd[0], &st)) {
		p->mark.dev = st.st_dev;
		p->mark.ino = st.st_ino;
	}
}

void vd_mark_close(struct vd_process *p)
{
	for (int i = 0; i < 2; i++)
		if (p->mark.fd[i] >= 0)
			close(p->mark.fd[i]);
}

static bool has_mark(const struct vd_process *p)
{
	struct stat st;

	return p->mark.fd[0] < 0 ||
	       (!fstat(p->mark.fd[0], &st) && st.st_dev == p->mark.dev && st.st_ino == p->mark.ino);
}

void vd_rob(struct vd_process *p)
{
	if (__atomic_exchange_n(&p->inherited, true, __ATOMIC_RELAXED))
		return;
	ddps_event_fd(p->ctx); /* it sees for itself, and lets go of its own */
}

bool vd_mine(struct vd_process *p)
{
	if (!vd_mine_quick(p))
		return false;
	if (has_mark(p))
		return true;
	vd_rob(p);
	return false;
}

bool vd_mine_quick(const struct vd_process *p)
{
	return !__atomic_load_n(&p->inherited, __ATOMIC_RELAXED) && p->pid == getpid();
}

void vd_close(const struct vd_process *p, int fd)
{
	ddps_uncancellable(); /* what has it goes behind that */
	if (fd >= 0 && has_mark(p))
		close(fd);
	ddps_uncancellable_end();
}

/* Of its copies the parent's thread would not hear that the parent has closed its own. */
void vd_mark_in_child(struct vd_process *p)
{
	if (p->mark.fd[1] >= 0)
		vd_close(p, p->mark.fd[1]);
	p->mark.fd[1] = -1;
}

struct vd_process *vd_id_process(struct vd_id *id)
{
	if (vd_mine(id->p))
		return id->p;
	errno = EINVAL;
	return NULL;
}
