/* SPDX-License-Identifier: BSD-2-Clause */
/* Parameters: defaults, what a caller of any release gives, checks, and what each layer below gets
 * of them. */
#include "session/session.h"
#include "common/sized.h"
#include <string.h>

#define DEFAULT_RD	 16
#define CONNECT_MS	 10000
#define SETUP_MS	 10000
#define FIRST_FPDU_MS	 60000
#define CLOSE_MS	 5000
#define KEEPALIVE_MS	 60000
#define LISTEN_SETUP_MS	 5000
#define LISTEN_BACKLOG	 1024
#define LISTEN_HALF_OPEN 1024
#define EP_DEPTH	 64
#define EP_SGE		 4
#define MAX_REGIONS	 65536
#define MULPDU_MIN	 128 /* RFC 5044 4.5 */

/* ---- structs of callers: docs/abi.md ---- */

static struct ddps_ctx_attr ddps_ctx_attr_defaults(void)
{
	return (struct ddps_ctx_attr){
		.struct_size = sizeof(struct ddps_ctx_attr),
		.max_ird = DDPS_RD_MAX,
		.max_ord = DDPS_RD_MAX,
		.max_regions = MAX_REGIONS,
	};
}

static struct ddps_conn_param ddps_conn_param_defaults(void)
{
	return (struct ddps_conn_param){
		.struct_size = sizeof(struct ddps_conn_param),
		.ird = DEFAULT_RD,
		.ord = DEFAULT_RD,
		.ulp_ird = DEFAULT_RD,
		.ulp_ord = DEFAULT_RD,
		.rtr = DDPS_RTR_ALL,
		.crc = true, /* [5044-4.4-5] */
		.connect_ms = CONNECT_MS,
		.setup_ms = SETUP_MS,
		.first_fpdu_ms = FIRST_FPDU_MS,
		.close_ms = CLOSE_MS,
		.keepalive_ms = KEEPALIVE_MS,
	};
}

static struct ddps_listen_param ddps_listen_param_defaults(void)
{
	return (struct ddps_listen_param){
		.struct_size = sizeof(struct ddps_listen_param),
		.backlog = LISTEN_BACKLOG,
		.max_half_open = LISTEN_HALF_OPEN,
		.setup_ms = LISTEN_SETUP_MS,
		.rtr = DDPS_RTR_ALL,
	};
}

static struct ddps_ep_attr ddps_ep_attr_defaults(void)
{
	return (struct ddps_ep_attr){
		.struct_size = sizeof(struct ddps_ep_attr),
		.sq_depth = EP_DEPTH,
		.rq_depth = EP_DEPTH,
		.max_sge = EP_SGE,
	};
}

DDPS_SIZED_FUNCTIONS(ddps_ctx_attr, secure, offsetof(struct ddps_ctx_attr, verbs_rules),
		     offsetof(struct ddps_ctx_attr, capture),
		     offsetof(struct ddps_ctx_attr, secure), sizeof(struct ddps_ctx_attr))
DDPS_SIZED_FUNCTIONS(ddps_conn_param, address_ms, offsetof(struct ddps_conn_param, local),
		     offsetof(struct ddps_conn_param, keepalive_ms),
		     offsetof(struct ddps_conn_param, shm), sizeof(struct ddps_conn_param))
DDPS_SIZED_FUNCTIONS(ddps_listen_param, user, sizeof(struct ddps_listen_param))
DDPS_SIZED_FUNCTIONS(ddps_ep_attr, reserved, sizeof(struct ddps_ep_attr))

/* ---- checks ---- */

int ddps_uri_check(const char *text, char *why, size_t len)
{
	struct ddps_uri uri = { 0 };

	if (len)
		why[0] = 0;
	return ddps_uri_parse(&uri, text, why, len);
}

int ddps_param_check(const struct ddps_conn_param *p, bool enhanced, bool initiator)
{
	static const uint8_t zero[sizeof p->reserved2];

	if (p->reserved || memcmp(p->reserved2, zero, sizeof zero) || p->ird > DDPS_RD_ULP ||
	    p->ord > DDPS_RD_ULP || p->ulp_ird > DDPS_RD_MAX || p->ulp_ord > DDPS_RD_MAX ||
	    p->need_ord > DDPS_RD_MAX)
		return DDPS_E_INVAL;
	if ((p->rtr & ~DDPS_RTR_ALL) || (p->max_mulpdu && p->max_mulpdu < MULPDU_MIN))
		return DDPS_E_INVAL;
	/* [6581-9.2-3] A responder takes one type at least; [6581-9.2-9] so does p2p. */
	if (!p->rtr && (!initiator || p->p2p))
		return DDPS_E_INVAL;
	if (initiator && p->p2p && p->plain)
		return DDPS_E_INVAL;
	if (p->private_data_len && !p->private_data)
		return DDPS_E_INVAL;
	/* [5044-7.1.1-19] [6581-9-d1] */
	if (p->private_data_len > (enhanced ? DDPS_PD_MAX_ENHANCED : DDPS_PD_MAX))
		return DDPS_E_TOO_LONG;
	return 0;
}

void ddps_param_nego(const struct ddps_conn_param *p, const struct ddps_ctx *ctx,
		     struct ddps_nego_local *l)
{
	*l = (struct ddps_nego_local){
		.max_ird = ctx->attr.max_ird,
		.max_ord = ctx->attr.max_ord,
		.ird = p->ird,
		.ord = p->ord,
		.ulp_ird = p->ulp_ird,
		.ulp_ord = p->ulp_ord,
		.need_ord = p->need_ord,
		.ird_hard = p->ird_hard,
		.p2p = p->p2p,
		.rtr = p->rtr,
	};
}

void ddps_param_llp(const struct ddps_conn_param *p, struct ddps_llp_param *lp)
{
	*lp = (struct ddps_llp_param){
		.crc = p->crc,
		.markers = p->markers,
		.shm = p->shm,
		.connect_ms = p->connect_ms,
		.setup_ms = p->setup_ms,
		.first_fpdu_ms = p->first_fpdu_ms,
		.close_ms = p->close_ms,
		.max_mulpdu = p->max_mulpdu,
		.keepalive_ms = p->keepalive_ms,
		.unacked_ms = p->unacked_ms,
	};
}

void ddps_setup_split(const struct ddps_setup *s, struct ddps_word *w, const uint8_t **pd,
		      size_t *pd_len, bool *has_word)
{
	memset(w, 0, sizeof *w);
	*pd = s->pd;
	*pd_len = s->pd_len;
	/* A rejection may lack the word. */
	*has_word = s->enhanced && s->pd_len >= DDPS_WORD_LEN;
	if (!*has_word)
		return;
	ddps_word_decode(w, s->pd);
	*pd += DDPS_WORD_LEN;
	*pd_len -= DDPS_WORD_LEN;
}

size_t ddps_setup_join(uint8_t *buf, const struct ddps_word *w, const void *pd, size_t len)
{
	size_t at = 0;

	if (w) {
		ddps_word_encode(w, buf);
		at = DDPS_WORD_LEN;
	}
	if (len)
		memcpy(buf + at, pd, len);
	return at + len;
}
