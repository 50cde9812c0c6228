/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_MPA_CONN_H
#define DDPS_MPA_CONN_H
/*
 * The TCP driver's connection; private to mpa_io*.c.  Life and timers: mpa_io.c.  Startup
 * frames: mpa_io_setup.c.  FPDUs: mpa_io_data.c.  Listeners, provider: mpa_io_listen.c.
 */
#include "common/llp.h"
#include "mpa_tcp/mpa_rx.h"
#include "mpa_tcp/mpa_sm.h"
#include "mpa_tcp/mpa_tx.h"
#include "mpa_tcp/mpa_wire.h"
#include <netinet/in.h>

struct ddps_mpa_listener;

/* Needed until full operation only. */
struct ddps_mpa_startup {
	uint8_t in[DDPS_MPA_FRAME_MAX + 1], out[DDPS_MPA_FRAME_MAX]; /* and one that is too many */
	size_t in_len, in_need, out_len, out_sent;
};

union ddps_mpa_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

enum ddps_mpa_deadline {
	DDPS_MPA_T_NONE,
	DDPS_MPA_T_CONNECT,
	DDPS_MPA_T_SETUP,
	DDPS_MPA_T_FIRST_FPDU,
	DDPS_MPA_T_LINGER,
	DDPS_MPA_T_CLOSE
};

/* What each message needs is together at the beginning: with thousands of busy sessions it comes
 * from memory each time. */
struct ddps_mpa_conn {
	struct ddps_llp llp; /* first; up is NULL until someone above owns it */
	struct ddps_env *env;
	enum ddps_mpa_state state;
	uint64_t turn;	/* the loop's, in which it had its share */
	unsigned depth; /* of our functions at work, see zombie */
	bool initiator;
	bool req_enhanced, req_crc, req_markers;
	bool handed;	   /* responder: the layer above has seen the Request */
	bool connecting;   /* TCP is */
	bool held;	   /* kick() came when nothing could be sent */
	bool pumping;	   /* inside pump(), which calls up */
	bool blocked;	   /* the socket takes no more: wait for EPOLLOUT */
	bool want_close;   /* shutdown() was called */
	bool wr_shut;	   /* FIN sent */
	bool rd_eof;	   /* FIN received */
	bool rd_hup;	   /* it was seen to wait behind a stall */
	bool resume;	   /* the layer above wants the segment that it held back */
	bool zombie;	   /* freed by the layer above, but one of our functions is still at work */
	uint8_t rev;	   /* of the Request, later of the Reply */
	struct ddps_io io; /* fd -1: closed */
	struct ddps_mpa_tx tx;
	uint32_t mulpdu, emss;
	uint64_t mulpdu_age; /* octets sent since they were looked up */
	int tx_errno;	     /* sending failed; what the peer sent before is read first */
	struct ddps_mpa_startup *startup; /* until full operation */
	struct ddps_mpa_rx rx;

	struct ddps_llp_param p;
	struct ddps_timer timer;
	enum ddps_mpa_deadline deadline;
	struct ddps_task task; /* closed() and other things that a down call left to do */

	/* responders: the listener that counts this one as half-open, and its list */
	struct ddps_mpa_listener *listener;
	struct ddps_mpa_conn *next, **prev;

	union ddps_mpa_addr local, peer;
	struct ddps_error error; /* for closed() */
};

#define DDPS_MPA_LINGER_MS 1000u

/* ---- mpa_io.c ---- */

/* A connection around @fd; takes the descriptor over on success. */
struct ddps_mpa_conn *ddps_mpa_conn_new(struct ddps_env *env, int fd, const struct sockaddr *peer);
/* Free at once; no task, timer or list refers to it afterwards. */
void ddps_mpa_conn_destroy(struct ddps_mpa_conn *c);

/* Around everything that can call up; after leave() @c may be gone. */
static inline void ddps_mpa_enter(struct ddps_mpa_conn *c)
{
	c->depth++;
}

void ddps_mpa_tidy(struct ddps_mpa_conn *c); /* what leave() has put off */

static inline void ddps_mpa_leave(struct ddps_mpa_conn *c)
{
	if (!--c->depth && (c->zombie || c->startup))
		ddps_mpa_tidy(c);
}

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
/* The next close() resets the connection and drops what is not sent. */
void ddps_mpa_conn_set_reset(const struct ddps_mpa_conn *c);
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
void ddps_mpa_addr_text(const union ddps_mpa_addr *a, char *buf, size_t len);
void ddps_mpa_addr_set(union ddps_mpa_addr *a, const struct sockaddr *sa);

extern const struct ddps_llp_ops ddps_mpa_ops;

/* ---- mpa_io_setup.c ---- */

int ddps_mpa_setup_connect(struct ddps_env *env, const struct ddps_uri *uri,
			   const struct sockaddr *sa, socklen_t sa_len,
			   const struct ddps_setup *setup, const struct ddps_llp_param *p,
			   const struct ddps_llp_up *up, void *user, struct ddps_llp **out);
/* The descriptor is ready, while connecting or in a startup state. */
void ddps_mpa_setup_io(struct ddps_mpa_conn *c);
/* Write what is left of our frame; true: nothing is left. */
bool ddps_mpa_setup_flush(struct ddps_mpa_conn *c);
int ddps_mpa_setup_answer(struct ddps_mpa_conn *c, const struct ddps_setup *s,
			  const struct ddps_llp_param *p);
void ddps_mpa_setup_open(struct ddps_mpa_conn *c);
/* The state takes FPDUs or drops octets, and is not one of startup. */
static inline bool ddps_mpa_reads_stream(const struct ddps_mpa_conn *c)
{
	return c->state == DDPS_MPA_FENCED || c->state == DDPS_MPA_MUTE ||
	       c->state == DDPS_MPA_FULL || c->state == DDPS_MPA_STREAM;
}

/* ---- mpa_io_data.c ---- */

extern const struct ddps_mpa_rx_sink ddps_mpa_conn_sink;

void ddps_mpa_data_read(struct ddps_mpa_conn *c);
/* Stalled, and the descriptor says that the connection is broken. */
void ddps_mpa_data_hangup(struct ddps_mpa_conn *c);
/* Stalled, and the peer's FIN has come. */
void ddps_mpa_data_closing(struct ddps_mpa_conn *c);
/* Show what was held back again. */
void ddps_mpa_data_resume(struct ddps_mpa_conn *c);
/* Send as much as there is and the socket takes, then our FIN if it is due. */
void ddps_mpa_data_advance(struct ddps_mpa_conn *c);

/* ---- mpa_io_listen.c ---- */

/* @c no longer counts as half-open. */
void ddps_mpa_listener_release(struct ddps_mpa_conn *c);
/* @c's Request is whole and valid: hand it up. */
void ddps_mpa_listener_request(struct ddps_mpa_conn *c, const struct ddps_setup *s);

#endif
