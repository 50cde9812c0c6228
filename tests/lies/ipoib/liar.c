/* SPDX-License-Identifier: BSD-2-Clause */
/* Which packet is of which kind, and what lies are made of. */
#include "lies/ipoib/world.h"
#include <string.h>

#define KINDS 18u
#define IP4   20u

static const struct row *row; /* NULL: the truth */
static bool telling;
static unsigned seen[2][KINDS];
static uint8_t firsts[2][KINDS][DATA_MAX];

/* ---- kinds ---- */

static unsigned mad_kind(const struct said *s)
{
	unsigned attr = ci_attr(s->m);

	if (s->p.len != CI_MAD)
		return K_OTHER;
	if (s->m[M_CLASS] == 3)
		return K_SA;
	return attr >= CI_REQ && attr <= CI_DREP ? 1u << (attr - CI_REQ) : K_OTHER;
}

static unsigned frame_kind(const struct said *s)
{
	const uint8_t *m = s->m;

	if (s->p.len >= 60 && cf_get16(m) == CI_ARP)
		return m[11] == 1 ? K_ARP_ASKS : K_ARP;
	if (s->p.len >= 92 && cf_get16(m) == CI_IP6 && m[CI_ENCAP + 40] == 136)
		return K_NA;
	return s->p.len > CI_ENCAP && cf_get16(m) == CI_IP4 ? K_ECHO : K_FRAME;
}

static unsigned get_liar_liar_kind(const struct said *s)
{
	if (s->p.op == (CI_UD | CI_ONLY))
		return s->p.qpn == 1 ? mad_kind(s) : frame_kind(s);
	if ((s->p.op & CI_TRANSPORT) == CI_RC)
		return s->p.op == CI_ACK ? K_ACK : K_RC;
	return K_OTHER;
}

/* ---- when ---- */

void liar_begin(const struct row *r)
{
	struct said s = { .kind = K_START };

	row = r;
	telling = r->mode & EARLY;
	memset(seen, 0, sizeof seen);
	r->act(r->number, &s);
}

void liar_case(bool begins)
{
	struct said s = { .kind = K_BEGIN };

	if (begins && !(row->mode & EARLY))
		memset(seen, 0, sizeof seen);
	telling = begins;
	if (begins)
		row->act(row->number, &s);
}

void liar_hears(struct said *s)
{
	bool in = s->from == SUITE;
	unsigned k = 0;

	s->kind = get_liar_liar_kind(s);
	while (1u << k != s->kind)
		k++;
	s->n = ++seen[in][k];
	if (s->n == 1)
		memcpy(firsts[in][k], s->m, s->p.len);
	s->first = firsts[in][k];
	s->kind |= in ? IN : 0;
	if (telling)
		row->act(row->number, s);
	if (s->kind == K_ACK && s->p.syndrome < 0x20 && !s->drop)
		port_acked(s->p.qpn, s->p.msn);
}

/* ---- what lies are made of ---- */

static struct ci_qp *latest_qp(void)
{
	struct ci_qp *qp = &world.ci->qp[0];

	for (unsigned i = 0; i < CI_QPS; i++)
		if (world.ci->qp[i].used)
			qp = &world.ci->qp[i];
	return qp;
}

void as_datagram(struct said *s)
{
	s->p.op = CI_UD | CI_ONLY;
	s->p.qpn = world.ci->me.qpn;
	s->p.qkey = world.ci->fab.used ? world.o.qkey : world.ci->qkey;
	s->p.src_qpn = world.target_qpn;
	s->p.ack_req = false;
}

void as_message(struct said *s)
{
	const struct ci_qp *qp = latest_qp();

	s->p.op = CI_ONLY;
	s->p.qpn = qp->qpn;
	s->p.psn = qp->epsn;
	s->p.ack_req = true;
	s->lid = SUITE;
}

void to_group(struct said *s)
{
	s->lid = world.ci->group[0].mlid;
	s->p.qpn = CI_MCAST_QPN;
}

void as_cm(struct said *s, unsigned attr)
{
	const struct ci *ci = world.ci;
	const struct ci_conn *c = &ci->conn[ci->n_conns ? ci->n_conns - 1 : 0];

	ci_mad(s->m, 7, 3, (uint16_t)attr, s->n + 0x500u);
	cf_put32(s->m + CM_LOCAL, c->peer_id);
	cf_put32(s->m + CM_REMOTE, c->id);
	s->p = ci_ud(ci, s->m, CI_MAD);
	s->p.qpn = s->p.src_qpn = 1;
	s->p.qkey = 0x80010000;
	s->lid = SUITE;
}

static void seal_liar_liar(uint8_t *h)
{
	uint32_t s = 0;

	cf_put16(h + 10, 0);
	for (unsigned i = 0; i < IP4; i += 2)
		s += cf_get16(h + i);
	s = (s & 0xffff) + (s >> 16);
	cf_put16(h + 10, (uint16_t) ~(s + (s >> 16)));
}

void longer(struct said *s, int n)
{
	uint8_t *h = s->m + CI_ENCAP;

	cf_put16(h + 2, (uint16_t)(cf_get16(h + 2) + n));
	seal_liar_liar(h);
	if (s->p.op == CI_FIRST)
		return;
	s->p.len = s->p.len + (size_t)n;
}

void piece(struct said *s, size_t len, size_t off, size_t n)
{
	static uint8_t whole[65536];
	struct ci *ci = world.ci;
	uint8_t *h = s->m + CI_ENCAP;

	cf_fill(whole + 8, len - 8, ci->seq);
	cf_put32(whole, 0);
	cf_put16(whole + 4, (uint16_t)ci->random);
	cf_put16(whole + 6, (uint16_t)ci->seq);
	memset(s->m, 0, CI_ENCAP + IP4);
	cf_put16(s->m, CI_IP4);
	h[0] = 0x45;
	cf_put16(h + 2, (uint16_t)(IP4 + n));
	cf_put16(h + 4, 0x7777);
	cf_put16(h + 6, (uint16_t)(off / 8 | (off + n < len ? 0x2000 : 0)));
	h[8] = 64;
	h[9] = 1;
	cf_put32(h + 12, ci->plan.target);
	cf_put32(h + 16, ci->me.ip);
	seal_liar_liar(h);
	memcpy(h + IP4, whole + off, n);
	s->p = ci_ud(ci, s->m, CI_ENCAP + IP4 + n);
	as_datagram(s);
	s->lid = SUITE;
}

bool is_join(const struct said *s)
{
	static const uint8_t ones[4] = { 0xff, 0xff, 0xff, 0xff };

	return s->kind == K_SA && s->m[M_METHOD] == SA_SET && ci_attr(s->m) == SA_MCMEMBER &&
	       memcmp(s->m + MC_MGID + 12, ones, 4) != 0;
}

bool is_inform(const struct said *s, unsigned trap)
{
	return s->kind == K_SA && ci_attr(s->m) == SA_INFORM && cf_get16(s->m + II_TRAP) == trap;
}

bool is_path(const struct said *s)
{
	return s->kind == K_SA && s->m[M_METHOD] == SA_GET && ci_attr(s->m) == SA_PATH;
}
