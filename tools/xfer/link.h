/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_LINK_H
#define SESSCTL_LINK_H
/*
 * A client's one session: context, protection domain, completion queue and endpoint in one,
 * driven step by step.  What fails is reported here, once; callers pass the status on.
 */
#include "xfer/chan.h"
#include "cli/out/out.h"
#include "cli/sessctl.h"
#include "xfer/serve/disk.h"
#include "xfer/watch.h"
#include <ddpsess/capture.h>

#define MSG_ANY MSG_NTYPES

/* Longest silence of a peer that owes something. */
#define LINK_PATIENCE_MS 60000

struct link {
	struct out out;
	const struct opts *o;
	const char *uri;
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct chan chan;
	struct ddps_conn_info info;
	struct watch watch;
	struct ddps_capture *capture;
	int other_fd;	 /* another descriptor to wait for; -1: none */
	uint64_t due;	 /* of the whole command, ns; 0: none */
	bool up;	 /* established and not over */
	bool was_up;	 /* established once */
	bool over;	 /* the final event came */
	bool failed;	 /* reported already; no second message */
	bool peer_done;	 /* the peer sends nothing more */
	enum status end; /* status, once failed or over */
};

/* Before all else; @cmd names the command in messages. */
void link_init(struct link *l, const struct opts *o, const char *cmd);

/*
 * Prepare and connect to @uri; @recv_len as for chan_open.  link_free afterwards in any case.
 * Return: ST_DONE when established (and shown), else the reported status.
 */
enum status link_open(struct link *l, const char *uri, uint32_t recv_len);

/*
 * Wait for the next completion other than of a message's Send.
 * Return: ST_DONE with @wc, else the reported status.
 */
enum status link_next(struct link *l, struct ddps_wc *wc);

/*
 * Likewise at least one and at most @max, for whoever wants many a second: looks for a while before
 * it sleeps.  Return: ST_DONE with @n of @wc, else the reported status.
 */
enum status link_take(struct link *l, struct ddps_wc *wc, int max, int *n);

/*
 * Look into the message that @wc brought and post its buffer again.  REFUSE and ERROR are
 * reported; so is everything but @want unless that is MSG_ANY.
 */
enum status link_message(struct link *l, const struct ddps_wc *wc, enum msg_type want,
			 struct msg *m);

/* The two above: wait for one message. */
enum status link_expect(struct link *l, enum msg_type want, struct msg *m);

enum status link_send(struct link *l, const struct msg *m);

/* Report a failed call of the library; if the session is over, why it is. */
enum status link_call_failed(struct link *l, int err, const char *what);

/* Report a failure of our own and remember it. */
enum status link_fail(struct link *l, enum status s, const char *advice, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Do nothing for @ms, but notice the peer, the deadline and signals. */
enum status link_pause(struct link *l, uint32_t ms);

/*
 * Have @d do @t's work; the session, if there is one yet, goes on meanwhile, and completions wait.
 * If it hangs when all others have ended, this says so and ends the process.
 * Return: ST_DONE, or the reported status: the work is called off, and may still be done.
 */
enum status link_disk(struct link *l, struct disk *d, struct disk_task *t);

/* Wait for the peer to end the session, however long it takes, and drop what it sends. */
enum status link_wait(struct link *l);

/* End the session in order, if there is one, and show that.  Return: @s, or what failed. */
enum status link_close(struct link *l, enum status s);

/* Before ddps_ctx_free: wait until what was sent has arrived, unless a signal comes. */
void link_settle(struct ddps_ctx *ctx);

/* Free everything.  Return: @s, or ST_FAILED if output could not be written. */
enum status link_free(struct link *l, enum status s);

#endif
