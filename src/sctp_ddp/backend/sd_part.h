/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SD_PART_H
#define DDPS_SD_PART_H
/*
 * SCTP socket interfaces may hand out one user message in several reads; only whole ones go
 * up [5043-2.8].  Reads go into a buffer that all associations share as long as every one
 * brings a whole message, and into one of the association's own once one does not.
 */
#include <stddef.h>
#include <stdint.h>

#define DDPS_SD_MSG_MAX (70u * 1024) /* longest user message taken or given */

struct ddps_sd_part {
	uint8_t *own; /* NULL: nothing is held */
	size_t len;
};

/* Where the next read goes; @shared has DDPS_SD_MSG_MAX octets. */
uint8_t *ddps_sd_part_room(const struct ddps_sd_part *p, uint8_t *shared, size_t *room);

/*
 * @n octets were read there and are not the end of the message.
 * Return: 0, DDPS_E_PROTOCOL (message too long) or DDPS_E_NOMEM.
 */
int ddps_sd_part_hold(struct ddps_sd_part *p, const uint8_t *at, size_t n);

/* Forget what is held. */
void ddps_sd_part_drop(struct ddps_sd_part *p);

#endif
