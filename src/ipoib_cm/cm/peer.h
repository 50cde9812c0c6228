/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_IPOIB_PEER_H
#define DDPS_IPOIB_PEER_H
/*
 * The connections to one neighbour: whether to ask for one, whether to accept one, and which
 * of two goes when both ends asked at the same time (RFC 4755 3.3, and what the RFC leaves open).
 *
 * An inbound connection is one that the neighbour asked for, the own one is ours.  Messages
 * and timers are cm.c's; the caller passes its reports in and carries the actions out.
 */
#include <ddpsess/ipoib_if.h>

#define DDPS_IPOIB_PENDING_MAX 4 /* accepted and not yet up; more are refused, reason 3 */

/* The own connection. */
enum ddps_ipoib_own {
	DDPS_IPOIB_OWN_NONE,
	DDPS_IPOIB_OWN_REQ_OUT,
	DDPS_IPOIB_OWN_UP,
	DDPS_IPOIB_OWN_FAILED, /* not before retry_at again */
	DDPS_IPOIB_NOWN
};

enum ddps_ipoib_peer_event {
	DDPS_IPOIB_EV_TRAFFIC, /* a packet that could use a connection */
	DDPS_IPOIB_EV_REQ,     /* admissible (admit.h); connection id waits for an answer */
	DDPS_IPOIB_EV_RTU,     /* id is up; two_way says whether the RTU carried a UD QPN */
	DDPS_IPOIB_EV_REP,     /* admissible */
	DDPS_IPOIB_EV_REP_BAD,
	DDPS_IPOIB_EV_REJ,     /* reason */
	DDPS_IPOIB_EV_TIMEOUT, /* of the own REQ */
	DDPS_IPOIB_EV_DOWN,    /* id has ended in any other way */
};

enum {
	DDPS_IPOIB_DO_CONNECT = 1 << 0,	   /* REQ with service IDs of the form peer->form */
	DDPS_IPOIB_DO_READY = 1 << 1,	   /* RTU for the own connection */
	DDPS_IPOIB_DO_REJECT_REP = 1 << 2, /* REJ 28 for it */
	DDPS_IPOIB_DO_ACCEPT = 1 << 3,	   /* REP for the REQ */
	DDPS_IPOIB_DO_REFUSE = 1 << 4,	   /* REJ for the REQ, out->reason */
	DDPS_IPOIB_DO_WITHDRAW = 1 << 5,   /* end own attempt out->own_id */
	DDPS_IPOIB_DO_CLOSE_OWN = 1 << 6,  /* DREQ for out->own_id */
	DDPS_IPOIB_DO_CLOSE_IN = 1 << 7,   /* DREQ for out->in_id, replaced by a newer one */
	DDPS_IPOIB_DO_RESOLVE = 1 << 8,	   /* the address may be out of date */
};

struct ddps_ipoib_peer {
	enum ddps_ipoib_own own;
	uint32_t own_id; /* REQ_OUT, UP */
	uint32_t in_id;	 /* if in_up */
	uint32_t pending[DDPS_IPOIB_PENDING_MAX];
	uint8_t n_pending;
	int8_t order; /* own key compared with the neighbour's: below 0 = own is smaller */
	bool in_up, in_two_way;
	bool crossed;	   /* an inbound REQ was accepted since the own REQ */
	bool form_changed; /* the other form of service ID is being tried */
	bool was_stale;	   /* the last attempt ended with reason 10 */
	enum ddps_ipoib_sid_form form;
	uint64_t retry_at;
	uint64_t pending_until; /* no own REQ before: the first of these may serve */
};

struct ddps_ipoib_peer_in {
	enum ddps_ipoib_peer_event ev;
	uint32_t id;
	uint16_t reason;
	bool two_way;
	uint64_t now;
};

struct ddps_ipoib_peer_out {
	unsigned acts; /* 0: nothing to do */
	uint16_t reason;
	uint32_t own_id, in_id;
};

/* @form: of the service ID to try first. */
void ddps_ipoib_peer_init(struct ddps_ipoib_peer *p, const struct ddps_ipoib_lladdr *local,
			  const struct ddps_ipoib_lladdr *remote, enum ddps_ipoib_sid_form form);

/*
 * After DDPS_IPOIB_DO_CONNECT the caller stores the new connection's ID in @p->own_id, or
 * reports DDPS_IPOIB_EV_TIMEOUT if it could not be made.
 */
void ddps_ipoib_peer_step(struct ddps_ipoib_peer *p, const struct ddps_ipoib_policy *policy,
			  const struct ddps_ipoib_peer_in *in, struct ddps_ipoib_peer_out *out);

/*
 * The connection that unicast packets take now.  Of two the own one: if it is half open
 * because its far end gave up, this is how that comes to light.
 * Return: whether there is one; else datagrams are used.
 */
bool ddps_ipoib_peer_usable(const struct ddps_ipoib_peer *p, uint32_t *id);

/* Whether @id is one of these connections: asked for, pending or up. */
bool ddps_ipoib_peer_knows(const struct ddps_ipoib_peer *p, uint32_t id);

#endif
