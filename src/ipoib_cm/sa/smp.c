/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib_cm/sa/sa_mad.h"
#include "common/bytes.h"
#include <stdio.h>
#include <string.h>

#define NODE_CA	     1
#define CAP_SM	     (1u << 1)
#define CAP_CM	     (1u << 16)
#define WIDTH_4X     2
#define SPEED_QDR    4 /* 10 Gbit/s a lane: 40, as the link's rate says */
#define ACTIVE	     4
#define LINK_UP	     5
#define MASTER	     3
#define PORT	     1
#define P_KEYS	     32 /* of its table */
#define GID_GUID     8	/* of a GID: the port's GUID */
#define DOWN_POLLING 2

static void put_guid(struct ddps_wbuf *w, const struct ddps_ib_self *s)
{
	ddps_wbuf_bytes(w, s->gid + GID_GUID, 8);
}

/* 14.2.5.3 */
void ddps_smp_node_info(uint8_t out[DDPS_SMP_NODE_INFO_LEN], const struct ddps_ib_self *s)
{
	struct ddps_wbuf w = ddps_wbuf_init(out, DDPS_SMP_NODE_INFO_LEN);

	memset(out, 0, DDPS_SMP_NODE_INFO_LEN);
	ddps_wbuf_u8(&w, 1); /* base version, class version */
	ddps_wbuf_u8(&w, 1);
	ddps_wbuf_u8(&w, NODE_CA);
	ddps_wbuf_u8(&w, 1);		 /* ports */
	for (unsigned i = 0; i < 3; i++) /* system image, node, port */
		put_guid(&w, s);
	ddps_wbuf_u16(&w, P_KEYS);
	ddps_wbuf_u16(&w, 0);
	ddps_wbuf_u32(&w, 0);
	ddps_wbuf_u32(&w, PORT << 24);
}

/* 14.2.5.2 */
void ddps_smp_node_desc(uint8_t out[DDPS_SMP_NODE_DESC_LEN], const struct ddps_ib_self *s)
{
	memset(out, 0, DDPS_SMP_NODE_DESC_LEN);
	snprintf((char *)out, DDPS_SMP_NODE_DESC_LEN, "ddpsess LID %u", s->lid);
}

/* 14.2.5.6 */
void ddps_smp_port_info(uint8_t out[DDPS_SMP_PORT_INFO_LEN], const struct ddps_ib_self *s)
{
	struct ddps_wbuf w = ddps_wbuf_init(out, DDPS_SMP_PORT_INFO_LEN);

	memset(out, 0, DDPS_SMP_PORT_INFO_LEN);
	ddps_wbuf_u64(&w, 0); /* M_Key */
	ddps_wbuf_bytes(&w, s->gid, 8);
	ddps_wbuf_u16(&w, s->lid);
	ddps_wbuf_u16(&w, s->sm_lid);
	ddps_wbuf_u32(&w, CAP_CM | (s->lid == s->sm_lid ? CAP_SM : 0));
	ddps_wbuf_u32(&w, 0); /* diagnostics, lease of the M_Key */
	ddps_wbuf_u8(&w, PORT);
	for (unsigned i = 0; i < 3; i++) /* width: enabled, supported, active */
		ddps_wbuf_u8(&w, WIDTH_4X);
	ddps_wbuf_u8(&w, SPEED_QDR << 4 | ACTIVE);
	ddps_wbuf_u8(&w, LINK_UP << 4 | DOWN_POLLING);
	ddps_wbuf_u8(&w, 0); /* LMC */
	ddps_wbuf_u8(&w, SPEED_QDR << 4 | SPEED_QDR);
	ddps_wbuf_u8(&w, (uint8_t)(s->mtu << 4)); /* neighbour's MTU */
	ddps_wbuf_u8(&w, 1 << 4);		  /* one virtual lane */
	out[41] = s->mtu;
	out[43] = 1 << 4; /* operational lanes */
	out[50] = 1;	  /* GUIDs */
	out[51] = s->life & 0x1f;
}

/* 14.2.5.13 */
void ddps_smp_sm_info(uint8_t out[DDPS_SMP_SM_INFO_LEN], const struct ddps_ib_self *s)
{
	struct ddps_wbuf w = ddps_wbuf_init(out, DDPS_SMP_SM_INFO_LEN);

	memset(out, 0, DDPS_SMP_SM_INFO_LEN);
	put_guid(&w, s);
	out[20] = MASTER; /* of priority 0 */
}
