/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SCTP_PATH_LIST_H
#define DDPS_SCTP_PATH_LIST_H
/* The paths of an association. */
#include "sctp/sctp.h"

struct ddps_sc_path;

/* @local: where it comes from, NULL: as the config says.  NULL: no memory, or @peer cannot be
 * reached from there. */
struct ddps_sc_path *ddps_sc_path_add(struct ddps_sctp_assoc *a, const struct ddps_sctp_addr *peer,
				      const struct ddps_sctp_addr *local, uint16_t encap);
/* The only address of ours that the peer knows is @local; NULL: it knows several. */
const struct ddps_sctp_addr *ddps_sc_only(const struct ddps_sctp_assoc *a,
					  const struct ddps_sctp_addr *local);
struct ddps_sc_path *ddps_sc_path_of(const struct ddps_sctp_assoc *a,
				     const struct ddps_sctp_addr *peer);
/* It is to be one of those that carry what is sent, of which nothing is under way. */
void ddps_sc_path_front(struct ddps_sc_path *p);
/* Whether @addr is one of the peer's: a path, or left out. */
bool ddps_sc_is_mine(const struct ddps_sctp_assoc *a, const struct ddps_sctp_addr *addr);
/* Whether its address is the peer's: it has answered, or the user has asked to be connected to that peer, which is
 * not done yet.  Else the peer has merely listed it. */
bool ddps_sc_path_sure(const struct ddps_sc_path *p);
/* Beginning with nothing sent there; @id: its place in what is outstanding. */
void ddps_sc_path_tx(struct ddps_sc_path *p, unsigned id);
/* It is freed, and what waits to be sent there.  Nothing is outstanding that left there; a second path stays. */
void ddps_sc_path_drop(struct ddps_sc_path *p);
/* @peer is to be an address of @a's peer, which has its State Cookie from there, or the user says so: another
 * association that has it without being sure of it loses it. */
void ddps_sc_path_claim(struct ddps_sctp_assoc *a, const struct ddps_sctp_addr *peer);

#endif
