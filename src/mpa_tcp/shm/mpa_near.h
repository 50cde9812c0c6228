/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_MPA_NEAR_H
#define DDPS_MPA_NEAR_H
/*
 * From TCP to shared memory, where both ends are processes of one user in one network namespace, and both want it
 * (ddps_conn_param.shm).  They connect over TCP, and everything that is agreed on there stays as it is; only FPDUs go
 * through memory.
 *
 *	initiator				responder
 *	listens at an abstract name
 *	made of both addresses
 *	---- Request -------------- TCP ------->
 *						connects to that name
 *	<------------------------- TCP --- Reply
 *	accepts, passes memory ---- unix ------>
 *						takes it
 *	<---- unix -- passes memory of its own
 *
 * From then on both use the memory, and TCP is closed.  Whatever fails before, even a wrong user, leaves the
 * session on TCP: the unix socket is closed, which the other side sees.
 */
#include "mpa_tcp/mpa_conn.h"

/* Initiator, TCP is connected: can be found. */
void ddps_mpa_near_offer(struct ddps_mpa_conn *c);
/* Responder, before its Reply: look for the initiator. */
void ddps_mpa_near_call(struct ddps_mpa_conn *c);
/* Initiator, the Reply is here: if the responder has come, pass memory.  true: ddps_mpa_conn_ready() follows when he has
 * said whether he takes it; nothing is read or sent until then. */
bool ddps_mpa_near_pass(struct ddps_mpa_conn *c);
/* It is between these two: TCP is left alone, whose end may be seen before the responder's word. */
bool ddps_mpa_near_waits(const struct ddps_mpa_conn *c);
/* It stays with TCP, or ends. */
void ddps_mpa_near_drop(struct ddps_mpa_conn *c);

#endif
