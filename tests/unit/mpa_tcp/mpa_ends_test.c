/* SPDX-License-Identifier: BSD-2-Clause */
/* How set-ups end: the log names the state, the cause and the reason; and what is left behind. */
#include "mpa_tcp/mpa_tx.h"
#include "support/mpa_world.h"
#include "unit/sys_fixture.h"
#include <fcntl.h>

TestSuite(mpa_ends, .timeout = 60);

/* "STATE -EVENT" of the last step into CLOSED, and the reason behind it. */
static char step[60], reason[160];
static unsigned steps, reasons;

static void keep_logged_reason(void *user, enum ddps_log_level level, const char *facility,
			       const char *message)
{
	const char *said = strstr(message, ": "), *to = strstr(message, "-> CLOSED");

	(void)user;
	(void)facility;
	cr_assert(said);
	if (level == DDPS_LOG_INFO) {
		reasons++;
		snprintf(reason, sizeof reason, "%s", said + 2);
	} else if (to) {
		steps++;
		snprintf(step, sizeof step, "%.*s", (int)(to - said - 2), said + 2);
	}
}

enum leaves { STAYS, BY_FIN, BY_RESET };

struct row {
	const char *octets; /* what the peer sends, and how it leaves then */
	size_t len;
	enum leaves how;
	const char *step, *reason;
};

static void make_logged_world(struct mpa_world *w)
{
	mpa_world_init(w);
	w->env.log.fn = keep_logged_reason;
	steps = reasons = 0;
}

/* The peer does what @row says. */
static void act_as_peer(struct mpa_world *w, int fd, const struct row *row)
{
	if (row->len)
		mpa_bare_send(fd, row->octets, row->len);
	mpa_world_settle(w);
	if (row->how == BY_RESET)
		mpa_bare_reset(fd);
	else if (row->how == BY_FIN)
		close(fd);
}

static void expect_end(struct mpa_world *w, int fd, const struct row *row)
{
	MPA_UNTIL(w, reasons);
	cr_expect_str_eq(step, row->step, "%s", step);
	cr_expect(strstr(reason, row->reason), "%s: %s", step, reason);
	mpa_world_settle(w);
	cr_expect_eq(steps, 1, "%s", step);
	cr_expect_eq(reasons, 1, "%s", reason);
	mpa_world_fini(w);
	if (row->how == STAYS)
		close(fd);
}

Test(mpa_ends, while_the_request_is_awaited,
     .description = "5044-7.1.1-18 5044-7.1.2-4 5044-7.1.2-20 5044-8-6")
{
	static const struct row rows[] = {
		{ "GET / HTTP/1.1", 14, STAYS, "AWAIT_REQUEST -BAD_FRAME", "Request: wrong key" },
		{ MPA_REQ "\0\1\0\0+", 21, STAYS, "AWAIT_REQUEST -SURPLUS", "octets follow it" },
		{ MPA_REQ "\0\1\2\0", 20, BY_FIN, "AWAIT_REQUEST -FIN",
		  "closed the connection inside its MPA Request" },
		{ MPA_REQ, 16, BY_RESET, "AWAIT_REQUEST -LOST",
		  "reset the connection inside its MPA Request" },
		{ NULL, 0, BY_FIN, "AWAIT_REQUEST -FIN",
		  "closed the connection before its MPA Request" },
		{ NULL, 0, BY_RESET, "AWAIT_REQUEST -LOST",
		  "reset the connection before its MPA Request" },
		{ MPA_REQ, 16, STAYS, "AWAIT_REQUEST -TIMEOUT",
		  "no whole MPA Request within 30 ms" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct mpa_world w;
		int fd;

		make_logged_world(&w);
		w.lp.setup_ms = strstr(rows[i].step, "TIMEOUT") ? 30 : 60000;
		mpa_world_listen(&w);
		fd = mpa_bare_connect(&w);
		act_as_peer(&w, fd, &rows[i]);
		expect_end(&w, fd, &rows[i]);
	}
}

Test(mpa_ends, while_the_application_decides, .description = "5044-7.1.1-18 5044-8-6")
{
	static const struct row rows[] = {
		{ "+", 1, STAYS, "REQUEST_ULP -SURPLUS", "octets follow it before the Reply" },
		{ NULL, 0, BY_FIN, "REQUEST_ULP -FIN",
		  "closed the connection before our MPA Reply" },
		{ NULL, 0, BY_RESET, "REQUEST_ULP -LOST",
		  "reset the connection before our MPA Reply" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct mpa_world w;
		int fd;

		make_logged_world(&w);
		w.b[0].react[UP_REQUEST] = DO_NOTHING;
		mpa_world_listen(&w);
		fd = mpa_bare_connect(&w);
		mpa_bare_send(fd, MPA_REQ "\0\1\0\0", 20);
		MPA_UNTIL(&w, w.requests);
		act_as_peer(&w, fd, &rows[i]);
		expect_end(&w, fd, &rows[i]);
	}
}

Test(mpa_ends, while_the_reply_is_awaited, .description = "5044-7.1.2-12 5044-7.1.2-25 5044-8-6")
{
	static const struct row rows[] = {
		{ "220 mail", 8, STAYS, "AWAIT_REPLY -BAD_FRAME", "Reply: wrong key" },
		{ MPA_REP "\x10\2\0\4\0\1\0\1", 24, STAYS, "AWAIT_REPLY -BAD_FRAME",
		  "enhanced, though" },
		{ MPA_REP, 16, BY_FIN, "AWAIT_REPLY -FIN",
		  "closed the connection inside its MPA Reply" },
		{ MPA_REP, 16, BY_RESET, "AWAIT_REPLY -LOST",
		  "reset the connection inside its MPA Reply" },
		{ NULL, 0, BY_FIN, "AWAIT_REPLY -FIN",
		  "closed the connection before its MPA Reply" },
		{ NULL, 0, BY_RESET, "AWAIT_REPLY -LOST",
		  "reset the connection before its MPA Reply" },
		{ MPA_REP, 16, STAYS, "AWAIT_REPLY -TIMEOUT", "no whole MPA Reply within 30 ms" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct mpa_world w;
		int fd;

		make_logged_world(&w);
		w.a.p.setup_ms = strstr(rows[i].step, "TIMEOUT") ? 30 : 60000;
		fd = mpa_bare_responder(&w, NULL, 0);
		act_as_peer(&w, fd, &rows[i]);
		expect_end(&w, fd, &rows[i]);
	}
}

/* The first FPDU has its deadline, too [5044-7.1.2-26]; what is rejected ends without a reason. */
Test(mpa_ends, after_the_reply, .description = "5044-7.1.2-7 5044-7.1.2-26")
{
	static const struct row rows[] = {
		{ NULL, 0, STAYS, "FENCED -TIMEOUT", "no first FPDU within 30 ms" },
		{ NULL, 0, BY_RESET, "FENCED -LOST", "receive: Connection reset by peer" },
		{ NULL, 0, STAYS, "STREAM -TIMEOUT", "closed" },
		{ NULL, 0, BY_FIN, "STREAM -FIN", "closed" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		bool rejected = rows[i].step[0] == 'S';
		struct mpa_world w;
		uint8_t reply[20];
		int fd;

		make_logged_world(&w);
		w.answer_param.first_fpdu_ms = strstr(rows[i].step, "TIMEOUT") ? 30 : 60000;
		w.b[0].react[UP_REQUEST] = rejected ? DO_REJECT : DO_DEFAULT;
		mpa_world_listen(&w);
		fd = mpa_bare_connect(&w);
		mpa_bare_send(fd, MPA_REQ "\0\1\0\0", 20);
		cr_assert_eq(mpa_bare_read(&w, fd, reply, 20), 20);
		act_as_peer(&w, fd, &rows[i]);
		expect_end(&w, fd, &rows[i]);
	}
}

/* ---- what is left behind ---- */

static int find_next_mpa_ends_fd(void)
{
	int fd = fcntl(0, F_DUPFD_CLOEXEC, 0);

	if (fd >= 0)
		close(fd);
	return fd;
}

/* A listener that cannot be has no descriptor, however often it is tried. */
Test(mpa_ends, no_descriptor_of_what_cannot_listen)
{
	struct ddps_uri uri = { .scheme = "tcp", .host = "127.0.0.1" };
	struct ddps_llp_listener *l = NULL;
	struct sockaddr_in in;
	struct mpa_world w;
	int free_fd;

	if (mpa_under_valgrind())
		cr_skip_test("it hands out descriptors in its own way");
	mpa_world_init(&w);
	mpa_world_listen(&w);
	in = mpa_loopback(w.port);
	free_fd = find_next_mpa_ends_fd();
	for (unsigned i = 0; i < 2; i++) {
		cr_expect_eq(ddps_mpa_provider.listen(&w.env, &uri, (struct sockaddr *)&in,
						      sizeof in, &w.lp, &mpa_listen_up, &w, &l),
			     DDPS_E_SYSTEM);
		cr_expect_eq(errno, EADDRINUSE);
		cr_expect_eq(find_next_mpa_ends_fd(), free_fd);
	}
	mpa_world_fini(&w);
}

/* Without a descriptor there is no listener and no connection, and whoever asks learns why. */
Test(mpa_ends, without_a_socket)
{
	struct ddps_uri uri = { .scheme = "tcp", .host = "127.0.0.1" };
	struct sockaddr_in in = mpa_loopback(0);
	struct ddps_llp_listener *l = NULL;
	struct ddps_setup setup = { 0 };
	struct ddps_llp *llp = NULL;
	struct mpa_world w;

	mpa_world_init(&w);
	sys_fail("socket", 0, 1, EMFILE);
	cr_expect_eq(ddps_mpa_provider.listen(&w.env, &uri, (struct sockaddr *)&in, sizeof in,
					      &w.lp, &mpa_listen_up, &w, &l),
		     DDPS_E_SYSTEM);
	cr_expect_eq(sys_failed(), 1);
	cr_expect_eq(errno, EMFILE);
	sys_fail("socket", 0, 1, EMFILE);
	cr_expect_eq(ddps_mpa_provider.connect(&w.env, &uri, (struct sockaddr *)&in, sizeof in,
					       &setup, &w.a.p, &mpa_up, &w.a, &llp),
		     DDPS_E_SYSTEM);
	cr_expect_null(l);
	cr_expect_null(llp);
	mpa_world_fini(&w);
}

/* ---- a copy of what has left in part ---- */

static uint8_t payload[1000];

static int one_segment(void *user, struct ddps_seg *seg, size_t mulpdu)
{
	(void)user;
	(void)mulpdu;
	seg->hdr_len = 18;
	memset(seg->hdr, 'h', 18);
	seg->pay_len = sizeof payload;
	seg->pay[0] = (struct iovec){ payload, 400 };
	seg->pay[1] = (struct iovec){ payload + 400, 600 };
	seg->npay = 2;
	seg->final = true;
	return 1;
}

static int one_and_no_more(void *user, struct ddps_seg *seg, size_t mulpdu)
{
	unsigned *calls = user;

	if ((*calls)++)
		return 0;
	one_segment(NULL, seg, mulpdu);
	seg->final = false;
	return 1;
}

/* Whoever said that there is no more is not asked again before there is; only pieces are referred to. */
Test(mpa_ends, what_a_batch_says_of_itself)
{
	for (unsigned copied = 0; copied < 2; copied++) {
		struct ddps_mpa_tx tx;
		unsigned calls = 0;

		ddps_mpa_tx_init(&tx);
		tx.crc = copied;
		cr_expect_eq(ddps_mpa_tx_fill(&tx, one_and_no_more, &calls, 1500), 1);
		cr_expect_eq(calls, 2);
		cr_expect(tx.dry);
		cr_expect_eq(ddps_mpa_tx_refers(&tx), !copied);
		ddps_mpa_tx_fini(&tx);
	}
}

/* Wherever TCP has stopped, what is copied is the rest, and it is all that is sent from then on. */
Test(mpa_ends, a_copy_of_what_has_left_in_part)
{
	static const size_t sent[] = { 0, 1, 19, 20, 21, 419, 420, 421, 1019, 1020, 1023 };

	for (size_t i = 0; i < sizeof sent / sizeof *sent; i++) {
		uint8_t *whole = malloc(1024), *p = whole;
		struct ddps_mpa_tx tx;
		struct iovec *iov;
		int n;

		for (size_t k = 0; k < sizeof payload; k++)
			payload[k] = (uint8_t)(k * 7 + i);
		ddps_mpa_tx_init(&tx);
		cr_assert_eq(ddps_mpa_tx_fill(&tx, one_segment, NULL, 1500), 1);
		cr_assert_eq(ddps_mpa_tx_left(&tx), 1024, "2, 18, 1000, no pad, 4");
		n = ddps_mpa_tx_iov(&tx, &iov);
		for (int k = 0; k < n; p += iov[k++].iov_len)
			memcpy(p, iov[k].iov_base, iov[k].iov_len);
		cr_expect_eq(ddps_mpa_tx_sent(&tx, sent[i]), 0);
		cr_expect(ddps_mpa_tx_refers(&tx));
		cr_assert_eq(ddps_mpa_tx_keep_copy(&tx), 0);
		memset(payload, 0xee, sizeof payload);
		cr_expect_not(ddps_mpa_tx_refers(&tx));
		cr_assert_eq(ddps_mpa_tx_iov(&tx, &iov), 1);
		cr_assert_eq(iov->iov_len, 1024 - sent[i]);
		cr_expect_arr_eq((const uint8_t *)iov->iov_base, whole + sent[i], iov->iov_len,
				 "%zu were sent", sent[i]);
		cr_expect_eq(ddps_mpa_tx_left(&tx), 1024 - sent[i]);
		cr_expect_eq(ddps_mpa_tx_sent(&tx, iov->iov_len), 1);
		cr_expect_eq(ddps_mpa_tx_left(&tx), 0);
		ddps_mpa_tx_fini(&tx);
		free(whole);
	}
}

/* ---- limits ---- */

Test(mpa_ends, private_data_to_its_limit, .description = "5044-7.1.1-19 6581-6-6")
{
	static const struct {
		size_t len;
		bool enhanced;
		int err;
	} rows[] = { { 512, false, 0 },
		     { 513, false, DDPS_E_TOO_LONG },
		     { 0, false, 0 },
		     { 4, true, 0 },
		     { 3, true, DDPS_E_INVAL },
		     { 512, true, 0 },
		     { 513, true, DDPS_E_TOO_LONG } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct ddps_setup setup = { .pd_len = rows[i].len, .enhanced = rows[i].enhanced };

		cr_expect_eq(ddps_mpa_setup_check(&setup), rows[i].err, "row %zu", i);
	}
}
