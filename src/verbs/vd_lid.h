/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VERBS_VD_LID_H
#define DDPS_VERBS_VD_LID_H
/*
 * The local identifiers of InfiniBand's face.  An IP subnet stands for a subnet of InfiniBand: a port's LID
 * is the host's part of its IPv4 address, so that a LID alone leads to an address.
 */
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/* The LID of the host's address @own, or 0: its host's part is none, or no LID of one port. */
uint16_t vd_lid_of(const struct sockaddr_in *own);
/* The same, of a port that a program asks for: the first time that it is 0, standard error says why. */
uint16_t vd_lid_of_port(const struct sockaddr_in *own);
/* The address of @lid in the subnet of @own.  Return: false if no host there can have that LID. */
bool vd_lid_address(const struct sockaddr_in *own, uint16_t lid, struct in_addr *to);

#endif
