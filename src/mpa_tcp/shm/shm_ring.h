/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SHM_RING_H
#define DDPS_SHM_RING_H
/*
 * Octets through memory that two processes share: one ring for each direction.  There is one writer and one
 * reader.  Each keeps its own index for itself, and believes the other's only after a look: the peer may change
 * everything in there at any time.  So octets are copied out before anybody looks at them.
 *
 * Whoever is about to sleep says so in the ring, and looks once more.  The other side looks behind each step whether
 * somebody sleeps, and has to wake him then.
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

/* What both sides of a ring see of it, a cache line for each word that one side writes. */
struct ddps_shm_words {
	_Alignas(64) uint64_t head; /* the writer's: octets written so far */
	uint32_t end;		    /* and enum ddps_shm_end */
	_Alignas(64) uint64_t tail; /* the reader's: octets read so far */
	_Alignas(64) uint32_t reader_sleeps;
	_Alignas(64) uint32_t writer_sleeps;
};

/* The memory as a whole. */
struct ddps_shm_memory {
	struct ddps_shm_words words[2]; /* from the initiator to the responder, and back */
	_Alignas(4096) uint8_t octets[2][DDPS_SHM_OCTETS];
};

/* One side's view of a ring. */
struct ddps_shm_ring {
	struct ddps_shm_words *words; /* NULL: none */
	uint8_t *octets;
	uint64_t at;   /* own index */
	uint64_t seen; /* the other's, as it was last */
	bool bad;      /* the other's was impossible: nothing is moved any more */
	unsigned
		said; /* how often this side has said that it sleeps: it is woken as often at most */
};

/* The view of ring @nr, 0 or 1, of @m, in which nothing was moved yet. */
void ddps_shm_open(struct ddps_shm_ring *r, struct ddps_shm_memory *m, int nr);

/* ---- the writer ---- */

/* Octets that there is room for; 0 of a bad ring. */
size_t ddps_shm_room(struct ddps_shm_ring *r);
/* Write what there is room for.  @wake: the reader sleeps, and is to be woken.  Return: octets. */
size_t ddps_shm_write(struct ddps_shm_ring *r, const struct iovec *iov, int n, bool *wake);
/* No more comes; a reset is final.  @wake as above. */
void ddps_shm_finish(struct ddps_shm_ring *r, enum ddps_shm_end end, bool *wake);
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
