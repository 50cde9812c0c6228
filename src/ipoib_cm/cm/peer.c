/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connections to one neighbour.  RFC 4755 3.3 says who wins when two REQs cross, judged
 * by whether a REQ is outstanding.  A REQ or REJ that is lost or late escapes that rule: the
 * REQ comes again when nothing is outstanding any more, and a second connection comes up.
 * The RTU settles it here: it is the first message that proves the connection is up at both
 * ends, so an own attempt ends at an inbound RTU, and where both connections are up already
 * the node with the larger key, and only that one, closes its own.  tests/model has the proof.
 */
#include <string.h>
#include "ipoib_cm/cm/peer.h"
#include "ipoib_cm/wire/wire.h"

/* Events as the table takes them: distinguished by what else is known. */
enum xev {
	X_NONE, /* without effect on the own connection */
	X_TRAFFIC,
	X_REQ_ACCEPT,  /* own key is smaller */
	X_REQ_CONTEST, /* own key is larger: lost by a REQ that finds one outstanding */
	X_RTU_TWO,
	X_RTU_TWO_LARGER, /* own key is larger, and one connection is wanted */
	X_RTU_ONE,
	X_REP,
	X_REP_BAD,
	X_REJ_CROSSED,
	X_REJ_OTHER_FORM,
	X_REJ_STALE,
	X_REJ_BUSY,
	X_REJ_CONSUMER,
	X_FAIL,
	X_OWN_DOWN,
	NXEV
};

/* When to try again, in addition to the public actions. */
enum { BACKOFF = 1 << 16, BACKOFF_LONG = 1 << 17, BACKOFF_SOON = 1 << 18 };

/* Times policy->backoff_ns: longer than a REP whose RTU is lost takes to come again. */
#define PENDING_WAIT 2

#define OWN(name) DDPS_IPOIB_OWN_##name
#define DO(name)  DDPS_IPOIB_DO_##name

#define RULE(from, ev, to, what) [OWN(from)][X_##ev] = { OWN(to), what, true }

/* A cell left out: the event is late, and changes nothing. */
static const struct {
	enum ddps_ipoib_own next;
	unsigned acts;
	bool set;
} rule[DDPS_IPOIB_NOWN][NXEV] = {
	RULE(NONE, TRAFFIC, REQ_OUT, DO(CONNECT)),
	RULE(NONE, REQ_ACCEPT, NONE, DO(ACCEPT)),
	RULE(NONE, REQ_CONTEST, NONE, DO(ACCEPT)),

	RULE(REQ_OUT, REQ_ACCEPT, REQ_OUT, DO(ACCEPT)),	 /* [4755-3.3-4] own REQ goes on */
	RULE(REQ_OUT, REQ_CONTEST, REQ_OUT, DO(REFUSE)), /* [4755-3.3-5] [4755-3.3-6] */
	RULE(REQ_OUT, RTU_TWO, NONE, DO(WITHDRAW)),
	RULE(REQ_OUT, RTU_TWO_LARGER, NONE, DO(WITHDRAW)),
	RULE(REQ_OUT, REP, UP, DO(READY)),
	RULE(REQ_OUT, REP_BAD, FAILED, DO(REJECT_REP) | BACKOFF),
	RULE(REQ_OUT, REJ_CROSSED, NONE, 0),
	RULE(REQ_OUT, REJ_OTHER_FORM, REQ_OUT, DO(CONNECT)),
	RULE(REQ_OUT, REJ_STALE, FAILED, BACKOFF_SOON),
	RULE(REQ_OUT, REJ_BUSY, FAILED, BACKOFF_LONG),
	RULE(REQ_OUT, REJ_CONSUMER, FAILED, BACKOFF),
	RULE(REQ_OUT, FAIL, FAILED, DO(RESOLVE) | BACKOFF),
	RULE(REQ_OUT, OWN_DOWN, NONE, 0), /* given up here */

	RULE(UP, REQ_ACCEPT, UP, DO(ACCEPT)),
	RULE(UP, REQ_CONTEST, UP, DO(ACCEPT)),
	RULE(UP, RTU_TWO_LARGER, NONE, DO(CLOSE_OWN)),
	RULE(UP, OWN_DOWN, NONE, 0),

	RULE(FAILED, TRAFFIC, REQ_OUT, DO(CONNECT)),
	RULE(FAILED, REQ_ACCEPT, FAILED, DO(ACCEPT)),
	RULE(FAILED, REQ_CONTEST, FAILED, DO(ACCEPT)),
	RULE(FAILED, RTU_TWO, NONE, 0),
	RULE(FAILED, RTU_TWO_LARGER, NONE, 0),
};

void ddps_ipoib_peer_init(struct ddps_ipoib_peer *p, const struct ddps_ipoib_lladdr *local,
			  const struct ddps_ipoib_lladdr *remote, enum ddps_ipoib_sid_form form)
{
	const int order = ddps_ipoib_lladdr_cmp(local, remote);

	memset(p, 0, sizeof(*p));
	p->order = (int8_t)((order > 0) - (order < 0));
	p->form = form;
}

bool ddps_ipoib_peer_usable(const struct ddps_ipoib_peer *p, uint32_t *id)
{
	if (p->own == DDPS_IPOIB_OWN_UP)
		*id = p->own_id;
	else if (p->in_up && p->in_two_way)
		*id = p->in_id;
	else
		return false;
	return true;
}

bool ddps_ipoib_peer_knows(const struct ddps_ipoib_peer *p, uint32_t id)
{
	for (unsigned i = 0; i < p->n_pending; i++)
		if (p->pending[i] == id)
			return true;
	return (p->own_id && p->own_id == id) || (p->in_up && p->in_id == id);
}

/* Takes @id off the list of pending ones.  Return: whether it was there. */
static bool take_pending(struct ddps_ipoib_peer *p, uint32_t id)
{
	for (unsigned i = 0; i < p->n_pending; i++)
		if (p->pending[i] == id) {
			p->pending[i] = p->pending[--p->n_pending];
			return true;
		}
	return false;
}

static enum xev judge_traffic(const struct ddps_ipoib_peer *p, uint64_t now)
{
	uint32_t id;

	/* Nobody connects to himself. */
	if (!p->order || ddps_ipoib_peer_usable(p, &id))
		return X_NONE;
	/* A pending inbound connection may serve; but a peer that restarts forgets that it asked. */
	if (p->n_pending && now < p->pending_until)
		return X_NONE;
	if (p->own == DDPS_IPOIB_OWN_FAILED && now < p->retry_at)
		return X_NONE;
	return X_TRAFFIC;
}

static enum xev peer_req_in(const struct ddps_ipoib_peer *p, struct ddps_ipoib_peer_out *out)
{
	enum xev x = p->order < 0 ? X_REQ_ACCEPT : X_REQ_CONTEST;

	if (!p->order || p->n_pending == DDPS_IPOIB_PENDING_MAX) {
		if (p->order)
			out->reason = DDPS_CM_REJ_NO_RESOURCES;
		out->acts = DO(REFUSE);
		return X_NONE;
	}
	return x;
}

/* An inbound connection is up; one that it replaces goes. */
static enum xev peer_rtu_in(struct ddps_ipoib_peer *p, const struct ddps_ipoib_policy *policy,
			    const struct ddps_ipoib_peer_in *in, struct ddps_ipoib_peer_out *out)
{
	if (!take_pending(p, in->id))
		return X_NONE;
	if (p->in_up && !policy->many) {
		out->acts = DO(CLOSE_IN);
		out->in_id = p->in_id;
	}
	p->in_up = true;
	p->in_id = in->id;
	p->in_two_way = in->two_way;
	if (!in->two_way)
		return X_RTU_ONE;
	return p->order > 0 && !policy->many ? X_RTU_TWO_LARGER : X_RTU_TWO;
}

static enum xev rej_in(const struct ddps_ipoib_peer *p, uint16_t reason)
{
	switch (reason) {
	case DDPS_CM_REJ_CONSUMER:
		return p->crossed ? X_REJ_CROSSED : X_REJ_CONSUMER;
	case DDPS_CM_REJ_SERVICE_ID:
		return p->form_changed ? X_FAIL : X_REJ_OTHER_FORM;
	case DDPS_CM_REJ_STALE:
		return p->was_stale ? X_FAIL : X_REJ_STALE;
	case DDPS_CM_REJ_NO_QP:
	case DDPS_CM_REJ_NO_RESOURCES:
		return X_REJ_BUSY;
	default:
		return X_FAIL;
	}
}

static enum xev peer_down(struct ddps_ipoib_peer *p, uint32_t id)
{
	if (take_pending(p, id))
		return X_NONE;
	if (p->in_up && p->in_id == id) {
		p->in_up = false;
		return X_NONE;
	}
	if (p->own_id != id)
		return X_NONE;
	return X_OWN_DOWN;
}

static enum xev refine(struct ddps_ipoib_peer *p, const struct ddps_ipoib_policy *policy,
		       const struct ddps_ipoib_peer_in *in, struct ddps_ipoib_peer_out *out)
{
	switch (in->ev) {
	case DDPS_IPOIB_EV_TRAFFIC:
		return judge_traffic(p, in->now);
	case DDPS_IPOIB_EV_REQ:
		return peer_req_in(p, out);
	case DDPS_IPOIB_EV_RTU:
		return peer_rtu_in(p, policy, in, out);
	case DDPS_IPOIB_EV_DOWN:
		return peer_down(p, in->id);
	default:
		break;
	}
	if (in->id != p->own_id) /* about an attempt that is over */
		return X_NONE;
	switch (in->ev) {
	case DDPS_IPOIB_EV_REP:
		return X_REP;
	case DDPS_IPOIB_EV_REP_BAD:
		return X_REP_BAD;
	case DDPS_IPOIB_EV_REJ:
		return rej_in(p, in->reason);
	default:
		return X_FAIL;
	}
}

static void remember_peer_input(struct ddps_ipoib_peer *p, const struct ddps_ipoib_policy *policy,
				const struct ddps_ipoib_peer_in *in, enum xev x, unsigned acts)
{
	if (x == X_REJ_OTHER_FORM) {
		p->form = p->form == DDPS_IPOIB_SID_RFC ? DDPS_IPOIB_SID_LINUX : DDPS_IPOIB_SID_RFC;
		p->form_changed = true;
	}
	if (x == X_REJ_STALE)
		p->was_stale = true;
	else if (x == X_FAIL || x == X_REP)
		p->form_changed = p->was_stale = false; /* a form that worked stays */
	if (acts & DO(ACCEPT)) {
		p->pending[p->n_pending++] = in->id;
		if (p->n_pending == 1)
			p->pending_until = in->now + PENDING_WAIT * policy->backoff_ns;
		p->crossed = true;
	} else if (acts & DO(CONNECT)) {
		p->crossed = false;
		p->own_id = 0; /* until the caller has it */
	}
	if (acts & BACKOFF)
		p->retry_at = in->now + policy->backoff_ns;
	else if (acts & BACKOFF_LONG)
		p->retry_at = in->now + policy->long_ns;
	else if (acts & BACKOFF_SOON)
		p->retry_at = in->now + policy->soon_ns;
}

void ddps_ipoib_peer_step(struct ddps_ipoib_peer *p, const struct ddps_ipoib_policy *policy,
			  const struct ddps_ipoib_peer_in *in, struct ddps_ipoib_peer_out *out)
{
	enum xev x;
	unsigned acts;

	*out = (struct ddps_ipoib_peer_out){ .reason = DDPS_CM_REJ_CONSUMER };
	x = refine(p, policy, in, out);
	if (!rule[p->own][x].set)
		return;
	acts = rule[p->own][x].acts;
	out->own_id = p->own_id;
	p->own = rule[p->own][x].next;
	remember_peer_input(p, policy, in, x, acts);
	if (p->own != DDPS_IPOIB_OWN_REQ_OUT && p->own != DDPS_IPOIB_OWN_UP)
		p->own_id = 0; /* no connection has this ID */
	out->acts |= acts & (BACKOFF - 1);
}
