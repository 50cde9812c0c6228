/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_MPA_SHM_CONN_H
#define DDPS_MPA_SHM_CONN_H
/* A connection through shared memory, for mpa_shm*.c alone: mpa_shm.c moves octets, mpa_shm_setup.c connects. */
#include "mpa_tcp/shm/mpa_shm.h"
#include "mpa_tcp/shm/shm_pass.h"
#include <sys/un.h>

struct ddps_mpa_shm {
	struct ddps_mpa_conn *c;
	struct ddps_shm_memory *memory;	   /* of this side; NULL: not there yet */
	const struct ddps_shm_memory *far; /* of the other one */
	struct ddps_shm_ring in, out;
	struct ddps_sign sign;	 /* the other one's words */
	unsigned events;	 /* that MPA waits for */
	bool quiet;		 /* it waits for nothing, not even the end */
	bool linked;		 /* the socket is connected */
	bool gone;		 /* the peer has left the socket */
	bool passed;		 /* it has passed descriptors, which nobody wants */
	bool drop;		 /* close() resets */
	int err;		 /* connecting failed */
	int fd;			 /* the memory's, until it is passed; or -1 */
	struct ddps_task task;	 /* what is there already is to be shown */
	struct ddps_timer again; /* for the listener's queue, or for a bell */
	struct ucred peer;
	struct sockaddr_un to;
	socklen_t to_len;
	char name[DDPS_SHM_TEXT], caller[24]; /* of the listener's end, of the initiator's */
};

#define DDPS_SHM_AGAIN_MS 2 /* between two tries */

extern const struct ddps_mpa_tcp ddps_mpa_shm_tcp;

/* ---- mpa_shm.c ---- */

/* The memory of this side is made. */
void ddps_mpa_shm_attach(struct ddps_mpa_shm *t, struct ddps_shm_memory *memory);
/* That of the other side is here. */
void ddps_mpa_shm_meet(struct ddps_mpa_shm *t, const struct ddps_shm_memory *far);
/* Wait for the socket, which is connected; 0 or -1 with errno. */
int ddps_mpa_shm_link(struct ddps_mpa_shm *t);
/* Wake the peer. */
void ddps_mpa_shm_ring(struct ddps_mpa_shm *t);
/* Show MPA what there is. */
void ddps_mpa_shm_show(struct ddps_mpa_shm *t);

/* ---- mpa_shm_setup.c ---- */

/* What a connection has of its own here; NULL: no memory. */
struct ddps_mpa_shm *ddps_mpa_shm_part(struct ddps_mpa_conn *c);

/* The socket has something before the peer's memory has come.  true: it is here. */
bool ddps_mpa_shm_take_hello(struct ddps_mpa_shm *t);

#endif
