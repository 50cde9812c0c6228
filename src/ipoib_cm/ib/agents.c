/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib_cm/ib/agents.h"
#include "common/bytes.h"
#include <string.h>

#define OFF_CLASS   1
#define OFF_VERSION 2
#define OFF_METHOD  3
#define OFF_STATUS  4
#define OFF_ATTR    16
#define OFF_MOD	    20
#define OFF_DATA    64 /* of both classes */
#define GET	    1
#define SET	    2
#define GET_RESP    0x81
#define NO_METHOD   0x08
#define NO_ATTR	    0x0c
#define BAD_VALUE   0x1c
#define RETURNS	    0x8000 /* a directed route, backwards */
#define PORT	    1
#define ALL_PORTS   255
#define EXTENDED    (1 << 9) /* there are counters of 64 bits */

enum { NODE_DESC = 0x10, NODE_INFO, PORT_INFO = 0x15, P_KEYS, SM_INFO = 0x20 };
enum { CLASS_PORT_INFO = 0x01, COUNTERS = 0x12, COUNTERS_EXT = 0x1d };

static uint16_t u16_at(const uint8_t *b)
{
	return (uint16_t)(b[0] << 8 | b[1]);
}

static uint16_t management(uint8_t *mad, const struct ddps_ib_self *s)
{
	uint8_t *data = mad + OFF_DATA;
	unsigned port = (unsigned)u16_at(mad + OFF_MOD) << 16 | u16_at(mad + OFF_MOD + 2);

	memset(data, 0, DDPS_SMP_PORT_INFO_LEN);
	switch (u16_at(mad + OFF_ATTR)) {
	case NODE_DESC:
		ddps_smp_node_desc(data, s);
		return 0;
	case NODE_INFO:
		ddps_smp_node_info(data, s);
		return 0;
	case PORT_INFO:
		if (port > PORT)
			return BAD_VALUE;
		ddps_smp_port_info(data, s);
		return 0;
	case P_KEYS:
		if (port) /* a block, as it has one port */
			return BAD_VALUE;
		data[0] = (uint8_t)(s->pkey >> 8);
		data[1] = (uint8_t)s->pkey;
		return 0;
	case SM_INFO:
		if (s->lid != s->sm_lid)
			return NO_ATTR;
		ddps_smp_sm_info(data, s);
		return 0;
	default:
		return NO_ATTR;
	}
}

static uint32_t at_most(uint64_t v, uint32_t top)
{
	return v < top ? (uint32_t)v : top;
}

/* 16.1.3.5: these stop at their highest value. */
static void put_counters(uint8_t *data, const struct ddps_ib_counters *c)
{
	struct ddps_wbuf w = ddps_wbuf_init(data + 8, 32);

	ddps_wbuf_u16(&w, (uint16_t)at_most(c->rx_errors, 0xffff));
	ddps_wbuf_u32(&w, 0); /* of a remote one, of a switch */
	ddps_wbuf_u16(&w, (uint16_t)at_most(c->tx_discards, 0xffff));
	ddps_wbuf_u64(&w, 0);
	ddps_wbuf_u32(&w, at_most(c->tx_data, UINT32_MAX));
	ddps_wbuf_u32(&w, at_most(c->rx_data, UINT32_MAX));
	ddps_wbuf_u32(&w, at_most(c->tx, UINT32_MAX));
	ddps_wbuf_u32(&w, at_most(c->rx, UINT32_MAX));
}

/* 16.1.4.12 */
static void put_extended(uint8_t *data, const struct ddps_ib_counters *c)
{
	const uint64_t v[] = { c->tx_data,   c->rx_data,	   c->tx,
			       c->rx,	     c->tx - c->tx_groups, c->rx - c->rx_groups,
			       c->tx_groups, c->rx_groups };
	struct ddps_wbuf w = ddps_wbuf_init(data + 8, sizeof(v));

	for (unsigned i = 0; i < sizeof(v) / sizeof(*v); i++)
		ddps_wbuf_u64(&w, v[i]);
}

static uint16_t performance(uint8_t *mad, const struct ddps_ib_counters *c)
{
	uint8_t *data = mad + OFF_DATA, port = data[1];
	const uint16_t attr = u16_at(mad + OFF_ATTR);

	memset(data, 0, DDPS_CM_MAD_LEN - OFF_DATA);
	if (attr == CLASS_PORT_INFO) {
		data[0] = data[1] = 1; /* versions */
		data[2] = EXTENDED >> 8;
		return 0;
	}
	if (attr != COUNTERS && attr != COUNTERS_EXT)
		return NO_ATTR;
	data[1] = port;
	if (port > PORT && port != ALL_PORTS) /* 0: programs mean the only one */
		return BAD_VALUE;
	if (attr == COUNTERS)
		put_counters(data, c);
	else
		put_extended(data, c);
	return 0;
}

bool ddps_ib_agents_answer(uint8_t mad[DDPS_CM_MAD_LEN], const struct ddps_ib_self *s,
			   const struct ddps_ib_counters *c)
{
	const uint8_t class = mad[OFF_CLASS], method = mad[OFF_METHOD];
	uint16_t status = NO_METHOD;

	if ((class != DDPS_SMP_CLASS && class != DDPS_SMP_DR_CLASS && class != DDPS_PMA_CLASS) ||
	    (method != GET && method != SET) || mad[OFF_VERSION] != 1)
		return false;
	if (method == GET)
		status = class == DDPS_PMA_CLASS ? performance(mad, c) : management(mad, s);
	if (class == DDPS_SMP_DR_CLASS)
		status |= RETURNS;
	mad[OFF_METHOD] = GET_RESP;
	mad[OFF_STATUS] = (uint8_t)(status >> 8);
	mad[OFF_STATUS + 1] = (uint8_t)status;
	return true;
}
