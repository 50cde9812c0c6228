/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA connections where two things meet that seldom do; TCP's calls are replaced where need be. */
#include "support/mpa_world.h"
#include "unit/mem_fixture.h"

TestSuite(mpa_rare, .timeout = 60);

/* ---- TCP that does as it is asked to ---- */

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

static int have_no_mpa_rare_error(struct ddps_mpa_conn *c)
{
	(void)c;
	return 0;
}

static size_t one_octet(const struct ddps_mpa_conn *c)
{
	(void)c;
	return 1;
}

static struct ddps_mpa_conn *get_mpa_rare_conn(struct mpa_side *s)
{
	return (struct ddps_mpa_conn *)s->llp;
}

/* @s sends by @send from now on. */
static struct ddps_mpa_conn *
send_mpa_rare_by(struct mpa_side *s, ssize_t (*send)(struct ddps_mpa_conn *, struct iovec *, int))
{
	struct ddps_mpa_conn *c = get_mpa_rare_conn(s);

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
static void push_mpa_rare(int fd, size_t len, unsigned n)
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
		struct ddps_mpa_conn *c = send_mpa_rare_by(&w.b[0], send_broken);

		c->rx.ask = 4096;
		push_mpa_rare(fd, row[i].len, row[i].n);
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
	struct ddps_mpa_conn *c = send_mpa_rare_by(&w.b[0], send_broken);

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

	get_mpa_rare_conn(&w.b[0])->rx.ask = 4096;
	w.b[0].react[UP_RX] = DO_ABORT;
	push_mpa_rare(fd, 1000, 60);
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

	push_mpa_rare(fd, 18, 2000);
	while (!get_mpa_rare_conn(b)->rx.cut)
		cr_assert_geq(ddps_loop_run(w.env.loop), 0);
	b->holding = true;
	get_mpa_rare_conn(b)->turn = 0; /* as in the next one */
	ddps_mpa_conn_ready(get_mpa_rare_conn(b), DDPS_MPA_IN);
	cr_expect_eq(b->holds, 1);
	cr_expect(get_mpa_rare_conn(b)->rx.stalled);
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

/* What is posted while there seems to be nothing is sent nevertheless, before a close. */
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
	struct ddps_mpa_conn *c = get_mpa_rare_conn(&w.b[0]);

	w.b[0].holding = true;
	mpa_bare_fpdu(fd, mpa_send1, 18);
	MPA_UNTIL(&w, w.b[0].holds);
	tcp = ddps_mpa_sockets;
	tcp.error = have_no_mpa_rare_error;
	c->tcp = &tcp;
	ddps_mpa_conn_ready(c, DDPS_MPA_BROKEN);
	mpa_world_settle(&w);
	cr_expect_eq(w.b[0].called[UP_CLOSED], 1);
	cr_expect_eq(w.b[0].end.code, DDPS_E_RESET);
	cr_expect_eq(w.b[0].end.sys_errno, ECONNRESET);
	mpa_world_fini(&w);
	close(fd);
}

static int say_timed_out(struct ddps_mpa_conn *c)
{
	(void)c;
	return ETIMEDOUT;
}

/* Its FIN waits behind a stall, and what we sent is never acknowledged: that is no end in order. */
Test(mpa_rare, contact_07_a_peer_that_ends_and_vanishes)
{
	struct mpa_world w;
	int fd = in_operation(&w);
	struct mpa_side *b = &w.b[0];
	struct ddps_mpa_conn *c = get_mpa_rare_conn(b);

	b->holding = true;
	mpa_bare_fpdu(fd, mpa_send1, 18);
	shutdown(fd, SHUT_WR);
	MPA_UNTIL(&w, b->holds);
	ddps_mpa_conn_ready(c, DDPS_MPA_PEER_FIN);
	tcp = ddps_mpa_sockets;
	tcp.error = say_timed_out;
	c->tcp = &tcp;
	ddps_mpa_conn_ready(c, DDPS_MPA_BROKEN);
	mpa_world_settle(&w);
	cr_expect_eq(b->called[UP_CLOSED], 0, "what it sent is delivered");
	b->holding = false;
	b->llp->ops->resume(b->llp);
	MPA_UNTIL(&w, b->called[UP_CLOSED]);
	cr_expect_eq(b->end.code, DDPS_E_TIMEDOUT);
	cr_expect_eq(b->end.sys_errno, ETIMEDOUT);
	cr_expect(strstr(b->end.text, "acknowledges nothing"), "%s", b->end.text);
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
		cr_expect_eq(get_mpa_rare_conn(b)->deadline,
			     closing ? DDPS_MPA_T_CLOSE : DDPS_MPA_T_NONE);
		cr_expect_eq(ddps_timer_runs(&get_mpa_rare_conn(b)->timer), closing);
		mpa_world_fini(&w);
		close(fd);
	}
	free(bad.p);
}

/* ---- calls out of turn ---- */

Test(mpa_rare, contact_01_leaving_is_from_the_close_until_its_fin_is_acknowledged)
{
	struct mpa_world w;
	int fd = in_operation(&w);
	struct ddps_llp *llp = w.b[0].llp;
	struct ddps_mpa_conn *c;
	struct ddps_llp_tcp st;

	cr_expect_not(llp->ops->leaving(llp));
	cr_expect_eq(llp->ops->tcp_stats(llp, &st), 0);
	llp->ops->shutdown(llp);
	cr_expect(llp->ops->leaving(llp));
	mpa_world_settle(&w);
	c = get_mpa_rare_conn(&w.b[0]);
	cr_expect_eq(c->wr, DDPS_MPA_WR_SHUT);
	tcp = ddps_mpa_sockets;
	tcp.unacked = one_octet;
	c->tcp = &tcp;
	cr_expect(llp->ops->leaving(llp), "its FIN has left");
	tcp.unacked = get_none_unacked;
	cr_expect_not(llp->ops->leaving(llp), "it is acknowledged");
	c->tcp = &ddps_mpa_sockets;
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
	cr_expect_not(get_mpa_rare_conn(&w.b[0])->resume);
	cr_expect_null(get_mpa_rare_conn(&w.b[0])->task.prev);
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
	cr_expect_eq(get_mpa_rare_conn(&w.b[0])->deadline, DDPS_MPA_T_LINGER);
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
	ddps_mpa_conn_ready(get_mpa_rare_conn(&w.b[0]), DDPS_MPA_IN);
	cr_expect_eq(get_mpa_rare_conn(&w.b[0])->state, DDPS_MPA_REQUEST_ULP);
	interrupts = 3;
	send_mpa_rare_by(&w.b[0], send_interrupted);
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
	get_mpa_rare_conn(&w.a)->startup->out_sent--; /* as if TCP had not taken the last octet */
	mpa_bare_send(fd, MPA_REP "\x40\x01\0\0", 20);
	MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
	cr_expect_eq(w.a.called[UP_ANSWER], 0);
	cr_expect_eq(w.a.end.code, DDPS_E_PROTOCOL);
	cr_expect(strstr(w.a.end.text, "before the Request had left"), "%s", w.a.end.text);
	mpa_world_fini(&w);
	close(fd);
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
	c = send_mpa_rare_by(&w.a, send_full);
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
