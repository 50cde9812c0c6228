/* SPDX-License-Identifier: BSD-2-Clause */
/* Associations, step by step. */
#include "conform/sctp/raw.h"
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define P_IPV4	     5u
#define P_COOKIE     7u
#define P_ADAPTATION 0xc006u

const uint8_t cf_raw_ddp[8] = { P_ADAPTATION >> 8, P_ADAPTATION & 0xff, 0, 8, 0, 0, 0, 1 };

/* An initiator calls: its INIT, whoever it is. */
static void hear_init(struct cf_raw *r)
{
	struct cf_raw_chunk c = cf_raw_want(r, CF_C_INIT);

	cf_raw_take_init(r, &c);
}

static void bare_listen(struct cf *cf, struct cf_raw *r, struct cf_assoc *as)
{
	struct cf_below *b = as->net->below;

	r->l = cf_link_new(as->net, b->listen_fd, false);
	CF_CHECK(cf, r->l, "out of memory");
	r->l->as = as;
	as->below = r->l;
	r->l->port = b->port;
	hear_init(r);
}

void cf_raw_bare(struct cf *cf, struct cf_raw *r)
{
	struct cf_assoc *as = cf_sctp_bare(cf);

	memset(r, 0, sizeof *r);
	r->cf = cf;
	if (cf->c->target == CF_INITIATOR)
		bare_listen(cf, r, as);
	else
		r->l = as->below;
	r->own_tsn = r->l->tsn;
	r->sack_cum = r->own_tsn - 1;
	cf->dialling = false;
	cf->res->awaited = false;
}

void cf_raw_put_own_init(struct cf_raw *r, uint8_t type, const void *params, size_t len)
{
	cf_raw_put_init(r, type, r->l->tag, CF_RWND, CF_SCTP_STREAMS, CF_SCTP_STREAMS, r->own_tsn,
			params, len);
}

void cf_raw_take_init(struct cf_raw *r, const struct cf_raw_chunk *c)
{
	size_t n = c->len - 16 < sizeof r->params ? c->len - 16 : sizeof r->params, len;
	const uint8_t *cookie;

	memcpy(r->params, c->v + 16, n);
	r->peer = (struct cf_raw_init){ .tag = cf_get32(c->v),
					.rwnd = cf_get32(c->v + 4),
					.os = cf_get16(c->v + 8),
					.mis = cf_get16(c->v + 10),
					.tsn = cf_get32(c->v + 12),
					.params = r->params,
					.params_len = n };
	r->l->peer_tag = r->peer.tag;
	r->l->cum = r->peer.tsn - 1;
	cookie = cf_raw_param(r->params, n, P_COOKIE, &len);
	if (c->type != CF_C_INIT_ACK)
		return;
	CF_CHECK(r->cf, cookie && len && len <= CF_COOKIE_MAX, "an INIT ACK without a cookie");
	memcpy(r->l->cookie, cookie, len);
	r->l->cookie_len = len;
}

void cf_raw_invite(struct cf_raw *r)
{
	struct cf_raw_chunk c;

	cf_raw_begin_tag(r, 0);
	cf_raw_put_own_init(r, CF_C_INIT, cf_raw_ddp, sizeof cf_raw_ddp);
	cf_raw_send(r);
	c = cf_raw_want(r, CF_C_INIT_ACK);
	cf_raw_take_init(r, &c);
}

void cf_raw_echo(struct cf_raw *r)
{
	cf_raw_say(r, CF_C_COOKIE_ECHO, 0, r->l->cookie, r->l->cookie_len);
}

void cf_raw_answer_init(struct cf_raw *r, const void *params, size_t len)
{
	uint8_t p[4096];
	size_t n = 4 + 18; /* a cookie whose length is no multiple of 4 */

	CF_CHECK(r->cf, sizeof cf_raw_ddp + 24 + len <= sizeof p, "case: too many parameters");
	memset(p, 0, sizeof p);
	r->l->cookie_len = 18;
	CF_CHECK(r->cf, getrandom(r->l->cookie, 18, 0) == 18, "no random numbers");
	cf_put16(p, P_COOKIE);
	cf_put16(p + 2, (uint16_t)n);
	memcpy(p + 4, r->l->cookie, 18);
	memcpy(p + 24, cf_raw_ddp, sizeof cf_raw_ddp);
	if (len)
		memcpy(p + 32, params, len);
	cf_raw_begin(r);
	cf_raw_put_own_init(r, CF_C_INIT_ACK, p, 32 + len);
	cf_raw_send(r);
}

struct cf_raw_chunk cf_raw_want_echo(struct cf_raw *r)
{
	struct cf_raw_chunk c = cf_raw_want(r, CF_C_COOKIE_ECHO);

	CF_CHECK(r->cf, c.len == r->l->cookie_len && !memcmp(c.v, r->l->cookie, c.len),
		 "COOKIE ECHO with %s, the cookie is %s", cf_hex(c.v, c.len),
		 cf_hex(r->l->cookie, r->l->cookie_len));
	return c;
}

void cf_raw_finish(struct cf_raw *r)
{
	r->old_tag = r->l->tag;
	if (r->cf->c->target == CF_RESPONDER) {
		cf_raw_invite(r);
		cf_raw_echo(r);
		cf_raw_want(r, CF_C_COOKIE_ACK);
		r->l->state = CF_L_UP;
		return;
	}
	cf_raw_answer_init(r, NULL, 0);
	cf_raw_want_echo(r);
	cf_raw_say(r, CF_C_COOKIE_ACK, 0, NULL, 0);
	r->l->state = CF_L_UP;
	cf_raw_want_data(r); /* its Initiate */
}

void cf_raw_new_address(struct cf_raw *r, uint8_t param[8])
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&r->l->to;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&r->l->to;
	bool loopback;

	loopback = r->l->to.ss_family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr)
						  : ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	cf_put16(param, P_IPV4);
	cf_put16(param + 2, 8);
	cf_put32(param + 4, loopback ? 0x7f090909 : 0xc6336409); /* 198.51.100.9: RFC 5737 */
}

void cf_raw_up(struct cf *cf, struct cf_raw *r)
{
	cf_raw_bare(cf, r);
	cf_raw_finish(r);
}
