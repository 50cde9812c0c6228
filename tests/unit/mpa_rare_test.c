/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA connections where two things meet that seldom do; TCP's calls are replaced where need be. */
#include "support/mpa_world.h"
#include "unit/sys_fixture.h"
#include "unit/mem_fixture.h"
#include <fcntl.h>
#include <limits.h>
#include <sys/eventfd.h>

TestSuite(mpa_rare, .timeout = 60);

/* ---- TCP that does as it is told ---- */

static struct ddps_mpa_tcp tcp;

static ssize_t send_broken(struct ddps_mpa_conn *c, struct iovec *iov, int n)
{
	(void)c;
	(void)iov;
	(void)n;
	return -EPIPE;
}

static ssize_t send_full(struct ddps_mpa_conn *c, struct iovec *iov, int n)
{
	(void)c;
	(void)iov;
	(void)n;
	return -EAGAIN;
}

static unsigned interrupts;

static ssize_t send_interrupted(struct ddps_mpa_conn *c, struct iovec *iov, int n)
{
	if (!interrupts)
		return ddps_mpa_sockets.send(c, iov, n);
	interrupts--;
	return -EINTR;
}

static int no_error(struct ddps_mpa_conn *c)
{
	(void)c;
	return 0;
}

static struct ddps_mpa_conn *conn_of(struct mpa_side *s)
{
	return (struct ddps_mpa_conn *)s->llp;
}

/* @s sends by @send from now on. */
static struct ddps_mpa_conn *send_by(struct mpa_side *s,
				     ssize_t (*send)(struct ddps_mpa_conn *, struct iovec *, int))
{
	struct ddps_mpa_conn *c = conn_of(s);

	tcp = ddps_mpa_sockets;
	tcp.send = send;
	c->tcp = &tcp;
	return c;
}

/* A task that was posted runs before anything else does. */
static void task_now(struct ddps_mpa_conn *c)
{
	ddps_task_cancel(c->env->loop, &c->task);
	c->task.fn(c->task.user);
}

/* @n FPDUs around @len octets of a pattern, into the socket. */
static void push(int fd, size_t len, unsigned n)
{
	uint8_t *pattern = mpa_pattern(len, 3);
	struct mpa_octets one = mpa_fpdu(pattern, len), many = { 0 };

	for (unsigned i = 0; i < n; i++)
		mpa_octets_add(&many, one.p, one.len);
	mpa_bare_send(fd, many.p, many.len);
	free(pattern);
	free(many.p);
	free(one.p);
}

/* b[0] in full operation with a bare peer. */
static int in_operation(struct mpa_world *w)
{
	int fd;

	mpa_world_init(w);
	fd = mpa_bare_initiator(w);
	mpa_bare_fpdu(fd, mpa_send1, 18);
	MPA_UNTIL(w, w->b[0].segments == 1);
	return fd;
}

/* ---- a connection that cannot be written any more ---- */

/* Whatever had come before is shown, in turns if it is much, and then only the end. */
Test(mpa_rare, what_came_before_a_broken_send_is_shown, .description = "5044-8-1")
{
	static const struct {
		size_t len;
		unsigned n;
	} row[] = { { 1000, 60 }, { 18, 2000 }, { 18, 512 }, { 18, 0 } };

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct mpa_world w;
		int fd = in_operation(&w);
		struct ddps_mpa_conn *c = send_by(&w.b[0], send_broken);

		c->rx.ask = 4096;
		push(fd, row[i].len, row[i].n);
		mpa_send_segments(&w.b[0], mpa_send1, 18, 1);
		cr_assert_eq(c->wr, DDPS_MPA_WR_LOST);
		task_now(c);
		cr_expect_leq(w.b[0].segments, 1 + 512u);
		if (row[i].n >= 512)
			cr_expect_eq(w.b[0].called[UP_CLOSED], 0, "the rest has its turn");
		MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
		cr_expect_eq(w.b[0].segments, 1 + row[i].n, "%zu", i);
		cr_expect_eq(w.b[0].end.code, DDPS_E_RESET);
		cr_expect_eq(w.b[0].end.sys_errno, EPIPE);
		mpa_world_fini(&w);
		close(fd);
	}
}

Test(mpa_rare, a_broken_send_after_the_peers_close)
{
	struct mpa_world w;
	int fd = in_operation(&w);
	struct ddps_mpa_conn *c = send_by(&w.b[0], send_broken);

	shutdown(fd, SHUT_WR);
	MPA_UNTIL(&w, w.b[0].called[UP_PEER_CLOSED]);
	mpa_send_segments(&w.b[0], mpa_send1, 18, 1);
	task_now(c);
	cr_expect_eq(w.b[0].called[UP_CLOSED], 0, "from the loop only");
	mpa_world_settle(&w);
	cr_expect_eq(w.b[0].called[UP_CLOSED], 1);
	cr_expect_eq(w.b[0].end.code, DDPS_E_RESET);
	mpa_world_fini(&w);
	close(fd);
}

/* ---- the layer above does something while it is asked ---- */

Test(mpa_rare, ended_while_more_is_in_hand)
{
	struct mpa_world w;
	int fd = in_operation(&w);

	conn_of(&w.b[0])->rx.ask = 4096;
	w.b[0].react[UP_RX] = DO_ABORT;
	push(fd, 1000, 60);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.b[0].segments, 2);
	cr_expect_eq(w.b[0].end.code, DDPS_E_CLOSED);
	mpa_world_fini(&w);
	close(fd);
}

Test(mpa_rare, held_back_in_a_later_turn)
{
	struct mpa_world w;
	int fd = in_operation(&w);
	struct mpa_side *b = &w.b[0];

	push(fd, 18, 2000);
	while (!conn_of(b)->rx.cut)
		cr_assert_geq(ddps_loop_run(w.env.loop), 0);
	b->holding = true;
	conn_of(b)->turn = 0; /* as in the next one */
	ddps_mpa_conn_ready(conn_of(b), DDPS_MPA_IN);
	cr_expect_eq(b->holds, 1);
	cr_expect(conn_of(b)->rx.stalled);
	cr_expect_lt(b->segments, 2001);
	b->holding = false;
	b->llp->ops->resume(b->llp);
	MPA_UNTIL(&w, b->segments == 2001);
	mpa_world_fini(&w);
	close(fd);
}

Test(mpa_rare, a_fault_behind_what_was_held_back)
{
	struct mpa_octets bad = mpa_fpdu(mpa_send1, 18);
	struct mpa_world w;
	int fd = in_operation(&w);
	struct mpa_side *b = &w.b[0];

	b->holding = true;
	bad.p[5] ^= 1;
	mpa_bare_fpdu(fd, mpa_send1, 18);
	mpa_bare_send(fd, bad.p, bad.len);
	MPA_UNTIL(&w, b->holds);
	cr_expect_eq(b->called[UP_FAULT], 0);
	b->holding = false;
	b->llp->ops->resume(b->llp);
	MPA_UNTIL(&w, b->called[UP_FAULT]);
	cr_expect_eq(b->fault.code, DDPS_E_CRC);
	cr_expect_eq(b->segments, 2);
	mpa_world_fini(&w);
	close(fd);
	free(bad.p);
}

Test(mpa_rare, ended_while_it_is_asked_for_a_segment)
{
	struct mpa_world w;
	int fd = in_operation(&w);
	uint8_t octet;

	w.b[0].abort_on_pull = true;
	mpa_send_segments(&w.b[0], mpa_send1, 18, 3);
	cr_expect_eq(w.b[0].pulled, 1);
	mpa_world_settle(&w);
	cr_expect_eq(w.b[0].called[UP_CLOSED], 1);
	cr_expect_eq(w.b[0].done, 0);
	cr_expect_eq(recv(fd, &octet, 1, 0), -1, "reset, and nothing was sent");
	mpa_world_fini(&w);
	close(fd);
}

/* What is posted while there seems to be nothing is sent all the same, before a close. */
Test(mpa_rare, posted_while_there_is_nothing)
{
	for (unsigned i = 0; i < 2; i++) {
		struct mpa_world w;
		int fd = in_operation(&w);
		uint8_t raw[24];

		w.b[0].pattern = mpa_send1;
		w.b[0].seg_len = 18;
		w.b[0].late = 1;
		if (i)
			w.b[0].llp->ops->shutdown(w.b[0].llp);
		w.b[0].llp->ops->kick(w.b[0].llp);
		cr_expect_eq(mpa_bare_read(&w, fd, raw, 24), 24);
		cr_expect_arr_eq(raw + 2, mpa_send1, 18);
		cr_expect_eq(w.b[0].done, 1);
		if (i)
			cr_expect_eq(mpa_bare_read(&w, fd, raw, 1), 0, "then the close");
		mpa_world_fini(&w);
		close(fd);
	}
}

/* Without CRCs payload is asked for its place: the answer of one that ends there is not used. */
Test(mpa_rare, ended_while_it_is_asked_for_a_place)
{
	uint8_t *pattern = mpa_pattern(20000, 3), reply[20], *place;
	struct mpa_ref ref = { 0 };

	mpa_ref_fpdu(&ref, mpa_send1, 18);
	mpa_ref_fpdu(&ref, pattern, 20000);
	for (unsigned late = 0; late < 2; late++) {
		struct mpa_world w;
		struct mpa_side *b = &w.b[0];
		int fd;

		mpa_world_init(&w);
		w.answer_param.crc = false;
		mpa_world_listen(&w);
		fd = mpa_bare_connect(&w);
		mpa_bare_send(fd, MPA_REQ "\0\1\0\0", 20);
		cr_assert_eq(mpa_bare_read(&w, fd, reply, 20), 20);
		cr_assert_eq(reply[16], 0);
		mpa_bare_send(fd, ref.out.p, 24);
		MPA_UNTIL(&w, b->segments == 1);
		place = b->place = calloc(1, 20000);
		b->abort_on_direct = !late;
		mpa_bare_send(fd, ref.out.p + 24, 1000);
		MPA_UNTIL(&w, b->directs);
		if (late) {
			b->abort_on_direct = true;
			mpa_bare_send(fd, ref.out.p + 1024, 1000);
		}
		MPA_UNTIL(&w, b->called[UP_CLOSED]);
		cr_expect_eq(b->end.code, DDPS_E_CLOSED);
		cr_expect_eq(b->segments, 1);
		for (size_t i = late ? 1000 : 0; i < 19982; i++)
			cr_assert_eq(place[i], 0, "octet %zu was written", i);
		mpa_world_fini(&w);
		close(fd);
	}
	free(ref.out.p);
	free(pattern);
}

/* ---- the peer's end ---- */

Test(mpa_rare, a_hangup_without_a_reason)
{
	struct mpa_world w;
	int fd = in_operation(&w);
	struct ddps_mpa_conn *c = conn_of(&w.b[0]);

	w.b[0].holding = true;
	mpa_bare_fpdu(fd, mpa_send1, 18);
	MPA_UNTIL(&w, w.b[0].holds);
	tcp = ddps_mpa_sockets;
	tcp.error = no_error;
	c->tcp = &tcp;
	ddps_mpa_conn_ready(c, DDPS_MPA_BROKEN);
	mpa_world_settle(&w);
	cr_expect_eq(w.b[0].called[UP_CLOSED], 1);
	cr_expect_eq(w.b[0].end.code, DDPS_E_RESET);
	cr_expect_eq(w.b[0].end.sys_errno, ECONNRESET);
	mpa_world_fini(&w);
	close(fd);
}

/* A first FPDU that is none, then the peer's close: that is an end in order, whatever is queued. */
Test(mpa_rare, a_close_behind_a_bad_first_fpdu, .description = "5044-7.1.2-15 5044-8-9")
{
	struct mpa_octets bad = mpa_fpdu(mpa_send1, 18);
	struct mpa_world w;
	struct mpa_side *b = &w.b[0];
	int fd;

	mpa_world_init(&w);
	fd = mpa_bare_initiator(&w);
	mpa_send_segments(b, mpa_send1, 18, 1);
	bad.p[5] ^= 1;
	mpa_bare_send(fd, bad.p, bad.len);
	shutdown(fd, SHUT_WR);
	MPA_UNTIL(&w, b->called[UP_PEER_CLOSED]);
	cr_expect_eq(b->called[UP_FAULT], 1);
	b->llp->ops->kick(b->llp);
	mpa_world_settle(&w);
	cr_expect_eq(b->called[UP_CLOSED], 0);
	b->llp->ops->shutdown(b->llp);
	MPA_UNTIL(&w, b->called[UP_CLOSED]);
	cr_expect_eq(b->end.code, 0, "%s", b->end.text);
	cr_expect_eq(b->pulled, 0);
	mpa_world_fini(&w);
	close(fd);
	free(bad.p);
}

/* The deadline of a close is not that of a first FPDU. */
Test(mpa_rare, a_bad_first_fpdu_while_closing, .description = "5044-7.1.2-26")
{
	struct mpa_octets bad = mpa_fpdu(mpa_send1, 18);

	for (unsigned closing = 0; closing < 2; closing++) {
		struct mpa_world w;
		struct mpa_side *b = &w.b[0];
		int fd;

		mpa_world_init(&w);
		fd = mpa_bare_initiator(&w);
		if (closing)
			b->llp->ops->shutdown(b->llp);
		bad.p[5] ^= !closing;
		mpa_bare_send(fd, bad.p, bad.len);
		MPA_UNTIL(&w, b->called[UP_FAULT]);
		cr_expect_eq(conn_of(b)->deadline, closing ? DDPS_MPA_T_CLOSE : DDPS_MPA_T_NONE);
		cr_expect_eq(conn_of(b)->timer.on, closing);
		mpa_world_fini(&w);
		close(fd);
	}
	free(bad.p);
}

/* ---- calls out of turn ---- */

Test(mpa_rare, leaving_is_from_the_close_to_its_fin)
{
	struct mpa_world w;
	int fd = in_operation(&w);
	struct ddps_llp *llp = w.b[0].llp;
	struct ddps_llp_tcp st;

	cr_expect_not(llp->ops->leaving(llp));
	cr_expect_eq(llp->ops->tcp_stats(llp, &st), 0);
	llp->ops->shutdown(llp);
	cr_expect(llp->ops->leaving(llp));
	mpa_world_settle(&w);
	cr_expect_eq(conn_of(&w.b[0])->wr, DDPS_MPA_WR_SHUT);
	cr_expect_not(llp->ops->leaving(llp), "its FIN has left");
	llp->ops->abort(llp);
	cr_expect_not(llp->ops->leaving(llp));
	cr_expect_eq(llp->ops->tcp_stats(llp, &st), DDPS_E_STATE);
	mpa_world_fini(&w);
	close(fd);

	fd = in_operation(&w);
	llp = w.b[0].llp;
	llp->ops->shutdown(llp);
	llp->ops->abort(llp);
	cr_expect_not(llp->ops->leaving(llp), "nothing leaves any more");
	mpa_world_fini(&w);
	close(fd);
}

Test(mpa_rare, resume_of_what_does_not_stall_does_nothing)
{
	struct mpa_world w;
	int fd = in_operation(&w);

	w.b[0].llp->ops->resume(w.b[0].llp);
	cr_expect_not(conn_of(&w.b[0])->resume);
	cr_expect_null(conn_of(&w.b[0])->task.prev);
	mpa_world_fini(&w);
	close(fd);
}

Test(mpa_rare, a_rejection_needs_no_shutdown)
{
	struct mpa_world w;
	uint8_t reply[20], octet;
	int fd;

	mpa_world_init(&w);
	w.answer_param.markers = true;
	w.b[0].react[UP_REQUEST] = DO_REJECT;
	mpa_world_listen(&w);
	fd = mpa_bare_connect(&w);
	mpa_bare_send(fd, MPA_REQ "\x40\x01\0\0", 20);
	cr_assert_eq(mpa_bare_read(&w, fd, reply, 20), 20);
	cr_expect_eq(reply[16], 0x60, "a rejection, and no markers [5044-7.1.1-6]");
	w.b[0].llp->ops->shutdown(w.b[0].llp);
	cr_expect(mpa_bare_silent(&w, fd));
	cr_expect_eq(w.b[0].called[UP_CLOSED], 0);
	cr_expect_eq(conn_of(&w.b[0])->deadline, DDPS_MPA_T_LINGER);
	shutdown(fd, SHUT_WR);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.b[0].end.code, 0);
	cr_expect_eq(recv(fd, &octet, 1, 0), 0);
	mpa_world_fini(&w);
	close(fd);
}

Test(mpa_rare, woken_for_nothing_while_the_application_decides)
{
	struct mpa_world w;
	uint8_t reply[20];
	int fd;

	mpa_world_init(&w);
	w.b[0].react[UP_REQUEST] = DO_NOTHING;
	mpa_world_listen(&w);
	fd = mpa_bare_connect(&w);
	mpa_bare_send(fd, MPA_REQ "\x40\x01\0\0", 20);
	MPA_UNTIL(&w, w.requests);
	ddps_mpa_conn_ready(conn_of(&w.b[0]), DDPS_MPA_IN);
	cr_expect_eq(conn_of(&w.b[0])->state, DDPS_MPA_REQUEST_ULP);
	interrupts = 3;
	send_by(&w.b[0], send_interrupted);
	cr_expect_eq(mpa_answer(&w.b[0], false), 0);
	cr_expect_eq(interrupts, 0);
	cr_expect_eq(mpa_bare_read(&w, fd, reply, 20), 20);
	mpa_world_fini(&w);
	close(fd);
}

/* A Reply to what the peer cannot have read whole. */
Test(mpa_rare, a_reply_before_the_request_has_left, .description = "5044-7.1.2-12")
{
	struct mpa_world w;
	int fd;

	mpa_world_init(&w);
	fd = mpa_bare_responder(&w, "", 0);
	conn_of(&w.a)->startup->out_sent--; /* as if TCP had not taken the last octet */
	mpa_bare_send(fd, MPA_REP "\x40\x01\0\0", 20);
	MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
	cr_expect_eq(w.a.called[UP_ANSWER], 0);
	cr_expect_eq(w.a.end.code, DDPS_E_PROTOCOL);
	cr_expect(strstr(w.a.end.text, "before the Request had left"), "%s", w.a.end.text);
	mpa_world_fini(&w);
	close(fd);
}

Test(mpa_rare, an_address_that_is_not_ours)
{
	struct ddps_conn_info info = { 0 };
	struct sockaddr_in in = mpa_loopback(1);
	struct ddps_uri uri = { .scheme = "tcp" };
	struct sockaddr_in *from = (struct sockaddr_in *)&uri.from.at[0];
	struct ddps_setup setup = { 0 };
	struct mpa_world w;

	mpa_world_init(&w);
	uri.from.n = 1;
	from->sin_family = AF_INET;
	inet_pton(AF_INET, "192.0.2.1", &from->sin_addr);
	cr_assert_eq(ddps_mpa_provider.connect(&w.env, &uri, (struct sockaddr *)&in, sizeof in,
					       &setup, &w.a.p, &mpa_up, &w.a, &w.a.llp),
		     0);
	MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
	cr_expect_eq(w.a.end.sys_errno, EADDRNOTAVAIL, "%s", w.a.end.text);
	mpa_world_fini(&w);

	mpa_world_init(&w); /* another is */
	mpa_world_listen(&w);
	in = mpa_loopback(w.port);
	inet_pton(AF_INET, "127.0.0.9", &from->sin_addr);
	cr_assert_eq(ddps_mpa_provider.connect(&w.env, &uri, (struct sockaddr *)&in, sizeof in,
					       &setup, &w.a.p, &mpa_up, &w.a, &w.a.llp),
		     0);
	ddps_llp_attach(w.a.llp, &mpa_data, &w.a);
	MPA_UNTIL(&w, w.a.called[UP_ANSWER]);
	w.b[0].llp->ops->info(w.b[0].llp, &info);
	cr_expect(!strncmp(info.peer, "127.0.0.9:", 10), "%s", info.peer);
	mpa_world_fini(&w);
}

/* ---- listening ---- */

static int listening_fd(void)
{
	socklen_t len = sizeof(int);
	int on = 0;

	for (int fd = 3; fd < 100; fd++)
		if (!getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len) && on)
			return fd;
	cr_assert(false, "nobody listens");
	return -1;
}

/* The descriptor is another's: that cannot be mended, and it is told once. */
Test(mpa_rare, a_listener_whose_descriptor_was_taken)
{
	for (unsigned closed = 0; closed < 2; closed++) {
		struct mpa_world w;
		int keep, fd, bare, null = open("/dev/null", O_RDONLY | O_CLOEXEC);

		if (mpa_under_valgrind())
			cr_skip_test("not what valgrind can watch");
		mpa_world_init(&w);
		mpa_world_listen(&w);
		fd = listening_fd();
		keep = dup(fd);
		bare = mpa_bare_connect(&w);
		if (closed)
			close(fd);
		else
			cr_assert_eq(dup2(null, fd), fd);
		cr_assert_geq(ddps_loop_run(w.env.loop), 0);
		close(keep);
		mpa_world_settle(&w);
		cr_expect_eq(w.listener_failed, 1);
		mpa_world_fini(&w);
		close(bare);
		close(null);
	}
}

Test(mpa_rare, a_backlog_beyond_what_the_kernel_can_count)
{
	struct mpa_world w;
	int fd;

	mpa_world_init(&w);
	w.lp.backlog = UINT_MAX;
	fd = mpa_bare_initiator(&w);
	cr_expect_eq(w.requests, 1);
	mpa_world_fini(&w);
	close(fd);
}

Test(mpa_rare, any_address_of_a_kernel_without_ipv6)
{
	const struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	const struct ddps_uri uri = { .scheme = "tcp" };
	struct ddps_llp_listener *l = NULL;
	struct mpa_world w;
	char text[100];

	mpa_world_init(&w);
	sys_fail("socket", 0, 1, EAFNOSUPPORT);
	cr_assert_eq(ddps_mpa_provider.listen(&w.env, &uri, (const struct sockaddr *)&six,
					      sizeof six, &w.lp, &mpa_listen_up, &w, &l),
		     0);
	cr_expect_eq(sys_failed(), 1);
	ddps_mpa_provider.listener_uri(l, text, sizeof text);
	cr_expect(strstr(text, "tcp://0.0.0.0:"), "%s", text);
	ddps_mpa_provider.listener_free(l);
	mpa_world_fini(&w);
}

/* As no TCP does on a socket that does not wait, today. */
static int connects_at_once(int fd, const struct sockaddr *a, socklen_t len)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	if (sys_connect(fd, a, len) < 0 && errno != EINPROGRESS)
		return -1;
	if (poll(&p, 1, 10000) != 1)
		return -1;
	errno = ECONNREFUSED; /* of something before: it has not failed */
	return 0;
}

Test(mpa_rare, a_connection_that_is_there_at_once)
{
	struct sockaddr_in in = mpa_loopback(0);
	const struct ddps_uri uri = { .scheme = "tcp" };
	struct ddps_setup setup = { 0 };
	struct mpa_world w;
	uint8_t frame[20];
	uint16_t port;
	int listener = mpa_bare_listen(&port, 1), fd;

	mpa_world_init(&w);
	in = mpa_loopback(port);
	sys_instead.connect = connects_at_once;
	cr_assert_eq(ddps_mpa_provider.connect(&w.env, &uri, (struct sockaddr *)&in, sizeof in,
					       &setup, &w.a.p, &mpa_up, &w.a, &w.a.llp),
		     0);
	fd = accept(listener, NULL, NULL);
	cr_expect_eq(recv(fd, frame, sizeof frame, MSG_WAITALL), sizeof frame,
		     "the request is on its way");
	cr_expect_eq(memcmp(frame, "MPA ID Req Frame", 16), 0);
	close(fd);
	close(listener);
	MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
	mpa_world_fini(&w);
}

/* Where any address is meant and IPv6 cannot be had, IPv4 alone will do; a port in use is no such case. */
Test(mpa_rare, any_address_without_ipv6)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct ddps_llp_listener *l[3] = { NULL };
	struct ddps_uri uri = { .scheme = "tcp" };
	const struct sockaddr *sa = (struct sockaddr *)&six;
	struct mpa_world w;
	char text[100];
	unsigned port;

	mpa_world_init(&w);
	cr_assert_eq(inet_pton(AF_INET6, "2001:db8::1", &six.sin6_addr), 1);
	strcpy(uri.host, "2001:db8::1"); /* one that is not here, but that one is meant */
	cr_expect_eq(ddps_mpa_provider.listen(&w.env, &uri, sa, sizeof six, &w.lp, &mpa_listen_up,
					      &w, &l[0]),
		     DDPS_E_SYSTEM);
	cr_expect_eq(errno, EADDRNOTAVAIL);
	uri.host[0] = '\0'; /* as the kernel answers when IPv6 is switched off */
	cr_assert_eq(ddps_mpa_provider.listen(&w.env, &uri, sa, sizeof six, &w.lp, &mpa_listen_up,
					      &w, &l[1]),
		     0);
	ddps_mpa_provider.listener_uri(l[1], text, sizeof text);
	cr_assert_eq(sscanf(text, "tcp://0.0.0.0:%u", &port), 1, "%s", text);
	six.sin6_addr = in6addr_any;
	six.sin6_port = htons((uint16_t)port);
	cr_expect_eq(ddps_mpa_provider.listen(&w.env, &uri, sa, sizeof six, &w.lp, &mpa_listen_up,
					      &w, &l[2]),
		     DDPS_E_SYSTEM);
	cr_expect_eq(errno, EADDRINUSE);
	ddps_mpa_provider.listener_free(l[1]);
	mpa_world_fini(&w);
}

static void drink(void *user, uint32_t events)
{
	uint64_t n;

	(void)events;
	cr_expect_eq(read(*(int *)user, &n, sizeof n), (ssize_t)sizeof n);
}

/* Others are busy, so it takes several in a turn: but not more than there are places. */
Test(mpa_rare, no_more_are_taken_in_a_turn_than_there_are_places)
{
	int ev = eventfd(1, EFD_NONBLOCK), fd[3];
	struct ddps_io other = { .fd = ev, .fn = drink, .user = &ev };
	struct mpa_world w;
	uint8_t reply[20];

	mpa_world_init(&w);
	w.lp.max_half_open = 2;
	w.b[0].react[UP_REQUEST] = DO_NOTHING;
	mpa_world_listen(&w);
	fd[0] = mpa_bare_connect(&w);
	mpa_bare_send(fd[0], MPA_REQ "\x40\x01\0\0", 20);
	MPA_UNTIL(&w, w.requests == 1);
	for (unsigned i = 1; i < 3; i++) {
		fd[i] = mpa_bare_connect(&w);
		mpa_bare_send(fd[i], MPA_REQ "\x40\x01\0\0", 20);
	}
	cr_assert_eq(ddps_io_set(w.env.loop, &other, POLLIN), 0);
	cr_assert_geq(ddps_loop_run(w.env.loop), 0);
	cr_expect_eq(w.env.half_open_full, 1);
	cr_expect_eq(w.env.half_open_given_up, 0);
	cr_assert_eq(mpa_answer(&w.b[0], false), 0); /* its place is free */
	for (unsigned i = 0; i < 3; i++)
		cr_expect_eq(mpa_bare_read(&w, fd[i], reply, 20), 20, "%u", i);
	ddps_io_del(w.env.loop, &other);
	mpa_world_fini(&w);
	for (unsigned i = 0; i < 3; i++)
		close(fd[i]);
	close(ev);
}

/* ---- no memory ---- */

/* One read of @p by a receiver that finds no memory; what it answered. */
static int read_poor(struct mpa_rec *r, const uint8_t *p, size_t n)
{
	mem_fail(1);
	mpa_rec_read(r, p, n, n);
	cr_expect(mem_failed());
	cr_expect(r->rx.dead);
	cr_expect_eq(r->e.has_triple, false, "no fault of the peer");
	cr_expect(r->e.code == DDPS_E_NOMEM && strstr(r->e.text, "no memory"), "%s", r->e.text);
	return r->err;
}

Test(mpa_rare, a_receiver_without_memory)
{
	struct mpa_octets one = mpa_fpdu(mpa_send1, 18), two = { 0 };
	struct mpa_rec r;

	mpa_octets_add(&two, one.p, one.len);
	mpa_octets_add(&two, one.p, one.len);
	mpa_rec_init(&r, true, false); /* a segment is held back */
	r.hold_every = 1;
	mpa_octets_add(&r.got, "", 1);
	cr_expect_eq(read_poor(&r, two.p, two.len), DDPS_E_NOMEM);
	cr_expect_not(r.rx.stalled);
	mpa_rec_fini(&r);
	mpa_rec_init(&r, true, false); /* the turn is over */
	ddps_mpa_rx_turn(&r.rx, 0);
	cr_expect_eq(read_poor(&r, two.p, two.len), DDPS_E_NOMEM);
	cr_expect_not(r.rx.cut);
	mpa_rec_fini(&r);
	mpa_rec_init(&r, true, false); /* the rest is missing */
	cr_expect_eq(read_poor(&r, one.p, one.len - 1), DDPS_E_NOMEM);
	cr_expect_eq(r.segments, 0);
	mpa_rec_fini(&r);
	free(one.p);
	free(two.p);
}

/* The application's memory goes while it is being sent. */
Test(mpa_rare, keeping_a_copy)
{
	uint8_t *pattern = mpa_pattern(3000, 3), *mine = mpa_pattern(3000, 3);
	struct ddps_mpa_conn *c;
	struct mpa_world w;

	mpa_world_init(&w);
	w.a.p.crc = w.answer_param.crc = false;
	mpa_world_pair(&w);
	mpa_world_settle(&w);
	c = send_by(&w.a, send_full);
	cr_expect_eq(w.a.llp->ops->keep_copy(w.a.llp), 0, "nothing is being sent");
	w.a.bad = mine + 18; /* the payload */
	mpa_send_segments(&w.a, pattern, 1000, 1);
	cr_assert_eq(w.env.lenders, w.a.llp);
	mem_fail(1);
	cr_expect_eq(w.a.llp->ops->keep_copy(w.a.llp), DDPS_E_NOMEM);
	cr_expect_eq(w.env.lenders, w.a.llp, "it refers to that yet");
	cr_expect_eq(w.a.llp->ops->keep_copy(w.a.llp), 0);
	cr_expect_null(w.env.lenders);
	memset(mine, 0, 3000);
	c->tcp = &ddps_mpa_sockets;
	ddps_mpa_conn_ready(c, DDPS_MPA_OUT);
	MPA_UNTIL(&w, w.b[0].segments);
	mpa_expect_received(&w.b[0], pattern, 1000, 1);
	mpa_world_fini(&w);
	free(pattern);
	free(mine);
}

/* A connection from another network, as it were, that says nothing. */
static int connect_from(const struct mpa_world *w, unsigned net)
{
	struct sockaddr_in to = mpa_loopback(w->port), in = mpa_loopback(0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_geq(fd, 0);
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (net << 16));
	cr_assert_eq(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	return fd;
}

/* Without memory a rejected peer has no place of its own: it counts no more. */
Test(mpa_rare, a_rejection_without_memory)
{
	enum { NETS = 8 }; /* places for so many are there without more memory */
	struct mpa_world w;
	uint8_t reply[20];
	int fd, silent[NETS];

	mpa_world_init(&w);
	w.b[0].react[UP_REQUEST] = DO_NOTHING;
	mpa_world_listen(&w);
	fd = mpa_bare_connect(&w);
	mpa_bare_send(fd, MPA_REQ "\x40\x01\0\0", 20);
	MPA_UNTIL(&w, w.requests);
	for (unsigned i = 0; i < NETS; i++)
		silent[i] = connect_from(&w, i + 1);
	mpa_world_settle(&w);
	mem_fail(1);
	cr_expect_eq(mpa_answer(&w.b[0], true), 0);
	cr_expect(mem_failed());
	cr_expect_null(conn_of(&w.b[0])->listener);
	cr_expect_eq(mpa_bare_read(&w, fd, reply, 20), 20);
	cr_expect_eq(reply[16], 0x60);
	mpa_world_fini(&w);
	close(fd);
	for (unsigned i = 0; i < NETS; i++)
		close(silent[i]);
}

/* ---- what the kernel does not know ---- */

Test(mpa_rare, a_socket_that_is_none)
{
	const struct sockaddr_in nobody = mpa_loopback(1);
	struct ddps_llp_tcp st = { .cwnd = 7 };
	struct ddps_mpa_conn *c;
	struct mpa_world w;

	mpa_world_init(&w);
	c = ddps_mpa_io_new(&w.env, -1, (const struct sockaddr *)&nobody);
	cr_assert(c);
	cr_expect_eq(c->tcp->stats(c, &st), DDPS_E_STATE);
	cr_expect_eq(st.cwnd, 7);
	cr_expect_eq(c->tcp->emss(c), 0);
	c->open = false; /* there is nothing to close */
	ddps_mpa_conn_destroy(c);
	mpa_world_fini(&w);
}
