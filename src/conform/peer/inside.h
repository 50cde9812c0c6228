/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_INSIDE_H
#define DDPS_CONFORM_INSIDE_H
/* What the files of the peer share, and a few cases that look inside. */
#include "conform/peer/peer.h"
#include "conform/peer/left.h"
#include "conform/peer/trace.h"
#include <sys/socket.h>

struct cf_secured;
struct cf_shared;
struct cf_tls;

struct cf_run {
	unsigned wire;	   /* CF_TCP or CF_SCTP */
	bool self;	   /* the target is our own stack, in this process */
	const char *uri;   /* else: a responder's URI, or where to wait for initiators */
	const char *then;  /* shell command that makes an initiator connect, or NULL */
	unsigned limit_ms; /* of each wait */
	unsigned pause_ms; /* between the MPA Reply and what the case sends next */
	enum cf_target target;
	struct cf_secured *secured;   /* TCP: inside TLS; or NULL */
	bool shared;		      /* in place of TCP: shared memory */
	struct cf_patience *patience; /* of the run, or NULL: whole waits always */
};

#define CF_NQN 4

struct cf_conn {
	struct cf_conn *next;
	unsigned number;
	bool session; /* set up: segments may flow */
	/* TCP */
	int fd;
	struct cf_tls *tls; /* or NULL: none, or not yet */
	struct cf_shared *shared;
	bool peeked; /* @peek was read, and comes next */
	uint8_t peek;
	bool crc, tx_markers, rx_markers;
	uint64_t tx_off, rx_off; /* from the start of full operation */
	/* SCTP */
	struct cf_assoc *assoc;
	uint16_t stream, tx_ssn, rx_ssn;
	/* both */
	uint32_t msn[CF_NQN];
};

/* What a wait that begins now is part of, and how many milliseconds it may take. */
enum cf_part cf_part_of(const struct cf *cf);
unsigned cf_limit(const struct cf *cf, enum cf_part part);
/* A valid message of the target's came, in a wait that began at @since; none did, and the case fails. */
void cf_heard(struct cf *cf, enum cf_part part, uint64_t since);
void cf_silent(struct cf *cf, enum cf_part part);
/* The target has ended the connection or association where something else was due. */
void cf_closed(struct cf *cf);
/*
 * What is waited for, for people, if the caller of the caller has not said it already.  Return: whether it
 * was put there, to be given to cf_wanted() once it has come.
 */
bool cf_want(struct cf *cf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cf_wanted(struct cf *cf, bool mine);

/* Milliseconds left of a wait that began at @since. */
int cf_ms_left(const struct cf *cf, uint64_t since);
/* Time left of a wait that began at @since; fails the case when there is none. */
int cf_left(struct cf *cf, uint64_t since, const char *what);
/* Around each sleep of a wait called @key, of at most @ms (left.h).  Return: how long to sleep. */
int cf_nap(struct cf *cf, uint64_t key, int ms);
void cf_woke(struct cf *cf);

struct cf_conn *cf_conn_new(struct cf *cf);

/* Where a URI leads: its parts, and the first address of its host. */
struct cf_at {
	struct sockaddr_storage ss;
	socklen_t len;
	char backend[16]; /* SCTP: "" if not given */
	int encap;	  /* SCTP: UDP port, or one of those below */
};

#define CF_ENCAP_DEFAULT (-1) /* not given */
#define CF_ENCAP_OFF	 (-2) /* SCTP directly on IP */

/* A URI's host, the first if there are several, without brackets. */
void cf_uri_host(const char *uri, char *host, size_t len);
void cf_address(struct cf *cf, const char *uri, struct cf_at *at);
/* "192.0.2.1:7174" or "[2001:db8::1]:7174". */
void cf_addr_text(const struct sockaddr_storage *ss, char *buf, size_t len);
uint32_t cf_crc32c(const uint8_t *p, size_t len);

/* tcp.c */
void cf_tcp_open(struct cf *cf);
void cf_tcp_open_plain(struct cf *cf); /* without TLS, in a secured run, too */
void cf_tcp_close(struct cf_conn *c, const struct cf_run *run);
void cf_tcp_unlisten(struct cf *cf);
void cf_fpdu_send(struct cf *cf);
void cf_fpdu_recv(struct cf *cf);
void cf_tcp_expect_end(struct cf *cf, bool in_order);
bool cf_tcp_ended(struct cf *cf); /* what comes next is a FIN or RST */

/* Where the target listens in self mode, and where it is made to connect to. */
const char *cf_self_uri(const struct cf *cf);

/* sctp.c */
void cf_sctp_open(struct cf *cf);
void cf_sctp_close(struct cf *cf);
/* The session's next message by its DDP-SSN, whichever came first; unordered. */
const struct cf_msg *cf_sctp_in_order(struct cf *cf);
void cf_sctp_expect_end(struct cf *cf);
bool cf_sctp_ended(struct cf *cf); /* what comes next is no segment */
void cf_sctp_step(struct cf *cf);  /* what has come for the peer is acknowledged; none: nothing */

/* app.c */
void cf_app_start(struct cf *cf);
void cf_app_stop(struct cf *cf);
bool cf_app_next(struct cf *cf, struct ddps_event *ev); /* an event of any type comes in time */
const char *cf_app_uri(struct cf *cf, char *buf, size_t len);
/* Make the target connect to @uri, by its application or by the run's command. */
void cf_provoke(struct cf *cf, const char *uri);
void cf_provoked_end(struct cf *cf);
/* How long to sleep of @left ms; fails if the command did before the target connected. */
int cf_provoked_left(struct cf *cf, int left);

/* What only one wire or mode needs. */
struct cf_res {
	int listen_fd;		    /* TCP, the target is the initiator */
	struct cf_net *net;	    /* sctp.c */
	int child;		    /* process of the run's command, 0: none */
	bool awaited;		    /* it has not connected yet */
	bool over;		    /* and has ended, with a failure */
	struct cf_app_mem *mem;	    /* app.c */
	struct cf_partner *partner; /* relay/partner.c */
	unsigned partners;	    /* so many there were */
};

#endif
