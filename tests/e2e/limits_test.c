/* SPDX-License-Identifier: BSD-2-Clause */
/* Deadlines, dead and odd peers, host names: what ends a session that goes wrong. */
#include "support/e2e.h"
#include <ddpsess/stats.h>
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SHORT_MS 150

static int raw_listen(char *uri, size_t len)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t sl = sizeof sin;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	cr_assert_geq(fd, 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&sin, sl), 0);
	cr_assert_eq(listen(fd, 8), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&sin, &sl), 0);
	snprintf(uri, len, "tcp://127.0.0.1:%u", ntohs(sin.sin_port));
	return fd;
}

static int raw_connect(const char *uri)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	unsigned port = 0;

	cr_assert_eq(sscanf(uri, "tcp://127.0.0.1:%u", &port), 1);
	sin.sin_port = htons((uint16_t)port);
	cr_assert_geq(fd, 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&sin, sizeof sin), 0);
	return fd;
}

/* An endpoint that fails to connect to @uri, and the reason. */
static struct ddps_error get_limits_e2e_failure(struct e2e *e, const char *uri)
{
	cr_assert_eq(ddps_ep_new(e->ctx, &e->attr, &e->a.ep), 0);
	cr_assert_eq(ddps_connect(e->a.ep, uri, &e->connect), 0);
	e2e_wait(e, &e->a, E2E_SEEN(DDPS_EV_FAILED));
	cr_expect_str_not_empty(e->a.error.text);
	cr_expect_str_not_empty(e->a.error.peer);
	return e->a.error;
}

Test(limits, a_refused_port_says_so, .timeout = 60)
{
	struct ddps_error err;
	struct e2e e;
	char uri[64];
	int fd = raw_listen(uri, sizeof uri);

	close(fd);
	e2e_open(&e, e2e_wires[0]);
	err = get_limits_e2e_failure(&e, uri);
	cr_expect_eq(err.code, DDPS_E_REFUSED, "%s", err.text);
	cr_expect_eq(err.sys_errno, ECONNREFUSED);
	e2e_close(&e);
}

Test(limits, a_silent_responder_is_given_up, .timeout = 60, .description = "5044-7.1.2-25")
{
	struct ddps_error err;
	struct e2e e;
	char uri[64];
	int fd = raw_listen(uri, sizeof uri);

	e2e_open(&e, e2e_wires[0]);
	e.connect.setup_ms = SHORT_MS;
	err = get_limits_e2e_failure(&e, uri);
	cr_expect_eq(err.code, DDPS_E_TIMEDOUT, "%s", err.text);
	close(fd);
	e2e_close(&e);
}

/* Nobody answers on that UDP port, but it is bound, so nothing refuses either. */
Test(limits, a_silent_sctp_peer_is_given_up, .timeout = 60)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t sl = sizeof sin;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ddps_error err;
	struct e2e e;
	char uri[96];

	cr_assert_eq(bind(fd, (struct sockaddr *)&sin, sl), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&sin, &sl), 0);
	snprintf(uri, sizeof uri, "sctp://127.0.0.1:7174?backend=native&encap=%u",
		 ntohs(sin.sin_port));
	e2e_open(&e, e2e_wires[0]);
	e.connect.connect_ms = SHORT_MS;
	err = get_limits_e2e_failure(&e, uri);
	cr_expect_eq(err.code, DDPS_E_TIMEDOUT, "%s", err.text);
	close(fd);
	e2e_close(&e);
}

/* ---- a responder of RFC 5044 only: closes on Rev 2, answers Rev 1 ---- */

struct legacy {
	int fd;
	uint8_t rev[2], flags[2];
};

static void *legacy_main(void *arg)
{
	static const uint8_t reply[20] = "MPA ID Rep Frame\x40\x01\x00";
	struct legacy *l = arg;

	for (int i = 0; i < 2; i++) {
		uint8_t frame[64];
		int fd = accept(l->fd, NULL, NULL);
		ssize_t n = recv(fd, frame, 20, MSG_WAITALL);

		if (n == 20) {
			l->flags[i] = frame[16];
			l->rev[i] = frame[17];
			if (frame[17] == 1 && send(fd, reply, sizeof reply, 0) < 0)
				n = -1;
		}
		if (n == 20 && frame[17] == 1) /* until the initiator goes away */
			while (recv(fd, frame, sizeof frame, 0) > 0)
				;
		close(fd);
	}
	return NULL;
}

Test(limits, a_legacy_responder_is_retried_once_if_asked, .timeout = 60,
     .description = "6581-10-8 5044u-10-5")
{
	struct legacy l = { 0 };
	pthread_t thread;
	struct e2e e;
	char uri[64];

	l.fd = raw_listen(uri, sizeof uri);
	cr_assert_eq(pthread_create(&thread, NULL, legacy_main, &l), 0);
	e2e_open(&e, e2e_wires[0]);
	e.connect.legacy_retry = true;
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.a.ep), 0);
	cr_assert_eq(ddps_connect(e.a.ep, uri, &e.connect), 0);
	e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_ESTABLISHED));
	cr_expect_not(e.a.established.info.enhanced);
	cr_expect_eq(e.a.established.info.mpa.rev, 1);
	e2e_close(&e);
	pthread_join(thread, NULL);
	cr_expect_eq(l.rev[0], 2);
	cr_expect_eq(l.flags[0] & 0x10, 0x10);
	cr_expect_eq(l.rev[1], 1);
	cr_expect_eq(l.flags[1] & 0x1F, 0);
	close(l.fd);
}

/* [6581-10-8] Who needs what only the enhanced set-up has, peer-to-peer say, is not asked again. */
static void no_retry(bool asked, bool p2p)
{
	struct legacy l = { 0 };
	struct ddps_error err;
	pthread_t thread;
	struct e2e e;
	char uri[64];

	l.fd = raw_listen(uri, sizeof uri);
	cr_assert_eq(pthread_create(&thread, NULL, legacy_main, &l), 0);
	e2e_open(&e, e2e_wires[0]);
	e.connect.legacy_retry = asked;
	e.connect.p2p = p2p;
	err = get_limits_e2e_failure(&e, uri);
	cr_expect_eq(err.code, DDPS_E_RESET, "%s", err.text);
	e2e_close(&e);
	close(raw_connect(uri)); /* lets the thread finish */
	pthread_join(thread, NULL);
	cr_expect_eq(l.rev[1], 0);
	close(l.fd);
}

Test(limits, without_being_asked_there_is_no_retry, .timeout = 60)
{
	no_retry(false, false);
}

Test(limits, peer_to_peer_is_not_tried_without_the_enhanced_set_up, .timeout = 60,
     .description = "6581-10-8")
{
	no_retry(true, true);
}

static unsigned nudges;

static void on_nudge(void *user, enum ddps_log_level level, const char *facility, const char *text)
{
	(void)user;
	(void)level;
	(void)facility;
	nudges += strstr(text, "silent for 20 ms") != NULL;
}

/* A responder that never speaks is nudged while the session drains, too. */
Test(limits, a_silent_responder_is_nudged_while_work_drains, .timeout = 60)
{
	static uint8_t octet[1];
	struct legacy l = { 0 };
	struct ddps_ctx_attr attr;
	struct ddps_mr *mr;
	pthread_t thread;
	struct e2e e;
	char uri[64];

	l.fd = raw_listen(uri, sizeof uri);
	cr_assert_eq(pthread_create(&thread, NULL, legacy_main, &l), 0);
	ddps_ctx_attr_init(&attr);
	attr.log = on_nudge;
	e2e_open_with(&e, e2e_wires[0], &attr);
	e.connect.plain = true;
	e.connect.nudge_ms = 20;
	e.connect.close_ms = 300;
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.a.ep), 0);
	cr_assert_eq(ddps_connect(e.a.ep, uri, &e.connect), 0);
	e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_ESTABLISHED));
	mr = e2e_reg(&e, octet, sizeof octet, DDPS_LOCAL_WRITE);
	cr_assert_eq(e2e_post(&e.a, DDPS_OP_READ, NULL, 0, mr, 0, 0), 0);
	cr_assert_eq(ddps_disconnect(e.a.ep), 0);
	e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_CLOSED));
	cr_expect_eq(e.a.error.code, DDPS_E_TIMEDOUT, "%s", e.a.error.text);
	cr_expect_eq(nudges, 1);
	e2e_close(&e);
	close(raw_connect(uri)); /* lets the thread finish */
	pthread_join(thread, NULL);
	close(l.fd);
}

/* ---- half-open peers ---- */

Test(limits, half_open_peers_are_bounded_and_reaped, .timeout = 60,
     .description = "5044-7.1.2-20 5044-7.1.2-25")
{
	struct ddps_listen_param lp;
	struct ddps_listener *l;
	struct e2e e;
	int raw[5];

	e2e_open(&e, e2e_wires[0]);
	ddps_listen_param_init(&lp);
	lp.max_half_open = 2;
	lp.setup_ms = SHORT_MS;
	cr_assert_eq(ddps_listen(e.ctx, e2e_wires[0], &lp, &l), 0);
	cr_assert_gt(ddps_listener_uri(l, e.uri, sizeof e.uri), 0);
	for (int i = 0; i < 5; i++)
		raw[i] = raw_connect(e.uri);
	/* Behind five peers that say nothing a real one gets its turn. */
	e2e_connect(&e);
	cr_expect(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
	for (int i = 0; i < 5; i++) {
		struct pollfd pfd = { .fd = raw[i], .events = POLLIN };

		for (int ms = 0; !poll(&pfd, 1, 0) && ms < E2E_MS; ms += SHORT_MS)
			cr_assert_geq(ddps_progress(e.ctx, SHORT_MS), 0);
		cr_expect(pfd.revents, "half-open peer %d was not closed", i);
		close(raw[i]);
	}
	e2e_disconnect(&e, &e.a);
	ddps_listener_free(l);
	e2e_close(&e);
}

Test(limits, an_initiator_that_never_speaks_is_given_up, .timeout = 60,
     .description = "5044-7.1.2-26")
{
	struct e2e e;

	e2e_open(&e, e2e_wires[0]);
	e.accept.first_fpdu_ms = SHORT_MS;
	e2e_connect(&e);
	e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_CLOSED));
	cr_expect_eq(e.b.error.code, DDPS_E_TIMEDOUT, "%s", e.b.error.text);
	e2e_close(&e);
}

static void lazy_peer(const char *wire)
{
	struct e2e e;

	e2e_open(&e, wire);
	e.connect.close_ms = SHORT_MS;
	e2e_connect(&e);
	cr_assert(e.b.seen & E2E_SEEN(DDPS_EV_ESTABLISHED));
	cr_assert_eq(ddps_disconnect(e.a.ep), 0);
	e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_CLOSED));
	/* Over TCP the other application has to close too, and does not. */
	cr_expect_eq(e.a.error.code, DDPS_E_TIMEDOUT, "%s", e.a.error.text);
	e2e_close(&e);
}

Test(limits, close_has_a_deadline, .timeout = 60)
{
	lazy_peer(e2e_wires[0]);
}

static void end_vanished_session(const char *wire)
{
	struct e2e e;
	struct ddps_event ev;

	e2e_open(&e, wire);
	e.keep_request = true;
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.a.ep), 0);
	cr_assert_eq(ddps_connect(e.a.ep, e.uri, &e.connect), 0);
	cr_assert_eq(ddps_event_wait(e.ctx, &ev, E2E_MS), 0);
	cr_assert_eq(ev.type, DDPS_EV_CONNECT_REQUEST);
	cr_assert_eq(ddps_abort(e.a.ep), 0);
	e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_FAILED));
	e2e_wait(&e, &e.b, E2E_SEEN(DDPS_EV_REQUEST_GONE));
	cr_expect_eq(e.request.request, ev.request);
	e2e_close(&e);
}

Test(limits, a_request_whose_peer_left_is_withdrawn, .timeout = 60)
{
	end_vanished_session(e2e_wires[0]);
}

Test(limits, a_listener_that_goes_refuses_what_waits, .timeout = 60)
{
	for (int i = 0; i < E2E_NWIRES; i++) {
		struct ddps_ctx_stats st = { .struct_size = sizeof st };
		struct e2e e;

		e2e_open(&e, e2e_wires[i]);
		cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.a.ep), 0);
		cr_assert_eq(ddps_connect(e.a.ep, e.uri, &e.connect), 0);
		do
			cr_assert_geq(ddps_progress(e.ctx, 1000), 0);
		while (!ddps_ctx_stats(e.ctx, &st) && !st.requests);
		cr_assert_eq(st.requests, 1, "whose event was not fetched");
		ddps_listener_free(e.listener);
		e.listener = NULL;
		e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_FAILED));
		cr_expect_neq(e.a.error.code, 0);
		e2e_close(&e);
	}
}

/* Each session that may stall has an association of its own. */
Test(limits, an_address_has_the_associations_that_the_uri_says, .timeout = 60)
{
	struct ddps_ep *ep[2][3] = { 0 };
	struct ddps_listener *l;
	struct e2e e;

	e2e_open(&e, "sctp://127.0.0.1:0?encap=0&per-address=2");
	e.attr.no_recv = DDPS_NO_RECV_STALL;
	for (int i = 0; i < 3; i++) {
		e.a = e.b = (struct e2e_end){ 0 };
		e2e_connect(&e);
		cr_expect_eq(!(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED)), i == 2, "%d", i);
		ep[0][i] = e.a.ep;
		ep[1][i] = e.b.ep;
	}
	cr_expect(strstr(e.a.error.text, "out of resource"), "%s", e.a.error.text);
	e.a = e.b = (struct e2e_end){ 0 };
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.a.ep), 0);
	cr_expect_eq(ddps_connect(e.a.ep, "sctp://127.0.0.1:1?per-address=2", NULL),
		     DDPS_E_ADDRESS);
	cr_expect_eq(ddps_listen(e.ctx, "sctp://127.0.0.1:0?backend=kernel&per-address=2", NULL,
				 &l),
		     DDPS_E_UNSUPPORTED);
	for (int i = 0; i < 6; i++) {
		if (ep[i / 3][i % 3])
			ddps_ep_free(ep[i / 3][i % 3]);
	}
	e2e_close(&e);
}

Test(limits, a_host_name_is_looked_up, .timeout = 60)
{
	struct e2e e;
	unsigned port = 0;

	e2e_open(&e, e2e_wires[0]);
	cr_assert_eq(sscanf(e.uri, "tcp://127.0.0.1:%u", &port), 1);
	snprintf(e.uri, sizeof e.uri, "tcp://localhost:%u", port);
	e2e_connect(&e);
	cr_expect(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
	e2e_close(&e);
}

Test(limits, uris_are_checked_before_anything_happens)
{
	static const char *const bad[] = {
		"",
		"tcp",
		"udp://127.0.0.1:1",
		"tcp://127.0.0.1",
		"tcp://127.0.0.1:0",
		"tcp://:7174",
		"tcp://127.0.0.1:65536",
		"tcp://127.0.0.1:1?encap=1",
		"sctp://127.0.0.1:1?backend=none",
	};
	struct ddps_listener *l;
	char why[200];
	struct e2e e;

	e2e_open(&e, e2e_wires[0]);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.a.ep), 0);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		cr_expect_eq(ddps_connect(e.a.ep, bad[i], NULL), DDPS_E_ADDRESS, "%s", bad[i]);
	cr_expect_eq(ddps_uri_check("tcp://127.0.0.1", why, sizeof why), DDPS_E_ADDRESS);
	cr_expect_not_null(strstr(why, "port is missing"));
	cr_expect_eq(ddps_uri_check(e.uri, why, sizeof why), 0);
	cr_expect_str_eq(why, "");
	cr_expect_eq(ddps_listen(e.ctx, "tcp://127.0.0.1", NULL, &l), DDPS_E_ADDRESS);
	cr_expect_eq(ddps_listen(e.ctx, e.uri, NULL, &l), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EADDRINUSE);
	e2e_close(&e);
}
