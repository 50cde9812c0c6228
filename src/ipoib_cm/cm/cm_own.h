/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CM_OWN_H
#define DDPS_CM_OWN_H
/*
 * What the connection manager does for the interface and the tests, and for no program.  The rules of
 * <ddpsess/ib_cm.h> hold here too.
 */
#include <ddpsess/ib_cm.h>

/**
 * ddps_cm_state_name - the name of a state
 * @state:	enum ddps_cm_state, or any other value
 *
 * Return: a constant string such as "REQ_SENT"; "?" if there is no such state.
 */
const char *ddps_cm_state_name(enum ddps_cm_state state);

/**
 * ddps_cm_delay - send an MRA: the answer takes up to @service_timeout (5-bit time) longer
 * @cm:			agent
 * @id:			connection whose REQ or REP was reported
 * @service_timeout:	5-bit time
 * @priv:		as for ddps_cm_reject()
 * @now:		the time in nanoseconds
 * @o:			receives what is to be sent and reported
 *
 * This is possible once for a REQ or REP.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: no such connection, or @service_timeout is above 31
 * - DDPS_E_STATE: the connection is not in state REQ_RCVD or REP_RCVD
 */
int ddps_cm_delay(struct ddps_cm *cm, uint32_t id, uint8_t service_timeout, const uint8_t *priv,
		  uint64_t now, struct ddps_cm_outs *o);

/**
 * ddps_cm_withdraw - give up an own REQ without a message
 * @cm:		agent
 * @id:		connection
 * @now:	the time in nanoseconds
 * @o:		receives what is to be sent and reported
 *
 * The connection stays for as long as a REP may come, in state WITHDRAWN: a late REP is refused
 * with reason 28.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: no such connection
 * - DDPS_E_STATE: the connection is not in state REQ_SENT or MRA_REQ_RCVD
 */
int ddps_cm_withdraw(struct ddps_cm *cm, uint32_t id, uint64_t now, struct ddps_cm_outs *o);

/**
 * ddps_cm_data_seen - data has arrived on a connection whose RTU has not
 * @cm:	agent
 * @id:	connection
 *
 * The REP is still sent again, because the private data of the RTU is wanted.  But when that ends,
 * the connection counts as established.  In other states this has no effect.
 *
 * Return: 0, or DDPS_E_INVAL: no such connection.
 */
int ddps_cm_data_seen(struct ddps_cm *cm, uint32_t id);

/**
 * ddps_cm_data_is_rtu - data has arrived: it is taken for the RTU immediately
 * @cm:		agent
 * @id:		connection
 * @now:	the time in nanoseconds
 * @o:		receives what is to be sent and reported
 *
 * The connection is established then, which is reported as DATA_IN.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: no such connection
 * - DDPS_E_STATE: the connection is not in state REP_SENT or MRA_REP_RCVD
 */
int ddps_cm_data_is_rtu(struct ddps_cm *cm, uint32_t id, uint64_t now, struct ddps_cm_outs *o);

/**
 * ddps_cm_set_user - change what comes with reports of connection @id
 * @cm:		agent
 * @id:		connection
 * @user:	comes with them from now on
 *
 * Return: 0, or DDPS_E_INVAL: no such connection.
 */
int ddps_cm_set_user(struct ddps_cm *cm, uint32_t id, void *user);

/** ddps_cm_state - Return: the state of connection @id; IDLE also for one that does not exist. */
enum ddps_cm_state ddps_cm_state(const struct ddps_cm *cm, uint32_t id);

#endif
