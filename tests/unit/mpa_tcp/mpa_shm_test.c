/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA through shared memory: set-up, data, ends, the socket's file. */
#include "mpa_tcp/shm/mpa_shm.h"
#include "support/child.h"
#include "unit/mpa_tcp/shm_fixture.h"
#include <fcntl.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct mpa_world w;
static char uri[160], said[300];

static void init(void)
{
	mpa_world_init(&w);
	w.env.log = (struct ddps_log){ .fn = shm_log, .user = said };
	cr_assert_eq(shm_listen(&w, "shm://@", uri, sizeof uri), 0);
	said[0] = 0;
}

static void fini(void)
{
	mpa_world_fini(&w);
}

TestSuite(mpa_shm, .init = init, .fini = fini, .timeout = 60);

static void connect_pair(void)
{
	cr_assert_eq(shm_connect(&w, uri), 0);
	MPA_UNTIL(&w, w.a.called[UP_ANSWER] && w.requests);
}

/* What @s has for the other side, of octets that are known. */
static const uint8_t *make_pattern(size_t len)
{
	static uint8_t octets[70000];
	uint32_t seed = 5;

	for (size_t i = 0; i < len; i++)
		octets[i] = (uint8_t)mpa_random(&seed);
	return octets;
}

Test(mpa_shm, an_abstract_name_is_chosen_and_is_in_the_uri)
{
	cr_expect_eq(strncmp(uri, "shm://@", 7), 0, "%s", uri);
	cr_expect_gt(strlen(uri), strlen("shm://@"));
}

Test(mpa_shm, sessions_say_who_the_peer_is_and_have_no_crc)
{
	struct ddps_conn_info a = { .mulpdu = 0 }, b = a;
	char pid[32];

	connect_pair();
	w.a.llp->ops->info(w.a.llp, &a);
	w.b[0].llp->ops->info(w.b[0].llp, &b);
	snprintf(pid, sizeof pid, "pid %d", (int)getpid());
	cr_expect_eq(a.transport, DDPS_TRANSPORT_SHM);
	cr_expect_str_eq(a.peer, uri + strlen("shm://"));
	cr_expect_str_eq(a.local, pid);
	cr_expect_str_eq(b.local, a.peer);
	cr_expect_str_eq(b.peer, pid);
	for (const struct ddps_conn_info *i = &a; i; i = i == &a ? &b : NULL) {
		cr_expect_eq(i->shm.pid, (uint32_t)getpid());
		cr_expect_eq(i->shm.uid, geteuid());
		cr_expect_eq(i->shm.gid, getegid());
		cr_expect_not(i->mpa.crc, "both asked for it");
		cr_expect_geq(i->mulpdu, 60000);
	}
}

Test(mpa_shm, brings_more_than_the_rings_hold)
{
	const size_t len = 60000;
	const uint8_t *p = make_pattern(len);

	connect_pair();
	mpa_send_segments(&w.a, p, len, 100);
	MPA_UNTIL(&w, w.b[0].segments == 100);
	mpa_expect_received(&w.b[0], p, len, 100);
	mpa_send_segments(&w.b[0], p, len, 100);
	MPA_UNTIL(&w, w.a.segments == 100);
	mpa_expect_received(&w.a, p, len, 100);
	cr_expect_eq(w.a.done, 100);
}

Test(mpa_shm, ends_in_order)
{
	connect_pair();
	mpa_send_segments(&w.a, make_pattern(100), 100, 3);
	w.a.llp->ops->shutdown(w.a.llp);
	MPA_UNTIL(&w, w.b[0].called[UP_PEER_CLOSED]);
	cr_expect_eq(w.b[0].segments, 3, "what was sent before arrives");
	w.b[0].llp->ops->shutdown(w.b[0].llp);
	MPA_UNTIL(&w, w.a.called[UP_CLOSED] && w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.a.end.code, 0, "%s", w.a.end.text);
	cr_expect_eq(w.b[0].end.code, 0, "%s", w.b[0].end.text);
}

/* Whoever polls, and is not looked at yet, is woken for nothing each time: that must not use up the socket. */
Test(mpa_shm, no_bell_is_lost_behind_many)
{
	const uint8_t fpdu[24] = { 0, 18, 0x41, 0x43, [15] = 1 };
	struct ddps_io *io;
	struct shm_bare b;
	int unread = 0;

	w.answer_param.crc = false;
	shm_bare_session(&w, &b, uri);
	io = &((struct ddps_mpa_conn *)w.b[0].llp)->io;
	for (unsigned i = 1; i <= 400; i++) { /* of one turn */
		struct iovec iov = { (void *)(uintptr_t)fpdu, sizeof fpdu };
		bool wake;

		cr_assert_eq(ddps_shm_write(&b.out, &iov, 1, &wake), sizeof fpdu);
		if (wake)
			cr_assert_eq(send(b.sock, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT), 1, "%u", i);
		io->fn(io->user, 0);
		cr_assert_eq(w.b[0].segments, i);
	}
	cr_assert_eq(ioctl(io->fd, FIONREAD, &unread), 0);
	cr_expect_leq(unread, 16);
	shm_bare_close(&b);
}

/* What a turn has no share for any more is shown in the next one, although its bell was read in this one. */
Test(mpa_shm, what_a_turn_leaves_is_shown_without_a_bell)
{
	const uint8_t fpdu[24] = { 0, 18, 0x41, 0x43, [15] = 1 };
	struct iovec iov = { (void *)(uintptr_t)fpdu, sizeof fpdu };
	struct ddps_io *io;
	struct shm_bare b;
	unsigned i = 0;
	bool wake;

	w.answer_param.crc = false;
	shm_bare_session(&w, &b, uri);
	mpa_world_settle(&w);
	io = &((struct ddps_mpa_conn *)w.b[0].llp)->io;
	while (w.b[0].segments == i && i < 10000) {
		cr_assert_eq(ddps_shm_write(&b.out, &iov, 1, &wake), sizeof fpdu);
		i++;
		io->fn(io->user, 0);
		if (w.b[0].segments != i)
			break;
	}
	cr_assert_eq(w.b[0].segments, i - 1, "a turn has an end");
	MPA_UNTIL(&w, w.b[0].segments == i);
	shm_bare_close(&b);
}

/* The memory is there as long as one side has it: what was written arrives although its writer is gone. */
Test(mpa_shm, what_was_sent_arrives_when_its_sender_has_gone)
{
	struct shm_bare b;
	uint8_t fpdu[24] = { 0, 18, 0x41, 0x43, [15] = 1 };

	shm_bare_session(&w, &b, uri);
	shm_bare_write(&b, fpdu, sizeof fpdu);
	shm_bare_write(&b, fpdu, sizeof fpdu);
	shm_bare_close(&b);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.b[0].segments, 2);
	cr_expect_eq(w.b[0].end.code, DDPS_E_RESET, "but it did not close: %s", w.b[0].end.text);
}

Test(mpa_shm, a_peer_that_resets_is_noticed)
{
	connect_pair();
	w.a.llp->ops->abort(w.a.llp);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED] && w.a.called[UP_CLOSED]);
	cr_expect_eq(w.b[0].end.code, DDPS_E_RESET);
	cr_expect_eq(w.a.end.code, DDPS_E_CLOSED);
}

Test(mpa_shm, nobody_listens)
{
	char other[200];

	snprintf(other, sizeof other, "%s-not", uri);
	cr_assert_eq(shm_connect(&w, other), 0);
	MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
	cr_expect_eq(w.a.end.code, DDPS_E_REFUSED);
	cr_expect_str_eq(w.a.end.peer, other + strlen("shm://"));
}

/* A queue that is full is waited for, as TCP does. */
Test(mpa_shm, a_full_queue_is_waited_for)
{
	enum { MANY = 8 };
	struct mpa_world other;
	int flood[MANY], n = 0;

	ddps_shm_provider.listener_free(w.listener);
	w.lp.backlog = 1;
	cr_assert_eq(shm_listen(&w, "shm://@", uri, sizeof uri), 0);
	mpa_world_init(&other);
	for (; n < MANY; n++) {
		struct sockaddr_storage ss;
		struct ddps_uri u;
		socklen_t len;

		flood[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		shm_resolve(uri, &u, &ss, &len);
		if (connect(flood[n], (struct sockaddr *)&ss, len) < 0)
			break;
	}
	cr_assert_lt(n, MANY);
	cr_assert_eq(errno, EAGAIN);
	cr_assert_eq(shm_connect(&other, uri), 0);
	mpa_world_settle(&other);
	cr_expect_eq(other.a.called[UP_CLOSED], 0);
	while (!other.a.called[UP_ANSWER]) {
		struct pollfd p[2] = { { .fd = ddps_loop_fd(w.env.loop), .events = POLLIN },
				       { .fd = ddps_loop_fd(other.env.loop), .events = POLLIN } };

		cr_assert_gt(poll(p, 2, 10000), 0);
		cr_assert_geq(ddps_loop_run(w.env.loop), 0);
		cr_assert_geq(ddps_loop_run(other.env.loop), 0);
	}
	mpa_world_fini(&other);
	while (n >= 0)
		close(flood[n--]);
}

/* ---- the socket's file ---- */

static char folder[40], path[80];

static void make_shm_folder(void)
{
	snprintf(folder, sizeof folder, "/tmp/ddps-shm-XXXXXX");
	cr_assert(mkdtemp(folder));
	snprintf(path, sizeof path, "shm://%s/x", folder);
	ddps_shm_provider.listener_free(w.listener);
	w.listener = NULL;
}

static void remove_shm_folder(void)
{
	(void)unlink(path + strlen("shm://"));
	cr_expect_eq(rmdir(folder), 0);
}

static bool is_socket_there(void)
{
	return !access(path + strlen("shm://"), F_OK);
}

Test(mpa_shm, a_file_is_made_and_removed)
{
	make_shm_folder();
	cr_assert_eq(shm_listen(&w, path, uri, sizeof uri), 0);
	cr_expect_str_eq(uri, path);
	cr_expect(is_socket_there());
	connect_pair();
	ddps_shm_provider.listener_free(w.listener);
	w.listener = NULL;
	cr_expect_not(is_socket_there());
	mpa_send_segments(&w.a, make_pattern(100), 100, 1);
	MPA_UNTIL(&w, w.b[0].segments == 1);
	remove_shm_folder();
}

Test(mpa_shm, a_file_that_a_dead_listener_has_left_makes_way)
{
	struct sockaddr_storage ss;
	struct ddps_uri u;
	socklen_t len;
	int fd;

	make_shm_folder();
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	shm_resolve(path, &u, &ss, &len);
	cr_assert_eq(bind(fd, (struct sockaddr *)&ss, len), 0);
	cr_assert_eq(listen(fd, 1), 0);
	cr_expect_eq(shm_listen(&w, path, uri, sizeof uri), DDPS_E_SYSTEM, "it is not dead");
	cr_expect_eq(errno, EADDRINUSE);
	close(fd);
	cr_assert_eq(shm_listen(&w, path, uri, sizeof uri), 0);
	connect_pair();
	ddps_shm_provider.listener_free(w.listener);
	w.listener = NULL;
	remove_shm_folder();
}

Test(mpa_shm, a_file_of_another_kind_stays)
{
	int fd;

	make_shm_folder();
	fd = open(path + strlen("shm://"), O_CREAT | O_WRONLY, 0600);
	cr_assert_geq(fd, 0);
	close(fd);
	cr_expect_eq(shm_listen(&w, path, uri, sizeof uri), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EADDRINUSE);
	cr_expect(is_socket_there());
	remove_shm_folder();
}

Test(mpa_shm, a_file_of_another_listener_is_not_removed)
{
	make_shm_folder();
	cr_assert_eq(shm_listen(&w, path, uri, sizeof uri), 0);
	cr_assert_eq(unlink(path + strlen("shm://")), 0);
	cr_assert_eq(mkfifo(path + strlen("shm://"), 0600), 0);
	ddps_shm_provider.listener_free(w.listener);
	w.listener = NULL;
	cr_expect(is_socket_there());
	remove_shm_folder();
}

Test(mpa_shm, a_file_that_may_not_be_written_to_is_refused)
{
	if (!geteuid()) /* root may write to all */
		return;
	make_shm_folder();
	cr_assert_eq(shm_listen(&w, path, uri, sizeof uri), 0);
	cr_assert_eq(chmod(path + strlen("shm://"), 0), 0);
	cr_assert_eq(shm_connect(&w, path), 0);
	MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
	cr_expect_eq(w.a.end.sys_errno, EACCES);
	remove_shm_folder();
}

/* ---- listeners that begin together ---- */

enum { TOGETHER = 3, ROUNDS = 150 };

/* Tries to listen at @un as soon as @go is at its end, says how that went, and stays until @up is. */
static pid_t begin_listener(const struct sockaddr_un *un, const int *go, const int *up, int said_to)
{
	pid_t pid = fork_at_rest();
	struct ddps_shm_file file;
	char octet;

	if (pid)
		return pid;
	close(go[1]);
	close(up[1]);
	if (read(go[0], &octet, 1))
		leave_child_fixture(1);
	octet = ddps_mpa_shm_bind((const struct sockaddr *)un, sizeof *un, 8, &file) >= 0 ? 'y'
		: errno == EADDRINUSE							  ? 'n'
											  : '?';
	if (write(said_to, &octet, 1) != 1 || read(up[0], &octet, 1))
		leave_child_fixture(1);
	leave_child_fixture(0);
	return 0;
}

/* At a file that one has left which is gone; one is to have it, which others can call. */
static void play_round(const struct sockaddr_un *un)
{
	int go[2], up[2], answers[2], fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), status;
	pid_t pids[TOGETHER];
	unsigned listen = 0;
	char octet;

	unlink(un->sun_path);
	cr_assert_eq(bind(fd, (const struct sockaddr *)un, sizeof *un), 0);
	close(fd);
	cr_assert(!pipe2(go, O_CLOEXEC) && !pipe2(up, O_CLOEXEC) && !pipe2(answers, O_CLOEXEC));
	for (int i = 0; i < TOGETHER; i++)
		pids[i] = begin_listener(un, go, up, answers[1]);
	close(go[1]);
	close(answers[1]);
	for (int i = 0; i < TOGETHER; i++) {
		cr_assert_eq(read(answers[0], &octet, 1), 1);
		cr_expect_neq(octet, '?');
		listen += octet == 'y';
	}
	cr_expect_eq(listen, 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_expect_eq(connect(fd, (const struct sockaddr *)un, sizeof *un), 0);
	close(fd);
	close(up[1]);
	for (int i = 0; i < TOGETHER; i++) {
		cr_assert_eq(waitpid(pids[i], &status, 0), pids[i]);
		cr_expect_eq(status, 0);
	}
	close(go[0]);
	close(up[0]);
	close(answers[0]);
}

Test(mpa_shm, of_listeners_that_begin_together_one_has_the_file)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	snprintf(un.sun_path, sizeof un.sun_path, "/tmp/shm-together-%d", (int)getpid());
	for (int i = 0; i < ROUNDS; i++)
		play_round(&un);
	unlink(un.sun_path);
}

/* Who keeps the folder's lock delays a listener for a second, and no more. */
Test(mpa_shm, a_folder_that_is_locked_is_not_waited_for_without_end)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const uint64_t begun = ddps_now();
	struct ddps_shm_file file;
	uint64_t took;
	int lock, fd;

	make_shm_folder();
	snprintf(un.sun_path, sizeof un.sun_path, "%s", path + strlen("shm://"));
	lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_eq(flock(lock, LOCK_EX), 0);
	fd = ddps_mpa_shm_bind((struct sockaddr *)&un, sizeof un, 8, &file);
	took = ddps_now() - begun;
	cr_expect_geq(fd, 0);
	cr_expect_geq(took, UINT64_C(1000000000));
	cr_expect_lt(took, UINT64_C(10000000000));
	close(fd);
	close(lock);
	remove_shm_folder();
}
