/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_IPOIB_AGENT_H
#define DDPSESS_IPOIB_AGENT_H
/*
 * An agent, which is a connection manager on a port without an IPoIB interface.  It is for testers,
 * and for programs that want connections of their own.  <ddpsess/ib_cm.h> has the connection
 * manager, <ddpsess/ipoib_port.h> has ports.
 *
 * An agent joins the broadcast group of its link.  It answers ARP requests for one IPv4 address, so
 * that other nodes find it.  It accepts REQs for the service IDs of both forms, and the program
 * decides what to do with each.  It passes CM messages between the port and the connection manager,
 * in both directions.
 *
 * The life of an agent:
 *
 *	ddps_ipoib_agent_new
 *	ddps_ipoib_agent_start
 *	calls of ddps_ipoib_agent_up() and ddps_ipoib_agent_tick(), which lead to reports
 *	ddps_ipoib_agent_accept for a REQ, ddps_ipoib_agent_closed for a DREQ
 *	ddps_ipoib_agent_free
 *
 * Times are nanoseconds of any clock that does not run backwards, as in <ddpsess/ipoib_if.h>.
 *
 * Threads: one thread at a time for an agent.  No function blocks.  Part of libddpsess-ipoib.
 */
#include <ddpsess/ipoib_if.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ddps_ipoib_agent;

/* Functions of the program that the agent calls.  They may call every function of this header but
 * ddps_ipoib_agent_free().  What their pointers point to is valid during the call. */
struct ddps_ipoib_agent_calls {
	size_t struct_size; /* sizeof(struct ddps_ipoib_agent_calls) */
	/* A report of the connection manager; required.  A REQ (DDPS_CM_EV_RX_REQ) waits for an
	 * answer: ddps_ipoib_agent_accept() or ddps_cm_reject().  A DREQ (DDPS_CM_EV_RX_DREQ) waits
	 * for ddps_ipoib_agent_closed(); its queue pair has been stopped. */
	void (*report)(void *user, const struct ddps_cm_report *r, uint64_t now);
	/* A message of @len octets on queue pair @qpn.  It begins with the encapsulation header,
	 * which is whole; the rest is not checked.  May be NULL. */
	void (*message)(void *user, uint32_t qpn, const void *frame, size_t len, uint64_t now);
	/* The port's answer to the join of the broadcast group.  @err is 0 and @link_mtu the MTU of
	 * the link in octets, or @err says why the agent is not a member.  May be NULL. */
	void (*joined)(void *user, int err, uint32_t link_mtu, uint64_t now);
	void *user; /* the first argument of all of these */
};

/**
 * ddps_ipoib_agent_new - create an agent, which has not joined the link yet
 * @out:	receives the agent, which the program frees with ddps_ipoib_agent_free(); unchanged
 *		on failure
 * @cfg:	copied.  The agent uses me, scope, has_ip4, ip4, max_qps, ca_guid, seed and
 *		hash_key.  The other members have to be valid, too
 * @port:	must outlive the agent
 * @calls:	copied
 *
 * What the port receives it passes to the functions of ddps_ipoib_agent_up(), with the agent as
 * user.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: @port is NULL, report is NULL, or a table without its size; or as for
 *   ddps_ipoib_if_new()
 * - DDPS_E_UNSUPPORTED: a member of a later release is set
 * - DDPS_E_NOMEM
 */
DDPS_API int ddps_ipoib_agent_new(struct ddps_ipoib_agent **out,
				  const struct ddps_ipoib_if_config *cfg,
				  struct ddps_ipoib_port *port,
				  const struct ddps_ipoib_agent_calls *calls);

/**
 * ddps_ipoib_agent_free - end an agent immediately
 * @a:		NULL is allowed
 *
 * Its queue pairs are destroyed.  Peers are not informed.
 */
DDPS_API void ddps_ipoib_agent_free(struct ddps_ipoib_agent *a);

/**
 * ddps_ipoib_agent_up - the functions that the owner of a port calls when something comes in
 *
 * Their argument user is the agent.
 *
 * Return: a static table.
 */
DDPS_API const struct ddps_ipoib_up *ddps_ipoib_agent_up(void);

/**
 * ddps_ipoib_agent_start - join the broadcast group
 * @a:		agent
 *
 * The answer comes later, by the function joined.
 *
 * Return: 0, or the error of the port's join: it cannot even ask.
 */
DDPS_API int ddps_ipoib_agent_start(struct ddps_ipoib_agent *a);

/**
 * ddps_ipoib_agent_accept - answer a REQ with a queue pair that can receive, and a REP
 * @a:		agent
 * @r:		the report of the REQ, within the call that brings it
 * @now:	the time
 * @qpn:	receives the number of the queue pair on success; NULL is allowed
 *
 * The agent owns the queue pair, which lasts as long as the connection.  To send on it, use qp_send
 * of the port.
 *
 * On failure nothing is sent, and there is no new queue pair.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: @r is no report of a REQ, or the connection is gone
 * - DDPS_E_STATE: the REQ has been answered already
 * - DDPS_E_LIMIT: all max_qps queue pairs are in use, or the port has no more
 * - another error of qp_create or qp_ready of the port, such as DDPS_E_UNSUPPORTED: it does not
 *   have the transport
 */
DDPS_API int ddps_ipoib_agent_accept(struct ddps_ipoib_agent *a, const struct ddps_cm_report *r,
				     uint64_t now, uint32_t *qpn);

/**
 * ddps_ipoib_agent_closed - answer a DREQ with a DREP
 * @a:		agent
 * @id:		the connection, from the report
 * @now:	the time
 *
 * Return: 0, or
 * - DDPS_E_INVAL: there is no such connection
 * - DDPS_E_STATE: the connection has no DREQ that waits for an answer
 */
DDPS_API int ddps_ipoib_agent_closed(struct ddps_ipoib_agent *a, uint32_t id, uint64_t now);

/**
 * ddps_ipoib_agent_outs - send and report what a call of the connection manager gave
 * @a:		agent
 * @o:		from ddps_cm_reject(), ddps_cm_disconnect() and so on
 * @now:	the time
 *
 * Every program that calls such a function by itself has to call this afterwards.
 */
DDPS_API void ddps_ipoib_agent_outs(struct ddps_ipoib_agent *a, const struct ddps_cm_outs *o,
				    uint64_t now);

/**
 * ddps_ipoib_agent_cm - the connection manager of an agent
 * @a:		agent
 *
 * Return: the connection manager, valid until the agent is freed.
 */
DDPS_API struct ddps_cm *ddps_ipoib_agent_cm(struct ddps_ipoib_agent *a);

/**
 * ddps_ipoib_agent_deadline - when to call ddps_ipoib_agent_tick()
 * @a:		agent
 *
 * Ask again after each call.
 *
 * Return: a time, or DDPS_CM_NEVER.
 */
DDPS_API uint64_t ddps_ipoib_agent_deadline(const struct ddps_ipoib_agent *a);

/**
 * ddps_ipoib_agent_tick - do what is due
 * @a:		agent
 * @now:	the time
 *
 * It may be called at any time; if nothing is due it does nothing.
 */
DDPS_API void ddps_ipoib_agent_tick(struct ddps_ipoib_agent *a, uint64_t now);

#ifdef __cplusplus
}
#endif
#endif
