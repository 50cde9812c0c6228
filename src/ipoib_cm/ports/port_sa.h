/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_PORT_SA_H
#define DDPS_PORT_SA_H
/*
 * The one question that CM has for the subnet administrator: the path to a GID (IBA volume 1,
 * 15.2.5.16).  Asked by SubnAdmGet, which answers with one record and needs no RMPP.
 */
#include <ddpsess/ib_umad.h>

#define DDPS_SA_CLASS	0x03
#define DDPS_SA_VERSION 2

/* A query; of @tid only the lower half comes back unchanged. */
void ddps_sa_path_query(uint8_t mad[DDPS_CM_MAD_LEN], uint32_t tid,
			const uint8_t sgid[DDPS_IPOIB_GID_LEN],
			const uint8_t dgid[DDPS_IPOIB_GID_LEN]);

/*
 * Return: 0; DDPS_E_AGAIN: not the answer to query @tid; DDPS_E_ADDRESS: there is no such
 * path; DDPS_E_PROTOCOL: another status, or a record that cannot be (a LID of 0, a value that
 * does not fit).  @status receives the status of the answer.
 */
int ddps_sa_path_answer(struct ddps_sa_path *p, uint16_t *status,
			const uint8_t mad[DDPS_CM_MAD_LEN], uint32_t tid);

#endif
