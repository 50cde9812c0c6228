/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MPA_WORLD_H
#define MPA_WORLD_H
/*
 * For the tests of the TCP driver: an environment with a loop, a listener, a layer above that
 * writes down what is reported to it and can be scripted, and bare TCP peers.
 */
#include "common/llp.h"
#include "mpa_tcp/mpa_conn.h"
#include "support/mpa_support.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define MPA_REQ "MPA ID Req Frame"
#define MPA_REP "MPA ID Rep Frame"

/* What the layer above does when it is called. */
enum mpa_upcall {
	UP_ANSWER,
	UP_REQUEST,
	UP_RX,
	UP_DONE,
	UP_FAULT,
	UP_PEER_CLOSED,
	UP_PEER_CLOSING,
	UP_CLOSED,
	UP_N
};
enum mpa_reaction { DO_DEFAULT, DO_NOTHING, DO_FREE, DO_ABORT, DO_SHUTDOWN, DO_REJECT, DO_REFUSE };

struct mpa_world;

/* One connection as the layer above sees it. */
struct mpa_side {
	struct mpa_world *w;
	struct ddps_llp *llp;
	struct ddps_llp_param p;
	enum mpa_reaction react[UP_N];
	unsigned called[UP_N];

	/* from the peer */
	struct ddps_setup setup; /* pd points to pd below */
	uint8_t pd[512];
	struct mpa_octets in; /* ULPDUs, one behind the other */
	unsigned segments, holds;
	unsigned take; /* so many more are taken, then rx_segment says DDPS_LLP_HOLD */
	bool holding;
	struct ddps_error fault, end;

	/* to the peer: nseg segments of seg_len octets of the pattern */
	const uint8_t *pattern;
	size_t seg_len;
	unsigned nseg, pulled, done;
	uint8_t *bad;	    /* payload is taken from here */
	bool abort_on_pull; /* the second one */
	unsigned late;	    /* so many more are posted when there seem to be no more */

	/* direct placement of everything */
	uint8_t *place;
	size_t pay_len;
	unsigned directs;
	bool abort_on_direct;
};

struct mpa_world {
	struct ddps_env env;
	struct ddps_llp_listener *listener;
	struct ddps_llp_listen_param lp;
	struct mpa_side a, b[20]; /* initiator; responders in the order of their requests */
	unsigned requests;
	struct ddps_llp_param answer_param; /* of every responder */
	struct ddps_setup answer;
	unsigned listener_failed;
	uint16_t port;
};

/* ---- the layer above ---- */

/* true: default behaviour is wanted. */
static inline bool mpa_react(struct mpa_side *s, enum mpa_upcall up)
{
	s->called[up]++;
	cr_expect_gt(((struct ddps_mpa_conn *)s->llp)->depth, 0, "it may be freed in there");
	switch (s->react[up]) {
	case DO_FREE:
		s->llp->ops->free(s->llp);
		cr_expect_not(((struct ddps_mpa_conn *)s->llp)->open, "it has ended now");
		s->llp = NULL;
		return false;
	case DO_ABORT:
		s->llp->ops->abort(s->llp);
		return false;
	case DO_SHUTDOWN:
		s->llp->ops->shutdown(s->llp);
		return false;
	case DO_NOTHING:
	case DO_REJECT:
	case DO_REFUSE:
		return false;
	case DO_DEFAULT:
		break;
	}
	return true;
}

static inline void mpa_keep_setup(struct mpa_side *s, const struct ddps_setup *setup)
{
	s->setup = *setup;
	cr_assert_leq(setup->pd_len, sizeof s->pd);
	if (setup->pd_len)
		memcpy(s->pd, setup->pd, setup->pd_len);
	s->setup.pd = s->pd;
}

static void mpa_up_answer(void *user, const struct ddps_setup *setup)
{
	struct mpa_side *s = user;

	mpa_keep_setup(s, setup);
	if (!mpa_react(s, UP_ANSWER) || setup->reject)
		return;
	s->llp->ops->open(s->llp);
	s->llp->ops->kick(s->llp);
	/* still there, though the LLP moves on */
	cr_expect(!setup->pd_len || !memcmp(setup->pd, s->pd, setup->pd_len));
}

static int mpa_up_tx_next(void *user, struct ddps_seg *seg, size_t mulpdu)
{
	struct mpa_side *s = user;

	if (s->pulled == s->nseg && s->late) {
		s->nseg += s->late;
		s->late = 0;
		s->llp->ops->kick(s->llp);
		return 0;
	}
	if (s->pulled == s->nseg)
		return 0;
	if (s->abort_on_pull && s->pulled) {
		s->llp->ops->abort(s->llp);
		return 0;
	}
	cr_assert_leq(s->seg_len, mulpdu);
	seg->hdr_len = s->seg_len < 18 ? s->seg_len : 18;
	memcpy(seg->hdr, s->pattern, seg->hdr_len);
	seg->pay_len = s->seg_len - seg->hdr_len;
	seg->pay[0] =
		(struct iovec){ (void *)(uintptr_t)(s->pattern + seg->hdr_len), seg->pay_len };
	if (s->bad)
		seg->pay[0].iov_base = s->bad;
	seg->npay = seg->pay_len != 0;
	s->pulled++;
	return 1;
}

static void mpa_up_tx_done(void *user, unsigned n)
{
	struct mpa_side *s = user;

	s->done += n;
	cr_assert_leq(s->done, s->pulled);
	mpa_react(s, UP_DONE);
}

static int mpa_up_rx_segment(void *user, const uint8_t *seg, size_t len)
{
	struct mpa_side *s = user;

	if (s->holding && !s->take) {
		s->holds++;
		return DDPS_LLP_HOLD;
	}
	if (s->holding)
		s->take--;
	s->segments++;
	mpa_octets_add(&s->in, seg, len);
	mpa_react(s, UP_RX);
	return s->react[UP_RX] == DO_REFUSE ? -1 : 0;
}

static size_t mpa_up_rx_direct(void *user, const uint8_t *hdr, size_t have, size_t seg_len)
{
	struct mpa_side *s = user;

	cr_assert(have >= 18);
	if (!s->place)
		return 0;
	s->directs++;
	mpa_octets_add(&s->in, hdr, 18);
	s->pay_len = seg_len - 18;
	return 18;
}

static int mpa_up_rx_direct_iov(void *user, size_t off, struct iovec *iov, int max)
{
	struct mpa_side *s = user;

	cr_assert(max > 0);
	if (s->abort_on_direct)
		s->llp->ops->abort(s->llp);
	iov[0] = (struct iovec){ s->place + off, s->pay_len - off };
	return 1;
}

static int mpa_up_rx_direct_end(void *user)
{
	struct mpa_side *s = user;

	s->segments++;
	mpa_octets_add(&s->in, s->place, s->pay_len);
	mpa_react(s, UP_RX);
	return 0;
}

static void mpa_up_fault(void *user, const struct ddps_error *e)
{
	struct mpa_side *s = user;

	s->fault = *e;
	cr_expect_eq(e->sys_errno, 0, "no system is asked: %s", e->text);
	mpa_react(s, UP_FAULT);
}

static void mpa_up_peer_closed(void *user)
{
	mpa_react(user, UP_PEER_CLOSED);
}

static void mpa_up_peer_closing(void *user)
{
	mpa_react(user, UP_PEER_CLOSING);
}

static void mpa_up_closed(void *user, const struct ddps_error *e)
{
	struct mpa_side *s = user;

	s->end = *e;
	cr_expect_eq(s->called[UP_CLOSED], 0, "closed() comes once");
	cr_expect(!e->sys_errno || strstr(e->text, strerror(e->sys_errno)), "%d: %s", e->sys_errno,
		  e->text);
	mpa_react(s, UP_CLOSED);
}

static const struct ddps_llp_data mpa_data = {
	.tx_next = mpa_up_tx_next,
	.tx_done = mpa_up_tx_done,
	.rx_segment = mpa_up_rx_segment,
	.rx_direct = mpa_up_rx_direct,
	.rx_direct_iov = mpa_up_rx_direct_iov,
	.rx_direct_end = mpa_up_rx_direct_end,
};

static const struct ddps_llp_up mpa_up = {
	.answer = mpa_up_answer,
	.fault = mpa_up_fault,
	.peer_closed = mpa_up_peer_closed,
	.peer_closing = mpa_up_peer_closing,
	.closed = mpa_up_closed,
};

static inline int mpa_answer(struct mpa_side *s, bool reject)
{
	struct ddps_setup answer = s->w->answer;

	answer.enhanced = s->setup.enhanced;
	answer.reject = reject;
	if (answer.enhanced && !answer.pd_len) {
		answer.pd = (const uint8_t *)"\0\1\0\1";
		answer.pd_len = 4;
	}
	return s->llp->ops->answer(s->llp, &answer, &s->w->answer_param);
}

static void mpa_up_request(void *user, struct ddps_llp *llp, const struct ddps_setup *setup)
{
	struct mpa_world *w = user;
	struct mpa_side *s = &w->b[w->requests++];

	cr_assert_leq(w->requests, sizeof w->b / sizeof w->b[0]);
	s->w = w;
	s->llp = llp;
	llp->up = &mpa_up;
	llp->user = s;
	ddps_llp_attach(llp, &mpa_data, s);
	mpa_keep_setup(s, setup);
	if (mpa_react(s, UP_REQUEST))
		cr_assert_eq(mpa_answer(s, false), 0);
	else if (s->react[UP_REQUEST] == DO_REJECT)
		cr_assert_eq(mpa_answer(s, true), 0);
}

static void mpa_up_listener_failed(void *user, const struct ddps_error *e)
{
	struct mpa_world *w = user;

	(void)e;
	w->listener_failed++;
}

static const struct ddps_llp_listen_up mpa_listen_up = {
	.request = mpa_up_request,
	.failed = mpa_up_listener_failed,
};

/* ---- the world ---- */

static inline struct sockaddr_in mpa_loopback(uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return in;
}

static inline struct ddps_llp_param mpa_param(bool crc, bool markers)
{
	return (struct ddps_llp_param){ .crc = crc,
					.markers = markers,
					.connect_ms = 5000,
					.setup_ms = 5000,
					.first_fpdu_ms = 5000,
					.close_ms = 5000 };
}

static inline void mpa_world_init(struct mpa_world *w)
{
	memset(w, 0, sizeof *w);
	cr_assert_eq(ddps_loop_new(&w->env.loop), 0);
	w->env.scratch = malloc(DDPS_SCRATCH_LEN);
	cr_assert_not_null(w->env.scratch);
	w->lp = (struct ddps_llp_listen_param){ .backlog = 16,
						.max_half_open = 16,
						.setup_ms = 5000 };
	w->answer_param = mpa_param(true, false);
	w->a.w = w;
	w->a.p = mpa_param(true, false);
}

static inline void mpa_side_fini(struct mpa_side *s)
{
	if (s->llp)
		s->llp->ops->free(s->llp);
	s->llp = NULL;
	free(s->in.p);
	free(s->place);
}

static inline void mpa_world_fini(struct mpa_world *w)
{
	if (w->listener)
		ddps_mpa_provider.listener_free(w->listener);
	mpa_side_fini(&w->a);
	for (size_t i = 0; i < sizeof w->b / sizeof w->b[0]; i++)
		mpa_side_fini(&w->b[i]);
	ddps_mpa_provider.fini(&w->env);
	ddps_loop_free(w->env.loop);
	free(w->env.scratch);
}

static inline void mpa_world_listen(struct mpa_world *w)
{
	struct sockaddr_in in = mpa_loopback(0);
	struct ddps_uri uri = { .scheme = "tcp", .host = "127.0.0.1" };
	unsigned port;
	char text[100];

	cr_assert_eq(ddps_mpa_provider.listen(&w->env, &uri, (struct sockaddr *)&in, sizeof in,
					      &w->lp, &mpa_listen_up, w, &w->listener),
		     0);
	ddps_mpa_provider.listener_uri(w->listener, text, sizeof text);
	cr_assert_eq(sscanf(text, "tcp://127.0.0.1:%u", &port), 1, "%s", text);
	w->port = (uint16_t)port;
}

/* Initiate to @port with @pd. */
static inline void mpa_world_connect(struct mpa_world *w, uint16_t port, bool enhanced,
				     const char *pd, size_t pd_len)
{
	struct sockaddr_in in = mpa_loopback(port);
	struct ddps_uri uri = { .scheme = "tcp" };
	struct ddps_setup setup = { .enhanced = enhanced,
				    .pd = (const uint8_t *)pd,
				    .pd_len = pd_len };

	cr_assert_eq(ddps_mpa_provider.connect(&w->env, &uri, (struct sockaddr *)&in, sizeof in,
					       &setup, &w->a.p, &mpa_up, &w->a, &w->a.llp),
		     0);
	ddps_llp_attach(w->a.llp, &mpa_data, &w->a);
}

/* Serve the loop until @fd (-1: none) is readable or a loop round was made. */
static inline void mpa_world_turn(struct mpa_world *w, int fd)
{
	struct pollfd p[2] = { { .fd = ddps_loop_fd(w->env.loop), .events = POLLIN },
			       { .fd = fd, .events = POLLIN } };

	cr_assert(poll(p, 2, 10000) > 0, "nothing happens");
	cr_assert_geq(ddps_loop_run(w->env.loop), 0);
}

#define MPA_UNTIL(w, condition)                                                                    \
	do                                                                                         \
		while (!(condition))                                                               \
			mpa_world_turn(w, -1);                                                     \
	while (0)

/* What is ready now is served, and what follows from it. */
static inline void mpa_world_settle(struct mpa_world *w)
{
	struct pollfd p = { .fd = ddps_loop_fd(w->env.loop), .events = POLLIN };

	while (poll(&p, 1, 0) > 0)
		cr_assert_geq(ddps_loop_run(w->env.loop), 0);
}

/* Session a-b[0] in full operation, b's fence still closed. */
static inline void mpa_world_pair(struct mpa_world *w)
{
	mpa_world_listen(w);
	mpa_world_connect(w, w->port, true, "\0\1\0\1", 4);
	MPA_UNTIL(w, w->a.called[UP_ANSWER]);
}

static inline void mpa_send_segments(struct mpa_side *s, const uint8_t *pattern, size_t len,
				     unsigned n)
{
	s->pattern = pattern;
	s->seg_len = len;
	s->nseg += n;
	s->llp->ops->kick(s->llp);
}

/* Valgrind objects to bad addresses and hands out descriptors in its own way. */
static inline bool mpa_under_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "vgpreload");
}

/* ---- bare TCP peers ---- */

/* What is sent leaves immediately, also when a reset follows. */
static inline void mpa_bare_nodelay(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* The listener's descriptor: the first that listens. */
static inline int mpa_listening_fd(void)
{
	socklen_t len = sizeof(int);
	int on = 0;

	for (int fd = 0; fd < 100; fd++)
		if (!getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len) && on)
			return fd;
	cr_assert(false, "nobody listens");
	return -1;
}

static inline int mpa_bare_connect(const struct mpa_world *w)
{
	struct sockaddr_in in = mpa_loopback(w->port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_geq(fd, 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
	mpa_bare_nodelay(fd);
	return fd;
}

static inline int mpa_bare_listen(uint16_t *port, int backlog)
{
	struct sockaddr_in in = mpa_loopback(0);
	socklen_t len = sizeof in;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_geq(fd, 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
	cr_assert_eq(listen(fd, backlog), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	*port = ntohs(in.sin_port);
	return fd;
}

static inline void mpa_bare_send(int fd, const void *p, size_t n)
{
	cr_assert_eq(send(fd, p, n, MSG_NOSIGNAL), (ssize_t)n);
}

/* Read exactly @n octets while the loop is served; returns less only at FIN (or -1: RST). */
static inline ssize_t mpa_bare_read(struct mpa_world *w, int fd, void *buf, size_t n)
{
	size_t got = 0;

	while (got < n) {
		ssize_t k = recv(fd, (uint8_t *)buf + got, n - got, MSG_DONTWAIT);

		if (k < 0 && errno == EAGAIN) {
			mpa_world_turn(w, fd);
			continue;
		}
		if (k < 0)
			return -1;
		if (k == 0)
			break;
		got += (size_t)k;
	}
	return (ssize_t)got;
}

/* Nothing is there to be read, not even a FIN. */
static inline bool mpa_bare_silent(struct mpa_world *w, int fd)
{
	uint8_t octet;

	mpa_world_settle(w);
	return recv(fd, &octet, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
}

static inline void mpa_bare_reset(int fd)
{
	struct linger now = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
	close(fd);
}

/* A bare initiator whose plain Request was accepted by b[0]. */
static inline int mpa_bare_initiator(struct mpa_world *w)
{
	uint8_t reply[20];
	int fd;

	mpa_world_listen(w);
	fd = mpa_bare_connect(w);
	mpa_bare_send(fd, MPA_REQ "\x40\x01\0\0", 20);
	cr_assert_eq(mpa_bare_read(w, fd, reply, 20), 20);
	cr_assert_arr_eq(reply, MPA_REP "\x40\x01\0\0", 20);
	return fd;
}

/* A bare responder that has read a's plain Request, to be answered with @reply (or not). */
static inline int mpa_bare_responder(struct mpa_world *w, const void *reply, size_t len)
{
	uint8_t request[20];
	uint16_t port;
	int l = mpa_bare_listen(&port, 4), fd;

	mpa_world_connect(w, port, false, NULL, 0);
	fd = accept(l, NULL, NULL);
	cr_assert_geq(fd, 0);
	mpa_bare_nodelay(fd);
	close(l);
	cr_assert_eq(mpa_bare_read(w, fd, request, 20), 20);
	if (len)
		mpa_bare_send(fd, reply, len);
	return fd;
}

/* ---- FPDUs ---- */

static const uint8_t mpa_send1[18] = { 0x41, 0x43, [13] = 1 };

/* One FPDU around @ulpdu, CRC on, no markers. */
static inline struct mpa_octets mpa_fpdu(const uint8_t *ulpdu, size_t len)
{
	struct mpa_ref ref = { .crc = true };

	mpa_ref_fpdu(&ref, ulpdu, len);
	return ref.out;
}

static inline void mpa_bare_fpdu(int fd, const uint8_t *ulpdu, size_t len)
{
	struct mpa_octets o = mpa_fpdu(ulpdu, len);

	mpa_bare_send(fd, o.p, o.len);
	free(o.p);
}

/* @n segments of @len octets of @pattern, and no others. */
static inline void mpa_expect_received(const struct mpa_side *s, const uint8_t *pattern, size_t len,
				       unsigned n)
{
	cr_assert_eq(s->segments, n);
	cr_assert_eq(s->in.len, n * len);
	for (unsigned i = 0; i < n; i++)
		cr_expect(!memcmp(s->in.p + i * len, pattern, len), "segment %u", i);
}

/* For a TCP of a test's that has no count of it. */
static inline size_t get_none_unacked(const struct ddps_mpa_conn *c)
{
	(void)c;
	return 0;
}

#endif
