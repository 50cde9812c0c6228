/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_IPOIB_ADMIT_H
#define DDPS_IPOIB_ADMIT_H
/* Whether a REQ or REP is one that an interface can have a connection with. */
#include <ddpsess/ipoib_if.h>

/*
 * @peer receives the neighbour that asks: the UD QPN of its private data and its GID
 * [4755-3.3-2], flags 0.  Return: 0, or the reason for a REJ (@peer is filled nevertheless).
 */
uint16_t ddps_ipoib_admit_req(const struct ddps_ipoib_iface *me, const struct ddps_cm_req *req,
			      struct ddps_ipoib_lladdr *peer, struct ddps_ipoib_priv *priv);

/* The same for the answer of a neighbour. */
uint16_t ddps_ipoib_admit_rep(const struct ddps_ipoib_iface *me, const struct ddps_cm_rep *rep,
			      struct ddps_ipoib_priv *priv);

#endif
