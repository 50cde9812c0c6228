/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queries and their answers; what they find is in sa_record.c and sa_path.c, tables in sa_table.c, groups in
 * sa_group.c, reports in sa_report.c, GIDs in sa_gid.c.
 */
#include "ipoib_cm/sa/sa_in.h"
#include <stdlib.h>
#include <string.h>

#define CAP_MCAST      0x0200 /* UD multicast */
#define CAP_BY_CAPS    0x2000 /* ports are found by what they can do */
#define CAP2_SEND_FULL 0x1000 /* join state SendOnlyFullMember */
#define RESP_TIME      18

struct ddps_sa *ddps_sa_new(const struct ddps_sa_config *cfg)
{
	struct ddps_sa *sa = calloc(1, sizeof(*sa));

	if (!sa)
		return NULL;
	sa->cfg = *cfg;
	ddps_sa_broadcast_groups(sa);
	(void)ddps_sa_learn(sa, cfg->gid, cfg->lid, 0);
	return sa;
}

void ddps_sa_free(struct ddps_sa *sa)
{
	for (unsigned i = 0; sa && i < DDPS_SA_TABLES; i++)
		ddps_sa_table_free(&sa->table[i]);
	free(sa);
}

const struct ddps_sa_stats *ddps_sa_stats(const struct ddps_sa *sa)
{
	return &sa->stats;
}

/* 13.4.8.1 */
static uint16_t class_port_info(uint8_t *mad)
{
	struct ddps_wbuf w = ddps_wbuf_init(ddps_sa_record(mad), DDPS_SA_RECORD_LEN);

	memset(ddps_sa_record(mad), 0, DDPS_SA_RECORD_LEN);
	ddps_wbuf_u8(&w, 1);
	ddps_wbuf_u8(&w, DDPS_SA_VERSION);
	ddps_wbuf_u16(&w, CAP_MCAST | CAP_BY_CAPS);
	ddps_wbuf_u32(&w, CAP2_SEND_FULL << 5 | RESP_TIME);
	return DDPS_SA_OK;
}

/* A single record, or a table of them; @table: it is on its way. */
static uint16_t find_sa_records(struct ddps_sa *sa, uint16_t slid, const struct ddps_sa_head *h,
				uint8_t *mad, uint64_t now, bool *table)
{
	struct sa_found f = { .all = h->method == DDPS_SA_GET_TABLE };
	uint16_t status;

	if (h->attr == DDPS_SA_PATH_RECORD)
		status = ddps_sa_find_paths(sa, slid, h, mad, &f, now);
	else
		status = ddps_sa_find_records(sa, h, mad, &f);
	if (!status && f.all) {
		ddps_sa_record_size(mad, f.stride);
		status = ddps_sa_table_send(sa, slid, h, mad, &f, now);
		*table = !status;
	} else if (!status && f.failed) {
		status = DDPS_SA_NO_RESOURCES;
	} else if (!status && !f.n) {
		status = DDPS_SA_NO_RECORDS;
	} else if (!status && f.n > 1 && h->attr != DDPS_SA_PATH_RECORD) {
		status = DDPS_SA_TOO_MANY; /* 15.4.4; of paths the first one will do */
	} else if (!status) {
		memset(ddps_sa_record(mad), 0, DDPS_SA_RECORD_LEN);
		memcpy(ddps_sa_record(mad), f.data, f.stride);
		ddps_sa_record_size(mad, f.stride);
	}
	free(f.data);
	return status;
}

static uint16_t answer_query(struct ddps_sa *sa, uint16_t slid, const struct ddps_sa_head *h,
			     uint8_t *mad, uint64_t now, bool *table)
{
	switch (h->method << 16 | h->attr) {
	case DDPS_SA_GET << 16 | DDPS_SA_CLASS_PORT_INFO:
		return class_port_info(mad);
	case DDPS_SA_GET << 16 | DDPS_SA_PATH_RECORD:
	case DDPS_SA_GET_TABLE << 16 | DDPS_SA_PATH_RECORD:
	case DDPS_SA_GET << 16 | DDPS_SA_NODE_RECORD:
	case DDPS_SA_GET_TABLE << 16 | DDPS_SA_NODE_RECORD:
	case DDPS_SA_GET << 16 | DDPS_SA_PORT_INFO_RECORD:
	case DDPS_SA_GET_TABLE << 16 | DDPS_SA_PORT_INFO_RECORD:
	case DDPS_SA_GET << 16 | DDPS_SA_SM_INFO_RECORD:
	case DDPS_SA_GET_TABLE << 16 | DDPS_SA_SM_INFO_RECORD:
	case DDPS_SA_GET << 16 | DDPS_SA_MCMEMBER_RECORD:
	case DDPS_SA_GET_TABLE << 16 | DDPS_SA_MCMEMBER_RECORD:
		return find_sa_records(sa, slid, h, mad, now, table);
	case DDPS_SA_SET << 16 | DDPS_SA_MCMEMBER_RECORD:
		return ddps_sa_group_join(sa, slid, h, mad, now);
	case DDPS_SA_DELETE << 16 | DDPS_SA_MCMEMBER_RECORD:
		return ddps_sa_group_leave(sa, slid, h, mad, now);
	case DDPS_SA_SET << 16 | DDPS_SA_INFORM_INFO:
		return ddps_sa_subscribe(sa, slid, mad);
	default:
		return DDPS_SA_UNSUPPORTED;
	}
}

static void count_refusal(struct ddps_sa_stats *st, uint16_t status)
{
	st->sa_ref_unsupported += status == DDPS_SA_UNSUPPORTED;
	st->sa_ref_room += status == DDPS_SA_NO_RESOURCES;
	st->sa_ref_invalid += status == DDPS_SA_REQ_INVALID;
	st->sa_ref_none += status == DDPS_SA_NO_RECORDS;
	st->sa_ref_many += status == DDPS_SA_TOO_MANY;
	st->sa_ref_gid += status == DDPS_SA_INVALID_GID;
	st->sa_ref_few += status == DDPS_SA_TOO_FEW;
}

static void take_sa_mad(struct ddps_sa *sa, uint16_t slid, const uint8_t mad[DDPS_CM_MAD_LEN],
			uint64_t now)
{
	uint8_t out[DDPS_CM_MAD_LEN];
	struct ddps_rmpp r;
	struct ddps_sa_head h;
	bool table = false;

	if (ddps_sa_mad_head(&h, mad) || !slid || slid >= DDPS_SA_LIDS) {
		sa->stats.sa_bad++;
		return;
	}
	sa->port[slid].there = true;
	sa->undecided = false;
	if (h.method == (DDPS_SA_REPORT | DDPS_SA_RESPONSE)) {
		ddps_sa_heard(sa, slid, h.tid);
		return;
	}
	if (h.method & DDPS_SA_RESPONSE) {
		sa->stats.sa_bad++;
		return;
	}
	if (h.method == DDPS_SA_GET_TABLE && ddps_sa_rmpp_get(&r, mad) &&
	    r.type != DDPS_RMPP_DATA) {
		ddps_sa_table_heard(sa, slid, h.tid, &r, now);
		return;
	}
	/* header and component mask come back, RMPP and SM_Key are 0; so is a changed record */
	ddps_sa_mad_begin(out, &h);
	memcpy(ddps_sa_record(out), mad + (DDPS_CM_MAD_LEN - DDPS_SA_RECORD_LEN),
	       DDPS_SA_RECORD_LEN);
	memcpy(out + 20, mad + 20, 4); /* attribute modifier */
	out[3] = h.method == DDPS_SA_GET || h.method == DDPS_SA_SET
			 ? DDPS_SA_GET_RESP
			 : (uint8_t)(h.method | DDPS_SA_RESPONSE);
	h.status = answer_query(sa, slid, &h, out, now, &table);
	if (sa->undecided)
		return;
	sa->stats.sa_queries++;
	sa->stats.sa_refused += h.status != DDPS_SA_OK;
	count_refusal(&sa->stats, h.status);
	if (table)
		return;
	out[4] = (uint8_t)(h.status >> 8);
	out[5] = (uint8_t)h.status;
	sa->cfg.send(sa->cfg.user, slid, out);
}

void ddps_sa_rx(struct ddps_sa *sa, uint16_t slid, const uint8_t mad[DDPS_CM_MAD_LEN], uint64_t now)
{
	take_sa_mad(sa, slid, mad, now);
	ddps_sa_check(sa);
}
