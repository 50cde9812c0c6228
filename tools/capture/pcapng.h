/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_PCAPNG_H
#define SESSCTL_PCAPNG_H
/*
 * A capture file that packet analysers read: pcapng, IP packets without a link layer.  SCTP packets
 * get an IP header in front of them; octets of a TCP stream get one of TCP too.
 */
#include <ddpsess/session.h>
#include <stdint.h>
#include <stdio.h>

struct pcapng_flow;

struct pcapng {
	FILE *f;
	const char *path;
	int write_errno; /* why not all is in it, or 0 */
	struct pcapng_flow *flows;
};

/* Return: 0, or -1 with errno. */
int pcapng_open(struct pcapng *c, const char *path);
/* A ddps_capture_fn; @user: the struct pcapng. */
void pcapng_add(void *user, const struct ddps_packet *p);
/* Safe on a zeroed one.  Return: 0, or -1 with errno: not all could be written. */
int pcapng_close(struct pcapng *c);

#endif
