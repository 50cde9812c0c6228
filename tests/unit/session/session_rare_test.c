/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions and contexts whose calls of the system fail, or are reported oddly: who asked is informed. */
#include "session/session.h"
#include "support/e2e.h"
#include "unit/sys_fixture.h"
#include <ddpsess/capture.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TCP "tcp://127.0.0.1:0"

TestSuite(session_rare, .timeout = 60);

/* ---- a context ---- */

Test(session_rare, a_wait_for_a_descriptor)
{
	int fds[2];

	cr_assert_eq(pipe(fds), 0);
	cr_assert_eq(write(fds[1], "x", 1), 1);
	cr_expect_eq(ddps_wait_fd(fds[0], UINT64_MAX - 1), 1, "longer than poll knows");
	sys_fail("poll", 0, 1, EINTR);
	cr_expect_eq(ddps_wait_fd(fds[0], 0), DDPS_E_AGAIN);
	sys_fail("poll", 0, 1, ENOMEM);
	cr_expect_eq(ddps_wait_fd(fds[0], 0), DDPS_E_SYSTEM);
	cr_expect_eq(errno, ENOMEM);
	close(fds[0]);
	close(fds[1]);
}

static int always_something(struct pollfd *p, nfds_t n, int ms)
{
	(void)ms;
	for (nfds_t i = 0; i < n; i++)
		p[i].revents = p[i].events;
	return (int)n;
}

/* However fast peers send: the time of a wait is up when it is up. */
Test(session_rare, attack_9_every_wait_ends_in_time_while_there_is_always_something)
{
	struct ddps_event ev;
	struct ddps_ctx *ctx;
	struct ddps_cq *cq;
	struct ddps_wc wc;

	cr_assert_eq(ddps_ctx_new(&ctx, NULL), 0);
	cr_assert_eq(ddps_cq_new(ctx, 1, &cq), 0);
	sys_instead.poll = always_something;
	cr_expect_eq(ddps_event_wait(ctx, &ev, 20), DDPS_E_TIMEDOUT);
	cr_expect_eq(ddps_cq_wait(cq, &wc, 1, 20), DDPS_E_TIMEDOUT);
	sys_instead.poll = NULL;
	cr_assert_eq(ddps_cq_free(cq), 0);
	ddps_ctx_free(ctx);
}

Test(session_rare, a_context_that_cannot_be_made)
{
	static const struct {
		const char *call;
		int err;
	} rows[] = { { "madvise", EINVAL }, { "eventfd", EMFILE }, { "epoll_ctl", ENOSPC } };
	const unsigned before = e2e_fds();
	struct ddps_ctx *ctx = NULL;

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		sys_fail(rows[i].call, 0, 1, rows[i].err);
		cr_expect_eq(ddps_ctx_new(&ctx, NULL), DDPS_E_SYSTEM, "%s", rows[i].call);
		cr_expect_eq(errno, rows[i].err, "%s", rows[i].call);
		cr_expect_null(ctx);
	}
	sys_fail("mmap", 0, 1, ENOMEM);
	cr_expect_eq(ddps_ctx_new(&ctx, NULL), DDPS_E_NOMEM);
	sys_fail(NULL, 0, 0, 0);
	cr_expect_eq(e2e_fds(), before);
}

/* An empty filter of the log is none, and no mistake either. */
Test(session_rare, what_the_log_is_to_have)
{
	struct ddps_ctx *ctx;
	int keep = dup(2), fds[2];
	char said[200] = "";

	cr_assert_eq(pipe2(fds, O_NONBLOCK), 0);
	dup2(fds[1], 2);
	unsetenv("DDPSESS_DEBUG");
	setenv("DDPSESS_LOG", "", 1);
	cr_assert_eq(ddps_ctx_new(&ctx, NULL), 0);
	ddps_ctx_free(ctx);
	cr_expect_eq(read(fds[0], said, sizeof said - 1), -1, "%s", said);
	setenv("DDPSESS_LOG", "loud", 1);
	cr_assert_eq(ddps_ctx_new(&ctx, NULL), 0);
	ddps_ctx_free(ctx);
	cr_expect_gt(read(fds[0], said, sizeof said - 1), 0);
	dup2(keep, 2);
	cr_expect(strstr(said, "DDPSESS_LOG=loud"), "%s", said);
}

Test(session_rare, a_transport_that_there_is_not)
{
	cr_expect_null(ddps_provider_find("udp"));
	cr_expect(ddps_provider_find("tcp"));
	cr_expect(ddps_provider_find("sctp"));
}

Test(session_rare, nothing_given_is_the_defaults)
{
	struct ddps_ep_attr a, d;

	memset(&a, 0xff, sizeof a);
	memset(&d, 0, sizeof d);
	ddps_ep_attr_init(&d);
	cr_expect_eq(ddps_ep_attr_take(&a, NULL), 0);
	cr_expect_eq(a.sq_depth, d.sq_depth);
	cr_expect_null(a.pd);
}

/* ---- queues ---- */

/* It is said in the log; what is there is taken nevertheless. */
static char told[400];

static void take_session_rare_log(void *user, enum ddps_log_level level, const char *facility,
				  const char *text)
{
	(void)user;
	if (level <= DDPS_LOG_WARN)
		snprintf(told, sizeof told, "%s: %s", facility, text);
}

static void open_told(struct e2e *e, const char *uri, bool thread)
{
	struct ddps_ctx_attr attr;

	ddps_ctx_attr_init(&attr);
	attr.log = take_session_rare_log;
	attr.thread = thread;
	told[0] = 0;
	e2e_open_with(e, uri, &attr);
}

Test(session_rare, descriptors_that_cannot_be_informed)
{
	struct ddps_event ev;
	struct e2e e;

	open_told(&e, TCP, false);
	cr_assert_geq(ddps_event_fd(e.ctx), 0);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.a.ep), 0);
	cr_assert_eq(ddps_connect(e.a.ep, e.uri, &e.connect), 0);
	sys_fail("write", 0, 10, EBADF);
	cr_assert_eq(ddps_abort(e.a.ep), 0);
	sys_fail(NULL, 0, 0, 0);
	cr_expect(strstr(told, "event: eventfd: "), "%s", told);
	cr_expect_eq(ddps_event_get(e.ctx, &ev), 1);
	cr_expect_eq(ev.type, DDPS_EV_FAILED);
	e2e_close(&e);
}

Test(session_rare, a_queue_that_cannot_be_informed)
{
	static uint8_t octet[1];
	struct ddps_wc wc;
	struct ddps_mr *mr;
	struct e2e e;

	open_told(&e, TCP, false);
	e2e_connect(&e);
	mr = e2e_reg(&e, octet, sizeof octet, DDPS_LOCAL_WRITE);
	cr_assert_eq(ddps_cq_arm(e.cq, false), 0);
	cr_assert_eq(e2e_post(&e.a, DDPS_OP_READ, octet, 0, mr, 0, 0), 0);
	sys_fail("write", 0, 1, EBADF);
	while (!ddps_cq_poll(e.cq, &wc, 0) && !strstr(told, "cq: "))
		cr_assert_geq(ddps_progress(e.ctx, E2E_MS), 0);
	cr_expect(strstr(told, "cq: eventfd"), "%s", told);
	sys_fail(NULL, 0, 0, 0);
	e2e_expect_wc(&e, &e.a, DDPS_OP_READ, DDPS_WC_SUCCESS, 0);
	e2e_close(&e);
}

/* ---- connecting ---- */

static struct ddps_error get_session_rare_failure(struct e2e *e, const char *uri)
{
	cr_assert_eq(ddps_ep_new(e->ctx, &e->attr, &e->a.ep), 0);
	cr_assert_eq(ddps_connect(e->a.ep, uri, &e->connect), 0);
	e2e_wait(e, &e->a, E2E_SEEN(DDPS_EV_FAILED));
	return e->a.error;
}

static struct sockaddr_in nobody;
static struct addrinfo said = { .ai_family = AF_INET,
				.ai_addr = (struct sockaddr *)&nobody,
				.ai_addrlen = sizeof nobody };

static int answer_with_nobody(const char *host, const char *service, const struct addrinfo *hints,
			      struct addrinfo **list)
{
	(void)host;
	(void)hints;
	nobody.sin_family = AF_INET;
	nobody.sin_port = htons((uint16_t)atoi(service));
	nobody.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*list = &said;
	return 0;
}

Test(session_rare, a_name_whose_addresses_cannot_be_used)
{
	struct ddps_error err;
	struct e2e e;

	e2e_open(&e, TCP);
	sys_instead.getaddrinfo = answer_with_nobody;
	sys_fail("socket", 0, 1, EMFILE);
	err = get_session_rare_failure(&e, "tcp://host:7");
	cr_expect_eq(err.code, DDPS_E_SYSTEM);
	cr_expect(strstr(err.text, "no address of \"host\" could be used"), "%s", err.text);
	e2e_close(&e);
}

/* ---- a name with two addresses, of which the first does not answer ---- */

static struct sockaddr_in silent;

static int answer_with_silent_first(const char *host, const char *service,
				    const struct addrinfo *hints, struct addrinfo **list)
{
	static struct addrinfo first = { .ai_family = AF_INET,
					 .ai_addr = (struct sockaddr *)&silent,
					 .ai_addrlen = sizeof silent,
					 .ai_next = &said };

	(void)answer_with_nobody(host, service, hints, list);
	*list = &first;
	return 0;
}

/* The port of @e's listener at another address, where the queue is full: no SYN is answered.  Return: how many
 * milliseconds the connection took. */
static uint64_t connect_past_silence(struct e2e *e, uint32_t connect_ms, uint32_t address_ms)
{
	const uint64_t begun = ddps_now();
	int full = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int first = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char uri[64];

	silent = (struct sockaddr_in){ .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)atoi(strrchr(e->uri, ':') + 1)),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1) };
	cr_assert_eq(bind(full, (struct sockaddr *)&silent, sizeof silent), 0);
	cr_assert_eq(listen(full, 0), 0);
	cr_assert_eq(connect(first, (struct sockaddr *)&silent, sizeof silent), 0);
	sys_instead.getaddrinfo = answer_with_silent_first;
	snprintf(uri, sizeof uri, "tcp://host%s", strrchr(e->uri, ':'));
	e->connect.connect_ms = connect_ms;
	e->connect.address_ms = address_ms;
	cr_assert_eq(ddps_ep_new(e->ctx, &e->attr, &e->a.ep), 0);
	cr_assert_eq(ddps_connect(e->a.ep, uri, &e->connect), 0);
	e2e_wait(e, &e->a, E2E_SEEN(DDPS_EV_ESTABLISHED));
	close(first);
	close(full);
	return (ddps_now() - begun) / NSEC_PER_MSEC;
}

Test(session_rare, an_address_that_does_not_answer_leaves_the_next_its_share)
{
	struct e2e e;
	uint64_t ms;

	e2e_open(&e, TCP);
	ms = connect_past_silence(&e, 2000, 0);
	cr_expect(ms >= 900 && ms < 2000, "%u ms", (unsigned)ms);
	e2e_close(&e);
}

Test(session_rare, an_address_has_the_time_that_was_asked_for)
{
	struct e2e e;
	uint64_t ms;

	e2e_open(&e, TCP);
	ms = connect_past_silence(&e, 60000, 50);
	cr_expect(ms >= 45 && ms < 30000, "%u ms", (unsigned)ms);
	e2e_close(&e);
}

/* Without connect_ms, too. */
Test(session_rare, an_address_has_a_limit_though_the_connection_has_none)
{
	struct e2e e;

	e2e_open(&e, TCP);
	cr_expect_lt(connect_past_silence(&e, 0, 50), 30000);
	e2e_close(&e);
}

Test(session_rare, a_name_that_cannot_be_looked_up)
{
	struct e2e e;

	e2e_open(&e, TCP);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.a.ep), 0);
	sys_fail("pthread_create", 0, 1, EAGAIN);
	cr_expect_eq(ddps_connect(e.a.ep, "tcp://host:7", &e.connect), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EAGAIN);
	sys_fail(NULL, 0, 0, 0);
	sys_instead.getaddrinfo = answer_with_nobody;
	cr_expect_eq(ddps_connect(e.a.ep, "tcp://host:7", &e.connect), 0, "it can be tried again");
	e2e_close(&e);
}

/* A millisecond is over before the first octet. */
Test(session_rare, a_deadline_that_is_close)
{
	struct e2e e;

	e2e_open(&e, TCP);
	e.keep_request = true;
	e.connect.connect_ms = 1;
	cr_expect_eq(get_session_rare_failure(&e, e.uri).code, DDPS_E_TIMEDOUT);
	e2e_close(&e);
}

/* ---- a capture ---- */

static void make_session_rare_packet(struct ddps_capture *c, const void *local, const void *peer,
				     bool sent)
{
	static uint8_t text[8];
	const struct iovec iov = { text, sizeof text };
	const struct ddps_packet p = { .transport = DDPS_TRANSPORT_TCP,
				       .sent = sent,
				       .peer = peer,
				       .local = local,
				       .iov = &iov,
				       .niov = 1,
				       .len = sizeof text };

	ddps_capture_add(c, &p);
}

static const struct sockaddr_in v4 = { .sin_family = AF_INET };
static const struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
static const struct sockaddr unknown = { .sa_family = AF_UNSPEC };
static char file[] = "/tmp/ddps-capture-XXXXXX";

static struct ddps_capture *captured(void)
{
	struct ddps_capture *c = NULL;
	int fd;

	memset(file + sizeof file - 7, 'X', 6);
	fd = mkstemp(file);
	cr_assert_geq(fd, 0);
	close(fd);
	unlink(file);
	cr_assert_eq(ddps_capture_open(&c, file), 0);
	return c;
}

static off_t size_of_file(void)
{
	struct stat st;

	cr_assert_eq(stat(file, &st), 0);
	return st.st_size;
}

Test(session_rare, a_capture_goes_on_where_a_write_was_interrupted)
{
	struct ddps_capture *c = captured();
	off_t before = size_of_file(), each;

	make_session_rare_packet(c, &v4, &v4, true);
	each = size_of_file() - before;
	sys_fail("writev", 0, 2, EINTR);
	make_session_rare_packet(c, &v4, &v4, true);
	cr_expect_eq(sys_failed(), 2);
	cr_expect_eq(size_of_file(), before + 2 * each);
	cr_expect_eq(ddps_capture_error(c), 0);
	make_session_rare_packet(c, &unknown, &v6, true); /* IPv6, as one of them is */
	cr_expect_eq(size_of_file(), before + 3 * each + 20);
	cr_expect_eq(ddps_capture_close(c), 0);
	unlink(file);
}

Test(session_rare, a_capture_that_cannot_be_closed)
{
	struct ddps_capture *c = captured();

	sys_fail("close", 0, 1, EIO);
	cr_expect_eq(ddps_capture_close(c), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EIO);
	unlink(file);
	c = captured();
	sys_fail("writev", 0, 1, ENOSPC);
	make_session_rare_packet(c, &v4, &v4, true);
	sys_fail("close", 0, 1, EIO);
	cr_expect_eq(ddps_capture_close(c), DDPS_E_SYSTEM);
	cr_expect_eq(errno, ENOSPC, "the first error");
	unlink(file);
}

Test(session_rare, a_capture_that_cannot_begin)
{
	struct ddps_capture *c = NULL;

	memset(file + sizeof file - 7, 'Y', 6);
	unlink(file);
	sys_fail("fstat", 0, 1, EIO);
	cr_expect_eq(ddps_capture_open(&c, file), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EIO);
	cr_expect_neq(access(file, F_OK), 0, "it was made for this");
	sys_fail("flock", 0, 1, EWOULDBLOCK); /* somebody found it a moment later */
	cr_expect_eq(ddps_capture_open(&c, file), DDPS_E_BUSY);
	cr_expect_eq(access(file, F_OK), 0, "it is his now");
	cr_expect_null(c);
	unlink(file);
}

/* ---- an end that is in order below ---- */

static void closed_below(bool with_work)
{
	static uint8_t buf[16];
	const struct ddps_error none = { .code = 0 };
	struct ddps_mr *mr;
	struct e2e e;

	e2e_up(&e, TCP);
	mr = e2e_reg(&e, buf, sizeof buf, DDPS_LOCAL_WRITE | DDPS_REMOTE_READ);
	if (with_work) /* nobody answers it: nothing is served */
		cr_assert_eq(e2e_post(&e.a, DDPS_OP_READ, buf, 4, mr, ddps_mr_stag(mr),
				      ddps_mr_to(mr)),
			     0);
	cr_assert_geq(ddps_ctx_enter(e.ctx), 0);
	ddps_ep_up.closed(e.a.ep, &none);
	ddps_ctx_leave(e.ctx);
	e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_CLOSED));
	if (with_work) {
		e2e_expect_wc(&e, &e.a, DDPS_OP_READ, DDPS_WC_FLUSHED, 0);
		cr_expect_eq(e.a.error.code, DDPS_E_RESET);
		cr_expect_str_eq(e.a.error.text,
				 "the peer has gone before all posted work had ended");
	} else {
		cr_expect_eq(e.a.error.code, 0, "%s", e.a.error.text);
	}
	e2e_close(&e);
}

Test(session_rare, contact_01_an_end_in_order_with_work_unfinished)
{
	closed_below(true);
	closed_below(false);
}
