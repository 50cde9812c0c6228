/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_IPOIB_SIM_PORT_H
#define DDPS_IPOIB_SIM_PORT_H
/*
 * The ports of a fabric in memory, for whatever is to stand behind one.  Programs have interfaces
 * there: <ddpsess/ipoib_sim.h>, whose rules hold here too.
 */
#include <ddpsess/ipoib_sim.h>

/* What is behind a port, for example an interface.  The functions are required. */
struct ddps_ipoib_sim_user {
	size_t struct_size;		/* sizeof(struct ddps_ipoib_sim_user) */
	const struct ddps_ipoib_up *up; /* called for what arrives; borrowed until detached */
	/* Says when to call @tick, or DDPS_CM_NEVER; see ddps_ipoib_if_deadline(). */
	uint64_t (*deadline)(void *user);
	/* Called at that time; see ddps_ipoib_if_tick(). */
	void (*tick)(void *user, uint64_t now);
	void *user;		       /* the first argument of all these functions */
	struct ddps_ipoib_lladdr addr; /* its QPN gets datagrams, path queries find its GID */
};

/**
 * ddps_ipoib_sim_port - the port of a node
 * @s:		fabric
 * @node:	number of the node
 *
 * Return: the port, valid until the fabric is freed, or NULL: there is no such node.
 */
struct ddps_ipoib_port *ddps_ipoib_sim_port(struct ddps_ipoib_sim *s, unsigned node);

/**
 * ddps_ipoib_sim_attach - put a user behind the port of a node
 * @s:		fabric
 * @node:	number of the node
 * @user:	copied
 *
 * Return: 0, or DDPS_E_INVAL: no such node, or a table without its size.
 */
int ddps_ipoib_sim_attach(struct ddps_ipoib_sim *s, unsigned node,
			  const struct ddps_ipoib_sim_user *user);

/**
 * ddps_ipoib_sim_detach - take the user of a node away, as if its process had been killed
 * @s:		fabric
 * @node:	number of the node
 *
 * Nothing comes to the user any more.  Its queue pairs and its memberships of groups end.
 */
void ddps_ipoib_sim_detach(struct ddps_ipoib_sim *s, unsigned node);

/**
 * ddps_ipoib_sim_move - give a node another LID, as a subnet manager may
 * @s:		fabric
 * @node:	number of the node
 * @lid:	1..49151.  At the beginning node N has LID N + 1
 *
 * From now on, what is sent to the old LID is lost.  Path queries are answered with the new LID.
 * No user gets an event; see ddps_ipoib_sim_plug() for that.
 *
 * Return: 0, or DDPS_E_INVAL: no such node, or @lid is out of range or another node's.
 */
int ddps_ipoib_sim_move(struct ddps_ipoib_sim *s, unsigned node, uint16_t lid);

#endif
