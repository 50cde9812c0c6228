/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_DISK_H
#define SESSCTL_DISK_H
/* Threads for what a disk can hold up, so that a loop need not wait for it. */
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

struct disk_task {
	STAILQ_ENTRY(disk_task) of_queue;
	void (*work)(void *arg);
	void *arg;
	atomic_bool off; /* not to be begun any more; what has begun may look */
};

struct disk;

/* Return: NULL with errno. */
struct disk *disk_new(void);
/* All tasks have been taken back. */
void disk_free(struct disk *d);

/* Readable while there are tasks to be taken back; never read from. */
int disk_fd(const struct disk *d);

/*
 * Have @t's work done, by the first thread that is free; here and now if no thread can be had.  @t belongs
 * to @d until it is taken back.
 */
void disk_do(struct disk *d, struct disk_task *t);
/* It need not be done, or not to its end; it comes back anyway. */
void disk_call_off(struct disk *d, struct disk_task *t);
/* A disk that does not come back in this time after all others have ended is not waited for. */
#define DISK_LAST_S 5
#define DISK_HANGS                                                                                 \
	"a disk has not answered for %d s; what it was asked for may still be done", DISK_LAST_S
#define DISK_ADVICE "is it a network file system whose server has gone?"

/* Wait for a task that is through, for so long.  Return: whether there is one. */
bool disk_last(const struct disk *d);
/* Take back one that is through; NULL: none is.  @wait: until one is, of those that there are. */
struct disk_task *disk_take(struct disk *d, bool wait);

#endif
