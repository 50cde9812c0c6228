/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VERBS_VD_SECURE_H
#define DDPS_VERBS_VD_SECURE_H
/*
 * Wires with TLS.  What identifiers of rdma_cm connect is secured; whatever else would leave the
 * process is refused, since there is no handshake that could have judged its peer: queue pairs that
 * programs connect themselves, and datagrams.
 */
#include "verbs/vd_config.h"
#include <ddpsess/secure.h>

/* What is refused over these wires. */
enum vd_unsecured { VD_UNSECURED_OOB, VD_UNSECURED_UD };

/* Read the files, if the wire is a secured one; else @out is NULL.  Return: 0, or errno, after standard
 * error has said why. */
int vd_secure_open(const struct vd_config *cfg, struct ddps_secure **out);
/* Refuse it, if the wire is a secured one; standard error says so once.  Return: 0 or EOPNOTSUPP. */
int vd_secure_refuse(enum vd_unsecured what);

/* Whether a DDPS_E_ code says that a secured wire, or a peer of one, is not as it must be. */
static inline bool vd_is_insecure(int code)
{
	return code <= DDPS_E_NO_TLS;
}
/* Its errno value: EPROTO for what came over the wire, EACCES for files and for who the peer is. */
int vd_secure_errno(int code);

#endif
