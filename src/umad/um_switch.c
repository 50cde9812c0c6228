/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Directed routes (IBA volume 1, 14.2.2).  The network of a subnet in UDP looks like one switch: its port N leads to
 * the node with LID N.  It answers here; the nodes answer themselves.
 */
#include "umad/um.h"
#include <stdio.h>
#include <string.h>

#define OFF_CLASS  1
#define OFF_METHOD 3
#define OFF_STATUS 4
#define OFF_HOPS   7
#define OFF_ATTR   16
#define OFF_MOD	   20
#define OFF_DATA   64
#define OFF_ROUTE  128
#define HOPS_MAX   63
#define GET	   1
#define GET_RESP   0x81
#define NO_ATTR	   0x0c
#define BAD_VALUE  0x1c
#define RETURNS	   0x80
#define SWITCH	   2
#define PORTS	   254
#define DOWN	   1
#define POLLING	   2
#define FORWARDING 0x100 /* LIDs */
#define BLOCK	   64	 /* of them, in one attribute */
#define NO_PORT	   0xff

enum { NODE_DESC = 0x10, NODE_INFO, SWITCH_INFO, PORT_INFO = 0x15, FORWARDS = 0x19 };
enum { CLASS_PORT_INFO = 1, COUNTERS = 0x12 };

struct um_route um_follow(const struct um *u, const uint8_t mad[DDPS_CM_MAD_LEN])
{
	struct um_route r = { .lid = u->self.lid };

	if (mad[OFF_HOPS] > HOPS_MAX)
		return (struct um_route){ .nowhere = true };
	for (unsigned i = 1; i <= mad[OFF_HOPS]; i++) {
		const uint8_t out = mad[OFF_ROUTE + i];

		if (r.is_switch ? !u->there[out] : out != 1)
			return (struct um_route){ .nowhere = true };
		if (r.is_switch)
			r.lid = out;
		r.is_switch = !r.is_switch; /* from a node by its only port, and so by its LID's */
	}
	return r;
}

static struct ddps_ib_self self_of_switch(const struct um *u)
{
	struct ddps_ib_self s = u->self;
	const uint8_t guid[8] = { 0x02,
				  'd',
				  'd',
				  'p',
				  's',
				  (uint8_t)(u->wire.ip >> 24),
				  (uint8_t)(u->wire.ip >> 16),
				  (uint8_t)(u->wire.ip >> 8) };

	memcpy(s.gid + 8, guid, sizeof(guid));
	s.lid = UM_SWITCH;
	return s;
}

/* @by: the port that the question came in by, which is what the local port is. */
static uint8_t answer_port(const struct um *u, uint16_t by, uint8_t *data, uint32_t port)
{
	const struct ddps_ib_self s = self_of_switch(u);

	if (port > PORTS)
		return BAD_VALUE;
	ddps_smp_port_info(data, &s);
	data[28] = (uint8_t)by;
	if (port && !u->there[port]) {
		data[32] = (uint8_t)((data[32] & 0xf0) | DOWN);
		data[33] = (uint8_t)(POLLING << 4 | (data[33] & 0x0f));
	}
	return 0;
}

/* A node is behind the port with the number of its LID, and the switch itself is port 0. */
static uint8_t answer_forwards(const struct um *u, uint8_t *data, uint32_t block)
{
	if (block >= FORWARDING / BLOCK)
		return BAD_VALUE;
	for (unsigned i = 0; i < BLOCK; i++) {
		const unsigned lid = block * BLOCK + i;

		data[i] = lid == UM_SWITCH ? 0 : u->there[lid] ? (uint8_t)lid : NO_PORT;
	}
	return 0;
}

/* It counts nothing: there is no such device.  Each counter is 0, not unknown. */
static uint8_t answer_performance(uint8_t *mad)
{
	uint8_t *data = mad + OFF_DATA, port = data[1];

	memset(data, 0, DDPS_CM_MAD_LEN - OFF_DATA);
	switch (mad[OFF_ATTR] << 8 | mad[OFF_ATTR + 1]) {
	case CLASS_PORT_INFO:
		data[0] = data[1] = 1; /* versions */
		return 0;
	case COUNTERS:
		data[1] = port;
		return 0;
	default:
		return NO_ATTR;
	}
}

static uint8_t answer_data(const struct um *u, uint16_t by, uint8_t *mad)
{
	const struct ddps_ib_self s = self_of_switch(u);
	const uint32_t modifier = (uint32_t)mad[OFF_MOD] << 24 | (uint32_t)mad[OFF_MOD + 1] << 16 |
				  (uint32_t)mad[OFF_MOD + 2] << 8 | mad[OFF_MOD + 3];
	uint8_t *data = mad + OFF_DATA;

	memset(data, 0, DDPS_SMP_PORT_INFO_LEN);
	switch (mad[OFF_ATTR] << 8 | mad[OFF_ATTR + 1]) {
	case NODE_DESC:
		snprintf((char *)data, DDPS_SMP_NODE_DESC_LEN, "network %u.%u.%u.0/24", s.gid[13],
			 s.gid[14], s.gid[15]);
		return 0;
	case NODE_INFO:
		ddps_smp_node_info(data, &s);
		data[2] = SWITCH;
		data[3] = PORTS;
		data[36] = (uint8_t)by;
		return 0;
	case SWITCH_INFO:
		data[0] = data[4] = FORWARDING >> 8;
		data[7] = UM_SWITCH; /* the highest LID in the table */
		return 0;
	case PORT_INFO:
		return answer_port(u, by, data, modifier);
	case FORWARDS:
		return answer_forwards(u, data, modifier);
	default:
		return NO_ATTR;
	}
}

bool um_switch_answer(const struct um *u, uint16_t by, uint8_t mad[DDPS_CM_MAD_LEN])
{
	const uint8_t class = mad[OFF_CLASS];

	if (mad[OFF_METHOD] != GET || /* nobody sets anything */
	    (class != DDPS_SMP_DR_CLASS && class != DDPS_SMP_CLASS && class != DDPS_PMA_CLASS))
		return false;
	mad[OFF_STATUS + 1] =
		class == DDPS_PMA_CLASS ? answer_performance(mad) : answer_data(u, by, mad);
	mad[OFF_STATUS] = class == DDPS_SMP_DR_CLASS ? RETURNS : 0;
	mad[OFF_METHOD] = GET_RESP;
	return true;
}
