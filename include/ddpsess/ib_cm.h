/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_IB_CM_H
#define DDPSESS_IB_CM_H
/*
 * A connection manager (IBA 12) for one InfiniBand port: many connections, listeners, and the
 * answers to messages that belong to no connection.  It does no I/O and reads no clock: octets,
 * calls and the time go in, octets to send and reports come out.  Part of libddpsess-ipoib.
 *
 * Connections are named by their local communication ID.  One exists from a successful
 * ddps_cm_connect() or the report of a REQ until a report or a call leaves it in state IDLE.
 *
 * An agent is used by one thread at a time; two agents have nothing in common.  No function blocks.
 * Times are nanoseconds of any clock that does not run backwards.  Errors are those of
 * <ddpsess/err_codes.h>; ddps_ipoib_strerror() has their text.
 */
#include <ddpsess/ipoib_cm.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DDPS_CM_NEVER UINT64_MAX /* a deadline that does not come */

/* ---- States and events of a connection (IBA 12.9.7) ---- */

#define DDPS_CM_STATES(X)                                                                          \
	X(IDLE)                                                                                    \
	X(REQ_SENT)                                                                                \
	X(MRA_REQ_RCVD)                                                                            \
	X(REP_RCVD)                                                                                \
	X(MRA_REP_SENT)                                                                            \
	X(WITHDRAWN) /* own attempt given up; its ID is kept to refuse a late REP */               \
	X(REQ_RCVD)                                                                                \
	X(MRA_REQ_SENT)                                                                            \
	X(REP_SENT)                                                                                \
	X(MRA_REP_RCVD)                                                                            \
	X(ESTABLISHED)                                                                             \
	X(DREQ_SENT)                                                                               \
	X(DREQ_RCVD)                                                                               \
	X(TIMEWAIT)

enum ddps_cm_state {
#define DDPS_X(name) DDPS_CM_ST_##name,
	DDPS_CM_STATES(DDPS_X)
#undef DDPS_X
		DDPS_CM_NSTATE
};

#define DDPS_CM_EVENTS(X)                                                                          \
	/* calls of the consumer */                                                                \
	X(CONNECT)                                                                                 \
	X(ACCEPT) /* answer a REQ with REP, a REP with RTU */                                      \
	X(REJECT)                                                                                  \
	X(DELAY) /* ask for time with an MRA */                                                    \
	X(ABORT)                                                                                   \
	X(WITHDRAW) /* give up an own REQ without a word */                                        \
	X(DISCONNECT)                                                                              \
	X(CLOSED)  /* the consumer is done after a DREQ */                                         \
	X(DATA_IN) /* take arrived data for the RTU that is missing */                             \
	/* messages */                                                                             \
	X(RX_REQ)                                                                                  \
	X(RX_REQ_DUP)                                                                              \
	X(RX_MRA)                                                                                  \
	X(RX_REP)                                                                                  \
	X(RX_REP_STALE) /* its QPN belongs to another live connection */                           \
	X(RX_REP_DUP)                                                                              \
	X(RX_RTU)                                                                                  \
	X(RX_REJ)                                                                                  \
	X(RX_REJ_STALE) /* reason 10 */                                                            \
	X(RX_DREQ)                                                                                 \
	X(RX_DREP)                                                                                 \
	X(STALE) /* the peer uses this connection's QPN for another one */                         \
	/* the timer */                                                                            \
	X(T_RESEND)                                                                                \
	X(T_END)      /* no resend is left, or the state's time is over */                         \
	X(T_END_DATA) /* the same where data has arrived on the connection */

enum ddps_cm_event {
#define DDPS_X(name) DDPS_CM_EV_##name,
	DDPS_CM_EVENTS(DDPS_X)
#undef DDPS_X
		DDPS_CM_NEVENT
};

/** ddps_cm_state_name - "REQ_SENT", ...  Return: a static text; "?" for no state. */
DDPS_API const char *ddps_cm_state_name(enum ddps_cm_state state);

/** ddps_cm_event_name - "RX_REP", ...  Return: a static text; "?" for no event. */
DDPS_API const char *ddps_cm_event_name(enum ddps_cm_event ev);

/* ---- An agent ---- */

struct ddps_cm;

struct ddps_cm_config {
	size_t struct_size; /* set by ddps_cm_config_init() */
	uint64_t ca_guid;   /* goes into every REQ, REP and timeout REJ */
	uint32_t tid_high;  /* upper half of own transaction IDs */
	uint32_t id_seed;   /* random, so that a restart does not reuse IDs */
	/* 1..65535; REQs beyond are refused with reason 3.  Those in timewait count too, but the
	 * oldest of them is forgotten for a new one, without a report. */
	unsigned max_conns;
	/*
	 * Random, for the tables of connections, and never shown to anybody: a peer that knows it
	 * can make look-ups as slow as there are connections.
	 */
	uint64_t hash_key[2];
	uint8_t priv[DDPS_IPOIB_PRIV_LEN]; /* for REJs that concern no listener */
	/*
	 * Connections that one address may have asked for and that are not over.  Its REQs beyond
	 * are refused with reason 3.  What a REQ says of its sender (GUID, GID, QPN) proves
	 * nothing; the address is where it has come from.  0: max_conns alone bounds them.
	 */
	unsigned max_per_addr;
};

/** ddps_cm_config_init_sized - ddps_cm_config_init() for languages that cannot call it
 * @cfg: filled
 * @size: what @cfg takes in the caller's memory; nothing is written beyond */
DDPS_API void ddps_cm_config_init_sized(struct ddps_cm_config *cfg, size_t size);

/** ddps_cm_config_init - all zero, 512 connections */
static inline void ddps_cm_config_init(struct ddps_cm_config *cfg)
{
	ddps_cm_config_init_sized(cfg, sizeof(*cfg));
}

struct ddps_cm_listener {
	uint64_t service_id;
	uint8_t gid[DDPS_IPOIB_GID_LEN]; /* a REQ to another one is refused with reason 12 */
	uint16_t pkey;			 /* compared without the membership bit */
	uint8_t priv[DDPS_IPOIB_PRIV_LEN];
	void *user; /* comes with the reports of connections accepted here */
};

/* Where a message goes to or came from: a token that only the caller understands. */
typedef uint64_t ddps_cm_addr;

struct ddps_cm_send {
	ddps_cm_addr to;
	uint8_t mad[DDPS_CM_MAD_LEN];
};

struct ddps_cm_report {
	uint32_t id;
	void *user;
	enum ddps_cm_event ev;
	enum ddps_cm_state state;      /* after it; IDLE: the connection is gone */
	const struct ddps_cm_mad *mad; /* the message that caused it, or NULL; valid until
					  the next ddps_cm_rx() */
	ddps_cm_addr addr;
};

/* What one call brings forth; the callee fills it afresh. */
struct ddps_cm_outs {
	unsigned n_send, n_report;
	struct ddps_cm_send send[2];	 /* to be sent, in this order */
	struct ddps_cm_report report[1]; /* to be looked at after that */
	uint64_t reserved[4];
};

/* Counters; a later release may add some at the end. */
struct ddps_cm_stats {
	uint64_t malformed;   /* not a CM message by its octets */
	uint64_t unsupported; /* well formed, of a kind that is not handled */
	uint64_t unmatched;   /* of no connection, or not legal in its state */
	uint64_t ignored;     /* duplicates and the like, expected */
	uint64_t refused;     /* REQs refused without asking the consumer */
	uint64_t over_share;  /* of these, because of max_per_addr */
};

/**
 * ddps_cm_new - make an agent
 * @out:	set on success; the program frees it with ddps_cm_free().  Unchanged on failure
 * @cfg:	copied
 *
 * Return: 0; DDPS_E_INVAL (max_conns out of range, or a size that is none); DDPS_E_UNSUPPORTED (a
 * member of a later release is set); DDPS_E_NOMEM.
 */
DDPS_API int ddps_cm_new(struct ddps_cm **out, const struct ddps_cm_config *cfg);

/** ddps_cm_free - end an agent immediately, without a word to its peers; NULL is allowed */
DDPS_API void ddps_cm_free(struct ddps_cm *cm);

/**
 * ddps_cm_listen - take REQs for a service ID
 * @cm:	agent
 * @l:	copied
 *
 * Return: 0, DDPS_E_BUSY (somebody listens on that service ID) or DDPS_E_NOMEM.
 */
DDPS_API int ddps_cm_listen(struct ddps_cm *cm, const struct ddps_cm_listener *l);

/** ddps_cm_unlisten - take no more; connections live on.  An unknown service ID is ignored. */
DDPS_API void ddps_cm_unlisten(struct ddps_cm *cm, uint64_t service_id);

/**
 * ddps_cm_rx - a message has arrived
 * @cm:	agent
 * @buf, @len:	one MAD, from the peer and hostile until this has checked it
 * @from:	where an answer goes
 * @now:	the time in nanoseconds
 * @o:		receives what is to be sent and told
 *
 * Return: 0, or what ddps_cm_mad_decode() says; DDPS_E_UNSUPPORTED also for SIDR, LAP, APR.
 */
DDPS_API int ddps_cm_rx(struct ddps_cm *cm, const void *buf, size_t len, ddps_cm_addr from,
			uint64_t now, struct ddps_cm_outs *o);

/** ddps_cm_deadline - when to call ddps_cm_tick() next, or DDPS_CM_NEVER; ask after each call */
DDPS_API uint64_t ddps_cm_deadline(const struct ddps_cm *cm);

/**
 * ddps_cm_tick - serve one connection whose time has come
 *
 * Return: 1: @o is filled, call again; 0: none is due.
 */
DDPS_API int ddps_cm_tick(struct ddps_cm *cm, uint64_t now, struct ddps_cm_outs *o);

/* ---- Calls of the consumer ----
 *
 * They return 0, DDPS_E_INVAL (no such connection, or a value does not fit its field) or
 * DDPS_E_STATE (not possible in the connection's state).  @priv: 8 octets of private data, or
 * NULL for those that the connection has from its REQ or listener.
 */

struct ddps_cm_connect {
	struct ddps_cm_req req; /* local_id and ca_guid are filled in */
	unsigned packet_life;	/* 5-bit lifetime of the path */
	ddps_cm_addr to;
	void *user; /* comes with its reports */
};

/**
 * ddps_cm_connect - send a REQ
 * @cm:	agent
 * @c:	copied
 * @now:	the time in nanoseconds
 * @id:	receives the name of the connection
 * @o:		receives what is to be sent and told
 *
 * Return: as above, DDPS_E_LIMIT (max_conns) or DDPS_E_NOMEM.
 */
DDPS_API int ddps_cm_connect(struct ddps_cm *cm, const struct ddps_cm_connect *c, uint64_t now,
			     uint32_t *id, struct ddps_cm_outs *o);

/** ddps_cm_reply - passive side: send a REP.  Its IDs and ca_guid are filled in. */
DDPS_API int ddps_cm_reply(struct ddps_cm *cm, uint32_t id, const struct ddps_cm_rep *rep,
			   uint64_t now, struct ddps_cm_outs *o);

/** ddps_cm_ready - active side: send an RTU */
DDPS_API int ddps_cm_ready(struct ddps_cm *cm, uint32_t id, const uint8_t *priv, uint64_t now,
			   struct ddps_cm_outs *o);

/** ddps_cm_reject - send a REJ, to a REQ or REP that waits for an answer */
DDPS_API int ddps_cm_reject(struct ddps_cm *cm, uint32_t id, uint16_t reason, const uint8_t *priv,
			    uint64_t now, struct ddps_cm_outs *o);

/** ddps_cm_delay - send an MRA: the answer takes up to @service_timeout (5-bit time) longer */
DDPS_API int ddps_cm_delay(struct ddps_cm *cm, uint32_t id, uint8_t service_timeout,
			   const uint8_t *priv, uint64_t now, struct ddps_cm_outs *o);

/** ddps_cm_abort - take an own REQ (REJ 4) or REP (REJ with @reason) back */
DDPS_API int ddps_cm_abort(struct ddps_cm *cm, uint32_t id, uint16_t reason, uint64_t now,
			   struct ddps_cm_outs *o);

/** ddps_cm_withdraw - end an own REQ without a word; a late REP is refused with reason 28 */
DDPS_API int ddps_cm_withdraw(struct ddps_cm *cm, uint32_t id, uint64_t now,
			      struct ddps_cm_outs *o);

/** ddps_cm_disconnect - send a DREQ */
DDPS_API int ddps_cm_disconnect(struct ddps_cm *cm, uint32_t id, uint64_t now,
				struct ddps_cm_outs *o);

/** ddps_cm_closed - send a DREP, after a DREQ was reported */
DDPS_API int ddps_cm_closed(struct ddps_cm *cm, uint32_t id, uint64_t now, struct ddps_cm_outs *o);

/**
 * ddps_cm_data_seen - data has arrived on a connection whose RTU has not
 *
 * The REP goes on being resent, as the RTU's private data is wanted; but when that ends, the
 * connection counts as established.
 */
DDPS_API int ddps_cm_data_seen(struct ddps_cm *cm, uint32_t id);

/** ddps_cm_data_is_rtu - the same, taken for the RTU immediately */
DDPS_API int ddps_cm_data_is_rtu(struct ddps_cm *cm, uint32_t id, uint64_t now,
				 struct ddps_cm_outs *o);

/** ddps_cm_set_user - change what comes with reports of connection @id */
DDPS_API int ddps_cm_set_user(struct ddps_cm *cm, uint32_t id, void *user);

/** ddps_cm_state - Return: its state; IDLE also for one that does not exist. */
DDPS_API enum ddps_cm_state ddps_cm_state(const struct ddps_cm *cm, uint32_t id);

/** ddps_cm_stats - Return: the agent's counters, valid until it is freed. */
DDPS_API const struct ddps_cm_stats *ddps_cm_stats(const struct ddps_cm *cm);

#ifdef __cplusplus
}
#endif
#endif
