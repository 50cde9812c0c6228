/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_ROUGH_H
#define DDPS_TEST_ROUGH_H
/* UDP sockets of a test's, and a network between dialler and listener that does what it likes. */
#include "support/e2e.h"
#include <pthread.h>
#include <stdatomic.h>

/* A socket on loopback, and its port. */
int rough_udp(uint16_t *port);
/* It is connected to the port that ends @uri. */
void rough_aim(int fd, const char *uri);
/* The next datagram, while the context goes on; -1: none in @ms. */
ssize_t rough_receive(struct e2e *e, int fd, void *buf, size_t size, unsigned ms);

struct rough {
	pthread_t thread;
	int in, out; /* where the dialler sends to; towards the listener */
	uint16_t port;
	atomic_bool stop;
	unsigned every; /* datagram of so many is treated badly; 0: none is */
	/* It is a NAT: so many datagrams more of the dialler's, and it finds another port for it, @moves
	 * times; 0: at the first ClientHello behind data. */
	unsigned move_after, moves;
	atomic_uint moved;
	/* Somebody sends what the dialler has sealed from here, before it goes on; 0: nobody. */
	int thief;
	uint8_t forgery; /* comes before ServerHello: an alert, in the clear, or ROUGH_NONSENSE */
	atomic_uint forges; /* so often */
	bool to_listener;
	bool mute; /* in place of the dialler's data comes what it said last before that */
};

/* What @e dials from now on leads through it. */
void rough_begin(struct rough *r, struct e2e *e, unsigned every);
void rough_begin_nat(struct rough *r, struct e2e *e, unsigned move_after, unsigned moves);
void rough_begin_thief(struct rough *r, struct e2e *e);
/* Somebody sends what is not authentic, while a handshake is on. */
#define ROUGH_NONSENSE 0xffu
void rough_begin_forger(struct rough *r, struct e2e *e, uint8_t forgery, bool to_listener,
			unsigned times);
void rough_begin_mute(struct rough *r, struct e2e *e);
void rough_end(struct rough *r);

#endif
