/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_IB_AGENTS_H
#define DDPS_IB_AGENTS_H
/*
 * What a node answers about itself, whoever asks: subnet management (IBA volume 1, 14.2) and performance
 * management (16.1), to read only.  Packets in UDP have no queue pair 0, so questions of subnet management
 * come to queue pair 1 here.
 */
#include <ddpsess/ib_cm_mad.h>
#include "ipoib_cm/sa/sa_mad.h"

#define DDPS_SMP_CLASS	  0x01
#define DDPS_SMP_DR_CLASS 0x81 /* directed route */
#define DDPS_PMA_CLASS	  0x04

/* Packets of a port, and their octets by fours. */
struct ddps_ib_counters {
	uint64_t tx_data, rx_data, tx, rx, tx_groups, rx_groups, rx_errors, tx_discards;
};

/* A packet with so much payload, its headers and CRC, as the counters take it. */
#define DDPS_IB_COUNTED(len) (((len) + 12 + 4 + 3) / 4)

/*
 * @mad is a question to one of the two: it is the answer then.  A route of a directed one is not looked at.
 * Return: whether there is an answer.
 */
bool ddps_ib_agents_answer(uint8_t mad[DDPS_CM_MAD_LEN], const struct ddps_ib_self *s,
			   const struct ddps_ib_counters *c);

#endif
