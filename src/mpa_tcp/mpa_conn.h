/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_MPA_CONN_H
#define DDPS_MPA_CONN_H
/*
 * An MPA connection, without sockets: life, timers and calls from above are in mpa_conn.c, startup
 * frames in mpa_setup.c, FPDUs in mpa_data.c.  What it needs of TCP it asks of struct ddps_mpa_tcp.
 * mpa_io.c has that for sockets, mpa_io_listen.c the listeners and the provider; a test has it in
 * memory.
 */
#include "common/llp.h"
#include "common/shares.h"
#include "mpa_tcp/mpa_rx.h"
#include "mpa_tcp/mpa_sm.h"
#include "mpa_tcp/mpa_tx.h"
#include "mpa_tcp/mpa_wire.h"
#include <netinet/in.h>
#include <sys/queue.h>

struct ddps_mpa_listener;
struct ddps_mpa_conn;
struct ddps_mpa_tls;
struct ddps_mpa_shm;
struct ddps_mpa_near;

/* What there is to wait for, and what has come.  The values are epoll's. */
enum ddps_mpa_ready {
	DDPS_MPA_IN = 0x1,
	DDPS_MPA_OUT = 0x4,
	DDPS_MPA_BROKEN = 0x18, /* reset, or both directions are closed; always waited for */
	DDPS_MPA_PEER_FIN = 0x2000,
};

/* A TCP connection.  Nothing here waits or calls back. */
struct ddps_mpa_tcp {
	/* Octets, 0: the peer's FIN, or a negative errno, -EAGAIN among them, -EINTR not. */
	ssize_t (*recv)(struct ddps_mpa_conn *c, struct iovec *iov, int n);
	/* Octets, or a negative errno. */
	ssize_t (*send)(struct ddps_mpa_conn *c, struct iovec *iov, int n);
	void (*fin)(struct ddps_mpa_conn *c);
	/* The next close() resets the connection and drops what is not sent. */
	void (*reset)(struct ddps_mpa_conn *c);
	void (*close)(struct ddps_mpa_conn *c);
	/* @c goes: free what is kept of it; NULL: nothing is. */
	void (*release)(struct ddps_mpa_conn *c);
	/* Why it is broken, or why connecting failed: an errno, or 0. */
	int (*error)(struct ddps_mpa_conn *c);
	/* Have ddps_mpa_conn_ready() called for these DDPS_MPA_* bits.  @eager: data is on its way.
	 * Return 0 or -1 with errno. */
	int (*watch)(struct ddps_mpa_conn *c, unsigned events, bool eager);
	bool watch_keeps; /* the same asked for again changes nothing: it need not be */
	void (*unwatch)(struct ddps_mpa_conn *c);
	/* Fills c->local. */
	void (*local)(struct ddps_mpa_conn *c);
	/* Octets of payload that a segment holds, or 0: not known. */
	uint32_t (*emss)(struct ddps_mpa_conn *c);
	/* How it goes; DDPS_E_STATE: not known. */
	int (*stats)(const struct ddps_mpa_conn *c, struct ddps_llp_tcp *st);
	/* Octets that the peer's TCP has not acknowledged yet; our FIN counts as one. */
	size_t (*unacked)(const struct ddps_mpa_conn *c);
	/* Octets that were received before are worked on: the connection is not idle. */
	void (*busy)(struct ddps_mpa_conn *c);
	/* What need not be there before our Request or Reply is on its way, such as how long a peer is waited for
	 * that answers nothing: c->p says; NULL: there is no such thing. */
	void (*options)(struct ddps_mpa_conn *c);
	/* What else it knows of the peer; NULL: nothing. */
	void (*info)(const struct ddps_mpa_conn *c, struct ddps_conn_info *info);
};

/* Responders: who waits for their Requests. */
struct ddps_mpa_owner {
	/* @c's Request is whole and valid: hand it up. */
	void (*request)(struct ddps_mpa_conn *c, const struct ddps_setup *s);
	/* The answer is a rejection: until it is gone @c counts as one that says nothing. */
	void (*rejected)(struct ddps_mpa_conn *c);
	/* @c no longer counts as half-open; told once or more. */
	void (*settled)(struct ddps_mpa_conn *c);
};

/* The peer's direction. */
enum ddps_mpa_rd {
	DDPS_MPA_RD_OPEN,
	DDPS_MPA_RD_HUNG_UP, /* its FIN was seen to wait behind a stall */
	DDPS_MPA_RD_EOF
};

/* Our direction. */
enum ddps_mpa_wr {
	DDPS_MPA_WR_OPEN,
	DDPS_MPA_WR_FULL, /* TCP takes no more, or others have their turn: wait for DDPS_MPA_OUT */
	DDPS_MPA_WR_LOST, /* sending failed, see tx_errno; what the peer sent before is read first */
	DDPS_MPA_WR_SHUT  /* our FIN is sent */
};

/* Needed until full operation only. */
struct ddps_mpa_startup {
	uint8_t in[DDPS_MPA_FRAME_MAX + 1], out[DDPS_MPA_FRAME_MAX]; /* and one that is too many */
	size_t in_len, in_need, out_len, out_sent;
	bool enhanced, crc, markers; /* of the Request */
};

union ddps_mpa_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct {
		sa_family_t family; /* AF_UNIX */
		const char *text;   /* which lives as long as the connection; or NULL */
	} un;
};

enum ddps_mpa_deadline {
	DDPS_MPA_T_NONE,
	DDPS_MPA_T_CONNECT,
	DDPS_MPA_T_SETUP,
	DDPS_MPA_T_FIRST_FPDU,
	DDPS_MPA_T_LINGER,
	DDPS_MPA_T_CLOSE,
	DDPS_MPA_T_STALL, /* a segment is held back for so long that the peer's close may wait behind others */
	DDPS_MPA_T_ACKS /* both sides have closed */
};

/* What each message needs is together at the beginning: with thousands of busy sessions it comes
 * from memory each time. */
struct ddps_mpa_conn {
	struct ddps_llp llp; /* first; up is NULL until someone above owns it */
	struct ddps_env *env;
	const struct ddps_mpa_tcp *tcp;
	struct ddps_mpa_startup *startup; /* until full operation */
	uint64_t turn;			  /* the loop's, in which it had its share */
	uint32_t mulpdu;
	enum ddps_mpa_state state;
	enum ddps_mpa_rd rd;
	enum ddps_mpa_wr wr;
	unsigned depth;	   /* of our functions at work, see zombie */
	bool open;	   /* there is a TCP connection, or one is being made */
	bool held;	   /* kick() came when nothing could be sent */
	bool pumping;	   /* inside pump(), which calls up */
	bool want_close;   /* shutdown() was called */
	bool resume;	   /* the layer above wants the segment that it held back */
	bool stepwise;	   /* unit tests: no straight way */
	bool calm;	   /* watched for input alone: what nearly always is to be waited for */
	bool zombie;	   /* freed by the layer above, but one of our functions is still at work */
	struct ddps_io io; /* mpa_io.c's */
	struct ddps_mpa_tx tx;
	uint64_t mulpdu_age; /* octets sent since it was looked up: see DDPS_MPA_MULPDU_AGE */
	struct ddps_mpa_rx rx;

	bool initiator;
	bool asks_soon; /* mpa_io.c's: its keepalive is that of a session that stalls */
	bool spared;	/* mpa_io_listen.c's: it had sent something when its place was wanted */
	uint8_t rev;	/* of the Request, later of the Reply */
	uint32_t keepalive_ms;	    /* mpa_io.c's: what its socket has of the listener's */
	struct ddps_mpa_tls *tls;   /* mpa_tls.c's; NULL: not secured */
	struct ddps_mpa_shm *shm;   /* mpa_shm.c's; NULL: not through shared memory */
	struct ddps_mpa_near *near; /* mpa_near.c's; NULL: TCP stays, or has made way */
	bool ask_crc, ask_markers;  /* with TLS: the URI says so */
	uint32_t emss;
	int tx_errno;	   /* DDPS_MPA_WR_LOST: why */
	uint32_t acks_ms;  /* DDPS_MPA_T_ACKS: when it was looked last */
	uint64_t close_by; /* ddps_now(): when the end has to be over; 0: no limit */

	struct ddps_llp_param p;
	struct ddps_timer timer;
	enum ddps_mpa_deadline deadline;
	struct ddps_task task; /* closed() and other things that a down call left to do */

	const struct ddps_mpa_owner *owner; /* NULL: an initiator */
	/* mpa_io_listen.c's: the listener that counts this one as half-open, and its list */
	struct ddps_mpa_listener *listener;
	LIST_ENTRY(ddps_mpa_conn) of_listener;
	bool listed;
	struct ddps_share share; /* counted until its Request is whole, and when it is rejected */

	union ddps_mpa_addr local, peer;
	struct ddps_error error; /* for closed() */
};

#define DDPS_MPA_LINGER_MS  1000u
#define DDPS_MPA_MULPDU_AGE (1024u * 1024) /* EMSS is looked at again after so many octets */

/* ---- mpa_conn.c ---- */

/* A connection on @tcp, which is open or about to be. */
struct ddps_mpa_conn *ddps_mpa_conn_new(struct ddps_env *env, const struct ddps_mpa_tcp *tcp,
					const struct sockaddr *peer);
/* TCP has something: DDPS_MPA_* bits.  @c may be gone afterwards. */
void ddps_mpa_conn_ready(struct ddps_mpa_conn *c, unsigned events);
/* Free immediately; no task, timer or list refers to it afterwards. */
void ddps_mpa_conn_destroy(struct ddps_mpa_conn *c);

/* Still to be worked on: neither closed nor freed from above. */
static inline bool ddps_mpa_alive(const struct ddps_mpa_conn *c)
{
	return !c->zombie && c->state != DDPS_MPA_CLOSED;
}

/* Step the machine, with a line in the log; 0: not legal now. */
unsigned ddps_mpa_conn_step(struct ddps_mpa_conn *c, enum ddps_mpa_event ev);

/* Over: close TCP now, closed() comes from the loop.  @e NULL: as asked.  The first wins. */
void ddps_mpa_conn_end(struct ddps_mpa_conn *c, const struct ddps_error *e) __attribute__((cold));
/* The same with an error made from a printf format. */
void ddps_mpa_conn_fail(struct ddps_mpa_conn *c, int code, int sys_errno, const char *fmt, ...)
	__attribute__((cold, format(printf, 4, 5)));
/* Triple 2/0/01: a TCP connection that went away, as far as MPA knows. */
void ddps_mpa_conn_lost(struct ddps_mpa_conn *c, int sys_errno, const char *what)
	__attribute__((cold));

void ddps_mpa_conn_deadline(struct ddps_mpa_conn *c, enum ddps_mpa_deadline what, uint32_t ms);
/* Wait for what the state calls for. */
void ddps_mpa_conn_watch(struct ddps_mpa_conn *c);
/* Look up what TCP's segments hold, and cut by it. */
void ddps_mpa_conn_update_emss(struct ddps_mpa_conn *c);
/* Cut by what was looked up last: markers or the bound from above have changed. */
void ddps_mpa_conn_set_mulpdu(struct ddps_mpa_conn *c);

static inline bool ddps_mpa_connecting(const struct ddps_mpa_conn *c)
{
	return c->state == DDPS_MPA_IDLE;
}

/* It began over TCP, and goes through shared memory now. */
static inline bool ddps_mpa_has_moved(const struct ddps_mpa_conn *c)
{
	return c->shm && c->peer.sa.sa_family != AF_UNIX;
}

extern const struct ddps_llp_ops ddps_mpa_ops;

/* ---- mpa_addr.c ---- */

void ddps_mpa_addr_text(const union ddps_mpa_addr *a, char *buf, size_t len);
void ddps_mpa_addr_set(union ddps_mpa_addr *a, const struct sockaddr *sa);

/* ---- mpa_setup.c ---- */

/* Whether a Request can be made of @setup.  Return 0, DDPS_E_TOO_LONG or DDPS_E_INVAL. */
int ddps_mpa_setup_check(const struct ddps_setup *setup);
/* Initiator: the Request lies ready, and goes out when TCP is connected. */
void ddps_mpa_setup_initiate(struct ddps_mpa_conn *c, const struct ddps_setup *setup,
			     const struct ddps_llp_param *p, const struct ddps_llp_up *up,
			     void *user);
/* TCP is connected. */
void ddps_mpa_setup_connected(struct ddps_mpa_conn *c);
/* It may be: if TCP takes the Request it is.  Return 0, also where that is to be seen; or an errno: it cannot be
 * connected. */
int ddps_mpa_setup_try(struct ddps_mpa_conn *c);
/* TCP is ready, while connecting or in a startup state. */
void ddps_mpa_setup_io(struct ddps_mpa_conn *c);
/* Write what is left of our frame; true: nothing is left. */
bool ddps_mpa_setup_flush(struct ddps_mpa_conn *c);
int ddps_mpa_setup_answer(struct ddps_mpa_conn *c, const struct ddps_setup *s,
			  const struct ddps_llp_param *p);
void ddps_mpa_setup_open(struct ddps_mpa_conn *c);
/* Shared memory is in TCP's place (mpa_near.c): no CRCs, other segments. */
void ddps_mpa_setup_moved(struct ddps_mpa_conn *c);
/* The state takes FPDUs or drops octets, and is not one of startup. */
static inline bool ddps_mpa_reads_stream(const struct ddps_mpa_conn *c)
{
	return c->state == DDPS_MPA_FULL || c->state == DDPS_MPA_FENCED ||
	       c->state == DDPS_MPA_MUTE || c->state == DDPS_MPA_STREAM;
}

/* ---- mpa_data.c ---- */

extern const struct ddps_mpa_rx_sink ddps_mpa_conn_sink;

void ddps_mpa_data_read(struct ddps_mpa_conn *c);
/* Stalled, and TCP says that the connection is broken, by @err. */
void ddps_mpa_data_hangup(struct ddps_mpa_conn *c, int err);
/* Stalled, and the peer's FIN has come. */
void ddps_mpa_data_closing(struct ddps_mpa_conn *c);
/* Show what was held back again. */
void ddps_mpa_data_resume(struct ddps_mpa_conn *c);
/* Both sides have closed: it ends when the peer has acknowledged everything. */
void ddps_mpa_data_closed(struct ddps_mpa_conn *c, uint64_t now);
/* Send as much as there is and the socket takes, then our FIN if it is due. */
void ddps_mpa_data_advance(struct ddps_mpa_conn *c);
/* Have TCP take what it takes of the batch, of which @left octets are left; returns how many it has taken. */
size_t ddps_mpa_data_write(struct ddps_mpa_conn *c, size_t left);
/* TCP did not take what was to be written, by @err. */
void ddps_mpa_data_send_failed(struct ddps_mpa_conn *c, int err);
/* What was pulled cannot be framed: DDPS_E_NOMEM or DDPS_E_INVAL. */
void ddps_mpa_data_fill_failed(struct ddps_mpa_conn *c, int err) __attribute__((cold));

/* ---- mpa_straight.c ---- */

/* In full operation something was posted: the way of most.  false: ddps_mpa_data_advance() is to do it, or to go on. */
bool ddps_mpa_straight_send(struct ddps_mpa_conn *c);

/* ---- mpa_ahead.c ---- */

/* Stalled: if that lasts, what follows is read ahead, so that the peer's close is seen. */
void ddps_mpa_ahead_soon(struct ddps_mpa_conn *c);
/* It has lasted, or there is more. */
void ddps_mpa_ahead_read(struct ddps_mpa_conn *c);

/* ---- mpa_io.c ---- */

extern const struct ddps_mpa_tcp ddps_mpa_sockets;
/* recv and send of these without a capture, and what one shows of @n octets. */
ssize_t ddps_mpa_io_read(struct ddps_mpa_conn *c, struct iovec *iov, int k);
ssize_t ddps_mpa_io_write(struct ddps_mpa_conn *c, struct iovec *iov, int k);
void ddps_mpa_io_show(const struct ddps_mpa_conn *c, bool sent, const struct iovec *iov, int k,
		      size_t n) __attribute__((cold));
/* TCP is not to wait for more. */
void ddps_mpa_io_nodelay(int fd);
/* A peer that answers nothing is given up after so long, 0: never.  Return whether the system took that. */
bool ddps_mpa_io_keepalive(int fd, uint32_t ms);
/* A connection around @fd, which it takes over on success. */
struct ddps_mpa_conn *ddps_mpa_io_new(struct ddps_env *env, int fd, const struct sockaddr *peer);
int ddps_mpa_io_connect(struct ddps_env *env, const struct ddps_uri *uri, const struct sockaddr *sa,
			socklen_t sa_len, const struct ddps_setup *setup,
			const struct ddps_llp_param *p, const struct ddps_llp_up *up, void *user,
			struct ddps_llp **out);

#endif
