/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SHM_STRANGER_H
#define SHM_STRANGER_H
/* A side of a session through shared memory, by hand, in the simulated kernel: it is host 1. */
#include "mpa_tcp/shm/shm_pass.h"

#define STRANGER_AT "/sim/shm"

struct stranger {
	int listener, sock;
	struct ddps_shm_memory *own;
	const struct ddps_shm_memory *far;
	struct ddps_shm_ring in, out;
	uint32_t msn;
};

/* It has called the library's listener, or waits for the library's call. */
void stranger_open(struct stranger *s, bool calls);
void stranger_accept(struct stranger *s);
/* Its memory; by the bits of @how, or later, another's, unsealed (4), or larger (2).  Return: a descriptor. */
int stranger_memory(struct stranger *s, unsigned how);
/* Octets on the socket, with @fd, if that is not -1. */
void stranger_send(struct stranger *s, const void *octets, size_t n, int fd);
/* Its first message; by @how and @what it is not as it should be: wrong, or not sent. */
enum greeting { NO_GREETING, WRONG_GREETING, RIGHT_GREETING };
enum greeting stranger_hello(struct stranger *s, unsigned how, unsigned what);
/* Take the library's memory, if it is there. */
void stranger_meet(struct stranger *s);
/* Octets into the ring, and the bell. */
void stranger_write(struct stranger *s, const void *octets, size_t n);
/* MPA's Request or Reply, and a Send of @len octets; with 0x80 in @how with another octet. */
void stranger_start(struct stranger *s, bool answers, unsigned how);
void stranger_segment(struct stranger *s, unsigned len, unsigned how);
void stranger_read(struct stranger *s);
/* One of the words but the head has another value. */
void stranger_word(struct stranger *s, unsigned which, uint64_t value);
void stranger_leave(struct stranger *s);

#endif
