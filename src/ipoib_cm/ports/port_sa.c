/* SPDX-License-Identifier: BSD-2-Clause */
/* Path records: the query and its answer as octets. */
#include "ipoib_cm/ports/port_sa.h"
#include "common/bytes.h"

#define METHOD_GET	0x01
#define METHOD_GET_RESP 0x81
#define ATTR_PATH	0x0035
#define STATUS_NO_REC	0x0300

#define OFF_MASK   48
#define OFF_RECORD 56

/* The fields of a query that count: DGID, SGID, Reversible, NumbPath. */
#define MASK (1u << 2 | 1u << 3 | 1u << 11 | 1u << 12)

/* Offsets in the record. */
#define OFF_DGID       8
#define OFF_SGID       24
#define OFF_REVERSIBLE 49

void ddps_sa_path_query(uint8_t mad[DDPS_CM_MAD_LEN], uint32_t tid,
			const uint8_t sgid[DDPS_IPOIB_GID_LEN],
			const uint8_t dgid[DDPS_IPOIB_GID_LEN])
{
	struct ddps_wbuf w = ddps_wbuf_init(mad, DDPS_CM_MAD_LEN);

	memset(mad, 0, DDPS_CM_MAD_LEN);
	ddps_wbuf_u8(&w, DDPS_CM_BASE_VERSION);
	ddps_wbuf_u8(&w, DDPS_SA_CLASS);
	ddps_wbuf_u8(&w, DDPS_SA_VERSION);
	ddps_wbuf_u8(&w, METHOD_GET);
	ddps_wbuf_u32(&w, 0);
	ddps_wbuf_u64(&w, tid);
	ddps_wbuf_u16(&w, ATTR_PATH);
	w = ddps_wbuf_init(mad + OFF_MASK, 8);
	ddps_wbuf_u64(&w, MASK);
	memcpy(mad + OFF_RECORD + OFF_DGID, dgid, DDPS_IPOIB_GID_LEN);
	memcpy(mad + OFF_RECORD + OFF_SGID, sgid, DDPS_IPOIB_GID_LEN);
	mad[OFF_RECORD + OFF_REVERSIBLE] = 0x80 | 1; /* both ways; one path */
}

static void get_record(struct ddps_sa_path *p, const uint8_t mad[DDPS_CM_MAD_LEN])
{
	struct ddps_rbuf r = ddps_rbuf_init(mad + OFF_RECORD, 64);
	struct ddps_cm_path *c = &p->path;
	uint32_t v;

	ddps_rbuf_take(&r, OFF_DGID);
	memcpy(c->remote_gid, ddps_rbuf_take(&r, DDPS_IPOIB_GID_LEN), DDPS_IPOIB_GID_LEN);
	memcpy(c->local_gid, ddps_rbuf_take(&r, DDPS_IPOIB_GID_LEN), DDPS_IPOIB_GID_LEN);
	c->remote_lid = (uint16_t)ddps_rbuf_be(&r, 2);
	c->local_lid = (uint16_t)ddps_rbuf_be(&r, 2);
	v = (uint32_t)ddps_rbuf_be(&r, 4);
	c->flow_label = v >> 8 & 0xfffff;
	c->hop_limit = v & 0xff;
	c->subnet_local = c->hop_limit <= 1; /* as Linux has it */
	c->traffic_class = ddps_rbuf_u8(&r);
	ddps_rbuf_take(&r, 1);
	p->pkey = (uint16_t)ddps_rbuf_be(&r, 2);
	c->sl = ddps_rbuf_be(&r, 2) & 15;
	p->mtu = ddps_rbuf_u8(&r) & 0x3f; /* above: how a query compares it */
	c->rate = ddps_rbuf_u8(&r) & 0x3f;
	p->life = ddps_rbuf_u8(&r) & 0x3f;
	c->ack_timeout = ddps_cm_ack_timeout(p->life, 0);
}

int ddps_sa_path_answer(struct ddps_sa_path *p, uint16_t *status,
			const uint8_t mad[DDPS_CM_MAD_LEN], uint32_t tid)
{
	struct ddps_rbuf r = ddps_rbuf_init(mad, DDPS_CM_HDR_LEN);
	uint32_t head = (uint32_t)ddps_rbuf_be(&r, 4);
	struct ddps_sa_path got = { 0 };
	uint16_t code = (uint16_t)ddps_rbuf_be(&r, 2);
	uint32_t tid_low;
	uint16_t attr;

	ddps_rbuf_take(&r, 6);
	tid_low = (uint32_t)ddps_rbuf_be(&r, 4);
	attr = (uint16_t)ddps_rbuf_be(&r, 2);
	if (head != ((uint32_t)DDPS_CM_BASE_VERSION << 24 | DDPS_SA_CLASS << 16 |
		     DDPS_SA_VERSION << 8 | METHOD_GET_RESP) ||
	    tid_low != tid || attr != ATTR_PATH)
		return DDPS_E_AGAIN;
	*status = code;
	if (code)
		return code == STATUS_NO_REC ? DDPS_E_ADDRESS : DDPS_E_PROTOCOL;
	get_record(&got, mad);
	if (!got.path.remote_lid || !got.path.local_lid || got.mtu < 1 || got.mtu > 5 ||
	    got.life > DDPS_CM_TIME_MAX)
		return DDPS_E_PROTOCOL;
	*p = got;
	return 0;
}
