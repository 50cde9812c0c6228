/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA over real TCP sockets on loopback: connecting, Request and Reply. */
#include "support/mpa_world.h"
#include <fcntl.h>

#define REQ MPA_REQ
#define REP MPA_REP

Test(mpa_io_setup, accepted_enhanced,
     .description = "5044-7.1.2-1 5044-7.1.2-3 5044-7.1.2-11 5044-3-13 5044-7.1.1-d3 5044-7.1.1-d4 "
		    "5044-7.1-4 6581-10-5 6581-10-1")
{
	struct mpa_world w;
	struct ddps_conn_info info = { 0 };
	char text[100];

	mpa_world_init(&w);
	w.answer.pd = (const uint8_t *)"\0\2\0\2welcome";
	w.answer.pd_len = 11;
	mpa_world_listen(&w);
	mpa_world_connect(&w, w.port, true, "\0\1\0\1hello", 9);
	MPA_UNTIL(&w, w.a.called[UP_ANSWER]);
	cr_expect(w.b[0].setup.enhanced && w.b[0].setup.pd_len == 9);
	cr_expect_arr_eq(w.b[0].pd, "\0\1\0\1hello", 9);
	cr_expect(w.a.setup.enhanced && !w.a.setup.reject && w.a.setup.pd_len == 11);
	cr_expect_arr_eq(w.a.pd, "\0\2\0\2welcome", 11);

	w.a.llp->ops->info(w.a.llp, &info);
	ddps_info_text(&info);
	cr_expect_eq(info.transport, DDPS_TRANSPORT_TCP);
	cr_expect(info.mpa.rev == 2 && info.mpa.crc && !info.mpa.markers_rx &&
		  !info.mpa.markers_tx);
	snprintf(text, sizeof text, "127.0.0.1:%u", w.port);
	cr_expect_str_eq(info.peer, text);
	cr_expect(info.mulpdu >= 128 && info.mulpdu <= 64768);
	cr_expect_eq(info.mulpdu, w.a.llp->ops->mulpdu(w.a.llp));
	w.b[0].llp->ops->info(w.b[0].llp, &info);
	ddps_info_text(&info);
	cr_expect_str_eq(info.local, text);
	mpa_world_fini(&w);
}

Test(mpa_io_setup, flags_of_both_sides,
     .description =
	     "5044-7.1.1-5 5044-7.1.1-6 5044-7.1.1-7 5044-7.1.1-8 5044-7.1.1-9 5044-7.1.1-10 "
	     "5044-4.4-2 5044-4.4-4 5044-4.4-5 5044-4.4-6 5044-4.4-9 5044-4.3-d2")
{
	for (unsigned i = 0; i < 16; i++) {
		struct ddps_conn_info a = { 0 }, b = { 0 };
		struct mpa_world w;

		mpa_world_init(&w);
		w.a.p = mpa_param(i & 1, i & 2);
		w.answer_param = mpa_param(i & 4, i & 8);
		mpa_world_pair(&w);
		w.a.llp->ops->info(w.a.llp, &a);
		w.b[0].llp->ops->info(w.b[0].llp, &b);
		cr_expect_eq(a.mpa.crc, (i & 5) != 0);
		cr_expect_eq(b.mpa.crc, (i & 5) != 0);
		cr_expect(a.mpa.markers_rx == !!(i & 2) && b.mpa.markers_tx == !!(i & 2));
		cr_expect(a.mpa.markers_tx == !!(i & 8) && b.mpa.markers_rx == !!(i & 8));
		mpa_world_fini(&w);
	}
}

Test(mpa_io_setup, request_octets,
     .description = "5044-7.1.1-12 5044-7.1.1-14 6581-10-3 5044u-10-1 6581-6-3 6581-6-4")
{
	static const struct {
		bool enhanced, crc, markers;
		const char *pd;
		size_t pd_len;
		const char *raw;
	} row[] = {
		{ false, true, false, "", 0, REQ "\x40\x01\0\0" },
		{ false, false, true, "hi", 2, REQ "\x80\x01\0\2hi" },
		{ true, true, false, "\0\1\0\1", 4, REQ "\x50\x02\0\4\0\1\0\1" },
		{ true, false, false, "\x80\x01\xc0\x01", 4, REQ "\x10\x02\0\4\x80\x01\xc0\x01" },
	};

	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		struct mpa_world w;
		uint8_t raw[64];
		uint16_t port;
		int l = mpa_bare_listen(&port, 1), fd;

		mpa_world_init(&w);
		w.a.p = mpa_param(row[i].crc, row[i].markers);
		mpa_world_connect(&w, port, row[i].enhanced, row[i].pd, row[i].pd_len);
		fd = accept(l, NULL, NULL);
		cr_assert_eq(mpa_bare_read(&w, fd, raw, 20 + row[i].pd_len),
			     20 + (ssize_t)row[i].pd_len);
		cr_expect_arr_eq(raw, row[i].raw, 20 + row[i].pd_len);
		cr_expect(mpa_bare_silent(&w, fd), "nothing is pipelined behind a Request");
		mpa_world_fini(&w);
		close(fd);
		close(l);
	}
}

/* Requests as Linux siw and others send them, and our accepting and rejecting Replies. */
static const struct {
	const char *request;
	size_t len;
	bool crc;
	const char *accept, *reject;
	size_t reply_len;
} replies[] = {
	{ REQ "\x00\x01\0\0", 20, false, REP "\x00\x01\0\0", REP "\x20\x01\0\0", 20 },
	{ REQ "\x40\x01\0\0", 20, false, REP "\x40\x01\0\0", REP "\x60\x01\0\0", 20 },
	{ REQ "\x00\x01\0\0", 20, true, REP "\x40\x01\0\0", REP "\x60\x01\0\0", 20 },
	{ REQ "\x10\x02\0\4\0\1\0\1", 24, false, REP "\x10\x02\0\4\0\1\0\1",
	  REP "\x30\x02\0\4\0\1\0\1", 24 },
	{ REQ "\x50\x02\0\4\x80\4\xc0\4", 24, false, REP "\x50\x02\0\4\0\1\0\1",
	  REP "\x70\x02\0\4\0\1\0\1", 24 },
	/* siw with GSO: a reserved bit, which is not to be echoed */
	{ REQ "\x18\x02\0\4\0\1\0\1", 24, false, REP "\x10\x02\0\4\0\1\0\1",
	  REP "\x30\x02\0\4\0\1\0\1", 24 },
	{ REQ "\x00\x02\0\0", 20, false, REP "\x00\x02\0\0", REP "\x20\x02\0\0", 20 },
	/* Rev 1 with that bit: not enhanced; R is not looked at */
	{ REQ "\x3f\x01\0\4\0\1\0\1", 24, false, REP "\x00\x01\0\0", REP "\x20\x01\0\0", 20 },
};

Test(mpa_io_setup, reply_octets,
     .description =
	     "5044-7.1.1-3 5044-7.1.1-12 5044-7.1.1-13 5044-7.1.1-d2 5044-7.1.2-5 5044-7.1.2-8 "
	     "6581-6-5 6581-10-1 6581-10-2 6581-10-4 6581-10-5 6581-10-6 5044u-10-2 5044u-10-3")
{
	for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++) {
		for (unsigned reject = 0; reject < 2; reject++) {
			struct mpa_world w;
			uint8_t raw[64];
			int fd;

			mpa_world_init(&w);
			w.answer_param = mpa_param(replies[i].crc, false);
			w.b[0].react[UP_REQUEST] = reject ? DO_REJECT : DO_DEFAULT;
			mpa_world_listen(&w);
			fd = mpa_bare_connect(&w);
			mpa_bare_send(fd, replies[i].request, replies[i].len);
			cr_assert_eq(mpa_bare_read(&w, fd, raw, replies[i].reply_len),
				     (ssize_t)replies[i].reply_len);
			cr_expect_arr_eq(raw, reject ? replies[i].reject : replies[i].accept,
					 replies[i].reply_len, "row %zu, %u", i, reject);
			cr_expect(mpa_bare_silent(&w, fd), "no FIN, nothing behind a Reply");
			mpa_world_fini(&w);
			close(fd);
		}
	}
}

Test(mpa_io_setup, rejected, .description = "5044-7.1.2-7 5044-7.1.2-13 5044-7.1.2-18 6581-10-5")
{
	struct mpa_world w;

	mpa_world_init(&w);
	w.b[0].react[UP_REQUEST] = DO_REJECT;
	w.answer.pd = (const uint8_t *)"\0\0\0\x20no";
	w.answer.pd_len = 6;
	mpa_world_pair(&w);
	cr_expect(w.a.setup.reject && w.a.setup.enhanced && w.a.setup.pd_len == 6);
	cr_expect_arr_eq(w.a.pd, "\0\0\0\x20no", 6);
	MPA_UNTIL(&w, w.a.called[UP_CLOSED] && w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.a.end.code, 0);
	cr_expect_eq(w.b[0].end.code, 0);
	mpa_world_fini(&w);
}

Test(mpa_io_setup, rejected_peer_may_leave_by_reset)
{
	struct mpa_world w;
	uint8_t raw[20];
	int fd;

	mpa_world_init(&w);
	w.b[0].react[UP_REQUEST] = DO_REJECT;
	mpa_world_listen(&w);
	fd = mpa_bare_connect(&w);
	mpa_bare_send(fd, REQ "\0\1\0\0", 20);
	cr_assert_eq(mpa_bare_read(&w, fd, raw, 20), 20);
	mpa_bare_reset(fd);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.b[0].end.code, 0);
	mpa_world_fini(&w);
}

Test(mpa_io_setup, rejected_side_leaves_by_fin_when_freed, .description = "5044-7.1.2-13")
{
	struct mpa_world w;
	uint8_t raw;
	int fd;

	mpa_world_init(&w);
	w.a.react[UP_ANSWER] = DO_FREE;
	fd = mpa_bare_responder(&w, REP "\x60\1\0\0", 20);
	MPA_UNTIL(&w, w.a.called[UP_ANSWER]);
	cr_expect(w.a.setup.reject);
	cr_expect_eq(mpa_bare_read(&w, fd, &raw, 1), 0, "FIN, not RST");
	mpa_world_fini(&w);
	close(fd);
}

Test(mpa_io_setup, rejected_peer_that_stays_is_left_after_a_while, .description = "5044-7.1.2-7")
{
	struct mpa_world w;
	uint8_t raw[21];
	uint64_t start;
	int fd;

	mpa_world_init(&w);
	w.b[0].react[UP_REQUEST] = DO_REJECT;
	mpa_world_listen(&w);
	fd = mpa_bare_connect(&w);
	mpa_bare_send(fd, REQ "\0\1\0\0", 20);
	cr_assert_eq(mpa_bare_read(&w, fd, raw, 20), 20);
	start = ddps_now();
	mpa_bare_send(fd, "whatever", 8);
	cr_assert_eq(mpa_bare_read(&w, fd, raw, 1), 0, "FIN, not RST: the input was read");
	cr_expect_geq(ddps_now() - start, 900000000u);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.b[0].end.code, 0);
	mpa_world_fini(&w);
	close(fd);
}

/* ---- Replies an initiator gets ---- */

static const struct {
	const char *reply;
	size_t len;
	bool enhanced; /* what was sent */
	int code;      /* 0: answer() */
	bool reject, word;
	const char *text;
} answers[] = {
	{ REP "\0\1\0\0", 20, false, 0, false, false, "" },
	{ REP "\0\2\0\0", 20, false, 0, false, false, "" },
	{ REP "\x10\x02\0\4abcd", 24, false, DDPS_E_PROTOCOL, false, false, "enhanced, though" },
	{ REP "\x10\x01\0\4abcd", 24, false, 0, false, false, "" },
	{ REP "\x10\x02\0\4\0\1\0\1", 24, true, 0, false, true, "" },
	{ REP "\0\2\0\4\0\1\0\1", 24, true, DDPS_E_PROTOCOL, false, false, "not enhanced" },
	{ REP "\x10\1\0\4\0\1\0\1", 24, true, DDPS_E_PROTOCOL, false, false, "not enhanced" },
	{ REP "\x10\2\0\3\0\1\0", 23, true, DDPS_E_PROTOCOL, false, false, "IRD/ORD" },
	{ REP "\x30\2\0\4\0\1\0\1", 24, true, 0, true, true, "" },
	{ REP "\x30\2\0\0", 20, true, 0, true, false, "" },
	{ REP "\x20\1\0\2no", 22, true, 0, true, false, "" },
	{ REP "\x20\1\0\2no", 22, false, 0, true, false, "" },
	{ REP "\x30\2\0\4\0\1\0\1", 24, false, 0, true, false, "" },
	{ REP "\0\0\0\0", 20, false, DDPS_E_REVISION, false, false, "revision" },
	{ REP "\0\3\0\0", 20, false, DDPS_E_REVISION, false, false, "revision" },
	{ REP "\0\1\2\1", 20, false, DDPS_E_PROTOCOL, false, false, "512" },
	{ REQ "\0\1\0\0", 20, false, DDPS_E_KEY, false, false, "sends back what it gets" },
	{ "HTTP/1.1 400", 12, false, DDPS_E_KEY, false, false, "wrong key" },
};

Test(mpa_io_setup, replies_to_an_initiator,
     .description = "5044-7.1.1-4 5044-7.1.1-16 5044-7.1.1-18 5044-7.1.2-12 5044-7.1.2-13 "
		    "5044-7.1.2-16 5044-7.1.2-19 5044-7.1.2-24 5044-8-6 6581-10-5 6581-10-6")
{
	for (size_t k = 0; k < 2 * (sizeof answers / sizeof answers[0]); k++) {
		const size_t i = k / 2;
		struct mpa_world w;
		uint8_t raw[24];
		uint16_t port;
		int l = mpa_bare_listen(&port, 1), fd;

		mpa_world_init(&w);
		mpa_world_connect(&w, port, answers[i].enhanced, "\0\1\0\1", 4);
		fd = accept(l, NULL, NULL);
		cr_assert_eq(mpa_bare_read(&w, fd, raw, 24), 24);
		/* in single octets, or in one with what follows: the verdict does not depend on how it comes */
		for (size_t n = 0; !(k & 1) && n < answers[i].len && !w.a.called[UP_CLOSED]; n++) {
			if (send(fd, answers[i].reply + n, 1, MSG_NOSIGNAL) < 0)
				break;
			mpa_world_turn(&w, ddps_loop_fd(w.env.loop));
		}
		if (k & 1) {
			uint8_t all[64] = { 0 };

			memcpy(all, answers[i].reply, answers[i].len);
			mpa_bare_send(fd, all, answers[i].len + 8);
		}
		if (answers[i].code) {
			MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
			cr_expect_eq(w.a.end.code, answers[i].code, "row %zu", i);
			cr_expect(strstr(w.a.end.text, answers[i].text), "%s", w.a.end.text);
			cr_expect(w.a.end.has_triple && w.a.end.triple.layer == 2 &&
				  w.a.end.triple.code == 4);
			cr_expect_eq(w.a.called[UP_ANSWER], 0);
			cr_expect_leq(recv(fd, raw, 1, 0), 0, "closed, and nothing was sent");
		} else {
			MPA_UNTIL(&w, w.a.called[UP_ANSWER]);
			cr_expect_eq(w.a.setup.reject, answers[i].reject, "row %zu", i);
			cr_expect_eq(w.a.setup.enhanced, answers[i].word, "row %zu", i);
		}
		mpa_world_fini(&w);
		close(fd);
		close(l);
	}
}

Test(mpa_io_setup, peer_goes_before_or_inside_its_reply,
     .description = "5044-7.1.2-11 5044-8-1 6581-10-8 6581-10-d1")
{
	for (unsigned i = 0; i < 4; i++) {
		struct mpa_world w;
		int fd;

		mpa_world_init(&w);
		fd = mpa_bare_responder(&w, REP, i & 1 ? 16 : 0);
		mpa_world_settle(&w);
		if (i & 2)
			mpa_bare_reset(fd);
		else
			close(fd);
		MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
		cr_expect_eq(w.a.end.code, DDPS_E_RESET);
		cr_expect_eq(w.a.end.sys_errno, 0);
		cr_expect(w.a.end.has_triple && w.a.end.triple.code == 1);
		cr_expect(strstr(w.a.end.text,
				 i & 1 ? "inside its MPA Reply" : "before its MPA Reply"),
			  "%s", w.a.end.text);
		cr_expect_neq(w.a.end.peer[0], '\0');
		mpa_world_fini(&w);
	}
}

Test(mpa_io_setup, reply_deadline_is_absolute, .description = "5044-7.1.2-25")
{
	struct mpa_world w;
	uint64_t start;
	int fd;

	mpa_world_init(&w);
	w.a.p.setup_ms = 80;
	fd = mpa_bare_responder(&w, NULL, 0);
	start = ddps_now();
	for (unsigned n = 0; !w.a.called[UP_CLOSED]; n++) {
		if (n < 19) /* trickling does not help */
			send(fd, &(REP "\0\1\0\0")[n], 1, MSG_NOSIGNAL);
		mpa_world_turn(&w, -1);
	}
	cr_expect_eq(w.a.end.code, DDPS_E_TIMEDOUT);
	cr_expect_lt(ddps_now() - start, 2000000000u);
	mpa_world_fini(&w);
	close(fd);
}

Test(mpa_io_setup, connection_refused)
{
	struct mpa_world w;
	uint16_t port;
	char text[100];
	int l = mpa_bare_listen(&port, 1);

	close(l);
	mpa_world_init(&w);
	mpa_world_connect(&w, port, false, NULL, 0);
	MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
	cr_expect_eq(w.a.end.code, DDPS_E_REFUSED);
	cr_expect_eq(w.a.end.sys_errno, ECONNREFUSED);
	snprintf(text, sizeof text, "127.0.0.1:%u", port);
	cr_expect_str_eq(w.a.end.peer, text);
	mpa_world_fini(&w);
}

Test(mpa_io_setup, connect_that_fails_immediately_is_reported_later)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(1) };
	struct ddps_uri uri = { .scheme = "tcp" };
	struct ddps_setup setup = { 0 };
	struct mpa_world w;

	in.sin_addr.s_addr = htonl(INADDR_BROADCAST);
	mpa_world_init(&w);
	cr_assert_eq(ddps_mpa_provider.connect(&w.env, &uri, (struct sockaddr *)&in, sizeof in,
					       &setup, &w.a.p, &mpa_up, &w.a, &w.a.llp),
		     0);
	cr_expect_eq(w.a.called[UP_CLOSED], 0);
	MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
	cr_expect_lt(w.a.end.code, 0);
	cr_expect_neq(w.a.end.sys_errno, 0);
	cr_expect_str_eq(w.a.end.peer, "255.255.255.255:1");
	mpa_world_fini(&w);
}

/* A listener whose queue is full: the next SYN stays unanswered until one is taken from it. */
struct full_queue {
	int listener, filler[2];
	uint16_t port;
};

static struct full_queue full_queue(void)
{
	struct full_queue q;
	struct sockaddr_in in;

	q.listener = mpa_bare_listen(&q.port, 0);
	in = mpa_loopback(q.port);
	for (int i = 0; i < 2; i++) {
		q.filler[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(q.filler[i], (struct sockaddr *)&in, sizeof in);
	}
	return q;
}

static void full_queue_close(struct full_queue *q)
{
	close(q->filler[0]);
	close(q->filler[1]);
	close(q->listener);
}

Test(mpa_io_setup, connect_deadline)
{
	struct full_queue q = full_queue();
	struct mpa_world w;

	mpa_world_init(&w);
	w.a.p.connect_ms = 50;
	mpa_world_connect(&w, q.port, false, NULL, 0);
	MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
	cr_expect_eq(w.a.end.code, DDPS_E_TIMEDOUT);
	cr_expect(strstr(w.a.end.text, "connect"));
	mpa_world_fini(&w);
	full_queue_close(&q);
}

Test(mpa_io_setup, connected_late, .description = "5044-7.1.1-1")
{
	struct full_queue q = full_queue();
	struct ddps_conn_info info = { 0 };
	struct mpa_world w;
	uint8_t raw[20];
	int fd[2] = { -1, -1 };

	mpa_world_init(&w);
	mpa_world_connect(&w, q.port, false, NULL, 0);
	mpa_world_settle(&w);
	w.a.llp->ops->info(w.a.llp, &info);
	ddps_info_text(&info);
	cr_expect_str_empty(info.local, "it is still connecting");
	/* The SYN is sent again after a second.  First in the queue is the first filler. */
	fcntl(q.listener, F_SETFL, O_NONBLOCK);
	close(q.filler[1]);
	for (int i = 0; i < 2; i++)
		MPA_UNTIL(&w, (fd[i] = accept(q.listener, NULL, NULL)) >= 0);
	cr_assert_eq(mpa_bare_read(&w, fd[1], raw, sizeof raw), (ssize_t)sizeof raw);
	cr_expect_arr_eq(raw, "MPA ID Req Frame", 16);
	w.a.llp->ops->info(w.a.llp, &info);
	ddps_info_text(&info);
	cr_expect_str_not_empty(info.local);
	mpa_world_fini(&w);
	close(fd[0]);
	close(fd[1]);
	q.filler[1] = -1;
	full_queue_close(&q);
}

Test(mpa_io_setup, bad_arguments, .description = "5044-7.1.1-19 5044u-6-4")
{
	struct mpa_world w;
	struct sockaddr_in in = mpa_loopback(1);
	struct ddps_uri uri = { .scheme = "tcp" };
	struct ddps_setup setup = { .pd = (const uint8_t *)"", .pd_len = 513 };
	struct sockaddr un = { .sa_family = AF_UNIX };
	struct ddps_llp *llp = NULL;
	struct ddps_llp_listener *l = NULL;

	mpa_world_init(&w);
	cr_expect_eq(ddps_mpa_provider.connect(&w.env, &uri, (struct sockaddr *)&in, sizeof in,
					       &setup, &w.a.p, &mpa_up, &w.a, &llp),
		     DDPS_E_TOO_LONG);
	setup = (struct ddps_setup){ .enhanced = true, .pd = (const uint8_t *)"abc", .pd_len = 3 };
	cr_expect_eq(ddps_mpa_provider.connect(&w.env, &uri, (struct sockaddr *)&in, sizeof in,
					       &setup, &w.a.p, &mpa_up, &w.a, &llp),
		     DDPS_E_INVAL);
	setup.pd_len = 0;
	setup.enhanced = false;
	cr_expect_eq(ddps_mpa_provider.connect(&w.env, &uri, &un, sizeof un, &setup, &w.a.p,
					       &mpa_up, &w.a, &llp),
		     DDPS_E_ADDRESS);
	cr_expect_eq(ddps_mpa_provider.listen(&w.env, &uri, &un, sizeof un, &w.lp, &mpa_listen_up,
					      &w, &l),
		     DDPS_E_ADDRESS);
	w.lp.max_half_open = 0;
	cr_expect_eq(ddps_mpa_provider.listen(&w.env, &uri, (struct sockaddr *)&in, sizeof in,
					      &w.lp, &mpa_listen_up, &w, &l),
		     DDPS_E_INVAL);
	mpa_world_fini(&w);
}

/* ---- ends made by the layer above ---- */

Test(mpa_io_setup, freed_or_aborted_in_every_setup_upcall)
{
	static const enum mpa_reaction how[] = { DO_FREE, DO_ABORT, DO_SHUTDOWN };

	for (unsigned i = 0; i < 6; i++) {
		enum mpa_upcall up = i < 3 ? UP_REQUEST : UP_ANSWER;
		struct mpa_world w;
		struct mpa_side *s;

		mpa_world_init(&w);
		s = up == UP_ANSWER ? &w.a : &w.b[0];
		s->react[up] = how[i % 3];
		mpa_world_listen(&w);
		mpa_world_connect(&w, w.port, false, NULL, 0);
		if (s->react[up] == DO_FREE) {
			MPA_UNTIL(&w, s->called[up]);
			mpa_world_settle(&w);
			cr_expect_eq(s->called[UP_CLOSED], 0);
		} else {
			MPA_UNTIL(&w, s->called[UP_CLOSED]);
			cr_expect_eq(s->end.code, DDPS_E_CLOSED);
		}
		/* the other side learns it: by a FIN after a shutdown, else by a reset */
		s = s == &w.a ? &w.b[0] : &w.a;
		MPA_UNTIL(&w, s->called[UP_CLOSED] || s->called[UP_PEER_CLOSED]);
		cr_expect_eq(s->called[UP_PEER_CLOSED], s == &w.b[0] && how[i % 3] == DO_SHUTDOWN);
		if (s->called[UP_CLOSED])
			cr_expect_eq(s->end.code, DDPS_E_RESET);
		mpa_world_fini(&w);
	}
}

Test(mpa_io_setup, freed_at_any_time)
{
	struct mpa_world w;
	uint16_t port;
	int l = mpa_bare_listen(&port, 1), fd;
	uint8_t raw[24];
	ssize_t n, rest;

	for (unsigned i = 0; i < 3; i++) {
		mpa_world_init(&w);
		mpa_world_connect(&w, port, false, NULL, 0);
		fd = accept(l, NULL, NULL);
		if (i)
			cr_assert_eq(mpa_bare_read(&w, fd, raw, 20), 20);
		if (i == 2)
			w.a.llp->ops->abort(w.a.llp);
		w.a.llp->ops->free(w.a.llp);
		w.a.llp = NULL;
		mpa_world_settle(&w);
		cr_expect_eq(w.a.called[UP_CLOSED], 0);
		for (rest = 0; (n = recv(fd, raw, sizeof raw, 0)) > 0;)
			rest += n;
		cr_expect_eq(rest, i ? 0 : 20, "the Request, then the end");
		mpa_world_fini(&w);
		close(fd);
	}
	close(l);
}

Test(mpa_io_setup, abort_while_connecting)
{
	struct full_queue q = full_queue();
	struct mpa_world w;

	mpa_world_init(&w);
	mpa_world_connect(&w, q.port, false, NULL, 0);
	w.a.llp->ops->kick(w.a.llp);
	w.a.llp->ops->abort(w.a.llp);
	cr_expect_eq(w.a.called[UP_CLOSED], 0, "not from inside a call from above");
	MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
	cr_expect_eq(w.a.end.code, DDPS_E_CLOSED);
	mpa_world_fini(&w);
	full_queue_close(&q);
}

static unsigned log_lines;

static void count_log(void *user, enum ddps_log_level level, const char *facility,
		      const char *message)
{
	(void)user;
	(void)level;
	cr_expect_str_eq(facility, "mpa");
	cr_expect_gt(strlen(message), 5);
	log_lines++;
}

Test(mpa_io_setup, transitions_are_logged)
{
	struct mpa_world w;

	mpa_world_init(&w);
	w.env.log.fn = count_log;
	mpa_world_pair(&w);
	/* three steps on each side */
	cr_expect_eq(log_lines, 6, "%u", log_lines);
	mpa_world_fini(&w);
}
