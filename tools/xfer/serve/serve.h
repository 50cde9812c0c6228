/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_SERVE_H
#define SESSCTL_SERVE_H
/*
 * The listener's side: many sessions in one loop.  serve.c has a session's life and hands its
 * messages to the service that the first one asked for (serve_put.c, serve_get.c,
 * serve_ping.c, serve_perf.c).
 */
#include "xfer/chan.h"
#include "cli/out/out.h"
#include "cli/sessctl.h"
#include "xfer/serve/disk.h"
#include "xfer/watch.h"
#include <ddpsess/capture.h>
#include <ddpsess/watch.h>
#include <sys/queue.h>

#define SERVE_SESSIONS_MAX 4096		 /* at a time; more are rejected, and told */
#define SERVE_SESSION_FDS  2u		 /* a socket and a file */
#define SERVE_OWN_FDS	   24u		 /* of the listener itself, and some left */
#define SERVE_WINDOWS_MAX  (1024u << 20) /* octets of all windows together, likewise */
#define SERVE_PATIENCE_MS  60000	 /* default of --timeout: silence of a peer */
#define SERVE_PAUSE_MAX_MS 60000	 /* between two pings */
#define SERVE_RATE_MIN	   65536u /* octets a second: a file that comes or goes slower is given up */
#define SERVE_GOODBYE_MS   10000  /* a peer that was asked to go */

/* A peer as far as shares go: an IPv4 address, or an IPv6 network of 64 bits, of which each link has a link-local one;
 * on this host, a user. */
struct serve_net {
	struct ddps_addr addr;
	uint32_t uid;
};

/* What is counted, for sessctl stat. */
enum serve_refusal {
	REFUSED_SESSIONS, /* full, or one address has its share */
	REFUSED_WINDOWS,  /* likewise */
	REFUSED_SIZES,	  /* --max-size */
	REFUSED_DISK,	  /* one address has its share of what is free */
	REFUSALS
};

struct server {
	struct out out;
	const struct opts *o;
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_listener *listener;
	int dirfd; /* -1: no files */
	LIST_HEAD(, session) sessions;
	uint64_t windows; /* octets handed out */
	unsigned taken;	  /* requests so far */
	unsigned live, dead, ended;
	unsigned room; /* so many sessions at the same time */
	struct watch watch;
	struct ddps_capture *capture;
	struct ddps_watch *shown; /* or NULL */
	_Atomic uint64_t refused[REFUSALS];
	struct hasher *hasher; /* of files, from the first one on */
	struct disk *disk;     /* NULL: no files */
	unsigned hot;	       /* sessions that are measured: look again before sleeping */
	uint64_t
		now; /* for completions that were taken together, or 0: nobody has asked the clock yet */
};

struct session;

/* What a service does with one session.  The functions return nothing: what goes wrong
 * they say to the peer, by session_give_up. */
struct service {
	/* A message; its buffer is posted again afterwards. */
	void (*message)(struct session *s, const uint8_t *data, uint32_t len);
	/* A work request of the service's own; NULL: it has none. */
	void (*completion)(struct session *s, const struct ddps_wc *wc);
	/* The session is over: release @job, or have the disk's thread do it. */
	void (*stop)(struct session *s);
	bool open_end;	   /* the peer may close at any time */
	bool own_receives; /* it posts them itself; message buffers are not posted again */
};

enum session_state {
	SESSION_SETUP,	 /* accepted */
	SESSION_OPEN,	 /* established, nothing asked for */
	SESSION_SERVING, /* @service at work */
	SESSION_LEAVING, /* all is said; the peer is to close */
	SESSION_CLOSING, /* disconnected by us */
	SESSION_DEAD	 /* the final event came; freed at the end of the round */
};

struct session {
	LIST_ENTRY(session) of_all;
	struct server *sv;
	unsigned id; /* as sessctl stat shows it */
	enum session_state state;
	struct chan chan;
	struct window win;
	struct ddps_conn_info info;
	uint8_t pd[DDPS_PD_MAX]; /* of the request */
	size_t pd_len;
	bool early; /* the first message came before the event */
	uint32_t early_len;
	uint64_t due;	      /* when patience with the peer ends, ns */
	uint64_t patience_ns; /* renewed by each message */
	uint64_t limit;	      /* when all must be done, ns; 0: none.  Nothing renews it */
	struct serve_net net; /* whose shares it counts in */
	const struct service
		*service; /* set before session_begin by one that the disk works for first */
	void *job;
	struct disk_task task; /* one at a time */
	bool disk_busy;	       /* with it */
	uint64_t disk_begin;   /* ns */
	uint64_t on_disk;      /* octets of a file that it has not finished */
	void (*then)(struct session *s);
};

/* ---- for cmd_listen.c ---- */

/* Any other event of a session, and its completions. */
void serve_event(struct server *sv, const struct ddps_event *ev);
void serve_completion(const struct ddps_wc *wc);
/* Sessions whose peer has been silent for too long. */
void serve_deadlines(struct server *sv);
/* Go on with those that the disk is through with; @wait: until there is one, if any is to come. */
void serve_disk(struct server *sv, bool wait);
/* --stat: how those that are up stand. */
void serve_show(struct server *sv);
/* Free those that are over. */
void serve_reap(struct server *sv);
/* End all, in order. */
void serve_close_all(struct server *sv);

/* ---- serve_share.c: no peer has more of anything than is left for all others ---- */

/* What the limit of open files, which is raised, leaves: sessions, and of the @half_open peers that are wanted so
 * many, a quarter at most.  Return: false: not enough for one. */
bool share_files(unsigned *sessions, unsigned *half_open);
/* Of a session's peer. */
struct serve_net share_net(const struct ddps_conn_info *info);
/* A ddps_watch_fn: what was refused, of the server @user. */
int share_show(void *user, uint32_t n, char *to, size_t size);
/* Why @net gets no session now, or NULL. */
const char *share_of_sessions(const struct server *sv, const struct serve_net *net);
/* Why @s gets no window of @len octets now, or NULL. */
const char *share_of_windows(const struct session *s, size_t len);
/* Octets of unfinished files of @s's peer. */
uint64_t share_on_disk(const struct session *s);
/* Why a peer that has @held octets of them, @len included, may not write those into @fd, or NULL.  For any thread. */
const char *share_of_disk(int fd, uint64_t held, uint32_t len);

/* ---- for the services ---- */

/* Begin with @m, the session's first message. */
void serve_put(struct session *s, const struct msg *m);
void serve_get(struct session *s, const struct msg *m);
void serve_ping(struct session *s, const struct msg *m);
void serve_perf(struct session *s, const struct msg *m);

/* Take the service's side from here on and post receive buffers 1.. as well. */
void session_begin(struct session *s, const struct service *service, void *job);

/* From now on, the session must be done in the time that @octets need at SERVE_RATE_MIN. */
void session_limit(struct session *s, uint64_t octets);

/*
 * Have a thread of the disk do @work with the session's job, which is the thread's until the loop calls
 * @then: not if the session has ended by then.  One at a time.
 */
void session_disk(struct session *s, void (*work)(void *job), void (*then)(struct session *s));

/* For serve_disk.c: patience with the peer begins again; the service ends. */
void session_renew(struct session *s);
void session_stop(struct session *s);

/* A window from the server's budget.  Return: 0, or -1: refused, the peer was informed. */
int session_window(struct session *s, size_t len, unsigned access);

/* The thread that computes digests of @kind, or NULL. */
struct hasher *session_hasher(struct session *s, enum digest_kind kind);

/* Send, or drop the session if that is not possible. */
void session_send(struct session *s, const struct msg *m);

/* The service is done; the peer is to close. */
void session_done(struct session *s);

/* Say why not, by REFUSE before the service began and ERROR after it, then as session_done. */
void session_give_up(struct session *s, const char *reason);

/* Report a failure that the peer need not or cannot be informed, and drop the session. */
void session_drop(struct session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
