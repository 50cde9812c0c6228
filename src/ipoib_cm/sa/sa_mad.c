/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of subnet administration, each in the order of its octets. */
#include "ipoib_cm/sa/sa_mad.h"
#include "common/bytes.h"

#define OFF_RMPP   24
#define OFF_SIZE   44
#define OFF_MASK   48
#define OFF_RECORD 56
#define BASE	   1
#define QPN_GSI	   1

static struct ddps_wbuf record_of(uint8_t *mad)
{
	return ddps_wbuf_init(mad + OFF_RECORD, DDPS_SA_RECORD_LEN);
}

static struct ddps_rbuf record_in(const uint8_t *mad)
{
	return ddps_rbuf_init(mad + OFF_RECORD, DDPS_SA_RECORD_LEN);
}

static void get_gid(uint8_t gid[DDPS_IPOIB_GID_LEN], struct ddps_rbuf *r)
{
	memcpy(gid, ddps_rbuf_take(r, DDPS_IPOIB_GID_LEN), DDPS_IPOIB_GID_LEN);
}

void ddps_sa_mad_begin(uint8_t mad[DDPS_CM_MAD_LEN], const struct ddps_sa_head *h)
{
	struct ddps_wbuf w = ddps_wbuf_init(mad, DDPS_CM_MAD_LEN);

	memset(mad, 0, DDPS_CM_MAD_LEN);
	ddps_wbuf_u8(&w, BASE);
	ddps_wbuf_u8(&w, DDPS_SA_CLASS);
	ddps_wbuf_u8(&w, DDPS_SA_VERSION);
	ddps_wbuf_u8(&w, h->method);
	ddps_wbuf_u16(&w, h->status);
	ddps_wbuf_u16(&w, 0);
	ddps_wbuf_u64(&w, h->tid);
	ddps_wbuf_u16(&w, h->attr);
	w = ddps_wbuf_init(mad + OFF_MASK, sizeof(uint64_t));
	ddps_wbuf_u64(&w, h->mask);
}

int ddps_sa_mad_head(struct ddps_sa_head *h, const uint8_t mad[DDPS_CM_MAD_LEN])
{
	struct ddps_rbuf r = ddps_rbuf_init(mad, DDPS_CM_MAD_LEN);

	if (ddps_rbuf_be(&r, 3) != (BASE << 16 | DDPS_SA_CLASS << 8 | DDPS_SA_VERSION))
		return DDPS_E_PROTOCOL;
	h->method = ddps_rbuf_u8(&r);
	h->status = ddps_rbuf_u16(&r);
	ddps_rbuf_take(&r, 2);
	h->tid = ddps_rbuf_u64(&r);
	h->attr = ddps_rbuf_u16(&r);
	r = ddps_rbuf_init(mad + OFF_MASK, sizeof(uint64_t));
	h->mask = ddps_rbuf_u64(&r);
	return 0;
}

void ddps_sa_rmpp_put(uint8_t mad[DDPS_CM_MAD_LEN], const struct ddps_rmpp *r)
{
	struct ddps_wbuf w = ddps_wbuf_init(mad + OFF_RMPP, 12);

	ddps_wbuf_u8(&w, DDPS_RMPP_VERSION);
	ddps_wbuf_u8(&w, r->type);
	ddps_wbuf_u8(&w, (uint8_t)(31 << 3 | r->flags)); /* no response time is reported */
	ddps_wbuf_u8(&w, 0);
	ddps_wbuf_u32(&w, r->segment);
	ddps_wbuf_u32(&w, r->length);
}

bool ddps_sa_rmpp_get(struct ddps_rmpp *r, const uint8_t mad[DDPS_CM_MAD_LEN])
{
	struct ddps_rbuf b = ddps_rbuf_init(mad + OFF_RMPP, 12);
	uint8_t version = ddps_rbuf_u8(&b);

	r->type = ddps_rbuf_u8(&b);
	r->flags = ddps_rbuf_u8(&b) & 7;
	ddps_rbuf_take(&b, 1);
	r->segment = ddps_rbuf_u32(&b);
	r->length = ddps_rbuf_u32(&b);
	return version == DDPS_RMPP_VERSION && r->flags & DDPS_RMPP_ACTIVE;
}

void ddps_sa_record_size(uint8_t mad[DDPS_CM_MAD_LEN], size_t size)
{
	mad[OFF_SIZE] = 0;
	mad[OFF_SIZE + 1] = (uint8_t)((size + 7) / 8);
}

/* 15.2.5.17 */
void ddps_sa_mcm_put(uint8_t mad[DDPS_CM_MAD_LEN], const struct ddps_sa_mcm *r)
{
	struct ddps_wbuf w = record_of(mad);

	ddps_wbuf_bytes(&w, r->mgid, sizeof(r->mgid));
	ddps_wbuf_bytes(&w, r->port_gid, sizeof(r->port_gid));
	ddps_wbuf_u32(&w, r->qkey);
	ddps_wbuf_u16(&w, r->mlid);
	ddps_wbuf_u8(&w, r->mtu);
	ddps_wbuf_u8(&w, r->tclass);
	ddps_wbuf_u16(&w, r->pkey);
	ddps_wbuf_u8(&w, r->rate);
	ddps_wbuf_u8(&w, r->life);
	ddps_wbuf_u32(&w, (uint32_t)r->sl << 28 | (r->flow & 0xfffff) << 8 | r->hop);
	ddps_wbuf_u8(&w, (uint8_t)(r->scope << 4 | (r->join & 15)));
}

void ddps_sa_mcm_get(struct ddps_sa_mcm *r, const uint8_t mad[DDPS_CM_MAD_LEN])
{
	struct ddps_rbuf b = record_in(mad);
	uint32_t v;

	get_gid(r->mgid, &b);
	get_gid(r->port_gid, &b);
	r->qkey = ddps_rbuf_u32(&b);
	r->mlid = ddps_rbuf_u16(&b);
	r->mtu = ddps_rbuf_u8(&b);
	r->tclass = ddps_rbuf_u8(&b);
	r->pkey = ddps_rbuf_u16(&b);
	r->rate = ddps_rbuf_u8(&b);
	r->life = ddps_rbuf_u8(&b);
	v = ddps_rbuf_u32(&b);
	r->sl = (uint8_t)(v >> 28);
	r->flow = v >> 8 & 0xfffff;
	r->hop = (uint8_t)v;
	v = ddps_rbuf_u8(&b);
	r->scope = (uint8_t)(v >> 4);
	r->join = v & 15;
}

/* 15.2.5.16 */
void ddps_sa_pr_put(uint8_t mad[DDPS_CM_MAD_LEN], const struct ddps_sa_pr *r)
{
	struct ddps_wbuf w = record_of(mad);

	ddps_wbuf_u64(&w, 0);
	ddps_wbuf_bytes(&w, r->dgid, sizeof(r->dgid));
	ddps_wbuf_bytes(&w, r->sgid, sizeof(r->sgid));
	ddps_wbuf_u16(&w, r->dlid);
	ddps_wbuf_u16(&w, r->slid);
	ddps_wbuf_u32(&w, (r->flow & 0xfffff) << 8 | r->hop);
	ddps_wbuf_u8(&w, r->tclass);
	/* one path, and reversible, but for one to a group */
	ddps_wbuf_u8(&w, r->dgid[0] == 0xff ? 1 : 0x80 | 1);
	ddps_wbuf_u16(&w, r->pkey);
	ddps_wbuf_u16(&w, r->sl & 15);
	ddps_wbuf_u8(&w, r->mtu);
	ddps_wbuf_u8(&w, r->rate);
	ddps_wbuf_u8(&w, r->life);
}

void ddps_sa_pr_get(struct ddps_sa_pr *r, const uint8_t mad[DDPS_CM_MAD_LEN])
{
	struct ddps_rbuf b = record_in(mad);
	uint32_t v;

	ddps_rbuf_take(&b, 8);
	get_gid(r->dgid, &b);
	get_gid(r->sgid, &b);
	r->dlid = ddps_rbuf_u16(&b);
	r->slid = ddps_rbuf_u16(&b);
	v = ddps_rbuf_u32(&b);
	r->flow = v >> 8 & 0xfffff;
	r->hop = (uint8_t)v;
	r->tclass = ddps_rbuf_u8(&b);
	ddps_rbuf_take(&b, 1);
	r->pkey = ddps_rbuf_u16(&b);
	r->sl = ddps_rbuf_u16(&b) & 15;
	r->mtu = ddps_rbuf_u8(&b);
	r->rate = ddps_rbuf_u8(&b);
	r->life = ddps_rbuf_u8(&b);
}

/* 13.4.8.3 */
void ddps_sa_inform_put(uint8_t mad[DDPS_CM_MAD_LEN], const struct ddps_sa_inform *r)
{
	struct ddps_wbuf w = record_of(mad);

	ddps_wbuf_bytes(&w, r->gid, sizeof(r->gid));
	ddps_wbuf_u16(&w, r->lid_first);
	ddps_wbuf_u32(&w, 0);
	ddps_wbuf_u8(&w, r->generic);
	ddps_wbuf_u8(&w, r->subscribe);
	ddps_wbuf_u16(&w, r->type);
	ddps_wbuf_u16(&w, r->trap);
	ddps_wbuf_u32(&w, QPN_GSI << 8 | DDPS_CM_TIME_MAX);
	ddps_wbuf_u32(&w, 0xffffff); /* of any producer */
}

void ddps_sa_inform_get(struct ddps_sa_inform *r, const uint8_t mad[DDPS_CM_MAD_LEN])
{
	struct ddps_rbuf b = record_in(mad);
	uint8_t v;

	get_gid(r->gid, &b);
	r->lid_first = ddps_rbuf_u16(&b);
	ddps_rbuf_take(&b, 4);
	r->generic = ddps_rbuf_u8(&b) == 1;
	v = ddps_rbuf_u8(&b);
	r->subscribe = v == 1;
	r->wrong = v > 1;
	r->type = ddps_rbuf_u16(&b);
	r->trap = ddps_rbuf_u16(&b);
}

#define NOTICE_TYPE 0x83     /* generic; for information, as opensm has it */
#define NOTICE_FROM 0x000004 /* producer: a class manager */

/* 13.4.8.2, 14.2.5.1 */
void ddps_sa_notice_put(uint8_t mad[DDPS_CM_MAD_LEN], const struct ddps_sa_notice *n)
{
	struct ddps_wbuf w = record_of(mad);

	ddps_wbuf_u32(&w, (uint32_t)NOTICE_TYPE << 24 | NOTICE_FROM);
	ddps_wbuf_u16(&w, n->trap);
	ddps_wbuf_u16(&w, n->issuer_lid);
	ddps_wbuf_u64(&w, 0); /* toggle, count, 6 octets reserved */
	ddps_wbuf_bytes(&w, n->gid, sizeof(n->gid));
	w = ddps_wbuf_init(mad + OFF_RECORD + 64, DDPS_IPOIB_GID_LEN);
	ddps_wbuf_bytes(&w, n->issuer_gid, sizeof(n->issuer_gid));
}

int ddps_sa_notice_get(struct ddps_sa_notice *n, const uint8_t mad[DDPS_CM_MAD_LEN])
{
	struct ddps_rbuf b = record_in(mad);
	bool generic = ddps_rbuf_u32(&b) >> 31;

	n->trap = ddps_rbuf_u16(&b);
	n->issuer_lid = ddps_rbuf_u16(&b);
	ddps_rbuf_take(&b, 8);
	get_gid(n->gid, &b);
	ddps_rbuf_take(&b, 32);
	get_gid(n->issuer_gid, &b);
	return generic && n->trap >= 64 && n->trap <= 67 ? 0 : DDPS_E_UNSUPPORTED;
}
