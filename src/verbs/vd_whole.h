/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VD_WHOLE_H
#define DDPS_VD_WHOLE_H
/*
 * Whose the process's objects are, and whether its descriptors are still there.  They are useless
 * (vd_process.inherited) in a child of fork, where locks may be held for good, and once the program
 * has closed the descriptors.
 */
#include <stdbool.h>
#include <sys/types.h>

struct vd_process;
struct vd_id;

/* A pair of sockets, or -1. */
struct vd_mark {
	int fd[2];
	dev_t dev;
	ino_t ino;
};

/* Whether @p is this process's: objects from before a fork are the parent's.  Nor is it if the
 * program has closed its descriptors: vd_whole.c. */
bool vd_mine(struct vd_process *p);
/* The same without a look at descriptors, for what is called often. */
bool vd_mine_quick(const struct vd_process *p);
/* The process of an identifier; NULL with EINVAL if it is not this one. */
struct vd_process *vd_id_process(struct vd_id *id);
/* Close @fd of @p's, or of a copy of it in a child, unless the program has. */
void vd_close(const struct vd_process *p, int fd);
/* The program has closed the descriptors. */
void vd_rob(struct vd_process *p);
void vd_mark_open(struct vd_process *p);
void vd_mark_close(struct vd_process *p);
void vd_mark_in_child(struct vd_process *p);
#endif
