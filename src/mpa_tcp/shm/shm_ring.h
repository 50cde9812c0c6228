/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SHM_RING_H
#define DDPS_SHM_RING_H
/*
 * Octets between two processes: one ring for each direction, with one writer and one reader.  Each side has memory that
 * it alone can write: the octets for the other, and what it says of its indices.  The other side reads it, and believes
 * nothing: all of that may change at any time.  So octets are copied out before anybody looks at them.
 *
 * Whoever is about to sleep says so, and looks once more.  The other side looks behind each step whether somebody
 * sleeps, and has to wake him then.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define DDPS_SHM_OCTETS (256u * 1024) /* of a ring; a power of two */

enum ddps_shm_end {
	DDPS_SHM_OPEN,
	DDPS_SHM_FIN, /* the writer has closed in order */
	DDPS_SHM_RESET
};

/*
 * What a side says, a cache line for each of the other's questions.  It sleeps as long as a number of its own is not the
 * one for which the other side says that it was woken.
 */
struct ddps_shm_words {
	_Alignas(64) uint64_t head; /* as the writer: octets written so far */
	uint32_t end;		    /* and enum ddps_shm_end */
	_Alignas(64) uint64_t tail; /* as the reader: octets read so far */
	_Alignas(64) uint32_t reader_sleeps;
	_Alignas(64) uint32_t writer_sleeps;
	_Alignas(64) uint32_t reader_woken; /* the other side's */
	uint32_t writer_woken;
};

/* The memory of a side. */
struct ddps_shm_memory {
	struct ddps_shm_words words;
	_Alignas(4096) uint8_t octets[DDPS_SHM_OCTETS];
};

/* One side's view of a ring. */
struct ddps_shm_ring {
	struct ddps_shm_words *own; /* NULL: none */
	const struct ddps_shm_words *peer;
	uint8_t *to;	     /* the writer's octets */
	const uint8_t *from; /* as the reader sees them */
	uint64_t at;	     /* own index */
	uint64_t seen;	     /* the other's, as it was last */
	uint32_t sleeps;     /* the number that was said last */
	uint32_t woken;	     /* the other's that was woken last */
	bool bad;	     /* the other's index was impossible: nothing is moved any more */
	unsigned
		said; /* how often this side has said that it sleeps: it is woken as often at most */
};

/* The view of the ring that this side writes, or reads, in which nothing was moved yet.  There is no other side yet:
 * it has read nothing and written nothing, and does not sleep. */
void ddps_shm_open_writer(struct ddps_shm_ring *r, struct ddps_shm_memory *own);
void ddps_shm_open_reader(struct ddps_shm_ring *r, struct ddps_shm_memory *own);
/* The other side's memory is here. */
void ddps_shm_meet(struct ddps_shm_ring *r, const struct ddps_shm_memory *peer);

/* ---- the writer ---- */

/* Octets that there is room for; 0 of a bad ring. */
size_t ddps_shm_room(struct ddps_shm_ring *r);
/* Write what there is room for.  @wake: the reader sleeps, and is to be woken.  Return: octets. */
size_t ddps_shm_write(struct ddps_shm_ring *r, const struct iovec *iov, int n, bool *wake);
/* No more comes; a reset is final.  @wake as above. */
void ddps_shm_finish(struct ddps_shm_ring *r, enum ddps_shm_end end, bool *wake);
/* Whether the reader sleeps, and is to be woken: it may have been on its way to sleep when the two met. */
bool ddps_shm_wakes(struct ddps_shm_ring *r);
/* The writer is going to sleep until there is room for @least octets, at most a quarter of the ring; true: there
 * is already. */
bool ddps_shm_await_room(struct ddps_shm_ring *r, size_t least);

/* ---- the reader ---- */

/* Octets that wait; 0 of a bad ring. */
size_t ddps_shm_filled(struct ddps_shm_ring *r);
/* How the writer has ended it.  Octets that were written before are there already. */
enum ddps_shm_end ddps_shm_ended(const struct ddps_shm_ring *r);
/* Copy out what waits, up to what @iov takes.  @wake: the writer sleeps, and is to be woken.  Return: octets. */
size_t ddps_shm_read(struct ddps_shm_ring *r, const struct iovec *iov, int n, bool *wake);
/* The reader is going to sleep until there is something; true: there is already, octets or an end. */
bool ddps_shm_await_octets(struct ddps_shm_ring *r);

/* Neither sleeps any more, so nobody need be woken. */
void ddps_shm_awake_reader(struct ddps_shm_ring *r);
void ddps_shm_awake_writer(struct ddps_shm_ring *r);

#endif
