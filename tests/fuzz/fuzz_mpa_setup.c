/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The set-up frames of MPA, the enhanced word in them, and the start-up machine of both roles:
 * a frame comes in octet by octet, and whatever else may happen follows it.
 */
#include "common/term_codes.h"
#include "fuzz.h"
#include "mpa_tcp/mpa_sm.h"
#include "mpa_tcp/mpa_wire.h"
#include "negotiate/negotiate.h"

/* ---- frames ---- */

/* What was read is what is written again, but for bits that are not looked at. */
static void encode_again(const struct ddps_mpa_frame *f, enum ddps_mpa_kind kind, size_t len)
{
	uint8_t buf[DDPS_MPA_FRAME_MAX];
	struct ddps_mpa_frame g = { 0 };
	const char *why = "";
	size_t need = 0, n = ddps_mpa_frame_encode(buf, kind, f);

	FUZZ_CHECK(n == len);
	FUZZ_CHECK(ddps_mpa_frame_decode(&g, kind, buf, n, &need, &why) == 1 && need == n);
	FUZZ_CHECK(g.markers == f->markers && g.crc == f->crc && g.reject == f->reject);
	FUZZ_CHECK(g.enhanced == f->enhanced && g.rev == f->rev && g.pd_len == f->pd_len);
	FUZZ_CHECK(!memcmp(g.pd, f->pd, f->pd_len));
}

/* All beginnings of @p: more octets never take back what fewer have shown. */
static int decode_mpa_setup_fuzz(struct ddps_mpa_frame *f, enum ddps_mpa_kind kind,
				 const uint8_t *p, size_t n)
{
	size_t need = DDPS_MPA_HDR_LEN, was = 0;
	const char *why = NULL;
	int r = 0;

	for (size_t len = 0; len <= n && !r; len++) {
		uint8_t *exact = fuzz_exact(p, len);

		r = ddps_mpa_frame_decode(f, kind, exact, len, &need, &why);
		free(exact);
		FUZZ_CHECK(r < 0 || need >= was);
		FUZZ_CHECK(r != 1 || need == len);
		FUZZ_CHECK(r || need > len);
		FUZZ_CHECK(r >= 0 || (why && *why));
		FUZZ_CHECK(need <= DDPS_MPA_FRAME_MAX);
		was = need;
	}
	if (r != 1)
		return r;
	FUZZ_CHECK(ddps_mpa_frame_decode(f, kind, p, n, &need, &why) == 1 && need <= n);
	FUZZ_CHECK(!f->pd_len || (f->pd == p + DDPS_MPA_HDR_LEN));
	FUZZ_CHECK(!f->enhanced || f->pd_len >= DDPS_WORD_LEN);
	FUZZ_CHECK(kind == DDPS_MPA_REPLY || !f->reject);
	encode_again(f, kind, need);
	return 1;
}

/* ---- the enhanced word ---- */

static uint16_t depth(struct ddps_rbuf *in)
{
	unsigned v = ddps_rbuf_u16(in);

	return v & 0x8000 ? DDPS_RD_ULP : (uint16_t)(v & 0x3f);
}

static struct ddps_nego_local read_local(struct ddps_rbuf *in)
{
	unsigned b = ddps_rbuf_u8(in);
	struct ddps_nego_local l = { .max_ird = ddps_rbuf_u8(in) };

	l.max_ord = ddps_rbuf_u8(in);
	l.ird = depth(in);
	l.ord = depth(in);
	l.ulp_ird = ddps_rbuf_u8(in) & 0x3f;
	l.ulp_ord = ddps_rbuf_u8(in) & 0x3f;
	l.need_ord = ddps_rbuf_u8(in) & 7;
	l.ird_hard = b & 1;
	l.p2p = b & 2;
	l.rtr = b >> 2 & DDPS_RTR_ALL;
	return l;
}

static void check_result(const struct ddps_nego_local *l, const struct ddps_nego_result *res)
{
	FUZZ_CHECK(res->ird <= l->max_ird || res->ird == DDPS_RD_ULP);
	FUZZ_CHECK(res->ord <= l->max_ord || res->ord == DDPS_RD_ULP);
	FUZZ_CHECK(!(res->rtr & ~DDPS_RTR_ALL));
	FUZZ_CHECK(!(res->rtr & ~l->rtr));
}

/* @word is the peer's: a request to answer, or the reply to a request of ours. */
static void negotiate(const uint8_t word[DDPS_WORD_LEN], struct ddps_rbuf *in)
{
	struct ddps_nego_local l = read_local(in);
	struct ddps_nego_result res = { 0 };
	unsigned b = ddps_rbuf_u8(in);
	struct ddps_word peer, own = { 0 }, again;
	uint8_t out[DDPS_WORD_LEN];

	ddps_word_decode(&peer, word);
	FUZZ_CHECK(peer.ird <= DDPS_RD_ULP && peer.ord <= DDPS_RD_ULP);
	FUZZ_CHECK(peer.p2p || !peer.rtr);
	ddps_word_encode(&peer, out);
	ddps_word_decode(&again, out);
	FUZZ_CHECK(again.p2p == peer.p2p && again.rtr == peer.rtr && again.ird == peer.ird &&
		   again.ord == peer.ord);
	if (ddps_nego_respond(&l, &peer, b & 1, b & 2, &own, &res) == DDPS_NEGO_ACCEPT) {
		check_result(&l, &res);
		ddps_word_encode(&own, out);
		ddps_word_decode(&again, out);
		FUZZ_CHECK(again.ird == own.ird && again.ord == own.ord && again.p2p == own.p2p);
	}
	res = (struct ddps_nego_result){ 0 };
	if (!ddps_nego_request(&l, &own)) {
		int code = ddps_nego_accept(&l, &own, &peer, &res);

		FUZZ_CHECK(!code || code == DDPS_TERM_MPA_IRD || code == DDPS_TERM_MPA_RTR);
		if (!code)
			check_result(&l, &res);
		FUZZ_CHECK(code || !(res.rtr & (res.rtr - 1)));
	}
}

/* ---- the machine ---- */

struct machine {
	enum ddps_mpa_state state;
	unsigned rx_on, replies, requests, opened, closed;
};

static void take_mpa_setup_fuzz_event(struct machine *m, enum ddps_mpa_event ev)
{
	enum ddps_mpa_state was = m->state;
	unsigned acts = ddps_mpa_sm_step(&m->state, ev);

	FUZZ_CHECK(acts || m->state == was);
	FUZZ_CHECK(was != DDPS_MPA_CLOSED || m->state == DDPS_MPA_CLOSED);
	m->rx_on += (acts & DDPS_MPA_DO_RX_ON) != 0;
	m->replies += (acts & DDPS_MPA_DO_SEND_REPLY) != 0;
	m->requests += (acts & DDPS_MPA_DO_SEND_REQUEST) != 0;
	m->opened += (acts & DDPS_MPA_DO_OPEN_FENCE) != 0;
	m->closed += (acts & DDPS_MPA_DO_CLOSE) != 0;
	FUZZ_CHECK(m->rx_on <= 1 && m->replies + m->requests <= 1 && m->opened <= 1);
	FUZZ_CHECK(m->closed <= 1 && (m->closed == 1) == (m->state == DDPS_MPA_CLOSED));
	/* Nothing is sent before reception is on, nor by a responder behind its fence. */
	FUZZ_CHECK(!(acts & DDPS_MPA_DO_SEND) || (m->rx_on && (m->requests || m->opened)));
	FUZZ_CHECK(!m->opened || m->rx_on);
}

static enum ddps_mpa_event of_frame(int r, const struct ddps_mpa_frame *f, bool initiator)
{
	if (r < 0)
		return DDPS_MPA_EV_BAD_FRAME;
	if (!r)
		return DDPS_MPA_EV_PART;
	if (!initiator)
		return DDPS_MPA_EV_REQUEST_OK;
	return f->reject ? DDPS_MPA_EV_REPLY_REJECT : DDPS_MPA_EV_REPLY_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ddps_rbuf in = ddps_rbuf_init(data, size);
	unsigned b = ddps_rbuf_u8(&in);
	bool initiator = b & 1;
	enum ddps_mpa_kind kind = initiator ? DDPS_MPA_REPLY : DDPS_MPA_REQUEST;
	size_t n;
	uint8_t *frame;
	struct machine m = { .state = DDPS_MPA_IDLE };
	struct ddps_mpa_frame f = { 0 };
	const char *why = NULL;
	const uint8_t *p = fuzz_some(&in, ddps_rbuf_u16(&in) % 1024, &n);
	int r;

	frame = fuzz_exact(p, n);
	take_mpa_setup_fuzz_event(&m, initiator ? DDPS_MPA_EV_INITIATE : DDPS_MPA_EV_RESPOND);
	r = decode_mpa_setup_fuzz(&f, kind, frame, n);
	if (r == 1 && initiator && ddps_mpa_reply_fits(&f, b & 2, &why)) {
		FUZZ_CHECK(!f.reject && f.enhanced != !!(b & 2) && why);
		r = DDPS_E_PROTOCOL;
	}
	take_mpa_setup_fuzz_event(&m, of_frame(r, &f, initiator));
	if (r == 1 && f.enhanced)
		negotiate(f.pd, &in);
	free(frame);
	for (int i = 0; i < 64 && fuzz_more(&in); i++)
		take_mpa_setup_fuzz_event(
			&m, (enum ddps_mpa_event)(ddps_rbuf_u8(&in) % DDPS_MPA_NEVENT));
	return 0;
}
