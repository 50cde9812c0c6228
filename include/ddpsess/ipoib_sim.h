/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_IPOIB_SIM_H
#define DDPSESS_IPOIB_SIM_H
/*
 * A fabric in memory: nodes with a port each, and everything that a wire may do to what they send,
 * drawn from a seeded generator.  Time is virtual; the same seed and the same calls give the same
 * run, event by event.  Part of libddpsess-ipoib; one thread at a time.  Nodes are numbered from 0;
 * where no error is named, @node has to be one that there is.
 */
#include <ddpsess/ipoib_if.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ddps_ipoib_sim;

/* Of every datagram, CM message, and answer of the fabric's management. */
struct ddps_ipoib_sim_faults {
	unsigned loss, dup, late;      /* per million; late: ten times the delay */
	uint64_t min_delay, max_delay; /* ns; with a span, messages overtake each other */
};

struct ddps_ipoib_sim_config {
	size_t struct_size; /* set by ddps_ipoib_sim_config_init() */
	uint64_t seed;
	unsigned nodes; /* 1..49151 */
	uint32_t link_mtu;
	unsigned max_events; /* in flight; more are lost and counted.  0: 65536 */
	struct ddps_ipoib_sim_faults faults;
};

/** ddps_ipoib_sim_config_init_sized - ddps_ipoib_sim_config_init() for languages that cannot call
 * it.  @size: what @cfg takes in the caller's memory; nothing is written beyond */
DDPS_API void ddps_ipoib_sim_config_init_sized(struct ddps_ipoib_sim_config *cfg, size_t size);

/** ddps_ipoib_sim_config_init - two nodes, a link MTU of 2048, no faults, seed 0 */
static inline void ddps_ipoib_sim_config_init(struct ddps_ipoib_sim_config *cfg)
{
	ddps_ipoib_sim_config_init_sized(cfg, sizeof(*cfg));
}

/* Who is behind a port.  @deadline and @tick as those of an interface. */
struct ddps_ipoib_sim_user {
	size_t struct_size; /* sizeof(struct ddps_ipoib_sim_user) */
	const struct ddps_ipoib_up *up;
	uint64_t (*deadline)(void *user);
	void (*tick)(void *user, uint64_t now);
	void *user;
	struct ddps_ipoib_lladdr addr; /* where datagrams and path queries find it */
};

/* Counters; a later release may add some at the end. */
struct ddps_ipoib_sim_stats {
	uint64_t events, lost, duplicated, overflow; /* overflow: for max_events */
	uint64_t ud, mads, messages;		     /* delivered; messages: on connections */
};

/**
 * ddps_ipoib_sim_new - make a fabric
 * @out:	set on success; the program frees it with ddps_ipoib_sim_free().  Unchanged on failure
 * @cfg:	copied
 *
 * Return: 0; DDPS_E_INVAL (a value out of its range); DDPS_E_UNSUPPORTED (a member of a later
 * release is set); DDPS_E_NOMEM.
 */
DDPS_API int ddps_ipoib_sim_new(struct ddps_ipoib_sim **out,
				const struct ddps_ipoib_sim_config *cfg);

/** ddps_ipoib_sim_free - its users are freed before it; NULL is allowed */
DDPS_API void ddps_ipoib_sim_free(struct ddps_ipoib_sim *s);

/** ddps_ipoib_sim_port - Return: the port of @node, which lives as long as the fabric; NULL: there
 * is no such node. */
DDPS_API struct ddps_ipoib_port *ddps_ipoib_sim_port(struct ddps_ipoib_sim *s, unsigned node);

/**
 * ddps_ipoib_sim_attach - put a user behind the port of @node
 * @s:		fabric
 * @node:	its number
 * @user:	copied
 *
 * Return: 0, or DDPS_E_INVAL: no such node, or a table without its size.
 */
DDPS_API int ddps_ipoib_sim_attach(struct ddps_ipoib_sim *s, unsigned node,
				   const struct ddps_ipoib_sim_user *user);

/**
 * ddps_ipoib_sim_detach - the user of @node is gone, as with a killed process
 *
 * Nothing comes to it any more, and its queue pairs end.
 */
DDPS_API void ddps_ipoib_sim_detach(struct ddps_ipoib_sim *s, unsigned node);

/** ddps_ipoib_sim_set_faults - from now on these; @faults is copied, and ignored if its min_delay
 * is above its max_delay */
DDPS_API void ddps_ipoib_sim_set_faults(struct ddps_ipoib_sim *s,
					const struct ddps_ipoib_sim_faults *faults);

/** ddps_ipoib_sim_plug - plug a port in or out; its user gets an event */
DDPS_API void ddps_ipoib_sim_plug(struct ddps_ipoib_sim *s, unsigned node, bool up);

/**
 * ddps_ipoib_sim_move - give a node another LID, as a subnet manager may
 * @s:		fabric
 * @node:	its number
 * @lid:	1..49151, not another node's.  From the beginning node N has N + 1
 *
 * What is sent to the old one is lost from now on; whoever asks for the path gets the new one.  No
 * user gets an event: see ddps_ipoib_sim_plug() for that.
 *
 * Return: 0, or DDPS_E_INVAL.
 */
DDPS_API int ddps_ipoib_sim_move(struct ddps_ipoib_sim *s, unsigned node, uint16_t lid);

/** ddps_ipoib_sim_at - call @fn at @at.  Return: 0, DDPS_E_LIMIT or DDPS_E_NOMEM. */
DDPS_API int ddps_ipoib_sim_at(struct ddps_ipoib_sim *s, uint64_t at,
			       void (*fn)(void *arg, uint64_t now), void *arg);

/** ddps_ipoib_sim_touch - to be called when the user of @node was called other than through its
 * port: its deadline may have changed */
DDPS_API void ddps_ipoib_sim_touch(struct ddps_ipoib_sim *s, unsigned node);

/** ddps_ipoib_sim_run - let everything happen up to @until, which is then the time */
DDPS_API void ddps_ipoib_sim_run(struct ddps_ipoib_sim *s, uint64_t until);

/** ddps_ipoib_sim_now - Return: the virtual time, nanoseconds from 0. */
DDPS_API uint64_t ddps_ipoib_sim_now(const struct ddps_ipoib_sim *s);

/** ddps_ipoib_sim_stats - Return: the fabric's counters, valid until it is freed. */
DDPS_API const struct ddps_ipoib_sim_stats *ddps_ipoib_sim_stats(const struct ddps_ipoib_sim *s);

/** ddps_ipoib_sim_random - Return: a number below @below (not 0) from the fabric's generator. */
DDPS_API uint64_t ddps_ipoib_sim_random(struct ddps_ipoib_sim *s, uint64_t below);

/* ---- An interface behind a port of the fabric ---- */

/**
 * ddps_ipoib_sim_if_start - make an interface behind the port of @node and start it
 * @f:	set before it starts, for what the calls of @calls look at; the caller's, to be ended by
 *	ddps_ipoib_sim_if_kill()
 * @s:		fabric
 * @node:	its number
 * @cfg:	copied
 * @calls:	copied; what the interface calls
 *
 * Return: 0, or what ddps_ipoib_if_new() says, and DDPS_E_INVAL: no such node; *@f is then as it
 * was.
 */
DDPS_API int ddps_ipoib_sim_if_start(struct ddps_ipoib_if **f, struct ddps_ipoib_sim *s,
				     unsigned node, const struct ddps_ipoib_if_config *cfg,
				     const struct ddps_ipoib_if_calls *calls);

/** ddps_ipoib_sim_if_kill - take it off the fabric and free it, as when its process is killed; @f
 * may be NULL */
DDPS_API void ddps_ipoib_sim_if_kill(struct ddps_ipoib_if *f, struct ddps_ipoib_sim *s,
				     unsigned node);

#ifdef __cplusplus
}
#endif
#endif
