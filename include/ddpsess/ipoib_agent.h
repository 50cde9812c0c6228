/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_IPOIB_AGENT_H
#define DDPSESS_IPOIB_AGENT_H
/*
 * A connection manager (<ddpsess/ib_cm.h>) on a port (<ddpsess/ipoib_port.h>), without an
 * interface: it joins the link, answers ARP for one IPv4 address so that others find it, takes REQs
 * for the service IDs of both forms, and carries the messages of communication management both
 * ways.  What becomes of a REQ is its owner's decision.  For testers, and for programs that want
 * connections of their own.
 *
 * One thread at a time.  No function blocks.  Times are as in <ddpsess/ipoib_if.h>.  Errors are
 * DDPS_E_*.  Part of libddpsess-ipoib.
 */
#include <ddpsess/ipoib_if.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ddps_ipoib_agent;

/* Calls to its owner; each may call any function below but the one that frees it. */
struct ddps_ipoib_agent_calls {
	size_t struct_size; /* sizeof(struct ddps_ipoib_agent_calls) */
	/* Of the connection manager.  A REQ (DDPS_CM_EV_RX_REQ) waits for an answer. */
	void (*report)(void *user, const struct ddps_cm_report *r, uint64_t now);
	/* A message on queue pair @qpn, encapsulation header first.  May be NULL. */
	void (*message)(void *user, uint32_t qpn, const void *frame, size_t len, uint64_t now);
	/* The link: 0 and its MTU, or why it cannot be joined.  May be NULL. */
	void (*joined)(void *user, int err, uint32_t link_mtu, uint64_t now);
	void *user;
};

/**
 * ddps_ipoib_agent_new - make an agent, which has not joined
 * @out:	set on success; the program frees it with ddps_ipoib_agent_free().  Unchanged on failure
 * @cfg:	copied.  Used are me, scope, ip4 (with has_ip4), max_qps, ca_guid, seed and hash_key
 * @port:	outlives the agent; its owner passes ddps_ipoib_agent_up() what comes in, with the
 *		agent as user
 * @calls:	copied
 *
 * Return: 0; DDPS_E_INVAL and DDPS_E_UNSUPPORTED as ddps_ipoib_if_new(); DDPS_E_NOMEM.
 */
DDPS_API int ddps_ipoib_agent_new(struct ddps_ipoib_agent **out,
				  const struct ddps_ipoib_if_config *cfg,
				  struct ddps_ipoib_port *port,
				  const struct ddps_ipoib_agent_calls *calls);

/**
 * ddps_ipoib_agent_free - end it, without a word to its peers
 * @a:	an agent, or NULL
 */
DDPS_API void ddps_ipoib_agent_free(struct ddps_ipoib_agent *a);

/** ddps_ipoib_agent_up - what a port's owner calls; user is the agent.  Return: a static table. */
DDPS_API const struct ddps_ipoib_up *ddps_ipoib_agent_up(void);

/**
 * ddps_ipoib_agent_start - join the broadcast group
 * @a:	an agent
 *
 * Return: 0, or why the port cannot even try.
 */
DDPS_API int ddps_ipoib_agent_start(struct ddps_ipoib_agent *a);

/**
 * ddps_ipoib_agent_accept - answer a REQ with a queue pair that can receive, and a REP that names
 * it
 * @a:		an agent
 * @r:		a report of DDPS_CM_EV_RX_REQ, within the call that brings it
 * @now:	the time
 * @qpn:	receives the queue pair, unless it is NULL.  It is the agent's, and lasts as long as
 *		the connection; the port's operations send on it
 *
 * Return: 0; DDPS_E_INVAL (another report); DDPS_E_LIMIT; what the port or ddps_cm_reply() says.
 * Only after 0 the REQ is answered.
 */
DDPS_API int ddps_ipoib_agent_accept(struct ddps_ipoib_agent *a, const struct ddps_cm_report *r,
				     uint64_t now, uint32_t *qpn);

/**
 * ddps_ipoib_agent_closed - answer a DREQ
 * @a:		an agent
 * @id:		the connection
 * @now:	the time
 *
 * Return: as ddps_cm_closed().
 */
DDPS_API int ddps_ipoib_agent_closed(struct ddps_ipoib_agent *a, uint32_t id, uint64_t now);

/**
 * ddps_ipoib_agent_outs - send and report what another call of the connection manager brought forth
 * @a:		an agent
 * @o:		of ddps_cm_reject(), ddps_cm_disconnect() and so on
 * @now:	the time
 */
DDPS_API void ddps_ipoib_agent_outs(struct ddps_ipoib_agent *a, const struct ddps_cm_outs *o,
				    uint64_t now);

/**
 * ddps_ipoib_agent_cm - its connection manager
 * @a:	an agent
 *
 * Return: it, valid until the agent is freed.
 */
DDPS_API struct ddps_cm *ddps_ipoib_agent_cm(struct ddps_ipoib_agent *a);

/**
 * ddps_ipoib_agent_deadline - when to call ddps_ipoib_agent_tick()
 * @a:	an agent
 *
 * Return: the time, or DDPS_CM_NEVER.
 */
DDPS_API uint64_t ddps_ipoib_agent_deadline(const struct ddps_ipoib_agent *a);

/**
 * ddps_ipoib_agent_tick - do what is due; harmless when nothing is
 * @a:		an agent
 * @now:	the time
 */
DDPS_API void ddps_ipoib_agent_tick(struct ddps_ipoib_agent *a, uint64_t now);

#ifdef __cplusplus
}
#endif
#endif
