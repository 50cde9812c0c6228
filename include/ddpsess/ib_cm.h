/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_IB_CM_H
#define DDPSESS_IB_CM_H
/*
 * A connection manager (CM, IBA volume 1, chapter 12) for one InfiniBand port.  An agent has many
 * connections and listeners.  It also answers messages that belong to no connection.
 *
 * It does no I/O and reads no clock.  The program gives it received messages, calls and the time.
 * It gives back messages to send, and reports.  Each call that has a struct ddps_cm_outs fills it
 * afresh: the program first sends the messages, then looks at the report.
 *
 * The life of a connection, at the active side, which sends the REQ:
 *
 *	ddps_cm_connect
 *	report RX_REP
 *	ddps_cm_ready or ddps_cm_reject
 *	ddps_cm_disconnect
 *	report RX_DREP, and later T_END
 *
 * At the passive side:
 *
 *	ddps_cm_listen
 *	report RX_REQ
 *	ddps_cm_reply or ddps_cm_reject
 *	report RX_RTU
 *	report RX_DREQ
 *	ddps_cm_closed
 *	report T_END
 *
 * Either side may disconnect.  A connection is named by its local communication ID.  It exists from
 * a successful ddps_cm_connect() or the report of a REQ until a report or a call leaves it in state
 * IDLE.  One in timewait may also end without a report; see max_conns.
 *
 * An agent is used by one thread at a time; two agents have nothing in common.  No function blocks.
 * Times are nanoseconds of any clock that does not run backwards.  Errors are those of
 * <ddpsess/err_codes.h>; ddps_ipoib_strerror() has their text.  Part of libddpsess-ipoib.
 */
#include <ddpsess/ipoib_cm.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DDPS_CM_NEVER UINT64_MAX /* a deadline that does not come */

/* ---- States and events of a connection (IBA volume 1, 12.9.7) ---- */

/*
 * The states are those of IBA.  WITHDRAWN is of this library: an interface has given up its own REQ,
 * and the ID is kept to refuse a late REP.
 */
#define DDPS_CM_STATES(X)                                                                          \
	X(IDLE)                                                                                    \
	X(REQ_SENT)                                                                                \
	X(MRA_REQ_RCVD)                                                                            \
	X(REP_RCVD)                                                                                \
	X(MRA_REP_SENT)                                                                            \
	X(WITHDRAWN)                                                                               \
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

/*
 * What happens to a connection.  Reports name the event that caused them.
 *
 * Calls: ACCEPT answers a REQ with a REP, or a REP with an RTU.  CLOSED: the program is done after a
 * DREQ.  Only this library makes DELAY (an MRA that asks for time), WITHDRAW (an own REQ is given up
 * without a message) and DATA_IN (arrived data stands for the RTU that is missing).
 *
 * Messages: RX_REP_STALE is a REP whose QPN belongs to another live connection.  RX_REJ_STALE is a
 * REJ with reason 10.  STALE: the peer uses this connection's QPN for another one.
 *
 * The timer: T_END: no resend is left, or the time of the state is over.  T_END_DATA: the same where
 * data has arrived on the connection.
 */
#define DDPS_CM_EVENTS(X)                                                                          \
	X(CONNECT)                                                                                 \
	X(ACCEPT)                                                                                  \
	X(REJECT)                                                                                  \
	X(DELAY)                                                                                   \
	X(ABORT)                                                                                   \
	X(WITHDRAW)                                                                                \
	X(DISCONNECT)                                                                              \
	X(CLOSED)                                                                                  \
	X(DATA_IN)                                                                                 \
	X(RX_REQ)                                                                                  \
	X(RX_REQ_DUP)                                                                              \
	X(RX_MRA)                                                                                  \
	X(RX_REP)                                                                                  \
	X(RX_REP_STALE)                                                                            \
	X(RX_REP_DUP)                                                                              \
	X(RX_RTU)                                                                                  \
	X(RX_REJ)                                                                                  \
	X(RX_REJ_STALE)                                                                            \
	X(RX_DREQ)                                                                                 \
	X(RX_DREP)                                                                                 \
	X(STALE)                                                                                   \
	X(T_RESEND)                                                                                \
	X(T_END)                                                                                   \
	X(T_END_DATA)

enum ddps_cm_event {
#define DDPS_X(name) DDPS_CM_EV_##name,
	DDPS_CM_EVENTS(DDPS_X)
#undef DDPS_X
		DDPS_CM_NEVENT
};

/**
 * ddps_cm_event_name - the name of an event
 * @ev:	enum ddps_cm_event, or any other value
 *
 * Return: a constant string such as "RX_REP"; "?" if there is no such event.
 */
DDPS_API const char *ddps_cm_event_name(enum ddps_cm_event ev);

/* ---- An agent ---- */

struct ddps_cm;

struct ddps_cm_config {
	size_t struct_size; /* set by ddps_cm_config_init() */
	uint64_t ca_guid;   /* of the channel adapter; goes into every REQ, REP and timeout REJ */
	uint32_t tid_high;  /* upper half of own transaction IDs */
	uint32_t id_seed;   /* random, so that a restart does not reuse IDs */
	/*
	 * Most connections, 1..65535; default 512.  REQs beyond are refused with reason 3.
	 * Connections in timewait count too.  But the oldest of them is forgotten for a new
	 * connection, without a report.
	 */
	unsigned max_conns;
	/*
	 * Random, for the tables of connections, and never shown to anybody.  A peer that knows it
	 * can make look-ups as slow as there are connections.
	 */
	uint64_t hash_key[2];
	uint8_t priv[DDPS_IPOIB_PRIV_LEN]; /* private data of REJs that concern no listener */
	/*
	 * Most connections that one address may have asked for and that are not over.  Its REQs
	 * beyond are refused with reason 3.  The address is where a REQ has come from: what the REQ
	 * says of its sender (GUID, GID, QPN) proves nothing.  0, the default: only max_conns
	 * limits them.
	 */
	unsigned max_per_addr;
};

/**
 * ddps_cm_config_init_sized - ddps_cm_config_init() for languages that cannot call it
 * @cfg:	receives the defaults
 * @size:	what @cfg takes in the caller's memory, in octets; nothing is written beyond
 */
DDPS_API void ddps_cm_config_init_sized(struct ddps_cm_config *cfg, size_t size);

/**
 * ddps_cm_config_init - fill in the defaults: all zero, 512 connections
 * @cfg:	receives the defaults
 */
static inline void ddps_cm_config_init(struct ddps_cm_config *cfg)
{
	ddps_cm_config_init_sized(cfg, sizeof(*cfg));
}

struct ddps_cm_listener {
	uint64_t service_id; /* whose REQs come to this listener */
	/* Own; a REQ to another one is refused with reason 12.  The same holds for an alternate
	 * path, with reason 18. */
	uint8_t gid[DDPS_IPOIB_GID_LEN];
	/* Compared without bit 15; a REQ with another one is refused with reason 12, too. */
	uint16_t pkey;
	/* private data of messages of its connections, unless a call gives other private data */
	uint8_t priv[DDPS_IPOIB_PRIV_LEN];
	void *user; /* comes with the reports of connections that REQs to this listener make */
};

/* Where a message goes to or came from: a token that only the caller understands. */
typedef uint64_t ddps_cm_addr;

struct ddps_cm_send {
	ddps_cm_addr to;
	uint8_t mad[DDPS_CM_MAD_LEN];
};

struct ddps_cm_report {
	uint32_t id; /* name of the connection */
	void *user;  /* of its listener, or of struct ddps_cm_connect */
	enum ddps_cm_event ev;
	enum ddps_cm_state state;      /* after the event; IDLE: the connection is gone */
	const struct ddps_cm_mad *mad; /* the message that caused the report, or NULL; valid until
					  the next ddps_cm_rx() */
	ddps_cm_addr addr;	       /* of the peer */
};

/* What one call brings forth; the callee fills it afresh. */
struct ddps_cm_outs {
	unsigned n_send, n_report;	 /* how many there are in send, and in report */
	struct ddps_cm_send send[2];	 /* to be sent, in this order */
	struct ddps_cm_report report[1]; /* to be looked at after that */
	uint64_t reserved[4];
};

/* Counters.  A later release may add some at the end. */
struct ddps_cm_stats {
	uint64_t malformed;   /* received, but the octets are no CM message */
	uint64_t unsupported; /* received, well formed, but of a kind that is not handled */
	uint64_t unmatched;   /* messages of no connection, or not legal in its state */
	uint64_t ignored;     /* duplicates and the like, which are expected */
	uint64_t refused;     /* REQs refused without asking the program */
	uint64_t over_share;  /* of these, because of max_per_addr */
};

/**
 * ddps_cm_new - make an agent
 * @out:	receives the agent; unchanged on failure
 * @cfg:	copied
 *
 * The program owns the agent and frees it with ddps_cm_free().
 *
 * Return: 0, or
 * - DDPS_E_INVAL: max_conns is out of range, or struct_size is no size of the struct
 * - DDPS_E_UNSUPPORTED: a member of a later release is set
 * - DDPS_E_NOMEM
 */
DDPS_API int ddps_cm_new(struct ddps_cm **out, const struct ddps_cm_config *cfg);

/**
 * ddps_cm_free - end an agent with all its connections
 * @cm:	agent; NULL is allowed
 *
 * It ends immediately, without a message to its peers.
 */
DDPS_API void ddps_cm_free(struct ddps_cm *cm);

/**
 * ddps_cm_listen - take REQs for a service ID
 * @cm:	agent
 * @l:	copied
 *
 * Return: 0, or
 * - DDPS_E_BUSY: there is a listener on that service ID
 * - DDPS_E_NOMEM
 */
DDPS_API int ddps_cm_listen(struct ddps_cm *cm, const struct ddps_cm_listener *l);

/**
 * ddps_cm_unlisten - take no more REQs for a service ID
 * @cm:		agent
 * @service_id:	of ddps_cm_listen().  An unknown service ID is ignored
 *
 * Connections that exist live on.
 */
DDPS_API void ddps_cm_unlisten(struct ddps_cm *cm, uint64_t service_id);

/**
 * ddps_cm_rx - a message has arrived
 * @cm:		agent
 * @buf:	one MAD, from the peer and hostile until this function has checked it
 * @len:	octets at @buf
 * @from:	where an answer goes
 * @now:	the time in nanoseconds
 * @o:		receives what is to be sent and reported
 *
 * A message that belongs to no connection, or is not legal in the state of its connection, is
 * dropped and counted.  But a REQ that cannot be accepted is refused, and a DREQ is answered.
 *
 * Return: 0, also for a message that was dropped, or
 * - DDPS_E_TRUNCATED: fewer than 256 octets
 * - DDPS_E_TOO_LONG: more than 256 octets
 * - DDPS_E_REVISION: base version or class version is not that of CM
 * - DDPS_E_UNSUPPORTED: another class or method, or an unknown attribute ID; also SIDR_REQ,
 *   SIDR_REP, LAP and APR, which are not handled
 * - DDPS_E_PROTOCOL: an information length is above 72
 */
DDPS_API int ddps_cm_rx(struct ddps_cm *cm, const void *buf, size_t len, ddps_cm_addr from,
			uint64_t now, struct ddps_cm_outs *o);

/**
 * ddps_cm_deadline - when to call ddps_cm_tick() next
 * @cm:	agent
 *
 * Every other call may change it, so ask after each.
 *
 * Return: a time in nanoseconds, or DDPS_CM_NEVER.
 */
DDPS_API uint64_t ddps_cm_deadline(const struct ddps_cm *cm);

/**
 * ddps_cm_tick - serve one connection whose time has come
 * @cm:		agent
 * @now:	the time in nanoseconds
 * @o:		receives what is to be sent and reported
 *
 * A message without an answer is sent again, or the connection ends.
 *
 * Return: 1: @o is filled, call again; 0: no connection is due.
 */
DDPS_API int ddps_cm_tick(struct ddps_cm *cm, uint64_t now, struct ddps_cm_outs *o);

/* ---- Calls of the program ---- */

struct ddps_cm_connect {
	struct ddps_cm_req req; /* local_id and ca_guid are filled in by ddps_cm_connect() */
	unsigned packet_life;	/* packet lifetime of the path, 5-bit time; above 31 means 31 */
	ddps_cm_addr to;	/* where messages of the connection go */
	void *user;		/* comes with its reports */
};

/**
 * ddps_cm_connect - send a REQ
 * @cm:		agent
 * @c:		copied
 * @now:	the time in nanoseconds
 * @id:		set on success: the name of the connection
 * @o:		receives what is to be sent and reported
 *
 * Without an answer the REQ is sent again after twice the packet lifetime plus
 * req.remote_cm_timeout.  That happens req.max_cm_retries times; then T_END is reported.  An
 * MRA of the peer makes the wait longer.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: a value does not fit its field
 * - DDPS_E_LIMIT: max_conns connections exist, none of them in timewait
 * - DDPS_E_NOMEM
 */
DDPS_API int ddps_cm_connect(struct ddps_cm *cm, const struct ddps_cm_connect *c, uint64_t now,
			     uint32_t *id, struct ddps_cm_outs *o);

/**
 * ddps_cm_reply - passive side: send a REP
 * @cm:		agent
 * @id:		connection whose REQ was reported
 * @rep:	copied; local_id, remote_id and ca_guid are filled in
 * @now:	the time in nanoseconds
 * @o:		receives what is to be sent and reported
 *
 * Without an answer the REP is sent again, as often and after as long as the REQ says
 * (max_cm_retries, local_cm_timeout).  Each wait is at most 8.6 s, but longer
 * after an MRA of the peer.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: no such connection, or a value does not fit its field
 * - DDPS_E_STATE: the connection is not in state REQ_RCVD or MRA_REQ_SENT
 */
DDPS_API int ddps_cm_reply(struct ddps_cm *cm, uint32_t id, const struct ddps_cm_rep *rep,
			   uint64_t now, struct ddps_cm_outs *o);

/**
 * ddps_cm_ready - active side: send an RTU
 * @cm:		agent
 * @id:		connection whose REP was reported
 * @priv:	8 octets of private data; NULL: those of the REQ
 * @now:	the time in nanoseconds
 * @o:		receives what is to be sent and reported
 *
 * The connection is established then.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: no such connection
 * - DDPS_E_STATE: the connection is not in state REP_RCVD or MRA_REP_SENT
 */
DDPS_API int ddps_cm_ready(struct ddps_cm *cm, uint32_t id, const uint8_t *priv, uint64_t now,
			   struct ddps_cm_outs *o);

/**
 * ddps_cm_reject - send a REJ to a REQ or REP that waits for an answer
 * @cm:		agent
 * @id:		connection whose REQ or REP was reported; it is gone after success
 * @reason:	enum ddps_cm_reason, or any other value
 * @priv:	8 octets of private data; NULL: those of the own REQ, or of the listener
 * @now:	the time in nanoseconds
 * @o:		receives what is to be sent and reported
 *
 * Return: 0, or
 * - DDPS_E_INVAL: no such connection
 * - DDPS_E_STATE: the connection is not in state REQ_RCVD, MRA_REQ_SENT, REP_RCVD or MRA_REP_SENT
 */
DDPS_API int ddps_cm_reject(struct ddps_cm *cm, uint32_t id, uint16_t reason, const uint8_t *priv,
			    uint64_t now, struct ddps_cm_outs *o);

/**
 * ddps_cm_abort - take an own REQ or REP back, with a REJ
 * @cm:		agent
 * @id:		connection
 * @reason:	of the REJ that takes a REP back.  For a REQ it is always 4
 * @now:	the time in nanoseconds
 * @o:		receives what is to be sent and reported
 *
 * After a REQ was taken back the connection is gone.  After a REP it is in timewait.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: no such connection
 * - DDPS_E_STATE: the connection is not in state REQ_SENT, MRA_REQ_RCVD, REP_SENT or MRA_REP_RCVD
 */
DDPS_API int ddps_cm_abort(struct ddps_cm *cm, uint32_t id, uint16_t reason, uint64_t now,
			   struct ddps_cm_outs *o);

/**
 * ddps_cm_disconnect - send a DREQ
 * @cm:		agent
 * @id:		connection
 * @now:	the time in nanoseconds
 * @o:		receives what is to be sent and reported
 *
 * It is sent again like the REQ or REP of this side.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: no such connection
 * - DDPS_E_STATE: the connection is not in state ESTABLISHED
 */
DDPS_API int ddps_cm_disconnect(struct ddps_cm *cm, uint32_t id, uint64_t now,
				struct ddps_cm_outs *o);

/**
 * ddps_cm_closed - send a DREP, after a DREQ was reported
 * @cm:		agent
 * @id:		connection
 * @now:	the time in nanoseconds
 * @o:		receives what is to be sent and reported
 *
 * Return: 0, or
 * - DDPS_E_INVAL: no such connection
 * - DDPS_E_STATE: the connection is not in state DREQ_RCVD
 */
DDPS_API int ddps_cm_closed(struct ddps_cm *cm, uint32_t id, uint64_t now, struct ddps_cm_outs *o);

/** ddps_cm_stats - Return: the agent's counters, valid until it is freed. */
DDPS_API const struct ddps_cm_stats *ddps_cm_stats(const struct ddps_cm *cm);

#ifdef __cplusplus
}
#endif
#endif
