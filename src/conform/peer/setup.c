/* SPDX-License-Identifier: BSD-2-Clause */
/* Set-up on either wire: MPA Request and Reply (RFC 5044 7.1), session chunks (RFC 5043 5.2.3). */
#include "conform/peer/inside.h"
#include <string.h>
#include <time.h>

#define KEY_LEN 16u
#define PD_MAX	512u

static const char key_req[] = "MPA ID Req Frame", key_rep[] = "MPA ID Rep Frame";

size_t cf_mpa_octets(const struct cf_mpa *f, uint8_t *b)
{
	memcpy(b, f->reply ? key_rep : key_req, KEY_LEN);
	b[16] = f->flags;
	b[17] = f->rev;
	cf_put16(b + 18, f->pd_len);
	memcpy(b + 20, f->pd, f->pd_len);
	return 20u + f->pd_len;
}

static void pause_behind_reply(const struct cf *cf)
{
	unsigned ms = cf->run->pause_ms;

	if (ms)
		nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
}

void cf_mpa_write(struct cf *cf, const struct cf_mpa *f)
{
	uint8_t b[CF_MPA_MAX];

	CF_CHECK(cf, f->pd_len <= sizeof f->pd, "case: private data of %u octets", f->pd_len);
	cf_tcp_write(cf, b, cf_mpa_octets(f, b));
	if (f->reply)
		pause_behind_reply(cf);
}

static bool is_known_rev(const struct cf_mpa *f)
{
	return f->rev == 1 || f->rev == 2;
}

void cf_mpa_read(struct cf *cf, struct cf_mpa *f)
{
	bool reply = cf->c->target == CF_RESPONDER;
	bool mine = cf_want(cf, "an MPA %s", reply ? "Reply" : "Request");
	uint64_t since = cf_now();
	uint8_t b[20];

	cf_tcp_read(cf, b, sizeof b);
	CF_CHECK(cf, !memcmp(b, reply ? key_rep : key_req, KEY_LEN), "wrong key: %s",
		 cf_hex(b, sizeof b));
	memset(f, 0, sizeof *f);
	f->reply = reply;
	f->flags = b[16];
	f->rev = b[17];
	f->pd_len = cf_get16(b + 18);
	CF_CHECK(cf, f->pd_len <= PD_MAX, "private data of %u octets", f->pd_len);
	cf_tcp_read(cf, f->pd, f->pd_len);
	if (is_known_rev(f))
		cf_heard(cf, CF_PART_SETUP, since);
	cf_wanted(cf, mine);
	if (reply)
		pause_behind_reply(cf);
}

void cf_ctrl_write(struct cf *cf, const struct cf_ctrl *c)
{
	uint8_t b[4 + sizeof c->pd];

	CF_CHECK(cf, c->pd_len <= sizeof c->pd, "case: private data of %u octets", c->pd_len);
	cf_put16(b, c->ssn);
	cf_put16(b + 2, c->code);
	memcpy(b + 4, c->pd, c->pd_len);
	cf_sctp_write(cf, c->stream, PPID_CONTROL, b, 4u + c->pd_len);
}

static void parse_ctrl(struct cf *cf, const struct cf_msg *m, struct cf_ctrl *c)
{
	CF_CHECK(cf, m->ppid == PPID_CONTROL, "expected a control chunk, got PPID %u: %s", m->ppid,
		 cf_hex(m->b, m->len));
	CF_CHECK(cf, m->unordered, "an ordered control chunk: %s", cf_hex(m->b, m->len));
	CF_CHECK(cf, m->len >= 4 && m->len <= 4 + PD_MAX, "control chunk of %zu octets", m->len);
	memset(c, 0, sizeof *c);
	c->stream = m->stream;
	c->ssn = cf_get16(m->b);
	c->code = cf_get16(m->b + 2);
	c->pd_len = (uint16_t)(m->len - 4);
	memcpy(c->pd, m->b + 4, c->pd_len);
}

void cf_ctrl_read(struct cf *cf, struct cf_ctrl *c)
{
	bool mine = cf_want(cf, "a session control chunk");
	uint64_t since = cf_now();

	parse_ctrl(cf, cf_sctp_read_ctrl(cf), c);
	cf_heard(cf, cf_part_of(cf), since);
	cf_wanted(cf, mine);
}

/* ---- whole sessions ---- */

/* The enhanced word and the user's private data. */
static uint16_t put_setup_private_data(struct cf *cf, const struct cf_opts *o, bool enhanced,
				       uint8_t *pd)
{
	bool given = o->ird_w || o->ord_w;
	uint16_t word = enhanced ? 4 : 0;

	CF_CHECK(cf, word + o->pd_len <= PD_MAX, "case: too much private data");
	if (enhanced) {
		cf_put16(pd, given ? o->ird_w : 16);
		cf_put16(pd + 2, given ? o->ord_w : 16);
	}
	if (o->pd_len)
		memcpy(pd + word, o->pd, o->pd_len);
	return (uint16_t)(word + o->pd_len);
}

void cf_mpa_agree(struct cf *cf, const struct cf_mpa *f)
{
	cf->conn->crc = (f->flags | cf->mpa.flags) & CF_MPA_C;
	cf->conn->tx_markers = cf->mpa.flags & CF_MPA_M;
	cf->conn->rx_markers = f->flags & CF_MPA_M;
	cf->conn->session = true;
}

static void expect_established(struct cf *cf, bool p2p)
{
	/* Peer to peer it is when the RTR has passed: the case's matter. */
	if (cf->self && !p2p)
		cf->app.established = cf_app_event(cf, DDPS_EV_ESTABLISHED);
}

/* After the frame was written. */
static void mpa_exchange(struct cf *cf, const struct cf_mpa *f)
{
	if (cf->c->target == CF_RESPONDER) {
		bool mine = cf_want(cf, "an MPA Reply of Rev 1 or 2 that accepts the request");

		cf_app_answer(cf);
		cf_mpa_read(cf, &cf->mpa);
		CF_CHECK(cf, is_known_rev(&cf->mpa), "a Reply of Rev %u", cf->mpa.rev);
		CF_CHECK(cf, !(cf->mpa.flags & CF_MPA_R), "the target rejected the request");
		cf_wanted(cf, mine);
	}
	cf_mpa_agree(cf, f);
}

void cf_mpa_rest(struct cf *cf, const struct cf_mpa *f)
{
	mpa_exchange(cf, f);
	expect_established(cf, f->rev > 1 && f->flags & CF_MPA_S && f->pd[0] & 0x80);
}

void cf_mpa_session(struct cf *cf, const struct cf_mpa *f)
{
	if (!cf->conn)
		cf_open(cf);
	cf_mpa_write(cf, f);
	cf_mpa_rest(cf, f);
}

static void mpa_session(struct cf *cf, const struct cf_opts *o)
{
	struct cf_mpa f = { .reply = cf->c->target == CF_INITIATOR, .rev = o->plain ? 1 : 2 };
	bool enhanced = !o->plain;

	if (f.reply) {
		cf_mpa_read(cf, &cf->mpa);
		enhanced = cf->mpa.flags & CF_MPA_S;
		f.rev = cf->mpa.rev;
	}
	f.flags = (uint8_t)((enhanced ? CF_MPA_S : 0) | (o->no_crc ? 0 : CF_MPA_C) |
			    (o->markers ? CF_MPA_M : 0));
	f.pd_len = put_setup_private_data(cf, o, enhanced, f.pd);
	cf_mpa_write(cf, &f);
	mpa_exchange(cf, &f);
}

static void sctp_responder(struct cf *cf, const struct cf_opts *o)
{
	struct cf_ctrl c = { .stream = o->stream };

	c.code = o->plain ? CF_INITIATE : CF_ENH_INITIATE;
	c.pd_len = put_setup_private_data(cf, o, !o->plain, c.pd);
	cf_ctrl_write(cf, &c);
	cf_app_answer(cf);
	cf_ctrl_read(cf, &cf->ctrl);
	CF_CHECK(cf, cf->ctrl.code == (o->plain ? CF_ACCEPT : CF_ENH_ACCEPT),
		 "expected an Accept, got function code %u", cf->ctrl.code);
	CF_CHECK(cf, cf->ctrl.stream == o->stream && !cf->ctrl.ssn, "Accept on stream %u, SSN %u",
		 cf->ctrl.stream, cf->ctrl.ssn);
}

static void sctp_initiator(struct cf *cf, const struct cf_opts *o)
{
	struct cf_ctrl c = { 0 };
	bool enhanced;

	cf_ctrl_read(cf, &cf->ctrl);
	enhanced = cf->ctrl.code == CF_ENH_INITIATE;
	CF_CHECK(cf, enhanced || cf->ctrl.code == CF_INITIATE,
		 "expected an Initiate, got function code %u", cf->ctrl.code);
	c.stream = cf->ctrl.stream;
	c.code = enhanced ? CF_ENH_ACCEPT : CF_ACCEPT;
	c.pd_len = put_setup_private_data(cf, o, enhanced, c.pd);
	cf_ctrl_write(cf, &c);
}

void cf_session(struct cf *cf, const struct cf_opts *o)
{
	static const struct cf_opts none;
	bool responder = cf->c->target == CF_RESPONDER;

	o = o ? o : &none;
	cf->app.param.crc = !o->no_crc;
	cf->app.param.markers = o->target_markers;
	if (!cf->conn || cf->conn->session)
		cf_open(cf);
	if (cf->wire == CF_TCP)
		mpa_session(cf, o);
	else
		(responder ? sctp_responder : sctp_initiator)(cf, o);
	cf->conn->session = true;
	cf->conn->stream = cf->ctrl.stream;
	cf->conn->tx_ssn = cf->conn->rx_ssn = 1;
	expect_established(cf, o->ird_w & CF_A);
}
