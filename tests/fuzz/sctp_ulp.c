/* SPDX-License-Identifier: BSD-2-Clause */
/* The layer above of fuzz_sctp.c: what goes up is as it may expect it (common/llp.h). */
#include "sctp_ulp.h"

void ulp_leave(struct ulp *u)
{
	struct ddps_llp *llp = u->llp;

	u->llp = NULL;
	if (llp)
		llp->ops->free(llp);
}

static void up_answer(void *user, const struct ddps_setup *s)
{
	struct ulp *u = user;

	FUZZ_CHECK(u->llp && u->initiator && !u->open && !u->refused && !u->closed);
	FUZZ_CHECK(s->pd_len <= DDPS_SD_PD_MAX && (!s->pd_len || s->pd));
	FUZZ_CHECK(!s->enhanced || s->reject || s->pd_len >= DDPS_SD_WORD_LEN);
	u->refused = s->reject;
	if (u->free_inside) {
		ulp_leave(u);
	} else if (!s->reject) {
		u->open = true;
		u->llp->ops->open(u->llp);
		u->llp->ops->kick(u->llp);
	}
}

static int up_tx_next(void *user, struct ddps_seg *seg, size_t mulpdu)
{
	static uint8_t octets[100];
	struct ulp *u = user;

	FUZZ_CHECK(u->llp && u->open && !u->closed && mulpdu >= DDPS_SD_MULPDU_MIN);
	if (u->pulled == u->to_send)
		return 0;
	u->pulled++;
	*seg = (struct ddps_seg){ .hdr_len = 18, .pay = { { octets, sizeof octets } } };
	seg->npay = 1;
	seg->pay_len = sizeof octets;
	return 1;
}

static void up_tx_done(void *user, unsigned n)
{
	struct ulp *u = user;

	FUZZ_CHECK(u->llp && n && !u->closed);
	u->done += n;
	FUZZ_CHECK(u->done <= u->pulled);
}

static int up_rx_segment(void *user, const uint8_t *seg, size_t len)
{
	struct ulp *u = user;
	uint8_t *copy;

	FUZZ_CHECK(u->llp && u->open && !u->refused && !u->closed && !u->peer_closed && !u->held);
	if (u->holding) {
		u->held = true;
		return DDPS_LLP_HOLD;
	}
	copy = fuzz_exact(seg, len);
	if (len >= 2)
		FUZZ_CHECK(copy[0] == u->next >> 8 && copy[1] == (u->next & 0xff));
	free(copy);
	u->next++;
	if (u->free_inside) {
		ulp_leave(u);
		return 0;
	}
	u->refused = u->refuse;
	return u->refuse ? -1 : 0;
}

static void up_peer_closed(void *user)
{
	struct ulp *u = user;

	FUZZ_CHECK(u->llp && u->open && !u->peer_closed && !u->closed && !u->held);
	u->peer_closed = true;
	if (u->free_inside)
		ulp_leave(u);
	else
		u->llp->ops->shutdown(u->llp);
}

static void up_peer_closing(void *user)
{
	struct ulp *u = user;

	FUZZ_CHECK(u->llp && u->open && !u->peer_closed && !u->closed && u->held);
}

static void up_closed(void *user, const struct ddps_error *e)
{
	struct ulp *u = user;

	(void)e;
	FUZZ_CHECK(u->llp && !u->closed);
	u->closed = true;
	if (u->free_inside)
		ulp_leave(u);
}

const struct ddps_llp_data ulp_data = {
	.tx_next = up_tx_next,
	.tx_done = up_tx_done,
	.rx_segment = up_rx_segment,
};

const struct ddps_llp_up ulp_up = {
	.answer = up_answer,
	.peer_closed = up_peer_closed,
	.peer_closing = up_peer_closing,
	.closed = up_closed,
};

struct ulp *ulp_new(struct world *w)
{
	struct ulp *u = &w->ulp[w->nulp];

	if (w->nulp == SESSIONS)
		return NULL;
	w->nulp++;
	*u = (struct ulp){ .w = w, .next = 1 };
	return u;
}

static void take_sctp_ulp_fuzz_request(void *user, struct ddps_llp *llp, const struct ddps_setup *s)
{
	struct ulp *u = ulp_new(user);

	FUZZ_CHECK(s->pd_len <= DDPS_SD_PD_MAX && !s->reject);
	if (!u) {
		llp->ops->free(llp);
		return;
	}
	llp->up = &ulp_up;
	llp->user = u;
	ddps_llp_attach(llp, &ulp_data, u);
	u->llp = llp;
	u->enhanced = s->enhanced;
}

static void on_listen_failed(void *user, const struct ddps_error *e)
{
	(void)user;
	(void)e;
}

const struct ddps_llp_listen_up ulp_listen_up = { .request = take_sctp_ulp_fuzz_request,
						  .failed = on_listen_failed };
