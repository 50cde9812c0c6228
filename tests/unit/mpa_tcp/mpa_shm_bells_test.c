/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions of shm:// where a side sleeps, polls or looks away: which bells ring, and what is learned without one. */
#include "unit/mpa_tcp/shm_fixture.h"
#include "unit/sys_fixture.h"
#include <sys/ioctl.h>

static struct mpa_world w;
static struct shm_bare b;
static char uri[160];
static uint8_t octets[60000];

static void init(void)
{
	mpa_world_init(&w);
	w.answer_param.crc = false;
	cr_assert_eq(shm_listen(&w, "shm://@", uri, sizeof uri), 0);
	b = (struct shm_bare){ .sock = -1 };
}

static void fini(void)
{
	if (b.sock >= 0)
		shm_bare_close(&b);
	mpa_world_fini(&w);
	cr_expect_eq(shm_count_memories(), 0);
}

TestSuite(mpa_shm_bells, .init = init, .fini = fini, .timeout = 60);

static bool write_fpdu(void)
{
	static const uint8_t fpdu[24] = { 0, 18, 0x41, 0x43, [15] = 1 };
	struct iovec iov = { (void *)(uintptr_t)fpdu, sizeof fpdu };
	bool wake;

	cr_assert_eq(ddps_shm_write(&b.out, &iov, 1, &wake), sizeof fpdu);
	return wake;
}

/* A session whose fence is open: both may send. */
static void open_bare_session(void)
{
	shm_bare_session(&w, &b, uri);
	write_fpdu();
	shm_bare_ring(&b);
	MPA_UNTIL(&w, w.b[0].segments == 1);
	mpa_world_settle(&w);
}

static int count_unread_bells(int fd)
{
	int n = -1;

	cr_assert_eq(ioctl(fd, FIONREAD, &n), 0);
	return n;
}

/* ---- bells ---- */

/* Nobody else wakes the peer: one for which there was no memory is rung later. */
static void check_rung_later(int err)
{
	char octet;

	while (recv(b.sock, &octet, 1, MSG_DONTWAIT) == 1)
		;
	while (ddps_shm_await_octets(&b.in)) {
		struct iovec iov = { octets, sizeof octets };
		bool wake;

		ddps_shm_read(&b.in, &iov, 1, &wake);
	}
	sys_fail("send", 0, 1, err);
	mpa_send_segments(&w.b[0], octets, 100, 1);
	cr_expect_eq(sys_failed(), 1, "%d", err);
	MPA_UNTIL(&w, count_unread_bells(b.sock) == 1);
}

Test(mpa_shm_bells, one_that_fails_is_rung_later)
{
	open_bare_session();
	check_rung_later(ENOBUFS);
	check_rung_later(ENOMEM);
	check_rung_later(EINTR);
}

/* One that the socket has no room for is not needed: the peer has others to read. */
Test(mpa_shm_bells, one_too_many_is_not_rung_later)
{
	struct pollfd p = { .events = POLLIN };

	open_bare_session();
	cr_expect_not(ddps_shm_await_octets(&b.in));
	sys_fail("send", 0, 1, EAGAIN);
	mpa_send_segments(&w.b[0], octets, 100, 1);
	cr_expect_eq(sys_failed(), 1);
	p.fd = ddps_loop_fd(w.env.loop);
	cr_expect_eq(poll(&p, 1, 30), 0);
	cr_expect_eq(count_unread_bells(b.sock), 0);
}

/* ---- whoever polls ---- */

/* Tries in vain that pay, until nobody sleeps on the socket any more. */
static void make_shm_hidden(void)
{
	open_bare_session();
	for (int i = 0; i < 2000 && !ddps_loop_polled(w.env.loop); i++) {
		const unsigned before = w.b[0].segments;

		cr_assert_geq(ddps_loop_spin(w.env.loop), 0);
		if (write_fpdu())
			shm_bare_ring(&b);
		while (w.b[0].segments == before)
			cr_assert_geq(ddps_loop_spin(w.env.loop), 0);
	}
	cr_assert(ddps_loop_polled(w.env.loop));
}

Test(mpa_shm_bells, whoever_polls_is_not_woken)
{
	const struct ddps_shm_words *far;
	unsigned before;

	make_shm_hidden();
	far = &b.far->words;
	cr_expect_eq(far->reader_sleeps, b.memory->words.reader_woken);
	for (int i = 0; i < 10; i++) {
		before = w.b[0].segments;
		cr_expect_not(write_fpdu());
		while (w.b[0].segments == before)
			cr_assert_geq(ddps_loop_spin(w.env.loop), 0);
	}
}

/* The peer takes a quarter of the ring, or less.  Return: whether a bell is due. */
static bool read_quarter(void)
{
	struct iovec iov = { octets, 32768 };
	bool wake, any = false;

	for (int i = 0; i < 2; i++) {
		ddps_shm_read(&b.in, &iov, 1, &wake);
		any |= wake;
	}
	return any;
}

/* Nor is he who waits for room. */
Test(mpa_shm_bells, whoever_writes_and_polls_is_not_woken)
{
	open_bare_session();
	mpa_send_segments(&w.b[0], octets, sizeof octets, 2000);
	for (int i = 0; i < 1000 && !ddps_loop_polled(w.env.loop); i++) {
		const size_t full = ddps_shm_filled(&b.in);

		cr_assert_geq(ddps_loop_spin(w.env.loop), 0);
		if (read_quarter())
			shm_bare_ring(&b);
		while (ddps_shm_filled(&b.in) < full)
			cr_assert_geq(ddps_loop_spin(w.env.loop), 0);
	}
	cr_assert(ddps_loop_polled(w.env.loop));
	for (int i = 0; i < 10; i++) {
		cr_expect_not(read_quarter());
		cr_assert_geq(ddps_loop_spin(w.env.loop), 0);
	}
}

/* What has come without a bell is seen by whoever goes to sleep; then it is woken again. */
Test(mpa_shm_bells, whoever_goes_to_sleep_has_seen_all)
{
	unsigned before;

	make_shm_hidden();
	before = w.b[0].segments;
	cr_expect_not(write_fpdu());
	for (int i = 0; i < 20; i++)
		shm_bare_ring(&b);
	MPA_UNTIL(&w, w.b[0].segments == before + 1);
	mpa_world_settle(&w);
	cr_expect_not(ddps_loop_polled(w.env.loop));
	cr_expect(write_fpdu());
	shm_bare_ring(&b);
	MPA_UNTIL(&w, w.b[0].segments == before + 2);
}

/* A process that is gone says nothing, and rings nothing. */
Test(mpa_shm_bells, whoever_polls_learns_that_the_peer_is_gone)
{
	make_shm_hidden();
	close(b.sock);
	b.sock = dup(0);
	for (int i = 0; i < 100000 && !w.b[0].called[UP_CLOSED]; i++)
		cr_assert_geq(ddps_loop_spin(w.env.loop), 0);
	cr_expect_eq(w.b[0].end.code, DDPS_E_RESET, "%s", w.b[0].end.text);
}

/* ---- whoever looks away ---- */

static void connect_shm_pair(void)
{
	cr_assert_eq(shm_connect(&w, uri), 0);
	MPA_UNTIL(&w, w.a.called[UP_ANSWER] && w.requests);
}

/* A side that takes nothing for now learns of a reset nevertheless. */
Test(mpa_shm_bells, a_reset_while_nothing_is_taken)
{
	connect_shm_pair();
	mpa_send_segments(&w.a, octets, 100, 1);
	MPA_UNTIL(&w, w.b[0].segments == 1);
	w.b[0].holding = true;
	mpa_send_segments(&w.a, octets, 100, 1);
	MPA_UNTIL(&w, w.b[0].holds);
	w.a.llp->ops->abort(w.a.llp);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.b[0].end.code, DDPS_E_RESET);
}

/* Between the Reply and open() nothing is reported. */
Test(mpa_shm_bells, a_reset_before_the_program_has_opened)
{
	w.a.react[UP_ANSWER] = DO_NOTHING;
	connect_shm_pair();
	w.b[0].llp->ops->abort(w.b[0].llp);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	mpa_world_settle(&w);
	cr_expect_eq(w.a.called[UP_CLOSED], 0);
	w.a.llp->ops->open(w.a.llp);
	MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
	cr_expect_eq(w.a.end.code, DDPS_E_RESET);
}

/* A queue that is full is waited for; then nobody is there any more. */
Test(mpa_shm_bells, a_listener_that_goes_while_its_queue_is_full)
{
	struct sockaddr_storage ss;
	struct ddps_uri u;
	socklen_t len;
	int flood[8], n = 0;

	ddps_shm_provider.listener_free(w.listener);
	w.listener = NULL;
	shm_resolve("shm://@", &u, &ss, &len);
	b.sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(b.sock, (struct sockaddr *)&ss, len), 0);
	cr_assert_eq(listen(b.sock, 1), 0);
	len = sizeof ss;
	cr_assert_eq(getsockname(b.sock, (struct sockaddr *)&ss, &len), 0);
	for (; n < 8; n++) {
		flood[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (connect(flood[n], (struct sockaddr *)&ss, len) < 0)
			break;
	}
	cr_assert_lt(n, 8);
	snprintf(uri, sizeof uri, "shm://@%.*s", (int)(len - 3),
		 ((struct sockaddr_un *)&ss)->sun_path + 1);
	cr_assert_eq(shm_connect(&w, uri), 0);
	mpa_world_settle(&w);
	cr_expect_eq(w.a.called[UP_CLOSED], 0);
	close(b.sock);
	b.sock = -1;
	MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
	cr_expect_eq(w.a.end.code, DDPS_E_REFUSED, "%s", w.a.end.text);
	while (n >= 0)
		close(flood[n--]);
}

/* ---- captures ---- */

struct shown_shm {
	size_t sent, received;
	unsigned wrong;
	uint16_t callers[64]; /* ports, of packets that were sent */
	unsigned n;
};

static uint16_t get_shown_port(const struct sockaddr *sa)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)sa;

	return sa->sa_family == AF_INET && in->sin_addr.s_addr == htonl(INADDR_LOOPBACK)
		       ? ntohs(in->sin_port)
		       : 0;
}

static void capture_shm(void *user, const struct ddps_packet *p)
{
	struct shown_shm *s = user;
	const uint16_t local = get_shown_port(p->local), peer = get_shown_port(p->peer);
	const uint16_t caller = local == 1 ? peer : local;

	*(p->sent ? &s->sent : &s->received) += p->len;
	s->wrong += p->transport != DDPS_TRANSPORT_TCP || (local == 1) == (peer == 1) ||
		    caller < 0x8000;
	if (p->sent && s->n < 64)
		s->callers[s->n++] = caller;
}

/* As packets of a connection of its own. */
Test(mpa_shm_bells, a_session_is_captured)
{
	struct shown_shm shown = { .n = 0 };

	w.env.capture = capture_shm;
	w.env.capture_user = &shown;
	connect_shm_pair();
	mpa_send_segments(&w.a, octets, sizeof octets, 2);
	MPA_UNTIL(&w, w.b[0].segments == 2);
	cr_expect_gt(shown.sent, 2 * sizeof octets);
	cr_expect_eq(shown.sent, shown.received);
	cr_expect_eq(shown.wrong, 0);
	cr_assert_geq(shown.n, 2);
	cr_expect_neq(shown.callers[0], shown.callers[1], "each side has memory of its own");
}
