/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions over TCP that go to shared memory, and what makes them stay. */
#include "support/child.h"
#include "unit/linger_fixture.h"
#include "unit/mem_fixture.h"
#include "unit/mpa_tcp/shm_fixture.h"
#include <fcntl.h>
#include <sys/wait.h>

#define OTHER_USER 12345

static struct mpa_world w;
static uint8_t pattern[4000];
static char said[300];
static long live;

/* Why it stays on TCP, or that it does not. */
static void near_log(void *user, enum ddps_log_level level, const char *facility,
		     const char *message)
{
	(void)user;
	(void)facility;
	if (level <= DDPS_LOG_INFO && strstr(message, "memory"))
		snprintf(said, sizeof said, "%s", message);
}

static void init(void)
{
	live = mem_live();
	mpa_world_init(&w);
	w.env.log = (struct ddps_log){ .fn = near_log };
	w.a.p.shm = w.answer_param.shm = true;
	for (size_t i = 0; i < sizeof pattern; i++)
		pattern[i] = (uint8_t)(i * 7);
}

static void fini(void)
{
	mpa_world_fini(&w);
	cr_expect_eq(mem_live(), live);
	cr_expect_eq(shm_count_memories(), 0);
}

TestSuite(mpa_near, .init = init, .fini = fini, .timeout = 60);

static struct ddps_conn_info get_info(const struct mpa_side *s)
{
	struct ddps_conn_info info = { 0 };

	s->llp->ops->info(s->llp, &info);
	ddps_info_text(&info);
	return info;
}

static bool is_moved(const struct mpa_side *s)
{
	return get_info(s).transport == DDPS_TRANSPORT_SHM;
}

static unsigned count_near_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Both ways. */
static void expect_near_data(void)
{
	mpa_send_segments(&w.a, pattern, 1000, 3);
	MPA_UNTIL(&w, w.b[0].segments == 3);
	mpa_send_segments(&w.b[0], pattern, 900, 2);
	MPA_UNTIL(&w, w.a.segments == 2);
	mpa_expect_received(&w.b[0], pattern, 1000, 3);
	mpa_expect_received(&w.a, pattern, 900, 2);
}

Test(mpa_near, both_want_it)
{
	struct ddps_conn_info a, b;
	unsigned before;

	mpa_world_listen(&w);
	before = count_near_descriptors();
	mpa_world_connect(&w, w.port, true, "\0\1\0\1", 4);
	MPA_UNTIL(&w, w.a.called[UP_ANSWER]);
	cr_expect_eq(count_near_descriptors(), before + 2, "one for each end");
	a = get_info(&w.a);
	b = get_info(&w.b[0]);
	cr_expect_eq(a.transport, DDPS_TRANSPORT_SHM);
	cr_expect_eq(b.transport, DDPS_TRANSPORT_SHM);
	cr_expect_str_eq(a.local, b.peer);
	cr_expect_str_eq(a.peer, b.local);
	cr_expect_eq(strncmp(b.local, "127.0.0.1:", 10), 0, "those of TCP: %s", b.local);
	cr_expect_eq(a.shm.pid, (uint32_t)getpid());
	cr_expect_eq(b.shm.uid, geteuid());
	cr_expect_not(a.mpa.crc || b.mpa.crc);
	cr_expect_gt(a.mulpdu, 60000);
	expect_near_data();
}

/* @why is said, and nothing of the way there is left. */
static void expect_tcp(bool initiator, bool responder, const char *why)
{
	unsigned before;

	w.a.p.shm = initiator;
	w.answer_param.shm = responder;
	mpa_world_listen(&w);
	before = count_near_descriptors();
	mpa_world_connect(&w, w.port, true, "\0\1\0\1", 4);
	MPA_UNTIL(&w, w.a.called[UP_ANSWER]);
	cr_expect_eq(count_near_descriptors(), before + 2);
	cr_expect(strstr(said, why), "%s", said);
	cr_expect_not(is_moved(&w.a));
	cr_expect_not(is_moved(&w.b[0]));
	cr_expect(get_info(&w.a).mpa.crc);
	expect_near_data();
}

Test(mpa_near, the_initiator_alone_wants_it)
{
	expect_tcp(true, false, "the peer does not ask for shared memory");
}

Test(mpa_near, the_responder_alone_wants_it)
{
	expect_tcp(false, true, "the peer does not offer shared memory");
}

Test(mpa_near, a_rejection_comes_over_tcp)
{
	w.b[0].react[UP_REQUEST] = DO_REJECT;
	mpa_world_listen(&w);
	mpa_world_connect(&w, w.port, true, "\0\1\0\1", 4);
	MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
	cr_expect_eq(w.a.called[UP_ANSWER], 1);
	cr_expect(w.a.setup.reject);
}

/* ---- peers by hand ---- */

/* Where the initiator of the connection is found whose socket is @fd, which is his or not. */
static socklen_t get_initiator_name(int fd, bool initiator, struct sockaddr_un *un)
{
	struct sockaddr_in own, peer;
	socklen_t len = sizeof own;
	const struct sockaddr_in *from = initiator ? &own : &peer, *to = initiator ? &peer : &own;

	cr_assert_eq(getsockname(fd, (struct sockaddr *)&own, &len), 0);
	cr_assert_eq(getpeername(fd, (struct sockaddr *)&peer, &len), 0);
	*un = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(un->sun_path + 1, sizeof un->sun_path - 1, "ddpsess/127.0.0.1:%u-127.0.0.1:%u",
		 ntohs(from->sin_port), ntohs(to->sin_port));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(un->sun_path + 1));
}

/* An initiator that the responder has called: its TCP, and in @sock what the call came to. */
static int call_by_hand(int *sock)
{
	static const char request[] = MPA_REQ "\0\1\0\0";
	struct sockaddr_un un;
	uint8_t reply[20];
	int name, tcp;

	mpa_world_listen(&w);
	tcp = mpa_bare_connect(&w);
	name = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(name, (struct sockaddr *)&un, get_initiator_name(tcp, true, &un)), 0);
	cr_assert_eq(listen(name, 1), 0);
	mpa_bare_send(tcp, request, 20);
	cr_assert_eq(mpa_bare_read(&w, tcp, reply, sizeof reply), 20);
	*sock = accept(name, NULL, NULL);
	cr_assert_geq(*sock, 0);
	close(name);
	return tcp;
}

static void send_by_hand(int tcp, unsigned n)
{
	mpa_bare_fpdu(tcp, pattern, 100);
	MPA_UNTIL(&w, w.b[0].segments == n);
}

/* What the responder does not take leaves it on TCP, and closes the socket. */
static void expect_near_refused(int tcp, int sock)
{
	char octet;

	cr_expect_leq(mpa_bare_read(&w, sock, &octet, 1), 0);
	cr_expect_not(is_moved(&w.b[0]));
	send_by_hand(tcp, 1);
	close(sock);
	close(tcp);
}

Test(mpa_near, an_initiator_that_passes_nothing_stays_on_tcp)
{
	int sock, tcp = call_by_hand(&sock);

	shutdown(sock, SHUT_WR);
	expect_near_refused(tcp, sock);
}

Test(mpa_near, an_initiator_that_passes_what_is_no_memory)
{
	int sock, tcp = call_by_hand(&sock), fds[2];

	cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
	cr_assert_eq(ddps_shm_pass(sock, fds[0]), 0);
	expect_near_refused(tcp, sock);
	close(fds[0]);
	close(fds[1]);
}

Test(mpa_near, an_initiator_that_speaks_something_else)
{
	int sock, tcp = call_by_hand(&sock);

	cr_assert_eq(send(sock, "what is this?...", 16, 0), 16);
	expect_near_refused(tcp, sock);
}

/* What is urgent the kernel would throw away at the next read, and closing it may block. */
Test(mpa_near, an_initiator_that_passes_what_lingers)
{
	const uint64_t begun = ddps_now();
	int sock, tcp = call_by_hand(&sock), far = pass_lingering(sock, "x", 1, MSG_OOB);

	expect_near_refused(tcp, sock);
	cr_expect_lt(ddps_now() - begun, UINT64_C(5000000000));
	close(far);
}

/* This side has said already that nothing more comes over TCP. */
Test(mpa_near, memory_that_comes_behind_the_fin)
{
	int sock, tcp = call_by_hand(&sock), fd;
	struct ddps_shm_memory *memory = ddps_shm_make(&fd);
	char octet;

	w.b[0].llp->ops->shutdown(w.b[0].llp);
	cr_assert_eq(ddps_shm_pass(sock, fd), 0);
	cr_expect_eq(mpa_bare_read(&w, sock, &octet, 1), 0);
	cr_expect_not(is_moved(&w.b[0]));
	cr_expect(strstr(said, "too late"), "%s", said);
	ddps_shm_unmap(memory);
	close(fd);
	close(sock);
	close(tcp);
}

/* Half an FPDU is over TCP, and the rest would be in memory. */
Test(mpa_near, attack_memory_in_the_middle_of_an_fpdu)
{
	int sock, tcp = call_by_hand(&sock), fd;
	struct ddps_shm_memory *memory = ddps_shm_make(&fd);
	const struct mpa_octets fpdu = mpa_fpdu(pattern, 100);
	char octet;

	mpa_bare_send(tcp, fpdu.p, 50);
	MPA_UNTIL(&w, w.b[0].llp->ops->held(w.b[0].llp));
	cr_assert_eq(ddps_shm_pass(sock, fd), 0);
	cr_expect_eq(mpa_bare_read(&w, sock, &octet, 1), 0);
	cr_expect_not(is_moved(&w.b[0]));
	mpa_bare_send(tcp, fpdu.p + 50, fpdu.len - 50);
	MPA_UNTIL(&w, w.b[0].segments == 1);
	ddps_shm_unmap(memory);
	free(fpdu.p);
	close(fd);
	close(sock);
	close(tcp);
}

/* Behind the move it is a session of shm://: TCP is closed, and an index that cannot be ends it. */
Test(mpa_near, an_impossible_index_behind_the_move)
{
	int sock, tcp = call_by_hand(&sock), fd;
	struct ddps_shm_memory *memory = ddps_shm_make(&fd);
	char octet, hello[16];

	cr_assert_eq(ddps_shm_pass(sock, fd), 0);
	cr_expect_eq(mpa_bare_read(&w, sock, hello, sizeof hello), sizeof hello);
	cr_expect(is_moved(&w.b[0]));
	cr_expect_eq(mpa_bare_read(&w, tcp, &octet, 1), 0);
	__atomic_store_n(&memory->words.head, DDPS_SHM_OCTETS + 1, __ATOMIC_SEQ_CST);
	cr_assert_eq(send(sock, "", 1, MSG_NOSIGNAL), 1);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.b[0].end.code, DDPS_E_PROTOCOL);
	cr_expect_eq(w.b[0].segments, 0);
	ddps_shm_unmap(memory);
	close(fd);
	close(sock);
	close(tcp);
}

/* A responder that has the Request, and unless @sock is NULL has come to where the initiator is found. */
static int come_by_hand(int *sock)
{
	uint16_t port;
	uint8_t request[24];
	struct sockaddr_un un;
	int listening = mpa_bare_listen(&port, 1), tcp;
	socklen_t len;

	mpa_world_connect(&w, port, true, "\0\1\0\1", 4);
	tcp = accept(listening, NULL, NULL);
	cr_assert_geq(tcp, 0);
	close(listening);
	cr_assert_eq(mpa_bare_read(&w, tcp, request, sizeof request), 24);
	if (!sock)
		return tcp;
	*sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	len = get_initiator_name(tcp, false, &un);
	cr_assert_eq(connect(*sock, (struct sockaddr *)&un, len), 0);
	return tcp;
}

static void reply_by_hand(int tcp)
{
	mpa_bare_send(tcp, MPA_REP "\x50\2\0\4\0\1\0\1", 24);
}

/* The initiator has passed its memory, and waits. */
static void await_near_memory(int sock)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };

	do
		mpa_world_turn(&w, sock);
	while (poll(&p, 1, 0) != 1);
	cr_expect_eq(w.a.called[UP_ANSWER], 0);
}

Test(mpa_near, a_responder_that_does_not_take_memory_is_served_over_tcp)
{
	int sock, tcp = come_by_hand(&sock);
	uint8_t fpdu[110];

	const unsigned before = count_near_descriptors();

	reply_by_hand(tcp);
	await_near_memory(sock);
	close(sock);
	MPA_UNTIL(&w, w.a.called[UP_ANSWER]);
	cr_expect_not(is_moved(&w.a));
	cr_expect_eq(count_near_descriptors(), before - 2,
		     "nor does this side keep a socket for it");
	cr_expect(strstr(said, "does not take shared memory"), "%s", said);
	mpa_send_segments(&w.a, pattern, 100, 1);
	cr_expect_eq(mpa_bare_read(&w, tcp, fpdu, 108), 108);
	cr_expect_arr_eq(fpdu + 2, pattern, 100);
	close(tcp);
}

/* The responder closes TCP as soon as it has said that it takes the memory: either may be seen first. */
Test(mpa_near, the_end_of_tcp_comes_first)
{
	int sock, tcp = come_by_hand(&sock);
	const struct ddps_shm_memory *far;
	struct ddps_shm_memory *memory;
	struct ddps_shm_ring in;
	struct iovec iov = { (uint8_t[108]){ 0 }, 108 };
	const char *why;
	bool wake;
	int fd;

	reply_by_hand(tcp);
	await_near_memory(sock);
	far = ddps_shm_take(sock, &why);
	cr_assert(far, "%s", why);
	close(tcp);
	for (int i = 0; i < 3; i++)
		mpa_world_settle(&w);
	memory = ddps_shm_make(&fd);
	cr_assert(memory);
	cr_assert_eq(ddps_shm_pass(sock, fd), 0, "%s", w.a.end.text);
	close(fd);
	MPA_UNTIL(&w, w.a.called[UP_ANSWER] || w.a.called[UP_CLOSED]);
	cr_assert(w.a.called[UP_ANSWER], "%s", w.a.end.text);
	cr_expect(is_moved(&w.a));
	ddps_shm_open_reader(&in, memory);
	ddps_shm_meet(&in, far);
	mpa_send_segments(&w.a, pattern, 100, 1);
	cr_expect_eq(ddps_shm_read(&in, &iov, 1, &wake), 108);
	cr_expect_arr_eq((uint8_t *)iov.iov_base + 2, pattern, 100);
	ddps_shm_unmap(memory);
	ddps_shm_unmap(far);
	close(sock);
}

Test(mpa_near, a_responder_that_passes_what_lingers)
{
	const uint64_t begun = ddps_now();
	int sock, tcp = come_by_hand(&sock), far;

	reply_by_hand(tcp);
	await_near_memory(sock);
	far = pass_lingering(sock, "x", 1, MSG_OOB);
	MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
	cr_expect_eq(w.a.end.code, DDPS_E_PROTOCOL);
	cr_expect_lt(ddps_now() - begun, UINT64_C(5000000000));
	close(far);
	close(sock);
	close(tcp);
}

/* It has moved, and cannot be followed. */
Test(mpa_near, a_responder_that_passes_what_is_no_memory)
{
	int sock, tcp = come_by_hand(&sock), fds[2];

	reply_by_hand(tcp);
	await_near_memory(sock);
	cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
	cr_assert_eq(ddps_shm_pass(sock, fds[0]), 0);
	MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
	cr_expect_eq(w.a.end.code, DDPS_E_PROTOCOL);
	cr_expect(strstr(w.a.end.text, "not sealed"), "%s", w.a.end.text);
	close(fds[0]);
	close(fds[1]);
	close(sock);
	close(tcp);
}

Test(mpa_near, a_responder_that_says_nothing_about_memory_has_a_deadline)
{
	int sock, tcp;

	w.a.p.setup_ms = 50;
	tcp = come_by_hand(&sock);
	reply_by_hand(tcp);
	await_near_memory(sock);
	MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
	cr_expect_eq(w.a.end.code, DDPS_E_TIMEDOUT);
	cr_expect(strstr(w.a.end.text, "no word on shared memory"), "%s", w.a.end.text);
	cr_expect_eq(w.a.called[UP_ANSWER], 0);
	close(sock);
	close(tcp);
}

Test(mpa_near, a_session_ends_while_its_memory_is_looked_at)
{
	int sock, tcp = come_by_hand(&sock);
	char octet;
	const struct ddps_shm_memory *memory;
	const char *why;

	reply_by_hand(tcp);
	await_near_memory(sock);
	memory = ddps_shm_take(sock, &why);
	cr_expect(memory, "%s", why);
	w.a.llp->ops->free(w.a.llp);
	w.a.llp = NULL;
	cr_expect_eq(recv(sock, &octet, 1, 0), 0);
	ddps_shm_unmap(memory);
	close(sock);
	close(tcp);
}

/* ---- other users ---- */

Test(mpa_near, another_user_that_comes_is_turned_away)
{
	const uint64_t begun = ddps_now();
	int tcp, up[2], status = 1;
	pid_t pid;

	if (geteuid())
		return;
	tcp = come_by_hand(NULL);
	cr_assert_eq(pipe2(up, O_CLOEXEC), 0);
	pid = fork_at_rest();
	if (!pid) {
		struct sockaddr_un un;
		socklen_t len = get_initiator_name(tcp, false, &un);
		char octet;
		int sock = seteuid(OTHER_USER) ? -1 : socket(AF_UNIX, SOCK_STREAM, 0);

		if (connect(sock, (struct sockaddr *)&un, len))
			leave_child_fixture(1);
		(void)pass_lingering(sock, "", 1, 0); /* closing that would block */
		if (send(tcp, MPA_REP "\x50\2\0\4\0\1\0\1", 24, 0) != 24)
			leave_child_fixture(2);
		close(up[1]);
		if (recv(sock, &octet, 1, 0) > 0 || read(up[0], &octet, 1))
			leave_child_fixture(3);
		leave_child_fixture(0);
	}
	MPA_UNTIL(&w, w.a.called[UP_ANSWER]);
	cr_expect_lt(ddps_now() - begun, UINT64_C(5000000000));
	close(up[1]);
	close(up[0]);
	cr_expect_not(is_moved(&w.a));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	close(tcp);
}

Test(mpa_near, another_user_that_is_found_is_left_alone)
{
	struct sockaddr_un un;
	int tcp, up[2], status = 1;
	char octet;
	pid_t pid;

	if (geteuid())
		return;
	mpa_world_listen(&w);
	tcp = mpa_bare_connect(&w);
	cr_assert_eq(pipe2(up, O_CLOEXEC), 0);
	pid = fork_at_rest();
	if (!pid) {
		socklen_t len = get_initiator_name(tcp, true, &un);
		int name = seteuid(OTHER_USER) ? -1 : socket(AF_UNIX, SOCK_STREAM, 0), call;

		if (bind(name, (struct sockaddr *)&un, len) || listen(name, 1) ||
		    send(tcp, MPA_REQ "\0\1\0\0", 20, 0) != 20 || write(up[1], "", 1) != 1)
			leave_child_fixture(1);
		call = accept(name, NULL, NULL);
		leave_child_fixture(recv(call, &octet, 1, 0) ? 2 : 0);
	}
	close(up[1]);
	cr_assert_eq(read(up[0], &octet, 1), 1);
	MPA_UNTIL(&w, w.b[0].llp);
	cr_expect_not(is_moved(&w.b[0]));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	send_by_hand(tcp, 1);
	close(up[0]);
	close(tcp);
}
