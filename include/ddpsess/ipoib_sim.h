/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_IPOIB_SIM_H
#define DDPSESS_IPOIB_SIM_H
/*
 * A fabric in memory, for tests and simulations of IPoIB.  Its nodes have one port each.  It can
 * lose, duplicate and delay what they send.
 *
 * The life of a fabric:
 *
 *	ddps_ipoib_sim_config_init, ddps_ipoib_sim_new
 *	ddps_ipoib_sim_if_start, for each node
 *	ddps_ipoib_if_send, ddps_ipoib_sim_run, and so on
 *	ddps_ipoib_sim_if_kill, for each node
 *	ddps_ipoib_sim_free
 *
 * Time is virtual: nanoseconds from 0.  It passes only in ddps_ipoib_sim_run().
 *
 * Faults are drawn from a seeded generator, so that a run can be repeated: the same seed and the
 * same calls give the same run, event by event.
 *
 * Nodes are numbered from 0.  A function without an error for a node that does not exist must not
 * be called for one.
 *
 * Threads: one thread at a time, for a fabric and all that is behind its ports.  No function
 * blocks.  Part of libddpsess-ipoib.
 */
#include <ddpsess/ipoib_if.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ddps_ipoib_sim;

/*
 * What happens to datagrams, to CM messages, and to the fabric's answers to joins and path queries.
 *
 * A message on a connection can be lost or late too.  But it is never duplicated, and never
 * overtakes an earlier one.  On RC it is tried again, up to the retry count of the queue pair, and
 * each try can be lost.
 */
struct ddps_ipoib_sim_faults {
	/* How many of a million are lost, are duplicated, or take ten times the delay. */
	unsigned loss, dup, late;
	/* Limits of the delay, in nanoseconds; min_delay is at most max_delay.  Each delay is drawn
	 * anew, and 1 ns is added.  If the limits differ, messages can overtake each other. */
	uint64_t min_delay, max_delay;
};

struct ddps_ipoib_sim_config {
	size_t struct_size; /* set by ddps_ipoib_sim_config_init() */
	uint64_t seed;	    /* of the generator; any value */
	unsigned nodes;	    /* how many, 1..49151 */
	uint32_t link_mtu;  /* octets of the longest datagram, encapsulation header included */
	/* The most events that wait at the same time: messages under way, timers, and calls of
	 * ddps_ipoib_sim_at().  Those beyond are dropped and counted.  0: 65536. */
	unsigned max_events;
	struct ddps_ipoib_sim_faults faults;
};

/**
 * ddps_ipoib_sim_config_init_sized - ddps_ipoib_sim_config_init() for languages that cannot call it
 * @cfg:	receives the defaults
 * @size:	the size of @cfg in the caller's memory, in octets; nothing is written beyond
 */
DDPS_API void ddps_ipoib_sim_config_init_sized(struct ddps_ipoib_sim_config *cfg, size_t size);

/**
 * ddps_ipoib_sim_config_init - fill in the defaults
 * @cfg:	receives the defaults
 *
 * The defaults are: seed 0, two nodes, a link MTU of 2048, 65536 events, no faults.
 */
static inline void ddps_ipoib_sim_config_init(struct ddps_ipoib_sim_config *cfg)
{
	ddps_ipoib_sim_config_init_sized(cfg, sizeof(*cfg));
}

/* Counters; a later release may add some at the end. */
struct ddps_ipoib_sim_stats {
	/* events: that have happened.  lost: messages and answers lost when they were sent.
	 * duplicated: additional copies.  overflow: events dropped because max_events was
	 * reached. */
	uint64_t events, lost, duplicated, overflow;
	/* What was delivered: datagrams, CM messages, and messages on connections. */
	uint64_t ud, mads, messages;
};

/**
 * ddps_ipoib_sim_new - create a fabric
 * @out:	receives the fabric, which the program frees with ddps_ipoib_sim_free(); unchanged
 *		on failure
 * @cfg:	copied
 *
 * All ports are plugged in, and nothing is behind them.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: nodes is out of range, min_delay is above max_delay, or struct_size is that of no
 *   release
 * - DDPS_E_UNSUPPORTED: a member of a later release is set
 * - DDPS_E_NOMEM
 */
DDPS_API int ddps_ipoib_sim_new(struct ddps_ipoib_sim **out,
				const struct ddps_ipoib_sim_config *cfg);

/**
 * ddps_ipoib_sim_free - destroy a fabric and its ports
 * @s:		NULL is allowed
 *
 * Free what is behind the ports before, because it may still use them.
 */
DDPS_API void ddps_ipoib_sim_free(struct ddps_ipoib_sim *s);

/**
 * ddps_ipoib_sim_set_faults - replace the faults of the configuration
 * @s:		fabric
 * @faults:	copied; ignored if its min_delay is above its max_delay
 *
 * They apply to what is sent from now on.
 */
DDPS_API void ddps_ipoib_sim_set_faults(struct ddps_ipoib_sim *s,
					const struct ddps_ipoib_sim_faults *faults);

/**
 * ddps_ipoib_sim_plug - plug a port in or out
 * @s:		fabric
 * @node:	number of the node
 * @up:		true: in, false: out
 *
 * If that is a change, the user's link function is called immediately.  While a port is out, what
 * it sends is lost, and so is what arrives there.  Its memberships of groups are over.
 */
DDPS_API void ddps_ipoib_sim_plug(struct ddps_ipoib_sim *s, unsigned node, bool up);

/**
 * ddps_ipoib_sim_at - have a function called at a time
 * @s:		fabric
 * @at:		virtual time in nanoseconds; one that has passed stands for the present
 * @fn:		called once, by ddps_ipoib_sim_run().  It must not call that function, nor free the
 *		fabric
 * @arg:	the first argument of @fn
 *
 * Return: 0, or DDPS_E_LIMIT: max_events events wait already, or there is no memory for one more.
 */
DDPS_API int ddps_ipoib_sim_at(struct ddps_ipoib_sim *s, uint64_t at,
			       void (*fn)(void *arg, uint64_t now), void *arg);

/**
 * ddps_ipoib_sim_touch - ask the user of a node for its deadline again
 * @s:		fabric
 * @node:	number of the node
 *
 * Call it after the program has called the user by itself, for example with ddps_ipoib_if_send():
 * its deadline may have changed.  Outside of ddps_ipoib_sim_run() this is not needed, because that
 * function first asks all users.
 */
DDPS_API void ddps_ipoib_sim_touch(struct ddps_ipoib_sim *s, unsigned node);

/**
 * ddps_ipoib_sim_run - let everything happen up to a time
 * @s:		fabric
 * @until:	virtual time in nanoseconds, not before the present.  It is the present afterwards
 *
 * Does not wait.
 */
DDPS_API void ddps_ipoib_sim_run(struct ddps_ipoib_sim *s, uint64_t until);

/**
 * ddps_ipoib_sim_now - the present
 * @s:		fabric
 *
 * Return: the virtual time, nanoseconds from 0.
 */
DDPS_API uint64_t ddps_ipoib_sim_now(const struct ddps_ipoib_sim *s);

/**
 * ddps_ipoib_sim_stats - the counters of a fabric
 * @s:		fabric
 *
 * Return: the fabric's counters, valid until it is freed.
 */
DDPS_API const struct ddps_ipoib_sim_stats *ddps_ipoib_sim_stats(const struct ddps_ipoib_sim *s);

/**
 * ddps_ipoib_sim_random - draw a number from the fabric's generator
 * @s:		fabric
 * @below:	above 0
 *
 * Return: a number below @below.
 */
DDPS_API uint64_t ddps_ipoib_sim_random(struct ddps_ipoib_sim *s, uint64_t below);

/* ---- An interface behind a port of the fabric ---- */

/**
 * ddps_ipoib_sim_if_start - create an interface behind the port of a node, and start it
 * @f:		receives the interface, which the program ends with ddps_ipoib_sim_if_kill();
 *		unchanged on failure.  It is set before the interface starts
 * @s:		fabric
 * @node:	number of the node
 * @cfg:	copied
 * @calls:	copied; what the interface calls
 *
 * Return: 0, or
 * - DDPS_E_INVAL: no such node, or as for ddps_ipoib_if_new()
 * - DDPS_E_UNSUPPORTED: as for ddps_ipoib_if_new()
 * - DDPS_E_NOMEM
 */
DDPS_API int ddps_ipoib_sim_if_start(struct ddps_ipoib_if **f, struct ddps_ipoib_sim *s,
				     unsigned node, const struct ddps_ipoib_if_config *cfg,
				     const struct ddps_ipoib_if_calls *calls);

/**
 * ddps_ipoib_sim_if_kill - end an interface as if its process had been killed
 * @f:		from ddps_ipoib_sim_if_start(); freed.  NULL is allowed
 * @s:		fabric
 * @node:	number of the node; its queue pairs and its memberships of groups end
 */
DDPS_API void ddps_ipoib_sim_if_kill(struct ddps_ipoib_if *f, struct ddps_ipoib_sim *s,
				     unsigned node);

#ifdef __cplusplus
}
#endif
#endif
